//! `cross-layer-jct`: completion times of jobs against random hosts and routes, 1,000 hosts (Figures 12 and 13).

use super::gangs::{cluster, jobs, model, run};
use super::workload::{Kind, Shape, failed};
use crate::reproduce::experiment::texts;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_policy::cross_layer::RunMode;
use std::error::Error;

const NAME: &str = "cross-layer-jct";
/// A gain below this is none: times come from divisions.
const ROUNDING: f64 = 1e-9;

/// Figures 12 and 13: gains in percent at the median and the 75th percentile; percent of jobs made slower and the worst.
const fn paper(kind: Kind, shape: Shape) -> [f64; 4] {
    match (kind, shape) {
        (Kind::Hadoop, Shape::FatTree) => [34.0, 38.0, 27.0, 20.0],
        (Kind::Hadoop, Shape::Jellyfish) => [34.0, 38.0, 18.0, 20.0],
        (Kind::Storm, Shape::FatTree) => [34.0, 41.0, 24.0, 30.0],
        (Kind::Storm, Shape::Jellyfish) => [34.0, 41.0, 16.0, 30.0],
    }
}

const fn hosts(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 60,
        Scale::Full => 1_000,
    }
}

/// Jobs and seconds between two: as many for each host as on the 30 hosts of §4.1 and §4.2.
fn load(kind: Kind, scale: Scale) -> (u32, f64) {
    let gap_s = match kind {
        Kind::Storm => 6.0,
        Kind::Hadoop => 1.0,
    };
    let jobs = match scale {
        Scale::Quick => 100,
        Scale::Full => 1_000,
    };
    (jobs, gap_s * 30.0 / hosts(scale) as f64)
}

/// The experiment.
pub const COMPLETION: Experiment = Experiment {
    name: NAME,
    paper: "000 (Alkaff), §4.3",
    figure: "Figures 12 and 13: completion times of jobs against random hosts and routes",
    settings,
    quick_s: 15,
    full_s: 240,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    let hosts = hosts(scale);
    let load = |kind| {
        let (jobs, gap_s) = load(kind, scale);
        format!("{jobs} {} jobs, one every {gap_s:.3} s", kind.name())
    };
    let mut all = vec![
        ("cluster", format!("{hosts} hosts, 100 MB/s links; smallest fat-tree that holds them, cut down to them; jellyfish of 15-port switches with 5 hosts each (§4.3: 15 links a router, 1,000 hosts)")),
        ("arrivals", format!("{}; {} (§4.3 says none: as many for each host as on 30 hosts in §4.1 and §4.2)", load(Kind::Storm), load(Kind::Hadoop))),
        ("gain", "of each job, 1 - its completion time under both / under random, from submission to end; then quantiles over jobs".to_owned()),
    ];
    all.extend(model());
    texts(all)
}

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (kind, shape) in Kind::ALL.into_iter().flat_map(|kind| Shape::ALL.map(|shape| (kind, shape))) {
        (context.progress)(&format!("{NAME}: {}, {}", kind.name(), shape.name()));
        let found =
            context.per_seed(|seed| measured(kind, shape, context.scale, seed).map_err(|error| failed(NAME, error)))?;
        let values = |value: fn(&[f64]) -> f64| found.iter().map(|gains| value(gains)).collect::<Vec<f64>>();
        let title = |what: &str| format!("{}, {}: {what}", kind.name(), shape.name());
        let [median, upper, slower, worst] = paper(kind, shape);
        rows.push(Row::at_least(&title("gain, median"), median, "%", values(|gains| quantile(gains, 0.5)))?);
        rows.push(Row::at_least(&title("gain, 75th percentile"), upper, "%", values(|gains| quantile(gains, 0.75)))?);
        rows.push(Row::at_most(&title("jobs made slower"), slower, "%", values(slower_share))?);
        rows.push(Row::at_most(
            &title("most that a job is made slower by"),
            worst,
            "%",
            values(|gains| (-gains[0]).max(0.0)),
        )?);
    }
    Ok(rows)
}

/// Percent of the jobs that end later.
fn slower_share(gains: &[f64]) -> f64 {
    100.0 * gains.iter().filter(|gain| **gain < -ROUNDING).count() as f64 / gains.len() as f64
}

/// Of sorted values, at least one: the least that so large a share does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}

/// Gains of all jobs in percent, ascending.
fn measured(kind: Kind, shape: Shape, scale: Scale, seed: u64) -> Result<Vec<f64>, Box<dyn Error + Send + Sync>> {
    let sample = cluster(shape.network(hosts(scale), seed)?, 1.0);
    let (count, gap_s) = load(kind, scale);
    let apps = jobs(kind, count, gap_s, seed);
    let [random, both] = [RunMode::Random, RunMode::Both].map(|mode| run(&sample, mode, &apps, seed));
    let (random, both) = (random?, both?);
    let gain = |(random, both): (f64, f64)| 100.0 * (1.0 - both / random);
    let times = random.apps.iter().zip(&both.apps).map(|(random, both)| (random.completion_s(), both.completion_s()));
    let mut gains: Vec<f64> = times.map(gain).collect();
    gains.sort_by(f64::total_cmp);
    Ok(gains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_slower_jobs_are_counted() {
        let gains = [-50.0, -10.0, 0.0, 20.0, 40.0, 60.0, 80.0, 90.0];
        assert_eq!((quantile(&gains, 0.5), quantile(&gains, 0.75), quantile(&gains, 1.0)), (20.0, 60.0, 90.0));
        assert_eq!(slower_share(&gains), 25.0);
        assert_eq!(quantile(&gains[..1], 0.5), -50.0);
    }
}
