//! Placing tasks that were lost, or that waited for too long: the engine says which, this runs the request and tells
//! the application. And rounds of rebalancing, which are searched beside it.

use super::daemon::Daemon;
use super::outbox::Weigh;
use super::pool::JobContext;
use hintd_engine::{Answer, FollowBody, Mode, Refusal, Round};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{HostName, Micros};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// What the engine wants done beside its thread.
#[derive(Debug)]
pub(super) enum BackgroundWork {
    /// Tasks to place.
    LostTasks(LostTasks),
    /// Moves to look for.
    Round(Arc<Round>),
}

/// Tasks of one attempt that ran on a node which is gone, or that a dispatch policy let wait for too long.
#[derive(Debug)]
pub(super) struct LostTasks {
    /// Exactly the groups and counts that were hit.
    pub(super) request: Arc<HintRequest>,
    /// `node_lost`, `node_gone` or [`LATE`].
    pub(super) cause: &'static str,
    /// The node.
    pub(super) node: Option<HostName>,
}

/// Why tasks that waited for too long are placed.
pub(super) const LATE: &str = "max_wait";

/// What may wait to be done beside the engine's thread: a failed rack of 40 nodes with 200 attempts on each.
const WAITING_MAX: usize = 8_192;
/// When an application whose lost tasks found no place in the queue may ask by itself: some hundreds of them are placed
/// by then.
const RETRY_AFTER: Micros = Micros::from_secs(5);

/// The engine's end of the queue to [`run`]. Its thread never waits for a place: placing needs that thread.
#[derive(Debug)]
pub(super) struct BackgroundQueue(mpsc::Sender<BackgroundWork>);

impl BackgroundQueue {
    /// The queue, with room for [`WAITING_MAX`].
    pub(super) fn queue() -> (Self, mpsc::Receiver<BackgroundWork>) {
        Self::with_room(WAITING_MAX)
    }

    fn with_room(places: usize) -> (Self, mpsc::Receiver<BackgroundWork>) {
        let (queue, waiting) = mpsc::channel(places);
        (Self(queue), waiting)
    }

    /// Has tasks placed. Where the queue is full they are refused as they would be for want of room: returned is what
    /// their attempt is to be told now.
    pub(super) fn place(&self, lost: LostTasks) -> Vec<FollowEvent> {
        match self.0.try_send(BackgroundWork::LostTasks(lost)) {
            Err(TrySendError::Full(BackgroundWork::LostTasks(lost))) => {
                let message = format!("{} tasks or rounds wait to be placed anew", self.0.max_capacity());
                lost.refused(&Refusal::Unavailable { message, retry_after: RETRY_AFTER })
            }
            _ => Vec::new(), // the other end goes only with the daemon
        }
    }

    /// Has moves looked for. Where the queue is full there are none this time: there will be another round.
    pub(super) fn rebalance(&self, round: Arc<Round>) {
        let number = round.number;
        if let Err(TrySendError::Full(_)) = self.0.try_send(BackgroundWork::Round(round)) {
            tracing::debug!(round = number, "no moves were looked for: too many tasks wait to be placed anew");
        }
    }
}

/// A message on a Follow stream.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowEvent {
    /// Why it is sent.
    pub cause: &'static str,
    /// What is sent.
    pub what: FollowPayload,
}

/// What a Follow stream carries.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowPayload {
    /// Hints for tasks that are to run again.
    Hints(Arc<Answer>),
    /// Everything else.
    Advice(FollowBody),
}

impl Weigh for FollowEvent {
    fn bytes(&self) -> usize {
        const ADVICE: usize = 512;
        match &self.what {
            FollowPayload::Hints(answer) => ADVICE + answer.decision.wire_bytes(),
            FollowPayload::Advice(FollowBody::Withdraw { leases, .. }) => ADVICE + size_of_val(leases.as_slice()),
            FollowPayload::Advice(_) => ADVICE,
        }
    }
}

impl FollowEvent {
    pub(super) const fn advice(cause: &'static str, body: FollowBody) -> Self {
        Self { cause, what: FollowPayload::Advice(body) }
    }
}

/// How often an overloaded or failing daemon tries again, and the wait between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Places what is lost, one after another: a rack that fails must not crowd out requests.
pub(super) async fn run(daemon: Daemon, mut lost: mpsc::Receiver<BackgroundWork>) {
    while let Some(next) = lost.recv().await {
        if daemon.stopping().is_cancelled() {
            return;
        }
        let lost = match next {
            BackgroundWork::LostTasks(lost) => lost,
            BackgroundWork::Round(round) => {
                tokio::spawn(rebalance(daemon.clone(), round)); // nothing lost waits for it
                continue;
            }
        };
        let told = match place_again(&daemon, &lost.request).await {
            // It is held out, or its recurring job stopped: it gets no hints on Follow either.
            Ok(answer) if answer.decision.withheld.is_some() => Vec::new(),
            Ok(answer) => {
                let LostTasks { request, cause, node } = &lost;
                tracing::info!(decision_id = %answer.decision.id, attempt = %request.attempt, ?node, cause,
                    "tasks were placed anew");
                vec![FollowEvent { cause, what: FollowPayload::Hints(answer) }]
            }
            Err(refusal) => lost.refused(&refusal),
        };
        for message in told {
            daemon.tell(lost.request.attempt, message);
        }
    }
}

