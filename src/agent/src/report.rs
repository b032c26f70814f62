//! The daemon: whom to measure, and what was measured.

use super::probes::Target;
use super::{Measured, Wanted, say};
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError, SteadyFeed, shown_address};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// After the first failure; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// How long the daemon is waited for at a time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whatever the daemon says, it is not asked more often, nor more seldom.
const REFRESH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// See the module.
pub(super) struct Reporter {
    client: Client,
    host: String,
    advertise: SocketAddr,
    instance: u64,
    /// What was said last of what is wrong: once is enough.
    said: String,
}

impl Reporter {
    /// To the daemon at `address`, from this node: its name, where it is measured, and the number that it drew.
    pub(super) fn new(address: &str, host: String, advertise: SocketAddr, instance: u64) -> Result<Self, String> {
        let client = Client::lazy(address).map_err(|error| format!("--address {}: {error}", shown_address(address)))?;
        Ok(Self { client, host, advertise, instance, said: String::new() })
    }

    /// Until nobody measures any more. A daemon that is away is asked again, ever more seldom.
    pub(super) async fn run(mut self, wanted: watch::Sender<Wanted>, mut reports: watch::Receiver<Measured>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let Err(error) = self.serve(&wanted, &mut reports, &mut pause).await else { return };
            let message = error.to_string();
            if message != self.said {
                say(&message);
                self.said = message;
            }
            let jitter = 0.5 + rand::random::<f64>() / 2.0;
            sleep(pause.mul_f64(jitter)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn serve(
        &mut self,
        wanted: &watch::Sender<Wanted>,
        reports: &mut watch::Receiver<Measured>,
        pause: &mut Duration,
    ) -> Result<(), ClientError> {
        let mut due = Instant::now() + self.ask(wanted).await?;
        let hello = v1::FeedHello { source: "hintd-agent".to_owned(), ..v1::FeedHello::default() };
        // Nothing is kept that a new life of the daemon would have to be told.
        let nothing = Box::new(Vec::new);
        let mut feed: SteadyFeed<v1::LatencyItem> = self.client.steady_feed(hello, nothing, PATIENCE).await?;
        if !self.said.is_empty() {
            say("hintd answers again");
            self.said.clear();
        }
        loop {
            tokio::select! {
                () = sleep_until(due) => due = Instant::now() + self.ask(wanted).await?,
                changed = reports.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let measured = reports.borrow_and_update().clone();
                    let within = wanted.borrow().report;
                    for (to_host, histogram) in measured.current(std::time::Instant::now(), within) {
                        feed.send(self.item(to_host, &histogram)).await?;
                    }
                }
            }
            *pause = FIRST_PAUSE;
        }
    }

    /// Asks whom to measure; says when to ask again.
    async fn ask(&self, wanted: &watch::Sender<Wanted>) -> Result<Duration, ClientError> {
        let (host, address) = (self.host.clone(), self.advertise.to_string());
        let request = v1::ProbeTargetsRequest { host, address, instance: self.instance };
        let answer = self.client.probe_targets(request).await?;
        let target =
            |target: v1::ProbeTarget| Some(Target { host: target.host, address: target.address.parse().ok()? });
        let millis = |ms: u64| Duration::from_millis(ms.clamp(1, 60_000));
        let next = Wanted {
            targets: answer.targets.into_iter().filter_map(target).collect(),
            interval: millis(answer.interval_ms),
            report: millis(answer.report_ms),
        };
        // Those who begin together learn of each other late: a list that is short is asked for again soon.
        let grew = next.targets.len() > wanted.borrow().targets.len();
        let refresh = if next.targets.is_empty() || grew { REFRESH.0 } else { millis(answer.refresh_ms) };
        wanted.send_if_modified(|known| {
            let changed = *known != next;
            *known = next;
            changed
        });
        Ok(refresh.clamp(REFRESH.0, REFRESH.1))
    }

    fn item(&self, to_host: String, histogram: &super::Histogram) -> v1::LatencyItem {
        let buckets = histogram.iter().map(|(&rtt_us, &count)| v1::LatencyBucket { rtt_us, count }).collect();
        let (from_host, instance) = (self.host.clone(), self.instance);
        // Without a time: it is now by the daemon's clock, whatever this node's says.
        let histogram = v1::LatencyHistogram { from_host, to_host, buckets, instance, ..Default::default() };
        v1::LatencyItem { number: 0, item: Some(v1::latency_item::Item::Histogram(histogram)) }
    }
}
