//! The `Placement` service: hints, follow streams, releases, explanations.

use super::codec::of_stream;
use super::connection_permits::ConnectionPermit;
use super::convert;
use super::deadline::{in_time, time_left};
use super::status::{status, status_of};
use crate::feed::events::{bounded_event, task_event};
use crate::runtime::outbox::{Next, Outbox};
use crate::runtime::{Daemon, FollowEvent, FollowPayload, Refused, RequestOptions};
use hintd_client::wire::v1;
use hintd_client::wire::v1::follow_message::Advice;
use hintd_client::wire::v1::placement_server::Placement;
use hintd_engine::{FollowBody, Refusal, Token};
use hintd_model::units::{ApplicationId, AttemptId, DecisionId, LeaseId, Micros};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument as _;

/// The service.
#[derive(Debug, Clone)]
pub struct PlacementService {
    daemon: Daemon,
}

/// Messages that wait for a slow reader beyond those its connection holds; the outbox keeps the rest.
const READ_AHEAD: usize = 16;
/// Who opens a Follow stream says by then who follows.
const FOLLOW_START: Duration = Duration::from_secs(10);

impl PlacementService {
    /// The service of a daemon.
    #[must_use]
    pub const fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }
}

#[tonic::async_trait]
impl Placement for PlacementService {
    async fn request_hints(
        &self,
        request: Request<v1::RequestHintsRequest>,
    ) -> Result<Response<v1::RequestHintsResponse>, Status> {
        let (answer, token) = hints(&self.daemon, request, false).await?;
        Ok(Response::new(v1::RequestHintsResponse { hints: Some(answer), token }))
    }

    type FollowStream = ReceiverStream<Result<v1::FollowMessage, Status>>;

    async fn follow(
        &self,
        request: Request<Streaming<v1::FollowRequest>>,
    ) -> Result<Response<Self::FollowStream>, Status> {
        let place = self.daemon.stream_place().map_err(|refusal| status(&refusal))?;
        let (metadata, _, mut up) = request.into_parts();
        let first = tokio::select! {
            first = first_message(up.message(), FOLLOW_START) => first?,
            () = self.daemon.stopping().cancelled() => return Err(stopping()),
        };
        let start = first.as_ref().and_then(|first| first.start.clone());
        let Some(start) = start else {
            let message = "the first message says who follows".to_owned();
            return Err(status(&Refusal::Invalid { field: "start".to_owned(), message }));
        };
        let attempt = convert::attempt(&start.application_id, start.attempt).map_err(|refusal| status(&refusal))?;
        let token = Token(start.token.as_str().into());
        let outbox = in_time(&self.daemon, &metadata, self.daemon.follow(attempt, token)).await?;
        let (down, messages) = mpsc::channel(READ_AHEAD);
        let events = first.map(|first| first.events).unwrap_or_default();
        let daemon = self.daemon.clone();
        tokio::spawn(async move {
            let _place = place;
            let taken = take_events(&daemon, attempt, up, events);
            let sent = send_advice(&daemon, &outbox, start.resume_after, &down);
            tokio::pin!(sent);
            let ended = tokio::select! {
                () = &mut sent => return,
                ended = taken => ended,
            };
            match ended {
                Some(status) => drop(down.send(Err(status)).await),
                None => sent.await, // it only listens from now on
            }
        });
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let released = async {
            let attempt = convert::attempt(&wire.application_id, wire.attempt)?;
            let leases = wire.lease_ids.iter().copied().map(LeaseId).collect();
            self.daemon.release(attempt, Token(wire.token.as_str().into()), leases).await
        };
        let released = in_time(&self.daemon, &metadata, released).await?;
        let not_held = released.not_held.iter().map(|lease| lease.0).collect();
        Ok(Response::new(v1::ReleaseResponse { released: released.released, not_held }))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let explained = async { super::explain::explain(&self.daemon, &wire.decision_id).await };
        Ok(Response::new(in_time(&self.daemon, &metadata, explained).await?))
    }

    async fn replicas(&self, request: Request<v1::ReplicasRequest>) -> Result<Response<v1::ReplicasResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let daemon = self.daemon.clone();
        let found = async {
            let ask = convert::replicas_ask(&wire)?;
            // Thousands of blocks take a moment: not on a thread that serves sockets.
            let found = tokio::task::spawn_blocking(move || daemon.replicas(&ask));
            found.await.unwrap_or_else(|_| {
                let message = "the advice ended in a panic".to_owned();
                Err(Refusal::Unavailable { message, retry_after: Micros::from_secs(1) })
            })
        };
        let found = in_time(&self.daemon, &metadata, found).await?;
        Ok(Response::new(convert::replicas_found(&found)))
    }
}

