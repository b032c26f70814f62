//! Shortest paths over usable links, and the index that keeps watched pairs on one.

use super::graph::Network;
use crate::units::{LinkIdx, VertexIdx};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A path without loops: the vertices in order and the links between them, one fewer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// From the first end to the last.
    pub vertices: Vec<VertexIdx>,
    /// `links[i]` joins `vertices[i]` and `vertices[i + 1]`.
    pub links: Vec<LinkIdx>,
}

impl Path {
    /// Whether every link of it is usable.
    #[must_use]
    pub fn is_whole(&self, network: &Network) -> bool {
        self.links.iter().all(|&link| network.is_usable(link))
    }
}

/// Two vertices whose path is watched; direction matters, as equal-cost paths may differ by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Where traffic starts.
    pub from: VertexIdx,
    /// Where it ends.
    pub to: VertexIdx,
}

/// [`shortest_path_seeded`] with seed 0.
#[must_use]
pub fn shortest_path(network: &Network, from: VertexIdx, to: VertexIdx) -> Option<Path> {
    shortest_path_seeded(network, from, to, 0)
}

/// A path of fewest hops over usable links; hosts other than the ends are never passed. Of equal ones each step
/// takes the link with the least hash of (seed, pair, link), so that pairs spread over them and the same call
/// gives the same path. `None` if there is none, also from a switch that is down to itself.
#[must_use]
pub fn shortest_path_seeded(network: &Network, from: VertexIdx, to: VertexIdx, seed: u64) -> Option<Path> {
    let (labels, _) = hops_to(network, to, &BTreeSet::from([from]));
    descend(network, &labels, Pair { from, to }, seed)
}

/// Hops from each vertex to `to`, `u32::MAX` where unknown. Stops when all of `sources` are known, and all that
/// is nearer then is known as well. And its steps: vertices and links that were looked at.
fn hops_to(network: &Network, to: VertexIdx, sources: &BTreeSet<VertexIdx>) -> (Vec<u32>, u64) {
    let mut steps = 0;
    let mut labels = vec![u32::MAX; network.vertex_rows()];
    let mut queue = VecDeque::new();
    let mut missing = sources.len();
    if network.switch_up(to) {
        labels[to.at()] = 0;
        queue.push_back(to);
        missing -= usize::from(sources.contains(&to));
    }
    while let Some(near) = queue.pop_front() {
        if missing == 0 {
            break;
        }
        steps += 1;
        for (_, far) in network.usable_hops(near) {
            steps += 1;
            if labels[far.at()] != u32::MAX {
                continue;
            }
            let host = network.vertex_at(far).is_host();
            if host && !sources.contains(&far) {
                continue;
            }
            labels[far.at()] = labels[near.at()] + 1;
            missing -= usize::from(sources.contains(&far));
            if !host {
                queue.push_back(far);
            }
        }
    }
    (labels, steps)
}

/// Walks down the labels from `pair.from`.
fn descend(network: &Network, labels: &[u32], pair: Pair, seed: u64) -> Option<Path> {
    let mut left = labels[pair.from.at()];
    if left == u32::MAX {
        return None;
    }
    let key = mix(mix(seed) ^ (u64::from(pair.from.0) << 32 | u64::from(pair.to.0)));
    let mut path = Path { vertices: vec![pair.from], links: Vec::new() };
    let mut here = pair.from;
    while here != pair.to {
        left -= 1;
        let passable = |far: VertexIdx| far == pair.to || !network.vertex_at(far).is_host();
        let nearer = network.usable_hops(here).filter(|&(_, far)| labels[far.at()] == left && passable(far));
        let (link, far) = nearer
            .min_by_key(|&(link, _)| (mix(key ^ u64::from(link.0)), link))
            .expect("a vertex that many hops away has a neighbour one hop nearer");
        path.links.push(link);
        path.vertices.push(far);
        here = far;
    }
    Some(path)
}

