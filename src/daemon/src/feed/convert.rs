//! Names, amounts, containers and states off the wire: checked for shape, nothing resolved.

use super::{ItemRefusal, Reason};
use hintd_client::wire::{v1, yarn};
use hintd_model::cluster::dataset::normal;
use hintd_model::cluster::resource::{AMOUNT_MAX, KINDS_MAX, MEMORY_NAME, VCORES_NAME, unit};
use hintd_model::cluster::{NamedContainer, NamedResource, NodeState};
use hintd_model::text::is_hidden;
use hintd_model::units::{HostName, RackPath, SchedulerKey};
use std::fmt::Display;
use std::sync::Arc;

/// The longest name of a host, rack, label, class, link or path that is taken, bytes. HDFS's own limit for paths.
pub const NAME_BYTES: usize = 8_000;

/// YARN's default of `allocation_request_id`.
const NO_REQUEST_ID: i64 = -1;

/// What a memory entry without units is in.
const MEBIBYTES: &str = "Mi";

/// A name: something must be there, and none of it white space or control characters.
///
/// # Errors
/// [`Reason::Malformed`], [`Reason::TooLarge`].
pub fn name<'a>(field: &str, text: &'a str) -> Result<&'a str, ItemRefusal> {
    if text.is_empty() {
        return Err(ItemRefusal::new(Reason::Malformed, format!("{field} is empty")));
    }
    if text.len() > NAME_BYTES {
        let message = format!("{field} has {} bytes: at most {NAME_BYTES}", text.len());
        return Err(ItemRefusal::new(Reason::TooLarge, message));
    }
    if text.chars().any(|c| is_hidden(c) || c.is_whitespace()) {
        let message = format!("{field} {text:?} holds white space or control characters");
        return Err(ItemRefusal::new(Reason::Malformed, message));
    }
    Ok(text)
}

/// A host's name in anybody's spelling.
///
/// # Errors
/// As [`name`].
pub fn host(field: &str, text: &str) -> Result<HostName, ItemRefusal> {
    name(field, text).map(HostName::from)
}

/// An HDFS path: absolute; white space may be part of it.
///
/// # Errors
/// [`Reason::Malformed`], [`Reason::TooLarge`].
pub fn path(field: &str, text: &str) -> Result<Arc<str>, ItemRefusal> {
    if text.len() > NAME_BYTES {
        let message = format!("{field} has {} bytes: at most {NAME_BYTES}", text.len());
        return Err(ItemRefusal::new(Reason::TooLarge, message));
    }
    let absolute = text.starts_with('/') || text.contains("://");
    if !absolute || text.chars().any(is_hidden) {
        return Err(ItemRefusal::new(Reason::Malformed, format!("{field} {text:?} is no absolute path")));
    }
    Ok(normal(text).into())
}

/// A rack as YARN prints it; empty: YARN's own default.
///
/// # Errors
/// [`Reason::Malformed`], [`Reason::TooLarge`].
pub fn rack(text: &str) -> Result<RackPath, ItemRefusal> {
    if text.is_empty() {
        return Ok(hintd_model::cluster::model::DEFAULT_RACK.into());
    }
    if !text.starts_with('/') || text.len() == 1 {
        let message = format!("rack \"{text}\" is no path, as in \"/rack1\"");
        return Err(ItemRefusal::new(Reason::Malformed, message));
    }
    name("rack", text).map(RackPath::from)
}

/// YARN's word for a state; empty: RUNNING.
///
/// # Errors
/// [`Reason::Malformed`].
pub fn state(word: &str) -> Result<NodeState, ItemRefusal> {
    if word.is_empty() {
        return Ok(NodeState::Running);
    }
    let unknown = || ItemRefusal::new(Reason::Malformed, format!("\"{word}\" is no node state of YARN's"));
    NodeState::from_yarn(word).ok_or_else(unknown)
}

