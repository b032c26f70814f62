//! `cross-layer-failure`: a tenth of the links in use fails and returns (Figures 6 and 9).

use super::workload::{Kind, LINK, SLOTS, UNIT, failed, on, place, problem};
use crate::reproduce::experiment::texts;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_engine::RouteSettings;
use hintd_engine::flows::{Flows, NewJob};
use hintd_engine::routes::Cause;
use hintd_model::cluster::{NodePair, Snapshot};
use hintd_model::network::build::{JellyfishSpec, jellyfish};
use hintd_model::network::maxmin::directions;
use hintd_model::network::{Network, Tier};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, DecisionId, DirectedLinkIdx, LinkIdx, RequestId, Timestamp};
use hintd_policy::cross_layer::CrossLayer;
use hintd_policy::cross_layer::sample::{Job, hadoop_job};
use hintd_policy::{FlowIndex, Placement};
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
/// Shuffle of a WordCount job; utility hangs on who sends, not on how much.
const SHUFFLE: Bytes = Bytes(1_000_000_000);

/// The experiment.
pub const FAILURE: Experiment = Experiment {
    name: NAME,
    paper: "000 (Alkaff), §4.1 and §4.2",
    figure: "Figures 6 and 9: throughput when a tenth of the links in use fails and returns",
    settings,
    quick_s: 1,
    full_s: 1,
    rows: &rows_of,
};

fn settings(_: Scale) -> Vec<(String, String)> {
    texts([
        ("cluster", format!("jellyfish of {SWITCHES} servers and {SWITCHES} routers (§4.1), {TO_SWITCHES} links of each router to others (assumed), 100 MB/s")),
        ("hosts", format!("{SLOTS} containers each (assumed)")),
        ("jobs", format!("{JOBS} Storm topologies (§4.1), or {JOBS} WordCount jobs of 4 maps and 4 reduces (§4.2), placed one after another by cross_layer")),
        ("failure", "a tenth, rounded up, of the links between routers that a job uses, drawn by seed; a server's one link is left, without it no route would help".to_owned()),
        ("throughput", "utility of Algorithm 1: what the sinks get, every task pair an equal share of each link".to_owned()),
        ("routes", "the engine's registry of flows with its default settings, but rules for every pair, however little it sends".to_owned()),
        ("after repair", "the engine takes old routes back, so nothing can be lost: all at once where utility does not fall by it, which gives the throughput before, else those by which it does not fall; it makes no search for better ones".to_owned()),
        ("time", "from the network's change to new routes: distances followed, hit pairs routed anew with 200 steps of improvement at most, by the path table of before as far as it goes; the table is followed after. Without the way to the switches, which the paper's time has".to_owned()),
    ])
}

/// Both scales are the paper's: it is small. Times are taken one after another, whatever the context's threads.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
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
        let no_figure = |what: &str, unit: &str, value| Row::without_figure(&title(what), unit, values(value));
        rows.push(no_figure("lost at the failure, before new routes", "%", |one| one.lost(one.cut))?);
        rows.push(no_figure("throughput before", "Gbit/s", |one| one.before / 1e9)?);
        rows.push(no_figure("links failed", "links", |one| one.links as f64)?);
        rows.push(no_figure("pairs of nodes hit", "% of all", |one| one.hit)?);
        let time = Row::at_most(&title("time to new routes"), seconds, "s", values(|one| one.reroute_s))?.beside();
        rows.push(Row { note: "beside: ours is without the way to the switches".to_owned(), ..time });
        rows.push(no_figure("time to the old routes after repair", "s", |one| one.return_s)?);
    }
    Ok(rows)
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

/// A cluster, and the engine's registry of what its jobs send.
struct Running {
    snapshot: Snapshot,
    flows: Flows,
    settings: RouteSettings,
}

impl Running {
    fn new(snapshot: Snapshot) -> Self {
        let settings = RouteSettings { min_bytes: Bytes(0), ..RouteSettings::default() };
        let mut flows = Flows::default();
        flows.network_changed(&Cause::new("topology", ""), (&snapshot, &settings), Timestamp(0));
        Self { snapshot, flows, settings }
    }