/// Paths of pairs that end at the same vertex, of as many as the steps that are left allow, in their order; at least of one.
fn search(
    network: &Network,
    (to, pairs): (VertexIdx, &[Pair]),
    seed: u64,
    left: &mut Left<'_>,
) -> Vec<(Pair, Option<Path>)> {
    let (labels, steps) = hops_to(network, to, &pairs.iter().map(|pair| pair.from).collect());
    left.take(steps + labels.len() as u64);
    let mut found = Vec::new();
    for &pair in pairs {
        let path = descend(network, &labels, pair, seed);
        let links = path.as_ref().map_or(0, |path| path.links.len());
        let looked = path.iter().flat_map(|path| &path.vertices).map(|&at| 1 + network.links_of(at).count() as u64);
        left.take(looked.sum());
        let fits = links <= left.hops;
        left.hops -= if fits { links } else { 0 };
        found.push((pair, path.filter(|_| fits)));
        if *left.steps == 0 {
            break;
        }
    }
    found
}

/// Finaliser of SplitMix64: every bit of the result hangs on every bit given.
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Watched pairs with their paths, and which pairs each link carries.
///
/// # Rules
/// - A pair's *home* is the first path it had. A change that breaks a pair's path gives it its home, if that is
///   whole, else a shortest path of what is left; a pair away from home returns when its home is whole again.
/// - A pair without a path is tried again whenever a link becomes usable.
/// - Nothing else moves: a link that comes up draws no pair from a path that works, even if it shortens the way.
/// - Where the steps that are allowed do not suffice, pairs are [due](Self::is_due) and have no path until
///   [`go_on`](Self::go_on) comes to them. Beyond [`Self::HOPS_MAX`] pairs have none.
#[derive(Debug, Clone)]
pub struct PathIndex {
    seed: u64,
    pairs: BTreeMap<Pair, Watched>,
    /// Pairs whose path, now or at home, has the link.
    by_link: BTreeMap<LinkIdx, BTreeSet<Pair>>,
    without_path: BTreeSet<Pair>,
    /// Those of them that are still to be looked at: end, then start.
    due: BTreeSet<(VertexIdx, VertexIdx)>,
    /// Links of all paths and homes.
    hops: usize,
    most_hops: usize,
    /// Steps of all searches so far.
    taken: u64,
}

/// Steps and links that are left.
struct Left<'a> {
    steps: &'a mut u64,
    hops: usize,
    /// And those that were taken.
    taken: u64,
}

impl Left<'_> {
    fn take(&mut self, steps: u64) {
        *self.steps = self.steps.saturating_sub(steps);
        self.taken += steps;
    }
}

#[derive(Debug, Clone)]
struct Watched {
    now: Option<Path>,
    /// Only while it differs from `now`.
    home: Option<Path>,
}

/// What a change of the network did to the watched pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChanges {
    /// Pairs whose path is another now, or gone; by pair.
    pub changed: Vec<(Pair, Option<Path>)>,
    /// Pairs for which a path was looked for, changed or not.
    pub recomputed: usize,
    /// Pairs that nothing was computed for.
    pub untouched: usize,
}

