//! Applications that ask at a steady rate and then live as applications do: run, give back, or vanish.

use super::super::Attempts;
use super::SoakArgs;
use super::nodes::{CONTAINER_MB, Cluster, PRIORITY};
use super::windows::Recorder;
use crate::emulate::cluster::resource;
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError, FeedSender};
use hintd_model::units::{AttemptId, ContainerId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::Instant;

/// Requests under way; what is due beyond them is counted, not sent, so that the client's memory stays bounded.
const UNDER_WAY: usize = 10_000;
/// A timer wakes so late by itself; what is later counts as the request's latency.
const TIMER: Duration = Duration::from_millis(2);
/// Of so many applications ...
const KINDS: u32 = 8;
/// ... this many vanish ...
const VANISH: u32 = 1;
/// ... and this many give back.
const GIVE_BACK: u32 = 2;
/// A feed that broke is opened anew after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Load {
    rate: f64,
    connections: u32,
    gang: u32,
    policy: String,
    run: Duration,
    begin: Instant,
    attempts: Attempts,
    under_way: Arc<Semaphore>,
    cluster: Arc<Cluster>,
    done: Sender<AttemptId>,
    recorder: Arc<Recorder>,
}

impl Load {
    /// Begins now.
    pub(super) fn new(
        args: &SoakArgs,
        cluster: Arc<Cluster>,
        done: Sender<AttemptId>,
        recorder: Arc<Recorder>,
    ) -> Self {
        Self {
            rate: args.requests,
            connections: args.connections,
            gang: args.gang,
            policy: args.policy.clone(),
            run: Duration::from_secs(args.run),
            begin: Instant::now(),
            attempts: Attempts::begin(),
            under_way: Arc::new(Semaphore::new(UNDER_WAY)),
            cluster,
            done,
            recorder,
        }
    }

    fn request(&self, attempt: AttemptId) -> v1::RequestHintsRequest {
        v1::RequestHintsRequest {
            request_id: attempt.to_string(),
            application_id: attempt.application.to_string(),
            attempt: attempt.attempt,
            queue: "default".to_owned(),
            user: "soak".to_owned(),
            groups: vec![v1::TaskGroup {
                name: "worker".to_owned(),
                count: self.gang,
                resource: Some(resource(CONTAINER_MB, 1)),
                priority: PRIORITY,
                ..v1::TaskGroup::default()
            }],
            policy: self.policy.clone(),
            ..v1::RequestHintsRequest::default()
        }
    }
}

/// One connection's requests, each begun when it is due whatever became of those before.
pub(super) async fn offer(load: Arc<Load>, client: Client, number: u32) {
    let gap = f64::from(load.connections) / load.rate;
    for turn in 0_u64.. {
        let after = gap * (turn as f64 + f64::from(number) / f64::from(load.connections));
        let intended = load.begin + Duration::from_secs_f64(after);
        tokio::time::sleep_until(intended).await;
        let late = intended.elapsed();
        let from = if late <= TIMER { intended + late } else { intended };
        match Arc::clone(&load.under_way).try_acquire_owned() {
            Ok(place) => {
                let (load, client) = (Arc::clone(&load), client.clone());
                tokio::spawn(async move {
                    let attempt = load.attempts.next();
                    let answer = ask(&load, &client, attempt, from).await;
                    drop(place);
                    if let Some(answer) = answer {
                        live(&load, &client, attempt, answer).await;
                    }
                });
            }
            Err(_) => load.recorder.unsent(),
        }
    }
}

async fn ask(load: &Load, client: &Client, attempt: AttemptId, from: Instant) -> Option<v1::RequestHintsResponse> {
    match client.request_hints_once(load.request(attempt)).await {
        Ok(answer) => {
            load.recorder.answered(from.elapsed());
            Some(answer)
        }
        Err(error) => {
            load.recorder.refused(error.cause().as_str());
            None
        }
    }
}

/// What an application does with its answer.
async fn live(load: &Load, client: &Client, attempt: AttemptId, answer: v1::RequestHintsResponse) {
    match attempt.application.sequence % KINDS {
        kind if kind < VANISH => {}
        kind if kind < VANISH + GIVE_BACK => {
            let request = v1::ReleaseRequest {
                application_id: attempt.application.to_string(),
                attempt: attempt.attempt,
                token: answer.token,
                lease_ids: Vec::new(),
                nonce: Vec::new(),
            };
            let _ = client.release(request).await; // what can't be released ends at its time-to-live
        }
        _ => {
            let until = Instant::now() + load.run;
            let mut id = 1;
            for hint in answer.hints.iter().flat_map(|set| &set.hints) {
                for _ in 0..hint.count {
                    id += 1;
                    load.cluster.start(&hint.host, ContainerId { attempt, id }.to_string(), until);
                }
            }
            tokio::time::sleep_until(until).await;
            let _ = load.done.send(attempt).await; // its receiver goes only at the soak's end
        }
    }
}

/// Tells the daemon of applications that ended, until it is aborted.
pub(super) async fn tell_ends(client: Client, mut ended: Receiver<AttemptId>) {
    loop {
        let _ = stream_ends(&client, &mut ended).await; // those in between end by their leases' time
        tokio::time::sleep(AGAIN).await;
    }
}

async fn stream_ends(client: &Client, ended: &mut Receiver<AttemptId>) -> Result<(), ClientError> {
    let hello = v1::FeedHello { source: "soak".to_owned(), ..v1::FeedHello::default() };
    let mut feed: FeedSender<v1::EventItem> = client.feed(hello).await?;
    loop {
        tokio::select! {
            ack = feed.ack() => drop(ack?),
            attempt = ended.recv() => {
                let Some(attempt) = attempt else { return std::future::pending().await };
                let event = v1::TaskEvent {
                    application_id: attempt.application.to_string(),
                    attempt: attempt.attempt,
                    what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
                    ..v1::TaskEvent::default()
                };
                feed.send(v1::EventItem { number: 0, item: Some(v1::event_item::Item::Event(event)) }).await?;
            }
        }
    }
}
