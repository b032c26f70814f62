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
            .filter(|(_, judged)| judged.jobs > 0) // too few of a kind were left to be judged
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classifier_that_was_judged_on_no_job_has_no_row() {
        let of = |jobs| Judged { jobs, wrong: jobs / 2, large_called_small: 0 };
        let lesson = Lesson { jobs: 60, classifier: [of(12), of(0)], regression: [of(0); 2], ..Lesson::default() };
        let rows = training(Some(lesson), PolicyTraining::default()).held_out;
        let rows: Vec<_> = rows.iter().map(|row| (row.classifier.as_str(), row.shuffle_known, row.jobs)).collect();
        assert_eq!(rows, [("support vectors", true, 12)]);
    }
}
