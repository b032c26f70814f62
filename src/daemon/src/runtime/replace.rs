//! Placing tasks that were lost, or that waited for too long: the engine says which, this runs the request and tells
//! the application. And rounds of rebalancing, which are searched beside it.

use super::daemon::Daemon;
use super::pool::Turn;
use hintd_engine::{Answer, FollowBody, Mode, Refusal, Round};
use hintd_model::cluster::HintRequest;
use hintd_model::units::HostName;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What the engine wants done beside its thread.
#[derive(Debug)]
pub(super) enum Aside {
    /// Tasks to place.
    Lost(Lost),
    /// Moves to look for.
    Round(Arc<Round>),
}

/// Tasks of one attempt that ran on a node which is gone, or that a dispatch policy let wait for too long.
#[derive(Debug)]
pub(super) struct Lost {
    /// Exactly the groups and counts that were hit.
    pub(super) request: Arc<HintRequest>,
    /// `node_lost`, `node_gone` or [`LATE`].
    pub(super) cause: &'static str,
    /// The node.
    pub(super) node: Option<HostName>,
}

/// Why tasks that waited for too long are placed.
pub(super) const LATE: &str = "max_wait";

/// A message on a Follow stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Why it is sent.
    pub cause: &'static str,
    /// What is sent.
    pub what: What,
}

/// What a Follow stream carries.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Hints for tasks that are to run again.
    Hints(Arc<Answer>),
    /// Everything else.
    Advice(FollowBody),
}

impl Told {
    pub(super) const fn advice(cause: &'static str, body: FollowBody) -> Self {
        Self { cause, what: What::Advice(body) }
    }
}

/// How often an overloaded or failing daemon tries again, and the wait between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Places what is lost, one after another: a rack that fails must not crowd out requests.
pub(super) async fn run(daemon: Daemon, mut lost: mpsc::UnboundedReceiver<Aside>) {
    while let Some(next) = lost.recv().await {
        if daemon.stopping().is_cancelled() {
            return;
        }
        let Lost { request, cause, node } = match next {
            Aside::Lost(lost) => lost,
            Aside::Round(round) => {
                tokio::spawn(rebalance(daemon.clone(), round)); // nothing lost waits for it
                continue;
            }
        };
        let told = match again(&daemon, &request).await {
            Ok(answer) => {
                tracing::info!(decision_id = %answer.decision.id, attempt = %request.attempt, node = ?node, cause,
                    "tasks were placed anew");
                vec![Told { cause, what: What::Hints(answer) }]
            }
            Err(refusal) if cause == LATE => {
                // They go on waiting, and the engine has told why.
                tracing::debug!(attempt = %request.attempt, %refusal, "what waits found no place otherwise");
                Vec::new()
            }
            Err(refusal) => {
                tracing::warn!(attempt = %request.attempt, node = ?node, cause, %refusal, "lost tasks found no place");
                waits(&request, cause, &refusal)
            }
        };
        for message in told {
            daemon.tell(request.attempt, message);
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
    let search = move |turn: Turn| {
        let policy_of = |request: &HintRequest| {
            let chosen = settings.choose(&request.queue, &request.framework, request.policy.as_deref()).ok();
            let (_, name) = chosen.filter(|(mode, _)| *mode == Mode::On)?;
            settings.policies.built.get(name).map(|policy| (name, Arc::clone(policy)))
        };
        round.search(policy_of, turn.steps(settings.placer.steps), &mut || {
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

async fn again(daemon: &Daemon, request: &Arc<HintRequest>) -> Result<Arc<Answer>, Refusal> {
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

fn waits(request: &HintRequest, cause: &'static str, refusal: &Refusal) -> Vec<Told> {
    let reason: Arc<str> = refusal.token().into();
    let wait = |group: &hintd_model::cluster::TaskGroup| {
        let body =
            FollowBody::NotYet { group: Arc::clone(&group.name), reason: Arc::clone(&reason), expected_wait: None };
        Told::advice(cause, body)
    };
    request.groups.iter().map(wait).collect()
}
