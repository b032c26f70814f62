//! `cross-layer-storm` and `cross-layer-hadoop`: throughput over random placement and routing (Figures 4, 5, 7, 8).

use super::gangs::{cluster, jobs, model, run, throughput};
use super::workload::{Kind, LINK, Shape, failed};
use crate::reproduce::experiment::texts;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_model::network::build::{BuiltNetwork, FatTreeSpec, JellyfishSpec, fat_tree, jellyfish};
use hintd_policy::cross_layer::RunMode;
use std::error::Error;

/// Hosts of the smallest and the largest cluster.
const HOSTS: [usize; 2] = [10, 30];
/// Links of each jellyfish router, one of them to a host: 30 servers and 30 routers (§4.1).
const PORTS: usize = 5;
/// The systems held against random, in the order of [`paper`].
const MODES: [(RunMode, &str); 3] =
    [(RunMode::Both, "both"), (RunMode::Application, "application"), (RunMode::Routing, "routing")];
/// A router in software passes on what one of its links could: its four links to others carry a quarter each.
const SLOW: f64 = 0.25;
const SLOW_SAID: &str = "links between routers carry 25 MB/s, as routers in software may";

/// Figures 4 and 5.
pub const STORM: Experiment = Experiment {
    name: "cross-layer-storm",
    paper: "000 (Alkaff), §4.1",
    figure: "Figures 4 and 5: throughput over random placement and routing, Storm",
    settings: |scale| settings(Kind::Storm, scale),
    quick_s: 15,
    full_s: 90,
    rows: &|name, context| rows_of(Throughput { name, kind: Kind::Storm }, context),
};
/// Figures 7 and 8.
pub const HADOOP: Experiment = Experiment {
    name: "cross-layer-hadoop",
    paper: "000 (Alkaff), §4.2",
    figure: "Figures 7 and 8: throughput over random placement and routing, Hadoop",
    settings: |scale| settings(Kind::Hadoop, scale),
    quick_s: 25,
    full_s: 300,
    rows: &|name, context| rows_of(Throughput { name, kind: Kind::Hadoop }, context),
};

/// Of one kind of job.
#[derive(Clone, Copy)]
struct Throughput {
    name: &'static str,
    kind: Kind,
}

/// Percent over random: both, application, routing; none: not printed.
const fn paper(kind: Kind, shape: Shape, hosts: usize) -> [Option<f64>; 3] {
    match (kind, shape, hosts) {
        (Kind::Storm, Shape::FatTree, 10) => [Some(13.0), Some(7.5), Some(9.1)],
        (Kind::Storm, Shape::FatTree, _) => [Some(30.0), Some(21.1), Some(22.7)],
        (Kind::Storm, Shape::Jellyfish, 10) => [Some(18.1), Some(10.9), Some(14.5)],
        (Kind::Storm, Shape::Jellyfish, _) => [Some(34.1), Some(21.2), Some(23.1)],
        (Kind::Hadoop, Shape::FatTree, 10) => [Some(22.3), Some(7.5), Some(9.0)],
        (Kind::Hadoop, Shape::FatTree, _) => [Some(26.0), None, None],
        (Kind::Hadoop, Shape::Jellyfish, 10) => [None, None, None],
        (Kind::Hadoop, Shape::Jellyfish, _) => [Some(31.9), Some(18.8), Some(25.5)],
    }
}

/// Jobs and seconds between two: 10 a minute, or one a second, for 10 minutes.
const fn load(kind: Kind, scale: Scale) -> (u32, f64) {
    match (kind, scale) {
        (Kind::Storm, Scale::Full) => (100, 6.0),
        (Kind::Storm, Scale::Quick) => (20, 6.0),
        (Kind::Hadoop, Scale::Full) => (600, 1.0),
        (Kind::Hadoop, Scale::Quick) => (60, 1.0),
    }
}

fn network(shape: Shape, hosts: usize, seed: u64) -> Result<BuiltNetwork, Box<dyn Error + Send + Sync>> {
    Ok(match shape {
        Shape::FatTree => fat_tree(&FatTreeSpec { k: 6, hosts: Some(hosts), bits_per_s: LINK })?,
        Shape::Jellyfish => {
            let to_switches = PORTS - 1;
            let spec =
                JellyfishSpec { switches: hosts, ports: PORTS, to_switches, bits_per_s: LINK, seed, hosts: None };
            jellyfish(&spec)?
        }
    })
}

fn settings(kind: Kind, scale: Scale) -> Vec<(String, String)> {
    let (count, gap_s) = load(kind, scale);
    let mut all = vec![
        (
            "clusters",
            format!(
                "10 and 30 hosts, 100 MB/s links (§4.1); fat-tree of k = 6, cut down to the hosts (§4: 5 links a router, which no fat-tree has); jellyfish of {PORTS}-port routers, one host each (§4.1: 30 servers and 30 routers)"
            ),
        ),
        ("arrivals", format!("{count} jobs, one every {gap_s} s (the paper: for 10 minutes)")),
        (
            "throughput",
            "what sinks get: bytes that reach them ÷ seconds that jobs run, so the mean of running jobs over time"
                .to_owned(),
        ),
    ];
    all.extend(model());
    texts(all)
}

fn rows_of(of: Throughput, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let (mut figures, mut others) = (Vec::new(), Vec::new());
    for (shape, hosts) in Shape::ALL.into_iter().flat_map(|shape| HOSTS.map(|hosts| (shape, hosts))) {
        (context.progress)(&format!("{}: {}, {hosts} hosts", of.name, shape.name()));
        let measure = |part| context.per_seed(|seed| of.measured(&Cluster { shape, hosts, part }, context.scale, seed));
        let (base, slow) = (measure(1.0)?, measure(SLOW)?);
        let title = |what: &str| format!("{}, {hosts} hosts: {what}", shape.name());
        for (at, (_, mode)) in MODES.into_iter().enumerate() {
            let gains = |found: &[[f64; 4]]| found.iter().map(|one| (one[at + 1] / one[0] - 1.0) * 100.0).collect();
            match paper(of.kind, shape, hosts)[at] {
                Some(figure) => {
                    let row = Row::at_least(&title(mode), figure, "%", gains(&base))?;
                    others.push(Row::assumption(&row, SLOW_SAID, gains(&slow))?);
                    figures.push(row);
                }
                None => others.push(Row::without_figure(&title(mode), "%", gains(&base))?),
            }
        }
        let random = base.iter().map(|one| one[0] / 1e6).collect();
        others.push(Row::without_figure(&title("random"), "MB/s", random)?);
    }
    figures.extend(others);
    Ok(figures)
}

/// A cluster by its parts.
struct Cluster {
    shape: Shape,
    hosts: usize,
    /// Capacity of links between routers against the stated one.
    part: f64,
}

impl Throughput {
    /// Bytes a second under random, both, application, routing.
    fn measured(self, on: &Cluster, scale: Scale, seed: u64) -> Result<[f64; 4], ReproduceError> {
        let all = || -> Result<[f64; 4], Box<dyn Error + Send + Sync>> {
            let sample = cluster(network(on.shape, on.hosts, seed)?, on.part);
            let (count, gap_s) = load(self.kind, scale);
            let apps = jobs(self.kind, count, gap_s, seed);
            let mut found = [0.0; 4];
            let modes = [RunMode::Random].into_iter().chain(MODES.map(|(mode, _)| mode));
            for (found, mode) in found.iter_mut().zip(modes) {
                *found = throughput(&apps, &run(&sample, mode, &apps, seed)?);
            }
            Ok(found)
        };
        all().map_err(|error| failed(self.name, error))
    }
}
