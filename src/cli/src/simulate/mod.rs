//! `hintctl simulate`: a trace replayed on a cluster under policies side by side.
//!
//! # Code map
//! - `inputs`: cluster and trace, from files or by name. `hold`: settings of `[hold]`. `policies`: those to compare, their parameters, and the one
//!   place where a dispatcher is made of policy and authority. `matrix`: all runs. `pool`: several at once. `single`: one
//!   run. `progress`: how far they are, and the interrupt. `document`: JSON. `table`: the same for people. `plots`: SVG.
//!
//! # Invariants
//! - Results stand in the order policy, authority, seed, and are the same bytes whatever the number of threads, but for
//!   `wall_s` and `peak_rss_bytes`.
//! - An interrupt ends the runs, not the command: what is printed and written then is whole in form.

mod document;
mod hold;
mod inputs;
mod matrix;
mod plots;
mod policies;
mod pool;
mod progress;
pub mod script;
mod single;
mod table;

pub(crate) use document::{ClusterView, HoldView, ModelView, SettingsView};
pub(crate) use hold::{HoldArgs, describe as describe_hold};
pub(crate) use inputs::{Cluster, Trace, cluster};
pub(crate) use inputs::{in_trace, skipped, unpacked};
pub(crate) use policies::{Chosen, choose};
pub(crate) use pool::{Pool, RunWatch};
pub(crate) use single::Single;
pub(crate) use table::counters as describe_counters;

use super::failure::Failure;
use super::files;
use super::new_file::ReplaceArg;
use super::output::Output;
use super::plan::objective::ObjectiveArg;
use crate::plots::provenance::{self, Provenance};
use clap::{Args, ValueEnum};
use hintd_model::units::Micros;
use hintd_policy::baselines::capacity;
use hintd_simulator::shape::Joined;
use hintd_simulator::yarn::HISTORY_ERROR_MAX;
use hintd_simulator::{Authority, DelaysFile, FlowGrain, JobModel, Part, SimSettings, TraceOptions};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// What to replay where, and under which policies.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    hintctl simulate --trace FB-2010.tsv.gz --cluster nas --policy fair,delay,nas --plots out/\n  \
    hintctl simulate --trace FB-2010.tsv.gz --jobs 2000 --cluster nas --policy fair,nas --seeds 5 -o runs.json\n  \
    hintctl --json simulate --trace jobs.jsonl --cluster my.toml --policy fair,nas --param nas.map_skips=40\n\n\
    Traces: SWIM's rows or JSON lines, packed with gzip or not (docs/formats.md); `hintctl trace generate` draws one.\n\
    Clusters by name: nas, nas-40, nas-40-2to1, nas-40-10to1, jobpacker, jobpacker-packets, container, cross-layer-30, scale-out, scale-up-out; or a file of hintd.shape/1 or hintd.cluster/1.\n\
    Ratios are against the first policy; several seeds give medians and spread. The same command gives the same results.")]
pub struct SimulateArgs {
    /// The jobs: SWIM's rows or JSON lines, gzip or not
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// The cluster: a shipped one by name, a shape, or a whole cluster document
    #[arg(long, value_name = "FILE|NAME")]
    cluster: String,
    /// Policies to compare, the first being what the others are measured against
    #[arg(long, value_name = "A,B,...", required = true, value_delimiter = ',')]
    policy: Vec<String>,
    /// Who allocates containers: the policy itself, as papers compare schedulers, or YARN's scheduler, which it advises; `deployed` is
    /// what a cluster gets
    #[arg(long, value_enum, default_value_t = AuthorityArg::Policy)]
    authority: AuthorityArg,
    /// A parameter of a policy, as in its [policies.NAME] of the configuration; repeatable
    #[arg(long = "param", value_name = "POLICY.KEY=VALUE")]
    params: Vec<String>,
    /// Run with N seeds: 1, 2, ...
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Run with these seeds
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    seed: Vec<u64>,
    /// Runs at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Write SVG plots into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write the JSON document into this file as well
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceArg,
    /// Jobs are recurring, and policies that plan do so before the run, each job being expected exactly as it comes
    #[arg(long, value_enum, value_name = "OBJECTIVE")]
    plan: Option<ObjectiveArg>,
    /// In JSON: completion times and places of all jobs, bytes by rack, and use of links over time
    #[arg(long)]
    series: bool,
    /// As deployed: hold receivers of heavy shuffles, as a queue with `hold = true` does by default
    #[arg(long)]
    hold: bool,
    /// As deployed: this share of jobs ran before, and hintd learns of an earlier run when they come [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = whole_share)]
    recurring: Option<f64>,
    /// Bytes and durations of an earlier run are this run's times a factor between 1/X and X, drawn for each [default: 2]
    #[arg(long, value_name = "X", requires = "recurring", value_parser = history_error)]
    history_error: Option<f64>,
    /// As deployed: input of recurring jobs was written where the policy says, where it places data
    #[arg(long, requires = "recurring")]
    data_placement: bool,
    /// As deployed: recurring jobs are not gathered in few racks, as by default in the ResourceManager's processor
    #[arg(long, requires = "recurring", conflicts_with = "data_placement")]
    no_gathering: bool,
    #[command(flatten)]
    hold_args: HoldArgs,
    #[command(flatten)]
    trace_options: TraceArgs,
    #[command(flatten)]
    container: ContainerArgs,
    #[command(flatten)]
    settings: SettingArgs,
}

