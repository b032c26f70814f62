//! `cross-layer-failure`: a tenth of the links in use fails and returns (Figures 6 and 9).

use super::workload::{Kind, LINK, SLOTS, UNIT, failed, on, place, problem, start};
use crate::cluster::{NodePair, RunningFlows, Topology};
use crate::network::build::{JellyfishSpec, jellyfish};
use crate::network::maxmin::directions;
use crate::network::{Network, Tier};
use crate::policy::cross_layer::sample::{Job, hadoop_job};
use crate::policy::cross_layer::{CrossLayer, Reroute, reroute};
use crate::policy::sample::Sample;
use crate::policy::{Budget, FlowIndex};
use crate::reproduce::{Experiment, Outcome, ReproduceError, Row, RunContext, Scale};
use crate::units::{Bytes, DirectedLinkIdx, LinkIdx};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

const NAME: &str = "cross-layer-failure";
/// Servers and routers, §4.1.
const SWITCHES: usize = 30;
/// Links of each router to others; the paper does not say.
const TO_SWITCHES: usize = 4;
/// Jobs that run.
const JOBS: u64 = 5;
/// Steps of improvement: the engine's default.
const STEPS: u64 = 2_000;
/// Shuffle of a WordCount job; utility hangs on who sends, not on how much.
const SHUFFLE: Bytes = Bytes(1_000_000_000);

/// The experiment.
#[derive(Debug)]
pub struct Failure;

