//! Nodes as the daemon was told of them, and what to tell it of the next answer; no I/O, no clock.

use super::resource_manager::{Amounts, ClusterInfo, NodeSeen, OtherAmount};
use hintd_client::wire::v1::heartbeat_item::Item;
use hintd_client::wire::{v1, yarn};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Nodes that were told, and for how long those that are missing are spared.
#[derive(Debug)]
pub struct KnownNodes {
    absent_kept: Duration,
    told: BTreeMap<String, NodeSeen>,
    life: Option<ClusterInfo>,
    /// Until when nodes that are missing count as late.
    settled: Duration,
    /// Since when the list has been empty.
    empty_since: Option<Duration>,
    /// Since when nodes that are missing have been spared.
    spared_since: Option<Duration>,
    polls: u32,
}

/// What an answer comes to.
#[derive(Debug, Default)]
pub struct NodeFeedUpdate {
    /// For `Feed.Heartbeats`.
    pub items: Vec<Item>,
    /// Nodes that are missing, and spared for now.
    pub spared: usize,
    /// The answer before spared none.
    pub begins: bool,
    /// Nodes that are missing still after they were spared for so long: they have left.
    pub believed: Option<(usize, Duration)>,
    /// For how long at most none may count as lost.
    pub silence_excused: Option<Duration>,
    /// It is another ResourceManager, or another life of the same.
    pub other_life: bool,
    /// Hosts that the answer names twice; the first counts.
    pub twice: Vec<String>,
}

impl KnownNodes {
    /// Nothing told yet. Missing nodes are spared for `absent_kept` while the list is empty or the ResourceManager new.
    #[must_use]
    pub const fn new(absent_kept: Duration) -> Self {
        Self {
            absent_kept,
            told: BTreeMap::new(),
            life: None,
            settled: Duration::ZERO,
            empty_since: None,
            spared_since: None,
            polls: 0,
        }
    }

    /// Nodes that were told.
    #[must_use]
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Forgets what was told of a node: it is to register again.
    pub fn forget(&mut self, host: &str) {
        self.told.remove(host);
    }

    /// Takes an answer in; `now` counts from any fixed moment.
    pub fn update(&mut self, life: ClusterInfo, nodes: Vec<NodeSeen>, now: Duration) -> NodeFeedUpdate {
        let mut told =
            NodeFeedUpdate { other_life: self.life.is_some_and(|last| last != life), ..NodeFeedUpdate::default() };
        if told.other_life {
            self.settled = now + self.absent_kept;
        }
        self.life = Some(life);
        self.polls = self.polls.wrapping_add(1);
        self.empty_since = if nodes.is_empty() { self.empty_since.or(Some(now)) } else { None };
        let mut here = BTreeSet::new();
        for node in nodes {
            if !here.insert(node.host.clone()) {
                told.twice.push(node.host);
                continue;
            }
            let known = self.told.get(&node.host);
            if known.is_none_or(|known| !same_node(known, &node)) {
                told.items.push(Item::Register(registration(&node)));
            }
            told.items.push(Item::Heartbeat(heartbeat(&node, self.polls)));
            self.told.insert(node.host.clone(), node);
        }
        let kept_until = self.empty_since.map_or(self.settled, |since| self.settled.max(since + self.absent_kept));
        let missing: Vec<String> = self.told.keys().filter(|host| !here.contains(*host)).cloned().collect();
        if !missing.is_empty() && now < kept_until {
            (told.spared, told.silence_excused) = (missing.len(), Some(kept_until - now));
            told.begins = self.spared_since.is_none();
            self.spared_since.get_or_insert(now);
            return told;
        }
        let spared = self.spared_since.take().filter(|_| !missing.is_empty());
        told.believed = spared.map(|since| (missing.len(), now - since));
        for host in missing {
            self.told.remove(&host);
            told.items.push(Item::Gone(v1::NodeGone { host }));
        }
        told
    }
}

/// Whether only what changes all the time differs.
fn same_node(known: &NodeSeen, node: &NodeSeen) -> bool {
    let NodeSeen { host, port, rack, state: _, total, used: _, labels, attributes } = node;
    (&known.host, known.port, &known.rack, &known.total) == (host, *port, rack, total)
        && (&known.labels, &known.attributes) == (labels, attributes)
}

fn registration(node: &NodeSeen) -> v1::RegisterNode {
    v1::RegisterNode {
        host: node.host.clone(),
        port: node.port,
        rack: node.rack.clone(),
        total: Some(resource(&node.total)),
        labels: node.labels.clone(),
        attributes: node.attributes.iter().cloned().collect(),
        state: Some(node.state.clone()),
        ..v1::RegisterNode::default()
    }
}

fn heartbeat(node: &NodeSeen, response_id: u32) -> v1::NodeHeartbeat {
    v1::NodeHeartbeat {
        host: node.host.clone(),
        response_id,
        used: Some(resource(&node.used)),
        containers: Vec::new(),
        state: node.state.clone(),
    }
}

