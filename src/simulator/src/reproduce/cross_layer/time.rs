//! `cross-layer-time`: how long a decision takes as the cluster grows (Figures 10 and 11).

use super::workload::{Kind, SLOTS, Shape, UNIT, failed, on, place, problem, start};
use crate::reproduce::{Experiment, Outcome, ReproduceError, Row, RunContext, Scale};
use hintd_model::cluster::RunningFlows;
use hintd_policy::cross_layer::nested::{NestedParams, nested};
use hintd_policy::cross_layer::{CrossLayer, CrossLayerParams, RunMode};
use hintd_policy::sample::Sample;
use hintd_policy::{Definition, Place, Placement};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const NAME: &str = "cross-layer-time";
/// Decisions timed of each cluster and seed; their median counts.
const DECISIONS: u64 = 21;
/// One job runs for so many hosts; the paper does not say.
const HOSTS_PER_JOB: usize = 20;

/// The experiment.
#[derive(Debug)]
pub struct DecisionTime;

/// Seconds of a decision in Figures 10 and 11 with 200 and with 1,000 hosts.
const fn paper_s(kind: Kind, shape: Shape) -> [f64; 2] {
    match (kind, shape) {
        (Kind::Storm, Shape::FatTree) => [0.20, 0.53],
        (Kind::Storm, Shape::Jellyfish) => [0.28, 0.74],
        (Kind::Hadoop, Shape::FatTree) => [0.17, 0.48],
        (Kind::Hadoop, Shape::Jellyfish) => [0.23, 0.67],
    }
}

/// Hosts of the small and the large cluster.
const fn sizes(scale: Scale) -> [usize; 2] {
    match scale {
        Scale::Quick => [60, 300], // a jellyfish of 15-port switches needs 11 of them
        Scale::Full => [200, 1_000],
    }
}

