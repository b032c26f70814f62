//! Whom agents that measure latency should measure.

use super::daemon::Daemon;
use super::registries::REFRESH;
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use std::net::SocketAddr;
use std::time::Duration;

impl Daemon {
    /// Notes an agent and says whom it should measure.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for what is no address or no instance; [`Refusal::Unknown`] host; [`Refusal::Unavailable`] for an agent that a
    /// later one of its host has replaced.
    pub fn probe_targets(&self, wire: &v1::ProbeTargetsRequest) -> Result<v1::ProbeTargetsResponse, Refusal> {
        let invalid = |field: &str, message: String| Refusal::Invalid { field: field.to_owned(), message };
        let address: SocketAddr = wire.address.parse().map_err(|_| {
            invalid("address", format!("{:?} is no address and port, as 10.0.0.7:8471", shortened(&wire.address)))
        })?;
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(invalid("address", format!("nobody can send to {address}")));
        }
        if wire.instance == 0 {
            return Err(invalid("instance", "0 is no agent's: each draws a number when it starts".to_owned()));
        }
        let (generation, feed) = (self.generation(), self.settings().latency);
        let asked = (&*wire.host, address, wire.instance);
        let agents = self.registries().agents();
        let targets = agents.ask(asked, &generation.snapshot, &feed.fanout, self.clock().now())?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let target = |target: super::registries::Target| v1::ProbeTarget {
            host: target.host.to_string(),
            address: target.address.to_string(),
            graph: target.graph.as_str().to_owned(),
        };
        Ok(v1::ProbeTargetsResponse {
            targets: targets.into_iter().map(target).collect(),
            refresh_ms: REFRESH.as_millis(),
            interval_ms: millis(feed.interval),
            report_ms: millis(feed.report),
        })
    }
}

/// What a message repeats of a text.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
