//! `jobpacker`'s and `corral`'s planners from 1,000 jobs on 20 racks to 10,000 on 200, jobs drawn like Facebook's of
//! 2010: time, and how it grows with jobs and with racks.

#![allow(clippy::print_stdout)] // a table for the person who runs it

use criterion::{BenchmarkId, Criterion, Throughput};
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};
use hintd_policy::Budget;
use hintd_policy::jobpacker::offline::latency::ShuffleTerm;
use hintd_policy::jobpacker::offline::{Placing, Rules, plan};
use hintd_policy::plan::{Circuits, ExpectedJob, Fabric, NodeLinks, Objective, PlanProblem, RackRoom};
use hintd_simulator::{JobModel, SwimJob, Task, TraceShape, generate};
use std::hint::black_box;
use std::time::Instant;

const GB: u64 = 1_000_000_000;
const SIZES: [(u32, usize); 6] = [(1_000, 20), (2_000, 40), (5_000, 100), (10_000, 200), (10_000, 20), (1_000, 200)];
const RULES: [Rules; 2] = [
    Rules {
        policy: "jobpacker",
        placing: Placing::Packed,
        sub_batches: 5,
        over_provisioning: 0.0,
        term: ShuffleTerm::ByWidth,
        round: Some(Micros::from_secs(1)),
        forecast: Some(0.7),
    },
    Rules {
        policy: "corral",
        placing: Placing::Together,
        sub_batches: 1,
        over_provisioning: 0.0,
        term: ShuffleTerm::Printed,
        round: Some(Micros::ZERO),
        forecast: None,
    },
];

/// The racks and rates of 004 §4.3.1.
fn problem(jobs: u32, racks: usize, objective: Objective) -> PlanProblem {
    let span = Micros::from_secs(5_400);
    let model = JobModel { sigma: 0.0, ..JobModel::default() };
    let expected = |(at, job): (usize, SwimJob)| {
        let (maps, reduces) = (model.maps(job.input), model.reduces(job.shuffle, job.output));
        let time = |task, bytes: Bytes| model.task_time(at as u64, task, bytes);
        ExpectedJob {
            key: job.name,
            run: 0,
            arrival: Timestamp(if objective == Objective::Batch { 0 } else { job.submit.0 }),
            input: job.input,
            maps: (maps.min(100_000) as u32, time(Task::Map(0), model.map_input(job.input, 0))),
            reduces: (reduces as u32, time(Task::Reduce(0), model.reduce_input(job.shuffle, job.output, 0))),
            shuffle: job.shuffle,
        }
    };
    let jobs =
        generate(&TraceShape { jobs, span, paths: false, seed: 7 }).into_iter().enumerate().map(expected).collect();
    let rack = |at: usize| RackRoom { rack: format!("/rack{at}").into(), containers: 600 };
    PlanProblem {
        racks: (0..racks).map(rack).collect(),
        fabric: Fabric {
            uplink: BitsPerSec(30 * GB),
            circuits: Some(Circuits::new(BitsPerSec(100 * GB), Micros::from_millis(10))),
            nodes: Some(NodeLinks { rate: BitsPerSec(10 * GB), per_rack: 30 }),
        },
        jobs,
        objective,
        made: Timestamp(0),
        from: Timestamp(0),
        until: Timestamp(86_400_000_000),
        prediction_error: None,
        seed: 1,
    }
}

fn once() {
    for rules in RULES {
        for objective in [Objective::Batch, Objective::Online] {
            for (jobs, racks) in SIZES {
                let problem = problem(jobs, racks, objective);
                let start = Instant::now();
                let mut never = || false;
                let plan = plan(&problem, &rules, &Budget::new(0, &mut never)).expect("the problem can be meant");
                let seconds = start.elapsed().as_secs_f64();
                let (circuit, all) = plan.circuit_bytes();
                println!(
                    "{:9} {objective:?} {jobs} jobs, {racks} racks: {seconds:.3} s, {} heavy, makespan {:.0} s, mean {:.1} s, {:.1} % on circuits",
                    rules.policy,
                    plan.jobs.iter().filter(|job| job.heavy).count(),
                    plan.makespan().as_secs_f64(),
                    plan.mean_completion().as_secs_f64(),
                    100.0 * circuit.as_f64() / all.as_f64().max(1.0),
                );
            }
        }
    }
}

fn main() {
    once();
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group("jobpacker");
    for (jobs, racks) in SIZES {
        let problem = problem(jobs, racks, Objective::Batch);
        group.throughput(Throughput::Elements(jobs.into()));
        group.bench_with_input(BenchmarkId::new("plan", format!("{jobs}x{racks}")), &problem, |b, problem| {
            b.iter(|| black_box(plan(problem, &RULES[0], &Budget::new(0, &mut || false))));
        });
    }
    group.finish();
    criterion.final_summary();
}
