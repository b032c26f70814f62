//! The network in force by rack, and what a file would change, on the wire.

use crate::runtime::NetworkInForce;
use hintd_client::wire::v1;
use hintd_model::network::racks::{Difference, HostRacks, RackView};

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
        hosts_unknown: found.said.unknown_hosts,
        racks_left_out: found.said.racks_left_out,
        racks_unused: found.said.racks_unused,
        trouble: found.trouble.unwrap_or_default(),
        hosts_left_out: found.said.hosts_left_out,
        hosts_twice: found.said.hosts_twice,
        patterns_unused: found.said.patterns_unused,
        racks_on_racks: found.said.racks_on_racks,
        refused: found.refused.unwrap_or_default(),
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

/// Who believes what of racks.
pub(in crate::server) fn racks(found: &[HostRacks], differences: bool) -> v1::RacksResponse {
    let of = |known: fn(&HostRacks) -> bool| u32::try_from(found.iter().filter(|row| known(row)).count());
    let of = |known: fn(&HostRacks) -> bool| of(known).unwrap_or(u32::MAX);
    let text = |rack: &Option<std::sync::Arc<str>>| rack.as_deref().unwrap_or_default().to_owned();
    let rows = found.iter().filter(|row| row.differs || !differences).map(|row| v1::HostRacks {
        host: row.host.to_string(),
        yarn: text(&row.yarn),
        hdfs: text(&row.hdfs),
        network: text(&row.network),
        differs: row.differs,
    });
    v1::RacksResponse {
        hosts: rows.collect(),
        differing: of(|row| row.differs),
        yarn_hosts: of(|row| row.yarn.is_some()),
        hdfs_hosts: of(|row| row.hdfs.is_some()),
        network_hosts: of(|row| row.network.is_some()),
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
