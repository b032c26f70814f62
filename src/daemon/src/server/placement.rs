//! The `Placement` service: hints, follow streams, releases, explanations.

use super::codec::of_stream;
use super::connection_permits::ConnectionPermit;
use super::convert;
use super::deadline::{in_time, time_left};
use super::status::{status, status_of};
use crate::feed::events::{bounded_event, task_event};
use crate::runtime::outbox::{Next, Outbox};
use crate::runtime::{
    Daemon, FollowEvent, FollowPayload, Line, Refused, RequestAnswer, RequestOptions, RequestPermit, UnpackPermit,
    proof,
};
use crate::telemetry::spans::RequestSpan;
use hintd_client::wire::v1;
use hintd_client::wire::v1::follow_message::Advice;
use hintd_client::wire::v1::placement_server::Placement;
use hintd_engine::{Decision, FollowBody, Proof, Refusal};
use hintd_model::cluster::HintRequest;
use hintd_model::text::Shown;
use hintd_model::units::{ApplicationId, AttemptId, DecisionId, LeaseId, Micros, RequestId};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status, Streaming};
use tracing::{Instrument as _, Span};

/// The service.
#[derive(Debug, Clone)]
pub struct PlacementService {
    daemon: Daemon,
}

/// Messages that wait for a slow reader beyond those its connection holds, as the outbox has them; it keeps the rest.
const READ_AHEAD: usize = 16;
/// Of a request's id and an application's so much is shown in every line of log about it.
const SHOWN: usize = 64;
/// The calls that come to [`hints`], as OpenTelemetry names them.
const REQUEST_HINTS: &str = "hintd.v1.Placement/RequestHints";
const WHAT_IF: &str = "hintd.v1.Admin/WhatIf";
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
        let Answered { hints, token, repeat, permit } = hints(&self.daemon, request, false).await?;
        let (is_repeat, leases) = (repeat.is_some(), repeat.unwrap_or_default());
        let mut response = Response::new(v1::RequestHintsResponse { hints: Some(hints), token, is_repeat, leases });
        permit.map(|permit| response.extensions_mut().insert(permit));
        Ok(response)
    }

    type FollowStream = Pin<Box<dyn Stream<Item = Result<v1::FollowMessage, Status>> + Send>>;

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
        let shown = proof(&start.token, &start.nonce).map_err(|refusal| status(&refusal))?;
        let outbox = in_time(&self.daemon, &metadata, self.daemon.follow(attempt, shown)).await?;
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
        // Made when it is to be sent: what waits for a slow reader is the outbox's own.
        let messages = ReceiverStream::new(messages).map(|message| Ok(message?.into_wire()));
        Ok(Response::new(Box::pin(messages)))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let released = async {
            let attempt = convert::attempt(&wire.application_id, wire.attempt)?;
            let leases = wire.lease_ids.iter().copied().map(LeaseId).collect();
            self.daemon.release(attempt, proof(&wire.token, &wire.nonce)?, leases).await
        };
        let released = in_time(&self.daemon, &metadata, released).await?;
        let not_held = released.not_held.iter().map(|lease| lease.0).collect();
        Ok(Response::new(v1::ReleaseResponse { released: released.released, not_held }))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let explained = async {
            let shown = proof(&wire.token, &wire.nonce)?;
            super::explain::explain(&self.daemon, &wire.decision_id, &shown).await
        };
        Ok(in_time(&self.daemon, &metadata, explained).await?)
    }

    async fn shuffle_turn(
        &self,
        request: Request<v1::ShuffleTurnRequest>,
    ) -> Result<Response<v1::ShuffleTurnResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let asked = async {
            let (queue, wish) = convert::shuffle_wish(&wire)?;
            self.daemon.shuffle_turn(&queue, wish, proof(&wire.token, &wire.nonce)?).await
        };
        let found = in_time(&self.daemon, &metadata, asked).await?;
        Ok(Response::new(convert::shuffle_turn(found)))
    }

    async fn replicas(&self, request: Request<v1::ReplicasRequest>) -> Result<Response<v1::ReplicasResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async { self.daemon.replicas(convert::replicas_ask(&wire)?, convert::replicas_found).await };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn input_homes(
        &self,
        request: Request<v1::InputHomesRequest>,
    ) -> Result<Response<v1::InputHomesResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let asked = async {
            let question = convert::input_homes_question(&wire)?;
            self.daemon.input_homes(question, proof(&wire.token, &wire.nonce)?).await
        };
        Ok(Response::new(convert::input_homes(&in_time(&self.daemon, &metadata, asked).await?)))
    }

    async fn resolve_racks(
        &self,
        request: Request<v1::ResolveRacksRequest>,
    ) -> Result<Response<v1::ResolveRacksResponse>, Status> {
        let racks = self.daemon.racks_said(&request.get_ref().hosts).map_err(|refusal| status(&refusal))?;
        Ok(Response::new(v1::ResolveRacksResponse { racks }))
    }
}

