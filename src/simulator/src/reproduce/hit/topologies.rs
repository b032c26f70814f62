//! `hit-topologies`: what shuffles cost on a tree by their weight, and heavy ones on four networks (Figure 11); and how
//! far `hit` is from the exact best of small cases.

use super::systems::{COMPARED, Failure, REPORTS, failed, less, plain_tree, registered};
use super::workload::{Class, Job, UNIT, described};
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, Outcome, ReproduceError, Row, RunContext, Scale};
use hintd_model::network::build::{BCubeSpec, BuiltNetwork, FatTreeSpec, Vl2Spec, bcube, fat_tree, vl2};
use hintd_model::units::BitsPerSec;
use hintd_policy::hit::Hit;
use hintd_policy::problem::GroupProblem;
use hintd_policy::sample::chains::{gap, spread};
use hintd_policy::{Budget, Place, PlaceProblem};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const NAME: &str = "hit-topologies";
/// §8.2.
const SLOTS: u64 = 8;
/// Of them taken on every node: drawn from none to so many.
const TAKEN: u64 = 6;
const RATE: BitsPerSec = BitsPerSec(1_000_000_000);
/// Small cases of each seed.
const CASES: u64 = 24;
const IDLE: &str = "nothing else runs on the nodes";

/// The experiment.
#[derive(Debug)]
pub struct Topologies;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Tree,
    FatTree,
    BCube,
    Vl2,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Tree, Self::FatTree, Self::BCube, Self::Vl2];

    const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::FatTree => "fat-tree",
            Self::BCube => "BCube",
            Self::Vl2 => "VL2",
        }
    }

    /// Of 64 nodes; BCube, whose racks are of its ports, of 8 x 8.
    fn network(self) -> Result<BuiltNetwork, Failure> {
        Ok(match self {
            Self::Tree => plain_tree(16, 4, 4, RATE)?,
            Self::FatTree => fat_tree(&FatTreeSpec { k: 8, hosts: Some(64), bits_per_s: RATE })?,
            Self::BCube => bcube(&BCubeSpec { ports: 8, levels: 1, bits_per_s: RATE })?,
            Self::Vl2 => {
                let spec =
                    Vl2Spec { aggregation_ports: 8, intermediate_ports: 8, hosts_per_rack: 4, ..Vl2Spec::default() };
                vl2(&spec)?
            }
        })
    }
}

const fn jobs(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => 3,
        Scale::Full => 20,
    }
}

