//! Nodes as they registered and last reported.

use super::RegistryLimits;
use super::refusal::{ItemRefusal, Reason, Taken};
use super::total::{Total, bytes_of_names};
use dashmap::DashMap;
use hintd_model::cluster::{Change, Heartbeat, ModelError, NodeState, Registration, Snapshot};
use hintd_model::units::{HostName, NodeIdx, RackPath};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The last number before YARN's response ids begin at zero again.
const LAST_RESPONSE_ID: u32 = i32::MAX as u32;

/// Changes of one node that wait; even a node that restarts in a loop makes two in a drain's few milliseconds.
const WAITING_MAX: usize = 16;

/// Nodes by host name.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: DashMap<HostName, Entry>,
    aliases: DashMap<Arc<str>, HostName>,
    count: AtomicUsize,
    /// Of all entries.
    containers: Total,
    dirty: Mutex<Vec<HostName>>,
}

#[derive(Debug, Default)]
struct Entry {
    registered: bool,
    /// Why the model did not take the registration.
    refused: Option<ModelError>,
    rack: Option<RackPath>,
    aliases: Vec<Arc<str>>,
    response_id: Option<u32>,
    /// Containers that it named last.
    containers: usize,
    /// What its names take.
    names: usize,
    /// What the engine has not taken yet. Of heartbeats in a row the last one stays, of registrations as well, but
    /// for those with which the node went.
    waiting: Vec<Change>,
    dirty: bool,
}

impl Entry {
    /// Says whether `change` took another's place.
    fn push(&mut self, mut change: Change) -> bool {
        if let Some(last) = self.waiting.last_mut()
            && std::mem::discriminant(last) == std::mem::discriminant(&change)
            && !leaves(last)
        {
            // Of two feeds of one node the one that names containers is not to be unsaid by the other.
            if let (Change::Heartbeat(last), Change::Heartbeat(new)) = (&mut *last, &mut change)
                && new.containers.is_none()
            {
                new.containers = last.containers.take();
            }
            *last = change;
            return true;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.shorten();
        }
        self.waiting.push(change);
        false
    }

    /// A node that comes and goes within milliseconds: that it went once, and its last life, are enough. What stands
    /// before and between the two goes; after both there is one heartbeat at most, for those in a row are one.
    fn shorten(&mut self) {
        let last_life = self.waiting.iter().rposition(|change| matches!(change, Change::Register(_)));
        let went = self.waiting.iter().rposition(leaves);
        let (Some(first), Some(second)) = (last_life.min(went).or(went).or(last_life), last_life.max(went)) else {
            return;
        };
        if first < second {
            self.waiting.drain(first + 1..second);
        }
        self.waiting.drain(..first);
    }
}

