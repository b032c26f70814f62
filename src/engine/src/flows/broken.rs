//! Whose traffic under chains stands still, for applications to be told; and jobs under chains, for rebalancing.

use super::Flows;
use crate::rebalance::RoundJob;
use hintd_model::units::AttemptId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How an attempt's traffic under a chain stands.
#[derive(Debug)]
pub(crate) struct Standstill {
    pub(crate) attempt: AttemptId,
    pub(crate) chain: Arc<str>,
    /// Pairs of its nodes that stand still; 0: all go again.
    pub(crate) pairs: u64,
}

impl Flows {
    /// What applications are to be told of chains since the last call: where pairs have come to a stand, and where all go
    /// again. Nothing while there is no network: then nobody knows.
    pub(crate) fn take_standstills(&mut self) -> Vec<Standstill> {
        if !std::mem::take(&mut self.chained.published_more) || self.network.is_none() {
            return Vec::new();
        }
        let stands = |key| self.chained.published.routes.get(key).is_some_and(|route| route.way.is_none());
        let mut now: BTreeMap<(AttemptId, Arc<str>), u64> = BTreeMap::new();
        let mut sending: BTreeMap<(AttemptId, Arc<str>), u64> = BTreeMap::new();
        for job in self.jobs.values().filter(|job| !job.chained.is_empty()) {
            for key in job.chained.keys() {
                let of = (job.attempt, Arc::clone(&key.chain));
                *sending.entry(of.clone()).or_default() += 1;
                if stands(key) {
                    *now.entry(of).or_default() += 1;
                }
            }
        }
        let told = std::mem::replace(&mut self.chained.told, now);
        let now = &self.chained.told;
        let worse = now.iter().filter(|(of, pairs)| told.get(of).is_none_or(|before| before < pairs));
        let mut news: Vec<Standstill> = worse
            .map(|((attempt, chain), &pairs)| Standstill { attempt: *attempt, chain: Arc::clone(chain), pairs })
            .collect();
        // Whoever has ended, or is under the chain no more, does not need to hear that it goes again.
        let again = told.into_keys().filter(|of| !now.contains_key(of) && sending.contains_key(of));
        news.extend(again.map(|(attempt, chain)| Standstill { attempt, chain, pairs: 0 }));
        news
    }

    /// Jobs with traffic under chains by attempt, newest first.
    pub(crate) fn chained_jobs(&self) -> impl Iterator<Item = (AttemptId, Vec<RoundJob>)> {
        let mut by_attempt: BTreeMap<AttemptId, Vec<RoundJob>> = BTreeMap::new();
        let mut order = Vec::new();
        for job in self.jobs.values().rev().filter(|job| job.is_chained()) {
            let Some(request) = &job.of else { continue };
            let jobs = by_attempt.entry(job.attempt).or_default();
            if jobs.is_empty() {
                order.push(job.attempt);
            }
            jobs.push(RoundJob {
                request: Arc::clone(request),
                edges: Arc::clone(&job.edges),
                classes: job.classes.clone(),
                placed: job.placed.clone(),
            });
        }
        order.into_iter().map(move |attempt| (attempt, by_attempt.remove(&attempt).unwrap_or_default()))
    }
}
