//! Whether a request takes part in the comparison.

use super::{Participation, WorthSettings};
use crate::generation::Generation;
use hintd_model::cluster::{Constraints, Gang, HintRequest};

impl WorthSettings {
    /// How a request takes part. What YARN can't do by itself is not kept back: a gang, bounds, traffic under chains of
    /// middleboxes, a job of the plan in force.
    #[must_use]
    pub fn participation_of(&self, request: &HintRequest, generation: &Generation) -> Participation {
        let chained = generation.snapshot.topology.chains.is_some();
        let key = request.recurring_key.as_ref();
        let planned = || {
            let jobs = generation.plan.iter().flat_map(|kept| &kept.plan.jobs);
            key.is_some_and(|key| jobs.into_iter().any(|planned| planned.job.key == *key))
        };
        if !is_plain(request) || chained || planned() {
            return Participation::Outside;
        }
        self.participation((request.attempt.application, request.queue.as_str()), key, &generation.stopped)
    }
}

/// Whether YARN can do by itself what a request asks for: no gang, and no bounds.
pub(crate) fn is_plain(request: &HintRequest) -> bool {
    let free = |constraints: &Constraints| *constraints == Constraints::default();
    let bound = !free(&request.constraints) || request.groups.iter().any(|group| !free(&group.constraints));
    request.gang == Gang::UpTo && !bound
}
