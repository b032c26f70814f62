//! Network files off their text: either format, every problem by line and key.

use super::super::document::NetworkDocument;
use super::super::graph::Network;
use super::super::problem::{NETWORK_FORMAT, NetworkProblem, Severity};
use super::super::tier::Tier;
use super::document::{HostRow, LinkRow, NetworkFile, RACKS_FORMAT, RackRow, RacksDocument, SwitchRow, tier};
use super::expand::Plan;
use super::places::KnownHosts;
use super::rate::RateEntry;
use super::salvage::{Mistake, salvage};
use super::spellings::Spellings;
use super::{CORE, dotted, matches};
use crate::units::BitsPerSec;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use toml::de::{DeTable, DeValue};

/// One thing wrong with a network file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// From 1; `None`: of no line, or JSON.
    pub line: Option<usize>,
    /// Dotted key; empty: none.
    pub key: String,
    /// What is wrong, with the value.
    pub message: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl FileProblem {
    /// As a line about a file.
    #[must_use]
    pub fn of_file(&self, file: &str) -> String {
        self.line.map_or_else(|| format!("{file}: {self}"), |line| format!("{file}:{line}: {self}"))
    }
}

/// The most switches and links that a racks file declares: beyond, somebody generates it, and has [`NETWORK_FORMAT`].
const ROWS_MAX: usize = 20_000;
/// Mistakes told of one file; how many more there are is said.
const PROBLEMS_MAX: usize = 50;
/// Letters of a key, or of what is wrong with it, that are told.
const TOLD_MAX: usize = 400;

/// Mistakes, and how many there are beyond them.
struct Mistakes {
    first: Vec<FileProblem>,
    more: usize,
}

impl From<Vec<FileProblem>> for Mistakes {
    fn from(first: Vec<FileProblem>) -> Self {
        Self { first, more: 0 }
    }
}

impl Mistakes {
    /// The first of all; only those are looked up in the text, which takes a while each.
    fn of<T>(all: Vec<T>, told: impl FnMut(T) -> FileProblem) -> Self {
        let more = all.len().saturating_sub(PROBLEMS_MAX);
        Self { first: all.into_iter().take(PROBLEMS_MAX).map(told).collect(), more }
    }

    fn in_order(self) -> Vec<FileProblem> {
        let Self { mut first, more } = self;
        first.sort_by_key(|problem| problem.line);
        for problem in &mut first {
            [&mut problem.key, &mut problem.message].into_iter().for_each(shorten);
        }
        if more > 0 {
            first.push(problem(None, "", &format!("and {more} more mistakes")));
        }
        first
    }
}

/// A name may be as long as the file.
fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TOLD_MAX) {
        text.truncate(at);
        text.push_str("...");
    }
}

impl NetworkFile {
    /// Reads and checks a TOML text.
    ///
    /// # Errors
    /// All problems at once, in the order of their lines; of more than 50, some and how many more there are.
    pub fn read_toml(text: &str) -> Result<Self, Vec<FileProblem>> {
        let at = |span: Option<std::ops::Range<usize>>| span.map(|span| line_of(text, span.start));
        let table = DeTable::parse(text).map_err(|error| vec![problem(at(error.span()), "", error.message())])?;
        let format = table.get_ref().get("format").and_then(|value| value.get_ref().as_str()).map(str::to_owned);
        let place = |path: &[String]| place(table.get_ref(), path).map(|at| line_of(text, at));
        let entry = |name: &str| named_entry(table.get_ref(), name).map(|at| line_of(text, at));
        Self::read(format.as_deref(), &place, &entry, Untyped::Toml(text)).map_err(Mistakes::in_order)
    }

