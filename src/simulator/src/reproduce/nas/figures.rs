//! Figures 3.8 to 3.16: throughput, completion, traffic, congestion, thresholds, users.

use super::systems::{System, World, run};
use super::world;
use crate::RunReport;
use crate::reproduce::{Better, Experiment, ReproduceError, Row, RunContext};
use std::sync::Arc;

const PAPER: &str = "004 (Li), chapter 3, §3.3.3";
/// About what any of the samples takes, seconds.
const QUICK_S: u64 = 30;
/// About what a run of the day takes on one core, seconds.
const FULL_RUN_S: u64 = 120;

/// Of so many runs for each of five seeds, on two cores.
const fn full_s(runs: u64) -> u64 {
    runs * 5 * FULL_RUN_S / 2
}

/// Figure 3.8 (a).
pub const THROUGHPUT: Experiment = Experiment {
    name: "nas-throughput",
    paper: PAPER,
    figure: "Figures 3.8 (a) and 3.15: throughput of the simulation, jobs ÷ makespan",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(4),
    rows: &|entry, context| throughput(&Runs { entry, context }),
};
/// Figure 3.8 (b).
pub const COMPLETION: Experiment = Experiment {
    name: "nas-jct",
    paper: PAPER,
    figure: "Figure 3.8 (b): mean completion time of jobs",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(4),
    rows: &|entry, context| completion(&Runs { entry, context }),
};
/// Figures 3.9 and 3.10.
pub const TRAFFIC: Experiment = Experiment {
    name: "nas-traffic",
    paper: PAPER,
    figure: "Figures 3.9 and 3.10: traffic across racks; map progress when the first reduce is scheduled",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(4),
    rows: &|entry, context| traffic(&Runs { entry, context }),
};
/// Figures 3.11 to 3.13.
pub const CONGESTION: Experiment = Experiment {
    name: "nas-congestion",
    paper: PAPER,
    figure: "Figures 3.11 to 3.13: nodes above the traffic threshold, and occurrences of congestion across racks",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(7),
    rows: &|entry, context| congestion(&Runs { entry, context }),
};
/// Figures 3.8 and 3.9 by mechanism.
pub const MECHANISMS: Experiment = Experiment {
    name: "nas-mechanisms",
    paper: PAPER,
    figure: "Figures 3.8 and 3.9: MTS, and CA-RTS with it, without the rest of nas",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(4),
    rows: &|entry, context| mechanisms(&Runs { entry, context }),
};
/// Figure 3.8 under other assumptions.
pub const ASSUMPTIONS: Experiment = Experiment {
    name: "nas-assumptions",
    paper: PAPER,
    figure: "Figure 3.8 with one assumption of the model changed at a time",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(24),
    rows: &|entry, context| assumptions(&Runs { entry, context }),
};
/// Figure 3.16.
pub const THRESHOLDS: Experiment = Experiment {
    name: "nas-thresholds",
    paper: PAPER,
    figure: "Figure 3.16: throughput of nas for varying T_min and T_max",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(10),
    rows: &|entry, context| thresholds(&Runs { entry, context }),
};
/// Figure 3.14.
pub const USERS: Experiment = Experiment {
    name: "nas-users",
    paper: PAPER,
    figure: "Figure 3.14: throughput of nas by number of users, against fair with 200",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: full_s(5),
    rows: &|entry, context| users(&Runs { entry, context }),
};

const FAIR: &str = "fair";
const DELAY: &str = "delay";
const WATCHER: &str = "shufflewatcher";
const NAS: &str = "nas";

/// What the rows of an entry are made from.
struct Runs<'a> {
    entry: &'static str,
    context: &'a RunContext<'a>,
}

impl Runs<'_> {
    fn system(&self, policy: &'static str, params: &'static str) -> System {
        System::new(policy, params, World::day(self.context.scale))
    }

    /// One report for each seed.
    fn of(&self, system: System) -> Result<Vec<Arc<RunReport>>, ReproduceError> {
        let params = system.params.trim_end().replace('\n', ", ");
        (self.context.progress)(&format!("{}: {} {params}", self.entry, system.policy));
        self.context.per_seed(|seed| run(self.entry, system, seed, self.context.kept))
    }

    /// A value of each seed's report.
    fn values(&self, system: System, value: impl Fn(&RunReport) -> f64) -> Result<Vec<f64>, ReproduceError> {
        Ok(self.of(system)?.iter().map(|report| value(report)).collect())
    }

    fn default_of(&self, policy: &'static str, value: fn(&RunReport) -> f64) -> Result<Vec<f64>, ReproduceError> {
        self.values(self.system(policy, ""), value)
    }
}

