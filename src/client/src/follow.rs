//! Following an attempt: one stream, or as many as it takes.

use super::decisions::Decisions;
use super::error::{Cause, ClientError};
use super::retry::{FIRST_PAUSE, LONGEST_PAUSE, jittered};
use super::{Client, retry};
use crate::wire::v1;
use crate::wire::v1::placement_client::PlacementClient;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Messages that may be under way before a sender waits.
const UNDER_WAY: usize = 64;
/// Events kept while no stream stands; beyond it the oldest go: the daemon learns of containers from heartbeats, too.
const EVENTS_KEPT: usize = 4_096;
/// How long the daemon has to end its side of a stream after the last event.
const FAREWELL: Duration = Duration::from_secs(1);

/// One follow stream. Dropping it ends the stream; the attempt's messages are kept for a time.
#[derive(Debug)]
pub struct Following {
    events: mpsc::Sender<v1::FollowRequest>,
    advice: Streaming<v1::FollowMessage>,
    application_id: String,
    decisions: Decisions,
}

impl Following {
    pub(super) async fn start(
        mut client: PlacementClient<Channel>,
        start: v1::FollowStart,
        decisions: Decisions,
    ) -> Result<Self, Status> {
        let application_id = start.application_id.clone();
        let (events, stream) = mpsc::channel(UNDER_WAY);
        let first = v1::FollowRequest { start: Some(start), events: Vec::new() };
        events.try_send(first).expect("the queue is empty and its reader is here");
        let advice = client.follow(ReceiverStream::new(stream)).await?.into_inner();
        Ok(Self { events, advice, application_id, decisions })
    }

    /// Tells what happened to tasks.
    ///
    /// # Errors
    /// [`ClientError::Ended`]: follow again.
    pub async fn tell(&mut self, events: Vec<v1::TaskEvent>) -> Result<(), ClientError> {
        self.events.send(v1::FollowRequest { start: None, events }).await.map_err(|_| ClientError::Ended)
    }

    /// The next advice.
    ///
    /// # Errors
    /// [`ClientError::Ended`]; [`ClientError::Refused`] with UNAVAILABLE when the daemon restarts: follow
    /// again after the last number seen.
    pub async fn next(&mut self) -> Result<v1::FollowMessage, ClientError> {
        let message = self.advice.message().await?.ok_or(ClientError::Ended)?;
        self.decisions.note_pushed(&message, &self.application_id);
        Ok(message)
    }
}

/// Follows an attempt over broken connections and restarts of the daemon: after each, from the last number on.
///
/// A message with `gap` says that advice was lost: ask for hints again. Events that were on their way when a stream
/// broke may be lost. Dropping it lets what was told leave first.
#[derive(Debug)]
pub struct Follower {
    told: mpsc::Sender<Vec<v1::TaskEvent>>,
    advice: mpsc::Receiver<Result<v1::FollowMessage, ClientError>>,
}

impl Follower {
    pub(super) fn start(client: Client, start: v1::FollowStart, patience: Duration) -> Self {
        let (told, events) = mpsc::channel(UNDER_WAY);
        let (down, advice) = mpsc::channel(UNDER_WAY);
        let kept = VecDeque::new();
        tokio::spawn(FollowTask { client, start, patience, events, kept, hung_up: false, down }.run());
        Self { told, advice }
    }

    /// Tells what happened to tasks. While the daemon is away the newest few thousand events are kept for it.
    ///
    /// # Errors
    /// [`ClientError::Ended`]: [`Self::next`] says why.
    pub async fn tell(&mut self, events: Vec<v1::TaskEvent>) -> Result<(), ClientError> {
        self.told.send(events).await.map_err(|_| ClientError::Ended)
    }

    /// The next advice. To drop this future loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Ended`] when the attempt is over; [`ClientError::Refused`], as for a token that is not the
    /// attempt's; [`ClientError::OutOfTime`] when the daemon stayed away for all the patience there was.
    pub async fn next(&mut self) -> Result<v1::FollowMessage, ClientError> {
        self.advice.recv().await.unwrap_or(Err(ClientError::Ended))
    }
}