    /// Reads and checks a JSON text.
    ///
    /// # Errors
    /// As [`Self::read_toml`]; only what is no JSON has a line.
    pub fn read_json(text: &str) -> Result<Self, Vec<FileProblem>> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| vec![problem(Some(error.line()), "", &error.to_string())])?;
        let format = value.get("format").and_then(serde_json::Value::as_str);
        Self::read(format, &|_| None, &|_| None, Untyped::Json(text)).map_err(Mistakes::in_order)
    }

    fn read(
        format: Option<&str>,
        place: &dyn Fn(&[String]) -> Option<usize>,
        entry: &dyn Fn(&str) -> Option<usize>,
        text: Untyped<'_>,
    ) -> Result<Self, Mistakes> {
        match format {
            Some(RACKS_FORMAT) => {
                let problems = match text.typed::<RacksDocument>() {
                    Ok(document) => match Checker::check(&document) {
                        problems if problems.is_empty() => return Ok(Self::Racks(Box::new(document))),
                        problems => problems,
                    },
                    Err(first) => match all_mistakes(text.value().unwrap_or_default()) {
                        problems if problems.is_empty() => return Err(first.into()),
                        problems => problems,
                    },
                };
                Err(Mistakes::of(problems, |(path, message)| {
                    // What is missing stands where the table does that it is missing from.
                    let line = (0..=path.len()).rev().find_map(|most| place(&path[..most]));
                    FileProblem { line, key: dotted(&path), message }
                }))
            }
            Some(NETWORK_FORMAT) => {
                let (found, first) = match text.typed::<NetworkDocument>() {
                    Ok(document) => match Network::from_document(&document) {
                        Ok(_) => return Ok(Self::Graph(Box::new(document))),
                        Err(found) => (found, Vec::new()),
                    },
                    Err(first) => (broken_entries(&text.value().unwrap_or_default()), first),
                };
                let errors: Vec<_> = found.iter().filter(|found| found.severity() == Severity::Error).collect();
                if errors.is_empty() {
                    return Err(first.into());
                }
                Err(Mistakes::of(errors, |found| match found {
                    NetworkProblem::Broken { place: key, message } => problem(place(&steps(key)), key, message),
                    found => problem(about(found).and_then(entry), "", &found.to_string()),
                }))
            }
            other => {
                let found = other.map_or_else(|| "is missing".to_owned(), |other| format!("is \"{other}\""));
                let message = format!("{found}: \"{RACKS_FORMAT}\" is wanted, or \"{NETWORK_FORMAT}\"");
                Err(vec![problem(place(&["format".to_owned()]).or(Some(1)), "format", &message)].into())
            }
        }
    }
}

/// All that is wrong with a racks file that can't be read as it stands: keys first, then what its rows say, where nothing of
/// that follows from a key that is wrong.
fn all_mistakes(value: serde_json::Value) -> Vec<Mistake> {
    let (document, mut mistakes) = salvage(value);
    // Of a switch that is not read much would follow.
    let apart = |(path, _): &Mistake| path.len() > 1 && path[0] != "switches";
    if let Some(document) = document.filter(|_| mistakes.iter().all(apart)) {
        let rows: BTreeSet<Vec<String>> = mistakes.iter().map(|(path, _)| path[..2].to_vec()).collect();
        let said = Checker::rows(&document).into_iter();
        mistakes.extend(said.filter(|(path, _)| path.len() < 2 || !rows.contains(&path[..2])));
    }
    mistakes
}

/// What is wrong with entries of a graph that can't be read as it stands, and with the rest of it.
fn broken_entries(value: &serde_json::Value) -> Vec<NetworkProblem> {
    let (document, mut found) = NetworkDocument::from_value(value);
    found.extend(Network::from_document(&document).err().unwrap_or_default());
    found
}

