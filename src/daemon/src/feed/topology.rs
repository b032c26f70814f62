//! `Feed.Topology`: the SDN's graph as a whole, and changes of its links and switches.

use super::stream::{Hello, empty_item};
use super::{FeedRegistries, FeedStream, ItemRefusal, Reason, chains, convert};
use crate::runtime::registries::bounded;
use hintd_client::wire::v1;
use hintd_model::network::{
    HostEntry, LinkEntry, NETWORK_FORMAT, Network, NetworkDocument, OpticalSection, SwitchEntry, Tier,
};
use hintd_model::units::{BitsPerSec, Bytes, LinkName};
use std::fmt::Write as _;
use std::sync::Arc;
use v1::topology_item::Item;

/// The largest capacity that is believed, bits per second: as the check of whole networks has it.
const CAPACITY_MAX: u64 = 100_000_000_000_000;

/// Problems named in one refusal.
const PROBLEMS_NAMED: usize = 100;

/// Takes one item in. A whole network is taken whole or refused whole, with every problem named.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(registries: &FeedRegistries, stream: &mut FeedStream, item: v1::TopologyItem) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| {
        let item = item.item.ok_or_else(empty_item)?;
        let said_by = match item {
            Item::Hello(_) => String::new(),
            _ => told_by(stream.greeted()?),
        };
        if !matches!(item, Item::Hello(_) | Item::Chains(_) | Item::Middlebox(_)) {
            registries.network_is_fed()?;
        }
        match item {
            Item::Hello(hello) => stream.greet(hello),
            Item::Full(graph) => {
                bounded("links", graph.links.len(), registries.limits().links, "links")?;
                registries.fed_network(network(graph)?, &said_by)?;
            }
            Item::Link(change) => return link(registries, &change, &said_by),
            Item::Switch(change) => {
                return registries.switch(convert::name("name", &change.name)?, change.up, &said_by);
            }
            Item::RemoveLink(id) => return registries.remove_link(&link_name(&id)?),
            Item::Chains(declared) => registries.declare_chains(chains::document(declared)?)?,
            Item::Middlebox(change) => return chains::middlebox(registries, &change),
        }
        Ok(())
    })
}

/// A network off the wire; `None`: an empty one, which means that the SDN knows nothing.
///
/// # Errors
/// [`Reason::BadNetwork`] with every problem, [`Reason::Malformed`] tiers.
pub fn network(graph: v1::NetworkGraph) -> Result<Option<Arc<Network>>, ItemRefusal> {
    if graph.switches.is_empty() && graph.hosts.is_empty() && graph.links.is_empty() {
        return Ok(None);
    }
    let mut problems = Vec::new();
    let mut switches = Vec::with_capacity(graph.switches.len());
    for switch in graph.switches {
        match switch.tier.parse::<Tier>() {
            Ok(tier) => switches.push(SwitchEntry { name: switch.name, tier, up: true }),
            Err(error) => {
                problems.push(format!("switch \"{}\": {error}", switch.name));
                // Stands in, so that its links are not reported as well.
                switches.push(SwitchEntry { name: switch.name, tier: Tier::Edge, up: true });
            }
        }
    }
    let hosts = graph.hosts.into_iter().map(|host| HostEntry { name: host.name.into() }).collect();
    let links = graph.links.into_iter().map(|link| LinkEntry {
        id: link.id.into(),
        a: link.a,
        b: link.b,
        bits_per_s: i64::try_from(link.bits_per_s).unwrap_or(i64::MAX),
        up: link.up.unwrap_or(true),
        one_way: false,
    });
    let optical = graph.optical.map(|wire| OpticalSection {
        switch: wire.switch,
        interval_ms: if wire.interval_ms == 0 { OpticalSection::interval_ms() } else { wire.interval_ms },
        pause_ms: wire.pause_ms.unwrap_or(OpticalSection::pause_ms()),
        elephant_bytes: wire.elephant_bytes.map(Bytes),
        patience_ms: wire.patience_ms,
    });
    let format = NETWORK_FORMAT.to_owned();
    let document = NetworkDocument { format, switches, hosts, links: links.collect(), optical };
    match Network::from_document(&document) {
        Ok(network) if problems.is_empty() => Ok(Some(Arc::new(network))),
        Ok(_) => Err(refuse(&problems)),
        Err(found) => {
            problems.extend(found.iter().map(ToString::to_string));
            Err(refuse(&problems))
        }
    }
}

fn refuse(problems: &[String]) -> ItemRefusal {
    let mut message = problems[..problems.len().min(PROBLEMS_NAMED)].join("; ");
    if problems.len() > PROBLEMS_NAMED {
        // Writing to a string can not fail.
        _ = write!(message, "; and {} more", problems.len() - PROBLEMS_NAMED);
    }
    ItemRefusal::new(Reason::BadNetwork, message)
}

/// Who tells, for the log and for operators.
fn told_by(hello: &Hello) -> String {
    if hello.source.is_empty() { "a feed without a name".to_owned() } else { hello.source.clone() }
}

fn link(registries: &FeedRegistries, change: &v1::LinkChange, said_by: &str) -> Result<(), ItemRefusal> {
    let id = link_name(&change.id)?;
    match change.bits_per_s {
        Some(0) => Err(ItemRefusal::new(Reason::Zero, format!("link \"{id}\" has 0 bits per second; down is `up`"))),
        Some(bits) if bits > CAPACITY_MAX => {
            let message = format!("link \"{id}\" has {bits} bits per second: at most {CAPACITY_MAX}");
            Err(ItemRefusal::new(Reason::TooLarge, message))
        }
        None if change.up.is_none() => {
            Err(ItemRefusal::new(Reason::Malformed, format!("link \"{id}\" changes nothing")))
        }
        bits => registries.link(&id, change.up, bits.map(BitsPerSec), said_by),
    }
}

pub(super) fn link_name(id: &str) -> Result<LinkName, ItemRefusal> {
    convert::name("id", id).map(LinkName::from)
}
