//! Draws that tests and experiments share: what policies break while boxes and links fail, and how far they are from
//! the exact best.

use super::compiled::ChainedProblem;
use super::exact::least_cost;
use super::sample::{SETTINGS, UNIT, World, networks};
use super::{Breaches, breaches_of, breaches_unaware};
use crate::baselines::pna::Pna;
use crate::problem::ArrivedSenders;
use crate::{Budget, Place, PlaceError, PlaceProblem, Placement, check};
use hintd_model::cluster::Way;
use hintd_model::units::{BitsPerSec, Bytes, GroupIdx, NodeIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const MEGABIT: u64 = 1_000_000;

/// One of the four networks, what its boxes carry and how much of it fails.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Position among [`networks`].
    pub network: usize,
    /// Of each box, Mbit/s.
    pub megabits: u64,
    /// Of links; half of it of switches, twice of boxes.
    pub percent: u32,
    /// Of occupied room, the chain, failures and the policy's search.
    pub seed: u64,
}

impl Draw {
    /// Drawn as the property tests draw: any network, boxes of 40 to 400 Mbit/s, 0 to 11 % of links down.
    pub fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (network, megabits) = (random.random_range(0..4), random.random_range(40..400));
        Self { network, megabits, percent: random.random_range(0..12), seed }
    }

    /// The cluster with what failed.
    pub fn world(&self) -> World {
        let mut world = World::new(&networks()[self.network], BitsPerSec(self.megabits * MEGABIT), self.seed);
        world.fail(self.percent, self.seed ^ 7);
        world
    }

    /// What a policy that knows chains breaks, and how often it breaks room or candidates; `None` where it refuses for
    /// the chain.
    ///
    /// # Errors
    /// [`PlaceError`] for any other refusal.
    pub fn aware(&self, policy: &dyn Place) -> Result<Option<(Breaches, u64)>, PlaceError> {
        let world = self.world();
        let problem = job(&world, self.seed);
        match place(policy, &problem) {
            Ok(placement) => {
                let violations = check(&problem, &placement).len() as u64;
                Ok(Some((breaches_of(&problem, &placement, &SETTINGS)?, violations)))
            }
            Err(PlaceError::Broken { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// What `pna` breaks. Where nothing can be placed at all there is nothing to be counted.
    ///
    /// # Errors
    /// [`PlaceError`] as `pna` gives it.
    pub fn pna(&self) -> Result<Breaches, PlaceError> {
        let world = self.world();
        let problem = job(&world, self.seed);
        let placement = place(&Pna::default(), &problem)?;
        Ok(breaches_unaware(&problem, &world.intact, &placement, &SETTINGS).unwrap_or_default())
    }
}

/// 6 maps, 3 reduces, 1 GiB.
fn job(world: &World, seed: u64) -> PlaceProblem<'_> {
    world.job(6, 3, Bytes(1 << 30), seed)
}

fn place(policy: &dyn Place, problem: &PlaceProblem<'_>) -> Result<Placement, PlaceError> {
    policy.place(problem, &mut Budget::new(u64::MAX, &mut || false))
}

/// How far a policy's cost is above the least of a small case (2 maps, 2 reduces, five nodes with room), as a share of
/// the least: all places of all tasks and all boxes of all flows are tried.
///
/// # Errors
/// [`PlaceError`] where the policy refuses.
///
/// # Panics
/// If the policy's cost is below the least: one of the two is wrong.
pub fn gap(policy: &dyn Place, seed: u64) -> Result<f64, PlaceError> {
    let world = World::small(BitsPerSec(120 * MEGABIT), seed);
    gap_of(policy, &world.job(2, 2, Bytes(1 << 30), seed), seed)
}

/// The same for three tasks that get from, or send to, containers that are there already on three nodes.
///
/// # Errors
/// As [`gap`].
///
/// # Panics
/// As [`gap`].
pub fn gap_to_arrived(policy: &dyn Place, seed: u64) -> Result<f64, PlaceError> {
    let world = World::small(BitsPerSec(120 * MEGABIT), seed);
    gap_of(policy, &later_wave(&world, 3, seed), seed)
}

/// Reduces whose maps came on three nodes, which sent one, two and four parts of seven; the way by the seed.
pub(crate) fn later_wave(world: &World, reduces: u32, seed: u64) -> PlaceProblem<'_> {
    let way = [Way::In, Way::Out, Way::Both][seed as usize % 3];
    let from = (0..3).map(|nth| (NodeIdx(5 * nth + (seed / 3) as u32 % 5), Bytes(50_000_000 << nth))).collect();
    let groups = vec![world.sample.group("reduce", reduces, UNIT)];
    let senders = vec![ArrivedSenders { to: GroupIdx(0), from, way }];
    PlaceProblem { seed, senders, ..world.sample.problem(groups, vec![], vec![]) }
}

fn gap_of(policy: &dyn Place, problem: &PlaceProblem<'_>, seed: u64) -> Result<f64, PlaceError> {
    let Some(compiled) = ChainedProblem::compile(problem, &SETTINGS)? else { return Ok(0.0) };
    let placement = place(policy, problem)?;
    assert_eq!(placement.placed_all(), problem.containers(), "there is room for all");
    let found = placement.objective;
    let known = (found * 1e9 * 1.000_001) as u128 + 1;
    let least = least_cost(&compiled, known).expect("the policy's own state costs less") as f64 / 1e9;
    assert!(found >= least * 0.999_999, "seed {seed}: {found} below the least, {least}");
    Ok((found / least - 1.0).max(0.0))
}

/// Median, 90th percentile and worst; of no values 0.
pub fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    [0.5, 0.9, 1.0].map(|share| values.get((last * share) as usize).copied().unwrap_or(0.0))
}
