//! Watches, route updates and acknowledgements.

use super::field::{NAME_BYTES, invalid, plain, reason};
use hintd_client::wire::v1;
use hintd_engine::{NamedRoute, Phase, Refusal, RouteUpdate, RuleAction, RuleChange, WatchScope, WatchedPair};
use std::sync::Arc;

/// Names that begin so are those of the daemon's own adapters: nobody else takes their watch from them.
const OWN: &str = "sdn.";
/// Updates are counted one by one: no number gets here.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// A watcher's name.
///
/// # Errors
/// [`Refusal::Invalid`].
pub(in crate::server) fn watcher(name: &str) -> Result<Arc<str>, Refusal> {
    if name.trim().is_empty() || name.len() > NAME_BYTES {
        let message = format!("a watcher's name has 1 to {NAME_BYTES} bytes, not {}", name.len());
        return Err(invalid("watcher", message));
    }
    plain("watcher", name)?;
    if name.starts_with(OWN) {
        return Err(invalid(
            "watcher",
            format!("\"{name}\" is the daemon's own, as is whatever begins with \"{OWN}\""),
        ));
    }
    Ok(name.into())
}

/// What a watcher wants to hear of; numbers of another life of the daemon than `instance` are nothing to resume after.
///
/// # Errors
/// [`Refusal::Invalid`].
pub(in crate::server) fn watch_scope(wire: &v1::WatchRequest, instance: &str) -> Result<WatchScope, Refusal> {
    if wire.pairs.is_empty() && !wire.flows && !wire.circuits {
        return Err(invalid("pairs", "is empty, and flows and circuits are not asked for: nothing is watched"));
    }
    if let Some(after) = wire.resume_after.filter(|after| *after > NUMBER_MAX) {
        return Err(invalid("resume_after", format!("update {after} was never sent")));
    }
    let pairs = wire.pairs.iter().enumerate().map(|(at, pair)| watched(&format!("pairs[{at}]"), pair));
    Ok(WatchScope {
        pairs: pairs.collect::<Result<_, _>>()?,
        flows: wire.flows,
        installs: wire.installs,
        circuits: wire.circuits,
        resume_after: wire.resume_after.filter(|_| wire.instance_id == instance),
    })
}

/// Routes that a controller could not install, and why.
///
/// # Errors
/// [`Refusal::Invalid`].
pub(in crate::server) fn refused_routes(wire: &[v1::RouteRefusal]) -> Result<Vec<(WatchedPair, String)>, Refusal> {
    let refused = |(at, refused): (usize, &v1::RouteRefusal)| {
        let field = format!("refused[{at}].pair");
        let pair = refused.pair.as_ref().ok_or_else(|| invalid(field.as_str(), "is missing"))?;
        Ok((watched(&field, pair)?, reason(&refused.reason)))
    };
    wire.iter().enumerate().map(refused).collect()
}

/// An update as the watcher gets it.
#[must_use]
pub(in crate::server) fn route_update(update: &RouteUpdate, instance: &str) -> v1::RouteUpdate {
    v1::RouteUpdate {
        number: update.number,
        snapshot: update.snapshot,
        routes: update.routes.iter().map(route).collect(),
        cause: update.cause.to_owned(),
        subject: update.subject.to_string(),
        untouched: update.untouched,
        instance_id: instance.to_owned(),
        removed: update.removed.iter().map(pair).collect(),
        rules: update.rules.iter().map(rule).collect(),
        phase: phase(update.phase).into(),
        circuits: update.circuits.as_deref().map(super::wanted_circuits),
    }
}

