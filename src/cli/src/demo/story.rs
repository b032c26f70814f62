//! The demo as it is told: one paragraph for each of a few jobs, or of all, one line per event, 100 columns wide at most.

use super::super::answers;
use super::super::failure::Failure;
use super::super::output::{self, Output};
use super::super::width;
use super::Plan;
use super::host::Host;
use crate::emulate::hdfs::Namespace;
use crate::emulate::{Cluster, EmulationEvent, JobPlan, Workload};
use hintd_client::wire::v1;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::Instant;

/// Columns that the story is set for, where there is room for them.
const COLUMNS: usize = 100;

/// Width of the time in front of a line.
const MARGIN: usize = 9;
/// Withdrawals told one by one; the rest is counted.
const WITHDRAWALS_TOLD: usize = 3;
/// Of all jobs the first and the last whose hints are printed, unless all are.
const JOBS_TOLD: (usize, usize) = (3, 2);
/// Between two lines that say how many jobs have hints.
const JOBS_BETWEEN: usize = 10;
/// Changed routes shown.
const ROUTES_SHOWN: usize = 2;

/// The columns that there are: what is broken here is not broken again where it is printed.
fn columns() -> usize {
    width::of_output().min(COLUMNS)
}

/// A job and its hints.
#[derive(Debug, Clone)]
pub(super) struct JobStory {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) maps: u32,
    pub(super) reduces: u32,
    pub(super) submitted: Duration,
    pub(super) hints: Vec<v1::HintSet>,
    pub(super) unhinted: Option<String>,
    pub(super) took: Option<Duration>,
}

/// Containers of a job placed anew.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    pub(super) job: String,
    pub(super) cause: String,
    pub(super) from: Vec<String>,
    pub(super) hints: v1::HintSet,
}

/// A change of routes.
#[derive(Debug, Clone)]
pub(super) struct Reroute {
    pub(super) subject: String,
    pub(super) cause: String,
    pub(super) changed: usize,
    pub(super) cut_off: usize,
    pub(super) untouched: u64,
    pub(super) took: Option<Duration>,
}

/// A change of routes of running flows.
#[derive(Debug, Clone)]
pub(super) struct FlowReroute {
    pub(super) subject: String,
    pub(super) cause: String,
    pub(super) phase: &'static str,
    pub(super) moved: usize,
    pub(super) untouched: u64,
    pub(super) rules: usize,
    pub(super) took: Option<Duration>,
}

/// A node's death.
#[derive(Debug, Clone)]
pub(super) struct Death {
    pub(super) host: String,
    pub(super) containers: usize,
    pub(super) elsewhere: usize,
    pub(super) given_up: Option<usize>,
}

/// A job that is to be submitted.
#[derive(Debug, Clone)]
struct PlannedJob {
    name: String,
    maps: u32,
    reduces: u32,
}

/// What was told so far.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) plan: Plan,
    pub(super) scale: Vec<(String, String)>,
    pub(super) jobs: BTreeMap<u64, JobStory>,
    pub(super) replaced: Vec<Replacement>,
    pub(super) reroutes: Vec<Reroute>,
    pub(super) deaths: Vec<Death>,
    pub(super) failed_links: Vec<(String, usize)>,
    pub(super) flow_reroutes: Vec<FlowReroute>,
    /// Route updates of running flows, and the rules in them.
    pub(super) flow_updates: (u64, usize),
    pub(super) withdrawals: usize,
    pub(super) watched: usize,
    routes: BTreeMap<(String, String), Vec<String>>,
    planned: BTreeMap<u64, PlannedJob>,
    output: Output,
    started: Instant,
}

impl Story {
    pub(super) fn new(plan: Plan, output: Output) -> Self {
        Self {
            plan,
            scale: Vec::new(),
            jobs: BTreeMap::new(),
            replaced: Vec::new(),
            reroutes: Vec::new(),
            deaths: Vec::new(),
            failed_links: Vec::new(),
            flow_reroutes: Vec::new(),
            flow_updates: (0, 0),
            withdrawals: 0,
            watched: 0,
            routes: BTreeMap::new(),
            planned: BTreeMap::new(),
            output,
            started: Instant::now(),
        }
    }