/// The one path of a request, for `RequestHints` and `WhatIf`; returns the attempt's token as well.
pub(super) async fn hints(
    daemon: &Daemon,
    request: Request<v1::RequestHintsRequest>,
    what_if: bool,
) -> Result<(v1::HintSet, String), Status> {
    let received = Instant::now();
    let settings = daemon.settings();
    let asker = Asker::of(&request);
    let left = time_left(request.get_ref().deadline_ms, request.metadata(), &settings.placer);
    let deadline = received + left.map_err(|refusal| asker.refused(daemon, &refusal, None))?;
    let wire = request.into_inner();
    let own = daemon.next_decision();
    let span = tracing::info_span!(
        "request",
        request_id = %wire.request_id.chars().take(64).collect::<String>(),
        application = %wire.application_id.chars().take(64).collect::<String>(),
        decision_id = %own,
    );
    let answer = async {
        let core = convert::request(&wire, &settings.limits)?;
        if !what_if {
            daemon.admit(core.attempt.application)?;
        }
        daemon
            .request(core, convert::digest(&wire), own, deadline, RequestOptions { what_if, follows: wire.follows })
            .await
    };
    let answer = async {
        match answer.await {
            Ok(answer) => {
                let decision = &answer.decision;
                if decision.id != own && !what_if {
                    tracing::info!(first = %decision.id, "a repeat: answered as it was then");
                }
                tracing::info!(policy = %decision.policy, hints = decision.hints.len(),
                    without_room = decision.without_room, took = ?received.elapsed(), "answered");
                Ok((convert::hint_set(decision), answer.token.0.to_string()))
            }
            Err(Refused { refusal, recorded }) => {
                tracing::info!(%refusal, took = ?received.elapsed(), "refused");
                Err(asker.refused(daemon, &refusal, recorded.then_some(own)))
            }
        }
    };
    answer.instrument(span).await
}

/// Whose request it is, as far as it is told.
#[derive(Debug, Clone, Copy)]
struct Asker {
    application: Option<ApplicationId>,
    peer: Option<IpAddr>,
}

impl Asker {
    fn of(request: &Request<v1::RequestHintsRequest>) -> Self {
        let peer = request.extensions().get::<ConnectionPermit>().and_then(ConnectionPermit::peer);
        Self { application: request.get_ref().application_id.parse().ok(), peer }
    }

    /// Counts a refused request; returns what it is answered with.
    fn refused(self, daemon: &Daemon, refusal: &Refusal, decision: Option<DecisionId>) -> Status {
        daemon.metrics().refused(refusal.token(), self.application, self.peer);
        status_of(refusal, decision)
    }
}

/// The first message of a stream, if it comes `within` a time.
async fn first_message<M>(
    first: impl Future<Output = Result<Option<M>, Status>>,
    within: Duration,
) -> Result<Option<M>, Status> {
    match tokio::time::timeout(within, first).await {
        Ok(first) => first.map_err(of_stream),
        Err(_) => Err(super::deadline::exceeded(within)),
    }
}

/// Reads an attempt's events until its stream ends; what ended it, if not the attempt itself. An event
/// that makes no sense, or of an attempt whose token was not shown, is counted and dropped.
async fn take_events(
    daemon: &Daemon,
    own: AttemptId,
    mut up: Streaming<v1::FollowRequest>,
    mut events: Vec<v1::TaskEvent>,
) -> Option<Status> {
    loop {
        for wire in events {
            let event = bounded_event(&wire, daemon.registries().limits());
            let event = event.and_then(|()| task_event(wire, daemon.clock().now()));
            let event = event.map_err(|refusal| refusal.to_string());
            let event = event.and_then(|event| match event.attempt {
                attempt if attempt == own => Ok(event),
                attempt => {
                    daemon.metrics().add("events_of_another_attempt", 1);
                    Err(format!("an event of {attempt} on the stream of {own}"))
                }
            });
            match event {
                Ok(event) => {
                    if daemon.event(event).await.is_err() {
                        return Some(stopping());
                    }
                }
                Err(refusal) => {
                    daemon.metrics().add("events_refused", 1);
                    tracing::debug!(%refusal, "a task event was dropped");
                }
            }
        }
        events = match up.message().await {
            Ok(Some(next)) => next.events,
            Ok(None) => return None,
            Err(error) => return Some(of_stream(error)),
        };
    }
}