impl PathIndex {
    /// An index without pairs; `seed` breaks ties as in [`shortest_path_seeded`].
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            pairs: BTreeMap::new(),
            by_link: BTreeMap::new(),
            without_path: BTreeSet::new(),
            due: BTreeSet::new(),
            hops: 0,
            most_hops: Self::HOPS_MAX,
            taken: 0,
        }
    }

    /// Links of all paths and homes together, so that long paths of many pairs do not fill the memory.
    pub const HOPS_MAX: usize = 1 << 24;

    /// The same index with another bound than [`Self::HOPS_MAX`].
    #[must_use]
    pub const fn with_most_hops(mut self, most: usize) -> Self {
        self.most_hops = most;
        self
    }

    /// Watches a pair and gives its path. A pair watched already keeps the one it has.
    pub fn insert(&mut self, network: &Network, pair: Pair) -> Option<&Path> {
        if !self.pairs.contains_key(&pair) {
            let now = shortest_path_seeded(network, pair.from, pair.to, self.seed);
            self.pairs.insert(pair, Watched { now, home: None });
            self.list(pair);
        }
        self.path(pair)
    }

    /// Watches a pair whose path [`Self::go_on`] looks for.
    pub fn insert_later(&mut self, pair: Pair) {
        let Entry::Vacant(free) = self.pairs.entry(pair) else { return };
        free.insert(Watched { now: None, home: None });
        self.list(pair);
        self.due.insert((pair.to, pair.from));
    }

    /// Steps of all searches of [`Self::go_on`] and [`Self::on_change`] so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.taken
    }

    /// Whether pairs are still to be looked at.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Looks for paths of pairs that are due, those of one end together, until `steps` are used up; at least for one. A step
    /// is a vertex or a link that is looked at. Pairs that have a path now.
    pub fn go_on(&mut self, network: &Network, steps: &mut u64) -> Vec<Pair> {
        let mut changed = Vec::new();
        while let Some(&(to, _)) = self.due.first() {
            let of_end = self.due.range((to, VertexIdx(0))..).take_while(|(end, _)| *end == to);
            let pairs: Vec<Pair> = of_end.map(|&(to, from)| Pair { from, to }).collect();
            let mut left = Left { steps, hops: self.most_hops.saturating_sub(self.hops), taken: 0 };
            let found = search(network, (to, &pairs), self.seed, &mut left);
            self.taken += left.taken;
            for (pair, path) in found {
                self.due.remove(&(to, pair.from));
                if path.is_some() {
                    self.replace(pair, path);
                    changed.push(pair);
                }
            }
            if *steps == 0 {
                break;
            }
        }
        changed
    }

    /// Ends watching a pair; whether it was watched.
    pub fn remove(&mut self, pair: Pair) -> bool {
        self.unlist(pair);
        self.due.remove(&(pair.to, pair.from));
        self.pairs.remove(&pair).is_some()
    }

    /// The path of a watched pair; `None` if it has none or is not watched.
    #[must_use]
    pub fn path(&self, pair: Pair) -> Option<&Path> {
        self.pairs.get(&pair)?.now.as_ref()
    }

    /// Watched pairs with their paths, by pair.
    pub fn iter(&self) -> impl Iterator<Item = (Pair, Option<&Path>)> {
        self.pairs.iter().map(|(&pair, watched)| (pair, watched.now.as_ref()))
    }

    /// Number of watched pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether no pair is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Pairs whose path has the link now.
    pub fn pairs_on(&self, link: LinkIdx) -> impl Iterator<Item = Pair> {
        let listed = self.by_link.get(&link).into_iter().flatten().copied();
        listed.filter(move |pair| self.path(*pair).is_some_and(|path| path.links.contains(&link)))
    }

    /// Follows a change: `changed` are the links whose use may have changed, which for a switch are all of its
    /// links. Looks only at pairs on those links and, if one of them is usable, at pairs without a path.
    pub fn on_change(&mut self, network: &Network, changed: &[LinkIdx]) -> PathChanges {
        self.on_change_within(network, changed, &mut u64::MAX.clone())
    }

    /// The same with so many steps: pairs that nobody comes to are due, and have no path until then.
    pub fn on_change_within(&mut self, network: &Network, changed: &[LinkIdx], steps: &mut u64) -> PathChanges {
        let mut hit: BTreeSet<Pair> =
            changed.iter().filter_map(|link| self.by_link.get(link)).flatten().copied().collect();
        if changed.iter().any(|&link| network.is_usable(link)) {
            hit.extend(&self.without_path);
        }
        let (mut changes, mut searched) = (BTreeMap::new(), BTreeMap::<VertexIdx, Vec<Pair>>::new());
        for pair in hit {
            let watched = &self.pairs[&pair];
            if let Some(home) = watched.home.as_ref().filter(|home| home.is_whole(network)) {
                self.due.remove(&(pair.to, pair.from));
                changes.insert(pair, Some(home.clone()));
            } else if !watched.now.as_ref().is_some_and(|path| path.is_whole(network)) {
                searched.entry(pair.to).or_default().push(pair);
            }
        }
        let recomputed = searched.values().map(Vec::len).sum();
        let mut left = Left { steps, hops: self.most_hops.saturating_sub(self.hops), taken: 0 };
        for (to, pairs) in searched {
            for pair in &pairs {
                self.due.insert((to, pair.from));
                changes.insert(*pair, None);
            }
            let found = if *left.steps == 0 { Vec::new() } else { search(network, (to, &pairs), self.seed, &mut left) };
            for (pair, path) in found {
                self.due.remove(&(to, pair.from));
                changes.insert(pair, path);
            }
        }
        self.taken += left.taken;
        let returned = changes.len() - recomputed;
        changes.retain(|&pair, path| self.pairs[&pair].now != *path);
        for (pair, path) in &changes {
            self.replace(*pair, path.clone());
        }
        let untouched = self.pairs.len() - recomputed - returned;
        PathChanges { changed: changes.into_iter().collect(), recomputed, untouched }
    }

    fn replace(&mut self, pair: Pair, path: Option<Path>) {
        self.unlist(pair);
        let watched = self.pairs.get_mut(&pair).expect("only watched pairs are replaced");
        let before = std::mem::replace(&mut watched.now, path);
        let home = watched.home.take().or(before);
        watched.home = home.filter(|home| watched.now.as_ref() != Some(home));
        self.list(pair);
    }

    fn list(&mut self, pair: Pair) {
        let watched = &self.pairs[&pair];
        for &link in watched.now.iter().chain(&watched.home).flat_map(|path| &path.links) {
            self.hops += 1;
            self.by_link.entry(link).or_default().insert(pair);
        }
        if watched.now.is_none() {
            self.without_path.insert(pair);
        }
    }

    fn unlist(&mut self, pair: Pair) {
        let Some(watched) = self.pairs.get(&pair) else { return };
        for link in watched.now.iter().chain(&watched.home).flat_map(|path| &path.links) {
            self.hops -= 1;
            if let Some(pairs) = self.by_link.get_mut(link) {
                pairs.remove(&pair);
                if pairs.is_empty() {
                    self.by_link.remove(link);
                }
            }
        }
        self.without_path.remove(&pair);
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, FatTreeSpec, TreeSpec};
    use super::super::testing::{CAPACITY, hop_counts, random_network};
    use super::super::tier::Tier;
    use super::*;
    use proptest::prelude::*;

    fn pair(network: &Network, from: &str, to: &str) -> Pair {
        Pair { from: network.vertex(from).unwrap(), to: network.vertex(to).unwrap() }
    }

    fn fat_tree() -> Network {
        build::fat_tree(&FatTreeSpec::default()).unwrap().network
    }

    /// An index of all ordered pairs of hosts.
    fn watch_all(network: &Network) -> PathIndex {
        let hosts: Vec<_> = network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(index, _)| index).collect();
        let mut index = PathIndex::new(7);
        for &from in &hosts {
            for &to in hosts.iter().filter(|&&to| to != from) {
                index.insert(network, Pair { from, to });
            }
        }
        index
    }

    #[test]
    fn a_path_to_itself_has_no_links_and_a_lost_switch_has_no_path() {
        let mut network = fat_tree();
        let edge = network.vertex("edge-1-1").unwrap();
        let here = shortest_path(&network, edge, edge);
        assert_eq!(here, Some(Path { vertices: vec![edge], links: vec![] }));
        network.set_switch(edge, false);
        assert_eq!(shortest_path(&network, edge, edge), None);
        let pair = pair(&network, "host-0001", "host-0016");
        assert_eq!(shortest_path(&network, pair.from, pair.to), None);
    }

    #[test]
    fn equal_paths_are_spread_over_pairs_and_repeat_for_each() {
        let network = fat_tree();
        let mut by_core = BTreeMap::<VertexIdx, usize>::new();
        for (from, to) in (1..=8).flat_map(|a| (9..=16).map(move |b| (a, b))) {
            let pair = pair(&network, &format!("host-{from:04}"), &format!("host-{to:04}"));
            let path = shortest_path_seeded(&network, pair.from, pair.to, 1).unwrap();
            assert_eq!(Some(&path), shortest_path_seeded(&network, pair.from, pair.to, 1).as_ref());
            *by_core.entry(path.vertices[3]).or_default() += 1;
        }
        assert_eq!(by_core.len(), 4, "every core is used");
        assert!(by_core.values().all(|&pairs| (6..=28).contains(&pairs)), "16 of 64 each, give or take: {by_core:?}");
        let ends = pair(&network, "host-0001", "host-0016");
        let seeds: BTreeSet<_> =
            (0..32).map(|seed| shortest_path_seeded(&network, ends.from, ends.to, seed).unwrap().links).collect();
        assert_eq!(seeds.len(), 4, "seeds reach all four equal paths");
    }

    #[test]
    fn a_failed_link_moves_only_its_pairs_and_they_return_with_it() {
        let mut network = fat_tree();
        let mut index = watch_all(&network);
        let before = index.clone();
        let link = network.link("agg-1-1--core-1").unwrap();
        let on_it: BTreeSet<Pair> = index.pairs_on(link).collect();
        assert!(!on_it.is_empty() && on_it.len() < index.len() / 2);

        network.set_link(link, Some(false), None);
        let failed = index.on_change(&network, &[link]);
        assert_eq!(failed.changed.iter().map(|(pair, _)| *pair).collect::<BTreeSet<_>>(), on_it);
        assert!(failed.changed.iter().all(|(_, path)| path.as_ref().is_some_and(|path| path.is_whole(&network))));
        assert_eq!((failed.recomputed, failed.untouched), (on_it.len(), index.len() - on_it.len()));
        assert_eq!(index.pairs_on(link).count(), 0);

        network.set_link(link, Some(true), None);
        let healed = index.on_change(&network, &[link]);
        assert_eq!((healed.changed.len(), healed.recomputed), (on_it.len(), 0));
        assert!(index.iter().eq(before.iter()), "all is as it was");
        assert_eq!(index.by_link, before.by_link);
    }

    #[test]
    fn a_pair_without_a_path_gets_one_when_a_link_comes_up() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        let access = network.link("host-0001--edge-01").unwrap();
        let watched = pair(&network, "host-0001", "host-0008");
        let mut index = PathIndex::new(0);
        network.set_link(access, Some(false), None);
        assert_eq!(index.insert(&network, watched), None);
        let other = network.link("edge-04--core-1").unwrap();
        let nothing = index.on_change(&network, &[other]);
        assert_eq!((nothing.changed.len(), nothing.recomputed, nothing.untouched), (0, 1, 0));
        network.set_link(access, Some(true), None);
        assert_eq!(index.on_change(&network, &[access]).changed.len(), 1);
        assert!(index.path(watched).is_some());
        assert!(index.remove(watched) && !index.remove(watched));
        assert!(index.is_empty() && index.by_link.is_empty());
    }

    #[test]
    fn paths_are_looked_for_a_bounded_number_of_steps_at_a_time_and_are_the_same_in_the_end() {
        let mut network = fat_tree();
        let whole = watch_all(&network);
        let mut index = PathIndex::new(7);
        whole.iter().for_each(|(pair, _)| index.insert_later(pair));
        assert!(index.is_due() && index.iter().all(|(_, path)| path.is_none()));
        // One search and the look at one path of it, at most: beyond what is allowed.
        let most =
            |network: &Network, allowed: u64| allowed + (network.vertex_rows() * 2 + network.link_rows() * 4) as u64;
        let mut goes = 0;
        while index.is_due() {
            let (before, mut left) = (index.steps(), 200);
            assert!(!index.go_on(&network, &mut left).is_empty());
            assert!(index.steps() - before <= most(&network, 200), "{}", index.steps() - before);
            goes += 1;
        }
        assert!(goes > 5 && index.iter().eq(whole.iter()) && index.by_link == whole.by_link, "{goes} goes");

        let link = network.link("agg-1-1--core-1").unwrap();
        network.set_link(link, Some(false), None);
        let mut left = 50;
        let told = index.on_change_within(&network, &[link], &mut left);
        assert!(index.is_due() && told.changed.iter().any(|(_, path)| path.is_none()), "some have none yet");
        while index.is_due() {
            index.go_on(&network, &mut 50);
        }
        let mut at_once = whole;
        at_once.on_change(&network, &[link]);
        assert!(index.iter().eq(at_once.iter()));
        network.set_link(link, Some(true), None);
        index.on_change_within(&network, &[link], &mut 0);
        at_once.on_change(&network, &[link]);
        assert!(!index.is_due() && index.iter().eq(at_once.iter()), "homes need no search");
        let watched: Vec<Pair> = index.iter().map(|(pair, _)| pair).collect();
        assert!(watched.into_iter().all(|pair| index.remove(pair)));
        assert_eq!((index.hops, index.due.len()), (0, 0));
    }

    #[test]
    fn paths_of_all_pairs_together_have_a_bounded_number_of_links() {
        let network = fat_tree();
        let whole = watch_all(&network);
        let mut index = PathIndex::new(7).with_most_hops(100);
        whole.iter().for_each(|(pair, _)| index.insert_later(pair));
        while index.is_due() {
            index.go_on(&network, &mut 1);
        }
        let links: usize = index.iter().filter_map(|(_, path)| path).map(|path| path.links.len()).sum();
        assert!(links > 90 && links <= 100 && links == index.hops, "{links} links of {}", whole.hops);
        assert!(index.iter().any(|(_, path)| path.is_none()), "the others have none");
    }

    #[test]
    fn a_lost_switch_moves_the_pairs_through_it_and_strands_those_below() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        let mut index = watch_all(&network);
        let edge = network.vertex("edge-01").unwrap();
        let links: Vec<LinkIdx> = network.links_of(edge).map(|(link, _)| link).collect();
        network.set_switch(edge, false);
        let lost = index.on_change(&network, &links);
        assert_eq!(lost.changed.len(), 2 * (2 * 6) + 2, "all pairs of its two hosts");
        assert!(lost.changed.iter().all(|(_, path)| path.is_none()));
        network.set_switch(edge, true);
        assert_eq!(index.on_change(&network, &links).changed.len(), lost.changed.len());
    }

    #[test]
    fn a_host_on_two_switches_carries_nobody_elses_traffic() {
        let mut network = Network::new();
        let [s0, s1, s2] = ["s0", "s1", "s2"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let [target, both, single] = ["target", "both", "single"].map(|name| network.add_host(name).unwrap());
        let mut link = |name: &str, a, b| network.add_link(name.into(), a, b, CAPACITY).unwrap();
        let twins = [link("x", s0, s1), link("y", s0, s1)];
        let bridge = link("bridge", s1, s2);
        for (name, host, switch) in [("t", target, s0), ("b1", both, s1), ("b2", both, s2), ("s", single, s2)] {
            link(name, host, switch);
        }
        let mut index = PathIndex::new(0);
        let [from_both, from_single] = [both, single].map(|from| Pair { from, to: target });
        index.insert(&network, from_single);
        let used = index.insert(&network, from_both).unwrap().links[1];
        assert!(twins.contains(&used));
        for down in [used, bridge] {
            network.set_link(down, Some(false), None);
        }
        let changes = index.on_change(&network, &[used, bridge]);
        assert_eq!(changes.recomputed, 2, "both are looked for in one search");
        assert!(index.path(from_both).is_some());
        assert_eq!(index.path(from_single), None);
        assert_eq!(shortest_path(&network, s2, s1), None, "not even between its own switches");
    }

    #[test]
    fn a_host_as_near_as_a_switch_is_still_no_way_through() {
        let mut network = Network::new();
        let [s0, s1, s2] = ["s0", "s1", "s2"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let [target, both, single] = ["target", "both", "single"].map(|name| network.add_host(name).unwrap());
        let mut link = |name: &str, a, b| network.add_link(name.into(), a, b, CAPACITY).unwrap();
        let access = link("t", target, s0);
        let ends = [("b0", both, s0), ("b2", both, s2), ("s", single, s2), ("s0-s1", s0, s1), ("s1-s2", s1, s2)];
        for (name, a, b) in ends {
            link(name, a, b);
        }
        for seed in 0..16 {
            let mut index = PathIndex::new(seed);
            network.set_link(access, Some(false), None);
            for from in [both, single] {
                index.insert(&network, Pair { from, to: target });
            }
            network.set_link(access, Some(true), None);
            assert_eq!(index.on_change(&network, &[access]).recomputed, 2, "both in one search");
            let path = index.path(Pair { from: single, to: target }).unwrap();
            assert_eq!(path.vertices, [single, s2, s1, s0, target]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn paths_are_whole_loopless_and_as_short_as_can_be(network in random_network(), seed: u64) {
            for (from, _) in network.vertices() {
                let naive = hop_counts(&network, from);
                for (to, _) in network.vertices() {
                    let Some(path) = shortest_path_seeded(&network, from, to, seed) else {
                        prop_assert_eq!(naive[to.at()], None);
                        continue;
                    };
                    prop_assert_eq!(Some(path.links.len() as u32), naive[to.at()]);
                    prop_assert!(path.is_whole(&network));
                    prop_assert_eq!((path.vertices[0], path.vertices[path.vertices.len() - 1]), (from, to));
                    prop_assert_eq!(path.vertices.iter().collect::<BTreeSet<_>>().len(), path.vertices.len());
                    for (ends, &link) in path.vertices.windows(2).zip(&path.links) {
                        prop_assert_eq!(network.link_at(link).other(ends[0]), ends[1]);
                        prop_assert_eq!(network.link_at(link).other(ends[1]), ends[0]);
                    }
                    for &inner in path.vertices.iter().skip(1).rev().skip(1) {
                        prop_assert!(!network.vertex_at(inner).is_host());
                    }
                }
            }
        }

        #[test]
        fn the_index_connects_what_a_rebuild_connects_and_touches_nothing_else(
            network in random_network(),
            toggles in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        ) {
            let mut network = network;
            let mut index = watch_all(&network);
            for toggle in toggles {
                let link = LinkIdx::new(toggle.index(network.link_rows()));
                let (before, up) = (index.clone(), !network.link_at(link).up);
                network.set_link(link, Some(up), None);
                let changes = index.on_change(&network, &[link]);
                for (pair, path) in index.iter() {
                    let fresh = shortest_path_seeded(&network, pair.from, pair.to, 7);
                    prop_assert_eq!(path.is_some(), fresh.is_some());
                    prop_assert!(path.is_none_or(|path| path.is_whole(&network)));
                    let was = before.path(pair);
                    let moved = changes.changed.iter().find(|(changed, _)| *changed == pair);
                    match moved {
                        Some((_, new)) => prop_assert!(new.as_ref() == path && path != was),
                        None => prop_assert_eq!(path, was),
                    }
                    let broken = was.is_some_and(|was| !was.is_whole(&network));
                    let back = before.pairs[&pair].home.as_ref().is_some_and(|home| home.links.contains(&link));
                    prop_assert!(moved.is_none() || broken || was.is_none() || back, "moved without a cause");
                    if let Some(home) = &index.pairs[&pair].home {
                        prop_assert!(!home.is_whole(&network), "a whole home is lived in");
                    }
                }
            }
        }
    }
}