    /// What will be run, before it is.
    pub(super) fn opening(
        &mut self,
        host: &Host,
        cluster: &Cluster,
        namespace: &Namespace,
        workload: &Workload,
    ) -> Result<(), Failure> {
        let shape = cluster.shape;
        let (bytes, blocks) = namespace.size();
        let faults =
            self.plan.script.iter().map(|(at, what)| format!("at {} {what}", output::seconds(at.as_secs_f64())));
        let faults = faults.collect::<Vec<_>>().join(", ");
        self.scale = vec![
            ("time".to_owned(), format!("{:e}", workload.scale.time)),
            ("bytes".to_owned(), format!("{:e}", workload.scale.bytes)),
            ("task_time".to_owned(), format!("{:e}", workload.task_time)),
        ];
        let plan = |job: &JobPlan| {
            (job.number, PlannedJob { name: job.name.to_string(), maps: job.maps, reduces: job.reduces })
        };
        self.planned = workload.jobs.iter().map(plan).collect();
        let policy = &self.plan.args.policy;
        self.output.line(&format!(
            "hintd's daemon runs on {}, journal and admin socket in {}.{}\n\n",
            host.address(),
            host.folder().display(),
            if cfg!(debug_assertions) {
                " A debug build: answers take several times as long as a release's."
            } else {
                ""
            }
        ))?;
        let lines = output::pairs(&[
            (
                "cluster",
                format!(
                    "emulated: {} nodes of {} GB in {} racks, {} core switches, {} each, {}:1 oversubscribed",
                    shape.nodes,
                    shape.memory_mb / 1024,
                    shape.racks,
                    shape.cores,
                    output::rate(shape.host_bits_per_s.as_f64()),
                    shape.oversubscription,
                ),
            ),
            ("trace", format!("{} jobs of {}", workload.jobs.len(), self.plan.trace)),
            ("scaled", format!("{}, task times x {:.4}", workload.scale.describe(), workload.task_time)),
            ("data", format!("{} in {blocks} blocks, three replicas each", output::bytes(bytes.as_f64()))),
            ("policy", format!("{policy}; \"default\" is what YARN's own placement (capacity) would cost")),
            ("faults", faults),
        ]);
        self.output.line(&lines)?;
        let (first, last) = JOBS_TOLD;
        let which = match self.plan.args.full || workload.jobs.len() <= first + last {
            true => "Each job:".to_owned(),
            false => format!("The first {first} jobs and the last {last} (--full: each job):"),
        };
        let what = format!(
            "{which} where its containers should go (host x containers), and what that costs: remote bytes (input read from other \
             hosts), cross-rack bytes, core hops, time of the worst link, and the objective by which the policy decides (its score; \
             lower is better)."
        );
        self.output.line(&format!("\n{}\n\n", output::wrapped(&what, columns()).join("\n")))
    }

    /// The first job may come.
    pub(super) fn begin(&mut self) {
        self.started = Instant::now();
    }

