//! The fluid network: 100,000 flows among 600 hosts at load 0.6 and 0.9, events a second.
//!
//! On a star (one switch), on a tree of 30 racks whose uplinks carry all that its hosts send, and on a fat-tree of
//! 14-port switches, where every tier is as loaded as the hosts' links. Then `racks`, a cluster's shuffle: 30 racks of 20 hosts with an uplink
//! and a downlink of 1 Gbit/s, fetches of 50 Mbit/s at most, every end followed by a start on another path; exact and
//! with a tolerance of 0.005. `cargo bench --bench fluid`: medians of five runs; `-- tree 20000` runs one of them with so
//! many flows. Without `--bench`, as under `cargo test`, one small run of each.
//!
//! `-- write FILE star 0.9 100000` writes such flows down, `-- replay FILE ENDS` runs what was written and tells when
//! each flow ended: `benches/simgrid/run` does both, and the same in SimGrid.

use hintd_model::network::build::{FatTreeSpec, TreeSpec, fat_tree, tree};
use hintd_model::network::maxmin::{capacities, directed};
use hintd_model::network::{Network, shortest_path_seeded};
use hintd_model::units::{BitsPerSec, Bytes, DirectedLinkIdx, VertexIdx};
use hintd_simulator::FluidNetwork;
use hintd_simulator::fluid::Completion;
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};
use rand_distr::{Distribution as _, Exp};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Instant;

const HOSTS: usize = 600;
const BITS_PER_S: u64 = 10_000_000_000;
const MEAN_BYTES: f64 = 10e6;
const RACKS: u32 = 30;
/// Part of the fetches that stay in their rack, on the NIC of their host.
const LOCAL: f64 = 0.05;

struct Start {
    at_s: f64,
    /// Numbers of the hosts.
    ends: (usize, usize),
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
    let mut one = || {
        at_s += gap.sample(&mut rng);
        let from = rng.random_range(0..hosts.len());
        let to = (from + rng.random_range(1..hosts.len())) % hosts.len();
        // One path for a pair, as the peer's routes have it.
        let seed = (from * hosts.len() + to) as u64;
        let path = shortest_path_seeded(network, hosts[from], hosts[to], seed).expect("a whole network");
        let bytes = Bytes(size.sample(&mut rng) as u64 + 1);
        Start { at_s, ends: (from, to), path: directed(network, &path), bytes }
    };
    (0..flows).map(|_| one()).collect()
}

/// Hosts, links and flows; a capacity a line; a flow a line: start, bytes, both hosts, links, which.
fn write(file: &str, bits_per_s: &[f64], starts: &[Start]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "{HOSTS} {} {}", bits_per_s.len(), starts.len())?;
    bits_per_s.iter().try_for_each(|bits| writeln!(out, "{bits}"))?;
    for Start { at_s, ends, path, bytes } in starts {
        write!(out, "{at_s} {} {} {} {}", bytes.0, ends.0, ends.1, path.len())?;
        path.iter().try_for_each(|link| write!(out, " {}", link.0))?;
        writeln!(out)?;
    }
    out.flush()
}

/// What [`write`] wrote.
fn read(file: &str) -> (Vec<f64>, Vec<Start>) {
    let text = std::fs::read_to_string(file).expect("the file to replay");
    let mut words = text.split_ascii_whitespace();
    let mut number = || words.next().and_then(|word| word.parse::<f64>().ok()).expect("a whole file of numbers");
    let [_, links, flows] = [number(), number(), number()].map(|count| count as usize);
    let bits_per_s = (0..links).map(|_| number()).collect();
    let mut flow = || {
        let (at_s, bytes, ends, hops) =
            (number(), Bytes(number() as u64), (number() as usize, number() as usize), number());
        let path = (0..hops as usize).map(|_| DirectedLinkIdx(number() as u32)).collect();
        Start { at_s, ends, path, bytes }
    };
    (bits_per_s, (0..flows).map(|_| flow()).collect())
}

/// Seconds of CPU so far, which a busy machine disturbs less than the clock on the wall; Linux has them.
fn cpu_s() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Prints flows, seconds of CPU and the last end, and writes when each flow ended.
#[allow(clippy::print_stdout)] // a line for the script
fn replay(file: &str, ends: &str) -> std::io::Result<()> {
    let (bits_per_s, starts) = read(file);
    let from_s = cpu_s();
    let mut net = FluidNetwork::new(&bits_per_s).expect("capacities of a network");
    let (mut ended, mut of_flow, mut at_s) = (Vec::new(), Vec::new(), vec![0.0; starts.len()]);
    let mut note = |ended: &mut Vec<Completion>, of_flow: &[usize]| {
        ended.drain(..).for_each(|end| at_s[of_flow[end.flow.at()]] = end.at_s);
    };
    for (number, start) in starts.iter().enumerate() {
        net.advance(start.at_s, &mut ended);
        note(&mut ended, &of_flow);
        let flow = net.start(&start.path, start.bytes, 1).expect("a path of the network");
        of_flow.resize(of_flow.len().max(flow.at() + 1), 0);
        of_flow[flow.at()] = number;
    }
    net.advance(f64::INFINITY, &mut ended);
    note(&mut ended, &of_flow);
    println!("{} {:.6} {:.9}", starts.len(), cpu_s() - from_s, net.now_s());
    let mut out = BufWriter::new(File::create(ends)?);
    at_s.iter().try_for_each(|at_s| writeln!(out, "{at_s}"))?;
    out.flush()
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

/// Fetches, a quarter of them batches of up to five.
fn fetches(count: usize) -> Vec<(Vec<DirectedLinkIdx>, Bytes, u32)> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let size = Exp::new(2.0 / MEAN_BYTES).expect("a positive rate");
    let one = |_| {
        let (from, to) = (rng.random_range(0..RACKS), rng.random_range(1..RACKS));
        let across = vec![DirectedLinkIdx(from), DirectedLinkIdx(RACKS + (from + to) % RACKS)];
        let inside = vec![DirectedLinkIdx(2 * RACKS + rng.random_range(0..HOSTS as u32))];
        let path = if rng.random_bool(LOCAL) { inside } else { across };
        let members = if rng.random_bool(0.25) { rng.random_range(1..6) } else { 1 };
        (path, Bytes(size.sample(&mut rng) as u64 + 1), members)
    };
    (0..count).map(one).collect()
}

