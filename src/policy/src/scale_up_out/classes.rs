//! Which machines are scale-up machines.

use crate::dispatch::View;
use crate::learn::ToldClass;
use hintd_model::cluster::{NodeStatics, Resource, Snapshot};
use hintd_model::units::{NodeIdx, RackIdx};
use std::sync::Arc;

/// The node attribute that names a machine's class, where the feed gives none.
pub const ATTRIBUTE: &str = "hintd/class";

/// The same as YARN can have it: its attributes have one of two prefixes, that of the ResourceManager (`yarn nodeattributes`) or
/// that of NodeManagers, and no slash in their names. A label is no way there: asks without one are hinted to no node that has one.
pub const YARN_ATTRIBUTES: [&str; 2] = ["rm.yarn.io/hintd-class", "nm.yarn.io/hintd-class"];

/// Machines of two classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Side {
    /// Few, large and fast.
    Up,
    /// Many.
    Out,
}

/// Sides by node, found anew when nodes change.
#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    of: Option<Arc<NodeStatics>>,
    up: Vec<bool>,
    up_nodes: Vec<NodeIdx>,
    /// What a whole machine has, each once, by side.
    totals: [Vec<Resource>; 2],
    /// Memory of the side ÷ memory of all.
    memory_share: [f64; 2],
}

/// Whether the node is a scale-up machine: by its class, else by its attribute, else by a label.
#[must_use]
pub fn is_up(snapshot: &Snapshot, node: NodeIdx, name: &str) -> bool {
    let statics = &snapshot.statics;
    let class = statics.class.get(node.at()).and_then(|class| statics.class_names.get(class.at()));
    let attribute = || {
        let attributes = statics.attributes.get(node.at())?;
        [ATTRIBUTE].into_iter().chain(YARN_ATTRIBUTES).find_map(|name| attributes.get(name))
    };
    match class.filter(|class| !class.is_empty()) {
        Some(class) => &**class == name,
        None => match attribute() {
            Some(value) => value == name,
            None => has_label(snapshot, node, name),
        },
    }
}

/// What the node is told, in the order of [`is_up`]; of its labels only that of the class is one.
pub(super) fn told(snapshot: &Snapshot, node: NodeIdx, name: &str) -> Vec<ToldClass> {
    let statics = &snapshot.statics;
    let told = |by: &str, class: &str| ToldClass { by: by.to_owned(), class: class.to_owned() };
    let class = statics.class.get(node.at()).and_then(|class| statics.class_names.get(class.at()));
    let mut all: Vec<ToldClass> =
        class.filter(|class| !class.is_empty()).map(|class| told("feed", class)).into_iter().collect();
    if let Some(attributes) = statics.attributes.get(node.at()) {
        let named = [ATTRIBUTE].into_iter().chain(YARN_ATTRIBUTES);
        all.extend(named.filter_map(|name| attributes.get(name).map(|value| told(name, value))));
    }
    if has_label(snapshot, node, name) {
        all.push(told(&format!("label {name}"), name));
    }
    all
}

fn has_label(snapshot: &Snapshot, node: NodeIdx, name: &str) -> bool {
    let statics = &snapshot.statics;
    let found = statics.label_bit(name).zip(statics.labels.get(node.at()));
    found.is_some_and(|(bit, labels)| labels.0 & bit.0 != 0)
}

impl Classes {
    pub(super) fn look(&mut self, view: &View<'_>, name: &str) {
        let statics = &view.snapshot.statics;
        if self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, statics)) {
            return;
        }
        self.of = Some(Arc::clone(statics));
        self.up = statics.indexes().map(|node| is_up(view.snapshot, node, name)).collect();
        self.up_nodes = statics.indexes().filter(|node| self.up[node.at()]).collect();
        self.totals = [Vec::new(), Vec::new()];
        let mut memory = [0.0_f64; 2];
        for node in statics.indexes() {
            let (side, total) = (self.side(node) as usize, statics.total[node.at()]);
            memory[side] += total.memory_mb() as f64;
            if !self.totals[side].contains(&total) {
                self.totals[side].push(total);
            }
        }
        let all = (memory[0] + memory[1]).max(1.0);
        self.memory_share = memory.map(|of_side| of_side / all);
    }

    pub(super) fn side(&self, node: NodeIdx) -> Side {
        if self.up.get(node.at()).copied().unwrap_or(false) { Side::Up } else { Side::Out }
    }

    pub(super) const fn memory_share(&self, side: Side) -> f64 {
        self.memory_share[side as usize]
    }

    /// Whether an empty machine of the side holds such a container.
    pub(super) fn could_hold(&self, view: &View<'_>, side: Side, size: &Resource) -> bool {
        self.totals[side as usize].iter().any(|total| view.snapshot.rules.feasible(size, total))
    }

    /// Whether a machine of the side runs.
    pub(super) fn runs(&self, view: &View<'_>, side: Side) -> bool {
        let usable = |node: &NodeIdx| view.snapshot.state[node.at()].usable();
        match side {
            Side::Up => self.up_nodes.iter().any(usable),
            Side::Out => view.snapshot.statics.indexes().any(|node| !self.up[node.at()] && usable(&node)),
        }
    }

    /// Such containers that machines of the side hold which run, whatever is on them now.
    pub(super) fn containers(&self, view: &View<'_>, side: Side, size: &Resource) -> u64 {
        let (statics, state, rules) = (&view.snapshot.statics, &view.snapshot.state, &view.snapshot.rules);
        let of_side = statics.indexes().filter(|&node| self.side(node) == side && state[node.at()].usable());
        of_side.map(|node| u64::from(rules.how_many(size, &statics.total[node.at()]))).sum()
    }

    /// Whether a scale-up machine has room for such a container now.
    pub(super) fn up_has_room(&self, view: &View<'_>, size: &Resource) -> bool {
        let has = |node: &NodeIdx| {
            let room = view.snapshot.room(*node, view.leases);
            view.snapshot.state[node.at()].usable() && view.snapshot.rules.feasible(size, &room)
        };
        self.up_nodes.iter().any(has)
    }
}

/// Racks with a machine that runs, by the class of the first of them: classes never share a rack (004 §5.2.1).
pub(super) fn racks(snapshot: &Snapshot, name: &str) -> [Vec<RackIdx>; 2] {
    let mut racks = [Vec::new(), Vec::new()];
    for (rack, nodes) in snapshot.statics.members.iter().enumerate() {
        if let Some(&node) = nodes.iter().find(|node| snapshot.state[node.at()].usable()) {
            racks[if is_up(snapshot, node, name) { 0 } else { 1 }].push(RackIdx::new(rack));
        }
    }
    racks
}
