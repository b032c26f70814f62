//! Rows of a file as items of `Feed.Latency`: one a path, in an order in which no host tells too much at once.

use super::rows::Row;
use hintd_client::wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// Items of one host within a second: half of what hintd takes of one by default (latency.items_per_s), for a second of the
/// daemon's may see the end of one part and the next.
pub(super) const AT_ONCE: usize = 100;

/// Lengths that one item tells of, at most.
const BUCKETS: usize = 256;

/// Round trips of one path.
#[derive(Debug)]
pub(super) struct Item {
    /// Where the newest of them stood.
    pub(super) at: String,
    /// How many items of the same host come before it.
    pub(super) turn: usize,
    pub(super) round_trips: u64,
    pub(super) histogram: v1::LatencyHistogram,
}

/// What is not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct LeftOut {
    /// Round trips that are too old.
    pub(super) older: u64,
    /// Round trips beyond the lengths that one item has.
    pub(super) beyond: u64,
    /// Values that are no number.
    pub(super) no_value: u64,
}

impl LeftOut {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// An item for each path, and what is left out: what was measured before `oldest_ms`, unless all of the path was, and lengths
/// beyond the newest 256. All hosts take turns.
pub(super) fn items(rows: &[Row], oldest_ms: u64) -> (Vec<Item>, LeftOut) {
    let mut paths: BTreeMap<(&str, &str, u32), Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| paths.entry((&row.from, &row.to, row.path)).or_default().push(row));
    let (mut turns, mut left_out) = (BTreeMap::new(), LeftOut::default());
    let mut all = Vec::with_capacity(paths.len());
    for ((from, to, path), mut rows) in paths {
        rows.sort_by_key(|row| time(row));
        let newest = rows[rows.len() - 1];
        let (buckets, left) = buckets(&rows, oldest_ms);
        left_out.older = left_out.older.saturating_add(left.older);
        left_out.beyond = left_out.beyond.saturating_add(left.beyond);
        let turn: &mut usize = turns.entry(from).or_default();
        let round_trips = buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.count));
        let (from_host, to_host, measured_at_ms) = (from.to_owned(), to.to_owned(), newest.measured_at_ms);
        let histogram = v1::LatencyHistogram { from_host, to_host, path, buckets, measured_at_ms, instance: 0 };
        all.push(Item { at: newest.at.clone(), turn: *turn, round_trips, histogram });
        *turn += 1;
    }
    all.sort_by_key(|item| item.turn);
    (all, left_out)
}

/// When it was measured; what is measured now is the newest.
const fn time(row: &Row) -> u64 {
    if row.measured_at_ms == 0 { u64::MAX } else { row.measured_at_ms }
}

/// Counts by length of a path's rows, which ascend in time; those of the newest row alone where all are too old, for the
/// daemon to judge.
fn buckets(rows: &[&Row], oldest_ms: u64) -> (Vec<v1::LatencyBucket>, LeftOut) {
    let mut found: Vec<v1::LatencyBucket> = Vec::new();
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut left_out = LeftOut::default();
    for (nth, row) in rows.iter().rev().enumerate() {
        if nth > 0 && time(row) < oldest_ms {
            left_out.older = left_out.older.saturating_add(row.count);
        } else if let Some(&at) = places.get(&row.rtt_us) {
            found[at].count = found[at].count.saturating_add(row.count);
        } else if found.len() < BUCKETS {
            places.insert(row.rtt_us, found.len());
            found.push(v1::LatencyBucket { rtt_us: row.rtt_us, count: row.count });
        } else {
            left_out.beyond = left_out.beyond.saturating_add(row.count);
        }
    }
    found.reverse();
    (found, left_out)
}

#[cfg(test)]
mod tests {
    use super::super::rows::of_csv;
    use super::*;

    fn made(text: &str, oldest_ms: u64) -> (Vec<Item>, LeftOut) {
        items(&of_csv(text).unwrap(), oldest_ms)
    }

    fn lengths(item: &Item) -> Vec<(u64, u64)> {
        item.histogram.buckets.iter().map(|of| (of.rtt_us, of.count)).collect()
    }

    #[test]
    fn a_paths_lines_are_one_item_with_the_newest_of_its_lengths() {
        let text = "from,to,rtt_us,path,time,count\nb,a,9,0,1000,2\na,b,5,0,3000,1\na,b,7,1,1000,1\na,b,6,0,2000,4\n";
        let (found, left_out) = made(text, 0);
        let seen: Vec<_> =
            found.iter().map(|of| (of.at.as_str(), of.histogram.from_host.as_str(), of.histogram.path)).collect();
        assert_eq!(seen, [("line 3", "a", 0), ("line 2", "b", 0), ("line 4", "a", 1)], "hosts take turns");
        assert_eq!((lengths(&found[0]), found[0].histogram.measured_at_ms), (vec![(6, 4), (5, 1)], 3_000_000));
        assert_eq!((found[0].round_trips, left_out), (5, LeftOut::default()));
        let many = format!("from,to,rtt_us\n{}", (1..=300).map(|rtt| format!("a,b,{rtt}\n")).collect::<String>());
        let (found, left_out) = made(&many, 0);
        assert_eq!((found[0].histogram.buckets.len(), found[0].histogram.buckets[0].rtt_us), (BUCKETS, 45));
        assert_eq!((found[0].round_trips, left_out.beyond), (256, 44), "what is not sent is not counted as sent");
        let alike = format!("from,to,rtt_us\n{}", "a,b,7\n".repeat(300));
        let (found, left_out) = made(&alike, 0);
        assert_eq!((lengths(&found[0]), left_out), (vec![(7, 300)], LeftOut::default()), "one length is one bucket");
    }

    #[test]
    fn old_round_trips_do_not_pass_for_the_newest_ones_of_their_path() {
        let old = "a,b,265,10000,1\n".repeat(300);
        let text = format!("from,to,rtt_us,time,count\n{old}a,b,777,96400,1\nc,b,5,10000,2\nc,b,6,10001,3\n");
        let (found, left_out) = made(&text, 96_340_000);
        assert_eq!((lengths(&found[0]), found[0].histogram.measured_at_ms), (vec![(777, 1)], 96_400_000));
        let all_old = (lengths(&found[1]), found[1].histogram.measured_at_ms, found[1].at.as_str());
        assert_eq!(all_old, (vec![(6, 3)], 10_001_000, "line 304"), "the daemon refuses it, by its time");
        assert_eq!(left_out, LeftOut { older: 302, ..LeftOut::default() });
        let (found, _) = made("from,to,rtt_us\na,b,5\na,b,6\n", u64::MAX);
        assert_eq!(lengths(&found[0]), [(5, 1), (6, 1)], "without a time it is measured now");
    }

    #[test]
    fn a_full_mesh_waits_no_longer_than_one_of_its_hosts_would() {
        let pairs = (0..240).flat_map(|from| (0..240).map(move |to| (from, to))).filter(|(from, to)| from != to);
        let rows = pairs.map(|(from, to)| format!("n{from},n{to},50\n")).collect::<String>();
        let (found, _) = made(&format!("from,to,rtt_us\n{rows}"), 0);
        let parts: Vec<_> = found.chunk_by(|a, b| a.turn / AT_ONCE == b.turn / AT_ONCE).collect();
        let sizes: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [24_000, 24_000, 9_360]);
        for part in parts {
            let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
            part.iter().for_each(|item| *of_host.entry(&item.histogram.from_host).or_default() += 1);
            assert!(of_host.values().all(|items| *items <= AT_ONCE), "{of_host:?}");
        }
    }
}