/// A request's answer.
pub(super) struct Answered {
    pub(super) hints: v1::HintSet,
    /// The attempt's.
    token: String,
    /// Of a repeat of a request that was answered before: what became of its leases.
    repeat: Option<Vec<v1::LeaseState>>,
    /// Held until it is encoded.
    permit: Option<UnpackPermit>,
}

/// The one path of a request, for `RequestHints` and `WhatIf`.
pub(super) fn hints(
    daemon: &Daemon,
    request: Request<v1::RequestHintsRequest>,
    what_if: bool,
) -> impl Future<Output = Result<Answered, Status>> + Send {
    let received = Instant::now();
    let spanned = daemon.spans().begin(if what_if { WHAT_IF } else { REQUEST_HINTS }, received, request.metadata());
    // Not within the future: it would have room for the message until the answer is there, and for each step that takes it.
    let begun = Call::begin(daemon, request, what_if, (received, spanned.clone()));
    async move {
        let (call, asked) = begun.inspect_err(|status| spanned.answered(status.code()))?;
        let answer = match asked {
            Ok(asked) => call.answer(daemon, asked).instrument(call.span.clone()).await,
            Err(refused) => Err(refused),
        };
        let answered = call.span.in_scope(|| call.answered(daemon, answer));
        spanned.answered(answered.as_ref().map_or_else(Status::code, |_| Code::Ok));
        answered
    }
}

/// A well-formed request on its way.
struct Call {
    asker: Asker,
    received: Instant,
    deadline: Instant,
    /// Of its decision, if it is decided now.
    own: DecisionId,
    what_if: bool,
    line: Line,
    /// Of the lines that it logs.
    span: Span,
    /// For who collects traces.
    traced: RequestSpan,
}

/// What is asked, of one that its application may ask.
struct Asked {
    request: Arc<HintRequest>,
    digest: u64,
    options: RequestOptions,
    under_way: RequestPermit,
}

impl Call {
    fn begin(
        daemon: &Daemon,
        request: Request<v1::RequestHintsRequest>,
        what_if: bool,
        (received, traced): (Instant, RequestSpan),
    ) -> Result<(Self, Result<Asked, Refused>), Status> {
        let settings = daemon.settings();
        let asker = Asker::of(&request);
        let left = time_left(request.get_ref().deadline_ms, request.metadata(), &settings.placer);
        let deadline = received + left.map_err(|refusal| asker.refused(daemon, &refusal, None))?;
        let wire = request.into_inner();
        let own = daemon.next_decision();
        // Before it is known to be well-formed, nothing of it goes to the log but what is wrong with it, escaped.
        let core = convert::request(&wire, &settings.limits);
        let application = core.as_ref().ok().map(|core| core.attempt.application);
        let line = daemon.request_line(application, asker.peer);
        let core = core.map_err(|refusal| {
            if line.is_due() {
                // Without an id of a decision: nothing is kept of it that could be found by one.
                tracing::info!(refusal = %Shown(&refusal), "refused: the request is not well-formed");
                tell_left_out(line);
            }
            asker.refused(daemon, &refusal, None)
        })?;
        let span = match &line {
            Line::Due { .. } => tracing::info_span!(
                "request",
                request_id = %shown(&core.id),
                application = %core.attempt.application,
                decision_id = %own,
                trace_id = tracing::field::Empty,
            ),
            Line::LeftOut => Span::none(),
        };
        if let Some(id) = traced.trace_id() {
            span.record("trace_id", id);
            traced.text("hintd.request.id", shown(&core.id));
            traced.text("hintd.application.id", core.attempt.application);
            traced.text("hintd.queue", Shown(&core.queue));
            traced.text("hintd.decision.id", own);
        }
        let call = Self { asker, received, deadline, own, what_if, line, span, traced };
        let asked = call.span.in_scope(|| call.admit(daemon, core, wire));
        Ok((call, asked))
    }

    fn admit(&self, daemon: &Daemon, core: HintRequest, wire: v1::RequestHintsRequest) -> Result<Asked, Refused> {
        tell_left_out(self.line);
        let request = Arc::new(core);
        let entered = self.enter(daemon, request.attempt.application);
        // What the log has a line about can be found; more would make a flood that a limit keeps off costly again.
        let under_way = entered.map_err(|refusal| match self.line.is_due() && !self.what_if {
            true => daemon.refused_early(&request, self.own, refusal),
            false => refusal.into(),
        })?;
        let proof = proof(&wire.token, &wire.nonce)?;
        let options = RequestOptions { what_if: self.what_if, follows: wire.follows, proof, span: self.traced.clone() };
        Ok(Asked { request, digest: convert::digest(wire), options, under_way })
    }

    fn enter(&self, daemon: &Daemon, application: ApplicationId) -> Result<RequestPermit, Refusal> {
        if !self.what_if {
            daemon.admit(application)?;
        }
        daemon.enter(application)
    }

