//! Placement and routing decisions of `cross_layer` beside the paper's nested form, on the same jobs in the same run.
//!
//! `cargo bench --bench cross_layer`: networks of 1,000 hosts; with `-- 10000` of 10,000 as well; with `-- modes` the
//! run modes beside each other, with `-- reroute` new routes for 100 of 10,000 pairs, with `-- quality` parameters. Prints, for each network: our median and 99th percentile, the nested form's median, how
//! many times faster, utility ours ÷ nested, and the time that ours took to the nested form's final utility.

#![allow(clippy::print_stdout)] // a table for the person who runs it

use hintd_model::cluster::{Flow, JobFlows, NodePair, PairRoute, Resource, RunningFlows, Topology};
use hintd_model::network::Link;
use hintd_model::network::build::{BuiltNetwork, FatTreeSpec, JellyfishSpec, fat_tree, jellyfish};
use hintd_model::network::maxmin::directions;
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, Bytes, DecisionId, LinkIdx};
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::cross_layer::nested::{NestedParams, nested};
use hintd_policy::cross_layer::sample::{Job, drawn_hadoop_job, storm_job};
use hintd_policy::cross_layer::{CrossLayer, CrossLayerParams, Reroute, RunMode, reroute};
use hintd_policy::problem::PlaceProblem;
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, Definition, FlowIndex, IndexedFlows, Place, Placement, traffic};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

const UNIT: Resource = Resource::new(1024, 1);
/// §4.3: 100 MB/s.
const LINK: BitsPerSec = BitsPerSec(800_000_000);
const RUNNING: u64 = 50;
const SEEDS: u64 = 5;
const DECISIONS: u64 = 200;

fn networks(large: bool) -> Vec<(&'static str, BuiltNetwork)> {
    let tree = |k, hosts| fat_tree(&FatTreeSpec { k, hosts: Some(hosts), bits_per_s: LINK }).expect("it fits");
    let fish = |switches, ports, to_switches| {
        let spec = JellyfishSpec { switches, ports, to_switches, bits_per_s: LINK, ..JellyfishSpec::default() };
        jellyfish(&spec).expect("a regular graph")
    };
    if large {
        return vec![("fat-tree", tree(36, 10_000)), ("jellyfish", fish(625, 48, 32))];
    }
    vec![("fat-tree", tree(16, 1_000)), ("jellyfish", fish(200, 15, 10))]
}

fn problem<'s>(sample: &'s Sample, job: &Job, running: &'s IndexedFlows, seed: u64) -> PlaceProblem<'s> {
    let groups = job.groups.iter().map(|(name, count)| sample.group(name, *count, UNIT));
    let mut groups: Vec<_> = groups.collect();
    // One list of candidates for all, as the engine gives it.
    let candidates = Arc::clone(&groups[0].candidates);
    groups.iter_mut().for_each(|group| group.candidates = Arc::clone(&candidates));
    let mut problem = sample.problem(groups, job.edges.clone(), vec![]);
    (problem.seed, problem.running) = (seed, Some(running));
    problem
}

fn place(policy: &CrossLayer, problem: &PlaceProblem<'_>) -> Placement {
    let mut never = || false;
    policy.place(problem, &mut Budget::new(DEFAULT_STEPS, &mut never)).expect("a dataflow with sources and sinks")
}

/// Jobs that run already, placed at random as those without hints are.
fn running(sample: &Sample, jobs: u64) -> IndexedFlows {
    let policy = CrossLayer::new(CrossLayerParams { mode: RunMode::Random, ..CrossLayerParams::default() });
    let mut flows = RunningFlows::default();
    for number in 0..jobs {
        let job = storm_job(1_000 + number);
        let none = IndexedFlows::default();
        let problem = problem(sample, &job, &none, number);
        let placement = place(&policy, &problem);
        let traffic = traffic(&job.edges, &placement.groups).expect("it has a source and a sink");
        for route in &placement.routes {
            let Ok(at) = traffic.flows.binary_search_by_key(&route.pair, |flow: &Flow| flow.pair) else { continue };
            add(&mut flows, route.pair, &traffic.flows[at], &route.links);
        }
        let application = ApplicationId { cluster_timestamp: 1, sequence: number as u32 };
        let attempt = AttemptId { application, attempt: 1 };
        flows.jobs.push(Arc::new(JobFlows { attempt, decision: DecisionId::of(number), traffic }));
    }
    flows.into()
}

fn add(flows: &mut RunningFlows, pair: NodePair, flow: &Flow, links: &Arc<[hintd_model::units::DirectedLinkIdx]>) {
    let old = flows.routes.get(&pair).map(|route| (**route).clone());
    let mut route =
        old.unwrap_or(PairRoute { links: Arc::clone(links), installed: true, task_pairs: 0, bytes: Bytes(0) });
    route.task_pairs += u64::from(flow.task_pairs);
    route.bytes = route.bytes.saturating_add(flow.bytes);
    flows.routes.set(&pair, Some(Arc::new(route)));
}

