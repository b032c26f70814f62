//! Publishing 10,000 nodes with ten containers each, beside copying the columns that a snapshot has of its own.
//!
//! `cargo bench --bench publish`. `model` is the snapshot alone; `engine` is a generation after 50 heartbeats, what
//! 10,000 nodes send in 5 ms, with what follows from them for leases; `copy` is the three columns.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hintd_engine::{Engine, EngineSettings, Rows};
use hintd_model::cluster::{
    Change, Heartbeat, Model, NamedContainer, NamedResource, NodeState, Registration, SizeRules,
};
use hintd_model::units::{Bytes, HostName, SchedulerKey, Timestamp};
use std::hint::black_box;

const NODES: usize = 10_000;
const CONTAINERS: usize = 10;
const NOW: Timestamp = Timestamp(1_000_000);

fn amount(memory_mb: u64, vcores: u64) -> NamedResource {
    NamedResource { memory_mb, vcores, named: Vec::new() }
}

fn host(node: usize) -> HostName {
    HostName::from(format!("node-{node:05}").as_str())
}

fn register(node: usize) -> Change {
    Change::Register(Registration {
        host: host(node),
        rack: format!("/rack-{:03}", node / 40).as_str().into(),
        total: amount(131_072, 64),
        labels: Vec::new(),
        aliases: Vec::new(),
        attributes: Default::default(),
        class: "".into(),
        disk_read: Bytes(0),
        state: NodeState::Running,
    })
}

/// A report whose last container is another one each round.
fn heartbeat(node: usize, round: usize) -> Change {
    let container = |slot: usize| {
        let number = if slot == 0 { 100 + round } else { slot };
        let id = format!("container_1700000000000_{:04}_01_{:06}", node, number);
        let key = SchedulerKey { priority: 20, allocation_request_id: -1 };
        NamedContainer { id: id.parse().expect("as YARN writes it"), size: amount(1024, 1), key }
    };
    Change::Heartbeat(Heartbeat {
        host: host(node),
        used: amount(1024 * CONTAINERS as u64, CONTAINERS as u64),
        used_is_running: true,
        containers: Some((0..CONTAINERS).map(container).collect()),
        state: NodeState::Running,
    })
}

fn publish(c: &mut Criterion) {
    let mut model = Model::new(SizeRules::default());
    let mut engine = Engine::new(EngineSettings::default(), SizeRules::default(), Rows::default(), NOW)
        .expect("an empty journal is readable")
        .0;
    for node in 0..NODES {
        for change in [register(node), heartbeat(node, 0)] {
            model.apply(change.clone(), NOW).expect("a plain fact");
            engine.change(change, NOW).expect("a plain fact");
        }
    }
    let snapshot = model.publish(NOW);
    let mut held = engine.publish(NOW);
    let mut group = c.benchmark_group(format!("publish/{NODES}"));
    group.bench_function("copy", |b| {
        b.iter(|| black_box((snapshot.state.clone(), snapshot.occupied.clone(), snapshot.containers.clone())));
    });
    group.bench_function("model", |b| b.iter(|| black_box(model.publish(NOW))));
    let mut round = 0;
    group.bench_function("engine", |b| {
        b.iter_batched(
            || {
                round += 1;
                (0..50).map(|at| heartbeat((round * 50 + at) % NODES, round)).collect::<Vec<_>>()
            },
            |changes| {
                changes.into_iter().for_each(|change| engine.change(change, NOW).expect("a plain fact"));
                held = engine.publish(NOW);
                drop(engine.take_effects());
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).measurement_time(std::time::Duration::from_secs(2))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = publish
}
criterion_main!(benches);