impl Experiment for Topologies {
    fn name(&self) -> &'static str {
        NAME
    }

    fn paper(&self) -> &'static str {
        "002 (Yang et al.), §8.6"
    }

    fn figure(&self) -> &'static str {
        "Figure 11: shuffle cost of single jobs, by weight on a tree and heavy ones on four networks"
    }

    fn settings(&self, scale: Scale) -> Vec<(String, String)> {
        let own = [
            ("clusters", format!("64 nodes of {SLOTS} containers (§8.2), of which 0 to {TAKEN} are taken on each node, drawn (assumed: the paper prints no load); tree 4 x 4 x 4, fat-tree of k = 8 cut down, BCube(8, 1), VL2 with D_A = D_I = 8 and 4 nodes a rack: of these sizes all but BCube have the same hops between nodes; {REPORTS}")),
            ("jobs", format!("{} of each weight a seed, each placed alone (§8.6: a single job)", jobs(scale))),
            ("cost", "Eq. 2, rate x links summed over pairs of map and reduce, all jobs; without chains, on shortest paths; a pair on one node costs nothing".to_owned()),
            ("gap", format!("{CASES} small cases a seed: 2 maps, 2 reduces, five nodes of a fat-tree with room, a chain of one to three boxes; all places and boxes are tried")),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(described().into_iter().take(2)).collect()
    }

    fn expected_s(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 15,
            Scale::Full => 120,
        }
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Outcome, ReproduceError> {
        let measure = |shape: Shape, class: Class, taken: u64| {
            context.per_seed(|seed| {
                measured(context.scale, (shape, class, taken), seed).map_err(|error| failed(NAME, error))
            })
        };
        let (mut figures, mut others) = (Vec::new(), Vec::new());
        for class in Class::ALL {
            (context.progress)(&format!("{NAME}: {} on a tree", class.name()));
            let found = measure(Shape::Tree, class, TAKEN)?;
            let title = |what: &str| format!("tree, {}: {what}", class.name());
            let (hit, pna) = (below(&found, 0, 2), below(&found, 1, 2));
            let (hit_title, pna_title) = (title("hit below capacity"), title("pna below capacity"));
            if class == Class::Heavy {
                figures.push(Row::at_least(&hit_title, 38.0, "%", hit)?);
                others.push(Row::at_least(&pna_title, 21.0, "%", pna)?.beside());
            } else {
                others.push(Row::without_figure(&hit_title, "%", hit)?);
                others.push(Row::without_figure(&pna_title, "%", pna)?);
            }
        }
        for shape in Shape::ALL {
            (context.progress)(&format!("{NAME}: heavy on {}", shape.name()));
            let found = measure(shape, Class::Heavy, TAKEN)?;
            let idle = measure(shape, Class::Heavy, 0)?;
            let title = |what: &str| format!("{}: {what}", shape.name());
            for (what, paper, other) in [("hit below capacity", 32.0, 2), ("hit below pna", 19.0, 1)] {
                let row = Row::at_least(&title(what), paper, "%", below(&found, 0, other))?;
                others.push(Row::assumption(&row, IDLE, below(&idle, 0, other))?);
                figures.push(row);
            }
            let system = |at: usize| found.iter().map(|one| one[at]).collect::<Vec<f64>>();
            let systems = [("hit", system(0)), ("pna", system(1)), ("capacity", system(2))];
            figures.push(Row::order(&title("order of cost"), Better::Lower, &systems)?);
        }
        (context.progress)(&format!("{NAME}: small cases"));
        others.extend(gaps("hit", context, &Hit::default())?);
        figures.extend(others);
        Ok(Outcome { rows: figures })
    }
}

fn below(found: &[[f64; 3]], ours: usize, theirs: usize) -> Vec<f64> {
    found.iter().map(|one| less(one[ours], one[theirs])).collect()
}

/// How far a policy is above the exact best, by small cases of each seed.
pub(in crate::reproduce) fn gaps(
    name: &str,
    context: &RunContext<'_>,
    policy: &dyn Place,
) -> Result<Vec<Row>, ReproduceError> {
    let found = context.per_seed(|seed| {
        let cases = (seed.wrapping_sub(1).wrapping_mul(CASES)..).take(CASES as usize);
        let gaps = cases.map(|case| gap(policy, case)).collect::<Result<Vec<f64>, _>>();
        gaps.map(spread).map_err(|error| failed(NAME, error.into()))
    })?;
    let mut rows = Vec::new();
    for (at, what) in ["median", "90th percentile", "worst"].into_iter().enumerate() {
        let values = found.iter().map(|one| 100.0 * one[at]).collect();
        rows.push(Row::without_figure(&format!("{name} above the exact best of small cases: {what}"), "%", values)?);
    }
    Ok(rows)
}

/// Cost of all jobs under each system compared.
fn measured(scale: Scale, (shape, class, taken): (Shape, Class, u64), seed: u64) -> Result<[f64; 3], Failure> {
    let mut costs = [0.0; 3];
    let built = shape.network()?;
    for number in 0..jobs(scale) {
        let seed = 1_000 * seed + number;
        let mut sample = registered(&built, SLOTS, seed);
        sample.occupy(UNIT, taken, seed);
        let job = Job::new(class, &mut ChaCha8Rng::seed_from_u64(seed));
        let maps = GroupProblem { input: job.blocks(&sample, seed), ..sample.group("map", job.maps(), UNIT) };
        let groups = vec![maps, sample.group("reduce", job.reduces(), UNIT)];
        let problem = PlaceProblem { seed, ..sample.problem(groups, vec![job.edge()], vec![]) };
        for (cost, system) in costs.iter_mut().zip(COMPARED) {
            let placement = system.placer().place(&problem, &mut Budget::new(100_000, &mut || false))?;
            if placement.placed_all() < problem.containers() {
                return Err("the cluster has no room for the job".into());
            }
            *cost += Hit::default().objective(&problem, &placement).ok_or("nobody talks")?.value;
        }
    }
    Ok(costs)
}
