//! Load of a node: the dominant share of what it offers that is taken.

use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::cluster::{Calculator, Resource, Snapshot};
use hintd_model::units::NodeIdx;

/// The largest share taken of any kind that YARN's calculator looks at, in [0, 1], if `room` is left on `node`.
#[inline]
#[must_use]
pub fn load(snapshot: &Snapshot, node: NodeIdx, room: &Resource) -> f64 {
    let total = &snapshot.statics.total[node.at()];
    let mut most: f64 = 0.0;
    for kind in 0..kinds(snapshot) {
        let offered = total.0[kind];
        if offered > 0 {
            most = most.max(1.0 - room.0[kind].min(offered) as f64 / offered as f64);
        }
    }
    most
}

/// Load of `node` with `room` left on it, in parts per million, rounded down: what policies that rank nodes compare.
#[inline]
#[must_use]
pub fn load_ppm(snapshot: &Snapshot, node: NodeIdx, room: &Resource) -> u32 {
    (load(snapshot, node, room) * 1e6) as u32
}

/// [`load_ppm`] of every node without leases.
#[must_use]
pub fn loads(snapshot: &Snapshot) -> Vec<u32> {
    snapshot.statics.indexes().map(|node| load_ppm(snapshot, node, &snapshot.unoccupied(node))).collect()
}

/// Kinds that YARN's calculator looks at: the first so many of a row.
#[inline]
pub fn kinds(snapshot: &Snapshot) -> usize {
    match snapshot.rules.calculator {
        Calculator::Default => 1,
        Calculator::Dominant => snapshot.kinds.names().len().min(KINDS_MAX),
    }
}
