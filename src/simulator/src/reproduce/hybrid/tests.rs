//! The worlds are what their words say; runs of them end, and jobs run where they should.

use super::systems::{Kind, System, run};
use super::world;
use crate::reproduce::Scale;
use hintd_policy::scale_up_out::{Mistakes, ScaleUpOutParams};

#[test]
fn a_quick_cluster_has_a_fifteenth_of_the_machines_and_as_thin_uplinks() {
    let (whole, quick) = (world::shape(Scale::Full, "scale-up-out"), world::shape(Scale::Quick, "scale-up-out"));
    assert_eq!((whole.nodes(), whole.containers()), (576, 4_704));
    assert_eq!((quick.nodes(), quick.containers()), (39, 314));
    assert_eq!(world::shape(Scale::Quick, "scale-out").containers(), 320);
    let (one, two) = (world::jobs(Scale::Quick, 1, false), world::jobs(Scale::Quick, 2, true));
    assert!(one.iter().all(|job| two.iter().all(|other| other.name != job.name)));
    assert!(two.iter().all(|job| job.submit.0 == 0) && one.len() > 1_600);
}

/// The error on held-out jobs of both days, printed; on a generated day where the data is not there.
#[test]
fn held_out_jobs_are_called_what_they_are() {
    let params = ScaleUpOutParams::default();
    let classifier = world::classifier(Scale::Quick).unwrap();
    let other = world::other_year().map(|jobs| ("FB-2009", jobs.to_vec()));
    let mut line = Mistakes::default();
    for (name, jobs) in [Some(("FB-2010", world::jobs(Scale::Quick, 0, false))), other].into_iter().flatten() {
        let mut mistakes = Mistakes::default();
        for job in &jobs {
            let (shape, small) = (world::job_shape(job, &crate::JobModel::default()), world::small(job, &params));
            mistakes.judge(small, classifier.decision(&shape) > 0.0);
            line.judge(small, classifier.logistic_decision(&shape) > 0.0);
        }
        println!("{name}: {:.4} of {mistakes:?}", mistakes.accuracy());
        assert!(mistakes.accuracy() > 0.95, "{name}: {mistakes:?}");
    }
    println!("logistic regression, both: {:.4} of {line:?}", line.accuracy());
}

#[test]
#[ignore = "minutes in a debug build; hintctl reproduce hybrid-online runs the same"]
fn a_day_of_all_kinds_ends() {
    for (kind, batch) in
        [(Kind::ScaleOut, false), (Kind::With, false), (Kind::StealsAtOnce, false), (Kind::NoPlacement, false)]
    {
        let system = System { kind, delay: false, batch, quick: true, error_percent: 0 };
        let run = run("test", system, 1).unwrap();
        let report = &run.report;
        println!(
            "{kind:?}: mean {:.1} s, median {:.1} s, makespan {:.0} s, small {:.1}, large {:.1}, {:?}",
            report.mean_jct_s,
            report.median_jct_s,
            report.makespan_s,
            run.mean(0),
            run.mean(1),
            report.maps_by_locality
        );
    }
}
