//! The paths of many networks, as one number: it was taken before path searches had bounds, and stands for as long as
//! nothing about the choice of paths is changed on purpose.

use crate::network::build::{self, BCubeSpec, FatTreeSpec, JellyfishSpec, TreeSpec};
use crate::network::{Network, PathTable, PathTableOptions, Tier};
use crate::units::{BitsPerSec, LinkIdx, VertexIdx};
use std::num::NonZeroUsize;

/// Switches joined as told, a host below each.
fn network(switches: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Network {
    let capacity = BitsPerSec(1_000_000_000);
    let mut network = Network::new();
    let rows: Vec<VertexIdx> =
        (0..switches).map(|n| network.add_switch(&format!("s{n:05}"), Tier::Edge).unwrap()).collect();
    for (n, &switch) in rows.iter().enumerate() {
        let host = network.add_host(&format!("h{n:05}")).unwrap();
        network.add_link(format!("a{n}").into(), host, switch, capacity).unwrap();
    }
    for (n, (a, b)) in links.into_iter().enumerate() {
        network.add_link(format!("l{n}").into(), rows[a], rows[b], capacity).unwrap();
    }
    network
}

fn networks() -> Vec<Network> {
    let fat = |k| build::fat_tree(&FatTreeSpec { k, ..FatTreeSpec::default() }).unwrap().network;
    let jelly = |switches, to_switches, seed| {
        let spec = JellyfishSpec { switches, ports: to_switches + 2, to_switches, seed, ..JellyfishSpec::default() };
        build::jellyfish(&spec).unwrap().network
    };
    let mut all = vec![fat(4), fat(6), build::bcube(&BCubeSpec::default()).unwrap().network];
    all.push(build::tree(&TreeSpec { racks: 12, hosts_per_rack: 1, ..TreeSpec::default() }).unwrap().network);
    all.extend((0..6).map(|seed| jelly(24, 4, seed)));
    all.push(network(40, (0..40).map(|at| (at, (at + 1) % 40))));
    all.push(network(90, (0..90).map(|at| (at, (at + 1) % 90))));
    let rails = (0..11).flat_map(|at| [(2 * at, 2 * at + 2), (2 * at + 1, 2 * at + 3)]);
    all.push(network(24, rails.chain((0..12).map(|at| (2 * at, 2 * at + 1)))));
    all.push(network(9, (0..9).flat_map(|a| (0..a).map(move |b| (a, b)))));
    all.push(network(12, (0..11).flat_map(|at| std::iter::repeat_n((at, at + 1), 3))));
    all.push(network(20, (0..19).filter(|at| at % 5 != 4).map(|at| (at, at + 1))));
    // Drawn by a fixed rule, with some links down.
    for seed in 0..40_usize {
        let n = 6 + seed % 9;
        let tree = (1..n).map(|at| (at, (at * 31 + seed * 17) % at));
        let more = (0..n).map(|at| (at, (at * 7 + seed * 13 + 1) % n)).filter(|(a, b)| a != b);
        let mut drawn = network(n, tree.chain(more));
        for nth in 0..seed % 4 {
            let link = LinkIdx::new((seed * 29 + nth * 11) % drawn.link_rows());
            drawn.set_link(link, Some(false), None);
        }
        all.push(drawn);
    }
    all
}

fn add(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
}

#[test]
fn paths_are_those_of_before_there_were_bounds() {
    let (mut digest, mut count) = (0xcbf2_9ce4_8422_2325, 0_u64);
    for network in networks() {
        for (k, most_walks) in [(10, 1 << 14), (4, 8), (7, 60)] {
            let k = NonZeroUsize::new(k).unwrap();
            let table =
                PathTable::build(&network, &PathTableOptions { k, most_walks, seed: 3, ..PathTableOptions::default() });
            for (&from, &to) in table.ends().iter().flat_map(|from| table.ends().iter().map(move |to| (from, to))) {
                for path in table.paths(from, to).iter() {
                    count += 1;
                    digest =
                        path.links.iter().fold(add(digest, 1 << 40), |digest, link| add(digest, u64::from(link.0)));
                }
            }
        }
    }
    assert_eq!((count, digest), (235_139, 12_891_522_130_632_250_054));
}
