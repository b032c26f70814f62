//! What the demo came to: counts, medians beside the default placement's, and the promises that were checked.

use super::super::adherence;
use super::super::output;
use super::host::DaemonCounters;
use super::story::{FlowReroute, Story};
use crate::emulate::Tally;
use hintd_client::wire::v1;

/// A cost term, how to read it, and how to print it.
struct Term {
    name: &'static str,
    read: fn(&v1::Terms) -> Option<f64>,
    unit: fn(f64) -> String,
}

/// Terms whose medians are shown.
const TERMS: [Term; 5] = [
    Term { name: "remote_bytes", read: |terms| terms.remote_bytes, unit: output::bytes },
    Term { name: "cross_rack_bytes", read: |terms| terms.cross_rack_bytes, unit: output::bytes },
    Term { name: "core_hops", read: |terms| terms.core_hops, unit: output::digits },
    Term { name: "worst_link_s", read: |terms| terms.worst_link_s, unit: output::seconds },
    Term { name: "objective", read: |terms| terms.objective, unit: output::digits },
];

/// A demo that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) story: Story,
    pub(super) tally: Tally,
    pub(super) books: DaemonCounters,
    pub(super) status: v1::StatusResponse,
    problems: Vec<String>,
}

/// Mean and median of a term over jobs where both placements have it.
pub(super) struct TermRow {
    pub(super) name: &'static str,
    unit: fn(f64) -> String,
    pub(super) jobs: usize,
    /// Of the hinted placement and of the default one.
    pub(super) median: (f64, f64),
    /// The same.
    pub(super) mean: (f64, f64),
}

impl Finished {
    pub(super) fn new(story: Story, tally: Tally, books: DaemonCounters, status: v1::StatusResponse) -> Self {
        let mut finished = Self { story, tally, books, status, problems: Vec::new() };
        finished.problems = finished.judge();
        finished
    }

