//! The network in force by rack, and what a file would change, on the wire.

use crate::runtime::NetworkInForce;
use hintd_client::wire::v1;
use hintd_model::network::racks::{Difference, RackView};

/// See the module.
pub(in crate::server) fn network_view(found: NetworkInForce) -> v1::NetworkResponse {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let names = |names: &[std::sync::Arc<str>]| names.iter().map(ToString::to_string).collect();
    let summary = found.summary.as_ref();
    let tiers = summary.into_iter().flat_map(|summary| &summary.tiers).map(|tier| v1::NetworkTier {
        tier: tier.tier.to_string(),
        switches: count(tier.switches),
        down_bits_per_s: tier.down.0,
        up_bits_per_s: tier.up.0,
    });
    v1::NetworkResponse {
        source: found.source.to_owned(),
        file: found.file.map(|file| file.display().to_string()).unwrap_or_default(),
        hosts: count(summary.map_or(0, |summary| summary.hosts)),
        switches: count(summary.map_or(0, |summary| summary.switches)),
        links: count(summary.map_or(0, |summary| summary.links)),
        tiers: tiers.collect(),
        racks: found.survey.racks.iter().map(rack).collect(),
        hosts_without_place: names(&found.survey.without_place),
        hosts_unknown: found.unknown_hosts,
        racks_left_out: found.racks_left_out,
        racks_unused: found.racks_unused,
        trouble: found.trouble.unwrap_or_default(),
    }
}

fn rack(view: &RackView) -> v1::NetworkRack {
    let uplinks = view.uplinks.iter().map(|uplink| v1::NetworkUplink {
        link: uplink.link.to_string(),
        to: uplink.to.to_string(),
        bits_per_s: uplink.rate.map(|rate| rate.0),
    });
    v1::NetworkRack {
        switch: view.switch.to_string(),
        hosts: u32::try_from(view.hosts).unwrap_or(u32::MAX),
        nic_bits_per_s: view.nic.map(|rate| rate.0),
        uplinks: uplinks.collect(),
    }
}

/// One row of a difference.
pub(in crate::server) fn network_difference(found: Difference) -> v1::NetworkDifference {
    let Difference { what, name, before, after } = found;
    v1::NetworkDifference {
        what: what.to_owned(),
        name,
        before: before.unwrap_or_default(),
        after: after.unwrap_or_default(),
    }
}
