//! What is known of the network behind a controller: the last good state, from polls and events.
//!
//! # Invariants
//! - What was seen once stays known: a link or switch that is gone is down, not forgotten, so that jobs on it get new
//!   routes and old ones when it returns. A port that gets another peer loses its old link.
//! - A deletion counts only after [`Settings::debounce`] without its contrary: Ryu sends spurious pairs.
//! - An event that came after a poll was begun wins over it.
//! - While the controller has trouble, and for [`Settings::settle`] after, nothing is taken down by what it does not
//!   name: a controller that starts anew knows nothing at first.

use super::model::{Dpid, Event, HostSeen, Mac, PortAt, PortSeen};
use super::ryu::BadAnswer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Times that an inventory keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a deletion waits for its contrary.
    pub debounce: Duration,
    /// How long after trouble absence means nothing; how old a port is before broadcasts go to it.
    pub settle: Duration,
}

/// A whole picture, as polled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Poll {
    /// Connected switches.
    pub switches: BTreeSet<Dpid>,
    /// Directed links.
    pub links: BTreeSet<(PortAt, PortAt)>,
    /// Hosts.
    pub hosts: Vec<HostSeen>,
    /// Ports by switch; a switch that is missing was not asked or did not answer.
    pub ports: BTreeMap<Dpid, Vec<PortSeen>>,
}

/// Something that is up, down, or about to be down.
#[derive(Debug, Clone, Copy)]
struct Health {
    up: bool,
    /// Since when it is reported gone.
    leaving: Option<Duration>,
    /// The last event about it.
    heard: Duration,
}

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Neither switched off nor without carrier.
    pub up: bool,
    /// Speed, bits a second; 0: not told.
    pub bits_per_s: u64,
    /// When it was first seen up, without having been down since.
    since: Duration,
}

/// A link between two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cable {
    /// The lesser port.
    pub a: PortAt,
    /// The other.
    pub b: PortAt,
    /// Whether both directions are there.
    pub up: bool,
}

/// The last good state.
#[derive(Debug, Clone)]
pub struct Inventory {
    settings: Settings,
    switches: BTreeMap<Dpid, Health>,
    ports: BTreeMap<PortAt, Port>,
    directions: BTreeMap<(PortAt, PortAt), Health>,
    hosts: BTreeMap<Mac, HostSeen>,
    /// Until then absence means nothing.
    lenient_until: Duration,
}

