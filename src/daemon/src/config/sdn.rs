//! The section of SDN controllers: `[sdn.ryu]`.

use super::reader::{Reader, Section};
use super::urls::{asks_nobody, wrong_url};
use super::values::{MINUTE, MS, SECOND};
use crate::rest_client::Address;
use crate::sdn::RyuOptions;
use crate::sdn::graph::Capacities;
use crate::sdn::model::{Dpid, Mac};
use crate::sdn::names::Names;
use crate::sdn::table::FlowEntryMarks;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// "hintd" in ASCII, and two bytes that tell rules apart.
const COOKIE: u64 = 0x0068_696e_7464_0000;

/// Reads `[sdn]`; `None`: no controller is named.
pub(super) fn sdn(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<RyuOptions> {
    let mut section = root.section(reader, "sdn");
    let mut ryu = section.section(reader, "ryu");
    let options = options(&mut ryu, reader);
    ryu.finish(reader);
    section.finish(reader);
    options
}

fn options(ryu: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<RyuOptions> {
    let url = ryu.get(reader, "url", String::new());
    let authority = authority(&url);
    if !url.is_empty() && authority.is_none() {
        reader.problem(ryu.place("url"), &ryu.key("url"), wrong_url(&url, "http://127.0.0.1:8080"));
    } else if let Some(why) = Address::parse(&url).as_ref().and_then(asks_nobody) {
        reader.problem(ryu.place("url"), &ryu.key("url"), format!("\"{url}\": {why}"));
    }
    let hosts_file = ryu.get(reader, "hosts_file", String::new());
    let options = RyuOptions {
        authority: authority.unwrap_or_default(),
        // Events tell of failures; polls find what they missed.
        poll: ryu.bounded(reader, "poll", 2 * SECOND, 100 * MS..=10 * MINUTE),
        counters: ryu.bounded(reader, "counters", 5 * SECOND, 100 * MS..=10 * MINUTE),
        timeout: ryu.bounded(reader, "timeout", 2 * SECOND, 10 * MS..=MINUTE),
        backoff: ryu.bounded(reader, "backoff", 15 * SECOND, SECOND..=10 * MINUTE),
        answer_bytes: ryu.bounded(reader, "answer_bytes", 16 << 20, 4_096..=1 << 30),
        // Ryu's spurious pairs are a millisecond apart.
        debounce: ryu.bounded(reader, "debounce", 5 * MS, Duration::ZERO..=10 * SECOND),
        // Ryu finds a link within a second or two of its port; three make sure.
        settle: ryu.bounded(reader, "settle", 3 * SECOND, Duration::ZERO..=10 * MINUTE),
        install: ryu.get(reader, "install", true),
        forward: ryu.get(reader, "forward", false),
        confirm: ryu.bounded(reader, "confirm", SECOND, 10 * MS..=MINUTE),
        audit: ryu.bounded(reader, "audit", 10 * SECOND, 100 * MS..=10 * MINUTE),
        orphans: ryu.bounded(reader, "orphans", MINUTE, Duration::ZERO..=60 * MINUTE),
        marks: FlowEntryMarks {
            // Others' entries have 0 in these bits: they would all be taken for ours, and swept away.
            cookie: ryu.bounded(reader, "cookie", COOKIE, 0x100..=u64::MAX),
            priority: priority(ryu, reader, "priority", 1_000),
            base_priority: priority(ryu, reader, "forward_priority", 10),
        },
        capacities: Capacities {
            links: ryu.bounded(reader, "link_bits_per_s", 0_u64, 0..=100_000_000_000_000),
            hosts: ryu.bounded(reader, "host_bits_per_s", 0_u64, 0..=100_000_000_000_000),
        },
        hosts_file: (!hosts_file.is_empty()).then(|| PathBuf::from(hosts_file)),
        names: names(ryu, reader),
    };
    if options.marks.priority <= options.marks.base_priority {
        let FlowEntryMarks { priority, base_priority, .. } = options.marks;
        let message =
            format!("{priority} is not above sdn.ryu.forward_priority, {base_priority}: routes would not count");
        reader.problem(ryu.place("priority"), &ryu.key("priority"), message);
    }
    (!url.is_empty()).then_some(options)
}

fn priority(ryu: &mut Section<'_>, reader: &mut Reader<'_>, name: &'static str, default: u64) -> u16 {
    // 65535 is Ryu's own, for the packets by which it finds links.
    u16::try_from(ryu.bounded(reader, name, default, 1_u64..=65_534)).unwrap_or(u16::MAX - 1)
}

/// Host and port of a plain address.
pub(super) fn authority(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':')?;
    let plain = !host.is_empty() && host.bytes().all(|c| c.is_ascii_graphic() && !b"/@?#".contains(&c));
    (plain && port.parse::<u16>().is_ok_and(|port| port > 0)).then(|| rest.to_owned())
}

fn names(ryu: &mut Section<'_>, reader: &mut Reader<'_>) -> Names {
    let mut names = Names::default();
    let mut hosts = ryu.section(reader, "hosts");
    for (address, name) in hosts.free_keys::<String>(reader) {
        let (mac, ip) = (address.parse::<Mac>(), address.parse::<Ipv4Addr>());
        match (mac, ip) {
            _ if name.is_empty() => reader.problem(hosts.at(), &hosts.key(&address), "the name is empty"),
            (Ok(mac), _) => _ = names.by_mac.insert(mac, name),
            (_, Ok(ip)) => _ = names.by_address.insert(ip, name),
            _ => reader.problem(hosts.at(), &hosts.key(&address), "is neither a hardware address nor an IPv4 address"),
        }
    }
    let mut switches = ryu.section(reader, "switches");
    for (dpid, name) in switches.free_keys::<String>(reader) {
        match dpid.parse::<Dpid>() {
            _ if name.is_empty() => reader.problem(switches.at(), &switches.key(&dpid), "the name is empty"),
            Ok(dpid) => _ = names.switches.insert(dpid, name),
            Err(error) => reader.problem(switches.at(), &switches.key(&dpid), error.to_string()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::urls::shown;
    use std::time::Duration;

    fn problems(text: &str) -> String {
        Config::from_text(text, "f").err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_controller_is_watched_where_one_is_named() {
        assert_eq!(Config::from_text("", "f").unwrap().sdn, None);
        let text = "[sdn.ryu]\nurl = \"http://ctl:8080/\"\npoll = \"1s\"\n[sdn.ryu.hosts]\n\"02:00:00:00:00:01\" = \"n1\"\n\
                    \"10.0.0.2\" = \"n2\"\n[sdn.ryu.switches]\n\"0000000000000011\" = \"tor\"\n";
        let ryu = Config::from_text(text, "f").unwrap().sdn.unwrap();
        assert_eq!((ryu.authority.as_str(), ryu.poll), ("ctl:8080", Duration::from_secs(1)));
        assert_eq!((ryu.names.by_mac.len(), ryu.names.by_address.len(), ryu.names.switches.len()), (1, 1, 1));
    }

    #[test]
    fn a_cookie_that_entries_of_others_have_is_refused() {
        let found = problems("[sdn.ryu]\ncookie = 255\n");
        assert!(found.starts_with("f:2: sdn.ryu.cookie: "), "{found}");
        assert_eq!(problems("[sdn.ryu]\ncookie = 256\n"), "");
    }

    #[test]
    fn what_is_wrong_with_it_is_named_by_key() {
        for url in ["ctl:8080", "https://ctl:8080", "http://ctl", "http://ctl:0", "http://a@b:1", "http://ctl:8080/x"] {
            let found = problems(&format!("[sdn.ryu]\nurl = \"{url}\"\n"));
            assert!(found.starts_with("f:2: sdn.ryu.url: ") && found.contains(&*shown(url)), "{url}: {found}");
        }
        let found = problems("[sdn.ryu]\npriority = 5\nforward_priority = 5\n[sdn.ryu.hosts]\n\"x\" = \"y\"\n");
        assert!(
            found.contains("sdn.ryu.priority: 5 is not above") && found.contains("sdn.ryu.hosts.x: is neither"),
            "{found}"
        );
    }
}
