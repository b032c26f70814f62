//! Placement: one request on clusters of 1,000, 5,000 and 10,000 nodes, half full, by policy and gang.
//!
//! `cargo bench --bench placement`; set `POLICY_QUALITY=1` to print costs by steps instead.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hintd::cluster::Resource;
use hintd::network::build::{FatTreeSpec, fat_tree};
use hintd::policy::problem::{Anchor, PlaceProblem};
use hintd::policy::sample::{Sample, cluster};
use hintd::policy::{Budget, Placement, Policy, evaluate, registry};
use hintd::units::{Bytes, NodeIdx};
use std::hint::black_box;

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
    place.place(problem, &mut Budget::new(u64::MAX, &mut never)).expect("no source is missing")
}

fn placement(c: &mut Criterion) {
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
