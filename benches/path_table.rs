//! The table of k shortest paths against a library that is asked pair by pair.
//!
//! `cargo bench --bench path_table` takes 1,000 hosts, `-- large` 10,000 too. Prints, for each network, the median
//! build of five, the bytes held, and what the library (pathfinding's Yen) would take for all pairs: its mean over a
//! sample of pairs at equal distances in their list, times the pairs. Then the median of following one lost and one
//! returned link between switches, over links at equal distances.

#![allow(clippy::print_stdout)] // a table for the person who runs it

use hintd_model::network::build::{self, FatTreeSpec, JellyfishSpec};
use hintd_model::network::{Network, PathTable, PathTableOptions};
use hintd_model::units::{LinkIdx, VertexIdx};
use pathfinding::prelude::yen;
use std::hint::black_box;
use std::time::Instant;

/// Builds of each table.
const BUILDS: usize = 5;
/// Links that are lost and return.
const LINKS: usize = 15;

fn networks(large: bool) -> Vec<(&'static str, usize, Network)> {
    let fat_tree = |k, hosts| build::fat_tree(&FatTreeSpec { k, hosts: Some(hosts), ..FatTreeSpec::default() });
    let jellyfish = |switches, ports, to_switches| {
        build::jellyfish(&JellyfishSpec { switches, ports, to_switches, ..JellyfishSpec::default() })
    };
    let mut all = vec![
        ("fat-tree k=16, 1,000 hosts", 97, fat_tree(16, 1_000)),
        ("jellyfish RRG(200,15,10), 1,000 hosts", 97, jellyfish(200, 15, 10)),
    ];
    if large {
        all.push(("fat-tree k=48, 10,000 hosts", 23, fat_tree(48, 10_000)));
        all.push(("jellyfish RRG(625,48,32), 10,000 hosts", 23, jellyfish(625, 48, 32)));
    }
    let built = |(name, sample, built): (_, _, Result<build::BuiltNetwork, _>)| {
        (name, sample, built.expect("the shape is possible").network)
    };
    all.into_iter().map(built).collect()
}

/// By vertex: neighbours among the switches, gathered once, as the library asks again and again.
fn neighbors(network: &Network) -> Vec<Vec<VertexIdx>> {
    let of_vertex = |(index, _)| {
        let far = network.links_of(index).map(|(_, link)| link.other(index));
        far.filter(|&far| !network.vertex_at(far).is_host()).collect()
    };
    network.vertices().map(of_vertex).collect()
}

/// Some pairs of attachment switches, at equal distances.
fn sample(table: &PathTable, count: usize) -> Vec<(VertexIdx, VertexIdx)> {
    let ends = table.ends();
    let pairs = (0..ends.len()).flat_map(|high| (0..high).map(move |low| (ends[low], ends[high])));
    pairs.step_by(table.pairs() / count).collect()
}

/// Seconds that the library takes for one pair, on average.
fn library(network: &Network, pairs: &[(VertexIdx, VertexIdx)], k: usize) -> f64 {
    let near = neighbors(network);
    let started = Instant::now();
    for (from, to) in pairs {
        let hops = |vertex: &VertexIdx| near[vertex.at()].iter().map(|&far| (far, 1_u32)).collect::<Vec<_>>();
        black_box(yen(black_box(from), hops, |vertex| vertex == to, k));
    }
    started.elapsed().as_secs_f64() / pairs.len() as f64
}

/// Median seconds to follow a link's loss, and its return.
fn follow(network: &Network, mut table: PathTable) -> [f64; 2] {
    let is_switch = |vertex| !network.vertex_at(vertex).is_host();
    let core = network.links().filter(|(_, link)| is_switch(link.a) && is_switch(link.b));
    let core: Vec<LinkIdx> = core.map(|(index, _)| index).collect();
    let mut network = network.clone();
    let mut times = [Vec::new(), Vec::new()];
    for &link in core.iter().step_by(core.len() / LINKS) {
        for (up, times) in [false, true].into_iter().zip(&mut times) {
            network.set_link(link, Some(up), None);
            let started = Instant::now();
            black_box(table.update(&network));
            times.push(started.elapsed().as_secs_f64());
        }
    }
    times.map(median)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let large = std::env::args().any(|argument| argument == "large");
    let options = PathTableOptions::default();
    let k = options.k.get();
    println!(
        "network | pairs | build, s | bytes | library, all pairs, s | times faster | link lost, ms | returned, ms"
    );
    for (name, count, network) in networks(large) {
        let build = || {
            let started = Instant::now();
            let table = PathTable::build(black_box(&network), &options);
            (started.elapsed().as_secs_f64(), table)
        };
        let (_, table) = build();
        let took = median((0..BUILDS).map(|_| build().0).collect());
        let library = library(&network, &sample(&table, count), k) * table.pairs() as f64;
        let (pairs, bytes) = (table.pairs(), table.bytes());
        let [lost, returned] = follow(&network, table).map(|seconds| seconds * 1e3);
        let faster = library / took;
        println!("{name} | {pairs} | {took:.3} | {bytes} | {library:.1} | {faster:.0} | {lost:.1} | {returned:.1}");
    }
}
