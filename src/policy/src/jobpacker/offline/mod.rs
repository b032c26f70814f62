//! The offline planners of 004 (Li) §4.2.3: `jobpacker`'s and, of the same parts, `corral`'s.
//!
//! A job's shape (feasible widths) → the order of jobs → racks and times by earliest finish → sequences by rack → when
//! jobs end on the links that they share.

mod finish;
mod forecast;
pub mod latency;
mod order;
mod room;
mod shape;
mod write;

use crate::Budget;
use crate::plan::{ExpectedJob, Plan, PlanError, PlanProblem, RackRoom};
use finish::Chosen;
use hintd_model::solve::work::Work as _;
use hintd_model::units::{Micros, Timestamp};
use latency::{Latency, ShuffleTerm, Widths};
use order::OrderBy;
use room::{RackReservation, Room};
use shape::{Pairs, Shape};

/// How a plan is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Name of the policy, for the plan.
    pub policy: &'static str,
    /// Which of both.
    pub placing: Placing,
    /// B: sub-batches of a batch.
    pub sub_batches: u32,
    /// Containers held for a job beyond its tasks, as a share of them.
    pub over_provisioning: f64,
    /// The shuffle's part of Eq. 4.1.
    pub term: ShuffleTerm,
    /// How long a circuit is taken to stay once it is chosen; zero: circuits change at once; none: as the network has
    /// it.
    pub round: Option<Micros>,
    /// Ends are forecast on shared links, reduces being launched once this share of their maps is done; none: Eq. 4.1
    /// alone.
    pub forecast: Option<f64>,
}

/// Which racks a job may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// Heavy jobs get racks for maps and racks for reduces, so that the shuffle rides circuits; others what is free.
    Packed,
    /// Every job gets one set of racks for both; circuits are not known of.
    Together,
}

/// What one job is given.
#[derive(Debug, Clone)]
struct Given {
    /// Position of the job.
    job: usize,
    heavy: bool,
    maps: Vec<RackReservation>,
    shuffle: Micros,
    reduces: Vec<RackReservation>,
}

/// Parts of jobs in racks that a plan has at most: 160 MiB while it is made.
const PARTS_MAX: usize = 4_000_000;

/// Why planning ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    /// The budget is spent.
    Over,
    /// More of these than there may be.
    TooLarge(&'static str, usize),
}

/// Takes so much work off the budget.
fn spend(budget: &Budget<'_>, units: usize) -> Result<(), Halt> {
    if budget.work(units as u64) { Ok(()) } else { Err(Halt::Over) }
}

/// Plans the jobs.
///
/// # Errors
/// [`PlanError`] where the problem can't be meant, times run out, or the budget is spent before every job has racks.
pub fn plan(problem: &PlanProblem, rules: &Rules, budget: &Budget<'_>) -> Result<Plan, PlanError> {
    problem.validate()?;
    let mut planned = 0;
    let halted = |halt, planned| match halt {
        Halt::Over => PlanError::CutShort { planned, jobs: problem.jobs.len() },
        Halt::TooLarge(what, most) => PlanError::TooLarge { what, most },
    };
    let placed = place(problem, rules, budget, &mut planned);
    let (rooms, given) = placed.map_err(|halt| halted(halt, planned))?;
    for row in &given {
        if row.held().map(|held| held.end).max() == Some(Timestamp(u64::MAX)) {
            let job = &problem.jobs[row.job];
            return Err(PlanError::TooLong { key: job.key.clone(), run: job.run });
        }
    }
    let mut plan = write::plan(problem, rules, &rooms, &given);
    if let Some(slow_start) = rules.forecast {
        let (forecasts, whole) = forecast::forecast(problem, &plan, slow_start, budget);
        plan.jobs.iter_mut().zip(forecasts).for_each(|(job, forecast)| job.forecast = forecast);
        plan.cut_short = !whole;
    }
    Ok(plan)
}