    fn start(&mut self, number: u64, job: &Job, placement: Placement) {
        let application = ApplicationId { cluster_timestamp: 1, sequence: number as u32 };
        let decision = (DecisionId::of(number), AttemptId { application, attempt: 1 });
        let groups = job.groups.iter().map(|(name, _)| Arc::from(name.as_str())).collect();
        let new = NewJob::new(decision, groups, job.edges.clone().into(), placement.groups);
        let request = RequestId(number.to_string().into());
        self.flows.enter(new, &request, &request, &placement.routes, (&self.snapshot, &self.settings));
    }

    /// Of its network, jobs and routes as they are, reckoned anew.
    fn index(&mut self) -> Result<FlowIndex, Wrong> {
        let view = self.flows.publish().ok_or("no flow or route has changed")?;
        let topology = &self.snapshot.topology;
        let network = topology.network.as_deref().ok_or("the cluster has no network")?;
        Ok(FlowIndex::of(network, topology, &view))
    }

    /// Links go down or come up, and the engine does what it does about it. How many seconds it takes.
    fn change(&mut self, links: &[LinkIdx], up: bool, now: Timestamp) -> Result<f64, Wrong> {
        let mut network = self.snapshot.topology.network.as_deref().ok_or("the cluster has no network")?.clone();
        for &link in links {
            network.set_link(link, Some(up), None);
        }
        let network = Arc::new(network);
        let began = Instant::now();
        self.snapshot.topology = Arc::new(self.snapshot.topology.follow(network, links, &self.snapshot.statics));
        self.flows.links_changed(links, &Cause::new("links", ""), (&self.snapshot, &self.settings), now);
        let seconds = began.elapsed().as_secs_f64();
        if self.flows.waits() {
            return Err("more pairs are hit than the engine routes anew at once".into());
        }
        self.flows.tick((&self.snapshot, &self.settings), now);
        Ok(seconds)
    }
}

type Wrong = Box<dyn Error + Send + Sync>;

/// A cluster and its jobs, placed one after another.
fn running(kind: Kind, seed: u64) -> Result<(Running, FlowIndex), Wrong> {
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
    let mut running = Running::new(sample.snapshot.clone());
    let mut view = Arc::default();
    for number in 0..JOBS {
        let job = job(kind, JOBS * seed + number);
        let placement = place(&CrossLayer::default(), &problem(&sample, &job, &view, seed))?;
        for share in placement.groups.iter().flatten() {
            let occupied = &mut sample.snapshot.occupied[share.node.at()];
            *occupied = occupied.plus(&UNIT.times(u64::from(share.count)));
        }
        running.start(number, &job, placement);
        view = running.flows.publish().unwrap_or(view);
    }
    let topology = &running.snapshot.topology;
    let network = topology.network.as_deref().ok_or("the cluster has no network")?;
    let index = FlowIndex::of(network, topology, &view);
    Ok((running, index))
}

fn measure(kind: Kind, seed: u64) -> Result<Measured, Wrong> {
    let (mut running, mut index) = running(kind, seed)?;
    let before = index.utility();
    let network = running.snapshot.topology.network.as_deref().ok_or("the cluster has no network")?;
    let links = drawn(network, &index, seed);
    let pairs: BTreeSet<NodePair> = both_ways(&links).flat_map(|at| index.pairs_on(at).collect::<Vec<_>>()).collect();
    let hit = 100.0 * pairs.len() as f64 / running.flows.len().max(1) as f64;
    index.hold();
    both_ways(&links).for_each(|link| index.set_capacity(link, 0.0));
    index.recompute_rates();
    let cut = index.utility();
    let reroute_s = running.change(&links, false, Timestamp(1_000_000))?;
    let rerouted = running.index()?.utility();
    let return_s = running.change(&links, true, Timestamp(2_000_000))?;
    let repaired = running.index()?.utility();
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

fn both_ways(links: &[LinkIdx]) -> impl Iterator<Item = DirectedLinkIdx> {
    links.iter().flat_map(|&link| directions(link))
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
        let (running, index) = running(Kind::Storm, 1).unwrap();
        let network = running.snapshot.topology.network.as_deref().unwrap();
        let links = drawn(network, &index, 1);
        let used = network.links().filter(|(at, link)| {
            let host = [link.a, link.b].iter().any(|&end| network.vertex_at(end).is_host());
            !host && directions(*at).iter().any(|at| index.load(*at) > 0)
        });
        assert_eq!(links.len(), used.count().div_ceil(10));
        assert!(both_ways(&links).any(|at| index.load(at) > 0));
    }
}