/// An amount of every kind. Like YARN, memory and vcores count as their own fields say; where those are absent,
/// as the map says.
///
/// # Errors
/// [`Reason::Negative`], [`Reason::TooLarge`], [`Reason::TooMany`] kinds, [`Reason::Duplicate`] kinds,
/// [`Reason::Malformed`] units.
pub fn resource(field: &str, wire: &yarn::ResourceProto) -> Result<NamedResource, ItemRefusal> {
    let mut found = NamedResource {
        memory_mb: amount(format_args!("{field}.memory"), wire.memory.unwrap_or(0))?,
        vcores: amount(format_args!("{field}.virtual_cores"), i64::from(wire.virtual_cores.unwrap_or(0)))?,
        named: Vec::new(),
    };
    for entry in &wire.resource_value_map {
        let kind = name(field, &entry.key)?;
        let value = in_units(field, kind, entry)?;
        match kind {
            MEMORY_NAME if wire.memory.is_none() => found.memory_mb = value,
            VCORES_NAME if wire.virtual_cores.is_none() => found.vcores = value,
            MEMORY_NAME | VCORES_NAME => {}
            _ if found.named.iter().any(|(known, _)| **known == *kind) => {
                return Err(ItemRefusal::new(Reason::Duplicate, format!("{field} names \"{kind}\" twice")));
            }
            _ if found.named.len() == KINDS_MAX => {
                let message = format!("{field} names \"{kind}\" beyond {KINDS_MAX} kinds");
                return Err(ItemRefusal::new(Reason::TooMany, message));
            }
            _ => found.named.push((kind.into(), value)),
        }
    }
    Ok(found)
}

/// A size: a resource with memory.
///
/// # Errors
/// As [`resource`], [`Reason::Malformed`] where it is missing, [`Reason::Zero`] without memory.
pub fn size(field: &str, wire: Option<&yarn::ResourceProto>) -> Result<NamedResource, ItemRefusal> {
    let wire = wire.ok_or_else(|| ItemRefusal::new(Reason::Malformed, format!("{field} is missing")))?;
    let found = resource(field, wire)?;
    if found.memory_mb == 0 {
        return Err(ItemRefusal::new(Reason::Zero, format!("{field} has 0 MB of memory")));
    }
    Ok(found)
}

/// A container that a node reports.
///
/// # Errors
/// As [`size`], [`Reason::Malformed`] for its id.
pub fn container(wire: &v1::NodeContainer) -> Result<NamedContainer, ItemRefusal> {
    let malformed = |error: hintd_model::units::IdError| ItemRefusal::new(Reason::Malformed, error);
    let id = wire.container_id.parse().map_err(malformed)?;
    let priority = wire.priority;
    let allocation_request_id = wire.allocation_request_id.unwrap_or(NO_REQUEST_ID);
    let size = size("resource", wire.resource.as_ref())
        .map_err(|refusal| ItemRefusal { message: format!("{}: {}", wire.container_id, refusal.message), ..refusal })?;
    Ok(NamedContainer { id, size, key: SchedulerKey { priority, allocation_request_id } })
}

fn amount(field: impl Display, value: i64) -> Result<u64, ItemRefusal> {
    let value = u64::try_from(value)
        .map_err(|_| ItemRefusal::new(Reason::Negative, format!("{field} is {value}, below zero")))?;
    if value > AMOUNT_MAX {
        return Err(ItemRefusal::new(Reason::TooLarge, format!("{field} is {value}: at most {AMOUNT_MAX}")));
    }
    Ok(value)
}

