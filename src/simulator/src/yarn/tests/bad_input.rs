//! Runs that can't be, or that stop.

use super::*;
use crate::settings::{Scripted, ScriptedEvent};
use crate::trace::TraceError;
use crate::yarn::tables::attempt_of;
use hintd_model::units::{AttemptId, Bytes, Micros};
use hintd_policy::Dispatch;
use hintd_policy::dispatch::{Advice, DispatchEvent, Offer, TaskRef, View};

/// Launches one and the same task whenever it is asked.
struct Always(AttemptId, &'static str, u32);

impl Dispatch for Always {
    type State = ();

    fn start(&self) {}

    fn observe(&self, (): &mut (), _event: &DispatchEvent, _view: &View<'_>) {}

    fn offer(&self, (): &mut (), _offer: &Offer, _view: &View<'_>) -> Vec<Advice> {
        vec![Advice::Launch(TaskRef { attempt: self.0, group: self.1.into(), index: self.2 })]
    }
}

/// Launches nothing.
struct Never;

impl Dispatch for Never {
    type State = ();

    fn start(&self) {}

    fn observe(&self, (): &mut (), _event: &DispatchEvent, _view: &View<'_>) {}

    fn offer(&self, (): &mut (), _offer: &Offer, _view: &View<'_>) -> Vec<Advice> {
        vec![]
    }
}

fn refused(dispatch: &dyn DynDispatch) -> String {
    let cluster = cluster(1, 2, 2, 100_000_000);
    let jobs = [job(0, 0.0, 500 * MIB, 0, 0)];
    with(&cluster, &still(), &SimSettings::default(), dispatch, &jobs, true).unwrap_err().to_string()
}

#[test]
fn a_launch_that_breaks_a_rule_is_an_error_that_names_task_and_node() {
    let (first, second) = (attempt_of(0), attempt_of(1));
    for (always, reason) in [
        (Always(first, "map", 0), "the task runs already"),
        (Always(first, "map", 4), "the group has no task of that number"),
        (Always(first, "reduce", 0), "the group has no task of that number"),
        (Always(first, "shuffle", 0), "there is no such group"),
        (Always(second, "map", 0), "there is no such application, or it is done"),
    ] {
        let Always(attempt, group, index) = always;
        let error = refused(&always);
        assert!(error.contains(&format!("launched {attempt}/{group}/{index} on host")), "{error}");
        assert!(error.ends_with(reason), "{error}");
    }
}

#[test]
fn a_policy_that_launches_nothing_is_given_up() {
    let error = refused(&Never);
    assert!(error.ends_with("4 tasks wait, 0 stand still, 1 jobs"), "{error}");
}

#[test]
fn jobs_that_can_never_fit_are_reported_and_the_run_goes_on() {
    let cluster = cluster(2, 2, 2, 100_000_000);
    let jobs =
        [job(0, 0.0, 10 * MIB, 0, 0), job(1, 1.0, 1_000_000_000_000_000_000, 0, 0), job(2, 2.0, 10 * MIB, 5 * MIB, 0)];
    let report = report(&cluster, &SimSettings::default(), &jobs);
    assert_eq!((report.jobs, report.never_fit_count, report.unfinished), (2, 1, 0));
    assert_eq!((report.never_fit, report.jct_s.len()), (vec!["job1".to_owned()], 2));
}

#[test]
fn where_no_node_holds_a_container_no_job_ever_fits() {
    let small = cluster(2, 2, 2, 100_000_000);
    let none = SimCluster { containers: vec![0; 4], ..small.clone() };
    let large = SimCluster { container: toy::CONTAINER.times(3), ..small };
    for cluster in [none, large] {
        let report = report(&cluster, &SimSettings::default(), &mixed(30));
        assert_eq!((report.jobs, report.never_fit_count, report.never_fit.len()), (0, 30, 20));
        assert_eq!((report.makespan_s, report.throughput_jobs_per_hour, report.mean_jct_s), (0.0, 0.0, 0.0));
    }
}

#[test]
fn an_interrupted_run_leaves_a_report_of_what_ended() {
    let cluster = cluster(2, 2, 2, 100_000_000);
    let (model, settings, dispatch) = (still(), SimSettings::default(), fifo());
    let run = plain(&cluster, &model, &settings, &dispatch);
    let mut stop = |at: Progress| if at.done > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let report = crate::simulate(&run, &mut mixed(5_000).into_iter().map(Ok), &mut stop).unwrap();
    assert!(report.unfinished > 0 && report.jobs > 100 && report.jobs < 5_000, "{}", report.jobs);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<RunReport>(&json).unwrap(), report);
}

#[test]
fn a_damaged_trace_ends_the_run_with_its_own_error() {
    let cluster = cluster(1, 1, 1, 100_000_000);
    let (model, settings, dispatch) = (still(), SimSettings::default(), fifo());
    let run = plain(&cluster, &model, &settings, &dispatch);
    let mut on = |_: Progress| ControlFlow::Continue(());
    let mut jobs = [Ok(job(0, 0.0, 1, 0, 0)), Err(TraceError::Empty { skipped: 3 })].into_iter();
    let error = crate::simulate(&run, &mut jobs, &mut on).unwrap_err();
    assert_eq!(error.to_string(), TraceError::Empty { skipped: 3 }.to_string());
    let back = [job(0, 5.0, 1, 0, 0), job(1, 4.0, 1, 0, 0)];
    let error = crate::simulate(&run, &mut back.into_iter().map(Ok), &mut on).unwrap_err();
    assert_eq!(error.to_string(), "job job1 is submitted at 4 s, after a job of 5 s: the trace is not in order");
}

#[test]
fn settings_that_no_run_can_have_are_refused_by_name() {
    let cluster = cluster(1, 1, 1, 100_000_000);
    let at_once = |what| ScriptedEvent { at: Micros::ZERO, what };
    for (settings, message) in [
        (SimSettings { users: 0, ..SimSettings::default() }, "users: 0: it must be at least 1"),
        (SimSettings { heartbeat: Micros(0), ..SimSettings::default() }, "heartbeat: 0: it must be at least 1"),
        (
            SimSettings { script: vec![at_once(Scripted::NodeDown("nowhere".into()))], ..SimSettings::default() },
            "script: the cluster has no node \"nowhere\"",
        ),
        (
            SimSettings { script: vec![at_once(Scripted::LinkUp("nowhere".into()))], ..SimSettings::default() },
            "script: the network has no link \"nowhere\"",
        ),
    ] {
        let error = with(&cluster, &still(), &settings, &fifo(), &mixed(1), true).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let model = JobModel { rate: Bytes(0), ..still() };
    assert!(with(&cluster, &model, &SimSettings::default(), &fifo(), &mixed(1), true).is_err());
}
