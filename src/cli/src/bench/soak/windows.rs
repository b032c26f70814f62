//! What a soak counts and samples, by window and in total.

use super::super::super::connect::DaemonArgs;
use super::super::super::failure::Failure;
use hdrhistogram::Histogram;
use hintd::telemetry::process::{cpu_seconds, resident_bytes};
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Longest latency that is told apart, microseconds.
const MOST_US: u64 = 120_000_000;
/// How long the daemon has to say that all nodes are there, and to answer for its status.
const PATIENCE: Duration = Duration::from_secs(60);
const STATUS: Duration = Duration::from_secs(2);

/// One row of figures.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Window {
    /// Its end, since the figures began.
    pub(super) at_s: f64,
    pub(super) seconds: f64,
    pub(super) answered: u64,
    /// By cause: overload, unreachable, deadline, refused.
    pub(super) refused: BTreeMap<String, u64>,
    /// Due and not sent, because too many were under way.
    pub(super) unsent: u64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
    /// Acknowledged.
    pub(super) heartbeats: u64,
    pub(super) heartbeats_refused: u64,
    /// Times that a feed's stream broke.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) feed_errors: Vec<String>,
    /// Most of the window.
    pub(super) resident_bytes: Option<u64>,
    /// CPU seconds a second.
    pub(super) server_cpu: Option<f64>,
    /// Greatest age of the snapshot that its status told.
    pub(super) snapshot_age_ms: Option<u64>,
    pub(super) leases: Option<u64>,
}

/// All windows together.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Totals {
    pub(super) seconds: f64,
    pub(super) answered: u64,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) unsent: u64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
    pub(super) heartbeats: u64,
    pub(super) heartbeats_refused: u64,
    pub(super) resident_first_bytes: Option<u64>,
    pub(super) resident_last_bytes: Option<u64>,
    pub(super) resident_max_bytes: Option<u64>,
    /// Least squares over the second half of the windows.
    pub(super) growth_bytes_per_hour: Option<f64>,
}

impl Totals {
    pub(super) fn of(windows: &[Window], recorder: &Recorder) -> Self {
        let resident = || windows.iter().filter_map(|window| window.resident_bytes);
        let mut refused = BTreeMap::new();
        for (code, count) in windows.iter().flat_map(|window| &window.refused) {
            *refused.entry(code.clone()).or_default() += count;
        }
        let all = &recorder.lock().all;
        Self {
            seconds: windows.iter().map(|window| window.seconds).sum(),
            answered: windows.iter().map(|window| window.answered).sum(),
            refused,
            unsent: windows.iter().map(|window| window.unsent).sum(),
            p50_ms: ms(all, 0.5),
            p99_ms: ms(all, 0.99),
            p999_ms: ms(all, 0.999),
            max_ms: all.max() as f64 / 1e3,
            heartbeats: windows.iter().map(|window| window.heartbeats).sum(),
            heartbeats_refused: windows.iter().map(|window| window.heartbeats_refused).sum(),
            resident_first_bytes: resident().next(),
            resident_last_bytes: resident().next_back(),
            resident_max_bytes: resident().max(),
            growth_bytes_per_hour: growth(&windows[windows.len() / 2..]),
        }
    }
}

/// Slope of memory over time; `None` for fewer than three points.
fn growth(windows: &[Window]) -> Option<f64> {
    let points: Vec<(f64, f64)> =
        windows.iter().filter_map(|window| Some((window.at_s / 3_600.0, window.resident_bytes? as f64))).collect();
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (along > 0.0).then_some(across / along)
}

fn ms(latency: &Histogram<u64>, quantile: f64) -> f64 {
    latency.value_at_quantile(quantile) as f64 / 1e3
}

/// Counts of all tasks of a soak.
#[derive(Debug)]
pub(super) struct Recorder(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    window: Window,
    latency: Histogram<u64>,
    /// Of all windows but the warm-up.
    all: Histogram<u64>,
    began: Instant,
    warm: bool,
}

