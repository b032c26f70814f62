//! What a file says of nothing that is there.

use super::super::document::NetworkDocument;
use super::document::RacksDocument;
use super::dotted;
use super::places::{KnownHosts, Places};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Patterns that mean no rack, no host and no switch, with their keys.
pub(super) fn patterns_unused(
    document: &RacksDocument,
    places: &Places<'_>,
    made: &NetworkDocument,
    known: &KnownHosts,
) -> Vec<String> {
    let mut found = Vec::new();
    let racks: BTreeSet<&str> = places.used_racks.iter().map(String::as_str).collect();
    let placed = places.edges.values().flatten().map(|(host, _)| &**host);
    let hosts: BTreeSet<&str> = known.racks.keys().map(|host| &**host).chain(placed).collect();
    for (path, row) in &document.racks {
        if path.ends_with('*') && !any(path, &racks) {
            found.push(key(&["racks", path]));
        }
        let patterns = row.hosts.iter().filter(|name| name.ends_with('*') && !any(name, &hosts));
        found.extend(patterns.map(|name| format!("{} {name:?}", key(&["racks", path, "hosts"]))));
    }
    let switches: BTreeSet<&str> = made.switches.iter().map(|switch| switch.name.as_str()).collect();
    for (name, row) in &document.switches {
        // Without racks there is nothing that a switch could be above.
        let above = row.above.iter().filter(|pattern| !switches.is_empty() && !any(pattern, &switches));
        found.extend(above.map(|pattern| format!("{} {pattern:?}", key(&["switches", name, "above"]))));
    }
    found
}

fn key(path: &[&str]) -> String {
    dotted(&path.iter().map(|&key| key.to_owned()).collect::<Vec<_>>())
}

/// Whether a name is meant by the pattern: names stand in order, so those that begin alike stand together.
fn any(pattern: &str, names: &BTreeSet<&str>) -> bool {
    let Some(begin) = pattern.strip_suffix('*') else { return names.contains(pattern) };
    let mut from = names.range::<str, _>((Bound::Included(begin), Bound::Unbounded));
    from.next().is_some_and(|name| name.starts_with(begin))
}