/// What is taken of the trace.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trace")]
pub struct TraceArgs {
    /// Only the first N jobs
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroU64>,
    /// Count bad lines instead of stopping at the first
    #[arg(long)]
    skip_bad: bool,
    /// Multiply all bytes of jobs
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = factor)]
    scale_bytes: f64,
    /// Submit jobs X times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = factor)]
    speed: f64,
}

impl TraceArgs {
    /// As the reader takes them.
    #[must_use]
    pub fn options(&self) -> TraceOptions {
        let jobs = self.jobs.map(NonZeroU64::get);
        TraceOptions { jobs, learn: None, scale_bytes: self.scale_bytes, speed: self.speed, skip_bad: self.skip_bad }
    }
}

/// Containers, where the cluster is a whole document.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Containers of a hintd.cluster/1 document")]
pub struct ContainerArgs {
    /// Memory of a container, MB
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 36))]
    container_memory_mb: u64,
    /// Virtual cores of a container
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1 << 36))]
    container_vcores: u64,
}

impl ContainerArgs {
    /// For who is not asked.
    pub(crate) const USUAL: Self = Self { container_memory_mb: 1024, container_vcores: 1 };
}

/// Settings of the simulated Hadoop.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingArgs {
    /// Time between two heartbeats of a node
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    heartbeat_ms: u64,
    /// Users who share the cluster; jobs are given to them at random [default: the cluster's, else 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    users: Option<u32>,
    /// Replicas of a block
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: u8,
    /// Fetches that a reduce has under way at once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    fetches: u32,
    /// How finely traffic is told apart [default: racks, on networks where uplinks are not all there is: nodes]
    #[arg(long, value_enum)]
    grain: Option<GrainArg>,
    /// How far loads may leave their max-min rates before these are found anew; 0: exact
    #[arg(long, value_name = "SHARE", default_value_t = 0.005, value_parser = share)]
    rate_tolerance: f64,
    /// Use of a rack's uplink or downlink from which it counts as congested
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u32).range(51..=1000))]
    congested_per_mille: u32,
    /// What links carry is told so often, in whole seconds, as by a controller's counters [default: never]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    link_counters: Option<u64>,
    /// Multiply the rate at which tasks compute
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = factor)]
    compute: f64,
    /// Jobs are recurring: policies know output / input of each from earlier runs, and need not learn it
    #[arg(long)]
    known_ratios: bool,
    /// Under hints: from an ApplicationMaster's wish to the ask that stands at YARN
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    master_delay_ms: u64,
    /// What takes time on a real cluster beside network and work: a shipped file by name (small-cluster), or a file
    #[arg(long, value_name = "FILE|NAME")]
    delays: Option<String>,
    /// As deployed: yarn.scheduler.capacity.rack-locality-additional-delay; -1: YARN's default
    #[arg(long, value_name = "HEARTBEATS", default_value_t = -1, allow_negative_numbers = true)]
    rack_delay: i32,
    /// Under hints: from what happens to what hintd knows, and from a hint to who gets it
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    feed_delay_ms: u64,
    /// Failures and returns of nodes and links, and traffic of others, by time: a hintd.script/1 file
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Do not check the simulator's own invariants as it goes: for timing
    #[arg(long)]
    no_invariants: bool,
}