    /// Something happened.
    pub(super) fn hear(&mut self, happening: EmulationEvent) -> Result<(), Failure> {
        match happening {
            EmulationEvent::Hinted { job, hints, took } => self.hinted(job, *hints, took),
            EmulationEvent::Unhinted { job, why } => {
                let name = self.name(job);
                self.job(job).unhinted = Some(why.clone());
                self.event(&format!("{name}: no hints ({why}); it runs as YARN likes"))
            }
            EmulationEvent::Replaced { job, from, hints, cause } => self.placed_anew(job, from, *hints, cause),
            EmulationEvent::Withdrawn { job, host, leases, reason } => {
                self.withdrawals += leases;
                if self.withdrawals <= WITHDRAWALS_TOLD {
                    let name = self.name(job);
                    return self
                        .event(&format!("{name}: {} on {host} withdrawn ({reason})", plural(leases as u32, "lease")));
                }
                Ok(())
            }
            EmulationEvent::Ended { job, took } => {
                self.job(job).took = Some(took);
                Ok(())
            }
            EmulationEvent::NodeKilled { host, containers, elsewhere } => {
                let line =
                    format!("*** {host} dies, with {containers} containers of jobs on it; {elsewhere} run elsewhere");
                self.deaths.push(Death { host, containers, elsewhere, given_up: None });
                self.event(&line)
            }
            EmulationEvent::NodeGivenUp { host, containers } => self.given_up(&host, containers),
            EmulationEvent::Link { id, up, routes } => {
                let line = if up {
                    format!("*** link {id} is back")
                } else {
                    format!("*** link {id} fails, with routes of {routes} pairs of hosts on it")
                };
                if !up {
                    self.failed_links.push((id, routes));
                }
                self.event(&line)
            }
            EmulationEvent::FlowRoutes { update, took } => self.flows_rerouted(&update, took),
            EmulationEvent::Routes { update, took } => self.rerouted(*update, took),
        }
    }

    fn hinted(&mut self, job: u64, hints: v1::HintSet, took: Duration) -> Result<(), Failure> {
        let story = self.job(job);
        let first = story.hints.is_empty();
        let (name, maps, reduces) = (story.name.clone(), story.maps, story.reduces);
        story.hints.push(hints.clone());
        if !self.is_told(job, first) {
            return if first { self.hinted_so_far() } else { Ok(()) };
        }
        let wave = if first { "" } else { ", next wave" };
        let head = format!(
            "{name}: {}, {}{wave}, answered in {}",
            plural(maps, "map"),
            plural(reduces, "reduce"),
            output::seconds(took.as_secs_f64())
        );
        self.event(&head)?;
        for group in ["map", "reduce"] {
            let hosts = answers::by_host(&hints.hints, Some(group));
            if !hosts.is_empty() {
                self.output.line(&format!(
                    "{:MARGIN$}{group:<8} {}",
                    "",
                    hosts_line(&hosts, columns() - MARGIN - 9)
                ))?;
            }
        }
        if !hints.routes.is_empty() {
            self.output.line(&routes_line(&hints.routes))?;
        }
        self.output.line(&cost_lines(&hints))
    }

    /// Whether a job's hints are printed, of this wave of its tasks.
    fn is_told(&self, job: u64, first_wave: bool) -> bool {
        let (first, last) = JOBS_TOLD;
        let (before, all) = (self.planned.range(..job).count(), self.planned.len());
        self.plan.args.full || all <= first + last || first_wave && (before < first || before + last >= all)
    }

    /// What stands for jobs whose hints are not printed.
    fn hinted_so_far(&self) -> Result<(), Failure> {
        let hinted = self.jobs.values().filter(|job| !job.hints.is_empty()).count();
        match hinted.is_multiple_of(JOBS_BETWEEN) {
            true => self.event(&format!("{hinted} of {} jobs have hints", self.planned.len())),
            false => Ok(()),
        }
    }

    /// Routes of flows come and go with each job; told is what the network does to them.
    fn flows_rerouted(&mut self, update: &v1::RouteUpdate, took: Option<Duration>) -> Result<(), Failure> {
        self.flow_updates.0 += 1;
        self.flow_updates.1 += update.rules.len();
        if !matches!(update.cause.as_str(), "link_down" | "link_up") {
            return Ok(());
        }
        let reroute = FlowReroute {
            subject: update.subject.clone(),
            cause: update.cause.clone(),
            phase: hintd_client::view::phase(update.phase()),
            moved: update.routes.len(),
            untouched: update.untouched,
            rules: update.rules.len(),
            took,
        };
        let after = took.map_or_else(String::new, |took| {
            format!(", {} after the controller told", output::seconds(took.as_secs_f64()))
        });
        let line = format!(
            "flows ({} {}, {}): routes of {} running pairs moved, {} untouched; {}{after}",
            reroute.cause,
            reroute.subject,
            reroute.phase,
            reroute.moved,
            reroute.untouched,
            plural(reroute.rules as u32, "rule"),
        );
        self.flow_reroutes.push(reroute);
        self.event(&line)
    }

