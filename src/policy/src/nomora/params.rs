//! Parameters of `nomora`.

use super::curve::{BUILT_IN, Curve, LEAST_COST, MOST_COST};
use super::round::CostModel;
use crate::params::{Invalid, Params};
use hintd_model::network::latency::DistanceClasses;
use hintd_model::text::is_hidden;
use hintd_model::units::Micros;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The longest latency that stands in for a distance, µs.
const LONGEST_US: u64 = 1_000_000;

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NomoraParams {
    /// Machines of this cost or less are preferred one by one (100 ÷ performance); at 1000 all of them, each at its own cost.
    pub p_m: u32,
    /// Racks whose worst machine is of this cost or less are preferred.
    pub p_r: u32,
    /// What each second of waiting adds to the cost of waiting on.
    pub omega: f64,
    /// The cost of waiting on; above that of any machine.
    pub gamma: u32,
    /// What each second that a task has run takes off the cost of where it is, in rounds that may move tasks (the paper's).
    pub beta: f64,
    /// What runs at a lower predicted performance than this is proposed to move, where moves are looked for (`[rebalance]`).
    pub migrate_below: f64,
    /// It is proposed to go only where it is predicted to perform better than `migrate_below` by at least this.
    pub migrate_margin: f64,
    /// What each second that a container has been seen to run takes off what it gains by a move, in cost. Rounds of the paper
    /// come every few seconds; here a container has run for `rebalance.every` when a move can be told at the earliest.
    pub migrate_beta: f64,
    /// Places drawn for a root that a request brings, of which the one with the best room around it is taken; 1: the first, as
    /// the paper.
    pub root_choices: u32,
    /// Two-way latency that is reckoned with where nobody measured, µs: on one host.
    pub same_host_us: u64,
    /// In one rack.
    pub same_rack_us: u64,
    /// Between racks.
    pub beyond_us: u64,
    /// The curve of applications whose queue names none.
    pub curve: String,
    /// Curves by queue.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, String>,
    /// Own curves: by name, pairs of two-way latency in µs and share of the best performance.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Vec<Vec<f64>>>,
}

impl Default for NomoraParams {
    /// p_m and p_r are not the paper's 105 and 110: a request has one root, so that each machine can have its own cost. Of the
    /// curves the one that falls most: where only one application asks, all curves order machines alike.
    fn default() -> Self {
        let DistanceClasses { same_host, same_rack, beyond } = DistanceClasses::default();
        Self {
            p_m: MOST_COST,
            p_r: MOST_COST,
            omega: 1.0,
            gamma: MOST_COST + 1,
            beta: 1.0,
            migrate_below: 0.7,
            migrate_margin: 0.1,
            migrate_beta: 0.01,
            root_choices: 8,
            same_host_us: same_host.0,
            same_rack_us: same_rack.0,
            beyond_us: beyond.0,
            curve: "memcached".to_owned(),
            queues: BTreeMap::new(),
            curves: BTreeMap::new(),
        }
    }
}

impl NomoraParams {
    /// The cost model.
    #[must_use]
    pub const fn model(&self) -> CostModel {
        CostModel { p_m: self.p_m, p_r: self.p_r, omega: self.omega, gamma: self.gamma, beta: self.beta }
    }

    pub(super) const fn classes(&self) -> DistanceClasses {
        DistanceClasses {
            same_host: Micros(self.same_host_us),
            same_rack: Micros(self.same_rack_us),
            beyond: Micros(self.beyond_us),
        }
    }

    /// The curve of a name, own or built in.
    #[must_use]
    pub fn curve_named(&self, name: &str) -> Option<Curve> {
        let own = self.curves.get(name).and_then(|points| through(points).ok());
        own.or_else(|| Curve::built_in(name))
    }

    /// Names of the curves that queues go by, each once.
    pub(super) fn curves_in_use(&self) -> BTreeSet<&str> {
        self.queues.values().chain([&self.curve]).map(String::as_str).collect()
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = BUILT_IN.into_iter().chain(self.curves.keys().map(String::as_str)).collect();
        format!("there is no curve \"{name}\" (there are {})", known.join(", "))
    }
}

fn through(points: &[Vec<f64>]) -> Result<Curve, String> {
    let pair = |(at, point): (usize, &Vec<f64>)| match point[..] {
        [latency_us, performance] => Ok((latency_us, performance)),
        _ => Err(format!("point {at}: {point:?} is not a latency in µs and a performance")),
    };
    let points: Vec<(f64, f64)> = points.iter().enumerate().map(pair).collect::<Result<_, _>>()?;
    Curve::through(&points).map_err(|error| error.to_string())
}

impl Params for NomoraParams {
    fn validate(&self) -> Result<(), Invalid> {
        let invalid = |key, message| Err(Invalid { key, message });
        for (key, cost) in [("p_m", self.p_m), ("p_r", self.p_r)] {
            if !(LEAST_COST..=MOST_COST).contains(&cost) {
                return invalid(key, format!("{cost} is not within {LEAST_COST} and {MOST_COST}"));
            }
        }
        for (key, factor) in [("omega", self.omega), ("beta", self.beta), ("migrate_beta", self.migrate_beta)] {
            if !(0.0..=1e6).contains(&factor) {
                return invalid(key, format!("{factor} is not within 0 and 1000000"));
            }
        }
        for (key, share) in [("migrate_below", self.migrate_below), ("migrate_margin", self.migrate_margin)] {
            if !(0.0..=1.0).contains(&share) {
                return invalid(key, format!("{share} is not within 0 and 1"));
            }
        }
        let enough = self.migrate_below + self.migrate_margin;
        if enough > 1.0 {
            let message =
                format!("with migrate_below {} that is {enough}: no place is better than 1", self.migrate_below);
            return invalid("migrate_margin", message);
        }
        if self.gamma <= MOST_COST || self.gamma > 1_000_000 {
            return invalid("gamma", format!("{} is not above {MOST_COST} and at most 1000000", self.gamma));
        }
        if !(1..=64).contains(&self.root_choices) {
            return invalid("root_choices", format!("{} is not within 1 and 64", self.root_choices));
        }
        let classes =
            [("same_host_us", self.same_host_us), ("same_rack_us", self.same_rack_us), ("beyond_us", self.beyond_us)];
        if let Some((key, us)) = classes.into_iter().find(|(_, us)| !(1..=LONGEST_US).contains(us)) {
            return invalid(key, format!("{us} µs is not within 1 and {LONGEST_US}"));
        }
        for (name, points) in &self.curves {
            if BUILT_IN.contains(&name.as_str()) {
                return invalid("curves", format!("\"{name}\" is built in: an own curve needs another name"));
            }
            if name.trim().is_empty() || name.chars().any(is_hidden) {
                return invalid(
                    "curves",
                    format!("{name:?} is no name for a curve: empty, or with control characters"),
                );
            }
            if let Err(error) = through(points) {
                return invalid("curves", format!("\"{name}\": {error}"));
            }
        }
        if self.curve_named(&self.curve).is_none() {
            return invalid("curve", self.unknown(&self.curve));
        }
        match self.queues.iter().find(|(_, curve)| self.curve_named(curve).is_none()) {
            Some((queue, curve)) => invalid("queues", format!("\"{queue}\": {}", self.unknown(curve))),
            None => Ok(()),
        }
    }
}