/// Sends what the outbox holds after `seen`, and what comes, until either side ends.
async fn send_advice(
    daemon: &Daemon,
    outbox: &Outbox<FollowEvent>,
    mut seen: u64,
    down: &mpsc::Sender<Result<v1::FollowMessage, Status>>,
) {
    let mut changes = outbox.changes();
    loop {
        let message = match outbox.after(seen) {
            Next::Message(number, told) => {
                seen = number;
                follow_message(number, &told)
            }
            Next::Gap(first_kept) => {
                seen = first_kept - 1;
                let gap = Advice::Gap(v1::Gap { first_kept });
                v1::FollowMessage { number: seen, advice: Some(gap), cause: "gap".to_owned() }
            }
            Next::Ended => return,
            Next::Wait => {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = daemon.stopping().cancelled() => {
                        let _ = down.try_send(Err(stopping()));
                        return;
                    }
                    () = daemon.engine_ended().cancelled() => {
                        let _ = down.try_send(Err(stopping()));
                        return;
                    }
                    () = down.closed() => return,
                }
                continue;
            }
        };
        tokio::select! {
            sent = down.send(Ok(message)) => if sent.is_err() { return },
            () = daemon.stopping().cancelled() => return,
        }
    }
}

fn follow_message(number: u64, told: &FollowEvent) -> v1::FollowMessage {
    let advice = match &told.what {
        FollowPayload::Hints(answer) => Advice::Hints(convert::hint_set(&answer.decision)),
        FollowPayload::Advice(FollowBody::NotYet { group, reason, expected_wait }) => Advice::NotYet(v1::NotYet {
            group: group.to_string(),
            reason: reason.to_string(),
            expected_wait_ms: expected_wait.map(Micros::as_millis),
        }),
        FollowPayload::Advice(FollowBody::Withdraw { leases, host, reason }) => Advice::Withdraw(v1::Withdrawal {
            lease_ids: leases.iter().map(|lease| lease.0).collect(),
            host: host.to_string(),
            reason: (*reason).to_owned(),
        }),
        FollowPayload::Advice(FollowBody::StartShuffle { from_rack, to_rack, reason, gathered, threshold }) => {
            Advice::StartShuffle(v1::StartShuffle {
                from_rack: from_rack.to_string(),
                to_rack: to_rack.to_string(),
                reason: (*reason).to_owned(),
                gathered_bytes: gathered.0,
                threshold_bytes: threshold.map_or(0, |threshold| threshold.0),
            })
        }
        FollowPayload::Advice(FollowBody::WaitShuffle { from_rack, to_rack, latest, reason, gathered, threshold }) => {
            Advice::WaitShuffle(v1::WaitShuffle {
                from_rack: from_rack.to_string(),
                to_rack: to_rack.to_string(),
                latest_ms: latest.as_millis(),
                reason: reason.to_string(),
                gathered_bytes: gathered.0,
                threshold_bytes: threshold.map_or(0, |threshold| threshold.0),
            })
        }
        FollowPayload::Advice(FollowBody::Move { container, to, gain, chain }) => Advice::Move(v1::MoveAdvice {
            container_id: container.to_string(),
            to_host: to.to_string(),
            gain: *gain,
            chain: chain.to_string(),
        }),
        FollowPayload::Advice(FollowBody::Chain { chain, pairs }) => {
            Advice::Chain(v1::ChainState { chain: chain.to_string(), pairs: *pairs })
        }
    };
    v1::FollowMessage { number, advice: Some(advice), cause: told.cause.to_owned() }
}

/// What ends a stream when the daemon does.
pub(super) fn stopping() -> Status {
    let message = "the daemon is shutting down".to_owned();
    status(&Refusal::Unavailable { message, retry_after: Micros::from_secs(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_follower_that_never_says_who_it_is_is_sent_away() {
        let silent = std::future::pending::<Result<Option<()>, Status>>();
        let status = first_message(silent, Duration::from_millis(2)).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        assert_eq!(first_message(async { Ok(Some(7)) }, FOLLOW_START).await.unwrap(), Some(7));
    }
}
