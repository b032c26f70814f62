//! Which lease a container takes, and which leases foreign use pushes out.

use super::lease::Lease;
use super::ledger::Ledger;
use hintd_model::cluster::{ReportedContainer, Resource, SizeRules, Snapshot};
use hintd_model::units::{ContainerId, LeaseId, NodeIdx};

/// The lease that a container which appeared on `node` ends: the one confirmed for it, else the oldest of the
/// same attempt, scheduler key and size that no other container was confirmed for.
///
/// After a restart every container appears anew. One that ran before its lease's twin was granted may then end a
/// lease of the same kind early: the promise is lost, capacity is not, for the container is in what the node reports.
#[must_use]
pub fn bound_by(ledger: &Ledger, node: NodeIdx, container: &ReportedContainer, rules: &SizeRules) -> Option<LeaseId> {
    let confirmed = ledger.on_node(node).find(|lease| lease.confirmed == Some(container.id));
    let matching = || {
        ledger.on_node(node).find(|lease| {
            lease.confirmed.is_none()
                && lease.attempt == container.id.attempt
                && lease.key == container.key
                && same_size(&lease.size, &container.size, rules)
        })
    };
    confirmed.or_else(matching).map(|lease| lease.id)
}

/// The leases that a rise of `used` ends on a node whose feed names no containers: oldest first, as far as the
/// rise reaches.
///
/// Neither counted twice nor lost: the rise is in `occupied` already. Were it a lease's container, the lease
/// beside it would count the same room twice; were it foreign, ending a lease gives up a promise, and the room
/// it stood for is the room that was taken. Smaller rises than a lease end none.
#[must_use]
pub fn bound_by_use(ledger: &Ledger, node: NodeIdx, used: (Resource, Resource), rules: &SizeRules) -> Vec<LeaseId> {
    let mut rise = used.1.minus(&used.0);
    let mut ends = Vec::new();
    for lease in ledger.on_node(node) {
        if rules.feasible(&lease.size, &rise) {
            rise = rise.minus(&lease.size);
            ends.push(lease.id);
        }
    }
    ends
}

/// The leases to withdraw so that what is left fits beside what the node reports: youngest first, those that YARN
/// has confirmed last. None on a node of unknown size.
#[must_use]
pub fn pushed_out(ledger: &Ledger, snapshot: &Snapshot, node: NodeIdx) -> Vec<LeaseId> {
    if snapshot.statics.total[node.at()].is_zero() {
        return Vec::new();
    }
    let free = snapshot.unoccupied(node);
    let mut leased = ledger.overlay().leased(node);
    let mut out = Vec::new();
    for confirmed in [false, true] {
        for lease in ledger.on_node(node).rev().filter(|lease| lease.confirmed.is_some() == confirmed) {
            if snapshot.rules.feasible(&leased, &free) {
                return out;
            }
            leased = leased.minus(&lease.size);
            out.push(lease.id);
        }
    }
    out
}

/// Whether some node reports the container.
#[must_use]
pub fn is_running(snapshot: &Snapshot, container: ContainerId) -> bool {
    let application = snapshot.applications.get(&container.attempt);
    application.is_some_and(|application| application.containers.contains_key(&container))
}

/// Sizes are the same if YARN's calculator can't tell them apart.
fn same_size(lease: &Resource, container: &Resource, rules: &SizeRules) -> bool {
    rules.feasible(lease, container) && rules.feasible(container, lease)
}

/// The lease on the hinted host that an allocation without a lease id most likely used.
#[must_use]
pub fn likely<'a>(mut leases: impl Iterator<Item = &'a Lease>, group: &str) -> Option<&'a Lease> {
    leases.find(|lease| lease.confirmed.is_none() && *lease.group == *group)
}