fn watched(field: &str, wire: &v1::HostPair) -> Result<WatchedPair, Refusal> {
    for (end, host) in [("src", &wire.src), ("dst", &wire.dst)] {
        if host.is_empty() {
            return Err(invalid(format!("{field}.{end}"), "is missing"));
        }
    }
    if wire.src == wire.dst {
        return Err(invalid(format!("{field}.dst"), format!("\"{}\" needs no path to itself", wire.src)));
    }
    if wire.class.len() > NAME_BYTES {
        let message = format!("{} bytes; at most {NAME_BYTES}", wire.class.len());
        return Err(invalid(format!("{field}.class"), message));
    }
    Ok(WatchedPair { src: wire.src.as_str().into(), dst: wire.dst.as_str().into(), class: wire.class.as_str().into() })
}

fn pair(pair: &WatchedPair) -> v1::HostPair {
    v1::HostPair { src: pair.src.to_string(), dst: pair.dst.to_string(), class: pair.class.to_string() }
}

fn route(route: &NamedRoute) -> v1::Route {
    v1::Route {
        pair: Some(pair(&route.pair)),
        vertices: route.vertices.iter().map(ToString::to_string).collect(),
        links: route.links.iter().map(ToString::to_string).collect(),
        stops: route.stops.iter().map(super::stop).collect(),
    }
}

fn rule(rule: &RuleChange) -> v1::RuleChange {
    use v1::rule_change::Action;
    let action = match &rule.action {
        RuleAction::Install { link, next } => {
            Action::Install(v1::InstallRule { link: link.to_string(), next: next.to_string() })
        }
        RuleAction::Remove => Action::Remove(v1::RemoveRule {}),
    };
    v1::RuleChange { switch: rule.switch.to_string(), pair: Some(pair(&rule.pair)), action: Some(action) }
}

const fn phase(phase: Phase) -> v1::RoutePhase {
    match phase {
        Phase::Initial => v1::RoutePhase::Initial,
        Phase::Make => v1::RoutePhase::Make,
        Phase::Break => v1::RoutePhase::Break,
        Phase::Failover => v1::RoutePhase::Failover,
        Phase::Resync => v1::RoutePhase::Resync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_pair(src: &str, dst: &str) -> v1::HostPair {
        v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() }
    }

    #[test]
    fn numbers_of_another_life_are_not_resumed_after() {
        let wire = v1::WatchRequest {
            watcher: "sdn".into(),
            flows: true,
            installs: true,
            resume_after: Some(7),
            instance_id: "a".into(),
            ..Default::default()
        };
        let scope = watch_scope(&wire, "a").unwrap();
        assert_eq!((scope.resume_after, scope.flows, scope.installs), (Some(7), true, true));
        assert_eq!(watch_scope(&wire, "b").unwrap().resume_after, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_field() {
        let field = |found: Result<(), Refusal>| match found {
            Err(Refusal::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        let watch = |wire: v1::WatchRequest| field(watch_scope(&wire, "a").map(drop));
        let pairs = |pairs: Vec<v1::HostPair>| v1::WatchRequest { pairs, ..Default::default() };
        assert_eq!(watch(pairs(vec![])), "pairs");
        assert_eq!(watch(pairs(vec![host_pair("a", "b"), host_pair("", "b")])), "pairs[1].src");
        assert_eq!(watch(pairs(vec![host_pair("a", "a")])), "pairs[0].dst");
        assert_eq!(
            watch(pairs(vec![v1::HostPair { class: "x".repeat(300), ..host_pair("a", "b") }])),
            "pairs[0].class"
        );
        let late = v1::WatchRequest { flows: true, resume_after: Some(u64::MAX), ..Default::default() };
        assert_eq!(watch(late), "resume_after", "numbers go on from it");
        assert_eq!(field(watcher(" ").map(drop)), "watcher");
        assert_eq!(field(watcher("sdn.ryu").map(drop)), "watcher");
        assert_eq!(field(refused_routes(&[v1::RouteRefusal::default()]).map(drop)), "refused[0].pair");
        let long = v1::RouteRefusal { pair: Some(host_pair("a", "b")), reason: "no\n".repeat(300) };
        assert_eq!(refused_routes(&[long]).unwrap()[0].1.len(), NAME_BYTES);
    }
}