impl Inventory {
    /// Nothing known.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            switches: BTreeMap::new(),
            ports: BTreeMap::new(),
            directions: BTreeMap::new(),
            hosts: BTreeMap::new(),
            lenient_until: Duration::ZERO,
        }
    }

    /// Takes in a poll that was begun at `begun`.
    ///
    /// # Errors
    /// [`BadAnswer::Empty`] from a controller that lost all its switches at once: that is its trouble, not the
    /// network's. Nothing changes then.
    pub fn poll(&mut self, poll: &Poll, begun: Duration, now: Duration) -> Result<(), BadAnswer> {
        let up = self.switches.values().filter(|health| health.up).count();
        if poll.switches.is_empty() && up > 0 {
            return Err(BadAnswer::Empty(up));
        }
        let strict = now >= self.lenient_until;
        for &switch in &poll.switches {
            self.switches.entry(switch).or_insert(Health { up: true, leaving: None, heard: begun });
        }
        for (switch, health) in &mut self.switches {
            health.polled(poll.switches.contains(switch), strict, begun, now);
        }
        for &link in &poll.links {
            self.direction(link, begun);
        }
        for (link, health) in &mut self.directions {
            health.polled(poll.links.contains(link), strict, begun, now);
        }
        for (&switch, ports) in &poll.ports {
            for seen in ports {
                let at = PortAt { switch, port: seen.port };
                let since = self.ports.get(&at).filter(|known| known.up && seen.up).map_or(now, |known| known.since);
                self.ports.insert(at, Port { up: seen.up, bits_per_s: seen.kbit_per_s.saturating_mul(1_000), since });
            }
        }
        for host in &poll.hosts {
            self.host(host.clone());
        }
        Ok(())
    }

    /// Takes in an event; returns whether anything is up again by it at once.
    pub fn event(&mut self, event: &Event, now: Duration) -> bool {
        match event {
            Event::LinkAdd(from, to) => {
                let known = self.directions.contains_key(&(*from, *to));
                self.direction((*from, *to), now);
                self.directions.get_mut(&(*from, *to)).is_some_and(|health| health.arrive(now)) || !known
            }
            Event::LinkDelete(from, to) => {
                if let Some(health) = self.directions.get_mut(&(*from, *to)) {
                    health.leave(now);
                }
                false
            }
            Event::SwitchEnter(switch) => {
                let fresh = Health { up: false, leaving: None, heard: now };
                self.switches.entry(*switch).or_insert(fresh).arrive(now)
            }
            Event::SwitchLeave(switch) => {
                if let Some(health) = self.switches.get_mut(switch) {
                    health.leave(now);
                }
                false
            }
            Event::HostAdd(host) => self.host(host.clone()),
            Event::Other(_) => false,
        }
    }

    /// The controller does not answer, or answers nonsense: what it reported gone and did not wait out its time stays.
    pub fn trouble(&mut self, now: Duration) {
        self.lenient_until = now + self.settings.settle;
        for health in self.directions.values_mut().chain(self.switches.values_mut()) {
            health.leaving = None;
        }
    }

    /// Takes down what has been gone for long enough; returns whether that changed anything.
    pub fn tick(&mut self, now: Duration) -> bool {
        let debounce = self.settings.debounce;
        // A controller on its way out closes every connection; the network would not lose all switches in one moment.
        let leaving = |health: &Health| health.up && health.leaving.is_some();
        let staying = self.switches.values().filter(|health| health.up && health.leaving.is_none()).count();
        if staying == 0 && self.switches.values().any(leaving) && self.switches.len() > 1 {
            self.trouble(now);
            return false;
        }
        let mut changed = false;
        for health in self.directions.values_mut().chain(self.switches.values_mut()) {
            if health.leaving.is_some_and(|since| now >= since + debounce) {
                (health.leaving, changed) = (None, changed | health.up);
                health.up = false;
            }
        }
        changed
    }

    /// When [`Inventory::tick`] has something to do.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let all = self.directions.values().chain(self.switches.values());
        all.filter_map(|health| health.leaving).min().map(|since| since + self.settings.debounce)
    }

    /// Switches ever seen, and whether they are connected.
    pub fn switches(&self) -> impl Iterator<Item = (Dpid, bool)> {
        self.switches.iter().map(|(switch, health)| (*switch, health.up))
    }

    /// Whether a switch is connected.
    #[must_use]
    pub fn connected(&self, switch: Dpid) -> bool {
        self.switches.get(&switch).is_some_and(|health| health.up)
    }

    /// Links between switches that were seen in both directions.
    pub fn cables(&self) -> impl Iterator<Item = Cable> {
        self.directions.iter().filter(|((from, to), _)| from < to).filter_map(|(&(from, to), there)| {
            let back = self.directions.get(&(to, from))?;
            Some(Cable { a: from, b: to, up: there.up && back.up })
        })
    }

    /// Links of which only one direction was ever seen.
    #[must_use]
    pub fn one_way(&self) -> usize {
        self.directions.keys().filter(|(from, to)| !self.directions.contains_key(&(*to, *from))).count()
    }

    /// Hosts, at ports that no link ends at: before links are found, hosts seem to be where their packets passed.
    pub fn hosts(&self) -> impl Iterator<Item = &HostSeen> {
        let ends: BTreeSet<PortAt> = self.directions.keys().flat_map(|(from, to)| [*from, *to]).collect();
        self.hosts.values().filter(move |host| !ends.contains(&host.at))
    }

    /// A port, if the controller described it.
    #[must_use]
    pub fn port(&self, at: PortAt) -> Option<&Port> {
        self.ports.get(&at)
    }

    /// Ports of hosts or of nobody yet: up for long enough that a link behind them would have been found.
    #[must_use]
    pub fn open_ports(&self, now: Duration) -> BTreeSet<PortAt> {
        let mut open: BTreeSet<PortAt> = self
            .ports
            .iter()
            .filter(|(_, port)| port.up && now >= port.since + self.settings.settle)
            .map(|(at, _)| *at)
            .collect();
        open.extend(self.hosts.values().map(|host| host.at));
        for (from, to) in self.directions.keys() {
            open.remove(from);
            open.remove(to);
        }
        open
    }

    /// Notes a directed link; its ports have no other peer from now on.
    fn direction(&mut self, link: (PortAt, PortAt), heard: Duration) {
        if self.directions.contains_key(&link) {
            return;
        }
        let (from, to) = link;
        self.directions.retain(|&(a, b), _| {
            let same = (a, b) == (to, from);
            same || ![a, b].iter().any(|end| *end == from || *end == to)
        });
        self.directions.insert(link, Health { up: true, leaving: None, heard });
    }

    fn host(&mut self, mut host: HostSeen) -> bool {
        if let Some(known) = self.hosts.get(&host.mac) {
            // What is heard by an ARP probe has no address yet.
            if host.addresses.is_empty() {
                host.addresses.clone_from(&known.addresses);
            }
            if *known == host {
                return false;
            }
        }
        self.hosts.insert(host.mac, host);
        true
    }
}

impl Health {
    fn polled(&mut self, there: bool, strict: bool, begun: Duration, now: Duration) {
        if self.heard > begun {
            return;
        }
        if there {
            (self.up, self.leaving) = (true, None);
        } else if self.up && strict {
            self.leaving.get_or_insert(now);
        }
    }

    fn arrive(&mut self, now: Duration) -> bool {
        let changed = !self.up;
        *self = Self { up: true, leaving: None, heard: now };
        changed
    }

    fn leave(&mut self, now: Duration) {
        self.heard = now;
        if self.up {
            self.leaving.get_or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests;
