//! Whom agents that measure latency should measure.

use super::daemon::Daemon;
use super::registries::{AskingAgent, REFRESH};
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

impl Daemon {
    /// Notes an agent and says whom it should measure; `peer`: where its connection comes from.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for what is no address, not its own, or no instance; [`Refusal::Unknown`] host; [`Refusal::Unavailable`] for an agent that a
    /// later one of its host has replaced.
    pub fn probe_targets(
        &self,
        wire: &v1::ProbeTargetsRequest,
        peer: Option<IpAddr>,
    ) -> Result<v1::ProbeTargetsResponse, Refusal> {
        let invalid = |field: &str, message: String| Refusal::Invalid { field: field.to_owned(), message };
        let address = own_address(&wire.address, peer).map_err(|message| invalid("address", message))?;
        if wire.instance == 0 {
            return Err(invalid("instance", "0 is no agent's: each draws a number when it starts".to_owned()));
        }
        let (generation, feed) = (self.generation(), self.settings().latency);
        let agent = AskingAgent { host: &wire.host, address, instance: wire.instance };
        let agents = self.registries().agents();
        let targets = agents.ask(agent, &generation.snapshot, &feed.fanout, self.clock().now())?;
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

/// Where an agent says that it answers: others will send there. So it is where its connection comes from; of who comes over loopback,
/// any loopback address, or one that this machine has.
fn own_address(text: &str, peer: Option<IpAddr>) -> Result<SocketAddr, String> {
    let no_address = |_| format!("{:?} is no address and port, as 10.0.0.7:8471", shortened(text));
    let address: SocketAddr = text.parse().map_err(no_address)?;
    let ip = address.ip().to_canonical();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || broadcast {
        return Err(format!("nobody can send to {address}"));
    }
    let peer = peer.ok_or_else(|| format!("nobody knows whether {address} is the agent's own"))?.to_canonical();
    if ip == peer || peer.is_loopback() && (ip.is_loopback() || is_here(ip)) {
        return Ok(address);
    }
    Err(format!("{address} is not the agent's own: it comes from {peer}"))
}

/// Whether this machine has the address: only then a socket can have it.
fn is_here(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// What a message repeats of a text.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_name_its_own_address_alone() {
        let of = |text: &str, peer: &str| own_address(text, Some(peer.parse().unwrap()));
        for (text, peer) in [
            ("192.0.2.7:8471", "192.0.2.7"),
            ("192.0.2.7:8471", "::ffff:192.0.2.7"),
            ("127.0.0.9:8471", "127.0.0.1"),
            ("127.0.0.9:8471", "::1"),
            ("[2001:db8::7]:8471", "2001:db8::7"),
        ] {
            assert_eq!(of(text, peer), Ok(text.parse().unwrap()), "from {peer}");
        }
        for (text, peer, says) in [
            ("192.0.2.8:8471", "192.0.2.7", "192.0.2.8:8471 is not the agent's own: it comes from 192.0.2.7"),
            ("127.0.0.1:8471", "192.0.2.7", "127.0.0.1:8471 is not the agent's own: it comes from 192.0.2.7"),
            ("[::1]:8471", "192.0.2.7", "[::1]:8471 is not the agent's own: it comes from 192.0.2.7"),
            ("192.0.2.8:8471", "127.0.0.1", "192.0.2.8:8471 is not the agent's own: it comes from 127.0.0.1"),
            ("0.0.0.0:8471", "192.0.2.7", "nobody can send to 0.0.0.0:8471"),
            ("192.0.2.7:0", "192.0.2.7", "nobody can send to 192.0.2.7:0"),
            ("255.255.255.255:8471", "127.0.0.1", "nobody can send to 255.255.255.255:8471"),
            ("224.0.0.1:8471", "127.0.0.1", "nobody can send to 224.0.0.1:8471"),
            ("[ff02::1]:8471", "::1", "nobody can send to [ff02::1]:8471"),
            ("node7:8471", "127.0.0.1", "\"node7:8471\" is no address and port, as 10.0.0.7:8471"),
        ] {
            assert_eq!(of(text, peer).unwrap_err(), says);
        }
        assert!(own_address("127.0.0.1:8471", None).is_err());
    }
}
