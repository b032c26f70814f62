//! The fluid network: 100,000 flows among 600 hosts at load 0.6 and 0.9, events a second.
//!
//! On a tree of 30 racks whose uplinks carry all that its hosts send, and on a fat-tree of 14-port switches, where
//! every tier is as loaded as the hosts' links. `cargo bench --bench fluid`: medians of five runs; `-- tree 20000`
//! runs one of them with so many flows. Without `--bench`, as under `cargo test`, one small run of each.

use hintd::network::build::{FatTreeSpec, TreeSpec, fat_tree, tree};
use hintd::network::maxmin::{capacities, directed};
use hintd::network::{Network, shortest_path_seeded};
use hintd::sim::FluidNetwork;
use hintd::units::{BitsPerSec, Bytes, DirectedLinkIdx, VertexIdx};
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};
use rand_distr::{Distribution as _, Exp};
use std::time::Instant;

const HOSTS: usize = 600;
const BITS_PER_S: u64 = 10_000_000_000;
const MEAN_BYTES: f64 = 10e6;

struct Start {
    at_s: f64,
    path: Vec<DirectedLinkIdx>,
    bytes: Bytes,
}

/// Poisson arrivals, exponential sizes, pairs and equal-cost paths drawn at random. `load` is what each host's link
/// carries on average, each way, divided by its capacity.
fn starts(network: &Network, flows: usize, load: f64) -> Vec<Start> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let hosts: Vec<VertexIdx> =
        network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(index, _)| index).collect();
    let per_s = load * hosts.len() as f64 * BITS_PER_S as f64 / (MEAN_BYTES * 8.0);
    let gap = Exp::new(per_s).expect("a positive rate");
    let size = Exp::new(1.0 / MEAN_BYTES).expect("a positive rate");
    let mut at_s = 0.0;
    let mut one = |number: usize| {
        at_s += gap.sample(&mut rng);
        let from = rng.random_range(0..hosts.len());
        let to = (from + rng.random_range(1..hosts.len())) % hosts.len();
        let path = shortest_path_seeded(network, hosts[from], hosts[to], number as u64).expect("a whole network");
        Start { at_s, path: directed(network, &path), bytes: Bytes(size.sample(&mut rng) as u64 + 1) }
    };
    (0..flows).map(&mut one).collect()
}

/// Events, links looked through, most flows at once, the last end.
fn run(bits_per_s: &[f64], starts: &[Start]) -> (u64, u64, usize, f64) {
    let mut net = FluidNetwork::new(bits_per_s).expect("capacities of a network");
    let (mut most, mut ended) = (0, Vec::new());
    for start in starts {
        ended.clear();
        net.advance(start.at_s, &mut ended);
        net.start(&start.path, start.bytes, 1).expect("a path of the network");
        most = most.max(net.len());
    }
    net.advance(f64::INFINITY, &mut ended);
    (net.events(), net.rates().evaluations(), most, net.now_s())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let full = args.iter().any(|arg| arg == "--bench");
    let flows = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(if full { 100_000 } else { 500 });
    let host_bits_per_s = BitsPerSec(BITS_PER_S);
    let racks = TreeSpec { racks: 30, hosts_per_rack: HOSTS / 30, cores: 1, host_bits_per_s, ..TreeSpec::default() };
    let ports = FatTreeSpec { k: 14, hosts: Some(HOSTS), bits_per_s: host_bits_per_s };
    let networks = [
        ("tree", tree(&racks.with_edge_oversubscription(1.0)).expect("30 racks").network),
        ("fat-tree", fat_tree(&ports).expect("k = 14 has 686 hosts").network),
    ];
    let named = |name: &str| args.iter().any(|arg| arg == name);
    let all = !networks.iter().any(|(name, _)| named(name));
    for (name, network) in networks.iter().filter(|(name, _)| all || named(name)) {
        for load in [0.6, 0.9] {
            measure(name, network, flows, load, if full { 5 } else { 1 });
        }
    }
}

#[allow(clippy::print_stdout)] // a table for the person who runs it
fn measure(name: &str, network: &Network, flows: usize, load: f64, runs: usize) {
    let (bits_per_s, starts) = (capacities(network), starts(network, flows, load));
    let mut walls = Vec::new();
    let mut counts = (0, 0, 0, 0.0);
    for _ in 0..runs {
        let from = Instant::now();
        counts = run(&bits_per_s, &starts);
        walls.push(from.elapsed().as_secs_f64());
    }
    walls.sort_by(f64::total_cmp);
    let (events, looked, most, end_s) = counts;
    let (wall, fastest, slowest) = (walls[runs / 2], walls[0], walls[runs - 1]);
    println!(
        "{name}, load {load}: {flows} flows, {events} events in {wall:.3} s: {:.0} events/s ({fastest:.3} to {slowest:.3} s in \
         {runs} runs); {:.1} links looked through an event, at most {most} flows at once, {end_s:.3} s simulated",
        events as f64 / wall,
        looked as f64 / events as f64,
    );
}
