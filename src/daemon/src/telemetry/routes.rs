//! Metrics of routes, middleboxes and moves, and of those who watch routes.

use super::labels::{BoxState, LabelValue, LinkState, MoveEvent, RouteKind, WatcherKind};
use super::metric::{Kind, Metric, metric};
use super::registry::{Metrics, SharedCounter};
use metrics::{Gauge, Unit};

pub(super) const ROUTES: &str = "hintd_routes";
pub(super) const BOXES: &str = "hintd_middleboxes";
pub(super) const MOVES: &str = "hintd_moves_total";
pub(super) const ROUTE_CHANGES: &str = "hintd_route_changes_total";
pub(super) const ROUTE_RESYNCS: &str = "hintd_route_resyncs_total";
pub(super) const ROUTE_UNACKNOWLEDGED: &str = "hintd_route_updates_unacknowledged";
pub(super) const ROUTE_REFUSED: &str = "hintd_routes_refused_total";
pub(super) const ROUTE_WATCHERS: &str = "hintd_route_watchers";
const LINKS: &str = "hintd_links";
const LINKS_DAMPED: &str = "hintd_links_damped_total";

pub(super) const OF_LINKS: &[Metric] = &[
    metric(LINKS, Kind::Gauge, Unit::Count, "Links of the network, by whether they carry traffic: up, down."),
    metric(LINKS_DAMPED, Kind::Counter, Unit::Count, "Times that a link was avoided because it flapped."),
];

/// Records routes of running flows and those who watch them.
#[derive(Clone)]
pub struct RouteMetrics {
    routes: Vec<Gauge>,
    boxes: Vec<Gauge>,
    moves: Vec<SharedCounter>,
    watchers: Vec<Gauge>,
    unacknowledged: Gauge,
    resyncs: SharedCounter,
    refused: SharedCounter,
    damped: SharedCounter,
    links: Vec<Gauge>,
    metrics: Metrics,
}

impl Metrics {
    /// Handles for routes and those who watch them.
    pub fn routes(&self) -> RouteMetrics {
        RouteMetrics {
            routes: RouteKind::ALL.iter().map(|kind| self.gauge(ROUTES, &[("state", kind.label())])).collect(),
            boxes: BoxState::ALL.iter().map(|kind| self.gauge(BOXES, &[("state", kind.label())])).collect(),
            moves: MoveEvent::ALL.iter().map(|event| self.counter(MOVES, &[("event", event.label())])).collect(),
            watchers: WatcherKind::ALL
                .iter()
                .map(|kind| self.gauge(ROUTE_WATCHERS, &[("state", kind.label())]))
                .collect(),
            unacknowledged: self.gauge(ROUTE_UNACKNOWLEDGED, &[]),
            resyncs: self.counter(ROUTE_RESYNCS, &[]),
            refused: self.counter(ROUTE_REFUSED, &[]),
            damped: self.counter(LINKS_DAMPED, &[]),
            links: LinkState::ALL.iter().map(|kind| self.gauge(LINKS, &[("state", kind.label())])).collect(),
            metrics: self.clone(),
        }
    }
}

impl RouteMetrics {
    /// How many pairs of hosts talk in this way.
    pub fn routes(&self, kind: RouteKind, count: u64) {
        self.routes[kind as usize].set(count as f64);
    }

    /// So many middleboxes stand so.
    pub fn boxes(&self, kind: BoxState, count: usize) {
        self.boxes[kind as usize].set(count as f64);
    }

    /// So many links stand so.
    pub fn links(&self, state: LinkState, count: usize) {
        self.links[state as usize].set(count as f64);
    }

    /// So many moves were proposed, or followed.
    pub fn moves(&self, event: MoveEvent, count: u64) {
        self.moves[event as usize].add(count);
    }

    /// How many watchers are in this state.
    pub fn watchers(&self, kind: WatcherKind, count: usize) {
        self.watchers[kind as usize].set(count as f64);
    }

    /// Updates that wait for an acknowledgement.
    pub fn unacknowledged(&self, updates: u64) {
        self.unacknowledged.set(updates as f64);
    }

    /// Routes were told; cause and phase are the engine's tokens.
    pub fn changed(&self, cause: &'static str, phase: &'static str, routes: u64) {
        self.metrics.counter(ROUTE_CHANGES, &[("cause", cause), ("phase", phase)]).add(routes);
    }

    /// Snapshots went out for want of an acknowledgement.
    pub fn resynced(&self, count: u64) {
        self.resyncs.add(count);
    }

    /// A controller could not install so many routes.
    pub fn refused(&self, count: u64) {
        self.refused.add(count);
    }

    /// Links flapped and are avoided.
    pub fn damped(&self, count: u64) {
        self.damped.add(count);
    }
}
