//! Commits on their way: what the engine has taken is recorded and counted whether or not somebody still waits for it.
//!
//! A caller is gone where its deadline passed or its connection broke. Before the engine takes the proposal, nothing is
//! leased for it then. Afterwards the answer is kept, and a repeat of the request gets it, so it has a record, too: as late,
//! until a repeat does.

use super::super::command::{CommitClaim, Committed, gone};
use super::Daemon;
use crate::telemetry::metrics::Stage;
use hintd_engine::records::{DecidedRequest, RequestOutcome};
use hintd_engine::{Answer, Decision, DetachedDispatcher, Refusal};
use hintd_model::units::DecisionId;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// What is to be noted of a decision once it is durable.
pub(in crate::runtime) struct UnrecordedDecision {
    /// The id that it has if it is one.
    pub(in crate::runtime) decision: DecisionId,
    /// Of one that is to be recorded: as refused for its deadline, until it is answered; and what was proposed, where the
    /// commit may change it.
    pub(in crate::runtime) record: Option<(Box<DecidedRequest>, Option<Box<Decision>>)>,
    pub(in crate::runtime) policy: &'static str,
    /// When the request came.
    pub(in crate::runtime) asked: Instant,
    /// When its commit began.
    pub(in crate::runtime) began: Instant,
}

impl UnrecordedDecision {
    /// An answer was made. Whether somebody has it, its maker says.
    fn made(
        self,
        daemon: &Daemon,
        answer: &Arc<Answer>,
        journal: &Range<Instant>,
        dispatcher: Option<Box<DetachedDispatcher>>,
    ) {
        let journal = journal.end.saturating_duration_since(journal.start);
        let commit = self.began.elapsed().saturating_sub(journal);
        let stages = [(Stage::Commit, commit), (Stage::Journal, journal), (Stage::Total, self.asked.elapsed())];
        daemon.metrics().request(self.policy, &stages, Some(answer.decision.steps));
        if let Some((mut seen, draft)) = self.record {
            seen.came = RequestOutcome::Answered { answer: Arc::clone(answer), draft, dispatcher };
            let _ = daemon.0.recorder.see(*seen); // counted where it was not
        }
    }

    fn late(self, daemon: &Daemon) {
        if let Some((seen, _)) = self.record {
            let _ = daemon.0.recorder.see(*seen); // counted where it was not
        }
    }
}

type Reply = oneshot::Receiver<Result<Committed, Refusal>>;

/// A commit that its caller waits for. Dropped before its end, it is given up, or goes on without the caller.
pub(in crate::runtime) struct PendingCommit<'d> {
    daemon: &'d Daemon,
    claim: Arc<CommitClaim>,
    deadline: Instant,
    /// Gone once the end is known.
    open: Option<(Reply, UnrecordedDecision)>,
}

impl<'d> PendingCommit<'d> {
    pub(in crate::runtime) fn new(
        daemon: &'d Daemon,
        claim: Arc<CommitClaim>,
        reply: Reply,
        unrecorded: UnrecordedDecision,
        deadline: Instant,
    ) -> Self {
        Self { daemon, claim, deadline, open: Some((reply, unrecorded)) }
    }

    /// What it came to, recorded if it is an answer.
    pub(in crate::runtime) async fn ended(mut self) -> Result<Committed, Refusal> {
        let (reply, _) = self.open.as_mut().expect("it is open until here");
        let committed = reply.await.unwrap_or_else(|_| Err(gone()));
        let (_, unrecorded) = self.open.take().expect("it is open until here");
        match committed? {
            Committed::Answer { answer, journal, dispatcher } => {
                unrecorded.made(self.daemon, &answer, &journal, dispatcher);
                self.daemon.metrics().add("requests_answered", 1);
                Ok(Committed::Answer { answer, journal, dispatcher: None })
            }
            other => Ok(other),
        }
    }
}