/// The task behind a [`Follower`]. It keeps taking events in, so that who tells is never held up by who is away.
struct FollowTask {
    client: Client,
    /// Where to go on.
    start: v1::FollowStart,
    patience: Duration,
    events: mpsc::Receiver<Vec<v1::TaskEvent>>,
    kept: VecDeque<v1::TaskEvent>,
    /// The [`Follower`] is gone.
    hung_up: bool,
    down: mpsc::Sender<Result<v1::FollowMessage, ClientError>>,
}

/// Why a stream is no more.
enum End {
    /// The daemon ended it in order: the attempt is over, or the daemon is about to go.
    InOrder,
    Broken(Status),
    HungUp,
}

impl FollowTask {
    async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut in_order = false;
        loop {
            let stream = match self.open().await {
                Ok(stream) => stream,
                // After an end in order, that the attempt is not known says that it is over.
                Err(ClientError::Refused { .. }) if in_order => return self.end(ClientError::Ended).await,
                Err(error) => return self.end(error).await,
            };
            let stood = Instant::now();
            in_order = match self.carry(stream).await {
                End::InOrder => true,
                End::Broken(status) if Cause::of(&status).may_pass() => false,
                End::Broken(status) => return self.end(status.into()).await,
                End::HungUp => return,
            };
            if self.hung_up {
                return;
            }
            if stood.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn end(&self, why: ClientError) {
        let _ = self.down.send(Err(why)).await; // who hung up does not want to know
    }

    /// A stream, after at most so much patience.
    async fn open(&mut self) -> Result<Following, ClientError> {
        let placement = self.client.placement();
        let (start, decisions) = (self.start.clone(), self.client.decisions.clone());
        let until = Instant::now() + self.patience;
        let opening = retry::until(until, |_| Following::start(placement.clone(), start.clone(), decisions.clone()));
        tokio::pin!(opening);
        loop {
            tokio::select! {
                opened = &mut opening => return opened,
                events = self.events.recv(), if !self.hung_up => match events {
                    Some(events) => keep(&mut self.kept, events),
                    // What was told last is still worth a stream.
                    None if self.kept.is_empty() => return Err(ClientError::Ended),
                    None => self.hung_up = true,
                },
            }
        }
    }

    /// Carries events up and advice down until either end is gone.
    async fn carry(&mut self, stream: Following) -> End {
        let Following { events, mut advice, application_id, decisions } = stream;
        let mut up = Some(events);
        let mut next = None;
        let farewell = tokio::time::sleep(FAREWELL);
        tokio::pin!(farewell);
        loop {
            if let Some(sender) = &up
                && !self.kept.is_empty()
            {
                let events = self.kept.drain(..).collect();
                // A stream that is gone says so on its way down.
                let _ = sender.send(v1::FollowRequest { start: None, events }).await;
            }
            if self.hung_up && up.take().is_some() {
                farewell.as_mut().reset(tokio::time::Instant::now() + FAREWELL);
            }
            tokio::select! {
                place = self.down.reserve(), if next.is_some() => match (place, next.take()) {
                    (Ok(place), Some(message)) => place.send(Ok(message)),
                    _ => next = None,
                },
                message = advice.message(), if next.is_none() => match message {
                    Ok(Some(message)) => {
                        self.start.resume_after = message.number;
                        decisions.note_pushed(&message, &application_id);
                        next = Some(message).filter(|_| !self.hung_up);
                    }
                    Ok(None) => return End::InOrder,
                    Err(status) => return End::Broken(status),
                },
                events = self.events.recv(), if !self.hung_up => match events {
                    Some(events) => keep(&mut self.kept, events),
                    None => {
                        self.hung_up = true;
                        next = None;
                    }
                },
                () = &mut farewell, if self.hung_up => return End::HungUp,
            }
        }
    }
}

fn keep(kept: &mut VecDeque<v1::TaskEvent>, events: Vec<v1::TaskEvent>) {
    kept.extend(events);
    let surplus = kept.len().saturating_sub(EVENTS_KEPT);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_events_the_newest_are_kept() {
        let mut kept = VecDeque::new();
        let event = |task: usize| v1::TaskEvent { task: task.to_string(), ..v1::TaskEvent::default() };
        for task in 0..EVENTS_KEPT + 2 {
            keep(&mut kept, vec![event(task)]);
        }
        assert_eq!((kept.len(), kept[0].task.as_str()), (EVENTS_KEPT, "2"));
    }
}
