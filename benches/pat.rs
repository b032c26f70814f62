//! `pat`'s protocol from 1,000 to 100,000 containers, ten to a server: time, and what it takes for each container.

#![allow(clippy::print_stdout)] // a table for the person who runs it

use criterion::{BenchmarkId, Criterion, Throughput};
use hintd_policy::pat::sample::{Drawn, drawn};
use std::hint::black_box;
use std::time::Instant;

/// Containers under way at a time, as in the policy.
const WINDOW: usize = 64;
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn field(containers: usize) -> Drawn {
    drawn(containers, containers / 10, 1).expect("fat-trees of 128 ports have more hosts")
}

fn counts() {
    for containers in SIZES {
        let field = field(containers);
        let start = Instant::now();
        let played = field.play(WINDOW);
        let each = |count: u64| count as f64 / containers as f64;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{containers} containers: {seconds:.2} s, {:.1} us, {:.2} messages, {:.2} moves, {:.4} races each; cost -{:.1} %",
            seconds * 1e6 / containers as f64,
            each(played.messages),
            each(played.moves),
            each(played.races),
            100.0 * (1.0 - played.after as f64 / played.before as f64),
        );
    }
}

fn main() {
    counts();
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group("pat");
    for containers in SIZES {
        let field = field(containers);
        group.throughput(Throughput::Elements(containers as u64));
        group.bench_with_input(BenchmarkId::new("until_quiet", containers), &field, |b, field| {
            b.iter(|| black_box(field.play(WINDOW)));
        });
    }
    group.finish();
    criterion.final_summary();
}
