//! `container`: togetherness, data locality and balance of one application's containers by simulated
//! annealing (Renner, Thamsen, Kao: *Network-Aware Resource Management for Scalable Data Analytics
//! Frameworks*, §IV).
//!
//! Cost = w_t·T + w_l·L + w_b·B, each in [0, 1] (`cost`). A neighbour moves one container or swaps two
//! (`search_state`). Large clusters are cut to the nodes worth searching first (`shortlist`); a single container is
//! placed by pricing every candidate (`single`), a few on few nodes by pricing every placement (`exhaustive`).

mod compiled;
pub mod cost;
mod cover;
mod exhaustive;
mod search_state;
mod shortlist;
mod single;
mod start;
#[cfg(test)]
mod tests;
pub mod weights;

pub use cost::{BLOCKS_OVER_REPLICAS, Cost, cost};
pub use weights::{CalibrateInput, Calibrated, Weights, calibrate};

use super::params::{Invalid, Params};
use super::{Budget, Capabilities, Definition, Ended, Objective, Place, PlaceError, PlaceProblem, Placement, Share};
use compiled::ContainerProblem;
use cost::Norms;
use hintd_model::solve::anneal::{Schedule, anneal};
use hintd_model::units::Bytes;
use search_state::SearchState;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Its name.
pub const NAME: &str = "container";

/// Nodes searched for each container of a large request: fewer lose racks that lie well together.
const NODES_PER_CONTAINER: usize = 8;

/// How weights are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum WeightChoice {
    /// Derived for each request from the cluster and the request's bytes: `weights = "calibrated"`.
    #[default]
    Calibrated,
    /// As given: `weights = { togetherness = 0.45, locality = 0.45, balance = 0.1 }`.
    Explicit(Weights),
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContainerParams {
    /// `"calibrated"`, or all three.
    pub weights: WeightChoice,
    /// Proposals a round, for each container.
    pub steps_per_container: u64,
    /// Proposals a round at most, however many containers there are.
    pub steps_max: u64,
    /// Most rounds; a search ends earlier once a round gains nothing.
    pub rounds: u32,
    /// First temperature, times the number of containers: moving one of n changes the cost, which is within
    /// [0, 1], by about 1/n.
    pub start_temperature: f64,
    /// Last temperature, times the number of containers.
    pub end_temperature: f64,
    /// Nodes searched at most, or eight for each container if that is more; clusters with no more candidates
    /// than this are searched whole.
    pub shortlist: usize,
}

impl Default for ContainerParams {
    fn default() -> Self {
        Self {
            weights: WeightChoice::Calibrated,
            // `POLICY_QUALITY=1 cargo bench --bench placement`: ten times the steps gain under 0.2 %.
            steps_per_container: 100,
            steps_max: 20_000,
            rounds: 4,
            start_temperature: 0.3,
            end_temperature: 0.003,
            shortlist: 256,
        }
    }
}

impl Params for ContainerParams {
    fn validate(&self) -> Result<(), Invalid> {
        if let WeightChoice::Explicit(weights) = &self.weights {
            weights.validate()?;
        }
        let (start, end) = (self.start_temperature, self.end_temperature);
        if !(start.is_finite() && start > 0.0) {
            return Err(Invalid { key: "start_temperature", message: format!("{start} is not above 0") });
        }
        if !(end > 0.0 && end <= start) {
            let message = format!("{end} is not above 0 and at most start_temperature = {start}");
            return Err(Invalid { key: "end_temperature", message });
        }
        let counts = [
            ("steps_per_container", self.steps_per_container),
            ("steps_max", self.steps_max),
            ("rounds", u64::from(self.rounds)),
            ("shortlist", self.shortlist as u64),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(Invalid { key, message: "0 is not a number to search with".to_owned() }),
            None => Ok(()),
        }
    }
}

const CALIBRATED: &str = "calibrated";

