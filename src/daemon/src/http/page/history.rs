//! One hour of rates and loads, in a ring of fixed length.

use crate::server::page::GAIN_TERMS;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Time between two points.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// Points kept: an hour.
const POINTS: usize = 360;
/// Points of the window that gains are taken over: ten minutes, for decisions settle in bursts.
const GAIN_POINTS: usize = 60;
/// Points of the two windows that the busiest links are told of: five minutes and fifteen.
const BUSY_POINTS: [usize; 2] = [30, 90];
/// From here on a link is as good as full, thousandths.
const FULL: u16 = 900;
/// Directions of links that are told as the busiest.
const BUSIEST: usize = 10;
/// Links whose load is kept, in both directions: 4 bytes a point and link, 3 MB with all.
const LINKS: usize = 2_048;

/// Counters that rates are made of, as `hintctl top` shows them.
pub(super) const RATES: [(&str, &str); 4] = [
    ("answered", "requests_answered"),
    ("refused", "requests_refused"),
    ("hinted", "hints_issued"),
    ("withheld", "hints_withheld"),
];

/// What was seen at one moment.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) at_ms: u64,
    /// By the order of [`RATES`], since the start.
    pub(super) counters: [u64; 4],
    pub(super) leases: u64,
    /// CPU seconds since the start.
    pub(super) cpu_s: f64,
    /// Bytes of compared decisions since the start, by the order of [`GAIN_TERMS`]: by default, as hinted, as they came to be.
    pub(super) gains: [[f64; 3]; 2],
    /// Shares of links' capacity both ways, by name; NaN: it was down.
    pub(super) links: Vec<(Arc<str>, [f32; 2])>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct History {
    points: VecDeque<Row>,
    last: Option<Point>,
    /// Points so far, those that went included.
    taken: u64,
    /// Links in the order of their loads.
    links: Vec<Link>,
}

/// A place among the loads of a point.
#[derive(Debug)]
struct Link {
    name: Arc<str>,
    /// The number of the last point that has it: once that one went, the place is another's.
    seen: u64,
}

#[derive(Debug)]
struct Row {
    at_ms: u64,
    /// A second.
    rates: [f32; 4],
    leases: u64,
    cpu_cores: f32,
    gains: [[f64; 3]; 2],
    /// Thousandths of the capacity, both ways, by the order of links, or [`DOWN`]; missing ones were not there.
    loads: Box<[[u16; 2]]>,
}

/// As JSON: columns by name, as uPlot takes them.
#[derive(Debug, Serialize)]
pub(super) struct HistoryDocument {
    every_ms: u64,
    at_ms: Vec<u64>,
    rates: BTreeMap<&'static str, Vec<f32>>,
    leases: Vec<u64>,
    cpu_cores: Vec<f32>,
    /// By cost term; no two are mixed.
    gains: BTreeMap<&'static str, Gains>,
    /// Of one link, thousandths of the capacity: from a to b, and back; null: it was not there, or it was down.
    link: Option<[Vec<Option<u16>>; 2]>,
    /// Of that link: at which points it was down.
    down: Vec<bool>,
    /// Directions of links by their mean load of the last five minutes, the busiest first.
    busiest: Vec<Busy>,
}

/// How loaded a link was one way over five minutes and over fifteen.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Busy {
    link: Arc<str>,
    /// 0: from a to b; 1: back.
    way: usize,
    /// Mean shares of the capacity, of the points that have a load; null: none has.
    mean: [Option<f64>; 2],
    /// Shares of these points with a load of 90 % or more.
    full: [Option<f64>; 2],
}

/// Shares of the bytes that would have been sent without hints, saved by hints as given and as they came to be, over the ten
/// minutes before each point; null: no decision was compared in these.
#[derive(Debug, Serialize)]
pub(super) struct Gains {
    expected: Vec<Option<f64>>,
    realised: Vec<Option<f64>>,
}

/// The load of a link that was down.
const DOWN: u16 = u16::MAX - 1;

/// A share in thousandths; `u16::MAX` stays free for what is not there, and [`DOWN`] for what is down.
fn thousandths(share: f32) -> u16 {
    if share.is_nan() { DOWN } else { (share.max(0.0) * 1_000.0).round().min(f32::from(DOWN - 1)) as u16 }
}

