//! Links that carry nothing: since when, by whose word, what they carried before, and what the log says of it.

use hintd_engine::CarriedRoutes;
use hintd_model::cluster::{LinkLoad, LinkMean};
use hintd_model::network::Network;
use hintd_model::units::{LinkIdx, LinkName, Micros};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Within this time the lines below are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Lines about one link or switch: what changes more often flaps.
const LINES_OF_ONE: usize = 4;
/// Lines about all together: more say no more than `hintctl links --down` does.
const LINES: usize = 50;

/// A link that carries nothing: it is down, or a switch at its end is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownLink {
    /// Since when, as far as hintd was told.
    pub since: Instant,
    /// The feed, controller or file that said so.
    pub said_by: Arc<str>,
    /// What it carried when it went; `None`: it was down when hintd first heard of it, or the engine has not looked yet.
    pub carried: Option<Arc<CarriedRoutes>>,
    /// What was measured on it last before it went, and when; `None`: nothing was.
    pub load: Option<(Instant, LinkLoad)>,
}

/// The last time that a link carried nothing, which is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOutage {
    /// How it went.
    pub was: DownLink,
    /// When it ended, as far as hintd was told.
    pub ended: Instant,
}

/// What is known of a link beside its load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTold {
    /// Where it carries nothing.
    pub down: Option<DownLink>,
    /// Its last outage that is over; `None`: it had none that hintd was told of.
    pub last_outage: Option<LastOutage>,
    /// When its load was measured last; `None`: it never was.
    pub measured: Option<Instant>,
}

/// What changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Link,
    /// With so many links whose state changed with it.
    Switch {
        links: usize,
    },
}

/// One line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::runtime) struct Line {
    subject: Subject,
    name: Arc<str>,
    down: bool,
    said_by: Arc<str>,
    /// It was down for so long, where it is back.
    was_down: Option<Duration>,
    /// Changes without a line since the one before, of anything.
    left_out: u64,
    /// It flaps: further changes of it have no line for a while.
    last: bool,
    /// Links that went with it, where it is down.
    lost: Vec<LinkName>,
}

/// A link or switch whose state changed.
struct Changed<'a> {
    subject: Subject,
    name: &'a Arc<str>,
    down: bool,
    /// It was down for so long, where it is back.
    was_down: Option<Duration>,
    /// Links that went with it, where it is down.
    lost: Vec<LinkName>,
}

/// Links that went down since the last look at what they carried, and lines of the log that wait for it.
#[derive(Debug, Default)]
pub(in crate::runtime) struct LostLinks {
    pub(in crate::runtime) links: Vec<LinkName>,
    pub(in crate::runtime) lines: Vec<Line>,
}

impl Line {
    /// Links whose routes the line tells of; none: it tells of none.
    pub(in crate::runtime) fn lost(&self) -> &[LinkName] {
        &self.lost
    }

    pub(in crate::runtime) fn write(&self, carried: Option<&CarriedRoutes>) {
        let Self { name, said_by, left_out, .. } = self;
        let flaps = if self.last { "; it flaps: further changes have no line until it is quiet" } else { "" };
        let carried = carried.map(in_words).unwrap_or_default();
        let was_down_s = self.was_down.unwrap_or_default().as_secs();
        match (self.subject, self.down) {
            (Subject::Link, true) => tracing::warn!(link = %name, %said_by, left_out, "a link is down{carried}{flaps}"),
            (Subject::Link, false) => {
                tracing::info!(link = %name, %said_by, was_down_s, left_out, "a link is up again{flaps}");
            }
            (Subject::Switch { links }, true) => {
                tracing::warn!(switch = %name, links, %said_by, left_out, "a switch is down, and its links{carried}{flaps}");
            }
            (Subject::Switch { links }, false) => {
                tracing::info!(switch = %name, links, %said_by, was_down_s, left_out, "a switch is up again{flaps}");
            }
        }
    }
}