impl Serialize for WeightChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Calibrated => serializer.serialize_str(CALIBRATED),
            Self::Explicit(weights) => weights.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WeightChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = WeightChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"calibrated\" or { togetherness = …, locality = …, balance = … }")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<WeightChoice, E> {
                if word == CALIBRATED {
                    return Ok(WeightChoice::Calibrated);
                }
                Err(E::invalid_value(Unexpected::Str(word), &self))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<WeightChoice, M::Error> {
                Weights::deserialize(MapAccessDeserializer::new(map)).map(WeightChoice::Explicit)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Container {
    params: ContainerParams,
}

impl Definition for Container {
    type Params = ContainerParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "puts the containers of an application close together, near their input, without loading some nodes much more than others";

    fn new(params: ContainerParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &ContainerParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), ..Capabilities::default() }
    }
}

impl Container {
    /// The weights in force for a problem.
    #[must_use]
    pub fn weights(&self, problem: &PlaceProblem<'_>) -> Weights {
        match self.params.weights {
            WeightChoice::Explicit(weights) => weights,
            WeightChoice::Calibrated => weights::calibrated(problem.snapshot, &calibrate_input(problem)),
        }
    }

    fn search(&self, problem: &PlaceProblem<'_>, norms: Norms, budget: &mut Budget<'_>) -> (Vec<Vec<Share>>, Ended) {
        let limit = self.params.shortlist.max(NODES_PER_CONTAINER * problem.containers() as usize);
        let (nodes, whole) = shortlist::shortlist(problem, limit);
        let compiled = ContainerProblem::compile(problem, &nodes, norms.diameter);
        let mut search_state = SearchState::new(&compiled, norms);
        if whole
            && exhaustive::few(&search_state)
            && exhaustive::best(&mut search_state, &mut || budget.step()).is_some()
        {
            return (search_state.shares(), Ended::Optimal);
        }
        start::best_start(&mut search_state);
        self.anneal(&mut search_state, problem.seed, budget);
        (search_state.shares(), if budget.stopped() { Ended::Deadline } else { Ended::Budget })
    }

    fn anneal(&self, search_state: &mut SearchState<'_>, seed: u64, budget: &mut Budget<'_>) {
        if search_state.compiled.slots.is_empty() {
            return;
        }
        let containers = search_state.at.len();
        let wished = self.params.steps_per_container.saturating_mul(containers as u64);
        // Cooling that ends early leaves a state as hot as it was then: what is granted has to do for all of it, and
        // for the descent after it.
        let steps = wished.min(budget.left() / 3 * 2);
        let schedule = Schedule {
            start: self.params.start_temperature / containers as f64,
            end: self.params.end_temperature / containers as f64,
            steps: steps.min(self.params.steps_max),
            rounds: self.params.rounds,
            seed,
        };
        anneal(search_state, &schedule, &mut || budget.step());
    }
}

impl Place for Container {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let weights = self.weights(problem);
        let norms = Norms::of(problem, &weights);
        let only = problem.groups.iter().position(|group| group.count == 1).filter(|_| problem.containers() == 1);
        let (groups, ended) = match only {
            Some(group) => {
                let node = single::best_node(problem, group, &norms);
                let mut groups = vec![Vec::new(); problem.groups.len()];
                groups[group].extend(node.map(|node| Share { node, count: 1 }));
                (groups, Ended::Optimal)
            }
            None => self.search(problem, norms, budget),
        };
        let gap = (ended == Ended::Optimal).then_some(0.0);
        let steps = budget.used();
        let mut placement =
            Placement { groups, routes: Vec::new(), objective: 0.0, parts: Vec::new(), ended, gap, steps };
        let objective = cost(problem, &placement, &weights).objective();
        (placement.objective, placement.parts) = (objective.value, objective.parts);
        Ok(placement)
    }

    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        Some(cost(problem, placement, &self.weights(problem)).objective())
    }
}

/// What a request is known to move.
#[must_use]
pub fn calibrate_input(problem: &PlaceProblem<'_>) -> CalibrateInput {
    let input = problem.groups.iter().map(|group| group.input.bytes).fold(Bytes::ZERO, Bytes::saturating_add);
    let exchanged = problem.edges.iter().map(|edge| edge.bytes).fold(Bytes::ZERO, Bytes::saturating_add);
    CalibrateInput {
        input_bytes: Some(input).filter(|bytes| bytes.0 > 0),
        exchanged_bytes: Some(exchanged).filter(|_| !problem.edges.is_empty()),
        containers: problem.containers(),
    }
}