impl Drop for PendingCommit<'_> {
    fn drop(&mut self) {
        let Some((reply, unrecorded)) = self.open.take() else { return };
        if self.claim.give_up() {
            return;
        }
        // Callers end on a runtime's threads; one that is being torn down takes its records with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let (daemon, late, decision) = (self.daemon.clone(), Instant::now() >= self.deadline, unrecorded.decision);
        // Who is told that the deadline passed is told after this (`told_late`); who hung up is told nothing.
        daemon.caller_gone(decision);
        // As many as the journal's queue has places.
        runtime.spawn(async move {
            if let Ok(Ok(Committed::Answer { answer, journal, dispatcher })) = reply.await {
                tracing::debug!(decision_id = %answer.decision.id, request_id = %answer.decision.request,
                    "committed after its caller had gone: a repeat gets the answer");
                unrecorded.made(&daemon, &answer, &journal, dispatcher);
                return daemon.made_late(&answer.decision);
            }
            daemon.0.undelivered.forget(decision);
            // Who hung up was refused nothing.
            if late {
                unrecorded.late(&daemon);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{SOON, running, shuffle, stall, until, usable};
    use super::super::place::{Refused, RequestAnswer, RequestOptions};
    use super::*;
    use crate::server::Running;
    use crate::server::admin::AdminService;
    use hintd_client::wire::v1;
    use hintd_client::wire::v1::admin_server::Admin as _;
    use hintd_engine::records::{Record, Undelivered};
    use std::time::Duration;
    use tempfile::TempDir;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;
    use tonic::Request;

    type Asked = JoinHandle<Result<RequestAnswer, Refused>>;

    /// With two nodes.
    async fn with_nodes() -> (TempDir, Running) {
        let (folder, running) = running().await;
        usable(&running, &["h0", "h1"]).await;
        (folder, running)
    }

    /// Asks with so much time.
    fn ask(daemon: &Daemon, decision: DecisionId, time: Duration) -> Asked {
        let (daemon, deadline) = (daemon.clone(), Instant::now() + time);
        let request = shuffle(1, true).into();
        tokio::spawn(async move { daemon.request(request, 1, decision, deadline, RequestOptions::default()).await })
    }

    /// The engine takes the commit of a request and then nothing, so that it does not hear of the journal until what comes
    /// back is dropped.
    async fn stalled_behind_commit(
        daemon: &Daemon,
        decision: DecisionId,
        time: Duration,
    ) -> (Asked, std::sync::mpsc::Sender<()>) {
        let first = stall(daemon);
        let asked = ask(daemon, decision, time);
        until(|| daemon.0.engine_handle.queued() == 1).await;
        let then = stall(daemon);
        drop(first);
        until(|| daemon.0.engine_handle.queued() == 0).await;
        (asked, then)
    }

    async fn recorded(daemon: &Daemon, decision: DecisionId) -> Arc<Record> {
        let found = async {
            loop {
                match daemon.record(decision).await {
                    Ok(record) => break record,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(SOON, found).await.unwrap()
    }

    /// What the list of decisions has of it: what came of it and why, how many were followed, whether refusals alone have it.
    async fn listed(daemon: &Daemon, decision: DecisionId) -> (String, String, bool, bool) {
        let of = async |refused_only| {
            let asked = v1::ListDecisionsRequest { refused_only, ..v1::ListDecisionsRequest::default() };
            let rows = AdminService::new(daemon.clone()).list_decisions(Request::new(asked)).await.unwrap();
            rows.into_inner().decisions.into_iter().find(|row| row.decision_id == decision.to_string())
        };
        let row = of(false).await.unwrap();
        (row.outcome, row.reason, row.followed.is_some(), of(true).await.is_some())
    }

    async fn explanation(daemon: &Daemon, decision: DecisionId) -> v1::ExplainResponse {
        let asked = v1::ExplainRequest { decision_id: decision.to_string(), ..v1::ExplainRequest::default() };
        AdminService::new(daemon.clone()).explain(Request::new(asked)).await.unwrap().into_inner()
    }

    fn counted(daemon: &Daemon, name: &str) -> u64 {
        daemon.metrics().all().get(name).copied().unwrap_or(0)
    }

    /// It has a record that says that nobody has it, and counts as no answer, in adherence neither; a repeat gets it, and then it
    /// is one.
    async fn is_late_until_a_repeat_gets_it(daemon: &Daemon, decision: DecisionId, why: Undelivered) {
        let record = recorded(daemon, decision).await;
        until(|| record.undelivered() == Some(why)).await;
        let refused = why == Undelivered::Deadline;
        assert_eq!(listed(daemon, decision).await, ("late".into(), why.as_str().into(), false, refused));
        let recorded_refusals = daemon.0.recorder.refusals().await.unwrap();
        assert_eq!(recorded_refusals.get("deadline"), refused.then_some(&1));
        let explained = explanation(daemon, decision).await;
        assert_eq!((&*explained.late, explained.outcome.is_some()), (why.as_str(), false));
        assert_eq!((counted(daemon, "requests_answered"), counted(daemon, "answers_late")), (0, 1));
        let answer = record.answered().unwrap();
        assert!(answer.decision.hints.iter().any(|hint| !hint.leases.is_empty()), "{:?}", answer.decision);
        assert!(record.replay(None).same);
        let sending = || daemon.generation().flows.jobs.iter().filter(|job| job.decision == decision).count();
        until(|| sending() == 0).await;
        let leases = daemon.engine_report().await.unwrap().counts.leases;
        let repeat = ask(daemon, daemon.next_decision(), SOON).await.unwrap().unwrap();
        assert_eq!((repeat.answer.decision.id, repeat.repeat.unwrap().len()), (decision, leases));
        until(|| sending() == 1).await;
        assert_eq!(listed(daemon, decision).await, ("hinted".into(), String::new(), true, false));
        let explained = explanation(daemon, decision).await;
        assert_eq!((&*explained.late, explained.outcome.is_some()), ("", true));
        assert_eq!((counted(daemon, "requests_answered"), counted(daemon, "answers_late")), (1, 1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_whose_deadline_passes_while_it_commits_is_recorded_and_its_repeat_gets_the_answer() {
        let (_folder, running) = with_nodes().await;
        let daemon = running.daemon.clone();
        let decision = daemon.next_decision();
        let (asked, stalled) = stalled_behind_commit(&daemon, decision, Duration::from_secs(3)).await;
        let refused = timeout(SOON, asked).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(refused.refusal, Refusal::DeadlineExceeded(_)) && refused.recorded, "{refused:?}");
        drop(stalled);
        is_late_until_a_repeat_gets_it(&daemon, decision, Undelivered::Deadline).await;
        running.shutdown().await.unwrap();
    }

    /// The caller of a request hangs up while the answer commits.
    async fn hangs_up(daemon: &Daemon, decision: DecisionId) {
        let (asked, stalled) = stalled_behind_commit(daemon, decision, SOON * 6).await;
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
        drop(stalled);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_whose_caller_hangs_up_while_it_commits_is_recorded_and_its_repeat_gets_the_answer() {
        let (_folder, running) = with_nodes().await;
        let daemon = running.daemon.clone();
        let decision = daemon.next_decision();
        hangs_up(&daemon, decision).await;
        is_late_until_a_repeat_gets_it(&daemon, decision, Undelivered::HungUp).await;
        running.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_repeat_lets_flows_begin_also_of_an_answer_that_is_not_known_to_be_late_any_more() {
        let (_folder, running) = with_nodes().await;
        let daemon = running.daemon.clone();
        let decision = daemon.next_decision();
        hangs_up(&daemon, decision).await;
        let record = recorded(&daemon, decision).await;
        until(|| record.undelivered() == Some(Undelivered::HungUp)).await;
        let sending = || daemon.generation().flows.jobs.iter().filter(|job| job.decision == decision).count();
        until(|| sending() == 0).await;
        daemon.0.undelivered.forget(decision); // as if ten thousand others had been late since
        let repeat = ask(&daemon, daemon.next_decision(), SOON).await.unwrap().unwrap();
        assert_eq!(repeat.answer.decision.id, decision);
        until(|| sending() == 1).await;
        running.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_whose_deadline_passes_before_the_engine_takes_it_leases_nothing_and_is_recorded_as_refused() {
        let (_folder, running) = with_nodes().await;
        let daemon = running.daemon.clone();
        let decision = daemon.next_decision();
        let stalled = stall(&daemon);
        let asked = ask(&daemon, decision, Duration::from_secs(3));
        until(|| daemon.0.engine_handle.queued() == 1).await;
        let refused = timeout(SOON, asked).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(refused.refusal, Refusal::DeadlineExceeded(_)) && refused.recorded, "{refused:?}");
        drop(stalled);
        assert_eq!(recorded(&daemon, decision).await.answered().unwrap_err().token(), "deadline");
        assert_eq!(daemon.engine_report().await.unwrap().counts.leases, 0);
        assert_eq!((counted(&daemon, "requests_answered"), counted(&daemon, "answers_late")), (0, 0));
        assert_eq!(daemon.undelivered(decision), None, "it came to no answer");
        running.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_that_is_late_before_its_search_is_recorded_as_refused_and_a_what_if_is_not() {
        let (_folder, running) = with_nodes().await;
        let daemon = running.daemon.clone();
        let decision = daemon.next_decision();
        let refused = ask(&daemon, decision, Duration::ZERO).await.unwrap().unwrap_err();
        assert!(matches!(refused.refusal, Refusal::DeadlineExceeded(_)) && refused.recorded, "{refused:?}");
        let record = recorded(&daemon, decision).await;
        assert_eq!((record.answered().unwrap_err().token(), record.policy().0.is_empty()), ("deadline", false));
        let asked = RequestOptions { what_if: true, ..RequestOptions::default() };
        let (request, now) = (shuffle(2, false).into(), Instant::now());
        let refused = daemon.request(request, 1, daemon.next_decision(), now, asked).await.unwrap_err();
        assert!(matches!(refused.refusal, Refusal::DeadlineExceeded(_)) && !refused.recorded, "{refused:?}");
        running.shutdown().await.unwrap();
    }
}