impl Nodes {
    /// `total`: what all names take, DataNodes' and paths' among them.
    pub(super) fn register(
        &self,
        registration: Registration,
        limits: &RegistryLimits,
        total: &Total,
    ) -> Result<Taken, ItemRefusal> {
        let host = registration.host.clone();
        let (most, most_names, takes) = (limits.nodes, limits.feed_names_bytes, names_of(&registration));
        let mut entry = match self.entries.get_mut(&host) {
            Some(entry) => {
                total.change(entry.names, takes, most_names, "feed_names_bytes")?;
                entry
            }
            None => {
                total.change(0, takes, most_names, "feed_names_bytes")?;
                // Counted apart from the map, whose length would lock all of it.
                let room = |count: usize| (count < most).then_some(count + 1);
                if self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
                    total.gone(takes);
                    let message = format!("node \"{host}\" is one too many: at most {most} (limits.nodes)");
                    return Err(ItemRefusal::new(Reason::TooMany, message));
                }
                let entry = self.entries.entry(host.clone());
                if matches!(entry, dashmap::Entry::Occupied(_)) {
                    self.count.fetch_sub(1, Ordering::AcqRel); // another stream was faster
                }
                let entry = entry.or_default();
                total.gone(entry.names);
                entry
            }
        };
        entry.names = takes;
        let contradicts = entry.registered && entry.rack.as_ref().is_some_and(|rack| *rack != registration.rack);
        self.set_aliases(&host, &mut entry.aliases, &registration.aliases);
        entry.registered = true;
        entry.refused = None;
        entry.rack = Some(registration.rack.clone());
        entry.response_id = None;
        let coalesced = entry.push(Change::Register(registration));
        self.mark(&mut entry, host);
        Ok(match (contradicts, coalesced) {
            (true, _) => Taken::Contradiction,
            (false, true) => Taken::Coalesced,
            (false, false) => Taken::New,
        })
    }

    /// `most`: containers of all nodes together.
    pub(super) fn heartbeat(
        &self,
        mut heartbeat: Heartbeat,
        response_id: u32,
        most: usize,
    ) -> Result<Taken, ItemRefusal> {
        let host = self.resolve(&heartbeat.host)?;
        let Some(mut entry) = self.entries.get_mut(&host) else { return Err(unknown(&host)) };
        if let Some(error) = &entry.refused {
            return Err(ItemRefusal::new(Reason::TooMany, format!("node \"{host}\" was not registered: {error}")));
        }
        if !entry.registered {
            return Err(unknown(&host));
        }
        if let Some(last) = entry.response_id {
            let begins_again = last == LAST_RESPONSE_ID && response_id == 0;
            if response_id <= last && !begins_again {
                let message = format!("response id {response_id} of node \"{host}\" is not above its last, {last}");
                return Err(ItemRefusal::new(Reason::OutOfOrder, message));
            }
        }
        if let Some(named) = heartbeat.containers.as_ref().map(Vec::len) {
            self.containers.change(entry.containers, named, most, "containers")?;
            entry.containers = named;
        } else if heartbeat.state.gone() {
            self.containers.gone(std::mem::take(&mut entry.containers));
        }
        entry.response_id = Some(response_id);
        heartbeat.host = host.clone();
        let coalesced = entry.push(Change::Heartbeat(heartbeat));
        self.mark(&mut entry, host);
        Ok(if coalesced { Taken::Coalesced } else { Taken::New })
    }

    pub(super) fn gone(&self, host: &HostName) -> Result<(), ItemRefusal> {
        let host = self.resolve(host)?;
        let Some(mut entry) = self.entries.get_mut(&host) else { return Err(unknown(&host)) };
        if !entry.registered {
            return Err(unknown(&host));
        }
        entry.registered = false;
        self.containers.gone(std::mem::take(&mut entry.containers));
        entry.push(Change::Gone(host.clone()));
        self.mark(&mut entry, host);
        Ok(())
    }

    /// The host that goes by this name.
    pub(super) fn resolve(&self, name: &HostName) -> Result<HostName, ItemRefusal> {
        if self.entries.contains_key(name) {
            return Ok(name.clone());
        }
        self.aliases.get(name.as_str()).map(|host| host.clone()).ok_or_else(|| unknown(name))
    }

    pub(super) fn observe(&self, snapshot: &Snapshot) {
        for (at, host) in snapshot.statics.host.iter().enumerate() {
            let away = [NodeState::Unregistered, NodeState::Decommissioned, NodeState::Shutdown];
            if away.contains(&snapshot.state[at]) || self.entries.contains_key(host) {
                continue;
            }
            self.count.fetch_add(1, Ordering::AcqRel);
            let rack = snapshot.statics.racks[snapshot.rack(NodeIdx::new(at)).at()].clone();
            let known = Entry { registered: true, rack: Some(rack), ..Entry::default() };
            self.entries.entry(host.clone()).or_insert(known);
        }
        for (alias, node) in &snapshot.statics.by_alias {
            self.aliases.entry(Arc::clone(alias)).or_insert_with(|| snapshot.host(*node).clone());
        }
    }

    pub(super) fn drain(&self, give: &mut dyn FnMut(Change) -> Result<(), ModelError>) {
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        for host in dirty {
            let Some(mut entry) = self.entries.get_mut(&host) else { continue };
            entry.dirty = false;
            let waiting = std::mem::take(&mut entry.waiting);
            drop(entry);
            let mut unknown = false;
            for mut change in waiting {
                if let Change::Register(registration) = &mut change {
                    // The engine takes changes host by host: who claimed a name last might lose it to who claimed it first.
                    let owns = |name: &Arc<str>| self.aliases.get(name).is_some_and(|owner| *owner == host);
                    registration.aliases.retain(owns);
                }
                let registers = matches!(change, Change::Register(_));
                match give(change) {
                    Err(error) if registers => {
                        self.disown(&host, Some(error));
                        unknown = false;
                        break;
                    }
                    Err(ModelError::UnknownNode(_)) => unknown = true,
                    _ if registers => unknown = false,
                    _ => {}
                }
            }
            if unknown {
                self.disown(&host, None);
            }
        }
    }

    /// The model does not know the node (any more): it must register again, unless it did meanwhile.
    fn disown(&self, host: &HostName, refused: Option<ModelError>) {
        if let Some(mut entry) = self.entries.get_mut(host)
            && !entry.waiting.iter().any(|change| matches!(change, Change::Register(_)))
        {
            entry.registered = false;
            self.containers.gone(std::mem::take(&mut entry.containers));
            entry.refused = refused;
            entry.waiting.clear();
        }
    }

    fn mark(&self, entry: &mut Entry, host: HostName) {
        if !std::mem::replace(&mut entry.dirty, true) {
            self.dirty.lock().unwrap_or_else(PoisonError::into_inner).push(host);
        }
    }

    fn set_aliases(&self, host: &HostName, known: &mut Vec<Arc<str>>, said: &[Arc<str>]) {
        for stale in known.iter().filter(|name| !said.contains(name)) {
            self.aliases.remove_if(stale, |_, owner| owner == host);
        }
        for name in said {
            self.aliases.insert(Arc::clone(name), host.clone());
        }
        *known = said.to_vec();
    }
}

