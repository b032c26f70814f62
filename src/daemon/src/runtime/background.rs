//! What the engine wants done beside its thread, and the queue that it waits in.

use super::follow_event::FollowEvent;
use hintd_engine::{FollowBody, Refusal, Round};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{HostName, Micros};
use std::sync::Arc;
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

/// The engine's end of the queue to who does it. Its thread never waits for a place: placing needs that thread.
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

impl LostTasks {
    /// Notes that they found no place; returns what their attempt is to be told.
    pub(super) fn refused(&self, refusal: &Refusal) -> Vec<FollowEvent> {
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
