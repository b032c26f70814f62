//! Whether hints were followed and what came of it.

use super::{by_term, mode};
use crate::wire::v1;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Figures of one policy, queue and mode.
#[derive(Serialize)]
struct Adherence<'a> {
    policy: &'a str,
    queue: &'a str,
    mode: &'static str,
    decisions: u64,
    compared: u64,
    on_host: u64,
    in_rack: u64,
    elsewhere: u64,
    never: u64,
    misses: &'a BTreeMap<String, u64>,
    #[serde(serialize_with = "by_term")]
    terms: &'a [v1::TermAdherence],
    locality: Option<Locality>,
    objective_gain: Option<f64>,
    objective_gains: u64,
    not_followed: u64,
    groups: &'a [v1::GroupAdherence],
}

/// Share of input that is read from the own host, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Locality {
    /// As hinted.
    pub hinted: f64,
    /// In fact.
    pub realised: f64,
}

/// How much input was to be read from the own host and was; `None`: no decision was compared in it.
#[must_use]
pub fn locality(view: &v1::AdherenceView) -> Option<Locality> {
    let remote = view.terms.iter().find(|term| term.term == "remote_bytes")?;
    let local = |remote: f64| 1.0 - remote / view.input_bytes;
    (view.input_bytes > 0.0).then(|| Locality { hinted: local(remote.hinted), realised: local(remote.realised) })
}

impl Serialize for v1::AdherenceView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = Adherence {
            policy: &self.policy,
            queue: &self.queue,
            mode: mode(self.mode()),
            decisions: self.decisions,
            compared: self.compared,
            on_host: self.on_host,
            in_rack: self.in_rack,
            elsewhere: self.elsewhere,
            never: self.never,
            misses: &self.misses,
            terms: &self.terms,
            locality: locality(self),
            objective_gain: self.objective_gain,
            objective_gains: self.objective_gains,
            not_followed: self.not_followed,
            groups: &self.groups,
        };
        view.serialize(serializer)
    }
}
