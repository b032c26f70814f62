//! Why containers found no room, in words.

use hintd_client::wire::v1;
use hintd_model::cluster::resource::MEMORY_NAME;

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
        let v1::Blocked { group, count, constraint, nodes, nearest } = blocked;
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