/// Searches one round on the pool, under the policies in force, and tells the engine. Where the pool has no place for it
/// the round is none: there will be another.
async fn rebalance(daemon: Daemon, round: Arc<Round>) {
    let settings = daemon.settings();
    let deadline = Instant::now() + Duration::from_micros(settings.engine.rebalance.every.0);
    let number = round.number;
    let stopping = daemon.stopping().clone();
    let search = move |job: JobContext| {
        let policy_of = |request: &HintRequest| {
            let chosen = settings.choose(&request.queue, &request.framework, request.policy.as_deref()).ok();
            let (_, name) = chosen.filter(|(mode, _)| *mode == Mode::On)?;
            settings.policies.built.get(name).map(|policy| (name, Arc::clone(policy)))
        };
        round.search(policy_of, job.steps(settings.placer.steps), &mut || {
            Instant::now() >= deadline || stopping.is_cancelled()
        })
    };
    match daemon.search(deadline, search).await {
        Ok(found) => {
            tracing::debug!(
                round = number,
                moves = found.moves.len(),
                left_out = found.left_out,
                "moves were looked for"
            );
            daemon.rebalanced(number, found);
        }
        Err(refusal) => tracing::debug!(round = number, %refusal, "no moves were looked for"),
    }
}

async fn place_again(daemon: &Daemon, request: &Arc<HintRequest>) -> Result<Arc<Answer>, Refusal> {
    let mut tries = 1;
    loop {
        let deadline = Instant::now() + daemon.settings().placer.deadline_default;
        match daemon.place(request, 0, daemon.next_decision(), deadline).await {
            Err(Refusal::Unavailable { .. } | Refusal::DeadlineExceeded(_)) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE * tries).await;
            }
            other => return other,
        }
    }
}

impl LostTasks {
    /// Notes that they found no place; returns what their attempt is to be told.
    fn refused(&self, refusal: &Refusal) -> Vec<FollowEvent> {
        let Self { request, cause, node } = self;
        if *cause == LATE {
            // They go on waiting, and the engine has told why.
            tracing::debug!(attempt = %request.attempt, %refusal, "what waits found no place otherwise");
            return Vec::new();
        }
        tracing::warn!(attempt = %request.attempt, ?node, cause, %refusal, "lost tasks found no place");
        let reason: Arc<str> = refusal.token().into();
        let wait = |group: &hintd_model::cluster::TaskGroup| {
            let body =
                FollowBody::NotYet { group: Arc::clone(&group.name), reason: Arc::clone(&reason), expected_wait: None };
            FollowEvent::advice(cause, body)
        };
        request.groups.iter().map(wait).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tests::{SOON, running};
    use hintd_model::cluster::document::RequestDocument;
    use tokio::time::timeout;

    fn lost(cause: &'static str) -> LostTasks {
        let size = serde_json::json!({ "memory_mb": 1024, "vcores": 1 });
        let groups = ["map", "reduce"].map(|name| serde_json::json!({ "name": name, "count": 1, "size": size }));
        let document = serde_json::json!({ "format": "hintd.request/1", "queue": "q", "groups": groups });
        let document: RequestDocument = serde_json::from_value(document).unwrap();
        LostTasks { request: Arc::new(document.to_request().unwrap()), cause, node: None }
    }

    #[test]
    fn what_finds_the_queue_full_is_refused_at_once_and_group_by_group() {
        let (queue, mut waiting) = BackgroundQueue::with_room(2);
        assert_eq!(queue.place(lost("node_lost")), []);
        assert_eq!(queue.place(lost("node_lost")), []);
        let told = queue.place(lost("node_lost"));
        let refused = |group: &str| {
            let body = FollowBody::NotYet { group: group.into(), reason: "unavailable".into(), expected_wait: None };
            FollowEvent::advice("node_lost", body)
        };
        assert_eq!(told, [refused("map"), refused("reduce")]);
        assert_eq!(queue.place(lost(LATE)), [], "it goes on waiting, and was told why");
        assert!(matches!(waiting.try_recv(), Ok(BackgroundWork::LostTasks(_))));
        assert_eq!(queue.place(lost("node_lost")), [], "there is room again");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_queue_holds_up_neither_the_engine_nor_a_shutdown() {
        let (_folder, running) = running().await;
        let daemon = running.daemon.clone();
        // The engine is told of lost tasks, faster than anybody places them, until there is no room for one.
        let (told, overflow) = std::sync::mpsc::channel();
        let (inner, request) = (daemon.clone(), lost("node_lost").request);
        daemon.on_engine(move || {
            let one = || LostTasks { request: Arc::clone(&request), cause: "node_lost", node: None };
            let taken = (0..1_000 * WAITING_MAX).take_while(|_| inner.0.shared.background.place(one()).is_empty());
            told.send(taken.count()).unwrap();
        });
        let taken = tokio::task::spawn_blocking(move || overflow.recv_timeout(SOON)).await.unwrap().unwrap();
        assert!((WAITING_MAX..1_000 * WAITING_MAX).contains(&taken), "{taken} were taken before one was refused");
        timeout(SOON, daemon.engine_report()).await.unwrap().unwrap();
        timeout(SOON, running.shutdown()).await.unwrap().unwrap();
    }
}
