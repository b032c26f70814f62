//! Jobs under drawn chains on a fat-tree with Figure 6's boxes, placed one after another, and what their flows cost.

use crate::reproduce::Scale;
use crate::reproduce::hit::systems::{Failure, REPORTS, System, registered};
use crate::reproduce::hit::workload::Class;
use hintd_model::cluster::EdgePattern;
use hintd_model::network::build::{FatTreeSpec, fat_tree};
use hintd_model::network::chains::{ChainEntry, Chains, ChainsDocument, sample};
use hintd_model::network::{Network, Tier};
use hintd_model::units::{BitsPerSec, BoxIdx, Bytes, GroupIdx, LinkIdx};
use hintd_policy::problem::{EdgeProblem, Owner};
use hintd_policy::sample::Sample;
use hintd_policy::sample::chains::{Steered, Steering, UNIT, steered};
use hintd_policy::{Budget, PlaceProblem};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// §8.2: 16 GB and 8 cores in containers of 2 GB and one core.
const SLOTS: u64 = 8;
/// §8.3: `capacity` has 5 to 7 containers on each server.
pub(super) const LOAD: u64 = 6;
/// What a box carries: the port of a server.
const BOX: BitsPerSec = BitsPerSec(1_000_000_000);
/// Input of a map.
const BLOCK: u64 = 128 << 20;

/// Stated assumptions that may explain a figure.
const STATIC: &str = "flows under capacity and pna go to the nearest box of each type in turn, whatever it carries";
const LIGHT: &str = "2 containers a server";
const FIXED: &str =
    "each job's boxes are fixed beforehand, drawn among those of its types (§6.1: a policy names its boxes)";

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) scale: Scale,
    /// Containers for each server, all jobs together.
    pub(super) load: u64,
    /// How flows of policies that know no chains find boxes.
    pub(super) unaware: Steering,
    /// Whether each job's boxes are drawn before it is placed, and not only their types.
    pub(super) fixed: bool,
}

impl Case {
    pub(super) const fn new(scale: Scale) -> Self {
        Self { scale, load: LOAD, unaware: Steering::Fewest, fixed: false }
    }

    /// Stated assumptions changed, one each.
    pub(super) const fn changed(self) -> [(&'static str, Self); 3] {
        [
            (FIXED, Self { fixed: true, ..self }),
            (STATIC, Self { unaware: Steering::Nearest, ..self }),
            (LIGHT, Self { load: 2, ..self }),
        ]
    }
}

/// All jobs placed by one system.
#[derive(Debug, Clone, Default)]
pub(super) struct Placed {
    /// By container, the same ones under every system: Eq. 14, bit/s × links.
    pub(super) containers: Vec<u64>,
    /// Links of each flow.
    pub(super) hops: Vec<u32>,
    /// Eq. 2.
    pub(super) cost: u128,
    /// Rates on links of the access, aggregation and core layer, summed, bits/s.
    pub(super) layers: [f64; 3],
    /// Containers by server.
    pub(super) servers: Vec<u32>,
}

impl Placed {
    /// Smallest share of servers, per cent, that has 70 % of the containers.
    pub(super) fn crowded(&self) -> f64 {
        let mut counts = self.servers.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all = f64::from(counts.iter().sum::<u32>());
        let (mut held, mut servers) = (0.0, 0_u32);
        for count in &counts {
            if held >= 0.7 * all {
                break;
            }
            held += f64::from(*count);
            servers += 1;
        }
        100.0 * f64::from(servers) / counts.len().max(1) as f64
    }

    pub(super) fn mean_hops(&self) -> f64 {
        self.hops.iter().map(|&hops| f64::from(hops)).sum::<f64>() / self.hops.len().max(1) as f64
    }
}

/// Systems in the order of [`all`].
pub(super) const SYSTEMS: [System; 4] = [System::Capacity, System::Pna, System::Pat, System::Hit];

/// The same jobs under every one of [`SYSTEMS`].
pub(super) fn all(case: Case, seed: u64) -> Result<[Placed; 4], Failure> {
    let [capacity, pna, pat, hit] = SYSTEMS.map(|system| placed(case, system, seed));
    Ok([capacity?, pna?, pat?, hit?])
}

struct Job {
    maps: u32,
    reduces: u32,
    shuffle: Bytes,
}

const fn ports(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 4,
        Scale::Full => 8,
    }
}

/// Servers of the fat-tree.
pub(super) const fn servers(scale: Scale) -> usize {
    ports(scale).pow(3) / 4
}

/// Jobs of the mix, 2 to 8 maps and 1 to 4 reduces, until so many containers have been drawn.
fn jobs(containers: u64, seed: u64) -> Vec<Job> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut jobs, mut drawn) = (Vec::new(), 0);
    while drawn < containers {
        let (maps, reduces) = (random.random_range(2..=8), random.random_range(1..=4));
        let bytes = Class::drawn(&mut random).ratio() * f64::from(maps) * BLOCK as f64;
        jobs.push(Job { maps, reduces, shuffle: Bytes(bytes as u64) });
        drawn += u64::from(maps + reduces);
    }
    jobs
}

