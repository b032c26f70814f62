//! Placement: one request on clusters of 1,000, 5,000 and 10,000 nodes, half full, by policy and gang.
//!
//! `cargo bench --bench placement`; set `POLICY_QUALITY=1` to print costs by steps instead.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{FatTreeSpec, fat_tree};
use hintd_model::units::{Bytes, NodeIdx};
use hintd_policy::container::{Container, ContainerParams};
use hintd_policy::problem::{Anchor, PlaceProblem};
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, Definition, Placement, Policy, evaluate, registry};
use std::hint::black_box;
use std::time::Instant;

const UNIT: Resource = Resource::new(1024, 1);

/// (hosts, ports): the smallest fat-tree with so many hosts.
const CLUSTERS: [(usize, usize); 3] = [(1_000, 16), (5_000, 28), (10_000, 36)];

fn half_full(hosts: usize, k: usize) -> Sample {
    let spec = FatTreeSpec { k, hosts: Some(hosts), ..FatTreeSpec::default() };
    let mut sample = cluster(&fat_tree(&spec).expect("a whole number of pods"), UNIT.times(8), Bytes(150_000_000));
    sample.occupy(UNIT, 8, 1);
    sample
}

fn request(sample: &Sample, gang: u32) -> PlaceProblem<'_> {
    let mut group = sample.group("workers", gang, UNIT);
    group.input = sample.input(64, Bytes(128 << 20), 3);
    let am = Anchor { node: NodeIdx(17), count: 1 };
    sample.problem(vec![group], vec![], vec![am])
}

fn place(policy: &dyn Policy, problem: &PlaceProblem<'_>) -> Placement {
    let mut never = || false;
    let place = policy.as_place().expect("a policy that places");
    // Searches end by themselves here, as the figures in docs/performance.md do; the daemon grants `DEFAULT_STEPS`.
    place.place(problem, &mut Budget::new(u64::MAX, &mut never)).expect("no source is missing")
}

/// Costs and times by parameters, over 20 requests: what the defaults of `container` were chosen by.
#[allow(clippy::print_stdout)] // a table for the person who runs it
fn quality() {
    let sample = half_full(5_000, 28);
    for gang in [4, 12, 40] {
        for (steps, rounds, start, shortlist) in [
            (1, 1, 0.3, 256),
            (50, 4, 0.3, 256),
            (100, 2, 0.3, 256),
            (100, 4, 0.3, 256),
            (100, 4, 0.1, 256),
            (100, 4, 0.6, 256),
            (200, 4, 0.3, 128),
            (200, 4, 0.3, 256),
            (200, 4, 0.3, 512),
            (1000, 4, 0.3, 256),
            (20_000, 4, 0.3, 1024),
        ] {
            let params = ContainerParams {
                steps_per_container: steps,
                steps_max: u64::MAX,
                rounds,
                start_temperature: start,
                end_temperature: start / 100.0,
                shortlist,
                ..ContainerParams::default()
            };
            let policy = Container::new(params);
            let began = Instant::now();
            let costs: Vec<f64> = (0..20)
                .map(|seed| {
                    let mut group = sample.group("workers", gang, UNIT);
                    group.input = sample.input(16 << (seed % 4), Bytes(128 << 20), seed);
                    let problem = sample.problem(vec![group], vec![], vec![]);
                    place(&policy, &problem).objective
                })
                .collect();
            let mean = costs.iter().sum::<f64>() / costs.len() as f64;
            let each = began.elapsed() / 20;
            println!(
                "gang {gang} steps {steps} rounds {rounds} start {start} shortlist {shortlist}: {mean:.5} in {each:?}"
            );
        }
    }
}

fn placement(c: &mut Criterion) {
    if std::env::var_os("POLICY_QUALITY").is_some() {
        return quality();
    }
    for (hosts, k) in CLUSTERS {
        let sample = half_full(hosts, k);
        for entry in registry::entries() {
            let policy = registry::with_defaults(entry.name).expect("registered");
            let mut group = c.benchmark_group(format!("{}/{hosts}", entry.name));
            for gang in [1, 12, 100] {
                let problem = request(&sample, gang);
                group.bench_with_input(BenchmarkId::from_parameter(gang), &problem, |b, problem| {
                    b.iter(|| black_box(place(&*policy, problem)));
                });
            }
            group.finish();
        }
        let problem = request(&sample, 12);
        let placed = place(&*registry::with_defaults("container").expect("registered"), &problem);
        c.bench_function(&format!("terms/{hosts}/12"), |b| b.iter(|| black_box(evaluate(&problem, &placed))));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(200));
    targets = placement
}
criterion_main!(benches);
