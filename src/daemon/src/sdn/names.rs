//! Names: datapath ids and hardware addresses become the names by which YARN and operators know them.

use super::model::{Dpid, HostSeen, Mac, PortAt};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The naming that an operator gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// By hardware address.
    pub by_mac: BTreeMap<Mac, String>,
    /// By IPv4 address.
    pub by_address: BTreeMap<Ipv4Addr, String>,
    /// Switches by datapath id.
    pub switches: BTreeMap<Dpid, String>,
}

impl Names {
    /// Takes in a hosts file: `address name alias ...`, `#` starts a comment. The first name of an address counts, and
    /// what was known before wins. Returns lines that are none.
    pub fn hosts_file(&mut self, text: &str) -> Vec<usize> {
        let mut wrong = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(address) = words.next() else { continue };
            match (address.parse(), words.next()) {
                (Ok(IpAddr::V4(address)), Some(name)) => {
                    self.by_address.entry(address).or_insert_with(|| name.to_owned());
                }
                (Ok(IpAddr::V6(_)), Some(_)) => {}
                _ => wrong.push(at + 1),
            }
        }
        wrong
    }

    /// A switch's name: given, else `s` and its 16 hexadecimal digits.
    #[must_use]
    pub fn switch(&self, switch: Dpid) -> String {
        self.switches.get(&switch).cloned().unwrap_or_else(|| format!("s{switch}"))
    }

    /// A host's name: given for its hardware address or one of its IPv4 addresses, else its first IPv4 address,
    /// else its hardware address.
    #[must_use]
    pub fn host(&self, host: &HostSeen) -> String {
        let by_address = || host.addresses.iter().find_map(|address| self.by_address.get(address));
        let given = self.by_mac.get(&host.mac).or_else(by_address).cloned();
        given.unwrap_or_else(|| match host.addresses.first() {
            Some(address) => address.to_string(),
            None => host.mac.to_string(),
        })
    }

    /// A link's name between two switches: both ports, the lesser one first.
    #[must_use]
    pub fn cable(&self, a: PortAt, b: PortAt) -> String {
        let (a, b) = (a.min(b), a.max(b));
        format!("{}:{}-{}:{}", self.switch(a.switch), a.port, self.switch(b.switch), b.port)
    }

    /// The name of a host's link.
    #[must_use]
    pub fn access(&self, at: PortAt, host: &str) -> String {
        format!("{}:{}-{host}", self.switch(at.switch), at.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(addresses: &[&str]) -> HostSeen {
        HostSeen {
            mac: "02:00:00:00:00:01".parse().unwrap(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            at: PortAt { switch: Dpid(1), port: 3 },
        }
    }

    #[test]
    fn a_host_is_called_by_what_was_given_first_then_by_its_address() {
        let mut names = Names::default();
        assert_eq!(names.host(&host(&[])), "02:00:00:00:00:01");
        assert_eq!(names.host(&host(&["10.0.0.9", "10.0.0.1"])), "10.0.0.9");
        let file =
            "127.0.0.1 localhost\n10.0.0.1 node-1 alias # comment\n\n::1 six\n10.0.0.1 later\nnonsense\n10.0.0.2\n";
        assert_eq!(names.hosts_file(file), [6, 7]);
        assert_eq!(names.host(&host(&["10.0.0.9", "10.0.0.1"])), "node-1");
        names.by_mac.insert("02:00:00:00:00:01".parse().unwrap(), "named".to_owned());
        assert_eq!(names.host(&host(&["10.0.0.1"])), "named");
    }

    #[test]
    fn links_are_called_alike_from_both_ends() {
        let mut names = Names::default();
        names.switches.insert(Dpid(1), "tor-1".to_owned());
        let (a, b) = (PortAt { switch: Dpid(1), port: 2 }, PortAt { switch: Dpid(17), port: 1 });
        assert_eq!(names.cable(a, b), "tor-1:2-s0000000000000011:1");
        assert_eq!(names.cable(a, b), names.cable(b, a));
        assert_eq!(names.access(a, "h"), "tor-1:2-h");
    }
}
