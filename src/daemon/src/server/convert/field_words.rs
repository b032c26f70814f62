//! Refusals of a request's fields in words: which group, row or edge it is, and what of it. A path alone, as
//! `groups[0].resource.memory`, says nothing to an operator who sees it in a log.

use hintd_client::wire::v1;
use hintd_engine::Refusal;

/// A name is shown this far.
const NAME_SHOWN: usize = 64;

/// The refusal, with words before what is wrong with a field of a group, a row of the ask table or an edge.
pub(super) fn in_words(wire: &v1::RequestHintsRequest, refusal: Refusal) -> Refusal {
    match refusal {
        // What names its groups already is left as it is.
        Refusal::Invalid { field, message } if !message.starts_with("group") => {
            let said = words(wire, &field).map(|words| match message.starts_with("is ") {
                true => format!("{words} {message}"),
                false => format!("{words}: {message}"),
            });
            Refusal::Invalid { message: said.unwrap_or(message), field }
        }
        other => other,
    }
}

/// `group "reduce": memory of a container`; `None`: it is a field of the request itself.
fn words(wire: &v1::RequestHintsRequest, field: &str) -> Option<String> {
    let (list, rest) = field.split_once('[')?;
    let (at, rest) = rest.split_once(']')?;
    let at: usize = at.parse().ok()?;
    let whose = match list {
        "groups" => named("group", &wire.groups.get(at)?.name, at),
        "asks" => {
            let ask = wire.asks.get(at)?;
            let priority = ask.priority.as_ref().and_then(|priority| priority.priority).unwrap_or(0);
            format!("{} of priority {priority}", named("ask for", ask.resource_name.as_deref().unwrap_or(""), at))
        }
        "edges" => {
            let edge = wire.edges.get(at)?;
            format!("edge from \"{}\" to \"{}\"", shown(&edge.from), shown(&edge.to))
        }
        _ => return None,
    };
    Some(format!("{whose}: {}", part(rest.trim_start_matches('.'))))
}

fn shown(name: &str) -> String {
    name.chars().take(NAME_SHOWN).collect()
}

fn named(what: &str, name: &str, at: usize) -> String {
    if name.trim().is_empty() { format!("{what} number {}", at + 1) } else { format!("{what} \"{}\"", shown(name)) }
}

/// What of it: a path below an entry of a list.
fn part(path: &str) -> String {
    match path {
        "resource" | "capability" => "size of a container".to_owned(),
        "resource.memory" | "capability.memory" => "memory of a container".to_owned(),
        "resource.virtual_cores" | "capability.virtual_cores" => "vcores of a container".to_owned(),
        "count" | "num_containers" => "number of containers".to_owned(),
        "whole" => "number of containers in all".to_owned(),
        other => {
            let mut words = other.replace(['.', '_'], " ");
            // Numbers of entries count from 1 for people.
            while let Some((before, rest)) = words.split_once('[')
                && let Some((at, after)) = rest.split_once(']')
            {
                let number = at.parse::<usize>().map_or_else(|_| at.to_owned(), |at| (at + 1).to_string());
                words = format!("{before} number {number}{after}");
            }
            words
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_client::wire::yarn;

    #[test]
    fn a_field_of_a_group_a_row_or_an_edge_is_told_in_words_before_its_path() {
        let group = |name: &str| v1::TaskGroup { name: name.into(), ..v1::TaskGroup::default() };
        let wire = v1::RequestHintsRequest {
            groups: vec![group("map"), group("reduce"), group(" ")],
            asks: vec![yarn::ResourceRequestProto { resource_name: Some("h1".into()), ..Default::default() }],
            edges: vec![v1::GroupEdge { from: "map".into(), to: "red".into(), ..v1::GroupEdge::default() }],
            ..v1::RequestHintsRequest::default()
        };
        let said = |field: &str, message: &str| {
            in_words(&wire, Refusal::Invalid { field: field.into(), message: message.into() }).to_string()
        };
        assert_eq!(
            said("groups[1].resource.memory", "0 MB are asked for"),
            "group \"reduce\": memory of a container: 0 MB are asked for (groups[1].resource.memory)"
        );
        assert_eq!(
            said("groups[2].resource", "is missing"),
            "group number 3: size of a container is missing (groups[2].resource)"
        );
        assert_eq!(
            said("groups[0].constraints.avoid_hosts[4]", "is missing: \"\""),
            "group \"map\": constraints avoid hosts number 5 is missing: \"\" (groups[0].constraints.avoid_hosts[4])"
        );
        assert_eq!(
            said("asks[0].num_containers", "-1 is negative"),
            "ask for \"h1\" of priority 0: number of containers: -1 is negative (asks[0].num_containers)"
        );
        assert_eq!(
            said("edges[0].to", "\"red\" is none of the groups"),
            "edge from \"map\" to \"red\": to: \"red\" is none of the groups (edges[0].to)"
        );
        assert_eq!(said("request_id", "is missing: \"\""), "request_id: is missing: \"\"");
        assert_eq!(said("groups[9].count", "is odd"), "groups[9].count: is odd", "there is no such group");
    }
}
