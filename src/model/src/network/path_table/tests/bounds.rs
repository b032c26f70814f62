//! Work is bounded: counted in steps, on networks that make searches long; and what the search by deviations finds
//! is what its plain form finds, which goes through the whole network for each of them.

use super::super::deviations::{Asked, Deviations};
use super::super::links::Links;
use super::super::wiring::Wiring;
use super::*;
use crate::network::path::mix;
use std::collections::VecDeque;

/// Switches joined as told, each with so many hosts.
fn network(switches: usize, hosts: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Network {
    let mut network = Network::new();
    let rows: Vec<VertexIdx> =
        (0..switches).map(|n| network.add_switch(&format!("s{n:05}"), Tier::Edge).unwrap()).collect();
    for (n, &switch) in rows.iter().enumerate() {
        for host in 0..hosts {
            let host = network.add_host(&format!("h{n:05}-{host}")).unwrap();
            network.add_link(format!("a{n}-{host:?}").into(), host, switch, CAPACITY).unwrap();
        }
    }
    for (n, (a, b)) in links.into_iter().enumerate() {
        network.add_link(format!("l{n}").into(), rows[a], rows[b], CAPACITY).unwrap();
    }
    network
}

fn ring(n: usize) -> Network {
    network(n, 1, (0..n).map(|at| (at, (at + 1) % n)))
}

fn ladder(n: usize) -> Network {
    let rails = (0..n - 1).flat_map(|at| [(2 * at, 2 * at + 2), (2 * at + 1, 2 * at + 3)]);
    network(2 * n, 1, rails.chain((0..n).map(|at| (2 * at, 2 * at + 1))))
}

/// A spine with teeth of so many switches.
fn comb(n: usize, teeth: usize) -> Network {
    let spine = (1..n).map(|at| (at - 1, at));
    let tooth = move |at: usize| {
        (0..teeth).map(move |nth| (if nth == 0 { at } else { n + at * teeth + nth - 1 }, n + at * teeth + nth))
    };
    network(n + n * teeth, 1, spine.chain((0..n).flat_map(tooth)))
}

fn clique(n: usize) -> Network {
    network(n, 1, (0..n).flat_map(|a| (0..a).map(move |b| (a, b))))
}

fn both(wiring: &Wiring, asked: Asked) -> (Vec<Links>, Vec<Links>, bool) {
    let found = Deviations::default().shortest(wiring, asked);
    (found.paths, plain_shortest(wiring, asked.source, asked.target, asked.k, asked.key), found.cut_short)
}

#[test]
fn a_pair_of_a_long_ring_costs_about_its_length_and_not_the_network_for_each_of_its_links() {
    for n in [300, 1_000, 3_000] {
        let network = ring(n);
        let table = PathTable::lazy(&network, &PathTableOptions::default());
        let ends = table.ends().to_vec();
        for (from, to) in [(0, 1), (0, n / 4), (1, n / 2), (n - 1, 7)] {
            let before = table.steps();
            assert_eq!(table.paths(ends[from], ends[to]).len(), 2);
            let steps = table.steps() - before;
            // With counts of walks of up to 64 links where the ends are that near, else a few sweeps.
            let most = if from.abs_diff(to).min(n - from.abs_diff(to)) < 64 { 100 } else { 40 } * n as u64;
            assert!(steps <= most, "{n}: {steps} steps from {from} to {to}");
        }
        assert!(!table.has_cut_short());
    }
}

#[test]
fn a_table_that_would_be_cubic_is_lazy_and_says_so_after_a_bounded_number_of_steps() {
    let options = PathTableOptions { most_bytes: 4 << 20, ..PathTableOptions::default() };
    let network = ring(400);
    let table = PathTable::build(&network, &options);
    assert!(table.is_lazy(), "bytes");
    assert!(
        PathTable::build(&network, &PathTableOptions { most_steps: 1 << 20, ..PathTableOptions::default() }).is_lazy()
    );
    let mut looks = 0;
    let mut never = || {
        looks += 1;
        false
    };
    assert!(PathTable::build_within(&network, &PathTableOptions::default(), 1 << 18, &mut never).is_none());
    assert!(looks <= (1 << 18) / LOOK_EVERY + 1, "{looks}");
}

#[test]
fn building_stops_at_the_look_that_says_so() {
    for stop_at in [1, 2, 5] {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks >= stop_at
        };
        assert!(PathTable::build_within(&ladder(300), &PathTableOptions::default(), u64::MAX, &mut stop).is_none());
        assert_eq!(looks, stop_at, "it looks no more after that");
    }
}