impl History {
    /// Takes in a point; rates are those since the one before.
    pub(super) fn add(&mut self, point: Point) {
        let before = self.last.replace(point.clone());
        let Some(before) = before else { return };
        let seconds = point.at_ms.saturating_sub(before.at_ms) as f32 / 1e3;
        if seconds <= 0.0 {
            return;
        }
        let rate = |at: usize| point.counters[at].saturating_sub(before.counters[at]) as f32 / seconds;
        let row = Row {
            at_ms: point.at_ms,
            rates: std::array::from_fn(rate),
            leases: point.leases,
            gains: point.gains,
            cpu_cores: ((point.cpu_s - before.cpu_s).max(0.0) as f32) / seconds,
            loads: self.loads(&point.links),
        };
        self.taken += 1;
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(row);
    }

    /// Loads in the order of links; names that are new get places as long as there are some.
    fn loads(&mut self, links: &[(Arc<str>, [f32; 2])]) -> Box<[[u16; 2]]> {
        let number = self.taken;
        let known: BTreeMap<&str, usize> = self.links.iter().enumerate().map(|(at, link)| (&*link.name, at)).collect();
        let places: Vec<Option<usize>> = links.iter().map(|(name, _)| known.get(&**name).copied()).collect();
        places.iter().flatten().for_each(|&at| self.links[at].seen = number);
        // No point that is kept has a load there: this one is the last of an hour.
        let gone = |link: &Link| link.seen + POINTS as u64 <= number;
        let mut free: Vec<usize> = (0..self.links.len()).rev().filter(|&at| gone(&self.links[at])).collect();
        let mut loads = vec![[u16::MAX; 2]; self.links.len()];
        for ((name, shares), place) in links.iter().zip(places) {
            let link = || Link { name: Arc::clone(name), seen: number };
            let at = match place.or_else(|| free.pop()) {
                Some(at) => at,
                None if self.links.len() < LINKS => self.links.len(),
                None => continue,
            };
            match self.links.get_mut(at) {
                Some(known) => *known = link(),
                None => {
                    self.links.push(link());
                    loads.push([u16::MAX; 2]);
                }
            }
            loads[at] = shares.map(thousandths);
        }
        loads.into()
    }

