//! One document a second for all browsers, made only while one listens, and the hour before.
//!
//! What it costs is bounded whatever browsers do: a document is made once for all of them, and after it a pause of 20 times
//! what it took is made, a second at least.

use super::alerts::{AlertBook, AlertBrief, AlertsDocument};
use super::history::{EVERY, History, Point, RATES};
use crate::runtime::{Daemon, EngineReport};
use crate::server::page;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::process;
use axum::body::Bytes;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

/// Time between two documents.
const PACE: Duration = Duration::from_secs(1);
/// And of the time that one takes so many times as a pause...
const PAUSE: u32 = 20;
/// ... but no more than this: what waited for a busy daemon took no processor, and a browser takes 5 s of silence for a
/// daemon that is gone (`assets/state.mjs`).
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// An event stream ends after this long, before its connection does (`listener`); the browser comes again at once.
const STREAM_LIFE: Duration = Duration::from_secs(25);
/// A document that is being sent then has this long.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The latest document as an event, and the hour.
#[derive(Debug)]
pub(super) struct Live {
    daemon: Daemon,
    /// For documents on demand as well.
    pub(super) links: Arc<page::RecentLinks>,
    metrics: Metrics,
    latest: watch::Sender<Bytes>,
    /// Somebody came.
    wanted: Notify,
    places: Arc<Semaphore>,
    history: Mutex<History>,
    alerts: Mutex<AlertBook>,
}

/// What an event has.
#[derive(Debug, Serialize)]
struct Event {
    #[serde(flatten)]
    document: page::PageDocument,
    /// Alerts that fire, as far as the daemon judges them itself; of the last look, which is 10 s old at most.
    firing: Vec<AlertBrief>,
}

impl Live {
    /// Of a daemon; `streams`: browsers that may listen at one time.
    pub(super) fn new(daemon: Daemon, metrics: Metrics, streams: usize) -> Self {
        let places = Arc::new(Semaphore::new(streams));
        Self {
            daemon,
            links: Arc::default(),
            metrics,
            latest: watch::Sender::new(Bytes::new()),
            wanted: Notify::new(),
            places,
            history: Mutex::default(),
            alerts: Mutex::new(AlertBook::new()),
        }
    }

    /// The hour as JSON, with that of one link.
    pub(super) async fn history(self: &Arc<Self>, link: Option<String>) -> Option<String> {
        let live = Arc::clone(self);
        let text = tokio::task::spawn_blocking(move || {
            let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
            serde_json::to_string(&history.document(link.as_deref()))
        });
        text.await.ok()?.ok()
    }

    /// Alerts as they are now, as JSON.
    pub(super) async fn alerts_now(self: &Arc<Self>) -> Option<String> {
        let live = Arc::clone(self);
        let text = tokio::task::spawn_blocking(move || {
            let exported = live.metrics.render();
            let document: AlertsDocument = live.alerts().document(&exported, live.daemon.clock().now().as_millis());
            serde_json::to_string(&document)
        });
        text.await.ok()?.ok()
    }

    fn alerts(&self) -> MutexGuard<'_, AlertBook> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes documents while somebody listens, until the daemon stops.
    pub(super) async fn make(self: Arc<Self>) {
        loop {
            if self.latest.receiver_count() == 0 {
                self.wanted.notified().await;
                continue;
            }
            let began = Instant::now();
            if let Some(event) = self.event().await {
                self.latest.send_replace(event);
            }
            tokio::time::sleep(PACE.max((began.elapsed() * PAUSE).min(PAUSE_MAX))).await;
        }
    }

    /// The document as an event; `None`: the daemon stops.
    async fn event(&self) -> Option<Bytes> {
        let document = page::page_document(&self.daemon, &self.links).await.ok()?;
        let firing = self.alerts().firing(document.at_ms);
        let event = Event { document, firing };
        let text = tokio::task::spawn_blocking(move || serde_json::to_string(&event)).await.ok()?.ok()?;
        // JSON has its line ends escaped: one line of data.
        Some(Bytes::from(format!("data: {text}\n\n")))
    }

    /// Adds a point now and then, whether somebody listens or not.
    pub(super) async fn remember(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Ok(report) = self.daemon.engine_report().await else { return };
            let live = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || {
                let point = point(&live.daemon, &report);
                live.alerts().look(&live.metrics.render(), point.at_ms);
                live.history.lock().unwrap_or_else(PoisonError::into_inner).add(point);
            });
            drop(looked.await); // a panic is told by its hook, and the next look is another one
        }
    }

    /// A stream of documents for one browser, whose connection ends then; `None`: all places are taken.
    pub(super) fn listen(
        &self,
        ends: Option<tokio::time::Instant>,
    ) -> Option<impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        // What was made for others before is not shown: a document comes within a second.
        let latest = self.latest.subscribe();
        self.wanted.notify_one();
        let until = until(tokio::time::Instant::now(), ends);
        let listener = Listener { latest, until, stopping: self.daemon.clone(), greeted: false, _place: place };
        Some(stream::unfold(listener, Listener::next))
    }
}

/// When a stream that begins now is to be over.
fn until(now: tokio::time::Instant, ends: Option<tokio::time::Instant>) -> tokio::time::Instant {
    let life = now + STREAM_LIFE;
    ends.map_or(life, |ends| life.min(ends.checked_sub(LAST_WORDS).unwrap_or(ends)))
}

/// One browser's stream.
struct Listener {
    latest: watch::Receiver<Bytes>,
    until: tokio::time::Instant,
    stopping: Daemon,
    greeted: bool,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if !self.greeted {
            self.greeted = true;
            // How long a browser waits before it comes again.
            return Some((Ok(Bytes::from_static(b"retry: 500\n\n")), self));
        }
        let changed = tokio::select! {
            changed = self.latest.changed() => changed.is_ok(),
            () = tokio::time::sleep_until(self.until) => false,
            () = self.stopping.stopping().cancelled() => false,
        };
        if !changed {
            return None;
        }
        let event = self.latest.borrow_and_update().clone();
        Some((Ok(event), self))
    }
}

fn point(daemon: &Daemon, report: &EngineReport) -> Point {
    let counters = daemon.metrics().all();
    Point {
        at_ms: daemon.clock().now().as_millis(),
        counters: RATES.map(|(_, counter)| counters.get(counter).copied().unwrap_or(0)),
        leases: report.counts.leases as u64,
        gains: page::gain_sums(&report.adherence),
        cpu_s: process::cpu_seconds(std::process::id()).unwrap_or(0.0),
        links: page::fabric_shares(daemon),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_before_its_connection_however_long_others_used_it() {
        let now = tokio::time::Instant::now();
        let ends = |seconds| Some(now + Duration::from_secs(seconds));
        assert_eq!(until(now, ends(30)), now + STREAM_LIFE);
        assert_eq!(until(now, ends(10)), now + Duration::from_secs(9));
        assert_eq!(until(now, None), now + STREAM_LIFE);
    }
}