    fn placed_anew(&mut self, job: u64, from: Vec<String>, hints: v1::HintSet, cause: String) -> Result<(), Failure> {
        let name = self.name(job);
        let leaves = if from.is_empty() { String::new() } else { format!(" off {}", from.join(", ")) };
        let to: Vec<String> = ["map", "reduce"]
            .into_iter()
            .filter_map(|group| {
                let hosts = answers::by_host(&hints.hints, Some(group));
                let count: u32 = hosts.iter().map(|(_, count)| count).sum();
                (count > 0).then(|| format!("{} -> {}", plural(count, group), hosts_line(&hosts, 40)))
            })
            .collect();
        self.replaced.push(Replacement { job: name.clone(), cause: cause.clone(), from, hints });
        self.event(&format!("{name}: placed anew{leaves} ({cause}): {}", to.join("; ")))
    }

    fn given_up(&mut self, host: &str, containers: usize) -> Result<(), Failure> {
        if let Some(death) = self.deaths.iter_mut().find(|death| death.host == host) {
            death.given_up = Some(containers);
        }
        let touched: std::collections::BTreeSet<&str> =
            self.replaced.iter().map(|replaced| replaced.job.as_str()).collect();
        let untouched =
            self.jobs.values().filter(|job| job.took.is_none() && !touched.contains(job.name.as_str())).count();
        let line = format!(
            "YARN gives {host} up too: {containers} containers died; {} placed anew, {} not touched",
            plural(touched.len() as u32, "job"),
            plural(untouched as u32, "running job"),
        );
        self.event(&line)
    }

    fn rerouted(&mut self, update: v1::RouteUpdate, took: Option<Duration>) -> Result<(), Failure> {
        let mut shown = Vec::new();
        for route in &update.routes {
            let Some(pair) = &route.pair else { continue };
            let key = (pair.src.clone(), pair.dst.clone());
            let before = self.routes.insert(key, route.vertices.clone());
            if let Some(before) = before.filter(|_| shown.len() < ROUTES_SHOWN) {
                shown.push(format!("{:MARGIN$}  {} => {}", "", path(&before), path(&route.vertices)));
            }
        }
        if update.snapshot {
            self.watched = update.routes.len();
            return self.event(&format!("the controller watches the routes of {} pairs of hosts", self.watched));
        }
        // Watched pairs share the routes of jobs that come and go; told is what the network does to them.
        if !update.cause.starts_with("link_") {
            return Ok(());
        }
        let cut_off = update.routes.iter().filter(|route| route.vertices.is_empty()).count();
        let reroute = Reroute {
            subject: update.subject.clone(),
            cause: update.cause.clone(),
            changed: update.routes.len(),
            cut_off,
            untouched: update.untouched,
            took,
        };
        let after = took.map_or_else(String::new, |took| {
            format!(", {} after the controller told", output::seconds(took.as_secs_f64()))
        });
        let line = format!(
            "routes ({} {}): {} of {} watched pairs changed, {} untouched{after}",
            reroute.cause, reroute.subject, reroute.changed, self.watched, reroute.untouched
        );
        self.reroutes.push(reroute);
        self.event(&line)?;
        for line in shown {
            self.output.line(&line)?;
        }
        Ok(())
    }

    fn event(&self, text: &str) -> Result<(), Failure> {
        let at = self.started.elapsed().as_secs_f64();
        let indent = format!("\n{:1$}", "", MARGIN + 2);
        self.output.line(&format!("{at:5.1} s  {}", output::wrapped(text, columns() - MARGIN - 2).join(&indent)))
    }