    async fn answer(&self, daemon: &Daemon, asked: Asked) -> Result<RequestAnswer, Refused> {
        let Asked { request, digest, options, under_way: _under_way } = asked;
        let application = request.attempt.application;
        let answer = daemon.request(request, digest, self.own, self.deadline, options).await;
        // Else a stranger could use up what the application may ask for.
        if let Err(Refused { refusal, .. }) = &answer
            && refusal.is_a_strangers()
            && !self.what_if
        {
            daemon.give_back(application);
        }
        answer
    }

    fn answered(&self, daemon: &Daemon, answer: Result<RequestAnswer, Refused>) -> Result<Answered, Status> {
        match answer {
            Ok(RequestAnswer { answer, repeat, permit }) => {
                let decision = &answer.decision;
                let first = (decision.id != self.own && !self.what_if).then_some(decision.id);
                if self.line.is_due() {
                    if let Some(first) = first {
                        tracing::info!(%first, "a repeat: answered as it was then");
                    }
                    tracing::info!(policy = %decision.policy, mode = decision.mode.as_str(), hints = decision.hints.len(),
                        without_room = decision.without_room, took = ?self.received.elapsed(), "answered");
                }
                self.note(decision, first);
                let repeat = repeat.map(|leases| convert::lease_states(&leases));
                Ok(Answered { hints: convert::hint_set(decision), token: answer.token.0.to_string(), repeat, permit })
            }
            Err(Refused { refusal, recorded, .. }) => {
                if self.line.is_due() {
                    tracing::info!(refusal = %Shown(&refusal), took = ?self.received.elapsed(), "refused");
                }
                self.traced.text("hintd.refusal", refusal.token());
                Err(self.asker.refused(daemon, &refusal, recorded.then_some(self.own)))
            }
        }
    }

    /// What it came to, for its span; of a repeat, which decision was the first.
    fn note(&self, decision: &Decision, first: Option<DecisionId>) {
        self.traced.text("hintd.policy", &decision.policy);
        self.traced.count("hintd.hints", decision.hints.len() as u64);
        self.traced.count("hintd.steps", decision.steps);
        if let Some(first) = first {
            self.traced.text("hintd.decision.first", first);
        }
    }
}

/// Says what was left out before this line: of its application, or of requests that name none, and of peers.
fn tell_left_out(line: Line) {
    let Line::Due { left_out, of_peers } = line else { return };
    if left_out > 0 {
        tracing::info!(left_out, "lines about such requests were left out (limits.log_lines_per_s)");
    }
    if of_peers > 0 {
        tracing::info!(
            left_out = of_peers,
            "lines about requests of peers were left out (5 times limits.log_lines_per_s for each peer)"
        );
    }
}

/// The beginning of a request's id.
fn shown(id: &RequestId) -> Shown<String> {
    Shown(id.as_str().chars().take(SHOWN).collect())
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
                    // The stream began with what shows that it is the attempt's.
                    if daemon.event(event, Proof::Trusted).await.is_err() {
                        return Some(stopping());
                    }
                }
                Err(refusal) => {
                    daemon.metrics().add("events_refused", 1);
                    tracing::debug!(refusal = %Shown(refusal), "a task event was dropped");
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

/// A message on its way to a follower.
enum FollowItem {
    /// The outbox's own, under its number.
    Event(u64, Arc<FollowEvent>),
    /// Numbers before this one are gone.
    Gap { first_kept: u64 },
}

impl FollowItem {
    fn into_wire(self) -> v1::FollowMessage {
        match self {
            Self::Event(number, told) => follow_message(number, &told),
            Self::Gap { first_kept } => v1::FollowMessage {
                number: first_kept - 1,
                advice: Some(Advice::Gap(v1::Gap { first_kept })),
                cause: "gap".to_owned(),
            },
        }
    }
}

/// Sends what the outbox holds after `seen`, and what comes, until either side ends.
async fn send_advice(
    daemon: &Daemon,
    outbox: &Outbox<FollowEvent>,
    mut seen: u64,
    down: &mpsc::Sender<Result<FollowItem, Status>>,
) {
    let mut changes = outbox.changes();
    loop {
        let message = match outbox.after(seen) {
            Next::Message(number, told) => {
                seen = number;
                FollowItem::Event(number, told)
            }
            Next::Gap(first_kept) => {
                seen = first_kept - 1;
                FollowItem::Gap { first_kept }
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
        FollowPayload::Advice(FollowBody::Move(note)) => Advice::Move(convert::move_advice(note)),
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
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert_eq!(first_message(async { Ok(Some(7)) }, FOLLOW_START).await.unwrap(), Some(7));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_takes_little_memory_while_it_waits() {
        let (_folder, running) = crate::runtime::tests::running().await;
        let call = hints(&running.daemon, Request::new(v1::RequestHintsRequest::default()), false);
        // Whatever takes a message, a request or a proposal by value has room for one of its own until it ends.
        assert!(size_of_val(&call) <= 4_096, "{} bytes", size_of_val(&call));
        drop(call);
        running.shutdown().await.unwrap();
    }
}
