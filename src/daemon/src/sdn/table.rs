//! The entries that switches are to have, as commands for the controller, and whether they have them.

use super::graph::Graph;
use super::model::{Dpid, Entry, EntryFound, Match, Output};
use hintd_engine::{RuleAction, RuleChange, WatchedPair};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How own entries are told from others'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEntryMarks {
    /// The upper 56 bits are own; the lowest 8 say what for.
    pub cookie: u64,
    /// Of routes.
    pub priority: u16,
    /// Of default forwarding; below that of routes.
    pub base_priority: u16,
}

/// Own cookies agree in these bits.
pub const COOKIE_MASK: u64 = !0xff;
const ROUTE: u64 = 1;
const BASE: u64 = 2;

/// What entries are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Routes of pairs.
    Route,
    /// Default forwarding.
    Base,
}

/// One change of one switch.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Add, or replace what has the same match and priority.
    Add(Dpid, Entry),
    /// Remove what has this match, as the controller writes it, and this priority.
    Remove {
        /// Where.
        switch: Dpid,
        /// Its priority.
        priority: u16,
        /// Its match.
        matches: Value,
    },
}

impl Command {
    /// Which switch.
    #[must_use]
    pub const fn switch(&self) -> Dpid {
        match self {
            Self::Add(switch, _) | Self::Remove { switch, .. } => *switch,
        }
    }
}

/// What switches are to have.
#[derive(Debug, Clone)]
pub struct Table {
    marks: FlowEntryMarks,
    wanted: BTreeMap<Wanted, BTreeSet<Output>>,
}

/// Where an entry is wanted, and what for. Those of a switch stand together, routes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    switch: Dpid,
    layer: Layer,
    matches: Match,
}

impl Table {
    /// Nothing wanted.
    #[must_use]
    pub const fn new(marks: FlowEntryMarks) -> Self {
        Self { marks, wanted: BTreeMap::new() }
    }

    /// Wants an entry from now on.
    pub fn want(&mut self, switch: Dpid, layer: Layer, matches: Match, outputs: BTreeSet<Output>) -> Command {
        let command = Command::Add(switch, self.entry(layer, matches, outputs.clone()));
        self.wanted.insert(Wanted { switch, layer, matches }, outputs);
        command
    }

    /// Wants an entry no more.
    pub fn drop(&mut self, switch: Dpid, layer: Layer, matches: Match) -> Command {
        self.wanted.remove(&Wanted { switch, layer, matches });
        let entry = self.entry(layer, matches, BTreeSet::new());
        Command::Remove { switch, priority: entry.priority, matches: super::ryu::match_json(&matches) }
    }

    /// Where entries of one layer are wanted.
    pub fn of_layer(&self, layer: Layer) -> impl Iterator<Item = (Dpid, Match)> {
        self.wanted.keys().filter(move |wanted| wanted.layer == layer).map(|wanted| (wanted.switch, wanted.matches))
    }

    /// Wants no route.
    pub fn forget_routes(&mut self) {
        self.wanted.retain(|wanted, _| wanted.layer != Layer::Route);
    }

    /// Whether an entry is wanted, and where it sends.
    #[must_use]
    pub fn outputs(&self, switch: Dpid, layer: Layer, matches: Match) -> Option<&BTreeSet<Output>> {
        self.wanted.get(&Wanted { switch, layer, matches })
    }

    /// What a switch lacks, and what it has of ours that nobody wants; additions first.
    #[must_use]
    pub fn differences(&self, switch: Dpid, found: &[EntryFound]) -> Vec<Command> {
        let own: Vec<&EntryFound> =
            found.iter().filter(|entry| entry.cookie & COOKIE_MASK == self.marks.cookie & COOKIE_MASK).collect();
        let matches = Match { src: None, dst: super::model::Mac([0; 6]) };
        let from = Wanted { switch, layer: Layer::Route, matches };
        let wanted = self.wanted.range(from..).take_while(|(wanted, _)| wanted.switch == switch);
        let wanted: BTreeMap<(u16, Match), Entry> = wanted
            .map(|(wanted, to)| self.entry(wanted.layer, wanted.matches, to.clone()))
            .map(|entry| ((entry.priority, entry.matches), entry))
            .collect();
        let key = |found: &EntryFound| Some((found.priority, found.matches?));
        let there: BTreeMap<(u16, Match), &EntryFound> = own.iter().filter_map(|own| Some((key(own)?, *own))).collect();
        let same = |entry: &Entry, found: &EntryFound| {
            found.cookie == entry.cookie && found.outputs.as_ref() == Some(&entry.outputs)
        };
        let missing = wanted.iter().filter(|(key, entry)| !there.get(key).is_some_and(|found| same(entry, found)));
        let missing = missing.map(|(_, entry)| entry);
        let surplus = own.iter().filter(|found| key(found).is_none_or(|key| !wanted.contains_key(&key)));
        let add = missing.map(|entry| Command::Add(switch, entry.clone()));
        let remove = surplus.map(|found| {
            let (priority, matches) = (found.priority, found.raw.clone());
            Command::Remove { switch, priority, matches }
        });
        add.chain(remove).collect()
    }

