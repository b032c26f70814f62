//! Links and who uses them, what-ifs of the network, and those who watch routes, for operators.

use super::field::invalid;
use crate::runtime::clock::Clock;
use crate::runtime::{DownLink, LastOutage, LinkTold};
use hintd_client::wire::v1;
use hintd_engine::{
    ApplicationPaths, CarriedRoutes, Drain, Generation, LinkForecast, LinkUse, LoadSource, NetworkWhatIf, Refusal,
    RouteForecast, WatcherState, application_paths,
};
use hintd_model::units::{ApplicationId, LinkName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Refused routes named of each watcher.
const REFUSED_NAMED: usize = 20;

/// Which paths applications have now whose routes went over links that are down.
#[derive(Debug, Default)]
pub(in crate::server) struct PathsNow(BTreeMap<ApplicationId, ApplicationPaths>);

impl PathsNow {
    pub(in crate::server) fn of(generation: &Generation, down: &[(LinkName, DownLink)]) -> Self {
        let carried = down.iter().filter_map(|(_, down)| down.carried.as_deref());
        let named: BTreeSet<_> = carried.flat_map(|carried| &carried.applications).map(|(of, _)| *of).collect();
        match generation.snapshot.topology.network.as_deref() {
            Some(network) if !named.is_empty() => Self(application_paths(network, &generation.flows, &named)),
            _ => Self::default(),
        }
    }

    fn carried(&self, carried: &CarriedRoutes) -> v1::CarriedRoutes {
        let application = |(application, routes): &(ApplicationId, u64)| {
            let now = self.0.get(application).copied().unwrap_or_default();
            v1::CarriedApplication {
                application_id: application.to_string(),
                routes: *routes,
                routes_whole: now.whole,
                routes_cut: now.cut,
            }
        };
        v1::CarriedRoutes {
            routes: carried.routes,
            routes_uncertain: carried.uncertain,
            routes_chained: carried.chained,
            applications: carried.applications.iter().map(application).collect(),
            applications_total: u32::try_from(carried.applications_total).unwrap_or(u32::MAX),
        }
    }
}

/// One link with its `users` greatest users; 0: all. `told`: what the registries know of it, by this `clock`.
#[must_use]
pub(in crate::server) fn link_view(
    link: &LinkUse,
    (told, clock): (&LinkTold, Clock),
    paths: &PathsNow,
    users: u32,
) -> v1::LinkView {
    let named = if users == 0 { usize::MAX } else { users as usize };
    let is_measured = link.source == LoadSource::Measured;
    let user = |user: &hintd_engine::LinkUser| v1::LinkUser {
        application_id: user.application.to_string(),
        bits_per_s: whole(user.bits_per_s),
        a_to_b_bits_per_s: whole(user.each[0]),
        b_to_a_bits_per_s: whole(user.each[1]),
        above_measured: is_measured && (0..2).any(|way| user.each[way] > link.load[way]),
        a_to_b_bytes: user.bytes[0].0,
        b_to_a_bytes: user.bytes[1].0,
        fills: link.fills(user),
    };
    let unaccounted = link.unaccounted;
    // What is told is newer than the snapshot: a link that is up there has been down since no time.
    let down = told.down.as_ref().filter(|_| !link.up);
    v1::LinkView {
        id: link.link.to_string(),
        a: link.ends[0].to_string(),
        b: link.ends[1].to_string(),
        bits_per_s: link.capacity.0,
        up: link.up,
        a_to_b_bits_per_s: whole(link.load[0]),
        b_to_a_bits_per_s: whole(link.load[1]),
        load_source: match link.source {
            LoadSource::Measured => v1::LoadSource::Measured.into(),
            LoadSource::Modelled => v1::LoadSource::Modelled.into(),
        },
        a_to_b_task_pairs: link.task_pairs[0],
        b_to_a_task_pairs: link.task_pairs[1],
        users: link.users.iter().take(named).map(user).collect(),
        users_total: u32::try_from(link.users.len()).unwrap_or(u32::MAX),
        down_ms: down.map(down_ms),
        down_by: down.map(|down| down.said_by.to_string()).unwrap_or_default(),
        load_age_ms: told.measured.filter(|_| is_measured).map(millis),
        a_to_b_modelled_bits_per_s: whole(link.modelled[0]),
        b_to_a_modelled_bits_per_s: whole(link.modelled[1]),
        users_reason: users_reason(link).to_owned(),
        carried: down.and_then(|down| down.carried.as_deref()).map(|carried| paths.carried(carried)),
        last_outage: told.last_outage.as_ref().map(|outage| last_outage(outage, clock)),
        damped: link.damped,
        down_at_ms: down.map_or(0, |down| clock.at(down.since).as_millis()),
        load_before: down.and_then(load_before),
        fullness: Some(fullness(link)),
        a_to_b_unaccounted_bits_per_s: whole(unaccounted[0]),
        b_to_a_unaccounted_bits_per_s: whole(unaccounted[1]),
    }
}

fn fullness(link: &LinkUse) -> v1::LinkFullness {
    let ([a_to_b_full, b_to_a_full], [a_to_b_unknown, b_to_a_unknown]) = (link.full(), link.unknown());
    v1::LinkFullness { a_to_b_full, b_to_a_full, a_to_b_unknown, b_to_a_unknown }
}

fn load_before(down: &DownLink) -> Option<v1::LoadBefore> {
    let (measured, load) = down.load?;
    let before = down.since.saturating_duration_since(measured).as_millis();
    Some(v1::LoadBefore {
        a_to_b_bits_per_s: load.a_to_b.0,
        b_to_a_bits_per_s: load.b_to_a.0,
        before_ms: u64::try_from(before).unwrap_or(u64::MAX),
    })
}

/// Paths of now say nothing of an outage that is over.
fn last_outage(outage: &LastOutage, clock: Clock) -> v1::LastOutage {
    let LastOutage { was, ended } = outage;
    let lasted = ended.saturating_duration_since(was.since).as_millis();
    v1::LastOutage {
        ended_ms: millis(*ended),
        lasted_ms: u64::try_from(lasted).unwrap_or(u64::MAX),
        said_by: was.said_by.to_string(),
        carried: was.carried.as_deref().map(|carried| PathsNow::default().carried(carried)),
        down_at_ms: clock.at(was.since).as_millis(),
        load_before: load_before(was),
    }
}

/// Why no user is named; empty: some are.
fn users_reason(link: &LinkUse) -> &'static str {
    match link.source {
        _ if !link.users.is_empty() => "",
        _ if !link.up => "down",
        LoadSource::Measured if link.load.iter().any(|load| *load >= 1.0) => "others",
        _ => "no_load",
    }
}

