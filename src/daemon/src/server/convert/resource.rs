//! YARN's resources and ask rows, both ways.

use super::field::{invalid, named, text};
use crate::runtime::RequestLimits;
use hintd_client::wire::yarn;
use hintd_engine::Refusal;
use hintd_model::cluster::resource::{KINDS_MAX, MEMORY_NAME, VCORES_NAME, unit};
use hintd_model::cluster::{Ask, NamedResource};
use hintd_model::units::SchedulerKey;
use std::sync::Arc;

/// A container's size: memory above zero, nothing negative, nothing that overflows.
pub(super) fn size(
    field: &str,
    wire: Option<&yarn::ResourceProto>,
    limits: &RequestLimits,
) -> Result<NamedResource, Refusal> {
    let Some(wire) = wire else { return Err(invalid(field, "is missing")) };
    let resource = resource(field, wire, limits)?;
    if resource.memory_mb == 0 {
        return Err(invalid(format!("{field}.memory"), "0 MB are asked for, and a container needs some"));
    }
    Ok(resource)
}

/// Any resource, zero allowed. YARN's clients send memory and vcores twice, as fields and in the map;
/// the fields win.
fn resource(field: &str, wire: &yarn::ResourceProto, limits: &RequestLimits) -> Result<NamedResource, Refusal> {
    let mut found = NamedResource {
        memory_mb: amount(&format!("{field}.memory"), wire.memory.unwrap_or(0))?,
        vcores: amount(&format!("{field}.virtual_cores"), i64::from(wire.virtual_cores.unwrap_or(0)))?,
        named: Vec::new(),
    };
    let most = KINDS_MAX * 2;
    if wire.resource_value_map.len() > most {
        let message = format!("{} entries; at most {most} are allowed", wire.resource_value_map.len());
        return Err(invalid(format!("{field}.resource_value_map"), message));
    }
    for (at, entry) in wire.resource_value_map.iter().enumerate() {
        let path = format!("{field}.resource_value_map[{at}]");
        let name = named(format_args!("{path}.key"), &entry.key, limits)?;
        let value = in_units(&path, entry)?;
        match &*name {
            MEMORY_NAME if wire.memory.is_none() => found.memory_mb = value >> 20,
            VCORES_NAME if wire.virtual_cores.is_none() => found.vcores = value,
            MEMORY_NAME | VCORES_NAME => {}
            _ if found.named.iter().any(|(known, _)| *known == name) => {
                return Err(invalid(format!("{path}.key"), format!("\"{name}\" is given twice")));
            }
            _ => found.named.push((name, value)),
        }
    }
    Ok(found)
}

fn amount(field: &str, value: i64) -> Result<u64, Refusal> {
    u64::try_from(value).map_err(|_| invalid(field, format!("{value} is negative")))
}

/// A map entry's value in its base unit: bytes for memory (YARN says `Mi` there; bare means MB too).
fn in_units(path: &str, entry: &yarn::ResourceInformationProto) -> Result<u64, Refusal> {
    let value = amount(&format!("{path}.value"), entry.value.unwrap_or(0))?;
    let units = entry.units.as_deref().unwrap_or("");
    let units = if entry.key == MEMORY_NAME && units.is_empty() { "Mi" } else { units };
    let factor = unit(units).ok_or_else(|| {
        invalid(format!("{path}.units"), format!("\"{units}\" is no unit; whole ones from \"\" to \"Pi\" are"))
    })?;
    value
        .checked_mul(factor)
        .filter(|&total| i64::try_from(total).is_ok())
        .ok_or_else(|| invalid(format!("{path}.value"), format!("{value}{units} overflows YARN's 64 bits")))
}

/// One row of the ask table.
pub(super) fn ask(field: &str, wire: &yarn::ResourceRequestProto, limits: &RequestLimits) -> Result<Ask, Refusal> {
    let count = wire.num_containers.unwrap_or(0);
    let count =
        u32::try_from(count).map_err(|_| invalid(format!("{field}.num_containers"), format!("{count} is negative")))?;
    let size_field = format!("{field}.capability");
    let resource = match (&wire.capability, count) {
        // A row of count 0 takes an earlier one back; YARN's clients send it with or without a size.
        (None, 0) => NamedResource::default(),
        (Some(wire), 0) => resource(&size_field, wire, limits)?,
        (wire, _) => size(&size_field, wire.as_ref(), limits)?,
    };
    Ok(Ask {
        key: SchedulerKey {
            priority: wire.priority.as_ref().and_then(|priority| priority.priority).unwrap_or(0),
            allocation_request_id: wire.allocation_request_id(),
        },
        resource_name: named(
            format_args!("{field}.resource_name"),
            wire.resource_name.as_deref().unwrap_or(""),
            limits,
        )?,
        size: resource,
        count,
        relax_locality: wire.relax_locality(),
        label: text(
            format_args!("{field}.node_label_expression"),
            wire.node_label_expression.as_deref().unwrap_or(""),
            limits,
        )?,
    })
}

/// A row of the replacement table, as YARN wants it.
#[must_use]
pub fn ask_to_wire(ask: &Ask) -> yarn::ResourceRequestProto {
    yarn::ResourceRequestProto {
        priority: Some(yarn::PriorityProto { priority: Some(ask.key.priority) }),
        resource_name: Some(ask.resource_name.to_string()),
        capability: Some(resource_to_wire(&ask.size)),
        num_containers: Some(i32::try_from(ask.count).unwrap_or(i32::MAX)),
        relax_locality: Some(ask.relax_locality),
        node_label_expression: (!ask.label.is_empty()).then(|| ask.label.to_string()),
        execution_type_request: None,
        allocation_request_id: Some(ask.key.allocation_request_id),
    }
}

/// A resource as YARN sends it: memory and vcores as fields, further kinds in the map.
#[must_use]
pub fn resource_to_wire(resource: &NamedResource) -> yarn::ResourceProto {
    let entry = |(name, value): &(Arc<str>, u64)| yarn::ResourceInformationProto {
        key: name.to_string(),
        value: Some(i64::try_from(*value).unwrap_or(i64::MAX)),
        units: Some(String::new()),
        ..yarn::ResourceInformationProto::default()
    };
    yarn::ResourceProto {
        memory: Some(i64::try_from(resource.memory_mb).unwrap_or(i64::MAX)),
        virtual_cores: Some(i32::try_from(resource.vcores).unwrap_or(i32::MAX)),
        resource_value_map: resource.named.iter().map(entry).collect(),
    }
}