/// Who allocates containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthorityArg {
    /// The policy is the scheduler and allocates all containers itself: compares policies
    Policy,
    /// YARN's capacity scheduler is, and all of the policy's hints stand in the asks, whatever they gain
    Hints,
    /// hintd as a cluster would run it: the same scheduler, with stock applications, the ResourceManager's processor and the daemon's engine, guard and
    /// all; for `capacity` and policies that place
    Deployed,
    /// `policy` and `hints`, one run each
    Both,
}

impl AuthorityArg {
    fn all(self) -> Vec<Authority> {
        match self {
            Self::Policy => vec![Authority::Policy],
            Self::Hints => vec![Authority::Hints],
            Self::Deployed => vec![Authority::Deployed],
            Self::Both => vec![Authority::Policy, Authority::Hints],
        }
    }
}

/// How finely traffic is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GrainArg {
    /// From rack to rack
    Racks,
    /// From node to node, over every link
    Nodes,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for files, names and parameters that are wrong; [`Failure::Work`] where a run breaks, was
/// interrupted (then after all that is there was written), or a file can't be written.
pub fn run(args: &SimulateArgs, output: Output) -> Result<(), Failure> {
    args.output.as_deref().map_or(Ok(()), |file| args.replace.check(file))?;
    let chosen = choose(&args.policy, &args.params)?;
    let authorities = args.authority.all();
    policies::check(&chosen)?;
    let cluster = cluster(&args.cluster, args.container, Joined::ByNetwork)?;
    let delays = args.settings.delays()?;
    let model = args.settings.model(delays.as_ref());
    let trace = Trace::open(&args.trace, args.trace_options.options(), &model)?;
    if let Some(warning) = trace.warning() {
        output.progress(&warning);
    }
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).map_err(|error| Failure::in_file(folder, error))?;
    }
    let mut settings = args.settings.read(&cluster)?;
    args.hold_args.has_a_use(args.hold, "--hold")?;
    settings.hold = args.hold.then(|| args.hold_args.settings());
    settings.recurring = args.recurring.unwrap_or(settings.recurring);
    settings.history_error = args.history_error.unwrap_or(settings.history_error);
    settings.data_placement = args.data_placement;
    settings.by_job = args.series;
    if args.no_gathering {
        settings.without.insert(Part::Stay);
    }
    let as_deployed =
        [("--hold", args.hold), ("--recurring", settings.recurring > 0.0), ("--data-placement", args.data_placement)];
    if let Some((option, _)) = as_deployed.into_iter().find(|(_, on)| *on && args.authority != AuthorityArg::Deployed) {
        return Err(Failure::Input(format!("{option} is for --authority deployed")));
    }
    if args.data_placement {
        places_data(&chosen)?;
    }
    let seeds = seeds(args)?;
    let plan = matrix::Plan {
        cluster: &cluster.cluster,
        model: &model,
        settings: &settings,
        trace: &trace,
        policies: &chosen,
        objective: args.plan.map(Into::into),
        cases: matrix::cases(chosen.len(), &authorities, &seeds),
        threads: threads(args.threads),
    };
    let runs = plan.run(output)?;
    let document = document::Document::new(&plan, &cluster, &runs, args.series);
    if let Some(path) = &args.output {
        files::write_text(path, &document.text()?)?; // it was looked at before the runs, which are not lost for it now
    }
    if let Some(folder) = &args.plots {
        let ended: Vec<_> = table::rows(&plan, &runs).into_iter().filter_map(table::Row::ended).collect();
        let facts = [
            ("trace", provenance::file(&args.trace)),
            ("cluster", args.cluster.clone()),
            ("seeds", provenance::seeds(&seeds)),
        ];
        plots::write(folder, &ended, &Provenance::of(facts))?;
    }
    output.result(&document, || table::text(&plan, &cluster, &runs))?;
    for warning in runs.warnings() {
        output.progress(&warning);
    }
    runs.finish(plan.cases.len())
}

impl SettingArgs {
    /// Those that differ from their defaults and change what a run comes to, as they are given.
    pub(crate) fn words(&self) -> Vec<String> {
        let grain = self.grain.map(|grain| match grain {
            GrainArg::Racks => "--grain racks".to_owned(),
            GrainArg::Nodes => "--grain nodes".to_owned(),
        });
        let users = self.users.map(|users| format!("--users {users}"));
        let others = [
            ("--heartbeat-ms", self.heartbeat_ms.to_string(), "1000"),
            ("--replicas", self.replicas.to_string(), "3"),
            ("--fetches", self.fetches.to_string(), "5"),
            ("--master-delay-ms", self.master_delay_ms.to_string(), "1000"),
            ("--rack-delay", self.rack_delay.to_string(), "-1"),
            ("--compute", self.compute.to_string(), "1"),
        ];
        let others = others.into_iter().filter(|(_, value, usual)| value != usual);
        let delays = self.delays.as_ref().map(|name| format!("--delays {name}"));
        let counters = self.link_counters.map(|seconds| format!("--link-counters {seconds}"));
        grain
            .into_iter()
            .chain(users)
            .chain(counters)
            .chain(delays)
            .chain(others.map(|(name, value, _)| format!("{name} {value}")))
            .collect()
    }

