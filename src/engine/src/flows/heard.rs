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
    /// begins again, on the routes that it had if these can be taken. Whether that is news.
    pub(crate) fn reached(&mut self, decision: DecisionId, reached: bool, at: (&Snapshot, &RouteSettings)) -> bool {
        let Some(&host) = self.job_of.get(&decision) else { return false };
        let Some(job) = self.jobs.get(&host) else { return false };
        if job.unheard.contains_key(&decision) != reached {
            return false; // it is so already
        }
        let had = if reached { RoutesHad::default() } else { self.routes_of(job) };
        let Some(job) = self.jobs.get_mut(&host) else { return false };
        let wanted = if reached {
            let wanted = job.unheard.remove(&decision).unwrap_or_default();
            self.routes_had -= wanted.pairs();
            wanted
        } else {
            self.routes_had += had.pairs();
            job.unheard.insert(decision, had).unwrap_or_default()
        };
        let (attempt, sends) = (job.attempt, job.reckon());
        // Whose its containers are is another question now.
        for of_attempt in self.by_attempt.get(&attempt).into_iter().flatten() {
            if let Some(job) = self.jobs.get_mut(of_attempt) {
                job.followed = None;
            }
        }
        let cause = Cause::new(if reached { "placed" } else { "ended" }, decision.to_string());
        self.sends(host, sends, Wanted { chosen: &wanted.chosen, ways: &wanted.ways }, &cause, at);
        self.enforce_limit(host, at);
        true
    }

    /// Jobs with parts that nobody was told of, and pairs whose routes are kept for these.
    #[cfg(test)]
    pub(crate) fn unheard(&self) -> (usize, usize) {
        (self.jobs.values().filter(|job| !job.unheard.is_empty()).count(), self.routes_had)
    }

    /// The network is another one, or chains are declared anew: links and boxes of before mean nothing now.
    pub(super) fn forget_routes_had(&mut self) {
        for had in self.jobs.values_mut().flat_map(|job| job.unheard.values_mut()) {
            *had = RoutesHad::default();
        }
        self.routes_had = 0;
    }

    /// Forgets routes of the oldest job that has any and that nobody was told of: it gets others if it sends again. Whether
    /// there were some.
    pub(super) fn forget_oldest_routes_had(&mut self) -> bool {
        let mut all = self.jobs.values_mut().flat_map(|job| job.unheard.values_mut());
        let Some(oldest) = all.find(|had| had.pairs() > 0) else { return false };
        self.routes_had -= std::mem::take(oldest).pairs();
        true
    }

    /// Routes of what a job sends now.
    fn routes_of(&self, job: &Job) -> RoutesHad {
        let chosen = job.traffic.flows.iter().filter_map(|flow| {
            let links = self.pairs.all.get(&flow.pair)?.route.clone();
            let (chain, stops, rate) = (None, Default::default(), BitsPerSec(0));
            (!links.is_empty()).then_some(ChosenRoute { pair: flow.pair, links, chain, stops, rate })
        });
        let ways = job.chained.keys().filter_map(|key| Some((key.clone(), self.chained.way(key)?.clone())));
        RoutesHad { chosen: chosen.collect(), ways: ways.collect() }
    }
}
