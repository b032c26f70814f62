//! Links that are down: which, since when, and what is left of the racks that hang on them.

use super::check::{Check, page, some};
use super::outage::{by_whom, lasting};
use super::quantities;
use hintd_client::wire::v1;
use std::collections::BTreeSet;

/// One finding for all of them; `None` where all links are up.
pub(super) fn down(
    status: &v1::StatusResponse,
    network: &v1::NetworkResponse,
    down: &Result<v1::LinksResponse, String>,
) -> Option<Check> {
    let links = match down {
        Ok(found) if !found.links.is_empty() => found.links.as_slice(),
        Err(why) if status.links_down > 0 => {
            let finding = format!("{}; which is not known: {why}.", how_many(status.links_down, status.links));
            return Some(Check::warning("links", page::LINK_DOWN, finding, "hintctl links --down names them."));
        }
        _ => return None,
    };
    let names: Vec<String> = links.iter().map(named).collect();
    let down = u32::try_from(links.len()).unwrap_or(u32::MAX);
    let mut finding = format!("{}: {}.", how_many(down, status.links), some(&names));
    let left: Vec<String> = what_is_left(links, network);
    if !left.is_empty() {
        finding += &format!(" {}.", some(&left));
    }
    let advice =
        "hintctl links --down has all of them; repair the link or its switch, or see who says that it is down.";
    Some(Check::warning("links", page::LINK_DOWN, finding, advice))
}

fn how_many(down: u32, all: u32) -> String {
    match down {
        1 => format!("1 link of {all} is down"),
        down => format!("{down} links of {all} are down"),
    }
}

fn named(link: &v1::LinkView) -> String {
    let since = link.down_ms.map_or_else(String::new, |ms| format!(" for {}", lasting(ms, link.down_at_ms)));
    let told = match by_whom(&link.down_by, link.load_before.as_ref(), link.bits_per_s) {
        told if told.is_empty() => told,
        told => format!(" ({told})"),
    };
    format!("{}{since}{told}", link.id)
}

/// By rack: what its uplinks still carry.
fn what_is_left(links: &[v1::LinkView], network: &v1::NetworkResponse) -> Vec<String> {
    let down: BTreeSet<&str> = links.iter().map(|link| &*link.id).collect();
    let racks = network.racks.iter().filter_map(|rack| {
        let is_down = |uplink: &&v1::NetworkUplink| down.contains(&*uplink.link);
        let lost = rack.uplinks.iter().filter(is_down).count();
        (lost > 0).then(|| rack_left(rack, lost, is_down))
    });
    racks.collect()
}

fn rack_left(rack: &v1::NetworkRack, lost: usize, is_down: impl Fn(&&v1::NetworkUplink) -> bool) -> String {
    let all = rack.uplinks.len();
    // A rack without a named switch has its path there.
    let what = if rack.switch.starts_with('/') { "rack" } else { "switch" };
    let name = format!("{what} {}", rack.switch);
    let sum = |rates: &mut dyn Iterator<Item = Option<u64>>| rates.sum::<Option<u64>>();
    let has = sum(&mut rack.uplinks.iter().map(|uplink| uplink.bits_per_s));
    let left = sum(&mut rack.uplinks.iter().filter(|uplink| !is_down(uplink)).map(|uplink| uplink.bits_per_s));
    match (has, left) {
        _ if lost == all => format!("{name} has none of its {all} uplinks left"),
        (Some(has), Some(left)) => {
            format!("{name} has {} of its uplinks", of(left as f64, has as f64))
        }
        _ => format!("{name} has {} of {all} uplinks", all - lost),
    }
}

/// `8 of 16 Gbit/s`, or with both units where they differ.
fn of(left: f64, all: f64) -> String {
    let (left, all) = (quantities::rate(left), quantities::rate(all));
    match (left.split_once(' '), all.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} of {all}"),
        _ => format!("{left} of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(rates: [Option<u64>; 2]) -> v1::NetworkResponse {
        let uplink = |(at, bits_per_s): (usize, Option<u64>)| v1::NetworkUplink {
            link: format!("edge-01--core-0{at}"),
            to: format!("core-0{at}"),
            bits_per_s,
        };
        let uplinks = rates.into_iter().enumerate().map(uplink).collect();
        let racks = vec![v1::NetworkRack { switch: "edge-01".into(), hosts: 6, nic_bits_per_s: None, uplinks }];
        v1::NetworkResponse { racks, ..v1::NetworkResponse::default() }
    }

    fn finding(rates: [Option<u64>; 2], ids: &[&str]) -> Option<String> {
        let link = |id: &&str| v1::LinkView {
            id: (*id).to_owned(),
            down_ms: Some(50_000),
            down_by: "ryu".into(),
            ..v1::LinkView::default()
        };
        let links = ids.iter().map(link).collect::<Vec<_>>();
        let status = v1::StatusResponse { links: 50, links_down: 1, ..v1::StatusResponse::default() };
        let answer = v1::LinksResponse { total: 1, links };
        down(&status, &network(rates), &Ok(answer)).map(|check| check.finding)
    }

    #[test]
    fn a_link_that_is_down_is_named_with_what_its_rack_has_left() {
        const GBIT: u64 = 1_000_000_000;
        let rates = [Some(8 * GBIT); 2];
        assert_eq!(
            finding(rates, &["edge-01--core-00"]).unwrap(),
            "1 link of 50 is down: edge-01--core-00 for 50 s (as ryu said). switch edge-01 has 8 of 16 Gbit/s of its uplinks."
        );
        let both = finding(rates, &["edge-01--core-00", "edge-01--core-01"]).unwrap();
        assert!(both.starts_with("2 links of 50 are down: ") && both.contains("none of its 2 uplinks left"), "{both}");
        let unlimited = finding([Some(GBIT), None], &["edge-01--core-00"]).unwrap();
        assert!(unlimited.ends_with("switch edge-01 has 1 of 2 uplinks."), "{unlimited}");
        let host = finding(rates, &["h1--edge-01"]).unwrap();
        assert!(host.ends_with("h1--edge-01 for 50 s (as ryu said)."), "{host}");
        assert_eq!(finding(rates, &[]), None);
        let mixed = of(500_000_000.0, 16e9);
        assert_eq!(mixed, "500 Mbit/s of 16 Gbit/s");
    }
}
