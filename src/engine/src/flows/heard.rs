//! Flows of answers that reached nobody: YARN never saw their hints, so nothing goes where they say. What was placed is kept,
//! and sends again as soon as a repeat of the request has fetched the answer.

use super::Flows;
use super::job::{Job, RoutesHad};
use super::registry::Wanted;
use super::settings::RouteSettings;
use crate::routes::Cause;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{BitsPerSec, DecisionId};
use hintd_policy::ChosenRoute;

impl Flows {
    /// Whether somebody has a decision's answer. Where nobody has, what its tasks send ends; where somebody has again, it
    /// begins again, on the routes that it had if these can be taken.
    pub(crate) fn reached(&mut self, decision: DecisionId, reached: bool, at: (&Snapshot, &RouteSettings)) {
        let Some(&host) = self.job_of.get(&decision) else { return };
        let Some(job) = self.jobs.get(&host) else { return };
        if job.unheard.contains_key(&decision) != reached {
            return; // it is so already
        }
        let had = if reached { RoutesHad::default() } else { self.routes_had(job) };
        let Some(job) = self.jobs.get_mut(&host) else { return };
        let wanted = match reached {
            true => job.unheard.remove(&decision).unwrap_or_default(),
            false => job.unheard.insert(decision, had).unwrap_or_default(),
        };
        let sends = job.reckon();
        let cause = Cause::new(if reached { "placed" } else { "ended" }, decision.to_string());
        self.sends(host, sends, Wanted { chosen: &wanted.chosen, ways: &wanted.ways }, &cause, at);
        self.enforce_limit(host, at);
    }

    /// The network is another one, or chains are declared anew: links and boxes of before mean nothing now.
    pub(super) fn forget_routes_had(&mut self) {
        for had in self.jobs.values_mut().flat_map(|job| job.unheard.values_mut()) {
            *had = RoutesHad::default();
        }
    }

    /// Routes of what a job sends now.
    fn routes_had(&self, job: &Job) -> RoutesHad {
        let chosen = job.traffic.flows.iter().filter_map(|flow| {
            let links = self.pairs.all.get(&flow.pair)?.route.clone();
            let (chain, stops, rate) = (None, Default::default(), BitsPerSec(0));
            (!links.is_empty()).then_some(ChosenRoute { pair: flow.pair, links, chain, stops, rate })
        });
        let ways = job.chained.keys().filter_map(|key| Some((key.clone(), self.chained.way(key)?.clone())));
        RoutesHad { chosen: chosen.collect(), ways: ways.collect() }
    }
}