fn quantile(values: &mut [f64], of: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * of).round() as usize]
}

fn part(placement: &Placement, name: &str) -> f64 {
    placement.parts.iter().find(|(part, _)| part == name).map_or(0.0, |(_, value)| *value)
}

fn milliseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let done = work();
    (began.elapsed().as_secs_f64() * 1e3, done)
}

fn decisions(name: &str, sample: &Sample, flows: &IndexedFlows, kind: &str, job: fn(u64) -> Job, beside: bool) {
    let policy = CrossLayer::default();
    let mut times = Vec::new();
    for seed in 0..DECISIONS {
        let problem = problem(sample, &job(seed), flows, seed);
        times.push(milliseconds(|| place(&policy, &problem)).0);
    }
    let (median, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    let hosts = sample.snapshot.nodes();
    print!("{name:>9} {hosts:>6} hosts {kind:>6}: ours {median:.2} ms median, {p99:.2} ms p99");
    if beside {
        let (mut theirs, mut ratios, mut gains, mut reached) = (vec![], vec![], vec![], vec![]);
        for seed in 0..SEEDS {
            let problem = problem(sample, &job(seed), flows, seed);
            let (ours_ms, ours) = milliseconds(|| place(&policy, &problem));
            let (nested_ms, other) = milliseconds(|| nested(&problem, &NestedParams::default(), &mut |_| true));
            let other = other.expect("it has a network and edges");
            let own = "job_utility_bits_per_s";
            gains.push(part(&ours, own) / part(&other, own));
            ratios.push(nested_ms / ours_ms);
            theirs.push(nested_ms);
            reached.push(to_quality(&problem, part(&other, "utility_bits_per_s")));
        }
        print!(
            "; nested {:.0} ms, {:.0} times; utility of the job {:.3} of nested's (least {:.3}); ours is there in {:.2} ms",
            quantile(&mut theirs, 0.5),
            quantile(&mut ratios, 0.5),
            quantile(&mut gains, 0.5),
            gains.iter().copied().fold(f64::INFINITY, f64::min),
            quantile(&mut reached, 0.5),
        );
    }
    println!();
}

/// Time until our answer, with steps doubled from one on, is as good.
fn to_quality(problem: &PlaceProblem<'_>, utility: f64) -> f64 {
    let mut never = || false;
    for doubled in 0..17 {
        let mut budget = Budget::new(1 << doubled, &mut never);
        let (ms, placement) = milliseconds(|| CrossLayer::default().place(problem, &mut budget));
        if part(&placement.expect("as before"), "utility_bits_per_s") >= utility {
            return ms;
        }
    }
    f64::INFINITY
}

fn modes(name: &str, sample: &Sample, flows: &IndexedFlows, kind: &str, job: fn(u64) -> Job) {
    print!("{name:>9} {:>6} hosts {kind:>6}: utility of the job over random's, mean of 100:", sample.snapshot.nodes());
    for mode in [RunMode::Application, RunMode::Routing, RunMode::Both] {
        let mut sum = 0.0;
        for seed in 0..100 {
            let problem = problem(sample, &job(seed), flows, seed);
            let own = |mode| {
                let policy = CrossLayer::new(CrossLayerParams { mode, ..CrossLayerParams::default() });
                part(&place(&policy, &problem), "job_utility_bits_per_s")
            };
            sum += own(mode) / own(RunMode::Random).max(1.0);
        }
        print!(" {mode:?} {:.2}", sum / 100.0);
    }
    println!();
}

/// Our answer by parameters, beside that of many more steps: what the defaults were chosen by.
fn quality(name: &str, sample: &Sample, flows: &IndexedFlows, kind: &str, job: fn(u64) -> Job) {
    const JOBS: u64 = 30;
    let d = CrossLayerParams::default;
    let (work_max, routing_steps) = (d().work_max * 50, 2_000);
    let long = CrossLayerParams {
        steps_per_container: 1_000,
        steps_max: 10_000,
        work_max,
        routing_steps,
        restarts: 10,
        ..d()
    };
    let of = |params: &CrossLayerParams, seed| {
        let problem = problem(sample, &job(seed), flows, seed);
        let (ms, placement) = milliseconds(|| place(&CrossLayer::new(params.clone()), &problem));
        (ms, part(&placement, "utility_bits_per_s") - flows_utility(&problem))
    };
    let best: Vec<f64> = (0..JOBS).map(|seed| of(&long, seed).1).collect();
    for (steps, restarts, temperature, shortlist, routing_steps) in [
        (150, 5, 0.03, 32, 100),
        (150, 5, 0.1, 32, 100),
        (150, 5, 0.03, 64, 100),
        (150, 5, 0.03, 32, 0),
        (300, 5, 0.03, 32, 100),
        (600, 5, 0.03, 32, 100),
    ] {
        let (steps_max, initial_temperature) = (steps, temperature);
        let params = CrossLayerParams {
            steps_per_container: steps,
            steps_max,
            restarts,
            initial_temperature,
            shortlist,
            routing_steps,
            ..d()
        };
        let (mut times, mut shares): (Vec<f64>, Vec<f64>) =
            (0..JOBS).map(|seed| of(&params, seed)).zip(&best).map(|((ms, found), best)| (ms, found / best)).unzip();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let (median, ms, slow) = (quantile(&mut shares, 0.5), quantile(&mut times, 0.5), quantile(&mut times, 0.95));
        println!(
            "{name:>9} {kind:>6} steps {steps} restarts {restarts} temperature {temperature} nodes {shortlist} routes {routing_steps}: mean {mean:.3}, median {median:.3}, {ms:.2} and {slow:.2} ms"
        );
    }
}

fn flows_utility(problem: &PlaceProblem<'_>) -> f64 {
    let topology = &*problem.snapshot.topology;
    let network = topology.network.as_deref().expect("a network");
    FlowIndex::of(network, topology, problem.running.expect("running flows")).utility()
}

/// New routes for the pairs on failed links, of some 10,000 pairs that talk.
fn rerouting(name: &str, sample: &Sample) {
    let flows = running(sample, 440);
    let topology = &*sample.snapshot.topology;
    let network = topology.network.as_deref().expect("a network");
    let index = FlowIndex::of(network, topology, &flows);
    let between = |link: &Link| !network.vertex_at(link.a).is_host() && !network.vertex_at(link.b).is_host();
    let inner: Vec<LinkIdx> = network.links().filter(|(_, link)| between(link)).map(|(at, _)| at).collect();
    let (mut times, mut sizes, mut lost, mut won) = (vec![], vec![], vec![], vec![]);
    for round in 0..20 {
        let (mut hit, mut failed) = (BTreeSet::new(), Vec::new());
        for at in 0.. {
            let link = inner[(round * 97 + at * 31) % inner.len()];
            hit.extend(directions(link).into_iter().flat_map(|way| index.pairs_on(way).collect::<Vec<_>>()));
            failed.push(link);
            if hit.len() >= 100 {
                break;
            }
        }
        let mut after = network.clone();
        for &link in &failed {
            after.set_link(link, Some(false), None);
        }
        let after = Topology::new(Some(Arc::new(after)), &sample.snapshot.statics);
        let pairs: Vec<NodePair> = hit.into_iter().take(100).collect();
        let (network, paths) = (after.network.as_deref().expect("a network"), after.paths().expect("a network"));
        let mut index = index.clone();
        let whole = index.utility();
        failed.iter().flat_map(|&link| directions(link)).for_each(|way| index.set_capacity(way, 0.0));
        lost.push(index.utility() / whole);
        let avoid = BTreeSet::new();
        let what = Reroute { network, paths, topology: &after, pairs: &pairs, avoid: &avoid, seed: 1, planned: false };
        let mut never = || false;
        let (ms, changed) = milliseconds(|| reroute(&mut index, &what, &mut Budget::new(2_000, &mut never)));
        times.push(ms);
        sizes.push(changed.len() as f64);
        won.push(index.utility() / whole);
    }
    println!(
        "{name:>9} {} pairs: {} rerouted in {:.2} ms median, {:.2} ms most; utility {:.4} before, {:.4} after",
        flows.routes.len(),
        quantile(&mut sizes, 0.5),
        quantile(&mut times, 0.5),
        quantile(&mut times, 1.0),
        quantile(&mut lost, 0.5),
        quantile(&mut won, 0.5),
    );
}

fn main() {
    let asked = |word: &str| std::env::args().any(|arg| arg == word);
    for large in [false, true] {
        if large && !asked("10000") {
            continue;
        }
        for (name, built) in networks(large) {
            let mut sample = cluster(&built, UNIT.times(4), Bytes(150_000_000));
            sample.occupy(UNIT, 4, 1);
            let (built_ms, _) = milliseconds(|| sample.snapshot.topology.paths().is_some());
            println!("{name}: path table in {built_ms:.0} ms");
            if asked("reroute") {
                rerouting(name, &sample);
                continue;
            }
            let flows = running(&sample, RUNNING);
            for (kind, job) in [("storm", storm_job as fn(u64) -> Job), ("hadoop", drawn_hadoop_job)] {
                if asked("quality") {
                    quality(name, &sample, &flows, kind, job);
                } else if asked("modes") {
                    modes(name, &sample, &flows, kind, job);
                } else {
                    decisions(name, &sample, &flows, kind, job, !large);
                }
            }
        }
    }
}