/// A link that carries nothing.
#[must_use]
pub(in crate::server) fn down_link((link, down): &(LinkName, DownLink), clock: Clock) -> v1::DownLinkView {
    v1::DownLinkView {
        id: link.to_string(),
        down_ms: down_ms(down),
        said_by: down.said_by.to_string(),
        down_at_ms: clock.at(down.since).as_millis(),
        load_before: load_before(down),
    }
}

fn down_ms(down: &DownLink) -> u64 {
    millis(down.since)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What is to be taken out.
///
/// # Errors
/// [`Refusal::Invalid`] where it is nothing.
pub(in crate::server) fn drain(wire: &v1::WhatIfNetworkRequest) -> Result<Drain, Refusal> {
    if wire.drain_links.is_empty() && wire.drain_switches.is_empty() {
        return Err(invalid("drain_links", "is empty, and so is drain_switches: nothing is taken out"));
    }
    for (field, names) in [("drain_links", &wire.drain_links), ("drain_switches", &wire.drain_switches)] {
        if let Some(at) = names.iter().position(String::is_empty) {
            return Err(invalid(format!("{field}[{at}]"), "is empty"));
        }
    }
    Ok(Drain {
        links: wire.drain_links.iter().map(|link| link.as_str().into()).collect(),
        switches: wire.drain_switches.iter().map(|switch| switch.as_str().into()).collect(),
    })
}

/// What would come of a drain.
#[must_use]
pub(in crate::server) fn network_what_if(found: &NetworkWhatIf, snapshot_version: u64) -> v1::WhatIfNetworkResponse {
    let mut links: Vec<&LinkForecast> = found.links.iter().collect();
    // Stable: links of one share stay in the network's order.
    links.sort_by(|a, b| share_after(b).total_cmp(&share_after(a)));
    let application = |forecast: &hintd_engine::ApplicationForecast| v1::ApplicationForecast {
        application_id: forecast.application.to_string(),
        routes_moved: forecast.routes_moved,
        routes_cut: forecast.routes_cut,
        utility_before: forecast.utility_before,
        utility_after: forecast.utility_after,
    };
    v1::WhatIfNetworkResponse {
        routes: found.routes.iter().map(route_forecast).collect(),
        untouched: found.untouched,
        links: links.into_iter().map(link_forecast).collect(),
        utility_before: found.utility_before,
        utility_after: found.utility_after,
        applications: found.applications.iter().map(application).collect(),
        cut_off_hosts: found.cut_off_hosts.iter().map(ToString::to_string).collect(),
        snapshot_version,
    }
}

/// How a watcher stands.
#[must_use]
pub(in crate::server) fn watcher_view(watcher: &WatcherState, now: Timestamp) -> v1::WatcherView {
    let refused = |(pair, reason): &(hintd_engine::WatchedPair, Arc<str>)| v1::WatcherRefusal {
        src: pair.src.to_string(),
        dst: pair.dst.to_string(),
        reason: reason.to_string(),
    };
    v1::WatcherView {
        name: watcher.name.to_string(),
        installs: watcher.installs,
        sent: watcher.sent,
        acknowledged: watcher.acknowledged,
        state: watcher.progress.as_str().to_owned(),
        since_ms: now.since(watcher.since).as_millis(),
        refused: watcher.refused.iter().take(REFUSED_NAMED).map(refused).collect(),
        refused_total: watcher.refused.len() as u64,
        attached: watcher.away_since.is_none(),
        away_ms: watcher.away_since.map(|since| now.since(since).as_millis()),
        routes: watcher.routes as u64,
    }
}

fn route_forecast(forecast: &RouteForecast) -> v1::RouteForecast {
    let vertices = |route: &hintd_engine::NamedRoute| route.vertices.iter().map(ToString::to_string).collect();
    let links = |route: &hintd_engine::NamedRoute| route.links.iter().map(ToString::to_string).collect();
    v1::RouteForecast {
        src: forecast.pair.src.to_string(),
        dst: forecast.pair.dst.to_string(),
        old_vertices: vertices(&forecast.old),
        old_links: links(&forecast.old),
        new_vertices: vertices(&forecast.new),
        new_links: links(&forecast.new),
        cut: forecast.cut.iter().map(ToString::to_string).collect(),
    }
}

fn link_forecast(forecast: &LinkForecast) -> v1::LinkForecast {
    v1::LinkForecast {
        id: forecast.link.to_string(),
        bits_per_s: forecast.capacity.0,
        a_to_b_before: forecast.before[0],
        b_to_a_before: forecast.before[1],
        a_to_b_after: forecast.after[0],
        b_to_a_after: forecast.after[1],
    }
}

/// The larger share of the link's capacity that would be used, of both directions.
fn share_after(forecast: &LinkForecast) -> f64 {
    forecast.after[0].max(forecast.after[1]) / (forecast.capacity.0.max(1) as f64)
}

/// Whole bits a second; rates are never negative.
fn whole(bits_per_s: f64) -> u64 {
    bits_per_s.round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::LinkLoad;
    use hintd_model::units::BitsPerSec;

    #[test]
    fn only_a_link_that_is_down_says_since_when_and_what_it_carried() {
        let carried = CarriedRoutes { routes: 2, ..CarriedRoutes::default() };
        let clock = Clock::start();
        let (now, bits) = (Instant::now(), BitsPerSec);
        let load = Some((now, LinkLoad::steady(bits(70), bits(5))));
        let since = now + std::time::Duration::from_millis(400);
        let down = DownLink { since, said_by: "ryu".into(), carried: Some(carried.into()), load };
        let told = LinkTold { down: Some(down), last_outage: None, measured: None };
        let shown = |up| {
            let link = LinkUse {
                link: "l1".into(),
                ends: ["s1", "s2"].map(Arc::from),
                capacity: BitsPerSec(100),
                up,
                damped: true,
                load: [0.0; 2],
                source: LoadSource::Modelled,
                modelled: [0.0; 2],
                task_pairs: [0; 2],
                users: Vec::new(),
                unaccounted: [0.0; 2],
            };
            let view = link_view(&link, (&told, clock), &PathsNow::default(), 0);
            assert!(view.damped, "up or down, routes avoid it");
            let before = view.load_before.map(|load| [load.a_to_b_bits_per_s, load.b_to_a_bits_per_s, load.before_ms]);
            let at = if up { 0 } else { clock.at(since).as_millis() };
            assert_eq!((view.down_at_ms, before), (at, (!up).then_some([70, 5, 400])));
            (view.down_ms.is_some(), view.down_by, view.carried.map(|carried| carried.routes))
        };
        assert_eq!([true, false].map(shown), [(false, String::new(), None), (true, "ryu".to_owned(), Some(2))]);
    }

    #[test]
    fn a_drain_of_nothing_is_refused_and_names_are_taken_over() {
        let of = |links: &[&str], switches: &[&str]| v1::WhatIfNetworkRequest {
            drain_links: links.iter().map(|&name| name.to_owned()).collect(),
            drain_switches: switches.iter().map(|&name| name.to_owned()).collect(),
        };
        let field = |wire| match drain(&wire) {
            Err(Refusal::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(of(&[], &[])), "drain_links");
        assert_eq!(field(of(&["l"], &["s", ""])), "drain_switches[1]");
        let found = drain(&of(&["l"], &["s"])).unwrap();
        assert_eq!((found.links[0].as_str(), &*found.switches[0]), ("l", "s"));
    }

    #[test]
    fn the_most_loaded_link_after_a_drain_comes_first() {
        let link = |name: &str, after: f64, capacity: u64| LinkForecast {
            link: name.into(),
            before: [0.0; 2],
            after: [0.0, after],
            capacity: BitsPerSec(capacity),
        };
        let found = NetworkWhatIf {
            routes: vec![],
            untouched: 1,
            links: vec![link("thick", 5.0, 100), link("thin", 4.0, 10)],
            utility_before: 1.0,
            utility_after: 1.0,
            applications: vec![],
            cut_off_hosts: vec![],
        };
        let names: Vec<_> = network_what_if(&found, 3).links.into_iter().map(|link| link.id).collect();
        assert_eq!(names, ["thin", "thick"]);
    }
}
