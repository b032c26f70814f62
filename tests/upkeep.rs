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
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = \"{0}/admin.sock\"\nmetrics = \"\"\n[store]\npath = \"{0}/j.redb\"\n",
        folder.path().display()
    );
    let (config, metrics) = (Config::from_text(&text, "test").unwrap(), Metrics::new());
    let running = hintd::server::start(&config.options, metrics.clone()).await.unwrap();
    let first = grows_by(&metrics).await;
    // A resident set stays as high as it came between two upkeeps, which it may reach late: what gathers does so each time.
    let second = grows_by(&metrics).await.min(grows_by(&metrics).await);
    running.shutdown().await.unwrap();
    assert!(second < 12 << 20, "{second} bytes for {SAMPLES} samples, after {first} for as many");
}
