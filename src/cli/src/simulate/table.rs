//! What people read of a comparison: a row for each policy, ratios against the first.

use super::super::output::{bytes, digits, pairs, table};
use super::hold::describe as describe_hold;
use super::inputs::Cluster;
use super::matrix::{Case, Plan, Runs};
use hintd_engine::plans::input_homes::{PATIENCE_MAX, PATIENCE_MIN};
use hintd_model::units::Micros;
use hintd_policy::baselines::capacity;
use hintd_simulator::{Authority, CircuitReport, FlowGrain, RunReport, SimSettings};
use std::collections::BTreeSet;

/// All runs of one policy under one authority.
pub(super) struct Row<'a> {
    /// The policy, and the authority where both were run.
    pub(super) label: String,
    /// By seed; `None`: not begun.
    pub(super) reports: Vec<Option<&'a RunReport>>,
}

impl<'a> Row<'a> {
    /// The runs that are there.
    pub(super) fn there(&self) -> impl Iterator<Item = &'a RunReport> + '_ {
        self.reports.iter().flatten().copied()
    }

    /// Its whole runs: one that was interrupted says nothing beside them. `None` if there is none.
    pub(super) fn ended(mut self) -> Option<Self> {
        self.reports.iter_mut().for_each(|report| *report = report.filter(|report| report.unfinished == 0));
        self.reports.iter().any(Option::is_some).then_some(self)
    }

    /// The median over its seeds; `None` without a run.
    pub(super) fn median(&self, value: Value) -> Option<f64> {
        median(self.there().map(value).collect())
    }

    /// Ratios against `first`, seed by seed, where both runs ended.
    fn ratios(&self, first: &Row<'_>, value: Value) -> Vec<f64> {
        let both = self.reports.iter().zip(&first.reports).filter_map(|(own, its)| Some(((*own)?, (*its)?)));
        let ended = both.filter(|(own, its)| own.unfinished == 0 && its.unfinished == 0);
        ended.map(|(own, its)| value(own) / value(its)).filter(|ratio| ratio.is_finite()).collect()
    }
}

/// What is compared.
pub(super) type Value = fn(&RunReport) -> f64;

/// Name and value of what has a ratio in the table.
const COMPARED: [(&str, Value); 5] = [
    ("jobs/h", |report| report.throughput_jobs_per_hour),
    ("mean s", |report| report.mean_jct_s),
    ("p95 s", |report| report.p95_jct_s),
    ("cross-rack", |report| report.cross_rack_bytes as f64),
    ("congested rack s", |report| report.congested_s),
];