#[test]
fn following_stops_as_well_and_leaves_the_table_as_it_was() {
    let mut network = clique(40);
    let mut table = PathTable::build(&network, &options(10));
    let before = table.clone();
    for link in (0..network.link_rows()).step_by(3) {
        network.set_link(LinkIdx::new(link), Some(false), None);
    }
    assert!(table.update_within(&network, u64::MAX, &mut || true).is_none());
    assert!(table.update_within(&network, 10, &mut || false).is_none());
    assert_eq!((&table.wiring, table.bytes()), (&before.wiring, before.bytes()));
    assert!(table.update_within(&network, u64::MAX, &mut || false).is_some());
    assert_same(&table, &network, "a third of the links");
}

#[test]
fn a_pair_that_is_cut_short_has_sound_paths_from_the_shortest_on_and_says_so() {
    let network = ladder(150);
    let options = PathTableOptions { most_pair_steps: 2_000, ..PathTableOptions::default() };
    let table = PathTable::lazy(&network, &options);
    let (first, last) = (table.ends()[0], table.ends()[299]);
    let (there, back) = (table.paths(first, last), table.paths(last, first));
    assert!(there.is_cut_short() && back.is_cut_short() && table.has_cut_short());
    assert!(!there.is_empty() && there.iter().next().unwrap().links.len() == 150, "the shortest is always found");
    for path in there.iter() {
        assert!(path.is_whole(&network));
        assert_eq!(path.vertices.iter().collect::<BTreeSet<_>>().len(), path.vertices.len());
    }
    let turned = |paths: &PairPaths| -> Vec<Vec<LinkIdx>> {
        paths.iter().map(|path| path.links.into_iter().rev().collect()).collect()
    };
    assert_eq!(links(&table, first, last), turned(&back), "the same both ways");
}