/// A map entry in the kind's own unit: MB for memory, ones for all else.
fn in_units(field: &str, kind: &str, entry: &yarn::ResourceInformationProto) -> Result<u64, ItemRefusal> {
    let said = entry.value.unwrap_or(0);
    let whole = format_args!("{field}.{kind}");
    let value = u64::try_from(said)
        .map_err(|_| ItemRefusal::new(Reason::Negative, format!("{whole} is {said}, below zero")))?;
    let units = entry.units.as_deref().unwrap_or_default();
    let units = if kind == MEMORY_NAME && units.is_empty() { MEBIBYTES } else { units };
    let factor = unit(units).ok_or_else(|| {
        let message = format!("{whole} is in \"{units}\", which is no whole unit from \"\" to \"Pi\"");
        ItemRefusal::new(Reason::Malformed, message)
    })?;
    let total = u128::from(value) * u128::from(factor);
    let total = if kind == MEMORY_NAME { total >> 20 } else { total };
    u64::try_from(total)
        .ok()
        .filter(|&total| total <= AMOUNT_MAX)
        .ok_or_else(|| ItemRefusal::new(Reason::TooLarge, format!("{whole} is {said}{units}: at most {AMOUNT_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: i64, units: &str) -> yarn::ResourceInformationProto {
        let (value, units) = (Some(value), Some(units.to_owned()));
        yarn::ResourceInformationProto { key: key.into(), value, units, ..Default::default() }
    }

    fn wire(memory: Option<i64>, map: Vec<yarn::ResourceInformationProto>) -> yarn::ResourceProto {
        yarn::ResourceProto { memory, virtual_cores: None, resource_value_map: map }
    }

    #[test]
    fn memory_counts_in_mb_whatever_its_units() {
        for (value, units, mb) in [(2048, "", 2048), (2048, "Mi", 2048), (2, "Gi", 2048), (1_048_576, "k", 1000)] {
            let found = resource("r", &wire(None, vec![entry("memory-mb", value, units)])).unwrap();
            assert_eq!(found.memory_mb, mb, "{value}{units}");
        }
        let both = resource("r", &wire(Some(512), vec![entry("memory-mb", 2048, "Mi"), entry("vcores", 3, "")]));
        let both = both.unwrap();
        assert_eq!((both.memory_mb, both.vcores), (512, 3), "a field wins where it is there");
        let gpus = resource("r", &wire(Some(1), vec![entry("yarn.io/gpu", 2, "k")])).unwrap();
        assert_eq!(gpus.named, [("yarn.io/gpu".into(), 2000)]);
    }

    #[test]
    fn amounts_that_can_not_be_are_refused_by_kind() {
        let reason = |wire: yarn::ResourceProto| size("total", Some(&wire)).unwrap_err().reason;
        assert_eq!(reason(wire(Some(-1), vec![])), Reason::Negative);
        assert_eq!(reason(wire(Some(0), vec![])), Reason::Zero);
        assert_eq!(reason(wire(Some(i64::MAX), vec![])), Reason::TooLarge);
        assert_eq!(reason(wire(None, vec![entry("memory-mb", i64::MAX, "Pi")])), Reason::TooLarge);
        assert_eq!(reason(wire(None, vec![entry("memory-mb", -5, "Mi")])), Reason::Negative);
        assert_eq!(reason(wire(Some(1), vec![entry("gpu", 1, "m")])), Reason::Malformed);
        assert_eq!(reason(wire(Some(1), vec![entry("gpu", 1, ""), entry("gpu", 1, "")])), Reason::Duplicate);
        assert_eq!(size("total", None).unwrap_err().reason, Reason::Malformed);
        let many = (0..=KINDS_MAX).map(|n| entry(&format!("k{n}"), 1, "")).collect();
        assert_eq!(reason(wire(Some(1), many)), Reason::TooMany);
    }

    #[test]
    fn names_racks_and_states_are_checked() {
        assert_eq!(rack("").unwrap().as_str(), "/default-rack");
        assert_eq!(rack("/dc/r1").unwrap().as_str(), "/dc/r1");
        for text in ["rack1", "/", "/r 1"] {
            assert_eq!(rack(text).unwrap_err().reason, Reason::Malformed, "{text}");
        }
        assert!(host("host", "").is_err() && host("host", "a\nb").is_err());
        assert_eq!(host("host", &"x".repeat(NAME_BYTES + 1)).unwrap_err().reason, Reason::TooLarge);
        assert!(path("path", "/in/a b").is_ok() && path("path", "hdfs://nn/in").is_ok());
        assert!(path("path", "in").is_err());
        assert_eq!(state("NS_LOST"), Ok(NodeState::Lost));
        assert_eq!(state(""), Ok(NodeState::Running));
        assert!(state("TIRED").unwrap_err().message.contains("TIRED"));
    }
}