fn resource(amounts: &Amounts) -> yarn::ResourceProto {
    let other = |other: &OtherAmount| yarn::ResourceInformationProto {
        key: other.name.clone(),
        value: Some(other.value),
        units: Some(other.units.clone()),
        ..yarn::ResourceInformationProto::default()
    };
    yarn::ResourceProto {
        memory: Some(amounts.memory_mb),
        virtual_cores: Some(i32::try_from(amounts.vcores).unwrap_or(i32::MAX)),
        resource_value_map: amounts.others.iter().map(other).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: ClusterInfo = ClusterInfo { id: 1 };

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn node(host: &str, used: i64) -> NodeSeen {
        NodeSeen {
            host: host.into(),
            port: 1,
            rack: "/r".into(),
            state: "RUNNING".into(),
            total: Amounts { memory_mb: 8_192, vcores: 8, others: vec![] },
            used: Amounts { memory_mb: used, vcores: 1, others: vec![] },
            labels: vec![],
            attributes: vec![],
        }
    }

    fn words(told: &NodeFeedUpdate) -> Vec<String> {
        let word = |item: &Item| match item {
            Item::Register(node) => format!("+{}", node.host),
            Item::Heartbeat(beat) => format!("{}={}", beat.host, beat.used.as_ref().unwrap().memory.unwrap()),
            Item::Gone(gone) => format!("-{}", gone.host),
            Item::Hello(_) => "hello".into(),
        };
        told.items.iter().map(word).collect()
    }

    #[test]
    fn a_node_registers_once_reports_each_time_and_leaves() {
        let mut known_nodes = KnownNodes::new(s(60));
        let first = known_nodes.update(LIFE, vec![node("a", 1), node("b", 2)], s(0));
        assert_eq!(words(&first), ["+a", "a=1", "+b", "b=2"]);
        assert_eq!(words(&known_nodes.update(LIFE, vec![node("a", 1), node("b", 3)], s(1))), ["a=1", "b=3"]);
        let mut larger = node("a", 1);
        larger.total.memory_mb = 9_000;
        assert_eq!(words(&known_nodes.update(LIFE, vec![larger, node("b", 3)], s(2))), ["+a", "a=1", "b=3"]);
        assert_eq!(words(&known_nodes.update(LIFE, vec![node("b", 3)], s(3))), ["b=3", "-a"]);
        let twice = known_nodes.update(LIFE, vec![node("b", 3), node("b", 4)], s(4));
        assert_eq!((words(&twice), twice.twice), (vec!["b=3".to_owned()], vec!["b".to_owned()]));
        known_nodes.forget("b");
        assert_eq!(words(&known_nodes.update(LIFE, vec![node("b", 3)], s(5))), ["+b", "b=3"]);
    }

    #[test]
    fn a_list_that_has_become_empty_is_believed_after_its_time() {
        let mut known_nodes = KnownNodes::new(s(60));
        known_nodes.update(LIFE, vec![node("a", 1), node("b", 2)], s(0));
        let empty = known_nodes.update(LIFE, vec![], s(10));
        assert_eq!((words(&empty), empty.spared, empty.silence_excused), (vec![], 2, Some(s(60))));
        assert!(empty.begins && empty.believed.is_none());
        let last = known_nodes.update(LIFE, vec![], s(69));
        assert_eq!((last.silence_excused, last.begins, last.believed), (Some(s(1)), false, None));
        let believed = known_nodes.update(LIFE, vec![], s(70));
        assert_eq!((words(&believed), believed.believed), (vec!["-a".to_owned(), "-b".to_owned()], Some((2, s(60)))));
        let after = known_nodes.update(LIFE, vec![], s(71));
        assert_eq!((words(&after), after.believed), (vec![], None), "it is said once");
        let mut known_nodes = KnownNodes::new(s(60));
        known_nodes.update(LIFE, vec![node("a", 1)], s(0));
        known_nodes.update(LIFE, vec![], s(10));
        known_nodes.update(LIFE, vec![node("a", 1)], s(50));
        assert_eq!(known_nodes.update(LIFE, vec![], s(80)).silence_excused, Some(s(60)), "the time begins anew");
    }

    #[test]
    fn nodes_have_time_to_find_a_resource_manager_that_has_started_anew() {
        let mut known_nodes = KnownNodes::new(s(60));
        known_nodes.update(LIFE, vec![node("a", 1), node("b", 2)], s(0));
        let anew = known_nodes.update(ClusterInfo { id: 2 }, vec![node("b", 0)], s(5));
        assert!(anew.other_life);
        assert_eq!((words(&anew), anew.spared, anew.silence_excused), (vec!["b=0".to_owned()], 1, Some(s(60))));
        let found = known_nodes.update(ClusterInfo { id: 2 }, vec![node("a", 0), node("b", 0)], s(7));
        assert_eq!((words(&found), found.spared), (vec!["a=0".to_owned(), "b=0".to_owned()], 0));
        assert_eq!(found.believed, None, "none had left");
        known_nodes.update(ClusterInfo { id: 2 }, vec![node("b", 0)], s(64));
        assert_eq!(words(&known_nodes.update(ClusterInfo { id: 2 }, vec![node("b", 0)], s(65))), ["b=0", "-a"]);
    }
}