fn placed(case: Case, system: System, seed: u64) -> Result<Placed, Failure> {
    let built = fat_tree(&FatTreeSpec { k: ports(case.scale), ..FatTreeSpec::default() })?;
    let jobs = jobs(case.load * servers(case.scale) as u64, seed);
    let mut sample = registered(&built, SLOTS, seed);
    let mut chains = declared(&built.network, jobs.len(), case.fixed, seed)?;
    let unaware = matches!(system, System::Capacity | System::Pna);
    let steering = if unaware { case.unaware } else { Steering::Fewest };
    let mut found = Placed { servers: vec![0; sample.snapshot.statics.host.len()], ..Placed::default() };
    for (number, job) in jobs.iter().enumerate() {
        let topology = sample.snapshot.topology.with_chains(Some(&chains));
        sample.snapshot.topology = Arc::new(topology);
        let name = format!("job-{number}");
        let flows = place(&mut sample, job, &name, (system, steering), 1_000 * seed + number as u64, &mut found)?;
        for (at, rate) in flows.boxes.iter().enumerate() {
            let left = chains.boxes()[at].capacity.0.saturating_sub(*rate);
            chains.set_box(BoxIdx::new(at), None, Some(BitsPerSec(left)));
        }
        found.add(&built.network, &flows);
    }
    Ok(found)
}

/// Figure 6's boxes and one chain for each job, of types or of boxes: then each box is a type of its own.
fn declared(network: &Network, jobs: usize, fixed: bool, seed: u64) -> Result<Chains, Failure> {
    let mut boxes = sample::figure6(network, BOX);
    let mut sequences = sample::sequences(jobs, seed);
    if fixed {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for kind in sequences.iter_mut().flatten() {
            let of_kind: Vec<&String> =
                boxes.iter().filter(|entry| entry.kind == *kind).map(|entry| &entry.name).collect();
            kind.clone_from(of_kind[random.random_range(0..of_kind.len())]);
        }
        boxes.iter_mut().for_each(|entry| entry.kind.clone_from(&entry.name));
    }
    let chain = |(number, sequence): (usize, Vec<String>)| {
        let name = format!("job-{number}");
        ChainEntry { application: Some(name.clone()), name, sequence, ..ChainEntry::default() }
    };
    let chains = sequences.into_iter().enumerate().map(chain).collect();
    let document = ChainsDocument { boxes, chains, ..ChainsDocument::default() };
    Chains::new(&document, Some(network)).map_err(|problems| problems[0].clone().into())
}

/// Places a job and steers its flows.
fn place(
    sample: &mut Sample,
    job: &Job,
    name: &str,
    (system, steering): (System, Steering),
    seed: u64,
    found: &mut Placed,
) -> Result<Steered, Failure> {
    let groups = vec![sample.group("map", job.maps, UNIT), sample.group("reduce", job.reduces, UNIT)];
    let edge = EdgeProblem { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: job.shuffle };
    let owner = Some(Owner { application: [name, ""], queue: "root.default" });
    let problem = PlaceProblem { seed, owner, ..sample.problem(groups, vec![edge], vec![]) };
    let placement = system.placer().place(&problem, &mut Budget::new(u64::MAX, &mut || false))?;
    if placement.placed_all() < problem.containers() {
        return Err(format!("{name} finds no room").into());
    }
    let flows = steered(&problem, &placement, steering)?.ok_or("nobody talks")?;
    for share in placement.groups.iter().flatten() {
        let occupied = &mut sample.snapshot.occupied[share.node.at()];
        *occupied = occupied.plus(&UNIT.times(u64::from(share.count)));
        found.servers[share.node.at()] += share.count;
    }
    Ok(flows)
}

impl Placed {
    fn add(&mut self, network: &Network, flows: &Steered) {
        self.containers.extend(&flows.containers);
        self.hops.extend(flows.flows.iter().map(|(_, hops)| *hops));
        self.cost += flows.cost();
        for route in &flows.routes {
            for link in &*route.links {
                let known = network.link_at(LinkIdx(link.0 / 2));
                let has = |tier| [known.a, known.b].iter().any(|&end| network.vertex_at(end).tier() == Some(tier));
                let layer = if has(Tier::Core) { 2 } else { usize::from(has(Tier::Aggregation)) };
                self.layers[layer] += route.rate.as_f64();
            }
        }
    }
}

/// What both entries say of their settings.
pub(super) fn described(scale: Scale) -> Vec<(String, String)> {
    let servers = servers(scale);
    let rows = [
        ("cluster", format!("fat-tree of k = {}, {servers} servers of 16 GB and 8 cores, 8 containers each (§8.2); {REPORTS}", ports(scale))),
        ("boxes", "firewalls at every core switch, load balancers and IPS at aggregation switches in turn (§6, Figure 6), 1 Gbit/s each (assumed: a server's port)".to_owned()),
        ("jobs", format!("until {LOAD} containers a server run (§8.3: 5 to 7); 2 to 8 maps of 128 MiB and 1 to 4 reduces (assumed), all maps send to all reduces, shuffle / input by Table 1's mix as of hit-jct, within 60 s; each job under a chain of one to three types drawn by seed (§8.2)")),
        ("order", "jobs come one after another and stay; each policy places each job on what it left of room and boxes before".to_owned()),
        ("steering", "under every policy a flow takes the boxes of fewest hops that have room for it: policies differ by where containers are, and nothing else".to_owned()),
    ];
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_systems_place_the_same_jobs_and_what_is_routed_is_what_is_counted() {
        let found = all(Case::new(Scale::Quick), 3).unwrap();
        let containers = found[0].containers.len();
        assert!(containers >= 96, "{containers}");
        for one in &found {
            assert_eq!((one.containers.len(), one.servers.iter().sum::<u32>() as usize), (containers, containers));
            assert_eq!(one.layers.iter().sum::<f64>(), one.cost as f64, "each link of each route once");
            assert!(one.servers.iter().all(|&count| u64::from(count) <= SLOTS));
        }
    }

    #[test]
    fn servers_that_hold_most_are_counted() {
        let placed = Placed { servers: vec![7, 1, 0, 2, 0], ..Placed::default() };
        assert_eq!(placed.crowded(), 20.0);
        assert_eq!(Placed { servers: vec![6, 2, 2, 0], ..Placed::default() }.crowded(), 50.0);
    }
}
