//! Jobs of 000 in virtual time: the four systems of its figures on one cluster and one list of jobs.

use super::workload::{Kind, SLOTS, UNIT, on};
use crate::gangs::{GangApp, GangError, GangGroup, GangReport, GangRun, GangSettings, Phase, simulate};
use crate::trace::generate::{TraceShape, generate};
use hintd_model::network::Tier;
use hintd_model::network::build::BuiltNetwork;
use hintd_model::units::{BitsPerSec, Bytes, Micros};
use hintd_policy::Definition;
use hintd_policy::cross_layer::sample::{Job, hadoop_job, storm_job};
use hintd_policy::cross_layer::{CrossLayer, CrossLayerParams, RunMode};
use hintd_policy::sample::Sample;
use std::sync::Arc;

/// §4.2: 100 B to 10 GB.
const SHUFFLES: std::ops::RangeInclusive<u64> = 100..=10_000_000_000;
/// Above this a Hadoop job has more tasks; the counts are assumed.
const LARGE: u64 = 1_000_000_000;

/// `count` jobs, one every `gap_s` seconds; all that a job's tasks do is to pass on what they get, all at once.
pub(super) fn jobs(kind: Kind, count: u32, gap_s: f64, seed: u64) -> Vec<GangApp> {
    let drawn: Vec<Job> = match kind {
        Kind::Storm => (0..u64::from(count)).map(|number| storm_job(1_000_000 * seed + number)).collect(),
        Kind::Hadoop => shuffles(count, seed).into_iter().map(hadoop).collect(),
    };
    (0..).zip(drawn).map(|(number, job)| app(&job, f64::from(number) * gap_s)).collect()
}

fn app(job: &Job, submit_s: f64) -> GangApp {
    let group = |(name, count): &(String, u32)| GangGroup {
        name: name.as_str().into(),
        count: *count,
        size: UNIT,
        input: Arc::default(),
    };
    GangApp {
        submit_s,
        master: None,
        groups: job.groups.iter().map(group).collect(),
        edges: job.edges.clone(),
        phases: vec![Phase::Exchange(job.edges.clone())],
    }
}

fn hadoop(bytes: u64) -> Job {
    let (maps, reduces) = if bytes > LARGE { (16, 8) } else { (4, 4) };
    hadoop_job(maps, reduces, Bytes(bytes))
}

/// Shuffles of a trace like SWIM's FB-2010, those from 100 B to 10 GB.
fn shuffles(count: u32, seed: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut part = 0;
    while found.len() < count as usize {
        let shape = TraceShape { jobs: count, span: Micros::from_secs(600), paths: false, seed: 1_000 * seed + part };
        found.extend(generate(&shape).iter().map(|job| job.shuffle.0).filter(|bytes| SHUFFLES.contains(bytes)));
        part += 1;
    }
    found.truncate(count as usize);
    found
}

/// The cluster, its links between routers at a part of their capacity.
pub(super) fn cluster(mut built: BuiltNetwork, part: f64) -> Sample {
    let tier = |network: &hintd_model::network::Network, end| {
        network.vertex_at(end).tier().is_some_and(|tier| tier != Tier::Optical)
    };
    let network = &built.network;
    let between = network.links().filter(|(_, link)| tier(network, link.a) && tier(network, link.b));
    let between: Vec<_> = between.map(|(at, link)| (at, link.capacity)).collect();
    for (at, capacity) in between {
        built.network.set_link(at, None, Some(BitsPerSec((capacity.as_f64() * part) as u64)));
    }
    on(&built)
}

/// One system's run.
pub(super) fn run(sample: &Sample, mode: RunMode, apps: &[GangApp], seed: u64) -> Result<GangReport, GangError> {
    let placer = CrossLayer::new(CrossLayerParams { mode, ..CrossLayerParams::default() });
    let local_bits_per_s = super::workload::LINK.as_f64();
    let settings = GangSettings { seed, local_bits_per_s, ..GangSettings::default() };
    simulate(&GangRun { cluster: &sample.snapshot, placer: &placer, settings }, apps)
}

/// What the sinks of the jobs that run get, the mean over running jobs and time, bytes a second: all bytes that reach
/// sinks ÷ all seconds that jobs run.
pub(super) fn throughput(apps: &[GangApp], report: &GangReport) -> f64 {
    let bytes: f64 = apps.iter().map(to_sinks).sum();
    let seconds: f64 = report.apps.iter().map(|app| app.run_s()).sum();
    bytes / seconds
}

/// Bytes of the edges into groups that send to nobody.
fn to_sinks(app: &GangApp) -> f64 {
    let sends = |group| app.edges.iter().any(|edge| edge.from == group);
    app.edges.iter().filter(|edge| !sends(edge.to)).map(|edge| edge.bytes.as_f64()).sum()
}

/// What every entry says of its model.
pub(super) fn model() -> Vec<(&'static str, String)> {
    vec![
        ("hosts", format!("{SLOTS} containers each (assumed)")),
        ("jobs", "Storm: two spouts of 1 to 100 MB, ten bolts that pass on all they get, children N(2, 2) (§4.1); Hadoop: shuffles of a trace like SWIM's FB-2010, those of 100 B to 10 GB, 4 maps and 4 reduces up to 1 GB, 16 and 8 above (§4.2, counts assumed)".to_owned()),
        ("time", "all pairs of tasks of a job send at once, each a max-min fair flow; tasks on one host at the rate of its NIC (Algorithm 1); jobs wait, first come first served, until all their containers find room; a decision takes no time".to_owned()),
        ("systems", "cross_layer in its modes: random hosts and routes; application: hosts searched, routes drawn; routing: hosts drawn, routes searched; both. A pair of hosts that a running job uses keeps its route".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::network::build::{FatTreeSpec, fat_tree};

    #[test]
    fn jobs_come_one_after_another_with_the_papers_bytes() {
        let hadoop = jobs(Kind::Hadoop, 50, 1.0, 3);
        assert_eq!((hadoop.len(), hadoop[49].submit_s), (50, 49.0));
        assert!(hadoop.iter().all(|app| SHUFFLES.contains(&app.exchanged().0)));
        assert_ne!(jobs(Kind::Hadoop, 50, 1.0, 4), hadoop);
        assert_eq!(jobs(Kind::Storm, 3, 6.0, 1).iter().map(|app| app.submit_s).collect::<Vec<_>>(), [0.0, 6.0, 12.0]);
    }

    #[test]
    fn throughput_counts_what_reaches_sinks_while_jobs_run() {
        let apps = jobs(Kind::Hadoop, 4, 1.0, 1);
        let sample = cluster(
            fat_tree(&FatTreeSpec { k: 4, hosts: None, bits_per_s: super::super::workload::LINK }).unwrap(),
            1.0,
        );
        let report = run(&sample, RunMode::Both, &apps, 1).unwrap();
        let bytes: f64 = apps.iter().map(|app| app.exchanged().as_f64()).sum();
        let seconds: f64 = report.apps.iter().map(|app| app.end_s - app.start_s).sum();
        assert_eq!(throughput(&apps, &report), bytes / seconds, "a Hadoop job's reduces are its sinks");
    }
}