    fn entry(&self, layer: Layer, matches: Match, outputs: BTreeSet<Output>) -> Entry {
        let (kind, priority) = match layer {
            Layer::Route => (ROUTE, self.marks.priority),
            Layer::Base => (BASE, self.marks.base_priority),
        };
        Entry { cookie: self.marks.cookie & COOKIE_MASK | kind, priority, matches, outputs }
    }
}

/// A switch's own entries as they were read back, to be looked at by what they match.
#[derive(Debug, Clone, Default)]
pub struct InstalledEntries(BTreeMap<(u16, Match), EntryFound>);

impl InstalledEntries {
    /// Of what was read; entries that look at more than addresses are nobody's.
    #[must_use]
    pub fn new(found: Vec<EntryFound>) -> Self {
        Self(found.into_iter().filter_map(|entry| Some(((entry.priority, entry.matches?), entry))).collect())
    }

    /// Whether the switch shows that a command was taken.
    #[must_use]
    pub fn has(&self, command: &Command) -> bool {
        match command {
            Command::Add(_, entry) => self
                .0
                .get(&(entry.priority, entry.matches))
                .is_some_and(|found| found.cookie == entry.cookie && found.outputs.as_ref() == Some(&entry.outputs)),
            Command::Remove { priority, matches, .. } => {
                super::ryu::matches(matches).is_none_or(|own| !self.0.contains_key(&(*priority, own)))
            }
        }
    }
}

/// Why a rule can't be an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    /// No such switch.
    #[error("switch \"{0}\" is not one of this controller's")]
    Switch(String),
    /// The switch has no connection.
    #[error("switch \"{0}\" is not connected to its controller")]
    Away(String),
    /// No such link there.
    #[error("switch \"{switch}\" has no port on link \"{link}\"")]
    Link {
        /// Where.
        switch: String,
        /// What.
        link: String,
    },
    /// A host without an address.
    #[error("no address of host \"{0}\" was heard")]
    Host(String),
    /// A class of traffic.
    #[error("traffic class \"{0}\" can't be told apart by addresses")]
    Class(String),
}

/// A rule in the controller's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translated {
    /// Where.
    pub switch: Dpid,
    /// Whose packets.
    pub matches: Match,
    /// The port to take; `None`: it is to be removed.
    pub port: Option<u32>,
}

/// A rule in the controller's terms.
///
/// # Errors
/// [`Untranslatable`].
pub fn translate(rule: &RuleChange, graph: &Graph) -> Result<Translated, Untranslatable> {
    let switch = graph.switches.get(&*rule.switch).ok_or_else(|| Untranslatable::Switch(rule.switch.to_string()))?;
    let matches = matches(&rule.pair, graph)?;
    let translated = |port| Translated { switch: switch.dpid, matches, port };
    let RuleAction::Install { link, .. } = &rule.action else { return Ok(translated(None)) };
    if !switch.up {
        return Err(Untranslatable::Away(rule.switch.to_string()));
    }
    let port = graph
        .port(&rule.switch, link.as_str())
        .ok_or_else(|| Untranslatable::Link { switch: rule.switch.to_string(), link: link.to_string() })?;
    Ok(translated(Some(port.port)))
}

fn matches(pair: &WatchedPair, graph: &Graph) -> Result<Match, Untranslatable> {
    if !pair.class.is_empty() {
        return Err(Untranslatable::Class(pair.class.to_string()));
    }
    let address = |host: &str| graph.address(host).ok_or_else(|| Untranslatable::Host(host.to_owned()));
    Ok(Match { src: Some(address(pair.src.as_str())?), dst: address(pair.dst.as_str())? })
}

#[cfg(test)]
mod tests;
