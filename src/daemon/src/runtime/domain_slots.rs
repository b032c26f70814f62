//! How many containers of YARN's smallest and largest size fit in one rack now: what a gang that stays in a rack can have.

use hintd_engine::Generation;
use hintd_model::cluster::Resource;

/// The rack with most room for containers of a size: how many fit there, node by node, on nodes that can be hinted at.
fn most_in_a_rack(generation: &Generation, size: &Resource) -> u64 {
    let snapshot = &generation.snapshot;
    let fit = |node| {
        let room = snapshot.room(node, &generation.leases);
        u64::from(snapshot.rules.how_many(size, &room))
    };
    let of_rack = |members: &Vec<_>| {
        let usable = members.iter().copied().filter(|node: &hintd_model::units::NodeIdx| {
            snapshot.state.get(node.at()).is_some_and(|state| state.usable())
        });
        usable.map(fit).sum::<u64>()
    };
    snapshot.statics.members.iter().map(of_rack).max().unwrap_or(0)
}

/// By the sizes' names. A size without a bound on memory is none.
pub(super) fn domain_slots(generation: &Generation) -> Vec<(&'static str, u64)> {
    let rules = &generation.snapshot.rules;
    let sizes = [("minimum", &rules.minimum), ("maximum", &rules.maximum)];
    let bounded = sizes.into_iter().filter(|(_, size)| size.memory_mb() > 0);
    bounded.map(|(name, size)| (name, most_in_a_rack(generation, size))).collect()
}
