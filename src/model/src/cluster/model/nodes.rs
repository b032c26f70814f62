//! Nodes of the model: registrations, heartbeats, and the columns that snapshots copy.

use super::super::node::{CLASSES_MAX, LABELS_MAX, LabelBits, NodeState, NodeStatics, Registration};
use super::super::resource::Resource;
use super::super::snapshot::{Applications, Container};
use super::fact::{Applied, ModelError, ReportedContainer};
use crate::units::{Bytes, ClassIdx, HostName, Micros, NodeIdx, RackIdx, RackPath, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// YARN's rack of a node whose rack nobody knows.
pub const DEFAULT_RACK: &str = "/default-rack";

/// For how long what one feed named on a node is believed when another feed's reports name nothing: as long as a
/// silent node's own word is (see `lost_after` of the engine's settings), for a feed that has stopped is as silent.
const NAMES_LAST: Micros = Micros::from_secs(60);

/// Nodes by index. A row is given to a host name once and stays its own.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) statics: Arc<NodeStatics>,
    pub(super) state: Vec<NodeState>,
    pub(super) occupied: Vec<Resource>,
    pub(super) containers: Vec<u32>,
    pub(super) applications: Applications,
    /// Names that found another node, or one at all, since this was last taken.
    pub(super) renamed: Renamed,
    /// A node or a rack was added, or a node changed its rack.
    pub(super) moved: bool,
    rows: Vec<Row>,
}

/// Which names mean something else now.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    /// Names that meant nothing before.
    pub(super) added: Vec<Arc<str>>,
    /// Some name means nothing now, or another node.
    pub(super) lost: bool,
}

/// What only the writer needs of a node.
#[derive(Debug, Default)]
struct Row {
    used: Resource,
    /// By id.
    containers: Vec<ReportedContainer>,
    heard: Option<Timestamp>,
    /// When a feed last named the containers.
    named: Option<Timestamp>,
    aliases: Vec<Arc<str>>,
}

/// A heartbeat with its kinds resolved.
pub(super) struct Report {
    pub(super) used: Resource,
    /// Whatever order, perhaps repeated: the last of an id counts.
    pub(super) containers: Vec<ReportedContainer>,
    pub(super) named: bool,
    pub(super) state: NodeState,
}

impl Nodes {
    /// The node that may report under `name`: registered, and neither tombstoned nor shut down since.
    pub(super) fn reporting(&self, name: &HostName) -> Result<NodeIdx, ModelError> {
        let unknown = || ModelError::UnknownNode(name.to_string());
        let node = self.statics.find(name.as_str()).ok_or_else(unknown)?;
        let away =
            matches!(self.state[node.at()], NodeState::Unregistered | NodeState::Decommissioned | NodeState::Shutdown);
        // One that only a recovered lease named may have gone silent, and so be lost: it never registered all the same.
        if away || self.heard(node).is_none() { Err(unknown()) } else { Ok(node) }
    }

    pub(super) fn heard(&self, node: NodeIdx) -> Option<Timestamp> {
        self.rows.get(node.at()).and_then(|row| row.heard)
    }

    pub(super) fn containers_of(&self, node: NodeIdx) -> &[ReportedContainer] {
        self.rows.get(node.at()).map_or(&[], |row| &row.containers)
    }

    /// The row of a host in YARN's spelling, made if it was never named.
    pub(super) fn intern(&mut self, host: &HostName, rack: &RackPath) -> NodeIdx {
        if let Some(&node) = self.statics.by_host.get(host.as_str()) {
            return node;
        }
        self.note_new_meaning(&host.0);
        let node = NodeIdx::new(self.state.len());
        let statics = Arc::make_mut(&mut self.statics);
        let rack = intern_rack(statics, rack);
        statics.host.push(host.clone());
        statics.rack.push(rack);
        statics.total.push(Resource::ZERO);
        statics.labels.push(LabelBits::default());
        statics.class.push(ClassIdx(0));
        statics.disk_read.push(Bytes::ZERO);
        statics.attributes.push(Arc::new(BTreeMap::new()));
        statics.by_host.insert(host.clone(), node);
        statics.members[rack.at()].push(node);
        if statics.class_names.is_empty() {
            statics.class_names.push("".into());
        }
        self.state.push(NodeState::Unregistered);
        self.occupied.push(Resource::ZERO);
        self.containers.push(0);
        self.rows.push(Row::default());
        self.moved = true;
        node
    }

