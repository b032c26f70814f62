//! Placing tasks that were lost, or that waited for too long: the engine says which, this runs the request and tells
//! the application. And rounds of rebalancing, which are searched beside it.

use super::super::background::{BackgroundWork, LostTasks};
use super::super::follow_event::{FollowEvent, FollowPayload};
use super::super::pool::JobContext;
use super::Daemon;
use hintd_engine::{Answer, Mode, Refusal, Round};
use hintd_model::cluster::HintRequest;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often an overloaded or failing daemon tries again, and the wait between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Places what is lost, one after another: a rack that fails must not crowd out requests.
pub(in crate::runtime) async fn run(daemon: Daemon, mut lost: mpsc::Receiver<BackgroundWork>) {
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