impl Experiment for DecisionTime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn paper(&self) -> &'static str {
        "000 (Alkaff), §4.3"
    }

    fn figure(&self) -> &'static str {
        "Figures 10 and 11: time of a decision for a new job, by hosts"
    }

    fn settings(&self, scale: Scale) -> Vec<(String, String)> {
        let [small, large] = sizes(scale);
        let nested = NestedParams::default();
        let (outer, inner) = (nested.restarts * nested.steps, nested.routing_restarts * nested.routing_steps);
        [
            ("clusters", format!("{small} and {large} hosts; smallest fat-tree that holds them, jellyfish of 15-port switches with 5 hosts each (§4.3 says no ports)")),
            ("links", "100 MB/s (§4.1)".to_owned()),
            ("hosts", format!("{SLOTS} containers each, up to {SLOTS} of them taken, drawn by seed (assumed)")),
            ("running", format!("a Storm job for every {HOSTS_PER_JOB} hosts, at random (assumed)")),
            ("jobs", "Storm: two spouts, ten bolts, children N(2, 2) (§4.1); Hadoop: 100 B to 10 GB, 4 maps and 4 reduces up to 1 GB, 16 and 8 above (§4.2, counts assumed)".to_owned()),
            ("a decision", "the policy on a job with the path table there; median of 21 jobs for each seed, the clusters in turns".to_owned()),
            ("nested form", format!("the paper's Algorithms 1 to 3 on the same index and paths: {outer} application steps of {inner} routing steps (5 restarts from Algorithm 1, steps assumed); one job for each seed, in the larger cluster")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn expected_s(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 10,
            Scale::Full => 15,
        }
    }

    /// Times are taken one after another, whatever the context's threads: they would disturb each other.
    fn run(&self, context: &RunContext<'_>) -> Result<Outcome, ReproduceError> {
        let mut rows = Vec::new();
        for shape in Shape::ALL {
            let mut measured = [Vec::new(), Vec::new()];
            for &seed in context.seeds {
                (context.progress)(&format!("{NAME}: {}, seed {seed}", shape.name()));
                for (kind, measured) in measure(shape, sizes(context.scale), seed)
                    .map_err(|error| failed(NAME, error))?
                    .into_iter()
                    .zip(&mut measured)
                {
                    measured.push(kind);
                }
            }
            for (kind, measured) in Kind::ALL.into_iter().zip(&measured) {
                rows.extend(of(kind, shape, context.scale, measured)?);
            }
        }
        Ok(Outcome { rows })
    }
}

/// What one seed gives for one kind of job and network.
struct Measured {
    /// Seconds of a decision in the small and the large cluster.
    seconds: [f64; 2],
    /// Seconds of the nested form in the large one.
    nested_s: f64,
    /// The new job's utility, ours ÷ the nested form's.
    utility: f64,
}

fn of(kind: Kind, shape: Shape, scale: Scale, measured: &[Measured]) -> Result<Vec<Row>, ReproduceError> {
    let title = |what: &str| format!("{}, {}: {what}", kind.name(), shape.name());
    let values = |value: fn(&Measured) -> f64| measured.iter().map(value).collect::<Vec<f64>>();
    let [small, large] = sizes(scale);
    let [at_200, at_1000] = paper_s(kind, shape);
    let at_largest = if scale == Scale::Full { at_1000 } else { at_200 };
    let note = format!("{small} and {large} hosts; the paper's are 200 and 1,000");
    let growth = Row::at_most(
        &title("5 times the hosts take"),
        at_1000 / at_200,
        "times as long",
        values(|one| one.seconds[1] / one.seconds[0]),
    )?;
    let of_nested =
        Row::at_most(&title("time"), 1.0, "of the nested form's", values(|one| one.seconds[1] / one.nested_s))?;
    let utility = Row::at_least(&title("utility"), 1.0, "of the nested form's", values(|one| one.utility))?;
    let seconds =
        Row::at_most(&title(&format!("decision, {large} hosts")), at_largest, "s", values(|one| one.seconds[1]))?;
    let nested =
        Row::at_most(&title(&format!("nested form, {large} hosts")), at_largest, "s", values(|one| one.nested_s))?;
    let of = if scale == Scale::Full { 1_000 } else { 200 };
    let machine = format!("beside: the paper's machine is another, its cluster of {of} hosts");
    Ok(vec![
        Row { note, ..growth },
        of_nested,
        utility,
        Row { note: machine.clone(), ..seconds.beside() },
        Row { note: machine, ..nested.beside() },
    ])
}

/// Both kinds of job on one network.
fn measure(shape: Shape, sizes: [usize; 2], seed: u64) -> Result<[Measured; 2], Box<dyn Error + Send + Sync>> {
    let [small, large] = sizes.map(|hosts| busy(shape, hosts, seed));
    let (small, large) = (small?, large?);
    let both = Kind::ALL.map(|kind| -> Result<Measured, Box<dyn Error + Send + Sync>> {
        let seconds = decisions(kind, [&small, &large], seed)?;
        let (sample, flows) = &large;
        let job = kind.job(seed);
        let problem = problem(sample, &job, flows, seed);
        let ours = place(&CrossLayer::default(), &problem)?;
        let began = Instant::now();
        let theirs = nested(&problem, &NestedParams::default(), &mut |_| true);
        let nested_s = began.elapsed().as_secs_f64();
        let theirs = theirs.ok_or("the nested form found no place")?;
        Ok(Measured { seconds, nested_s, utility: own(&ours) / own(&theirs).max(1.0) })
    });
    let [storm, hadoop] = both;
    Ok([storm?, hadoop?])
}

type Busy = (Sample, RunningFlows);

/// A cluster in which jobs run already, placed at random as those without hints are.
fn busy(shape: Shape, hosts: usize, seed: u64) -> Result<Busy, Box<dyn Error + Send + Sync>> {
    let mut sample = on(&shape.network(hosts, seed)?);
    sample.occupy(UNIT, SLOTS, seed);
    let policy = CrossLayer::new(CrossLayerParams { mode: RunMode::Random, ..CrossLayerParams::default() });
    let mut flows = RunningFlows::default();
    for number in 0..(hosts / HOSTS_PER_JOB) as u64 {
        let job = Kind::Storm.job(1_000_000 * seed + number);
        let placement = place(&policy, &problem(&sample, &job, &flows, number))?;
        start(&mut flows, number, &job, &placement)?;
    }
    Ok((sample, flows))
}

/// Median seconds in each cluster. They take turns, so that both see the same of whatever else the machine does.
fn decisions(kind: Kind, clusters: [&Busy; 2], seed: u64) -> Result<[f64; 2], Box<dyn Error + Send + Sync>> {
    let policy = CrossLayer::default();
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..DECISIONS {
        let job = kind.job(1_000 * seed + number);
        for ((sample, flows), times) in clusters.into_iter().zip(&mut times) {
            let problem = problem(sample, &job, flows, seed);
            let began = Instant::now();
            black_box(place(&policy as &dyn Place, &problem)?);
            times.push(began.elapsed().as_secs_f64());
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

fn own(placement: &Placement) -> f64 {
    let found = placement.parts.iter().find(|(name, _)| name == "job_utility_bits_per_s");
    found.map_or(0.0, |(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::row::Role;

    #[test]
    fn ratios_decide_and_seconds_stand_beside() {
        let measured = [Measured { seconds: [0.001, 0.002], nested_s: 0.5, utility: 1.25 }];
        let rows = of(Kind::Storm, Shape::Jellyfish, Scale::Full, &measured).unwrap();
        let deciding: Vec<f64> = rows.iter().filter(|row| row.role == Role::Figure).map(|row| row.our_value).collect();
        assert_eq!(deciding, [2.0, 0.004, 1.25]);
        assert!((rows[0].paper_value.unwrap() - 0.74 / 0.28).abs() < 1e-12);
        assert!(rows.iter().all(|row| row.reached == Some(true)));
        let slow = [Measured { seconds: [0.001, 0.6], nested_s: 0.5, utility: 0.9 }];
        let rows = of(Kind::Storm, Shape::Jellyfish, Scale::Full, &slow).unwrap();
        assert_eq!(rows.iter().filter_map(|row| row.reached).collect::<Vec<_>>(), [false, false, false, true, true]);
    }

    #[test]
    fn the_clusters_have_the_papers_hosts() {
        for (shape, hosts) in Shape::ALL.into_iter().flat_map(|shape| [(shape, 60), (shape, 200)]) {
            assert_eq!(shape.network(hosts, 3).unwrap().network.hosts(), hosts, "{}", shape.name());
        }
    }
}