impl Recorder {
    /// Nothing counted yet; what is counted before the first [`Self::close`] is warm-up.
    pub(super) fn new() -> Self {
        let empty = || Histogram::new_with_bounds(1, MOST_US, 3).expect("bounds and precision are constants that fit");
        let (latency, all, began) = (empty(), empty(), Instant::now());
        Self(Mutex::new(Counts { window: Window::default(), latency, all, began, warm: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answered(&self, took: Duration) {
        let mut counts = self.lock();
        counts.window.answered += 1;
        counts.latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(MOST_US).max(1));
    }

    pub(super) fn refused(&self, code: &str) {
        *self.lock().window.refused.entry(code.to_owned()).or_default() += 1;
    }

    pub(super) fn unsent(&self) {
        self.lock().window.unsent += 1;
    }

    pub(super) fn acknowledged(&self, heartbeats: u64, refused: u64) {
        let mut counts = self.lock();
        counts.window.heartbeats += heartbeats;
        counts.window.heartbeats_refused += refused;
    }

    pub(super) fn feed_broke(&self, error: &str) {
        self.lock().window.feed_errors.push(error.to_owned());
    }

    /// Ends a window and begins the next.
    pub(super) fn close(&self) -> Window {
        let mut counts = self.lock();
        let mut window = std::mem::take(&mut counts.window);
        window.seconds = counts.began.elapsed().as_secs_f64();
        counts.began = Instant::now();
        window.p50_ms = ms(&counts.latency, 0.5);
        window.p99_ms = ms(&counts.latency, 0.99);
        window.p999_ms = ms(&counts.latency, 0.999);
        window.max_ms = counts.latency.max() as f64 / 1e3;
        let Counts { latency, all, warm, .. } = &mut *counts;
        if std::mem::replace(warm, true) {
            all.add(&*latency).expect("both histograms have the same bounds");
        }
        latency.reset();
        window
    }
}

/// Looks at the daemon from outside, and asks it.
#[derive(Debug)]
pub(super) struct Sampler {
    admin: AdminClient,
    pid: Option<u32>,
    version: String,
    resident: Option<u64>,
    age: Option<u64>,
    leases: Option<u64>,
    cpu: Option<f64>,
    cpu_before: Option<f64>,
}

impl Sampler {
    /// Asks once.
    ///
    /// # Errors
    /// [`Failure`] where nobody answers on the admin socket.
    pub(super) async fn start(daemon: &DaemonArgs, pid: Option<u32>) -> Result<Self, Failure> {
        let mut admin = daemon.admin().await?;
        let status = admin.status(v1::StatusRequest {}).await?.into_inner();
        let version = status.version;
        let (resident, age, leases, cpu, cpu_before) = (None, None, None, None, None);
        let mut sampler = Self { admin, pid, version, resident, age, leases, cpu, cpu_before };
        sampler.look().await;
        sampler.cpu_before = sampler.cpu;
        Ok(sampler)
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Waits until the daemon counts so many usable nodes.
    ///
    /// # Errors
    /// [`Failure`] if it does not in time.
    pub(super) async fn wait_for_nodes(&mut self, nodes: u32) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let usable = self.admin.status(v1::StatusRequest {}).await?.into_inner().nodes_usable;
            if usable >= nodes {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::work(format!(
                    "{usable} of {nodes} nodes are usable after {} s",
                    PATIENCE.as_secs()
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// One look; what can't be told is left out.
    pub(super) async fn look(&mut self) {
        let status = tokio::time::timeout(STATUS, self.admin.status(v1::StatusRequest {})).await;
        let status = status.ok().and_then(Result::ok).map(tonic::Response::into_inner);
        let told = |value: u64| (value > 0).then_some(value);
        let (resident, cpu) = match (self.pid, &status) {
            (Some(pid), _) => (resident_bytes(pid), cpu_seconds(pid)),
            (None, Some(status)) => (told(status.resident_bytes), Some(status.process_cpu_s)),
            (None, None) => (None, None),
        };
        self.resident = self.resident.max(resident);
        self.cpu = cpu;
        if let Some(status) = status {
            self.age = self.age.max(Some(status.snapshot_age_ms));
            self.leases = Some(status.leases);
        }
    }

    /// Adds to a window what was seen in it.
    pub(super) fn window(&mut self, mut window: Window, at: Duration) -> Window {
        window.at_s = at.as_secs_f64();
        window.resident_bytes = self.resident.take();
        window.snapshot_age_ms = self.age.take();
        window.leases = self.leases.take();
        let used = self.cpu.zip(self.cpu_before).map(|(now, before)| now - before);
        window.server_cpu = used.map(|used| used / window.seconds.max(1e-3));
        self.cpu_before = self.cpu;
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_shows_its_slope_and_flat_memory_none() {
        let at = |minute: u32, bytes: u64| Window {
            at_s: f64::from(minute) * 60.0,
            resident_bytes: Some(bytes),
            ..Window::default()
        };
        let grows: Vec<Window> = (0..10).map(|minute| at(minute, 1_000 + u64::from(minute) * 10)).collect();
        assert!((growth(&grows).unwrap() - 600.0).abs() < 1e-6);
        let flat: Vec<Window> = (0..10).map(|minute| at(minute, 1_000)).collect();
        assert!(growth(&flat).unwrap().abs() < 1e-6);
        assert_eq!(growth(&flat[..2]), None);
    }

    #[tokio::test]
    async fn the_warm_up_is_in_no_total_and_windows_add_up() {
        let recorder = Recorder::new();
        recorder.answered(Duration::from_secs(9));
        recorder.close();
        recorder.answered(Duration::from_millis(2));
        recorder.refused("overload");
        let first = recorder.close();
        recorder.answered(Duration::from_millis(4));
        recorder.acknowledged(7, 1);
        let second = recorder.close();
        assert!((first.max_ms - 2.0).abs() < 0.01 && (second.max_ms - 4.0).abs() < 0.01, "{first:?} {second:?}");
        let totals = Totals::of(&[first, second], &recorder);
        assert_eq!((totals.answered, totals.refused["overload"], totals.heartbeats), (2, 1, 7));
        assert!(totals.max_ms < 5.0, "{totals:?}");
    }
}
