//! What policies learnt, on the wire.

use crate::runtime::PolicyTraining;
use hintd_client::wire::v1;
use hintd_model::cluster::Snapshot;
use hintd_policy::learn::{Judged, Learn, Lesson, ToldClass};
use std::collections::BTreeSet;

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
        damaged_file: stands.damaged_file.unwrap_or_default(),
        not_kept: stands.not_kept.unwrap_or_default(),
    }
}

/// Nodes named that are told more than one class.
const AMBIGUOUS_MAX: usize = 100;

/// Nodes by the class that a policy tells apart.
pub(in crate::server) fn classes(learner: &dyn Learn, snapshot: &Snapshot) -> v1::PolicyClasses {
    let (mut nodes, mut others, mut told, mut ambiguous) = (0, 0, BTreeSet::new(), Vec::new());
    for node in snapshot.statics.indexes().filter(|node| !snapshot.state[node.at()].gone()) {
        *if learner.is_of_class(snapshot, node) { &mut nodes } else { &mut others } += 1;
        let of_node = learner.classes_told(snapshot, node);
        if of_node.windows(2).any(|pair| pair[0].class != pair[1].class) {
            ambiguous.push((snapshot.host(node).to_string(), of_node.clone()));
        }
        told.extend(of_node.into_iter().map(|told| told.class));
    }
    let ambiguous_total = u32::try_from(ambiguous.len()).unwrap_or(u32::MAX);
    ambiguous.sort_by(|a, b| a.0.cmp(&b.0));
    ambiguous.truncate(AMBIGUOUS_MAX);
    let of_node = |(host, told): (String, Vec<ToldClass>)| v1::NodeClasses {
        host,
        told: told.into_iter().map(|ToldClass { by, class }| v1::ToldClass { by, class }).collect(),
    };
    v1::PolicyClasses {
        parameter: learner.class_parameter().to_owned(),
        class: learner.class().to_owned(),
        nodes,
        others,
        told: told.into_iter().collect(),
        ambiguous: ambiguous.into_iter().map(of_node).collect(),
        ambiguous_total,
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