impl Experiment for Failure {
    fn name(&self) -> &'static str {
        NAME
    }

    fn paper(&self) -> &'static str {
        "000 (Alkaff), §4.1 and §4.2"
    }

    fn figure(&self) -> &'static str {
        "Figures 6 and 9: throughput when a tenth of the links in use fails and returns"
    }

    fn settings(&self, _: Scale) -> Vec<(String, String)> {
        [
            ("cluster", format!("jellyfish of {SWITCHES} servers and {SWITCHES} routers (§4.1), {TO_SWITCHES} links of each router to others (assumed), 100 MB/s")),
            ("hosts", format!("{SLOTS} containers each (assumed)")),
            ("jobs", format!("{JOBS} Storm topologies (§4.1), or {JOBS} WordCount jobs of 4 maps and 4 reduces (§4.2), placed one after another by cross_layer")),
            ("failure", "a tenth, rounded up, of the links between routers that a job uses, drawn by seed; a server's one link is left, without it no route would help".to_owned()),
            ("throughput", "utility of Algorithm 1: what the sinks get, every task pair an equal share of each link".to_owned()),
            ("time", "from the network's change to new routes: distances and path table followed, hit pairs routed anew, 2,000 steps of improvement at most; without the way to the switches, which the paper's time has".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn expected_s(&self, _: Scale) -> u64 {
        5
    }

    /// Both scales are the paper's: it is small. Times are taken one after another, whatever the context's threads.
    fn run(&self, context: &RunContext<'_>) -> Result<Outcome, ReproduceError> {
        let mut rows = Vec::new();
        for (kind, [after, repaired, seconds]) in Kind::ALL.into_iter().zip([[6.8, 2.0, 0.4], [4.7, 1.5, 0.35]]) {
            let mut measured = Vec::with_capacity(context.seeds.len());
            for &seed in context.seeds {
                measured.push(measure(kind, seed).map_err(|error| failed(NAME, error))?);
            }
            let values = |value: fn(&Measured) -> f64| measured.iter().map(value).collect::<Vec<f64>>();
            let title = |what: &str| format!("{}: {what}", kind.name());
            rows.push(Row::at_most(&title("lost after new routes"), after, "%", values(|one| one.lost(one.rerouted)))?);
            rows.push(Row::at_most(&title("lost after repair"), repaired, "%", values(|one| one.lost(one.repaired)))?);
            let no_figure = |what: &str, unit: &str, value| -> Result<Row, ReproduceError> {
                let row = Row::at_least(&title(what), 0.0, unit, values(value))?.beside();
                Ok(Row { note: "the paper prints no figure".to_owned(), ..row })
            };
            rows.push(no_figure("lost at the failure, before new routes", "%", |one| one.lost(one.cut))?);
            rows.push(no_figure("throughput before", "Gbit/s", |one| one.before / 1e9)?);
            rows.push(no_figure("links failed", "links", |one| one.links as f64)?);
            rows.push(no_figure("pairs of nodes hit", "% of all", |one| one.hit)?);
            let time = Row::at_most(&title("time to new routes"), seconds, "s", values(|one| one.reroute_s))?.beside();
            rows.push(Row { note: "beside: ours is without the way to the switches".to_owned(), ..time });
            rows.push(no_figure("time to the old routes after repair", "s", |one| one.return_s)?);
        }
        Ok(Outcome { rows })
    }
}

/// One seed's run. Utilities are of all jobs, bits/s.
struct Measured {
    before: f64,
    /// With the routes of before.
    cut: f64,
    rerouted: f64,
    repaired: f64,
    links: usize,
    /// Percent of the pairs that talk.
    hit: f64,
    reroute_s: f64,
    return_s: f64,
}

impl Measured {
    /// Percent of the throughput before that `now` lacks.
    fn lost(&self, now: f64) -> f64 {
        (1.0 - now / self.before) * 100.0
    }
}

fn job(kind: Kind, seed: u64) -> Job {
    match kind {
        Kind::Storm => kind.job(seed),
        Kind::Hadoop => hadoop_job(4, 4, SHUFFLE),
    }
}

/// A cluster and its jobs, placed one after another.
fn running(kind: Kind, seed: u64) -> Result<(Sample, RunningFlows), Box<dyn Error + Send + Sync>> {
    let ports = TO_SWITCHES + 1;
    let spec = JellyfishSpec {
        switches: SWITCHES,
        ports,
        to_switches: TO_SWITCHES,
        bits_per_s: LINK,
        seed,
        ..JellyfishSpec::default()
    };
    let mut sample = on(&jellyfish(&spec)?);
    let mut flows = RunningFlows::default();
    for number in 0..JOBS {
        let job = job(kind, JOBS * seed + number);
        let placement = place(&CrossLayer::default(), &problem(&sample, &job, &flows, seed))?;
        start(&mut flows, number, &job, &placement)?;
        for share in placement.groups.iter().flatten() {
            let occupied = &mut sample.snapshot.occupied[share.node.at()];
            *occupied = occupied.plus(&UNIT.times(u64::from(share.count)));
        }
    }
    Ok((sample, flows))
}

fn measure(kind: Kind, seed: u64) -> Result<Measured, Box<dyn Error + Send + Sync>> {
    let (sample, flows) = running(kind, seed)?;
    let topology = &*sample.snapshot.topology;
    let network = topology.network.as_deref().ok_or("the cluster has no network")?;
    let mut index = FlowIndex::of(network, topology, &flows);
    let before = index.utility();
    let links = drawn(network, &index, seed);
    let pairs: BTreeSet<NodePair> = both_ways(&links).flat_map(|at| index.pairs_on(at).collect::<Vec<_>>()).collect();
    let pairs: Vec<NodePair> = pairs.into_iter().collect();
    let homes: Vec<Vec<DirectedLinkIdx>> =
        pairs.iter().map(|pair| index.route(*pair).unwrap_or(&[]).to_vec()).collect();
    let mut talking: Vec<NodePair> =
        flows.jobs.iter().flat_map(|job| job.traffic.flows.iter().map(|flow| flow.pair)).collect();
    talking.sort_unstable();
    talking.dedup();
    let mut still = index.clone();
    set(&mut still, &links, 0.0);

    let nodes = &sample.snapshot.statics;
    let began = Instant::now();
    let without = topology.follow(Arc::new(with(network, &links, false)), &links, nodes);
    set(&mut index, &links, 0.0);
    route(&mut index, &without, &pairs, (seed, false))?;
    let reroute_s = began.elapsed().as_secs_f64();
    let rerouted = index.utility();

    let began = Instant::now();
    let again = without.follow(Arc::new(with(network, &links, true)), &links, nodes);
    set(&mut index, &links, LINK.as_f64());
    index.hold();
    for (pair, home) in pairs.iter().zip(&homes) {
        index.set_route(*pair, Some(home));
    }
    index.settle();
    route(&mut index, &again, &pairs, (seed, true))?;
    let return_s = began.elapsed().as_secs_f64();
    let hit = 100.0 * pairs.len() as f64 / talking.len().max(1) as f64;
    let (cut, repaired) = (still.utility(), index.utility());
    Ok(Measured { before, cut, rerouted, repaired, links: links.len(), hit, reroute_s, return_s })
}

/// A tenth, rounded up, of the links between switches that carry traffic.
fn drawn(network: &Network, index: &FlowIndex, seed: u64) -> Vec<LinkIdx> {
    let tier = |end| network.vertex_at(end).tier() == Some(Tier::Edge);
    let between = network.links().filter(|(_, link)| tier(link.a) && tier(link.b)).map(|(at, _)| at);
    let mut used: Vec<LinkIdx> = between.filter(|&at| directions(at).iter().any(|at| index.load(*at) > 0)).collect();
    used.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    used.truncate(used.len().div_ceil(10));
    used.sort_unstable();
    used
}

fn with(network: &Network, links: &[LinkIdx], up: bool) -> Network {
    let mut network = network.clone();
    for &link in links {
        network.set_link(link, Some(up), None);
    }
    network
}

fn both_ways(links: &[LinkIdx]) -> impl Iterator<Item = DirectedLinkIdx> {
    links.iter().flat_map(|&link| directions(link))
}

fn set(index: &mut FlowIndex, links: &[LinkIdx], bits_per_s: f64) {
    index.hold();
    both_ways(links).for_each(|link| index.set_capacity(link, bits_per_s));
    index.settle();
}

/// The routing level as the engine runs it, for these pairs alone.
fn route(
    index: &mut FlowIndex,
    topology: &Topology,
    pairs: &[NodePair],
    (seed, planned): (u64, bool),
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let network = topology.network.as_deref().ok_or("the network is gone")?;
    let paths = topology.paths().ok_or("the network has no path table")?;
    let nothing = BTreeSet::new();
    let mut never = || false;
    let what = Reroute { network, paths, topology, pairs, avoid: &nothing, seed, planned };
    reroute(index, &what, &mut Budget::new(STEPS, &mut never));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_routes_are_never_worse_than_none_and_the_old_ones_return() {
        for (kind, seed) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let run = measure(kind, seed).unwrap();
            assert!(run.cut < run.before, "{kind:?}: the links were in use");
            assert!(run.rerouted >= run.cut && run.repaired >= run.before, "{kind:?}, seed {seed}");
            let again = measure(kind, seed).unwrap();
            assert_eq!((again.rerouted, again.links), (run.rerouted, run.links), "a seed says all but the time");
        }
    }

    #[test]
    fn a_tenth_of_the_links_in_use_between_routers_fails() {
        let (sample, flows) = running(Kind::Storm, 1).unwrap();
        let topology = &*sample.snapshot.topology;
        let network = topology.network.as_deref().unwrap();
        let index = FlowIndex::of(network, topology, &flows);
        let links = drawn(network, &index, 1);
        let used = network.links().filter(|(at, link)| {
            let host = [link.a, link.b].iter().any(|&end| network.vertex_at(end).is_host());
            !host && directions(*at).iter().any(|at| index.load(*at) > 0)
        });
        assert_eq!(links.len(), used.count().div_ceil(10));
        assert!(both_ways(&links).any(|at| index.load(at) > 0));
    }
}
