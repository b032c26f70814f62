//! Jellyfish: random regular graphs of switches (Singla et al., "Jellyfish: Networking Data Centers Randomly", 2012).

use super::{BuildError, BuiltNetwork, HostPlace, MOST_HOSTS, Rack, digits, fill_racks, join, numbered, positive};
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::BitsPerSec;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A jellyfish: N switches of k ports, r of them to other switches drawn at random, the rest to hosts. All
/// links have one capacity.
///
/// N(k − r) hosts and N·r/2 links between switches; where N·r is odd, one port stays free. No two switches are
/// joined twice, all are connected. [`fmt::Display`] gives the literature's name, `RRG(N,k,r)`.
///
/// # Pruning
/// With `hosts`, the first so many are kept, switch by switch. All switches stay, as any may be on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JellyfishSpec {
    /// N: switches.
    pub switches: usize,
    /// k: ports of each switch.
    pub ports: usize,
    /// r: ports of each switch that lead to other switches.
    pub to_switches: usize,
    /// Hosts kept; `None` keeps all N(k − r).
    #[serde(default)]
    pub hosts: Option<usize>,
    /// Capacity of every link.
    pub bits_per_s: BitsPerSec,
    /// Random seed.
    #[serde(default)]
    pub seed: u64,
}

impl Default for JellyfishSpec {
    /// RRG(20,4,3): 20 hosts, 30 links between switches, all of 1 Gbit/s.
    fn default() -> Self {
        Self { switches: 20, ports: 4, to_switches: 3, hosts: None, bits_per_s: BitsPerSec(1_000_000_000), seed: 0 }
    }
}

impl fmt::Display for JellyfishSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RRG({},{},{})", self.switches, self.ports, self.to_switches)
    }
}

/// Drawn again so often before a graph counts as impossible: sparse ones fall apart, full ones get stuck.
const ATTEMPTS: u64 = 100;

impl JellyfishSpec {
    /// Hosts that will stand, after the checks.
    fn kept_hosts(&self) -> Result<usize, BuildError> {
        let &Self { switches, ports, to_switches, .. } = self;
        positive(&[
            ("switches", switches as u64),
            ("ports", ports as u64),
            ("hosts", self.hosts.unwrap_or(1) as u64),
            ("bits_per_s", self.bits_per_s.0),
        ])?;
        if to_switches > ports {
            return Err(BuildError::TooManyPorts { to_switches, most: ports });
        }
        if to_switches >= switches {
            return Err(BuildError::TooManyPorts { to_switches, most: switches - 1 });
        }
        let whole = switches.saturating_mul(ports - to_switches);
        // Switches without hosts are bounded with them.
        let largest = whole.max(switches);
        if largest > MOST_HOSTS {
            return Err(BuildError::TooManyHosts { hosts: largest, most: MOST_HOSTS });
        }
        match self.hosts {
            Some(hosts) if hosts > whole => Err(BuildError::TooManyHosts { hosts, most: whole }),
            hosts => Ok(hosts.unwrap_or(whole)),
        }
    }
}

/// Builds a jellyfish with hosts `host-0001`, …; switches are `switch-001`, …, all of the edge tier.
///
/// # Errors
/// [`BuildError::Zero`], [`BuildError::TooManyPorts`], [`BuildError::TooManyHosts`]; [`BuildError::NoGraph`] where
/// no connected graph was found.
pub fn jellyfish(spec: &JellyfishSpec) -> Result<BuiltNetwork, BuildError> {
    jellyfish_named(spec, &numbered("host"))
}

/// Builds a jellyfish with hosts named by `name`.
///
/// # Errors
/// As [`jellyfish`]; [`BuildError::Name`] if `name` repeats itself.
pub fn jellyfish_named(spec: &JellyfishSpec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    let hosts = spec.kept_hosts()?;
    let links = draw(spec)?;
    let mut network = Network::new();
    let width = digits(spec.switches).max(3);
    let mut switches = Vec::with_capacity(spec.switches);
    for n in 1..=spec.switches {
        let added = network.add_switch(&format!("switch-{n:0width$}"), Tier::Edge);
        switches.push(added.map_err(BuildError::Name)?);
    }
    let per_switch = spec.ports - spec.to_switches;
    let racks: Vec<Rack> = switches
        .iter()
        .enumerate()
        .map(|(n, &switch)| Rack { switch, pod: None, hosts: hosts.saturating_sub(n * per_switch).min(per_switch) })
        .take_while(|rack| rack.hosts > 0)
        .collect();
    let racks = fill_racks(&mut network, &racks, spec.bits_per_s, name)?;
    for (a, b) in links {
        join(&mut network, switches[a], switches[b], spec.bits_per_s)?;
    }
    Ok(BuiltNetwork { network, racks })
}