/// `links[3]` by its keys.
fn steps(place: &str) -> Vec<String> {
    place.split(['[', ']']).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

/// A text whose format is known.
#[derive(Clone, Copy)]
enum Untyped<'t> {
    Toml(&'t str),
    Json(&'t str),
}

impl Untyped<'_> {
    fn typed<T: DeserializeOwned>(self) -> Result<T, Vec<FileProblem>> {
        match self {
            Self::Toml(text) => toml::from_str(text).map_err(|error| {
                let line = error.span().map(|span| line_of(text, span.start));
                vec![problem(line, "", error.message().trim_end())]
            }),
            Self::Json(text) => {
                serde_json::from_str(text).map_err(|error| vec![problem(Some(error.line()), "", &error.to_string())])
            }
        }
    }

    fn value(self) -> Option<serde_json::Value> {
        match self {
            Self::Toml(text) => toml::from_str(text).ok(),
            Self::Json(text) => serde_json::from_str(text).ok(),
        }
    }
}

fn problem(line: Option<usize>, key: &str, message: &str) -> FileProblem {
    FileProblem { line, key: key.to_owned(), message: message.to_owned() }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count()
}

/// Where a value stands, by its keys; entries of a list count from 0.
fn place(table: &DeTable<'_>, path: &[String]) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    let at = value.span().start;
    match (value.get_ref(), rest) {
        (_, []) => Some(key.span().start.min(at)),
        (DeValue::Table(inner), _) => place(inner, rest),
        (DeValue::Array(list), [index, rest @ ..]) => {
            let entry = list.get(index.parse::<usize>().ok()?)?;
            match (entry.get_ref(), rest) {
                (DeValue::Table(inner), [_, ..]) => place(inner, rest),
                _ => Some(entry.span().start),
            }
        }
        _ => Some(at),
    }
}

/// Where a switch, host or link of a graph is named: the last place, which of two is the one too many.
fn named_entry(table: &DeTable<'_>, name: &str) -> Option<usize> {
    let lists = table.iter().filter_map(|(_, value)| value.get_ref().as_array());
    let entries = lists.flat_map(|list| list.iter()).filter_map(|entry| match entry.get_ref() {
        DeValue::Table(entry) => Some(entry),
        _ => None,
    });
    let named = entries.flat_map(|entry| entry.iter()).filter(|(key, value)| {
        ["id", "name"].contains(&key.get_ref().as_ref()) && value.get_ref().as_str() == Some(name)
    });
    named.map(|(_, value)| value.span().start).max()
}

/// The switch, host or link that a problem is about.
fn about(problem: &NetworkProblem) -> Option<&str> {
    match problem {
        NetworkProblem::DuplicateLink { link }
        | NetworkProblem::SelfLoop { link, .. }
        | NetworkProblem::UnknownEnd { link, .. }
        | NetworkProblem::OneWay { link, .. }
        | NetworkProblem::ZeroCapacity { link }
        | NetworkProblem::NegativeCapacity { link, .. }
        | NetworkProblem::AbsurdCapacity { link, .. }
        | NetworkProblem::TinyCapacity { link, .. }
        | NetworkProblem::HostToHost { link, .. } => Some(link.as_str()),
        NetworkProblem::DuplicateVertex { name } => Some(name),
        NetworkProblem::OrphanHost { host } | NetworkProblem::HostOffEdge { host, .. } => Some(host),
        NetworkProblem::SwitchWithoutLinks { switch } => Some(switch),
        NetworkProblem::Island { members, .. } | NetworkProblem::CutOff { members, .. } => {
            members.first().map(|name| &**name)
        }
        _ => None,
    }
}

/// Goes on after a problem, to name them all.
struct Checker<'d> {
    document: &'d RacksDocument,
    problems: Vec<Mistake>,
    /// Racks and hosts that list a host, by host.
    listed: BTreeMap<&'d str, String>,
    /// Hosts that are listed, and those of `[hosts]`, in all spellings.
    spelled: [Spellings<'d>; 2],
}

impl<'d> Checker<'d> {
    /// The rows, and where they are sound what they make together.
    fn check(document: &'d RacksDocument) -> Vec<Mistake> {
        let problems = Self::rows(document);
        if !problems.is_empty() {
            return problems;
        }
        let mut checker = Self::of(document);
        checker.whole();
        checker.problems
    }

    fn of(document: &'d RacksDocument) -> Self {
        Self { document, problems: Vec::new(), listed: BTreeMap::new(), spelled: Default::default() }
    }

    fn rows(document: &'d RacksDocument) -> Vec<Mistake> {
        let mut checker = Self::of(document);
        let rows = document.switches.len() + document.links.len() + document.racks.len();
        if rows > ROWS_MAX {
            checker.add(&["format"], format!("{rows} racks, switches and links: at most {ROWS_MAX}"));
            return checker.problems;
        }
        checker.rate(&["nic"], document.nic.as_ref());
        document.racks.iter().for_each(|(path, row)| checker.rack(path, row));
        document.switches.iter().for_each(|(name, row)| checker.switch(name, row));
        document.hosts.iter().for_each(|(name, row)| checker.host(name, row));
        let mut ids = BTreeSet::new();
        document.links.iter().enumerate().for_each(|(at, row)| checker.link(&at.to_string(), row, &mut ids));
        checker.problems
    }

    fn add(&mut self, path: &[&str], message: impl Into<String>) {
        self.problems.push((path.iter().map(|&key| key.to_owned()).collect(), message.into()));
    }

    fn rate(&mut self, path: &[&str], rate: Option<&RateEntry>) -> Option<BitsPerSec> {
        rate.and_then(|rate| rate.read().map_err(|message| self.add(path, message)).ok())
    }

    /// A name, or a beginning with `*`.
    fn pattern(&mut self, path: &[&str], pattern: &str) {
        let plain = pattern.strip_suffix('*').unwrap_or(pattern);
        if plain.contains('*') {
            self.add(path, format!("\"{pattern}\": a * may stand at the end only"));
        }
        if pattern.is_empty() || pattern.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            self.add(path, format!("{pattern:?} is no name: it is empty or holds white space or a control character"));
        }
    }

    fn uplink(&mut self, path: [&str; 2], uplink: Option<&RateEntry>, oversubscription: Option<f64>) {
        let [list, name] = path;
        self.rate(&[list, name, "uplink"], uplink);
        let Some(ratio) = oversubscription else { return };
        let key = [list, name, "oversubscription"];
        if !(0.01..=10_000.0).contains(&ratio) {
            self.add(&key, format!("{ratio} is outside 0.01 to 10000"));
        }
        if uplink.is_some() {
            self.add(&key, "says again what uplink says: leave one out");
        }
    }

    fn rack(&mut self, path: &str, row: &'d RackRow) {
        self.pattern(&["racks", path], path);
        if !path.starts_with('/') && path != "*" {
            self.add(&["racks", path], format!("\"{path}\" is no path of a rack, as in \"/rack1\" or \"/pod1/*\""));
        }
        self.uplink(["racks", path], row.uplink.as_ref(), row.oversubscription);
        let nic = self.rate(&["racks", path, "nic"], row.nic.as_ref());
        if row.oversubscription.is_some() && nic.is_none() && self.document.nic.is_none() {
            let message = "needs the rate of the hosts' links: set nic, of the rack or of all";
            self.add(&["racks", path, "oversubscription"], message);
        }
        if let Some(switch) = &row.switch {
            self.edge(&["racks", path, "switch"], switch);
            if row.uplink.is_some() || row.oversubscription.is_some() {
                let message = format!("says how its links up are: set that of switches.\"{switch}\"");
                self.add(&["racks", path], message);
            }
        } else if self.document.switches.contains_key(path) {
            self.add(&["switches", path], format!("rack \"{path}\" has a switch of that name already"));
        }
        for (at, host) in row.hosts.iter().enumerate() {
            let at = at.to_string();
            let key = ["racks", path, "hosts", &at];
            self.pattern(&key, host);
            if path.ends_with('*') {
                self.add(&key, format!("\"{host}\" is in one rack: \"{path}\" means many"));
            }
            self.once(&key, host, format!("rack \"{path}\""));
        }
    }

    fn once(&mut self, key: &[&str], host: &'d str, place: String) {
        if let Some(other) = self.listed.insert(host, place) {
            self.add(key, format!("\"{host}\" is in {other} already"));
        }
        self.spelled_once(key, host, 0);
    }

    /// Of two spellings one would count, and nobody would know which.
    fn spelled_once(&mut self, key: &[&str], host: &'d str, list: usize) {
        if let Some(other) = self.spelled[list].other(host) {
            self.add(key, format!("\"{host}\" and \"{other}\" are one host: keep one"));
        }
    }

    fn switch(&mut self, name: &str, row: &SwitchRow) {
        self.pattern(&["switches", name], name);
        if name.ends_with('*') {
            self.add(&["switches", name], format!("\"{name}\" is no name of one switch"));
        }
        self.uplink(["switches", name], row.uplink.as_ref(), row.oversubscription);
        let tier = tier(row);
        if tier == Tier::Optical {
            self.add(&["switches", name, "tier"], format!("optical switches stand in files of {NETWORK_FORMAT} only"));
        }
        if tier == Tier::Edge && !row.above.is_empty() {
            self.add(&["switches", name, "tier"], "is edge, and it is above others");
        }
        if tier.height() == Tier::Core.height() && (row.uplink.is_some() || row.oversubscription.is_some()) {
            self.add(&["switches", name, "uplink"], "a core switch has nothing above it");
        }
        if name == CORE && tier != Tier::Core {
            self.add(&["switches", name], format!("is {tier}: a switch called \"{CORE}\" is of tier core"));
        }
        for (at, pattern) in row.above.iter().enumerate() {
            if let Some(lower) = self.document.switches.get(pattern).map(self::tier)
                && lower.height() >= tier.height()
            {
                let message = format!("\"{pattern}\" is {lower}, and \"{name}\" {tier}: it is to be of a higher tier");
                self.add(&["switches", name, "above", &at.to_string()], message);
            }
            self.pattern(&["switches", name, "above", &at.to_string()], pattern);
        }
    }

    fn host(&mut self, name: &'d str, row: &HostRow) {
        self.pattern(&["hosts", name], name);
        if name.ends_with('*') {
            self.add(&["hosts", name], format!("\"{name}\" is no name of one host"));
        }
        self.spelled_once(&["hosts", name], name, 1);
        self.rate(&["hosts", name, "nic"], row.nic.as_ref());
        if let Some(switch) = &row.switch {
            self.edge(&["hosts", name, "switch"], switch);
            if let Some(rack) = &row.rack {
                self.add(&["hosts", name, "rack"], format!("is \"{rack}\", and switch says where it is already"));
            }
        }
        if let Some(rack) = &row.rack
            && (!rack.starts_with('/') || rack.ends_with('*'))
        {
            self.add(&["hosts", name, "rack"], format!("\"{rack}\" is no path of a rack, as in \"/rack1\""));
        }
        if row.switch.is_some() || row.rack.is_some() {
            self.once(&["hosts", name], name, "[hosts]".to_owned());
        }
    }

    fn link(&mut self, at: &str, row: &LinkRow, ids: &mut BTreeSet<String>) {
        self.rate(&["links", at, "rate"], Some(&row.rate));
        for (field, end) in [("a", &row.a), ("b", &row.b)] {
            let own = self.document.racks.get(end).is_some_and(|row| row.switch.is_none() && !end.ends_with('*'));
            if !own && !self.document.switches.contains_key(end) {
                let message = format!("\"{end}\" is neither a declared switch nor a rack with a switch of its own");
                self.add(&["links", at, field], message);
            }
        }
        if row.a == row.b {
            self.add(&["links", at], format!("joins \"{}\" to itself", row.a));
        }
        let id = row.id();
        if !ids.insert(id.clone()) {
            self.add(&["links", at], format!("\"{id}\" is another link's id: give each an id"));
        }
        for end in [&row.a, &row.b] {
            let other = if *end == row.a { &row.b } else { &row.a };
            let height = |name: &String| self.document.switches.get(name).map_or(Tier::Edge, tier).height();
            let declared = match (self.document.switches.get(end), self.document.racks.get(end)) {
                (Some(row), _) => row.uplink.is_some() || row.oversubscription.is_some(),
                (None, Some(row)) => row.uplink.is_some() || row.oversubscription.is_some(),
                (None, None) => false,
            };
            // Beside links up that `above` makes, there may be one to a neighbor.
            let above = |row: &SwitchRow| row.above.iter().any(|pattern| matches(pattern, end));
            let joined = || self.document.switches.values().any(above);
            if declared && (height(other) > height(end) || height(other) == height(end) && !joined()) {
                self.add(
                    &["links", at],
                    format!("leads on from \"{end}\", whose uplink says how it is joined already"),
                );
            }
        }
    }

    fn edge(&mut self, key: &[&str], switch: &str) {
        match self.document.switches.get(switch) {
            None => self.add(key, format!("\"{switch}\" is not declared in [switches]")),
            Some(row) if tier(row) != Tier::Edge => {
                self.add(key, format!("\"{switch}\" is {}: hosts hang on edge switches", tier(row)));
            }
            Some(_) => {}
        }
    }

    /// What the file makes by itself, with an example of a rack wherever it speaks of racks that it does not name.
    fn whole(&mut self) {
        let plan = Plan::whole(self.document);
        if let Err(found) = plan.expand(&KnownHosts::default()) {
            let errors = found.iter().filter(|found| found.severity() == Severity::Error);
            errors.for_each(|found| self.add(&["switches"], found.to_string()));
        }
        for name in plan.unjoined() {
            let message = "comes to nothing: neither `above` nor a link joins a lower switch or a rack to it";
            self.add(&["switches", name], message);
        }
    }
}