fn ratio(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

fn throughput(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.throughput_jobs_per_hour;
    let nas = runs.default_of(NAS, value)?;
    let mut rows = Vec::new();
    let mut systems = vec![(NAS, nas.clone())];
    for (policy, paper) in [(WATCHER, 1.28), (DELAY, 1.412), (FAIR, 1.569)] {
        let other = runs.default_of(policy, value)?;
        rows.push(Row::at_least(&format!("nas ÷ {policy}"), paper, "×", ratio(&nas, &other))?);
        systems.push((policy, other));
    }
    rows.push(Row::order("order of systems", Better::Higher, &systems)?);
    let fair = &systems[3].1;
    rows.push(Row::without_figure("throughput of fair", "jobs/h", fair.clone())?);
    for (class, name) in ["light", "medium", "heavy"].into_iter().enumerate() {
        let of = |report: &RunReport| report.classes[class].throughput_jobs_per_hour;
        let (nas, fair) = (runs.values(runs.system(NAS, ""), of)?, runs.values(runs.system(FAIR, ""), of)?);
        rows.push(Row::without_figure(
            &format!("shuffle-{name} jobs: nas ÷ fair (Figure 3.15)"),
            "×",
            ratio(&nas, &fair),
        )?);
    }
    rows.push(Row::without_figure(
        "makespan of fair",
        "h",
        runs.default_of(FAIR, |report| report.makespan_s / 3600.0)?,
    )?);
    rows.push(Row::without_figure("makespan of nas", "h", runs.default_of(NAS, |report| report.makespan_s / 3600.0)?)?);
    let need = runs.context.per_seed(|seed| Ok(world::uplinks_need_s(runs.context.scale, seed)))?;
    let lost = ratio(&runs.default_of(FAIR, |report| report.makespan_s)?, &need);
    rows.push(Row::without_figure("makespan of fair ÷ what full uplinks need for an even shuffle", "×", lost)?);
    Ok(rows)
}

/// Map scheduling of nas alone: reduces as `fair` starts them.
const MTS: &str = "ca_rts = false\ncr_rts = false\n";
/// Without congestion reduction.
const MTS_CA: &str = "cr_rts = false\n";
/// Without a threshold of traffic.
const NO_TT: &str = "traffic_threshold = false\n";
/// Without the adaptive threshold of map completion.
const NO_MCT: &str = "adaptive_threshold = false\n";
const NO_BOTH: &str = "traffic_threshold = false\nadaptive_threshold = false\n";

/// What every other entry holds fixed, changed.
fn assumptions(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let throughput = |report: &RunReport| report.throughput_jobs_per_hour;
    let completion = |report: &RunReport| report.mean_jct_s;
    let base = |policy| runs.system(policy, "");
    let cases: [(&str, &dyn Fn(&'static str) -> System); 6] = [
        ("as stated", &base),
        ("ratios known from earlier runs (§3.2.1)", &|policy| System { known_ratios: true, ..base(policy) }),
        ("half the compute rate", &|policy| System { compute_percent: 50, ..base(policy) }),
        ("twice the compute rate", &|policy| System { compute_percent: 200, ..base(policy) }),
        ("early reduces up to half of the cluster", &|policy| runs.system(policy, HALF)),
        ("maps by shuffle where the trace has no input", &|policy| System { maps_by_shuffle: true, ..base(policy) }),
    ];
    let mut rows: Vec<Row> = Vec::new();
    let mut stated: Vec<Row> = Vec::new();
    for (case, system) in cases {
        for (at, (policy, paper)) in [(WATCHER, 0.695), (DELAY, 0.62), (FAIR, 0.557)].into_iter().enumerate() {
            let (nas, other) = (system(NAS), system(policy));
            let more = ratio(&runs.values(nas, throughput)?, &runs.values(other, throughput)?);
            let less = ratio(&runs.values(nas, completion)?, &runs.values(other, completion)?);
            rows.push(Row::without_figure(&format!("throughput, nas ÷ {policy}, {case}"), "×", more)?);
            let row = match stated.get(at) {
                Some(stated) => Row::assumption(stated, case, less)?,
                None => {
                    let row = Row::at_most(&format!("mean completion, nas ÷ {policy}"), paper, "×", less)?;
                    stated.push(row.clone());
                    row
                }
            };
            rows.push(row);
        }
    }
    Ok(rows)
}

/// MapReduce's ramp-up limit of one application, given to the cluster.
const HALF: &str = "early_reduces = 0.5\n";

fn completion(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.mean_jct_s;
    let nas = runs.default_of(NAS, value)?;
    let mut rows = Vec::new();
    let mut systems = vec![(NAS, nas.clone())];
    for (policy, paper) in [(WATCHER, 30.5), (DELAY, 38.0), (FAIR, 44.3)] {
        let other = runs.default_of(policy, value)?;
        let shorter = ratio(&nas, &other).into_iter().map(|ratio| (1.0 - ratio) * 100.0).collect();
        rows.push(Row::at_least(&format!("shorter than {policy}"), paper, "%", shorter)?);
        systems.push((policy, other));
    }
    rows.push(Row::order("order of systems", Better::Lower, &systems)?);
    let medians = ratio(&runs.default_of(NAS, |r| r.median_jct_s)?, &runs.default_of(FAIR, |r| r.median_jct_s)?);
    rows.push(Row::without_figure("median, nas ÷ fair", "×", medians)?);
    rows.push(Row::without_figure("mean of nas", "s", nas)?);
    Ok(rows)
}

fn traffic(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.cross_rack_shuffle_bytes as f64;
    let fair = runs.default_of(FAIR, value)?;
    let less = |other: &[f64]| ratio(other, &fair).into_iter().map(|ratio| (1.0 - ratio) * 100.0).collect::<Vec<_>>();
    let (nas, watcher) = (runs.default_of(NAS, value)?, runs.default_of(WATCHER, value)?);
    let mut rows = vec![Row::at_least("nas: less shuffle across racks than fair", 40.0, "%", less(&nas))?];
    rows.push(Row::order("nas, then fair", Better::Lower, &[(NAS, nas), (FAIR, fair.clone())])?);
    rows.push(Row::order(
        "shufflewatcher, then fair",
        Better::Lower,
        &[(WATCHER, watcher.clone()), (FAIR, fair.clone())],
    )?);
    rows.push(Row::without_figure("shufflewatcher: less than fair", "%", less(&watcher))?);
    rows.push(Row::without_figure("delay: less than fair", "%", less(&runs.default_of(DELAY, value)?))?);
    let progress = |report: &RunReport| report.map_progress_at_first_reduce;
    let mut systems = Vec::new();
    for policy in [WATCHER, NAS, FAIR] {
        systems.push((policy, runs.default_of(policy, progress)?));
    }
    rows.push(Row::order("map progress at the first reduce (Figure 3.10)", Better::Higher, &systems)?);
    let delay = runs.default_of(DELAY, progress)?;
    rows.push(Row::without_figure(
        "map progress at the first reduce, delay ÷ fair",
        "×",
        ratio(&delay, &systems[2].1),
    )?);
    Ok(rows)
}

fn mechanisms(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let parts = [("nas", ""), ("MTS + CA-RTS", MTS_CA), ("MTS", MTS)];
    let mut rows = Vec::new();
    struct Measure {
        measure: &'static str,
        better: Better,
        value: fn(&RunReport) -> f64,
    }
    let of = |measure, better, value| Measure { measure, better, value };
    let measures = [
        of("throughput", Better::Higher, |report| report.throughput_jobs_per_hour),
        of("mean completion", Better::Lower, |report| report.mean_jct_s),
        of("shuffle across racks", Better::Lower, |report| report.cross_rack_shuffle_bytes as f64),
    ];
    for Measure { measure, better, value } in measures {
        let fair = runs.default_of(FAIR, value)?;
        let mut systems = Vec::new();
        for (name, params) in parts {
            let part = runs.values(runs.system(NAS, params), value)?;
            rows.push(Row::without_figure(&format!("{measure}: {name} ÷ fair"), "×", ratio(&part, &fair))?);
            systems.push((name, part));
        }
        systems.push((FAIR, fair));
        // Figure 3.9: CR-RTS "does not further decrease the cross-rack traffic", and MTS has about that of delay.
        let ordered = if measure == "shuffle across racks" { &systems[1..3] } else { &systems[..] };
        rows.push(Row::order(&format!("{measure}: order"), better, ordered)?);
    }
    Ok(rows)
}

fn congestion(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.congestions as f64;
    let nas = runs.default_of(NAS, value)?;
    let mut rows = Vec::new();
    for (name, params, paper) in [("w/o TT", NO_TT, 1.22), ("w/o MCT", NO_MCT, 1.07), ("w/o both", NO_BOTH, 1.31)] {
        let without = runs.values(runs.system(NAS, params), value)?;
        rows.push(Row::at_least(
            &format!("occurrences {name} ÷ nas (Figure 3.13)"),
            paper,
            "×",
            ratio(&without, &nas),
        )?);
    }
    for policy in [FAIR, DELAY] {
        let other = runs.default_of(policy, value)?;
        let name = format!("occurrences: nas, then {policy} (Figure 3.12)");
        rows.push(Row::order(&name, Better::Lower, &[(NAS, nas.clone()), (policy, other.clone())])?);
        rows.push(Row::without_figure(&format!("occurrences {policy} ÷ nas"), "×", ratio(&other, &nas))?);
    }
    let over = |report: &RunReport| report.nodes_over_traffic_threshold * 100.0;
    let mut systems = Vec::new();
    for policy in [NAS, FAIR, WATCHER] {
        systems.push((policy, runs.default_of(policy, over)?));
    }
    rows.push(Row::order("nodes above the traffic threshold (Figure 3.11)", Better::Lower, &systems)?);
    for (policy, values) in systems {
        rows.push(Row::without_figure(&format!("nodes above the traffic threshold: {policy}"), "%", values)?);
    }
    let seconds = |report: &RunReport| report.congested_s;
    rows.push(Row::without_figure(
        "congested time, nas ÷ fair",
        "×",
        ratio(&runs.default_of(NAS, seconds)?, &runs.default_of(FAIR, seconds)?),
    )?);
    Ok(rows)
}

fn thresholds(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.throughput_jobs_per_hour;
    let nas = runs.default_of(NAS, value)?;
    let mut rows = Vec::new();
    let mut equal = Vec::new();
    for (name, params) in [("0.2", "t_min = 0.2\nt_max = 0.2\n"), ("0.5", "t_min = 0.5\nt_max = 0.5\n")] {
        let fixed = runs.values(runs.system(NAS, params), value)?;
        let name = format!("T_min = T_max = {name} ÷ nas");
        rows.push(Row::without_figure(&name, "×", ratio(&fixed, &nas))?);
        equal.push(ratio(&nas, &fixed));
    }
    let gain = equal[0].iter().zip(&equal[1]).map(|(a, b)| (a.max(*b) - 1.0) * 100.0).collect();
    rows.insert(0, Row::at_least("most that the adaptive threshold gains over T_min = T_max", 5.0, "%", gain)?);
    for (name, params) in [
        ("T_min 0.2, T_max 0.3", "t_max = 0.3\n"),
        ("T_min 0.2, T_max 0.7", "t_max = 0.7\n"),
        ("T_min 0.2, T_max 0.9", "t_max = 0.9\n"),
        ("T_min 0.1, T_max 0.5", "t_min = 0.1\n"),
        ("T_min 0.4, T_max 0.5", "t_min = 0.4\n"),
    ] {
        let varied = runs.values(runs.system(NAS, params), value)?;
        rows.push(Row::without_figure(&format!("{name} ÷ nas"), "×", ratio(&varied, &nas))?);
    }
    Ok(rows)
}

fn users(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let value = |report: &RunReport| report.throughput_jobs_per_hour;
    let fair = runs.default_of(FAIR, value)?;
    let mut rows = Vec::new();
    let mut ends = Vec::new();
    for users in [50, 100, 200, 400] {
        let nas = runs.values(System { users, ..runs.system(NAS, "") }, value)?;
        rows.push(Row::without_figure(&format!("{users} users ÷ fair with 200"), "×", ratio(&nas, &fair))?);
        ends.push(nas);
    }
    let order = [("50 users", ends[0].clone()), ("400 users", ends[3].clone())];
    rows.push(Row::order("fewer users, more throughput", Better::Higher, &order)?);
    Ok(rows)
}
