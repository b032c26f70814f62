//! What policies learnt, on the wire.

use crate::runtime::PolicyTraining;
use hintd_client::wire::v1;
use hintd_policy::learn::{Judged, Lesson};

/// What a policy learnt, and how its training stands.
pub(in crate::server) fn training(lesson: Option<Lesson>, stands: PolicyTraining) -> v1::PolicyLearnt {
    let learnt = lesson.unwrap_or_default();
    let judged = |classifier: &str, of: [Judged; 2]| {
        [true, false]
            .into_iter()
            .zip(of)
            .map(|(shuffle_known, judged)| v1::HeldOutJobs {
                classifier: classifier.to_owned(),
                shuffle_known,
                jobs: judged.jobs,
                wrong: judged.wrong,
                large_called_small: judged.large_called_small,
            })
            .collect::<Vec<_>>()
    };
    let held_out = [judged("support vectors", learnt.classifier), judged("regression", learnt.regression)].concat();
    v1::PolicyLearnt {
        jobs: learnt.jobs,
        small_jobs: learnt.small,
        timed_on_class: learnt.timed[0],
        timed_elsewhere: learnt.timed[1],
        task_time_error: learnt.time_error,
        held_out: if lesson.is_some() { held_out } else { Vec::new() },
        trained_at_ms: stands.trained_at.map_or(0, |at| at.as_millis()),
        problem: stands.problem.unwrap_or_default(),
    }
}