    /// Whether the tables have room for the labels and class of `registration`.
    pub(super) fn check_room(&self, registration: &Registration) -> Result<(), ModelError> {
        let mut labels = self.statics.label_names.clone();
        for label in registration.labels.iter().filter(|label| !label.is_empty()) {
            if labels.contains(label) {
                continue;
            }
            if labels.len() == LABELS_MAX {
                return Err(ModelError::TooMany { what: "label", name: label.to_string(), limit: LABELS_MAX });
            }
            labels.push(Arc::clone(label));
        }
        let classes = &self.statics.class_names;
        let class = &registration.class;
        if !class.is_empty() && !classes.contains(class) && classes.len() >= CLASSES_MAX {
            return Err(ModelError::TooMany { what: "machine class", name: class.to_string(), limit: CLASSES_MAX });
        }
        Ok(())
    }

    /// Takes a registration that [`Self::check_room`] let pass.
    pub(super) fn register(&mut self, registration: &Registration, total: Resource, now: Timestamp) -> Applied {
        let node = self.intern(&registration.host, &registration.rack);
        self.set_aliases(node, &registration.aliases);
        self.set_rack(node, &registration.rack);
        self.set_statics(node, registration, total);
        self.rows[node.at()].heard = Some(now);
        let was = self.state[node.at()];
        if registration.state.gone() {
            let containers = self.leave(node, registration.state);
            return if was.gone() { Applied::Quiet } else { Applied::NodeGone { node, containers } };
        }
        self.state[node.at()] = registration.state;
        Applied::NodeUp { node, was }
    }

    /// Takes a heartbeat of a node that may report.
    pub(super) fn report(&mut self, node: NodeIdx, report: Report, now: Timestamp) -> Applied {
        self.rows[node.at()].heard = Some(now);
        let was = self.state[node.at()];
        if report.state.gone() {
            let containers = self.leave(node, report.state);
            return if was.gone() { Applied::Quiet } else { Applied::NodeGone { node, containers } };
        }
        self.state[node.at()] = report.state;
        let row = &mut self.rows[node.at()];
        let used = (std::mem::replace(&mut row.used, report.used), report.used);
        if report.named {
            row.named = Some(now);
        }
        let named = row.named.is_some_and(|at| now.since(at) <= NAMES_LAST);
        let containers = if named && !report.named { row.containers.clone() } else { report.containers };
        let (appeared, ended) = self.set_containers(node, containers);
        Applied::NodeReported { node, was, state: report.state, appeared, ended, named, used }
    }

    /// Sets a state; a node that is gone uses nothing, and what was on it is returned.
    pub(super) fn leave(&mut self, node: NodeIdx, state: NodeState) -> Vec<ReportedContainer> {
        self.state[node.at()] = state;
        if !state.gone() {
            return Vec::new();
        }
        let row = &mut self.rows[node.at()];
        (row.used, row.named) = (Resource::ZERO, None);
        self.set_containers(node, Vec::new()).1
    }

    /// Replaces the containers of a node, and says which appeared and which ended: one that was resized did neither.
    fn set_containers(
        &mut self,
        node: NodeIdx,
        mut now: Vec<ReportedContainer>,
    ) -> (Vec<ReportedContainer>, Vec<ReportedContainer>) {
        // Stable, so that of a repeated id the last one said stays last, and is the one kept.
        now.sort_by_key(|container| container.id);
        now.reverse();
        now.dedup_by_key(|container| container.id);
        now.reverse();
        let row = &mut self.rows[node.at()];
        let appeared = not_in(&row.containers, &now, |known, container| known.id == container.id);
        let ended = not_in(&now, &row.containers, |known, container| known.id == container.id);
        let changed = not_in(&row.containers, &now, |known, container| known == container);
        let known = now.iter().fold(Resource::ZERO, |sum, container| sum.plus(&container.size));
        self.occupied[node.at()] = row.used.max(&known);
        self.containers[node.at()] = now.len() as u32;
        row.containers = now;
        self.note_applications(node, &changed, &ended);
        (appeared, ended)
    }

    /// `changed`: those that appeared, and those of which anything is new.
    fn note_applications(&mut self, node: NodeIdx, changed: &[ReportedContainer], ended: &[ReportedContainer]) {
        if changed.is_empty() && ended.is_empty() {
            return;
        }
        let applications = &mut self.applications;
        for container in ended {
            let Some(application) = applications.get_mut(&container.id.attempt) else { continue };
            // Another node may have claimed the container since.
            if application.containers.get(&container.id).is_none_or(|known| known.node != node) {
                continue;
            }
            Arc::make_mut(application).containers.remove(&container.id);
            if application.containers.is_empty() {
                applications.set(&container.id.attempt, None);
            }
        }
        for container in changed {
            let application = applications.get_or_default(&container.id.attempt);
            let value = Container { node, size: container.size, key: container.key };
            Arc::make_mut(application).containers.insert(container.id, value);
        }
    }