/// `; carried 12 routes of 3 applications: application_1_0001, …`
fn in_words(carried: &CarriedRoutes) -> String {
    let CarriedRoutes { routes, uncertain, chained, applications_total, applications } = carried;
    let named: Vec<String> = applications.iter().map(|(application, _)| application.to_string()).collect();
    let more = match applications_total.saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let s = |number: u64| if number == 1 { "" } else { "s" };
    let mut parts = Vec::new();
    if *routes > 0 {
        let all = *applications_total as u64;
        let whose = format!("{all} application{}: {}{more}", s(all), named.join(", "));
        parts.push(format!("carried {routes} route{} of {whose}", s(*routes)));
    }
    if *chained > 0 {
        parts.push(format!("carried {chained} route{} through middleboxes", s(*chained)));
    }
    if *uncertain > 0 {
        parts.push(format!(
            "may have carried {uncertain} route{}, of which the network chose the path by itself",
            s(*uncertain)
        ));
    }
    if parts.is_empty() { "; carried no known route".to_owned() } else { format!("; {}", parts.join("; ")) }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LinkStates {
    down: BTreeMap<LinkName, DownLink>,
    /// The last outage of each link of the network that had one: no more than it has links.
    over: BTreeMap<LinkName, LastOutage>,
    /// Links that went down and of which it is not yet known what they carried.
    lost: BTreeSet<LinkName>,
    /// Lines that are not written yet.
    waiting: Vec<Line>,
    /// When a link or switch had its last lines; forgotten once they are long ago.
    lines: BTreeMap<Arc<str>, VecDeque<Instant>>,
    all_lines: VecDeque<Instant>,
    left_out: u64,
    /// What was measured last on links: of links of the network, so that these are no more than it has.
    measured: BTreeMap<LinkName, Reading>,
}

/// A link's counters.
#[derive(Debug)]
struct Reading {
    at: Instant,
    load: LinkLoad,
    mean: LinkMean,
}

impl LinkStates {
    pub(super) fn of(&self, link: &LinkName) -> Option<&DownLink> {
        self.down.get(link)
    }

    pub(super) fn last_outage(&self, link: &LinkName) -> Option<&LastOutage> {
        self.over.get(link)
    }

    /// All, the longest down first.
    pub(super) fn all(&self) -> Vec<(LinkName, DownLink)> {
        let mut all: Vec<_> = self.down.iter().map(|(link, down)| (link.clone(), down.clone())).collect();
        all.sort_by_key(|(_, down)| down.since);
        all
    }

    pub(super) fn len(&self) -> usize {
        self.down.len()
    }

    /// Links of which it is asked what they carried, and lines that wait for it.
    pub(super) fn take_lost(&mut self) -> LostLinks {
        LostLinks {
            links: std::mem::take(&mut self.lost).into_iter().collect(),
            lines: std::mem::take(&mut self.waiting),
        }
    }

    /// What a link carried when it went down.
    pub(super) fn carried(&mut self, link: &LinkName, carried: CarriedRoutes) {
        if let Some(down) = self.down.get_mut(link) {
            down.carried = Some(Arc::new(carried));
        }
    }

    pub(super) fn removed(&mut self, link: &LinkName) {
        self.down.remove(link);
        self.over.remove(link);
        self.lost.remove(link);
        self.measured.remove(link);
    }

    /// Takes a reading in; gives it with its mean.
    pub(super) fn note_measured(&mut self, link: &LinkName, load: LinkLoad, now: Instant) -> LinkLoad {
        let Some(known) = self.measured.get_mut(link) else {
            let mut mean = LinkMean::default();
            let load = mean.add(load, Micros::ZERO);
            self.measured.insert(link.clone(), Reading { at: now, load, mean });
            return load;
        };
        let since = u64::try_from(now.saturating_duration_since(known.at).as_micros()).unwrap_or(u64::MAX);
        (known.at, known.load) = (now, known.mean.add(load, Micros(since)));
        known.load
    }

    pub(super) fn measured(&self, link: &LinkName) -> Option<Instant> {
        self.measured.get(link).map(|known| known.at)
    }

    /// Somebody told of one link.
    pub(super) fn link(&mut self, network: &Network, link: LinkIdx, said_by: &Arc<str>, now: Instant) {
        let Some((down, was_down)) = self.look(network, link, said_by, now) else { return };
        let name = &network.link_at(link).name;
        let lost = if down { vec![name.clone()] } else { Vec::new() };
        self.line(Changed { subject: Subject::Link, name: &name.0, down, was_down, lost }, said_by, now);
    }

    /// Somebody told of a switch with these links.
    pub(super) fn switch(
        &mut self,
        network: &Network,
        (name, links): (&Arc<str>, &[LinkIdx]),
        said_by: &Arc<str>,
        now: Instant,
    ) {
        let look = |&link: &LinkIdx| Some((link, self.look(network, link, said_by, now)?));
        let changes: Vec<_> = links.iter().filter_map(look).collect();
        let down = !network.vertex(name).is_some_and(|at| network.switch_up(at));
        let was_down = changes.iter().filter_map(|(_, (_, was_down))| *was_down).max();
        let lost = changes.iter().filter(|(_, (is_down, _))| *is_down);
        let lost = lost.map(|(link, _)| network.link_at(*link).name.clone()).collect();
        let subject = Subject::Switch { links: changes.len() };
        self.line(Changed { subject, name, down, was_down, lost }, said_by, now);
    }

    /// Somebody told of the network as a whole.
    pub(super) fn whole(&mut self, network: Option<&Network>, said_by: &Arc<str>, now: Instant) {
        let Some(network) = network else {
            self.down.clear();
            self.over.clear();
            self.lost.clear();
            self.measured.clear();
            return;
        };
        self.down.retain(|link, _| network.link(link.as_str()).is_some());
        self.over.retain(|link, _| network.link(link.as_str()).is_some());
        self.lost.retain(|link| network.link(link.as_str()).is_some());
        self.measured.retain(|link, _| network.link(link.as_str()).is_some());
        network.links().for_each(|(link, _)| self.link(network, link, said_by, now));
    }

    /// Notes a link's state: whether it is down, where that is new, and for how long it was.
    fn look(
        &mut self,
        network: &Network,
        link: LinkIdx,
        said_by: &Arc<str>,
        now: Instant,
    ) -> Option<(bool, Option<Duration>)> {
        let name = &network.link_at(link).name;
        match (network.is_usable(link), self.down.contains_key(name)) {
            (false, false) => {
                let load = self.measured.get(name).map(|known| (known.at, known.load));
                let down = DownLink { since: now, said_by: Arc::clone(said_by), carried: None, load };
                self.down.insert(name.clone(), down);
                self.lost.insert(name.clone());
                Some((true, None))
            }
            (true, true) => {
                let was = self.down.remove(name)?;
                self.lost.remove(name);
                let lasted = now.saturating_duration_since(was.since);
                self.over.insert(name.clone(), LastOutage { was, ended: now });
                Some((false, Some(lasted)))
            }
            _ => None,
        }
    }

    /// Puts the line about a change in line, where one is due.
    fn line(&mut self, changed: Changed<'_>, said_by: &Arc<str>, now: Instant) {
        let Changed { subject, name, down, was_down, lost } = changed;
        let recent = |at: &Instant| now.saturating_duration_since(*at) < WINDOW;
        self.all_lines.retain(recent);
        self.lines.retain(|_, lines| lines.back().is_some_and(recent));
        if self.all_lines.len() >= LINES && !self.lines.contains_key(name) {
            // No place is kept for what has no line: a network of many links that all go is looked at in one pass.
            self.left_out += 1;
            return;
        }
        let lines = self.lines.entry(Arc::clone(name)).or_default();
        lines.retain(recent);
        // A change without a line counts too: the window is one of quiet.
        lines.push_back(now);
        let of_one = lines.len();
        while lines.len() > LINES_OF_ONE + 1 {
            lines.pop_front();
        }
        if of_one > LINES_OF_ONE || self.all_lines.len() >= LINES {
            self.left_out += 1;
            return;
        }
        self.all_lines.push_back(now);
        let left_out = std::mem::take(&mut self.left_out);
        let (name, said_by, last) = (Arc::clone(name), Arc::clone(said_by), of_one == LINES_OF_ONE);
        if self.waiting.len() >= LINES {
            self.waiting.remove(0).write(None); // nobody has looked for a long time
        }
        self.waiting.push(Line { subject, name, down, said_by, was_down, left_out, last, lost });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::network::{HostEntry, LinkEntry, NETWORK_FORMAT, NetworkDocument, SwitchEntry, Tier};
    use hintd_model::units::{ApplicationId, BitsPerSec};

    /// Two racks, two spines, a host in each rack: s0 to s1 and back over either spine.
    fn network() -> Network {
        let switch = |name: &str, tier| SwitchEntry { name: name.to_owned(), tier, up: true };
        let link = |a: &str, b: &str| LinkEntry {
            id: format!("{a}--{b}").into(),
            a: a.to_owned(),
            b: b.to_owned(),
            bits_per_s: 1_000,
            up: true,
            one_way: false,
        };
        let document = NetworkDocument {
            format: NETWORK_FORMAT.to_owned(),
            switches: vec![
                switch("e0", Tier::Edge),
                switch("e1", Tier::Edge),
                switch("c0", Tier::Core),
                switch("c1", Tier::Core),
            ],
            hosts: ["h0", "h1"].map(|name| HostEntry { name: name.into() }).into(),
            links: vec![
                link("h0", "e0"),
                link("h1", "e1"),
                link("e0", "c0"),
                link("e1", "c0"),
                link("e0", "c1"),
                link("e1", "c1"),
            ],
            optical: None,
        };
        Network::from_document(&document).unwrap()
    }

    /// Those since the last call.
    fn lines(states: &mut LinkStates) -> Vec<Line> {
        states.take_lost().lines
    }

    #[test]
    fn a_link_is_down_since_it_was_first_said_and_by_whom() {
        let (mut network, mut states, start) = (network(), LinkStates::default(), Instant::now());
        let (link, ryu, other): (_, Arc<str>, Arc<str>) = (network.link("e0--c0").unwrap(), "ryu".into(), "x".into());
        states.link(&network, link, &ryu, start);
        assert_eq!(lines(&mut states), [], "it is up, as it was");
        network.set_link(link, Some(false), None);
        states.link(&network, link, &ryu, start);
        let said = lines(&mut states).remove(0);
        assert_eq!((&*said.name, said.down, &*said.said_by, said.last), ("e0--c0", true, "ryu", false));
        let later = start + Duration::from_secs(50);
        states.link(&network, link, &other, later);
        states.whole(Some(&network), &other, later);
        assert_eq!(lines(&mut states), [], "said again, and in a whole network");
        let known = states.of(&"e0--c0".into()).unwrap();
        assert_eq!((known.since, &*known.said_by), (start, "ryu"));
        network.set_link(link, Some(true), None);
        states.link(&network, link, &other, later);
        let said = lines(&mut states).remove(0);
        assert_eq!((said.down, said.was_down, &*said.said_by), (false, Some(Duration::from_secs(50)), "x"));
        assert_eq!((states.len(), states.all()), (0, vec![]));
    }

    #[test]
    fn a_switch_has_one_line_for_all_its_links_and_a_link_of_two_that_are_down_stays_down() {
        let (mut network, mut states, now) = (network(), LinkStates::default(), Instant::now());
        let by: Arc<str> = "ryu".into();
        let mut set = |network: &mut Network, name: &str, up: bool| {
            let at = network.vertex(name).unwrap();
            network.set_switch(at, up);
            let links: Vec<LinkIdx> = network.links_of(at).map(|(index, _)| index).collect();
            states.switch(network, (&name.into(), links.as_slice()), &by, now);
            let line = lines(&mut states).remove(0);
            assert_eq!(line.lost.len(), if up { 0 } else { 2 }, "links that went with it");
            (line.subject, line.down, states.len())
        };
        assert_eq!(set(&mut network, "c0", false), (Subject::Switch { links: 2 }, true, 2));
        assert_eq!(set(&mut network, "e0", false), (Subject::Switch { links: 2 }, true, 4), "one of three was down");
        assert_eq!(set(&mut network, "c0", true), (Subject::Switch { links: 1 }, false, 3));
        states.removed(&"e0--c0".into());
        assert_eq!(states.len(), 2);
        states.whole(None, &by, now);
        assert_eq!(states.len(), 0, "no network, and none of its links");
    }

    #[test]
    fn a_link_that_flaps_has_a_few_lines_and_says_so_in_the_last() {
        let (mut network, mut states, start) = (network(), LinkStates::default(), Instant::now());
        let (link, by): (_, Arc<str>) = (network.link("e0--c0").unwrap(), "ryu".into());
        let mut change = |second: u64| {
            let up = network.link_at(link).up;
            network.set_link(link, Some(!up), None);
            states.link(&network, link, &by, start + Duration::from_secs(second));
            lines(&mut states).pop().map(|line| (line.last, line.left_out))
        };
        let said: Vec<_> = (0..500).map(&mut change).collect();
        assert_eq!(said[..5], [Some((false, 0)), Some((false, 0)), Some((false, 0)), Some((true, 0)), None]);
        assert_eq!(said.iter().flatten().count(), LINES_OF_ONE, "as long as it flaps");
        let quiet = 500 + WINDOW.as_secs();
        assert_eq!(change(quiet), Some((false, 496)));
        assert!(states.of(&"e0--c0".into()).is_some(), "its state is known throughout");
    }

    #[test]
    fn a_link_that_went_down_keeps_what_was_measured_on_it_before() {
        let (mut network, mut states, start) = (network(), LinkStates::default(), Instant::now());
        let (link, by, name): (_, Arc<str>, LinkName) =
            (network.link("e0--c0").unwrap(), "ryu".into(), "e0--c0".into());
        let load = |bits| LinkLoad::steady(BitsPerSec(bits), BitsPerSec(0));
        let later = |seconds| start + Duration::from_secs(seconds);
        [(1, 300), (2, 700)].into_iter().for_each(|(at, bits)| _ = states.note_measured(&name, load(bits), later(at)));
        network.set_link(link, Some(false), None);
        states.link(&network, link, &by, later(3));
        // What comes late, or is told of a link that carries nothing, is not what it carried.
        states.note_measured(&name, load(0), later(4));
        assert_eq!(states.of(&name).unwrap().load, Some((later(2), load(700))));
        assert_eq!(states.measured(&name), Some(later(4)));
        network.set_link(link, Some(true), None);
        states.link(&network, link, &by, later(5));
        assert_eq!(states.last_outage(&name).unwrap().was.load, Some((later(2), load(700))));
    }

    #[test]
    fn a_network_whose_links_all_go_at_once_keeps_no_place_for_what_has_no_line() {
        let host = |at: usize| HostEntry { name: format!("h{at}").as_str().into() };
        let link = |at: usize| LinkEntry {
            id: format!("l{at}").as_str().into(),
            a: format!("h{at}"),
            b: "e0".to_owned(),
            bits_per_s: 1_000,
            up: false,
            one_way: false,
        };
        let document = NetworkDocument {
            format: NETWORK_FORMAT.to_owned(),
            switches: vec![SwitchEntry { name: "e0".to_owned(), tier: Tier::Edge, up: true }],
            hosts: (0..1_000).map(host).collect(),
            links: (0..1_000).map(link).collect(),
            optical: None,
        };
        let network = Network::from_document(&document).unwrap();
        let mut states = LinkStates::default();
        states.whole(Some(&network), &"ryu".into(), Instant::now());
        assert_eq!((states.len(), states.lines.len(), states.left_out), (1_000, LINES, 950));
        let LostLinks { links, lines } = states.take_lost();
        assert_eq!((links.len(), lines.len()), (1_000, LINES));
    }

    #[test]
    fn a_link_keeps_what_it_carried_until_it_is_up_again() {
        let (mut network, mut states, now) = (network(), LinkStates::default(), Instant::now());
        let (link, by): (_, Arc<str>) = (network.link("e0--c0").unwrap(), "ryu".into());
        let name: LinkName = "e0--c0".into();
        let mut turn = |states: &mut LinkStates, up| {
            network.set_link(link, Some(up), None);
            states.link(&network, link, &by, now);
        };
        turn(&mut states, false);
        assert_eq!(states.of(&name).unwrap().carried, None, "nobody has looked yet");
        assert_eq!(states.take_lost().links, std::slice::from_ref(&name));
        states.carried(&name, CarriedRoutes { routes: 3, ..CarriedRoutes::default() });
        assert_eq!(states.of(&name).unwrap().carried.as_ref().unwrap().routes, 3);
        assert_eq!(states.take_lost().links, [], "it is looked at once");
        turn(&mut states, true);
        states.carried(&name, CarriedRoutes::default());
        assert_eq!(states.of(&name), None, "what is told too late is of no link that is down");
        let outage = states.last_outage(&name).unwrap();
        assert_eq!(
            (outage.ended, outage.was.carried.as_ref().unwrap().routes),
            (now, 3),
            "and no longer of its outage"
        );
        turn(&mut states, false);
        turn(&mut states, true);
        assert_eq!(states.take_lost().links, [], "it was back before anybody looked");
    }

    #[test]
    fn the_log_names_a_few_applications_and_counts_the_rest() {
        let application = |id: u32| ApplicationId { cluster_timestamp: 1, sequence: id };
        let some = CarriedRoutes {
            routes: 12,
            applications_total: 5,
            applications: vec![(application(1), 7), (application(2), 3)],
            ..CarriedRoutes::default()
        };
        let all = "; carried 12 routes of 5 applications: application_1_0001, application_1_0002 and 3 more";
        assert_eq!(in_words(&some), all);
        let guess = CarriedRoutes { uncertain: 4, chained: 1, ..CarriedRoutes::default() };
        let said = "; carried 1 route through middleboxes; may have carried 4 routes, of which the network chose the path by itself";
        assert_eq!(in_words(&guess), said);
        assert_eq!(in_words(&CarriedRoutes::default()), "; carried no known route");
    }
}