    /// What was promised and did not hold, or was expected and did not happen.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    fn judge(&self) -> Vec<String> {
        let Tally { jobs, jobs_ended, tasks, tasks_ended, hinted, .. } = &self.tally;
        let mut problems = self.tally.violations.clone();
        problems.extend(self.books.violations.clone());
        if jobs_ended != jobs {
            problems.push(format!("{jobs_ended} of {jobs} jobs ended in time"));
        }
        if jobs_ended == jobs && tasks_ended != tasks {
            problems.push(format!("{tasks_ended} tasks ended where the jobs have {tasks}"));
        }
        if *hinted == 0 {
            problems.push("no hint was given".to_owned());
        }
        if self.tally.feed_refused > 0 {
            let first = self.tally.feed_complaints.first().cloned().unwrap_or_default();
            problems.push(format!("{} feed items were refused; the first: {first}", self.tally.feed_refused));
        }
        for death in self.story.deaths.iter().filter(|death| death.given_up.is_some_and(|containers| containers > 0)) {
            // A policy that dispatches launches them again at heartbeats, beside all others.
            let again = self.tally.dispatched > 0;
            if !again && !self.story.replaced.iter().any(|replaced| replaced.from.contains(&death.host)) {
                problems.push(format!("{} died with containers on it and none was placed anew", death.host));
            }
        }
        for (link, routes) in &self.story.failed_links {
            let moved = |told: &FlowReroute| told.subject == *link && told.cause == "link_down";
            if *routes > 0 && !self.story.flow_reroutes.iter().any(moved) {
                problems.push(format!("link {link} failed with {routes} routes of flows on it, and none moved"));
            }
            let told = self.story.reroutes.iter().find(|reroute| reroute.subject == *link);
            match told {
                None => problems.push(format!("link {link} failed and no routes came")),
                Some(reroute)
                    if reroute.changed + usize::try_from(reroute.untouched).unwrap_or(0) != self.story.watched =>
                {
                    problems.push(format!(
                        "of {} watched pairs {} changed and {} were untouched",
                        self.story.watched, reroute.changed, reroute.untouched
                    ));
                }
                Some(reroute) if reroute.cut_off > 0 => {
                    problems.push(format!("{} pairs have no route although another way is up", reroute.cut_off));
                }
                Some(_) => {}
            }
        }
        problems
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let tally = &self.tally;
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 };
        let yarn = tally.yarn;
        let lines = output::pairs(&[
            (
                "jobs",
                format!(
                    "{} of {} ended, with {} of {} tasks, in {}",
                    tally.jobs_ended,
                    tally.jobs,
                    tally.tasks_ended,
                    tally.tasks,
                    output::seconds(tally.took.as_secs_f64())
                ),
            ),
            (
                "hints",
                format!(
                    "{} issued; of YARN's containers {:.0} % went to the preferred host, {:.0} % to a next best one",
                    tally.hinted,
                    share(tally.followed, yarn.allocated),
                    share(tally.on_fallback, yarn.allocated),
                ),
            ),
            (
                "leases",
                format!(
                    "{} bound to containers, {} expired, {} withdrawn, {} placed anew",
                    self.counter("leases_bound"),
                    self.counter("leases_expired"),
                    tally.withdrawn,
                    plural_containers(tally.replaced),
                ),
            ),
            ("seen by hintd", adherence::line(&self.status.adherence)),
            ("gain realised", adherence::gains_line(&self.status.adherence)),
            ("", adherence::gains_note(&self.status.adherence)),
            (
                "requests",
                format!(
                    "{} answered, {} refused; half within {}, 99 % within {}",
                    tally.latencies.len(),
                    tally.refused,
                    output::seconds(self.latency_ms(0.5) / 1e3),
                    output::seconds(self.latency_ms(0.99) / 1e3),
                ),
            ),
            (
                "routes",
                format!(
                    "{} updates with {} rules applied one by one and acknowledged; no packet would have looped",
                    self.story.flow_updates.0, self.story.flow_updates.1
                ),
            ),
            (
                "YARN",
                format!(
                    "{} containers given to jobs, {} to foreign applications at random, {} died with their node",
                    yarn.allocated, yarn.foreign, yarn.lost
                ),
            ),
            (
                "model",
                format!("snapshot version {}, {} feed items refused", self.status.snapshot_version, tally.feed_refused),
            ),
        ]);
        format!("\nSummary\n{lines}\n\n{}\n\n{}", self.terms_text(), self.promises_text())
    }

    fn terms_text(&self) -> String {
        let change = |(hinted, default): (f64, f64)| {
            if default > 0.0 { format!("{:+.0} %", (hinted / default - 1.0) * 100.0) } else { "-".to_owned() }
        };
        let rows = self.terms().into_iter().map(|row| {
            let unit = row.unit;
            [
                output::term(row.name),
                unit(row.median.0),
                unit(row.median.1),
                unit(row.mean.0),
                unit(row.mean.1),
                change(row.mean),
                row.jobs.to_string(),
            ]
        });
        output::table(["cost of a job", "median", "default", "mean", "default", "change", "jobs"], 1, rows)
    }

    fn promises_text(&self) -> String {
        if self.problems.is_empty() {
            return format!(
                "Checked all along, and held: no lease given twice, no hint for a node that is gone, no node above\n\
                 its capacity in YARN's books nor (used + leased, looked at {} times) in the daemon's, every task once.",
                self.books.checks
            );
        }
        let problems: Vec<String> = self.problems.iter().map(|problem| format!("  {problem}")).collect();
        format!("NOT AS PROMISED:\n{}", problems.join("\n"))
    }

    /// What the daemon counts under this name.
    pub(super) fn counter(&self, name: &str) -> u64 {
        self.status.counters.get(name).copied().unwrap_or(0)
    }

    /// How long answers took, ms.
    pub(super) fn latency_ms(&self, quantile: f64) -> f64 {
        let mut latencies = self.tally.latencies.clone();
        latencies.sort_unstable();
        let at = ((latencies.len() as f64 * quantile).ceil() as usize).clamp(1, latencies.len().max(1)) - 1;
        latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }

    /// The terms that jobs have in both placements.
    pub(super) fn terms(&self) -> Vec<TermRow> {
        let sets: Vec<&v1::HintSet> = self.story.jobs.values().filter_map(|job| job.hints.first()).collect();
        let row = |Term { name, read, unit }: Term| {
            let both = |set: &&v1::HintSet| Some((read(set.terms.as_ref()?)?, read(set.baseline.as_ref()?)?));
            let pairs: Vec<(f64, f64)> = sets.iter().filter_map(both).collect();
            let (hinted, default): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            (!pairs.is_empty()).then(|| TermRow {
                name,
                unit,
                jobs: pairs.len(),
                median: (median(hinted.clone()), median(default.clone())),
                mean: (mean(&hinted), mean(&default)),
            })
        };
        TERMS.into_iter().filter_map(row).collect()
    }
}

fn plural_containers(count: u64) -> String {
    format!("{count} container{}", if count == 1 { "" } else { "s" })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn medians_of_odd_and_even_numbers_of_jobs() {
        assert!((super::median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((super::median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }
}