/// Runs by policy and authority, in their order.
pub(super) fn rows<'a>(plan: &Plan<'_>, runs: &'a Runs) -> Vec<Row<'a>> {
    let both = plan.cases.iter().any(|case| case.authority != plan.cases[0].authority);
    let mut rows: Vec<((usize, Authority), Row<'a>)> = Vec::new();
    for (case, report) in plan.cases.iter().zip(&runs.reports) {
        let key = (case.policy, case.authority);
        if rows.last().is_none_or(|(last, _)| *last != key) {
            let name = plan.policies[case.policy].name;
            let label = if both { format!("{name} ({})", case.authority.as_str()) } else { name.to_owned() };
            rows.push((key, Row { label, reports: Vec::new() }));
        }
        let (_, row) = rows.last_mut().expect("one was just put there");
        row.reports.push(report.as_ref());
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// All of it.
pub(super) fn text(plan: &Plan<'_>, cluster: &Cluster, runs: &Runs) -> String {
    let rows = rows(plan, runs);
    let mut parts = vec![assumptions(plan, cluster), main(&rows)];
    if rows.len() > 1 && rows[0].reports.len() > 1 {
        parts.push(spread(&rows));
    }
    parts.push(more(&rows));
    parts.extend(circuits(&rows));
    let places = |case: &&Case| {
        let policy = &plan.policies[case.policy];
        policy.is_asked() && policy.name != capacity::NAME
    };
    let placing = |meant: Authority| {
        let cases = plan.cases.iter().filter(|case| case.authority == meant).filter(places);
        cases.map(|case| plan.policies[case.policy].name).collect()
    };
    parts.extend(not_as_deployed(&placing(Authority::Policy), &placing(Authority::Hints)));
    parts.join("\n\n")
}

fn assumptions(plan: &Plan<'_>, cluster: &Cluster) -> String {
    let facts = &plan.trace.facts;
    let format = facts.format.map_or("", |format| format.as_str());
    let options = &plan.trace.options;
    let mut trace = format!(
        "{}: {} jobs, {} maps, {} reduces ({format})",
        plan.trace.path.display(),
        facts.jobs,
        facts.maps,
        facts.reduces
    );
    if options.scale_bytes.to_bits() != 1.0_f64.to_bits() {
        trace.push_str(&format!(", bytes x {}", options.scale_bytes));
    }
    if options.speed.to_bits() != 1.0_f64.to_bits() {
        trace.push_str(&format!(", {} times as fast", options.speed));
    }
    let bytes_of =
        format!("{} of input, {} of shuffle", bytes(facts.input_bytes as f64), bytes(facts.shuffle_bytes as f64));
    let statics = &cluster.cluster.snapshot.statics;
    let (nodes, racks) = (statics.len(), statics.racks.len());
    let place = format!("{}: {racks} racks, {nodes} nodes, {} containers", cluster.name, cluster.containers());
    let mut all = vec![("trace", trace), ("", bytes_of), ("cluster", place)];
    let model = plan.model.describe();
    for (at, (name, value)) in model.iter().enumerate() {
        all.push((if at == 0 { "job model" } else { "" }, format!("{name}: {value}")));
    }
    all.push(("settings", settings(plan.settings)));
    all.extend(
        authorities(plan).into_iter().enumerate().map(|(at, line)| (if at == 0 { "authority" } else { "" }, line)),
    );
    let deployed = plan.cases.iter().any(|case| case.authority == Authority::Deployed);
    all.extend(as_deployed(plan.settings).into_iter().filter(|_| deployed));
    all.push(("seeds", seeds(plan)));
    pairs(&all)
}

/// Who allocates containers, a line for each authority that was run.
fn authorities(plan: &Plan<'_>) -> Vec<String> {
    let run: BTreeSet<Authority> = plan.cases.iter().map(|case| case.authority).collect();
    let who = |authority: &Authority| match authority {
        Authority::Policy => "each policy is the scheduler and allocates containers itself, as papers compare them",
        Authority::Hints => {
            "YARN's capacity scheduler allocates, and every ask carries the policy's hints, whatever they gain"
        }
        Authority::Deployed => {
            "YARN's capacity scheduler allocates; stock applications, the ResourceManager's processor and hintd's engine, as in a cluster"
        }
    };
    run.iter().map(|authority| format!("{}: {}", authority.as_str(), who(authority))).collect()
}

/// What was simulated of policies that place for hintd, where that is not hintd as a cluster would run it, and how to get that.
fn not_as_deployed(scheduling: &BTreeSet<&str>, hinting: &BTreeSet<&str>) -> Option<String> {
    let named = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
    let scheduling = (!scheduling.is_empty()).then(|| {
        format!(
            "{}: simulated as a scheduler that allocates all containers itself (--authority policy, the default), which compares \
             policies. hintd allocates nothing, it advises YARN.",
            named(scheduling)
        )
    });
    let hinting = (!hinting.is_empty()).then(|| {
        format!(
            "{}: simulated with all of its hints in the asks (--authority hints). hintd keeps back hints that gain nothing, and maps \
             wait for hosts of their blocks.",
            named(hinting)
        )
    });
    let said: Vec<String> = scheduling.into_iter().chain(hinting).collect();
    let deployed = "For what a cluster gets from hintd run it again with --authority deployed, with capacity (YARN alone) and policies \
                    that place; hintctl worth compares these.";
    (!said.is_empty()).then(|| format!("{}\n{deployed}", said.join("\n")))
}

fn settings(settings: &SimSettings) -> String {
    let grain = match settings.grain {
        FlowGrain::Racks => "racks",
        FlowGrain::Nodes => "nodes",
    };
    format!(
        "heartbeat {} s, {} users, {} replicas, {} fetches a reduce, traffic by {grain}, congested from {} % of a rack's link{}",
        settings.heartbeat.as_secs_f64(),
        settings.users,
        settings.replicas,
        settings.fetches,
        digits(f64::from(settings.congested_per_mille) / 10.0),
        counters(settings),
    )
}

/// The end of a line of settings: whether anybody counts what links carry.
pub(crate) fn counters(settings: &SimSettings) -> String {
    settings
        .link_counters
        .map_or_else(String::new, |every| format!(", links' counters every {} s", every.as_secs_f64()))
}

/// What only runs as deployed have.
fn as_deployed(settings: &SimSettings) -> Vec<(&'static str, String)> {
    let hold = settings.hold.as_ref().map_or_else(|| "nobody is held".to_owned(), describe_hold);
    let known = match settings.recurring {
        share if share > 0.0 => {
            let error = settings.history_error;
            format!("{share} of the jobs recur; an earlier run is known but for factors of 1/{error} to {error}")
        }
        _ => "no job recurs".to_owned(),
    };
    let data = if settings.data_placement {
        let [least, most] = [PATIENCE_MIN, PATIENCE_MAX].map(Micros::as_secs_f64);
        format!(
            "input of recurring jobs was written where the policy says; their tasks wait there for as long as their shuffle \
             would need over the racks' uplinks, {least} to {most} s"
        )
    } else {
        "input lies where HDFS puts it".to_owned()
    };
    vec![("hold", hold), ("recurring", known), ("data", data)]
}

fn seeds(plan: &Plan<'_>) -> String {
    let first = plan.cases.first();
    let of_first = plan
        .cases
        .iter()
        .filter(|case| first.is_some_and(|first| (case.policy, case.authority) == (first.policy, first.authority)));
    let seeds: Vec<String> = of_first.map(|case| case.seed.to_string()).collect();
    let medians = if seeds.len() > 1 { "; medians below" } else { "" };
    format!("{}{medians}", seeds.join(", "))
}

/// Medians and their ratios.
fn main(rows: &[Row<'_>]) -> String {
    let header =
        ["policy", "jobs/h", "x", "mean s", "x", "median s", "p95 s", "x", "cross-rack", "x", "congested rack s", "x"];
    let lines = rows.iter().map(|row| {
        let number = |value: Value| row.median(value).map_or_else(dash, digits);
        let ratio = |value: Value| median(row.ratios(&rows[0], value)).map_or_else(dash, two);
        let [(_, rate), (_, mean), (_, p95), (_, cross), (_, congested)] = COMPARED;
        [
            row.label.clone(),
            number(rate),
            ratio(rate),
            number(mean),
            ratio(mean),
            number(|report| report.median_jct_s),
            number(p95),
            ratio(p95),
            row.median(cross).map_or_else(dash, bytes),
            ratio(cross),
            number(congested),
            ratio(congested),
        ]
    });
    table(header, 1, lines)
}

/// Lowest to highest ratio over the seeds.
fn spread(rows: &[Row<'_>]) -> String {
    let names = COMPARED.map(|(name, _)| name);
    let header = ["", names[0], names[1], names[2], names[3], names[4]];
    let lines = rows[1..].iter().map(|row| {
        let [rate, mean, p95, cross, congested] = COMPARED.map(|(_, value)| range(&row.ratios(&rows[0], value)));
        [row.label.clone(), rate, mean, p95, cross, congested]
    });
    format!("ratios against {}, lowest to highest over the seeds\n{}", rows[0].label, table(header, 1, lines))
}

/// Why the figures are what they are.
fn more(rows: &[Row<'_>]) -> String {
    let header = [
        "",
        "makespan h",
        "maps local %",
        "in rack %",
        "congestions",
        "maps done at 1st reduce %",
        "jobs",
        "unfinished",
        "never fit",
        "wall s",
    ];
    let lines = rows.iter().map(|row| {
        let number = |value: Value| row.median(value).map_or_else(dash, digits);
        let percent = |value: Value| row.median(value).map_or_else(dash, |share| digits(100.0 * share));
        [
            row.label.clone(),
            number(|report| report.makespan_s / 3600.0),
            percent(|report| locality(report, 0)),
            percent(|report| locality(report, 1)),
            number(|report| report.congestions as f64),
            percent(|report| report.map_progress_at_first_reduce),
            number(|report| report.jobs as f64),
            number(|report| report.unfinished as f64),
            number(|report| report.never_fit_count as f64),
            number(|report| report.wall_s),
        ]
    });
    table(header, 1, lines)
}

/// What circuits did; `None` without an optical switch.
fn circuits(rows: &[Row<'_>]) -> Option<String> {
    rows.iter().flat_map(Row::there).find_map(|report| report.circuits)?;
    let header =
        ["", "on circuits %", "on circuits", "changes of circuits", "elephants by packets", "racks without a port"];
    let lines = rows.iter().map(|row| {
        let of = |value: Value| row.median(value);
        let number = |value: Value| of(value).map_or_else(dash, digits);
        [
            row.label.clone(),
            of(|report| used(report).share).map_or_else(dash, |share| digits(100.0 * share)),
            of(|report| used(report).bytes as f64).map_or_else(dash, bytes),
            number(|report| used(report).changes as f64),
            number(|report| used(report).elephants_by_packets as f64),
            number(|report| used(report).racks_without_port as f64),
        ]
    });
    Some(table(header, 1, lines))
}

fn used(report: &RunReport) -> CircuitReport {
    report.circuits.unwrap_or_default()
}

/// Share of maps whose input lay on the node (0), in the rack (1).
fn locality(report: &RunReport, place: usize) -> f64 {
    let all: u64 = report.maps_by_locality.iter().sum();
    if all == 0 { 0.0 } else { report.maps_by_locality[place] as f64 / all as f64 }
}

fn range(ratios: &[f64]) -> String {
    let low = ratios.iter().copied().min_by(f64::total_cmp);
    let high = ratios.iter().copied().max_by(f64::total_cmp);
    low.zip(high).map_or_else(dash, |(low, high)| format!("{low:.2} - {high:.2}"))
}

/// The middle value, or the mean of the two; `None` of none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

fn two(ratio: f64) -> String {
    format!("{ratio:.2}")
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::plots::tests::report;
    use super::*;
    use hintd_engine::holding::HoldSettings;

    #[test]
    fn circuits_have_a_table_where_there_is_an_optical_switch_and_none_elsewhere() {
        let plain = report("fair", 1, 1.0);
        let used =
            CircuitReport { bytes: 3 << 40, share: 0.983, changes: 7, elephants_by_packets: 2, racks_without_port: 1 };
        let lit = RunReport { circuits: Some(used), ..report("jobpacker", 1, 1.0) };
        let row = |of| Row { label: "p".to_owned(), reports: vec![Some(of)] };
        assert_eq!(circuits(&[row(&plain)]), None);
        let text = circuits(&[row(&lit)]).unwrap();
        let line: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!((line[0], line[1]), ("p", "98.3"), "{text}");
        assert_eq!(line[line.len() - 3..], ["7", "2", "1"], "{text}");
        assert!(text.starts_with(' ') && text.contains("on circuits %"), "{text}");
    }

    #[test]
    fn what_runs_as_deployed_are_told_is_said_line_by_line() {
        let plain = as_deployed(&SimSettings::default());
        let values = plain.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>();
        let nothing = [("hold", "nobody is held"), ("recurring", "no job recurs")];
        assert_eq!(values, [nothing[0], nothing[1], ("data", "input lies where HDFS puts it")]);
        let hold = HoldSettings { home_share: 0.75, ..HoldSettings::default() };
        let all = SimSettings { hold: Some(hold), recurring: 0.7, data_placement: true, ..SimSettings::default() };
        let said: Vec<String> = as_deployed(&all).into_iter().map(|(_, value)| value).collect();
        for (line, part) in
            [(0, "0.75 of a home rack's"), (0, "patience 600 s"), (1, "0.7 of the jobs"), (2, "30 to 3600 s")]
        {
            assert!(said[line].contains(part), "{part}: {said:?}");
        }
    }

    #[test]
    fn who_reads_figures_is_told_what_was_simulated_and_how_to_get_what_a_cluster_would() {
        let names = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(not_as_deployed(&names(&[]), &names(&[])), None, "as deployed, or of no policy of hintd's");
        let said = not_as_deployed(&names(&["joint", "nas"]), &names(&[])).unwrap();
        assert!(
            said.starts_with("joint, nas: simulated as a scheduler that allocates all containers itself"),
            "{said}"
        );
        assert!(
            said.lines().last().unwrap().contains("with --authority deployed, with capacity (YARN alone)")
                && !said.contains("in the asks"),
            "{said}"
        );
        let both = not_as_deployed(&names(&["joint"]), &names(&["joint"])).unwrap();
        assert_eq!(both.lines().count(), 3, "{both}");
        assert!(both.contains("\njoint: simulated with all of its hints in the asks (--authority hints)"), "{both}");
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        assert_eq!([median(vec![]), median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])], [None, Some(2.0), Some(2.5)]);
    }
}