#[test]
fn no_pair_of_an_ugly_network_takes_more_than_it_may() {
    let jelly = |switches, to_switches| {
        build::jellyfish(&JellyfishSpec { switches, ports: to_switches + 1, to_switches, ..JellyfishSpec::default() })
            .unwrap()
            .network
    };
    let star_of_stars = network(
        1 + 40 + 1_600,
        1,
        (0..40).flat_map(|hub| {
            std::iter::once((0, 1 + hub)).chain((0..40).map(move |leaf| (1 + hub, 41 + hub * 40 + leaf)))
        }),
    );
    let islands = network(600, 1, (0..600).filter(|at| at % 3 != 2).map(|at| (at, at + 1)));
    let bundles = network(50, 1, (0..49).flat_map(|at| std::iter::repeat_n((at, at + 1), 20)));
    let networks = [
        ("ring", ring(3_000)),
        ("ladder", ladder(1_000)),
        ("comb", comb(60, 30)),
        ("clique", clique(120)),
        ("jellyfish", jelly(400, 8)),
        ("jellyfish with two links", jelly(400, 2)),
        ("star of stars", star_of_stars),
        ("islands", islands),
        ("bundles", bundles),
        ("one host", network(1, 1, [])),
        ("chain", network(3_000, 1, (1..3_000).map(|at| (at - 1, at)))),
    ];
    for (name, network) in networks {
        let options = PathTableOptions { most_pair_steps: 1 << 18, ..PathTableOptions::default() };
        let table = PathTable::lazy(&network, &options);
        let ends = table.ends().to_vec();
        let sweep = table.wiring.sweep();
        // Counts of walks, turning to the target twice, and a deviation that is under way.
        let most = options.most_pair_steps + MOST_WALK_STEPS + (64 + 4) * sweep;
        let mut worst = 0;
        for at in 0..60 {
            let pair = (ends[at * 7_919 % ends.len()], ends[at * 104_729 % ends.len()]);
            let before = table.steps();
            let _ = table.paths(pair.0, pair.1);
            worst = worst.max(table.steps() - before);
        }
        println!("{name}: {worst} steps for the worst pair, a sweep is {sweep}, cut short: {}", table.has_cut_short());
        assert!(worst <= most, "{name}: {worst}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn deviations_are_those_of_the_plain_search(network in random_network(), k in 1_usize..14, seed in 0_u64..8) {
        let wiring = Wiring::of(&network);
        let mut scratch = Deviations::default();
        for (source, target) in (0..wiring.len() as u32).flat_map(|a| (0..wiring.len() as u32).map(move |b| (a, b))) {
            if source == target || !wiring.up[source as usize] || !wiring.up[target as usize] {
                continue;
            }
            let key = pair_key(seed, wiring.switches()[source as usize], wiring.switches()[target as usize]);
            let asked = Asked { source, target, k, key, most_steps: u64::MAX };
            let (ours, plain, cut_short) = both(&wiring, asked);
            prop_assert_eq!(&ours, &plain);
            prop_assert!(!cut_short);
            prop_assert_eq!(&scratch.shortest(&wiring, asked).paths, &plain, "what is kept does not show");
        }
    }

    #[test]
    fn a_table_with_pairs_cut_short_follows_with_sound_paths_and_the_shortest_first(
        network in random_network(), k in 1_usize..8, most_pair_steps in 0_u64..60, changes in disturbances(),
    ) {
        let mut network = network;
        let options = PathTableOptions { most_walks: 2, most_pair_steps, ..options(k) };
        let mut table = PathTable::build(&network, &options);
        let mut lazy = PathTable::build(&network, &PathTableOptions { most_ends: 0, ..options });
        for batch in changes {
            let what: Vec<String> =
                batch.into_iter().map(|(kind, at, other)| disturb(&mut network, kind, at, other)).collect();
            table.update(&network);
            lazy.update(&network);
            assert_sound(&network, &table);
            assert_sound(&network, &lazy);
            let anew = PathTable::build(&network, &table.options);
            for (from, to) in pairs(&table) {
                let first = |table: &PathTable| links(table, from, to).first().map(Vec::len);
                prop_assert_eq!(first(&table), first(&anew), "{:?}", what);
                prop_assert_eq!(first(&lazy), first(&anew), "{:?}", what);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn deviations_of_larger_networks_are_those_of_the_plain_search(kind in 0..6, k in 1_usize..12, seed in 0_u64..1_000) {
        let network = match kind {
            0 => ring(40),
            1 => ladder(14),
            2 => comb(6, 4),
            3 => clique(9),
            4 => build::jellyfish(&JellyfishSpec { switches: 40, ports: 6, to_switches: 4, seed, ..JellyfishSpec::default() })
                .unwrap()
                .network,
            _ => build::fat_tree(&FatTreeSpec { k: 6, ..FatTreeSpec::default() }).unwrap().network,
        };
        let wiring = Wiring::of(&network);
        for at in 0..60_u32 {
            let rows = wiring.len() as u32;
            let (source, target) = (at * 31 % rows, (at * 17 + 5) % rows);
            if source != target {
                let key = pair_key(seed, wiring.switches()[source as usize], wiring.switches()[target as usize]);
                let (ours, plain, _) = both(&wiring, Asked { source, target, k, key, most_steps: u64::MAX });
                prop_assert_eq!(ours, plain);
            }
        }
    }
}

/// The plain form. Links of the k shortest loopless paths between two rows, in order from `source`, by (length, hash). Of equal
/// ones each deviation takes, step by step, the port with the least hash of pair and link: lengths are exact, the
/// choice among the last length is not by the hash of whole paths.
///
/// The same for both directions: it is always searched from the lower row.
fn plain_shortest(wiring: &Wiring, source: u32, target: u32, k: usize, key: u64) -> Vec<Links> {
    let (low, high) = (source.min(target), source.max(target));
    let mut yen = PlainYen { wiring, target: high, key, labels: Vec::new(), queue: VecDeque::new() };
    let mut found = yen.run(low, k);
    found.sort_by_key(|links| (links.len(), hash(key, links)));
    if source != low {
        found.iter_mut().for_each(|links| links.reverse());
    }
    found
}

fn hash(key: u64, links: &[u32]) -> u64 {
    path_hash(key, links.iter().fold(0, |sum, &link| sum.wrapping_add(link_hash(link))))
}

struct PlainYen<'a> {
    wiring: &'a Wiring,
    target: u32,
    key: u64,
    /// Hops to the target by row, of the current search.
    labels: Vec<u32>,
    queue: VecDeque<u32>,
}

impl PlainYen<'_> {
    fn run(&mut self, source: u32, k: usize) -> Vec<Links> {
        let mut found: Vec<Links> = Vec::new();
        // By length and hash; paths found from several deviations stand once.
        let mut waiting = BTreeSet::new();
        let first = self.spur(&[], source, &BTreeSet::new());
        waiting.extend(first.map(|links| (links.len(), hash(self.key, &links), links)));
        while found.len() < k {
            let Some((_, _, links)) = waiting.pop_first() else { break };
            let rows = self.rows(source, &links);
            for at in 0..links.len() {
                let root = &links[..at];
                let taken = found.iter().chain([&links]).filter(|path| path.starts_with(root));
                let taken: BTreeSet<u32> = taken.map(|path| path[at]).collect();
                if let Some(rest) = self.spur(&rows[..at], rows[at], &taken) {
                    let whole: Links = root.iter().copied().chain(rest).collect();
                    waiting.insert((whole.len(), hash(self.key, &whole), whole));
                }
            }
            found.push(links);
        }
        found
    }

    /// The shortest way on from `from` that meets none of `passed` and starts with none of `taken`.
    fn spur(&mut self, passed: &[u32], from: u32, taken: &BTreeSet<u32>) -> Option<Links> {
        self.label(passed, from);
        let fitting = self.wiring.hops(from).filter(|port| !taken.contains(&port.link));
        let known = fitting.filter(|port| self.labels[port.to as usize] < BLOCKED);
        let mut here = known.min_by_key(|port| (self.labels[port.to as usize], self.tie(port.link), port.link))?;
        let mut links = Links::from_slice(&[here.link]);
        while here.to != self.target {
            let nearer = self.labels[here.to as usize] - 1;
            let ports = self.wiring.hops(here.to).filter(|port| self.labels[port.to as usize] == nearer);
            here = ports
                .min_by_key(|port| (self.tie(port.link), port.link))
                .expect("a row that many hops away has a neighbour one hop nearer");
            links.push(here.link);
        }
        Some(links)
    }

    fn label(&mut self, passed: &[u32], from: u32) {
        self.labels.clear();
        self.labels.resize(self.wiring.len(), NONE);
        for &row in passed.iter().chain([&from]) {
            self.labels[row as usize] = BLOCKED;
        }
        self.labels[self.target as usize] = 0;
        self.queue.push_back(self.target);
        while let Some(near) = self.queue.pop_front() {
            for port in self.wiring.hops(near) {
                if self.labels[port.to as usize] == NONE {
                    self.labels[port.to as usize] = self.labels[near as usize] + 1;
                    self.queue.push_back(port.to);
                }
            }
        }
    }

    fn tie(&self, link: u32) -> u64 {
        mix(self.key ^ link_hash(link))
    }

    fn rows(&self, source: u32, links: &[u32]) -> Vec<u32> {
        let mut rows = vec![source];
        for &link in links {
            let here = rows[rows.len() - 1];
            rows.push(self.wiring.ports(here)[self.wiring.port_of(here, link)].to);
        }
        rows
    }
}

/// Label of a row that may not be met; less than [`NONE`], more than any distance.
const BLOCKED: u32 = NONE - 1;
