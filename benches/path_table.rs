//! The table of k shortest paths against a library that is asked pair by pair.
//!
//! The library's figure is of one pair, the mean over a sample of pairs at equal distances in their list: times
//! the number of pairs it is the time that a table would take.

use criterion::{Criterion, criterion_group, criterion_main};
use hintd::network::build::{self, FatTreeSpec, JellyfishSpec};
use hintd::network::{Network, PathTable, PathTableOptions};
use hintd::units::VertexIdx;
use pathfinding::prelude::yen;
use std::hint::black_box;

fn networks() -> [(&'static str, Network); 2] {
    let fat_tree = FatTreeSpec { k: 16, hosts: Some(1_000), ..FatTreeSpec::default() };
    let jellyfish = JellyfishSpec { switches: 200, ports: 15, to_switches: 10, ..JellyfishSpec::default() };
    let fat_tree = build::fat_tree(&fat_tree).expect("the shape is possible").network;
    let jellyfish = build::jellyfish(&jellyfish).expect("the shape is possible").network;
    [("fat-tree-1000", fat_tree), ("jellyfish-1000", jellyfish)]
}

/// By vertex: neighbours among the switches, gathered once, as the library asks again and again.
fn neighbours(network: &Network) -> Vec<Vec<VertexIdx>> {
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

fn tables(criterion: &mut Criterion) {
    let options = PathTableOptions::default();
    for (name, network) in networks() {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.bench_function("table", |bencher| bencher.iter(|| PathTable::build(black_box(&network), &options)));
        let near = neighbours(&network);
        let pairs = sample(&PathTable::build(&network, &options), 97);
        let mut next = pairs.iter().cycle();
        group.bench_function("library-pair", |bencher| {
            bencher.iter(|| {
                let (from, to) = next.next().expect("a cycle has no end");
                let hops = |vertex: &VertexIdx| near[vertex.at()].iter().map(|&far| (far, 1_u32)).collect::<Vec<_>>();
                yen(black_box(from), hops, |vertex| vertex == to, options.k.get())
            });
        });
        group.finish();
    }
}

criterion_group!(benches, tables);
criterion_main!(benches);