/// The links of the first connected graph that an attempt gives, in order, lower end first.
fn draw(spec: &JellyfishSpec) -> Result<BTreeSet<(usize, usize)>, BuildError> {
    for attempt in 0..ATTEMPTS {
        let mut random = ChaCha8Rng::seed_from_u64(spec.seed);
        random.set_stream(attempt);
        if let Some(drawn) = Drawn::new(spec.switches, spec.to_switches).complete(&mut random)
            && drawn.is_connected()
        {
            return Ok(drawn.links.into_iter().collect());
        }
    }
    Err(BuildError::NoGraph { switches: spec.switches, degree: spec.to_switches })
}

/// A graph that is being drawn.
struct Drawn {
    neighbours: Vec<BTreeSet<usize>>,
    /// Lower end first, in no order: one is drawn by position.
    links: Vec<(usize, usize)>,
    /// Switches with free ports.
    open: Vec<usize>,
    degree: usize,
}

impl Drawn {
    fn new(switches: usize, degree: usize) -> Self {
        let open = if degree == 0 { Vec::new() } else { (0..switches).collect() };
        Self { neighbours: vec![BTreeSet::new(); switches], links: Vec::new(), open, degree }
    }

    /// The paper's construction (§3): joins random switches with free ports; when all of those are neighbours
    /// already, a switch with two free ports takes the place of a random link between two others. Two switches
    /// with one free port each, neighbours already, do the same together. `None` if no link gives way.
    fn complete(mut self, random: &mut ChaCha8Rng) -> Option<Self> {
        loop {
            if let Some((a, b)) = self.open_pair(random) {
                self.join(a, b);
                continue;
            }
            let two_free = self.open.iter().copied().find(|&switch| self.free(switch) >= 2);
            let (first, second) = match (two_free, self.open.as_slice()) {
                (Some(switch), _) => (switch, switch),
                (None, &[first, second, ..]) => (first, second),
                (None, _) => return Some(self),
            };
            self.break_in(first, second, random)?;
        }
    }

    fn free(&self, switch: usize) -> usize {
        self.degree - self.neighbours[switch].len()
    }

    fn may_join(&self, a: usize, b: usize) -> bool {
        a != b && !self.neighbours[a].contains(&b)
    }

    fn open_pair(&self, random: &mut ChaCha8Rng) -> Option<(usize, usize)> {
        let count = self.open.len();
        if count < 2 {
            return None;
        }
        for _ in 0..32 {
            let (a, b) = (self.open[random.random_range(0..count)], self.open[random.random_range(0..count)]);
            if self.may_join(a, b) {
                return Some((a, b));
            }
        }
        // Few are left: one of all that fit.
        let all = self.open.iter().enumerate().flat_map(|(n, &a)| self.open[..n].iter().map(move |&b| (a, b)));
        let fitting: Vec<_> = all.filter(|&(a, b)| self.may_join(a, b)).collect();
        if fitting.is_empty() { None } else { Some(fitting[random.random_range(0..fitting.len())]) }
    }

    /// Replaces a random link (x, y) by (first, x) and (second, y).
    fn break_in(&mut self, first: usize, second: usize, random: &mut ChaCha8Rng) -> Option<()> {
        let ways = self.links.iter().enumerate().flat_map(|(at, &(x, y))| [(at, x, y), (at, y, x)]);
        let apart = |x, y| first != y && second != x && self.may_join(first, x) && self.may_join(second, y);
        let fitting: Vec<_> = ways.filter(|&(_, x, y)| apart(x, y)).collect();
        if fitting.is_empty() {
            return None;
        }
        let (at, x, y) = fitting[random.random_range(0..fitting.len())];
        self.links.swap_remove(at);
        self.neighbours[x].remove(&y);
        self.neighbours[y].remove(&x);
        self.join(first, x);
        self.join(second, y);
        Some(())
    }

    fn join(&mut self, a: usize, b: usize) {
        self.links.push((a.min(b), a.max(b)));
        self.neighbours[a].insert(b);
        self.neighbours[b].insert(a);
        for end in [a, b] {
            if self.free(end) == 0
                && let Some(at) = self.open.iter().position(|&open| open == end)
            {
                self.open.swap_remove(at);
            }
        }
    }

