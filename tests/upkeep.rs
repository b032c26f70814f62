//! A daemon whose page of metrics is off, or that nobody scrapes, does not gather samples for ever.
//!
//! A file of its own: it goes by the resident set of the process.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use hintd::config::Config;
use hintd::telemetry::metrics::Metrics;
use hintd::telemetry::process::resident_bytes;
use std::time::Duration;

/// They took 49 MB where they were only gathered.
const SAMPLES: u64 = 3_000_000;

/// Bytes that they may take once as many were taken before; and how often it is tried.
const MOST: u64 = 12 << 20;
const TIMES: usize = 6;

async fn grows_by(metrics: &Metrics) -> u64 {
    let resident = || resident_bytes(std::process::id()).unwrap();
    let before = resident();
    let publisher = metrics.publisher();
    for part in 0..15 {
        (0..SAMPLES / 15).for_each(|n| publisher.published(Duration::from_micros(n % 100), part));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    resident().saturating_sub(before)
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_that_nobody_scrapes_do_not_gather() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = \"{0}/admin.sock\"\nmetrics = \"\"\n[store]\npath = \"{0}/j.redb\"\n[placer]\nguard = false\n",
        folder.path().display()
    );
    let (config, metrics) = (Config::from_text(&text, "test").unwrap(), Metrics::new());
    let running = hintd::server::start(&config.options, metrics.clone()).await.unwrap();
    // A resident set stays as high as it came between two upkeeps, and it comes the higher the more samples fall between
    // them: first, and whenever a busy machine grows faster again. What gathers does so each time.
    let mut grew = vec![grows_by(&metrics).await];
    while grew.len() < 2 || (grew.len() < TIMES && grew[1..].iter().all(|bytes| *bytes >= MOST)) {
        grew.push(grows_by(&metrics).await);
    }
    running.shutdown().await.unwrap();
    assert!(grew[1..].iter().any(|bytes| *bytes < MOST), "{grew:?} bytes for {SAMPLES} samples each time");
}