/// What a node's names take.
fn names_of(registration: &Registration) -> usize {
    let Registration { host, rack, class, labels, aliases, attributes, .. } = registration;
    let lists = labels.iter().chain(aliases).map(|name| &**name);
    let attributes = attributes.iter().flat_map(|(name, value)| [name.as_str(), value]);
    bytes_of_names([host.as_str(), rack.as_str(), class].into_iter().chain(lists).chain(attributes))
}

/// Whether the node is gone with it: what ran there is placed anew, so it is never passed over for what came next.
fn leaves(change: &Change) -> bool {
    match change {
        Change::Gone(_) => true,
        Change::Register(registration) => registration.state.gone(),
        Change::Heartbeat(heartbeat) => heartbeat.state.gone(),
        _ => false,
    }
}

fn unknown(host: &HostName) -> ItemRefusal {
    ItemRefusal::new(Reason::UnknownNode, format!("node \"{host}\" is not registered"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::NamedResource;
    use hintd_model::units::Bytes;

    fn register(rack: usize) -> Change {
        Change::Register(Registration {
            host: "a".into(),
            rack: format!("/r{rack}").as_str().into(),
            total: NamedResource::default(),
            labels: Vec::new(),
            attributes: Default::default(),
            class: "".into(),
            aliases: Vec::new(),
            disk_read: Bytes::ZERO,
            state: NodeState::Running,
        })
    }

    fn report(memory_mb: u64, state: NodeState, containers: Option<usize>) -> Change {
        let id = hintd_model::units::ContainerId { attempt: "appattempt_1_0001_000001".parse().unwrap(), id: 1 };
        let size = NamedResource { memory_mb: 1, ..NamedResource::default() };
        let key = hintd_model::units::SchedulerKey { priority: 0, allocation_request_id: -1 };
        let container = hintd_model::cluster::NamedContainer { id, size, key };
        Change::Heartbeat(Heartbeat {
            host: "a".into(),
            used: NamedResource { memory_mb, ..NamedResource::default() },
            used_is_running: false,
            containers: containers.map(|count| vec![container; count]),
            state,
        })
    }

    #[test]
    fn who_claims_an_alias_last_has_it_whichever_host_was_heard_first() {
        let nodes = Nodes::default();
        let claims = |host: &str, aliases: &[&str]| {
            let Change::Register(registration) = register(0) else { panic!("a registration") };
            let aliases = aliases.iter().map(|&name| name.into()).collect();
            let registration = Registration { host: host.into(), aliases, ..registration };
            nodes.register(registration, &RegistryLimits::default(), &Total::default()).unwrap();
        };
        claims("a", &[]);
        claims("b", &["x", "y"]);
        claims("b", &["x"]);
        claims("a", &["x", "y"]);
        let mut given = Vec::new();
        nodes.drain(&mut |change| {
            let Change::Register(registration) = change else { panic!("{change:?}") };
            given.push((registration.host.to_string(), registration.aliases.len()));
            Ok(())
        });
        assert_eq!(given, [("a".to_owned(), 2), ("b".to_owned(), 0)]);
    }

    #[test]
    fn a_node_that_comes_back_in_a_loop_keeps_that_it_went_and_its_last_life() {
        let mut entry = Entry::default();
        entry.push(Change::Gone("a".into()));
        for life in 0..100 {
            entry.push(register(life));
            entry.push(report(life as u64, NodeState::Running, None));
            assert!(entry.waiting.len() <= WAITING_MAX, "{} wait", entry.waiting.len());
        }
        assert!(leaves(&entry.waiting[0]), "what ran there is placed anew");
        let [.., Change::Register(last), Change::Heartbeat(report)] = &entry.waiting[..] else {
            panic!("{:?}", entry.waiting)
        };
        assert_eq!((last.rack.as_str(), report.used.memory_mb), ("/r99", 99));
    }

    #[test]
    fn a_node_that_says_again_and_again_that_it_goes_keeps_its_registration_and_that_it_went() {
        let mut entry = Entry::default();
        entry.push(register(7));
        for _ in 0..100 {
            entry.push(report(0, NodeState::Shutdown, None));
            assert!(entry.waiting.len() <= WAITING_MAX, "{} wait", entry.waiting.len());
        }
        assert!(matches!(entry.waiting[0], Change::Register(_)));
        assert!(entry.waiting.last().is_some_and(leaves));
    }

    #[test]
    fn of_two_feeds_reports_in_one_drain_the_names_of_one_and_the_use_of_the_other_stay() {
        let mut entry = Entry::default();
        entry.push(report(1, NodeState::Running, Some(1)));
        assert!(entry.push(report(2, NodeState::Running, None)));
        let [Change::Heartbeat(kept)] = &entry.waiting[..] else { panic!("{:?}", entry.waiting) };
        assert_eq!((kept.used.memory_mb, kept.containers.as_ref().map(Vec::len)), (2, Some(1)));
        entry.push(report(3, NodeState::Running, Some(0)));
        let [Change::Heartbeat(kept)] = &entry.waiting[..] else { panic!("{:?}", entry.waiting) };
        assert_eq!(kept.containers.as_ref().map(Vec::len), Some(0), "a newer word counts");
    }
}