    fn set_aliases(&mut self, node: NodeIdx, aliases: &[Arc<str>]) {
        let host = Arc::clone(&self.statics.host[node.at()].0);
        let mut aliases: Vec<_> = aliases.iter().filter(|name| !name.is_empty() && **name != host).cloned().collect();
        aliases.sort();
        aliases.dedup();
        let mine = |name: &Arc<str>| self.statics.by_alias.get(name) == Some(&node);
        if self.rows[node.at()].aliases == aliases && aliases.iter().all(mine) {
            return;
        }
        let old = std::mem::replace(&mut self.rows[node.at()].aliases, aliases.clone());
        for name in old.iter().filter(|name| aliases.binary_search(name).is_err()) {
            if self.statics.by_alias.get(name) == Some(&node) {
                Arc::make_mut(&mut self.statics).by_alias.remove(name);
                self.renamed.lost = true;
            }
        }
        for name in aliases {
            if self.statics.by_alias.get(&name) != Some(&node) {
                self.note_new_meaning(&name);
                Arc::make_mut(&mut self.statics).by_alias.insert(name, node);
            }
        }
        self.moved = true;
    }

    fn note_new_meaning(&mut self, name: &Arc<str>) {
        match self.statics.find(name) {
            None => self.renamed.added.push(Arc::clone(name)),
            Some(_) => self.renamed.lost = true,
        }
    }

    fn set_rack(&mut self, node: NodeIdx, path: &RackPath) {
        let old = self.statics.rack[node.at()];
        if self.statics.racks[old.at()] == *path {
            return;
        }
        let statics = Arc::make_mut(&mut self.statics);
        let rack = intern_rack(statics, path);
        statics.rack[node.at()] = rack;
        statics.members[old.at()].retain(|&member| member != node);
        let members = &mut statics.members[rack.at()];
        let position = members.partition_point(|&member| member < node);
        members.insert(position, node);
        self.moved = true;
    }

    fn set_statics(&mut self, node: NodeIdx, registration: &Registration, total: Resource) {
        let at = node.at();
        let mut labels = registration.labels.iter().map(|label| self.statics.label_bit(label));
        let labels = labels.try_fold(0, |bits, bit| bit.map(|bit| bits | bit.0));
        let class = self.statics.class_names.iter().position(|name| *name == registration.class);
        let same = labels == Some(self.statics.labels[at].0)
            && class == Some(self.statics.class[at].at())
            && self.statics.total[at] == total
            && self.statics.disk_read[at] == registration.disk_read
            && *self.statics.attributes[at] == registration.attributes;
        if same {
            return; // a copy of the cluster's names is not worth a repeated registration
        }
        let statics = Arc::make_mut(&mut self.statics);
        let mut labels = 0;
        for label in registration.labels.iter().filter(|label| !label.is_empty()) {
            labels |= 1_u64 << intern(&mut statics.label_names, label);
        }
        statics.labels[at] = LabelBits(labels);
        statics.class[at] = ClassIdx::new(intern(&mut statics.class_names, &registration.class));
        statics.total[at] = total;
        statics.disk_read[at] = registration.disk_read;
        if *statics.attributes[at] != registration.attributes {
            statics.attributes[at] = Arc::new(registration.attributes.clone());
        }
    }
}

fn intern(names: &mut Vec<Arc<str>>, name: &Arc<str>) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(Arc::clone(name));
        names.len() - 1
    })
}

fn intern_rack(statics: &mut NodeStatics, path: &RackPath) -> RackIdx {
    if let Some(&rack) = statics.by_rack.get(path) {
        return rack;
    }
    let rack = RackIdx::new(statics.racks.len());
    statics.racks.push(path.clone());
    statics.by_rack.insert(path.clone(), rack);
    statics.members.push(Vec::new());
    rack
}

/// Containers of `of` without one in `others` that is the `same`; both ascend by id.
fn not_in(
    others: &[ReportedContainer],
    of: &[ReportedContainer],
    same: impl Fn(&ReportedContainer, &ReportedContainer) -> bool,
) -> Vec<ReportedContainer> {
    if others == of {
        return Vec::new();
    }
    let found = |container: &ReportedContainer| {
        let at = others.binary_search_by_key(&container.id, |other| other.id);
        at.is_ok_and(|at| same(&others[at], container))
    };
    of.iter().filter(|container| !found(container)).copied().collect()
}