    fn name(&self, job: u64) -> String {
        self.planned.get(&job).map_or_else(|| format!("job {job}"), |planned| planned.name.clone())
    }

    fn job(&mut self, number: u64) -> &mut JobStory {
        let submitted = self.started.elapsed();
        let planned = self.planned.get(&number).cloned();
        let unknown = || PlannedJob { name: format!("job {number}"), maps: 0, reduces: 0 };
        let PlannedJob { name, maps, reduces } = planned.unwrap_or_else(unknown);
        self.jobs.entry(number).or_insert_with(|| JobStory {
            number,
            name,
            maps,
            reduces,
            submitted,
            hints: Vec::new(),
            unhinted: None,
            took: None,
        })
    }
}

/// How many pairs of hosts will talk, and the heaviest one's way.
fn routes_line(routes: &[v1::HintRoute]) -> String {
    let installed = routes.iter().filter(|route| route.installed).count();
    let heaviest = routes.iter().max_by_key(|route| route.bytes).map_or_else(String::new, |route| {
        format!("; {} to {} via {}", route.src, route.dst, answers::via(&route.vertices))
    });
    let pairs = plural(routes.len() as u32, "host pair");
    let what = format!("{pairs}, {installed} to install{heaviest}");
    format!("{:MARGIN$}{:<8} {what}", "", "routes")
}

/// Terms of the hints above those of the default placement, in columns.
fn cost_lines(hints: &v1::HintSet) -> String {
    let row = |name: &str, terms: Option<&v1::Terms>| {
        let cell = |value: Option<f64>, unit: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), unit);
        let of = |field: fn(&v1::Terms) -> Option<f64>| terms.and_then(field);
        format!(
            "{:MARGIN$}{name:<8} input {:>8} racks {:>8} hops {:>5} link {:>8} score {:>7}",
            "",
            cell(of(|terms| terms.remote_bytes), output::bytes),
            cell(of(|terms| terms.cross_rack_bytes), output::bytes),
            cell(of(|terms| terms.core_hops), output::digits),
            cell(of(|terms| terms.worst_link_s), output::seconds),
            cell(of(|terms| terms.objective), output::digits),
        )
    };
    let mut text = row("hinted", hints.terms.as_ref());
    let _ = write!(text, "\n{}", row("default", hints.baseline.as_ref())); // writing to a String can't fail
    if let Some(gain) = hints.expected_gain {
        let _ = write!(text, "  gain {}", output::percent(gain));
    }
    text
}

/// `host x count` until the line is full, then how many more.
pub(super) fn hosts_line(hosts: &[(String, u32)], width: usize) -> String {
    let mut line = String::new();
    for (at, (host, count)) in hosts.iter().enumerate() {
        let item = if *count == 1 { host.clone() } else { format!("{host} x{count}") };
        let rest = hosts.len() - at;
        let more = format!(" and {}", output::count(rest as u64, "more host"));
        let gap = usize::from(at > 0);
        if line.len() + gap + item.len() + if rest > 1 { more.len() } else { 0 } > width {
            line.push_str(&more);
            return line;
        }
        if at > 0 {
            line.push(' ');
        }
        line.push_str(&item);
    }
    line
}

fn plural(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn path(vertices: &[String]) -> String {
    if vertices.is_empty() { "cut off".to_owned() } else { vertices.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_hosts_ends_at_the_width_and_says_how_many_are_left() {
        let hosts: Vec<(String, u32)> = (0..30).map(|n| (format!("node-01-{n}"), 30 - n)).collect();
        let line = hosts_line(&hosts, 60);
        assert!(line.len() <= 60, "{line}");
        assert!(line.starts_with("node-01-0 x30 node-01-1 x29"), "{line}");
        assert!(line.ends_with("more hosts"), "{line}");
        assert_eq!(hosts_line(&hosts[29..], 60), "node-01-29");
    }
}