    fn is_connected(&self) -> bool {
        let mut seen = BTreeSet::from([0]);
        let mut stack = vec![0];
        while let Some(switch) = stack.pop() {
            stack.extend(self.neighbours[switch].iter().filter(|&&near| seen.insert(near)));
        }
        seen.len() == self.neighbours.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{check, summary};
    use proptest::prelude::*;

    fn spec(switches: usize, ports: usize, to_switches: usize) -> JellyfishSpec {
        JellyfishSpec { switches, ports, to_switches, ..JellyfishSpec::default() }
    }

    #[test]
    fn counts_are_those_of_the_papers() {
        for (switches, ports, to_switches) in [(20, 4, 3), (200, 15, 10), (245, 14, 11)] {
            let spec = spec(switches, ports, to_switches);
            let built = jellyfish(&spec).unwrap();
            let numbers = summary(&built.network);
            let hosts = switches * (ports - to_switches);
            assert_eq!((numbers.hosts, numbers.switches), (hosts, switches), "{spec}");
            assert_eq!(numbers.links, hosts + switches * to_switches / 2, "{spec}");
            assert_eq!(check(&built.network), [], "{spec}");
        }
        assert_eq!(spec(200, 15, 10).to_string(), "RRG(200,15,10)");
    }

    #[test]
    fn seeds_draw_graphs_and_one_seed_one_graph() {
        let built =
            |seed| jellyfish(&JellyfishSpec { seed, ..JellyfishSpec::default() }).unwrap().network.to_document();
        assert_eq!(built(1), built(1));
        assert_ne!(built(1), built(2));
    }

    #[test]
    fn pruning_keeps_the_first_hosts_and_every_switch() {
        let built = jellyfish(&JellyfishSpec { hosts: Some(8), ..spec(6, 6, 3) }).unwrap();
        assert_eq!((built.network.hosts(), built.network.switches()), (8, 6));
        let by_rack: Vec<usize> = built.racks.iter().map(|(_, hosts)| hosts.len()).collect();
        assert_eq!(by_rack, [3, 3, 2]);
        assert_eq!(check(&built.network), []);
    }

    #[test]
    fn a_full_graph_and_a_single_switch_are_graphs_too() {
        assert_eq!(jellyfish(&spec(5, 5, 4)).unwrap().network.links().count(), 5 + 10);
        assert_eq!(jellyfish(&spec(1, 4, 0)).unwrap().network.hosts(), 4);
        assert_eq!(jellyfish(&spec(2, 2, 1)).unwrap().network.links().count(), 2 + 1);
    }

    #[test]
    fn impossible_jellyfish_are_refused() {
        let refused = |spec: &JellyfishSpec| jellyfish(spec).unwrap_err();
        assert_eq!(refused(&spec(0, 4, 3)), BuildError::Zero { field: "switches" });
        assert_eq!(refused(&spec(9, 4, 5)), BuildError::TooManyPorts { to_switches: 5, most: 4 });
        assert_eq!(refused(&spec(3, 4, 3)), BuildError::TooManyPorts { to_switches: 3, most: 2 });
        assert_eq!(refused(&spec(8, 4, 1)), BuildError::NoGraph { switches: 8, degree: 1 });
        assert_eq!(refused(&spec(8, 4, 0)), BuildError::NoGraph { switches: 8, degree: 0 });
        let hosts = Some(21);
        let error = refused(&JellyfishSpec { hosts, ..JellyfishSpec::default() });
        assert_eq!(error, BuildError::TooManyHosts { hosts: 21, most: 20 });
        assert!(matches!(refused(&spec(usize::MAX, 4, 3)), BuildError::TooManyHosts { .. }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_switch_has_its_links_and_no_neighbour_twice(
            switches in 4_usize..40, degree in 3_usize..8, seed in any::<u64>(),
        ) {
            let degree = degree.min(switches - 1);
            let drawn = draw(&JellyfishSpec { seed, ..spec(switches, degree + 1, degree) }).unwrap();
            prop_assert_eq!(drawn.len(), switches * degree / 2);
            let mut degrees = vec![0; switches];
            for (a, b) in drawn {
                prop_assert!(a < b);
                degrees[a] += 1;
                degrees[b] += 1;
            }
            let short: usize = degrees.iter().map(|&of_switch| degree - of_switch).sum();
            prop_assert_eq!(short, switches * degree % 2, "at most one port is free");
        }
    }
}
