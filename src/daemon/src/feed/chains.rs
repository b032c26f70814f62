//! Middleboxes and chains off the wire, as a whole, and the state of single boxes.

use super::{FeedRegistries, ItemRefusal, Reason, convert};
use hintd_client::wire::v1;
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument, Direction, Protocol, WhenBroken};
use hintd_model::units::BitsPerSec;

/// The largest capacity that is believed, bits per second: as for links.
const CAPACITY_MAX: u64 = 100_000_000_000_000;

/// A declaration in the form that files have; what is wrong with its content is found when it is taken.
///
/// # Errors
/// [`Reason::Malformed`] words and ports, with the chain.
pub(super) fn document(declared: v1::ChainsDeclaration) -> Result<ChainsDocument, ItemRefusal> {
    let entry = |known: v1::Middlebox| BoxEntry {
        name: known.name,
        kind: known.r#type,
        at: known.at,
        bits_per_s: known.bits_per_s,
        up: known.up.unwrap_or(true),
    };
    Ok(ChainsDocument {
        groups: declared.groups,
        boxes: declared.boxes.into_iter().map(entry).collect(),
        chains: declared.chains.into_iter().map(chain).collect::<Result<_, _>>()?,
    })
}

fn chain(declared: v1::TrafficChain) -> Result<ChainEntry, ItemRefusal> {
    let name = declared.name.clone();
    let wrong = |what: &str, value: &dyn std::fmt::Display| {
        ItemRefusal::new(Reason::Malformed, format!("chain \"{name}\": {what} is {value}"))
    };
    let direction = match declared.direction.as_str() {
        "" | "both" => Direction::Both,
        "in" => Direction::In,
        "out" => Direction::Out,
        other => return Err(wrong("direction", &format!("\"{other}\", none of in, out, both"))),
    };
    let protocol = match declared.protocol.as_str() {
        "" => None,
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        other => return Err(wrong("protocol", &format!("\"{other}\", neither tcp nor udp"))),
    };
    let when_broken = match declared.when_broken.as_str() {
        "" | "closed" => WhenBroken::Closed,
        "open" => WhenBroken::Open,
        other => return Err(wrong("when_broken", &format!("\"{other}\", neither closed nor open"))),
    };
    let port = |port: u32| u16::try_from(port).map_err(|_| wrong("a port", &port));
    let ports = match (declared.first_port, declared.last_port) {
        (None, None) => None,
        (Some(first), Some(last)) => Some((port(first)?, port(last)?)),
        (first, last) => {
            let one = first.or(last).unwrap_or_default();
            return Err(wrong("one port alone", &format!("{one}: first and last go together")));
        }
    };
    Ok(ChainEntry {
        name: declared.name,
        priority: declared.priority,
        application: declared.application,
        queue: declared.queue,
        group: declared.group,
        direction,
        ports,
        protocol,
        sequence: declared.sequence,
        when_broken,
    })
}

/// Takes a change of a box in.
///
/// # Errors
/// Why it is refused.
pub(super) fn middlebox(registries: &FeedRegistries, change: &v1::MiddleboxChange) -> Result<(), ItemRefusal> {
    let name = convert::name("name", &change.name)?;
    match change.bits_per_s {
        Some(bits) if bits > CAPACITY_MAX => {
            let message = format!("middlebox \"{name}\" has {bits} bits per second: at most {CAPACITY_MAX}");
            Err(ItemRefusal::new(Reason::TooLarge, message))
        }
        None if change.up.is_none() => {
            Err(ItemRefusal::new(Reason::Malformed, format!("middlebox \"{name}\" changes nothing")))
        }
        bits => registries.middlebox(name, change.up, bits.map(BitsPerSec)),
    }
}
