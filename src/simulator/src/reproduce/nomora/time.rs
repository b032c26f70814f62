//! `nomora-runtime` and `nomora-latency`: how long rounds take, and tasks wait for a place (Figures 6 and 8).

use super::run::{System, Timing, timed};
use super::workload::{described, times};
use crate::reproduce::experiment::texts;
use crate::reproduce::hit::systems::failed;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};

const RUNTIME_NAME: &str = "nomora-runtime";
const LATENCY_NAME: &str = "nomora-latency";

/// Of Figure 6.
pub const RUNTIME: Experiment = Experiment {
    name: RUNTIME_NAME,
    paper: "003 (Popescu and Moore), §6.2",
    figure: "Figure 6: time of a round by policy",
    settings: runtime_settings,
    quick_s: 10,
    full_s: 2_400,
    rows: &runtime_rows,
};

/// Of Figure 8.
pub const LATENCY: Experiment = Experiment {
    name: LATENCY_NAME,
    paper: "003 (Popescu and Moore), §6.3",
    figure: "Figure 8: time from a task's submission to its place, by policy",
    settings: latency_settings,
    quick_s: 10,
    full_s: 2_400,
    rows: &latency_rows,
};

fn runtime_settings(scale: Scale) -> Vec<(String, String)> {
    let mut settings = described(scale);
    settings.push((
        "a round",
        "its network built, solved and read; the paper times the solver alone. One run at a time".to_owned(),
    ));
    texts(settings)
}

fn latency_settings(scale: Scale) -> Vec<(String, String)> {
    let mut settings = described(scale);
    settings.push((
        "placement latency",
        "whole seconds waited, and the rounds of that second up to the one that placed the task; one follows the other"
            .to_owned(),
    ));
    texts(settings)
}

/// A policy and what the paper has of it.
struct Timed {
    name: &'static str,
    system: System,
    /// Median, 99th percentile and most of a round, s.
    round_s: [f64; 3],
    /// Median, 90th and 99th percentile until a task is placed, s.
    placed_s: [f64; 3],
}

const SYSTEMS: [Timed; 6] = [
    // §6.3 prints a 90th percentile of random that is below its median.
    Timed { name: "random", system: System::RANDOM, round_s: [0.108, 0.661, 18.89], placed_s: [0.436, 0.312, 1.9] },
    Timed { name: "spread", system: System::SPREAD, round_s: [0.109, 0.974, 25.88], placed_s: [0.498, 4.3, 25.0] },
    Timed {
        name: "(105, 110)",
        system: System::nomora(105, 110),
        round_s: [0.093, 0.248, 6.13],
        placed_s: [0.278, 1.23, 5.8],
    },
    Timed {
        name: "(110, 115)",
        system: System::nomora(110, 115),
        round_s: [0.072, 0.486, 39.55],
        placed_s: [0.185, 1.0, 5.6],
    },
    Timed {
        name: "(105, 110), preemption, β = time run",
        system: System::nomora(105, 110).with_moves(1.0),
        round_s: [0.373, 511.0, 1_719.0],
        placed_s: [519.0, 1_484.0, 2_458.0],
    },
    Timed {
        name: "(105, 110), preemption, β = 0",
        system: System::nomora(105, 110).with_moves(0.0),
        round_s: [1_532.0, 6_610.0, 7_118.0],
        placed_s: [4_812.0, 13_077.0, 16_251.0],
    },
];

/// One after another, whatever the context's threads: they would disturb each other.
fn all_timed(name: &'static str, context: &RunContext<'_>) -> Result<Vec<Vec<Timing>>, ReproduceError> {
    let one = |timed_of: &Timed| {
        (context.progress)(&format!("{name}: {}", timed_of.name));
        let span_s = times(context.scale).0;
        let seed =
            |&seed: &u64| timed(timed_of.system, context.scale, seed, span_s).map_err(|error| failed(name, error));
        context.seeds.iter().map(seed).collect::<Result<Vec<_>, _>>()
    };
    SYSTEMS.iter().map(one).collect()
}

fn runtime_rows(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (of, timings) in SYSTEMS.iter().zip(all_timed(RUNTIME_NAME, context)?) {
        for ((what, share), paper) in
            [("median", 0.5), ("99th percentile", 0.99), ("most", 1.0)].into_iter().zip(of.round_s)
        {
            let round = |timing: &Timing| quantile(timing.rounds_s.iter().map(|&took| (took, 1)).collect(), share);
            let values = timings.iter().map(round).collect();
            rows.push(Row::at_most(&format!("{}: a round, {what}", of.name), paper, "s", values)?);
        }
        let rounds = timings.iter().map(|timing| timing.rounds_s.len() as f64).collect();
        rows.push(Row::without_figure(&format!("{}: rounds", of.name), "rounds", rounds)?);
    }
    Ok(rows)
}

fn latency_rows(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (of, timings) in SYSTEMS.iter().zip(all_timed(LATENCY_NAME, context)?) {
        for ((what, share), paper) in
            [("median", 0.5), ("90th percentile", 0.9), ("99th percentile", 0.99)].into_iter().zip(of.placed_s)
        {
            let values = timings.iter().map(|timing| quantile(timing.placed_s.clone(), share)).collect();
            rows.push(Row::at_most(&format!("{}: placed after, {what}", of.name), paper, "s", values)?);
        }
    }
    Ok(rows)
}

/// The least of so many of each that the share of them is not above; 0 where there are none.
fn quantile(mut all: Vec<(f64, u32)>, share: f64) -> f64 {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = all.iter().map(|(_, count)| u64::from(*count)).sum();
    let rank = ((share * total as f64).ceil() as u64).max(1);
    let mut through = 0;
    let reached = |(_, count): &&(f64, u32)| {
        through += u64::from(*count);
        through >= rank
    };
    all.iter().find(reached).map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_each_task() {
        let all = || vec![(3.0, 1), (1.0, 7), (2.0, 2)];
        assert_eq!(
            [0.0, 0.7, 0.71, 0.9, 0.91, 1.0].map(|share| quantile(all(), share)),
            [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
        );
        assert_eq!(quantile(vec![], 0.5), 0.0);
    }

    #[test]
    fn every_task_that_begins_is_timed_once_with_what_it_waited() {
        let found = timed(System::nomora(105, 110), Scale::Quick, 1, 600).unwrap();
        let placed: u64 = found.placed_s.iter().map(|(_, count)| u64::from(*count)).sum();
        assert!(placed > 100 && !found.rounds_s.is_empty(), "{placed} {}", found.rounds_s.len());
        assert!(found.placed_s.iter().any(|(took, _)| *took < 1.0), "rounds of a root and its tasks are of one second");
        let together = timed(System::nomora(1_000, 1_000).together(), Scale::Quick, 1, 600).unwrap();
        assert!(together.placed_s.iter().any(|(took, _)| *took < 1.0), "root and workers in one round");
        // A root is placed a round before its tasks: where both are placed in one there are fewer.
        let rounds = [&found, &together].map(|timing| timing.rounds_s.len());
        assert!(rounds[0] > rounds[1] && rounds[1] > 0, "{rounds:?}");
    }
}