/// Racks with room, ascending, and what the jobs are given of them, in their order. `planned`: how many so far.
fn place<'p>(
    problem: &'p PlanProblem,
    rules: &Rules,
    budget: &Budget<'_>,
    planned: &mut usize,
) -> Result<(Vec<&'p RackRoom>, Vec<Given>), Halt> {
    let mut rooms: Vec<_> = problem.racks.iter().filter(|rack| rack.containers > 0).collect();
    rooms.sort_by(|a, b| a.rack.cmp(&b.rack));
    let containers: Vec<u32> = rooms.iter().map(|rack| rack.containers).collect();
    let latency = like_racks(problem, rules, &containers);
    let shape = |job: &ExpectedJob| match rules.placing {
        Placing::Packed => Shape::of(&latency, job, budget),
        Placing::Together => together(&latency, job, budget),
    };
    let shapes = problem.jobs.iter().map(shape).collect::<Result<Vec<Shape>, Halt>>()?;
    let by = OrderBy { objective: problem.objective, batches: rules.sub_batches, seed: problem.seed };
    let order = order::order(&problem.jobs, &shapes, by, budget)?;
    let mut room = Room::new(&containers, problem.from);
    let mut given: Vec<Given> = Vec::with_capacity(order.len());
    let mut parts = 0;
    for at in order {
        let (job, pairs) = (&problem.jobs[at], &shapes[at].pairs);
        let chosen = match rules.placing {
            Placing::Packed => finish::earliest(&room, &latency, job, pairs, (rules.over_provisioning, budget))?,
            Placing::Together => finish::earliest_together(&room, &latency, job, (rules.over_provisioning, budget))?,
        };
        let row = match chosen {
            Some(Chosen { maps, shuffle, reduces, .. }) => {
                maps.iter().chain(&reduces).for_each(|held| room.hold(held));
                Given { job: at, heavy: rules.placing == Placing::Packed, maps, shuffle, reduces }
            }
            None => anywhere((&mut room, budget), &latency, job, at, rules.over_provisioning)?,
        };
        parts += row.held().count();
        if parts > PARTS_MAX {
            return Err(Halt::TooLarge(PARTS, PARTS_MAX));
        }
        given.push(row);
        *planned += 1;
    }
    Ok((rooms, given))
}

/// What [`PARTS_MAX`] counts.
const PARTS: &str = "parts of jobs in racks";

impl Given {
    fn held(&self) -> impl Iterator<Item = &RackReservation> {
        self.maps.iter().chain(&self.reduces)
    }
}

/// Eq. 4.1 takes racks to be alike: the mean of their containers, rounded down.
fn like_racks(problem: &PlanProblem, rules: &Rules, containers: &[u32]) -> Latency {
    let racks = u32::try_from(containers.len()).expect("racks are far below 2^32");
    let all: u64 = containers.iter().map(|&count| u64::from(count)).sum();
    let mean = u32::try_from(all / u64::from(racks)).expect("the mean of u32 values fits");
    let mut fabric = problem.fabric;
    if rules.placing == Placing::Together {
        fabric.circuits = None;
    }
    let interval = fabric.circuits.map(|circuits| circuits.interval);
    let round = rules.round.or(interval).unwrap_or_default();
    Latency { racks, containers: mean.max(1), fabric, term: rules.term, round }
}

/// `corral`'s: for sorting, the width of least latency.
fn together(latency: &Latency, job: &ExpectedJob, budget: &Budget<'_>) -> Result<Shape, Halt> {
    let widest = latency.racks.min(job.maps.0.max(job.reduces.0)).max(1);
    spend(budget, widest as usize)?;
    let at = |width| latency.of(job, Widths { maps: width, reduces: width });
    let width = (1..=widest).min_by_key(|&width| at(width)).expect("one rack is a width");
    Ok(Shape { pairs: Pairs::none(), width: f64::from(width), latency: at(width) })
}

/// A job that is not heavy: its tasks take the containers that are free first, and spare ones after them.
fn anywhere(
    (room, budget): (&mut Room, &Budget<'_>),
    latency: &Latency,
    job: &ExpectedJob,
    at: usize,
    spare: f64,
) -> Result<Given, Halt> {
    let ends = |held: &[RackReservation], or: Timestamp| held.iter().map(|held| held.end).max().unwrap_or(or);
    let mut stage = |(tasks, time): (u32, Micros), not_before: Timestamp| {
        let mut held = room.first(tasks, time, not_before, budget)?;
        let more = (f64::from(tasks) * spare).ceil() as u32;
        let end = ends(&held, not_before);
        let mut spare = room.first(more, time, not_before, budget)?;
        spare.iter_mut().for_each(|held| held.tasks = 0);
        held.extend(spare);
        Ok((held, end))
    };
    let (maps, end) = stage(job.maps, job.arrival)?;
    let mut racks: Vec<usize> = maps.iter().filter(|held| held.tasks > 0).map(|held| held.rack).collect();
    racks.sort_unstable();
    racks.dedup();
    // Packets: wherever its reduces go, they are spread as widely as the printed term asks.
    let widths = Widths { maps: racks.len() as u32, reduces: job.reduces.0.clamp(1, latency.racks) };
    let mut packets = *latency;
    packets.fabric.circuits = None;
    let shuffle = packets.shuffle(job, widths);
    let (reduces, _) = stage(job.reduces, end.plus(shuffle))?;
    Ok(Given { job: at, heavy: false, maps, shuffle, reduces })
}

#[cfg(test)]
mod tests;
