//! `Feed.Heartbeats`: registrations, heartbeats and tombstones of nodes.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, Hello, ItemRefusal, Reason, convert};
use crate::runtime::registries::{RegistryLimits, bounded};
use hintd_client::wire::v1;
use hintd_model::cluster::{Heartbeat, Registration};
use hintd_model::units::Bytes;
use std::sync::Arc;
use v1::heartbeat_item::Item;

/// Takes one item in.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(
    registries: &FeedRegistries,
    stream: &mut FeedStream,
    item: v1::HeartbeatItem,
) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Register(register) => {
            stream.greeted()?;
            registries.register(registration(register, registries.limits())?)
        }
        Item::Heartbeat(wire) => {
            let taken =
                registries.heartbeat(heartbeat(&wire, stream.greeted()?, registries.limits())?, wire.response_id);
            if taken.as_ref().is_err_and(|refusal| refusal.reason == Reason::UnknownNode) {
                stream.ask_to_register(&wire.host);
            }
            taken
        }
        Item::Gone(gone) => {
            stream.greeted()?;
            registries.gone(&convert::host("host", &gone.host)?)
        }
    })
}

fn registration(wire: v1::RegisterNode, limits: &RegistryLimits) -> Result<Registration, ItemRefusal> {
    for (what, count) in
        [("labels", wire.labels.len()), ("aliases", wire.aliases.len()), ("attributes", wire.attributes.len())]
    {
        bounded(what, count, limits.names_per_node, "names_per_node")?;
    }
    let class: Arc<str> = match wire.machine_class.as_str() {
        "" => "".into(),
        class => convert::name("machine_class", class)?.into(),
    };
    let names = |field: &str, names: &[String]| -> Result<Vec<Arc<str>>, ItemRefusal> {
        names.iter().map(|text| convert::name(field, text).map(Arc::from)).collect()
    };
    Ok(Registration {
        host: convert::host("host", &wire.host)?,
        rack: convert::rack(&wire.rack)?,
        total: convert::size("total", wire.total.as_ref())?,
        labels: names("labels", &wire.labels)?,
        aliases: names("aliases", &wire.aliases)?,
        attributes: wire.attributes,
        class,
        disk_read: Bytes(wire.disk_read_bytes_per_s),
        state: convert::state(wire.state.as_deref().unwrap_or_default())?,
    })
}

fn heartbeat(wire: &v1::NodeHeartbeat, hello: &Hello, limits: &RegistryLimits) -> Result<Heartbeat, ItemRefusal> {
    bounded("containers", wire.containers.len(), limits.containers_per_node, "containers_per_node")?;
    let state = convert::state(&wire.state)?;
    if wire.used.is_none() && !hello.names_containers && !state.gone() {
        let message = "used: missing, from a feed that names no containers: nothing tells what the node has left";
        return Err(ItemRefusal::new(Reason::Malformed, message.to_owned()));
    }
    // Completed containers are told once, and live no more.
    let living = wire.containers.iter().filter(|container| !container.complete);
    let containers: Vec<_> = living.map(convert::container).collect::<Result<_, _>>()?;
    Ok(Heartbeat {
        host: convert::host("host", &wire.host)?,
        used: wire.used.as_ref().map(|used| convert::resource("used", used)).transpose()?.unwrap_or_default(),
        used_is_running: hello.used_is_running,
        containers: hello.names_containers.then_some(containers),
        state,
    })
}
