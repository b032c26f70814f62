//! `hintctl latency import`: round trips of a file, told to the daemon as an agent would.

use super::rows::{Labels, Row, of_csv, of_prometheus};
use crate::connect::{DaemonArgs, block_on};
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use clap::{Args, ValueEnum};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Bad lines that are named, and refusals.
const NAMED: usize = 20;

/// Items of one host between two pauses of a second: below what hintd takes of one by default (latency.items_per_s).
const AT_ONCE: usize = 100;

/// Lengths that one item tells of, at most.
const BUCKETS: usize = 256;

/// Which round trips.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl latency import pingmesh.csv\n  \
    curl -s http://prometheus:9090/api/v1/query --data-urlencode 'query=ping_rtt_mean_seconds' |\n    \
    hintctl latency import --prometheus --from-label instance --to-label target /dev/stdin\n\n\
    A CSV file has a header: from (or source, src), to (or destination, dst, target), rtt_us, rtt_ms or rtt_s; and where they are\n\
    there count, path (0 to 3) and time (seconds since 1970; else now). With --prometheus it is an answer of /api/v1/query or\n\
    query_range: hosts are labels, without a port behind them, values are seconds unless --unit says otherwise. Hosts are named as\n\
    YARN, or an alias, names them. What is older than model.max_age.latency is refused.\n\n\
    Exit code 2 if a line is no measurement: each is named, and nothing is told. Exit code 1 if the daemon refuses some.")]
pub struct ImportArgs {
    /// The file; /dev/stdin: standard input
    file: PathBuf,
    /// The file is an answer of Prometheus
    #[arg(long)]
    prometheus: bool,
    /// Prometheus's label with the host that measured
    #[arg(long, value_name = "LABEL", default_value = "instance", requires = "prometheus")]
    from_label: String,
    /// Prometheus's label with the host that was measured
    #[arg(long, value_name = "LABEL", default_value = "target", requires = "prometheus")]
    to_label: String,
    /// What Prometheus's values are
    #[arg(long, value_enum, default_value_t = Unit::S, requires = "prometheus")]
    unit: Unit,
}

/// Units of Prometheus's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

#[derive(Serialize)]
struct Imported {
    round_trips: u64,
    paths: usize,
    refused: usize,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with the lines that are no measurements; [`Failure::Work`] where no daemon answers, or it refuses some.
pub(super) fn run(args: &ImportArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let text = files::read_text(&args.file)?;
    let unit_us = match args.unit {
        Unit::S => 1e6,
        Unit::Ms => 1e3,
        Unit::Us => 1.0,
    };
    let labels = Labels { from: &args.from_label, to: &args.to_label, unit_us };
    let rows = if args.prometheus { of_prometheus(&text, &labels) } else { of_csv(&text) };
    let rows = rows.map_err(|wrong| files::problems(&args.file, &first(wrong, "further lines are no measurements")))?;
    let items = items(&rows);
    let round_trips = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
    let refused = block_on(tell(daemon, &items))?;
    let imported = Imported { round_trips, paths: items.len(), refused: refused.len() };
    output.sorted(&imported, || {
        format!("{round_trips} round trips over {} paths told, {} refused", imported.paths, imported.refused)
    })?;
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::work(first(refused, "further paths are refused").join("\n")))
}

/// The first few, and how many more.
fn first(mut all: Vec<String>, more_are: &str) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    all.extend((more > 0).then(|| format!("{more} {more_are}")));
    all
}

/// An item for each path, of its newest [`BUCKETS`] lengths; and where its first one stood.
fn items(rows: &[Row]) -> Vec<(String, v1::LatencyHistogram)> {
    let mut paths: BTreeMap<(&str, &str, u32), Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| paths.entry((&row.from, &row.to, row.path)).or_default().push(row));
    let item = |((from, to, path), mut rows): ((&str, &str, u32), Vec<&Row>)| {
        let at = rows[0].at.clone();
        rows.sort_by_key(|row| row.measured_at_ms);
        let newest = &rows[rows.len().saturating_sub(BUCKETS)..];
        let buckets = newest.iter().map(|row| v1::LatencyBucket { rtt_us: row.rtt_us, count: row.count }).collect();
        let measured_at_ms = newest.last().map_or(0, |row| row.measured_at_ms);
        let (from_host, to_host) = (from.to_owned(), to.to_owned());
        (at, v1::LatencyHistogram { from_host, to_host, path, buckets, measured_at_ms, instance: 0 })
    };
    paths.into_iter().map(item).collect()
}

/// Tells them; what was refused, with where it stood.
async fn tell(daemon: &DaemonArgs, items: &[(String, v1::LatencyHistogram)]) -> Result<Vec<String>, Failure> {
    let hello = v1::FeedHello { source: "hintctl latency import".to_owned(), ..v1::FeedHello::default() };
    let mut feed: FeedSender<v1::LatencyItem> = daemon.client().await?.feed(hello).await?;
    let (mut at, mut refused) = (BTreeMap::new(), Vec::new());
    let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, histogram) in items {
        let told = of_host.entry(&histogram.from_host).or_default();
        *told += 1;
        let pauses = *told > AT_ONCE;
        let item = Some(v1::latency_item::Item::Histogram(histogram.clone()));
        if pauses {
            of_host.clear();
            of_host.insert(&histogram.from_host, 1);
            hear(&mut feed, &at, &mut refused).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let number = feed.send(v1::LatencyItem { number: 0, item }).await?;
        at.insert(number, place.as_str());
    }
    hear(&mut feed, &at, &mut refused).await?;
    Ok(refused)
}

/// Waits for what was told to be looked at.
async fn hear(
    feed: &mut FeedSender<v1::LatencyItem>,
    at: &BTreeMap<u64, &str>,
    refused: &mut Vec<String>,
) -> Result<(), Failure> {
    let ack = feed.await_acknowledged().await?;
    let place = |number| at.get(&number).copied().unwrap_or("an item");
    refused.extend(ack.refused.iter().map(|of| format!("{}: {} ({})", place(of.number), of.message, of.reason)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paths_lines_are_one_item_with_the_newest_of_its_lengths() {
        let rows =
            of_csv("from,to,rtt_us,path,time,count\nb,a,9,0,1000,2\na,b,5,0,3000,1\na,b,7,1,1000,1\na,b,6,0,2000,4\n")
                .unwrap();
        let found = items(&rows);
        let seen: Vec<_> = found.iter().map(|(at, of)| (at.as_str(), of.from_host.as_str(), of.path)).collect();
        assert_eq!(seen, [("line 3", "a", 0), ("line 4", "a", 1), ("line 2", "b", 0)]);
        let buckets: Vec<_> = found[0].1.buckets.iter().map(|of| (of.rtt_us, of.count)).collect();
        assert_eq!((buckets, found[0].1.measured_at_ms), (vec![(6, 4), (5, 1)], 3_000_000));
        let many = format!("from,to,rtt_us\n{}", (1..=300).map(|rtt| format!("a,b,{rtt}\n")).collect::<String>());
        let found = items(&of_csv(&many).unwrap());
        assert_eq!((found[0].1.buckets.len(), found[0].1.buckets[0].rtt_us), (BUCKETS, 45));
    }
}