    /// As a run takes them, with what the script says.
    ///
    /// # Errors
    /// [`Failure::Input`] for a script that is none, or names what the cluster lacks.
    pub(crate) fn read(&self, cluster: &Cluster) -> Result<SimSettings, Failure> {
        let mut settings = settings(self, cluster);
        if let Some(delays) = self.delays()? {
            settings.delays = delays.delays();
        }
        if let Some(path) = &self.script {
            script::read(path, &cluster.cluster.snapshot)?.into_settings(&mut settings);
        }
        Ok(settings)
    }

    /// The file of delays.
    ///
    /// # Errors
    /// [`Failure::Input`] for a file that is none.
    pub(crate) fn delays(&self) -> Result<Option<DelaysFile>, Failure> {
        self.delays.as_deref().map(inputs::delays).transpose()
    }

    /// The job model.
    pub(crate) fn model(&self, delays: Option<&DelaysFile>) -> JobModel {
        let model = JobModel::default();
        delays.map_or(model, |delays| delays.model(model)).at_rate(self.compute)
    }
}

fn settings(args: &SettingArgs, cluster: &Cluster) -> SimSettings {
    let grain = match args.grain {
        Some(GrainArg::Racks) => FlowGrain::Racks,
        Some(GrainArg::Nodes) => FlowGrain::Nodes,
        None => cluster.grain,
    };
    let defaults = SimSettings::default();
    SimSettings {
        heartbeat: Micros::from_millis(args.heartbeat_ms),
        users: args.users.or(cluster.users).unwrap_or(defaults.users),
        replicas: args.replicas,
        fetches: args.fetches,
        grain,
        rate_tolerance: args.rate_tolerance,
        congested_per_mille: args.congested_per_mille,
        link_counters: args.link_counters.map(Micros::from_secs),
        known_ratios: args.known_ratios,
        master_delay: Micros::from_millis(args.master_delay_ms),
        rack_delay: args.rack_delay,
        feed_delay: Micros::from_millis(args.feed_delay_ms),
        invariants: !args.no_invariants,
        ..defaults
    }
}

/// Refuses to place data by who can't; `capacity`, YARN alone, is there to be compared with.
fn places_data(chosen: &[Chosen]) -> Result<(), Failure> {
    let others = || chosen.iter().filter(|policy| policy.name != capacity::NAME);
    let unable = others().chain(chosen.iter().filter(|_| others().next().is_none()));
    match unable.filter(|policy| policy.places().is_none()).min_by_key(|policy| policy.name) {
        Some(policy) => Err(policy.places_no_data("--data-placement")),
        None => Ok(()),
    }
}

fn seeds(args: &SimulateArgs) -> Result<Vec<u64>, Failure> {
    if args.seed.is_empty() {
        return Ok((1..=args.seeds).collect());
    }
    for (at, seed) in args.seed.iter().enumerate() {
        if args.seed[..at].contains(seed) {
            return Err(Failure::Input(format!("--seed: {seed} is given twice")));
        }
    }
    Ok(args.seed.clone())
}

pub(crate) fn threads(asked: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    asked.map_or_else(cores, usize::from)
}

/// A factor from a millionth to a million.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (1e-6..=1e6).contains(&value) { Ok(value) } else { Err("must lie between 0.000001 and 1000000".to_owned()) }
}

/// A part of a whole.
pub(crate) fn whole_share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("must lie between 0 and 1".to_owned()) }
}

/// How far off an earlier run may be.
pub(crate) fn history_error(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (1.0..=HISTORY_ERROR_MAX).contains(&value) {
        Ok(value)
    } else {
        Err(format!("must lie between 1 and {HISTORY_ERROR_MAX}"))
    }
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=0.5).contains(&value) { Ok(value) } else { Err("must lie between 0 and 0.5".to_owned()) }
}