/// Seconds, events and links looked through of so many ends with `under_way` fetches at any time.
fn shuffle(under_way: usize, ends: usize, tolerance: f64) -> (f64, u64, u64) {
    let bits_per_s: Vec<f64> = (0..2 * RACKS).map(|_| 1e9).chain((0..HOSTS).map(|_| 250e6)).collect();
    let mut net = FluidNetwork::new(&bits_per_s).expect("capacities").with_tolerance(tolerance);
    let fetches = fetches(under_way + ends);
    let start = |net: &mut FluidNetwork, (path, bytes, members): &(Vec<DirectedLinkIdx>, Bytes, u32)| {
        net.start_capped(path, *bytes, *members, 50e6).expect("a path of the racks");
    };
    fetches[..under_way].iter().for_each(|fetch| start(&mut net, fetch));
    let (events, looked) = (net.events(), net.rates().evaluations());
    let from = Instant::now();
    let (mut ended, mut next) = (Vec::new(), under_way);
    while next < fetches.len() {
        let at_s = net.next_completion_s().expect("fetches are under way");
        ended.clear();
        net.advance(at_s, &mut ended);
        let starts = &fetches[next..(next + ended.len()).min(fetches.len())];
        starts.iter().for_each(|fetch| start(&mut net, fetch));
        next += starts.len();
    }
    let wall = from.elapsed().as_secs_f64();
    (wall, net.events() - events, net.rates().evaluations() - looked)
}

#[allow(clippy::print_stdout)] // a table for the person who runs it
fn measure_racks(full: bool) {
    for (under_way, tolerance) in [600, 3_000, 10_000].into_iter().flat_map(|flows| [(flows, 0.0), (flows, 0.005)]) {
        let ends = if !full {
            200
        } else if tolerance == 0.0 {
            5_000
        } else {
            100_000
        };
        let mut runs: Vec<_> = (0..if full { 5 } else { 1 }).map(|_| shuffle(under_way, ends, tolerance)).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let each = |(wall, events, _): (f64, u64, u64)| wall / events as f64 * 1e6;
        let (median, last) = (runs[runs.len() / 2], runs[runs.len() - 1]);
        println!(
            "racks, {under_way} fetches, tolerance {tolerance}: {:.2} µs an event ({:.2} to {:.2} in {} runs), {:.1} links \
             looked through",
            each(median),
            each(runs[0]),
            each(last),
            runs.len(),
            median.2 as f64 / median.1 as f64,
        );
    }
}

fn networks() -> [(&'static str, Network); 3] {
    let host_bits_per_s = BitsPerSec(BITS_PER_S);
    let star = TreeSpec { racks: 1, hosts_per_rack: HOSTS, cores: 1, host_bits_per_s, ..TreeSpec::default() };
    let racks = TreeSpec { racks: 30, hosts_per_rack: HOSTS / 30, ..star };
    let ports = FatTreeSpec { k: 14, hosts: Some(HOSTS), bits_per_s: host_bits_per_s };
    let of_tree = |spec: &TreeSpec| tree(&spec.with_edge_oversubscription(1.0)).expect("a small tree").network;
    [
        ("star", of_tree(&star)),
        ("tree", of_tree(&racks)),
        ("fat-tree", fat_tree(&ports).expect("k = 14 has 686 hosts").network),
    ]
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let full = args.iter().any(|arg| arg == "--bench");
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with("--")).collect();
    let networks = networks();
    match words[..] {
        ["replay", file, ends] => return replay(file, ends),
        ["write", file, name, load, flows] => {
            let (_, network) = networks.iter().find(|named| named.0 == name).expect("star, tree or fat-tree");
            let (flows, load) = (flows.parse().expect("a number of flows"), load.parse().expect("a load"));
            return write(file, &capacities(network), &starts(network, flows, load));
        }
        _ => {}
    }
    let flows = words.iter().find_map(|arg| arg.parse().ok()).unwrap_or(if full { 100_000 } else { 500 });
    let named = |name: &str| words.contains(&name);
    let all = !named("racks") && !networks.iter().any(|(name, _)| named(name));
    if all || named("racks") {
        measure_racks(full);
    }
    for (name, network) in networks.iter().filter(|(name, _)| all || named(name)) {
        for load in [0.6, 0.9] {
            measure(name, network, flows, load, if full { 5 } else { 1 });
        }
    }
    Ok(())
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