    /// Rates, and the loads of one link where it is asked for and known.
    pub(super) fn document(&self, link: Option<&str>) -> HistoryDocument {
        let rate = |at: usize| self.points.iter().map(move |row| row.rates[at]).collect();
        let load = |link: usize, way: usize| {
            let of = |row: &Row| row.loads.get(link).map(|loads| loads[way]).filter(|load| *load < DOWN);
            self.points.iter().map(of).collect::<Vec<Option<u16>>>()
        };
        let link = link.and_then(|link| self.links.iter().position(|known| *known.name == *link));
        HistoryDocument {
            every_ms: u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX),
            at_ms: self.points.iter().map(|row| row.at_ms).collect(),
            rates: RATES.iter().enumerate().map(|(at, (name, _))| (*name, rate(at))).collect(),
            leases: self.points.iter().map(|row| row.leases).collect(),
            cpu_cores: self.points.iter().map(|row| row.cpu_cores).collect(),
            gains: (0..).zip(GAIN_TERMS).map(|(at, term)| (term.as_str(), self.gains(at))).collect(),
            link: link.map(|at| [load(at, 0), load(at, 1)]),
            busiest: self.busiest(),
            down: link.map_or_else(Vec::new, |at| {
                self.points.iter().map(|row| row.loads.get(at).is_some_and(|loads| loads[0] == DOWN)).collect()
            }),
        }
    }

    /// See [`HistoryDocument::busiest`]; those that carried nothing, or were not there, are left out.
    fn busiest(&self) -> Vec<Busy> {
        let of = |at: usize, way: usize, points: usize| {
            let loads =
                self.points.iter().rev().take(points).filter_map(|row| row.loads.get(at)).map(|loads| loads[way]);
            let loads: Vec<u16> = loads.filter(|load| *load < DOWN).collect();
            let share = |part: f64| (!loads.is_empty()).then(|| part / loads.len() as f64);
            let mean = share(loads.iter().map(|load| f64::from(*load) / 1e3).sum());
            (mean, share(loads.iter().filter(|load| **load >= FULL).count() as f64))
        };
        let ways = (0..self.links.len()).flat_map(|at| [(at, 0), (at, 1)]);
        let mut found: Vec<(f64, usize, usize)> = ways
            .filter_map(|(at, way)| Some((of(at, way, BUSY_POINTS[0]).0.filter(|mean| *mean > 0.0)?, at, way)))
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| self.links[a.1].name.cmp(&self.links[b.1].name)));
        let told = |(_, at, way): (f64, usize, usize)| {
            let windows = BUSY_POINTS.map(|points| of(at, way, points));
            Busy {
                link: Arc::clone(&self.links[at].name),
                way,
                mean: windows.map(|of| of.0),
                full: windows.map(|of| of.1),
            }
        };
        found.into_iter().take(BUSIEST).map(told).collect()
    }

    /// What was saved of a term in the window before each point.
    fn gains(&self, term: usize) -> Gains {
        let saved = |at: usize, which: usize| {
            // Since the first point of the window, or nothing where the ring begins within it and the daemon did, too.
            let before = at.checked_sub(GAIN_POINTS).map_or([0.0; 3], |at| self.points[at].gains[term]);
            let ended = self.taken as usize > self.points.len() && at < GAIN_POINTS;
            let (now, before) = (self.points[at].gains[term], if ended { self.points[0].gains[term] } else { before });
            let by_default = now[0] - before[0];
            (by_default > 0.0).then(|| 1.0 - (now[which] - before[which]) / by_default)
        };
        let all = |which: usize| (0..self.points.len()).map(|at| saved(at, which)).collect();
        Gains { expected: all(1), realised: all(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_s: u64, answered: u64, links: &[(&str, f32)]) -> Point {
        Point {
            at_ms: at_s * 1_000,
            counters: [answered, 0, 0, 0],
            leases: at_s,
            gains: [[0.0; 3]; 2],
            cpu_s: at_s as f64 / 4.0,
            links: links.iter().map(|(name, share)| (Arc::from(*name), [*share, 0.0])).collect(),
        }
    }

    #[test]
    fn rates_are_between_points_and_an_hour_is_kept() {
        let mut history = History::default();
        history.add(point(0, 5, &[]));
        assert!(history.document(None).at_ms.is_empty(), "one point has no rate");
        for at in 1..=(POINTS as u64 + 5) {
            history.add(point(10 * at, 5 + 20 * at, &[("l", 0.25)]));
        }
        let found = history.document(Some("l"));
        assert_eq!((found.at_ms.len(), found.at_ms[0]), (POINTS, 60_000), "the oldest went");
        assert_eq!((found.rates["answered"][7], found.cpu_cores[7], found.leases[0]), (2.0, 0.25, 60));
        assert_eq!(found.link.unwrap()[0][3], Some(250));
    }

    #[test]
    fn a_link_that_was_down_was_not_idle() {
        let mut history = History::default();
        for (at, share) in [(0, 0.0), (1, 0.25), (2, f32::NAN), (3, 0.0)] {
            history.add(point(10 * at, 0, &[("l", share)]));
        }
        let found = history.document(Some("l"));
        assert_eq!(found.link.unwrap()[0], [Some(250), None, Some(0)]);
        assert_eq!(found.down, [false, true, false]);
    }

    #[test]
    fn the_busiest_are_told_by_direction_over_five_minutes_and_fifteen() {
        let mut history = History::default();
        let add = |history: &mut History, at: u64, back: f32, idle: f32| {
            let links = vec![(Arc::from("hot"), [0.1, back]), (Arc::from("idle"), [0.0, idle])];
            history.add(Point { links, ..point(10 * at, 0, &[]) });
        };
        // Ten minutes of little, then five of which two of three points are full.
        (0..=60).for_each(|at| add(&mut history, at, 0.2, 0.0));
        (61..=90).for_each(|at| add(&mut history, at, if at % 3 == 0 { 0.4 } else { 1.0 }, 0.0));
        let found = history.document(None).busiest;
        let told: Vec<(&str, usize)> = found.iter().map(|busy| (&*busy.link, busy.way)).collect();
        assert_eq!(told, [("hot", 1), ("hot", 0)], "what carries nothing is not busy");
        let near = |of: Option<f64>, wanted: f64| of.is_some_and(|of| (of - wanted).abs() < 1e-9);
        assert!(near(found[0].mean[0], 0.8) && near(found[0].full[0], 2.0 / 3.0), "{found:?}");
        assert!(near(found[0].mean[1], 0.4) && near(found[0].full[1], 2.0 / 9.0), "{found:?}");
        // What was down has no load then.
        add(&mut history, 91, f32::NAN, f32::NAN);
        assert!(near(history.document(None).busiest[0].mean[0], (24.0 - 1.0) / 29.0));
    }

    #[test]
    fn gains_are_of_the_ten_minutes_before_a_point() {
        let mut history = History::default();
        // Remote bytes are half of those across racks throughout.
        let add = |history: &mut History, at: u64, gains: [f64; 3]| {
            history.add(Point { gains: [gains, gains.map(|of| of / 2.0)], ..point(10 * at, 0, &[]) });
        };
        add(&mut history, 0, [0.0; 3]);
        add(&mut history, 1, [0.0; 3]);
        add(&mut history, 2, [100.0, 40.0, 60.0]);
        for at in 3..=90 {
            add(&mut history, at, if at < 80 { [100.0, 40.0, 60.0] } else { [300.0, 240.0, 310.0] });
        }
        let found = history.document(None);
        let term = &found.gains["cross_rack_bytes"];
        let at = |at: usize| (term.expected[at], term.realised[at]);
        assert_eq!(at(0), (None, None), "nothing was compared yet");
        assert_eq!(at(1), (Some(0.6), Some(0.4)));
        assert_eq!(at(60), (Some(0.6), Some(0.4)), "ten minutes later it still counts");
        assert_eq!(at(62), (None, None), "and then no more");
        assert_eq!(at(85), (Some(0.0), Some(-0.25)), "what came later counts alone, also where YARN did worse");
        for at in 91..=(POINTS as u64 + 10) {
            add(&mut history, at, [300.0, 240.0, 310.0]);
        }
        let found = history.document(None);
        assert_eq!(found.gains["remote_bytes"].realised[0], None, "what went out of the ring is not counted again");
    }

    #[test]
    fn the_first_byte_across_racks_changes_nothing_of_what_remote_bytes_say() {
        let mut history = History::default();
        let mut add = |at: u64, cross: [f64; 3], remote: [f64; 3]| {
            history.add(Point { gains: [cross, remote], ..point(10 * at, 0, &[]) });
        };
        add(0, [0.0; 3], [0.0; 3]);
        (1..=70).for_each(|at| add(at, [0.0; 3], [100.0, 50.0, 50.0]));
        add(71, [10.0, 5.0, 20.0], [120.0, 60.0, 60.0]);
        let found = history.document(None);
        let last = |term: &str| (found.gains[term].expected[70], found.gains[term].realised[70]);
        assert_eq!(last("cross_rack_bytes"), (Some(0.5), Some(-1.0)));
        assert_eq!(last("remote_bytes"), (Some(0.5), Some(0.5)));
        assert_eq!(found.gains["cross_rack_bytes"].expected[69], None);
    }

    fn loads(names: &[String]) -> Vec<(&str, f32)> {
        names.iter().map(|name| (name.as_str(), 0.5)).collect()
    }

    #[test]
    fn links_that_are_gone_for_an_hour_leave_their_places_to_others() {
        let named = |prefix: &str| (0..LINKS).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
        let (old, new) = (named("old"), named("new"));
        let mut history = History::default();
        let add = |history: &mut History, at: usize, names: &[String]| {
            history.add(point(10 * at as u64, 0, &loads(names)));
        };
        let of = |history: &History, name: &str| history.document(Some(name)).link.map(|[from_a, _]| from_a);
        add(&mut history, 0, &[]);
        add(&mut history, 1, &old);
        (2..=POINTS + 1).for_each(|at| add(&mut history, at, &[]));
        assert!(of(&history, &old[7]).is_some_and(|loads| loads.iter().all(Option::is_none)));
        assert_eq!(of(&history, &new[7]), None);
        add(&mut history, POINTS + 2, &new);
        let new_is = of(&history, &new[7]).expect("it has a place");
        assert_eq!((of(&history, &old[7]), history.links.len()), (None, LINKS));
        assert_eq!((new_is.len(), new_is[POINTS - 1]), (POINTS, Some(500)));
        assert!(new_is[..POINTS - 1].iter().all(Option::is_none), "nothing of whose place it was");
    }

    #[test]
    fn a_link_that_comes_and_goes_is_not_there_meanwhile_and_links_are_bounded() {
        let mut history = History::default();
        history.add(point(0, 0, &[]));
        history.add(point(10, 0, &[("a", 0.5)]));
        history.add(point(20, 0, &[("b", 9_999.0)]));
        let many: Vec<String> = (0..3 * LINKS).map(|at| format!("l{at}")).collect();
        let links: Vec<(&str, f32)> = many.iter().map(|name| (name.as_str(), 1.0)).collect();
        history.add(point(30, 0, &links));
        let of = |link: &str| history.document(Some(link)).link.map(|[from_a, _]| from_a);
        assert_eq!(of("a"), Some(vec![Some(500), None, None]));
        assert_eq!(of("b"), Some(vec![None, Some(DOWN - 1), None]));
        assert_eq!((history.links.len(), of(&many[LINKS]), of("never")), (LINKS, None, None));
        assert!(history.document(None).link.is_none());
        // A daemon whose counters began anew.
        history.add(point(40, 0, &[]));
        assert_eq!(history.document(None).rates["answered"][3], 0.0);
    }
}
