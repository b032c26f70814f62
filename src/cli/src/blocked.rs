//! Why containers found no room, in words.

use hintd_client::wire::v1;
use hintd_model::cluster::resource::MEMORY_NAME;
use std::collections::BTreeSet;

/// What keeps nodes from taking containers, and which come nearest; a paragraph a group.
#[must_use]
pub(crate) fn blocked_text(blocked: &[v1::Blocked]) -> String {
    let lack = |lack: &v1::Lack| match lack.resource.as_str() {
        "" => lack.constraint.clone(),
        MEMORY_NAME => format!("{} MB short ({})", lack.short, lack.constraint),
        resource => format!("{} {resource} short ({})", lack.short, lack.constraint),
    };
    let near = |near: &v1::NearMiss| {
        let lacks: Vec<String> = near.lacks.iter().map(lack).collect();
        let rest = if near.lacks.len() == 1 { ", all else fits" } else { "" };
        format!("  nearest: {}: {}{rest}", near.host, lacks.join(", "))
    };
    let group = |blocked: &v1::Blocked| {
        let v1::Blocked { group, count, nodes, nearest, .. } = blocked;
        let constraint = constraint(blocked);
        let alone = match nodes {
            0 => String::new(),
            1 => ", which alone rules out 1 node".to_owned(),
            nodes => format!(", which alone rules out {nodes} nodes"),
        };
        let first = format!("{count} {group} containers unplaced: {constraint}{alone}");
        std::iter::once(first).chain(nearest.iter().map(near)).collect::<Vec<_>>().join("\n")
    };
    blocked.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// `no_room`, `max_per_node 2`
fn constraint(blocked: &v1::Blocked) -> String {
    match blocked.bound {
        0 => blocked.constraint.clone(),
        bound => format!("{} {bound}", blocked.constraint),
    }
}

/// ` under max_per_node 2`: by which bounds of the request an empty cluster holds no more.
pub(crate) fn under(blocked: &[v1::Blocked]) -> String {
    let bounds: BTreeSet<String> = blocked.iter().filter(|of| of.bound > 0).map(constraint).collect();
    match bounds.into_iter().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        bounds => format!(" under {bounds}"),
    }
}
