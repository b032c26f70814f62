//! What a controller tells and takes, whatever its wire form: addresses, ports, hosts, counters, flow entries.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

/// A switch's datapath id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dpid(pub u64);

/// A hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

/// One port of one switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortAt {
    /// The switch.
    pub switch: Dpid,
    /// Its port's OpenFlow number.
    pub port: u32,
}

/// A host as the controller learnt it from its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSeen {
    /// Its address on the wire.
    pub mac: Mac,
    /// Its IPv4 addresses, in the controller's order.
    pub addresses: Vec<Ipv4Addr>,
    /// Where its packets came in.
    pub at: PortAt,
}

/// A port's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSeen {
    /// OpenFlow number.
    pub port: u32,
    /// Neither switched off nor without carrier.
    pub up: bool,
    /// Speed, kilobits a second; 0: not told.
    pub kbit_per_s: u64,
}

/// A port's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortCount {
    /// OpenFlow number.
    pub port: u32,
    /// Received so far.
    pub rx_bytes: u64,
    /// Sent so far.
    pub tx_bytes: u64,
    /// How long the switch has counted, by its own clock.
    pub counted: Duration,
}

/// Where an entry sends packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// A port by number.
    Port(u32),
    /// The controller.
    Controller,
}

/// Whose packets an entry is for: all of a sender and receiver, or all to a receiver. Nothing else is matched, so that
/// IP and ARP between two hosts go the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Sender; `None`: any.
    pub src: Option<Mac>,
    /// Receiver.
    pub dst: Mac,
}

/// One entry of a switch's table 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is.
    pub cookie: u64,
    /// Greater ones win.
    pub priority: u16,
    /// Whose packets.
    pub matches: Match,
    /// Where to.
    pub outputs: BTreeSet<Output>,
}

/// An entry as it was read back.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryFound {
    /// Whose it is.
    pub cookie: u64,
    /// Greater ones win.
    pub priority: u16,
    /// Whose packets; `None`: it looks at more than addresses.
    pub matches: Option<Match>,
    /// Where to; `None`: it does more than that.
    pub outputs: Option<BTreeSet<Output>>,
    /// The match as the controller wrote it, to remove what is not understood.
    pub raw: serde_json::Value,
}

/// What a controller says unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A link, in one direction.
    LinkAdd(PortAt, PortAt),
    /// A link is gone, in one direction.
    LinkDelete(PortAt, PortAt),
    /// A switch connected.
    SwitchEnter(Dpid),
    /// A switch's connection ended.
    SwitchLeave(Dpid),
    /// A host was heard.
    HostAdd(HostSeen),
    /// Something else.
    Other(String),
}

impl Event {
    /// A stable word for counters.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LinkAdd(..) => "link_add",
            Self::LinkDelete(..) => "link_delete",
            Self::SwitchEnter(_) => "switch_enter",
            Self::SwitchLeave(_) => "switch_leave",
            Self::HostAdd(_) => "host_add",
            Self::Other(_) => "other",
        }
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no {what}")]
pub struct BadAddress {
    what: &'static str,
    text: String,
}

impl fmt::Display for Dpid {
    /// As Ryu's topology has it: 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Dpid {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress { what: "datapath id (hexadecimal digits, 16 at most)", text: text.to_owned() };
        // The standard parser would take a sign.
        if text.is_empty() || text.len() > 16 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| bad())
    }
}

impl Mac {
    /// To all.
    pub const BROADCAST: Self = Self([0xff; 6]);
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress { what: "hardware address, as in \"02:00:00:00:00:01\"", text: text.to_owned() };
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().ok_or_else(bad)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(bad());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() { Err(bad()) } else { Ok(Self(address)) }
    }
}

impl fmt::Display for PortAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.switch, self.port)
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.src {
            Some(src) => write!(f, "{src} to {}", self.dst),
            None => write!(f, "all to {}", self.dst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_printed_and_nothing_else_is_one() {
        assert_eq!("02:00:00:0A:00:ff".parse::<Mac>().unwrap().to_string(), "02:00:00:0a:00:ff");
        assert_eq!("0000000000000011".parse::<Dpid>().unwrap(), Dpid(17));
        assert_eq!(Dpid(u64::MAX).to_string().parse(), Ok(Dpid(u64::MAX)));
        for text in ["", "02:00", "02:00:00:00:00:01:02", "02:00:00:00:00:+1", "02-00-00-00-00-01", "2:0:0:0:0:1"] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
        for text in ["", "+1", "-1", "xyz", "10000000000000000", "\u{661}"] {
            assert!(text.parse::<Dpid>().is_err(), "{text}");
        }
    }
}
