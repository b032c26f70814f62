//! Cells and runs: what is read for them, and how they are done.

use super::super::failure::Failure;
use super::super::output::Output;
use super::super::simulate::{Chosen, Cluster, Pool, RunWatch, Single, Trace, choose, cluster};
use super::keep::{KeptRuns, digest};
use super::lies::{self, Lie};
use super::parts::{self, Without};
use super::variants::{self, Lever, LeverSettings, Variant, other_phases};
use super::{Shard, WorthArgs};
use hintd_engine::holding::HoldSettings;
use hintd_policy::baselines::capacity;
use hintd_simulator::shape::Joined;
use hintd_simulator::worth::{RunFigures, without_bottlenecks};
use hintd_simulator::yarn::SimCluster;
use hintd_simulator::{Authority, JobModel, Shipped, SimSettings, TraceOptions};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::path::Path;

/// All that is run.
pub(super) struct Matrix {
    pub(super) places: Vec<ClusterCase>,
    pub(super) cells: Vec<Cell>,
    pub(super) model: JobModel,
    /// YARN alone.
    yarn: Chosen,
    pub(super) policies: Vec<Chosen>,
    pub(super) levers: Vec<&'static Lever>,
    /// What is left out of the last of them, one at a time.
    pub(super) parts: Vec<&'static Without>,
    /// What those with history are told wrong, one at a time.
    pub(super) lies: Vec<&'static Lie>,
    pub(super) variants: Vec<Variant>,
    pub(super) seeds: Vec<u64>,
    pub(super) loads: Vec<f64>,
    lever_settings: LeverSettings,
}

/// A cluster with the settings of its runs.
pub(super) struct ClusterCase {
    pub(super) cluster: Cluster,
    free: SimCluster,
    /// But for the seed.
    pub(super) settings: SimSettings,
    digest: String,
}

/// A trace on a cluster at a load.
pub(super) struct Cell {
    pub(super) trace: Trace,
    digest: String,
    /// Among the clusters.
    pub(super) place: usize,
    pub(super) load: f64,
    /// As people read it.
    pub(super) name: String,
}

/// A run: places among cells, variants and seeds.
#[derive(Debug, Clone, Copy)]
struct Case {
    cell: usize,
    variant: usize,
    seed: usize,
}

/// What the runs gave.
pub(super) struct Runs {
    /// In the order of cell, variant and seed.
    figures: Vec<Option<RunFigures>>,
    seeds: usize,
    variants: usize,
    pub(super) interrupted: bool,
}

impl Runs {
    /// Runs of a cell's variant, by seed.
    pub(super) fn of(&self, cell: usize, variant: usize) -> Vec<Option<&RunFigures>> {
        let first = (cell * self.variants + variant) * self.seeds;
        self.figures[first..first + self.seeds].iter().map(Option::as_ref).collect()
    }

    /// How many there are to be, and how many of these are not there.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.figures.len(), self.figures.iter().filter(|run| run.is_none()).count())
    }

    /// What is no error, and nobody should overlook.
    pub(super) fn warning(&self) -> Option<String> {
        let most = self.figures.iter().flatten().map(|run| run.never_fit).max().filter(|&count| count > 0)?;
        let jobs = if most == 1 { "1 job".to_owned() } else { format!("{most} jobs") };
        Some(format!("warning: {jobs} could never fit and did not run"))
    }
}

impl Matrix {
    /// Reads clusters, traces and policies; every trace is read through at every load.
    ///
    /// # Errors
    /// [`Failure::Input`] for what is wrong with any of them.
    pub(super) fn read(args: &WorthArgs, output: Output) -> Result<Self, Failure> {
        let policies = policies(args)?;
        let yarn = choose(&[capacity::NAME.to_owned()], &[])?.remove(0);
        let levers = variants::chosen(&args.levers);
        have_a_use(args, &levers, &policies)?;
        let parts = match levers.last() {
            Some(fullest) => parts::chosen(&args.without, fullest)?,
            None => Vec::new(),
        };
        let lies = lies::chosen(&args.lies);
        unique("--loads", args.loads.iter().map(f64::to_string))?;
        unique("--cluster", args.cluster.iter().cloned())?;
        unique("--trace", args.trace.iter().map(|path| path.display().to_string()))?;
        let delays = args.settings.delays().map_err(|failure| failure.of_option("--delays"))?;
        let model = args.settings.model(delays.as_ref());
        let places: Vec<ClusterCase> =
            args.cluster.iter().map(|name| ClusterCase::read(name, args)).collect::<Result<_, _>>()?;
        let cells = cells(args, &model, &places, output)?;
        let variants = Variant::all(policies.len(), &levers, parts.len(), lies.len());
        let (seeds, loads) = ((1..=args.seeds).collect(), args.loads.clone());
        let lever_settings = LeverSettings { recurring: args.recurring(), hold: args.hold.settings() };
        Ok(Self { places, cells, model, yarn, policies, levers, parts, lies, variants, seeds, loads, lever_settings })
    }

    fn cases(&self) -> Vec<Case> {
        let of_variant = |cell, variant| (0..self.seeds.len()).map(move |seed| Case { cell, variant, seed });
        let of_cell = |cell| (0..self.variants.len()).flat_map(move |variant| of_variant(cell, variant));
        (0..self.cells.len()).flat_map(of_cell).collect()
    }

    /// Does the runs of this part which are not kept yet, up to so many at a time.
    ///
    /// # Errors
    /// That of the first run that failed. Those that ended before are kept.
    pub(super) fn run(
        &self,
        kept: Option<&KeptRuns>,
        shard: Option<Shard>,
        threads: usize,
        output: Output,
    ) -> Result<Runs, Failure> {
        let cases = self.cases();
        let mut figures: Vec<Option<RunFigures>> = vec![None; cases.len()];
        if let Some(kept) = kept {
            for (case, found) in cases.iter().zip(&mut figures) {
                match kept.get(&self.of(*case)) {
                    Ok(run) => *found = run,
                    Err(problem) => output.progress(&format!("{problem}: damaged, it is run again")),
                }
            }
            let there = figures.iter().flatten().count();
            if there > 0 {
                output.progress(&format!("{there} of {} runs were kept", cases.len()));
            }
        }
        let ours = |at: &usize| shard.is_none_or(|shard| shard.has(*at));
        let left: Vec<usize> = (0..cases.len()).filter(ours).filter(|&at| figures[at].is_none()).collect();
        let jobs = left.iter().map(|&at| self.cells[cases[at].cell].trace.facts.jobs).max().unwrap_or(0);
        let mut interrupted = false;
        if !left.is_empty() {
            let pool = Pool { runs: left.len(), jobs, threads };
            let name = |at: usize| self.name(cases[left[at]]);
            let done = pool.run(output, name, |at, watch| {
                let case = cases[left[at]];
                let run = self.one(case, watch, threads == 1)?;
                if let (Some(kept), Some(run)) = (kept, &run) {
                    kept.put(&self.of(case), run)?;
                }
                Ok(run)
            })?;
            for (at, run) in left.into_iter().zip(done.results) {
                figures[at] = run.flatten();
                interrupted |= done.interrupted && figures[at].is_none();
            }
        }
        Ok(Runs { figures, seeds: self.seeds.len(), variants: self.variants.len(), interrupted })
    }

    /// `None`: it was interrupted.
    fn one(&self, case: Case, watch: &RunWatch<'_>, only: bool) -> Result<Option<RunFigures>, Failure> {
        let (cell, chosen) = (&self.cells[case.cell], self.chosen(case));
        let place = &self.places[cell.place];
        let settings = self.settings(case);
        let free = self.variants[case.variant] == Variant::Free;
        let single = Single {
            cluster: if free { &place.free } else { &place.cluster.cluster },
            model: &self.model,
            settings: &settings,
            trace: &cell.trace,
            chosen,
            places: if settings.has_homes() { chosen.places() } else { None },
            only,
        };
        single.run(watch, || self.name(case)).map(RunFigures::of)
    }

    fn settings(&self, case: Case) -> SimSettings {
        let seed = self.seeds[case.seed];
        let common = &self.places[self.cells[case.cell].place].settings;
        let mut settings = SimSettings { seed, authority: Authority::Deployed, ..common.clone() };
        match self.variants[case.variant] {
            Variant::Alone | Variant::Free => {}
            Variant::Phases => settings.phase_seed = Some(other_phases(seed)),
            Variant::Hinted(_, lever) => self.levers[lever].set(&mut settings, &self.lever_settings),
            Variant::Without(_, part) => {
                self.fullest().set(&mut settings, &self.lever_settings);
                self.parts[part].set(&mut settings);
            }
            Variant::Lied(_, lever, lie) => {
                self.levers[lever].set(&mut settings, &self.lever_settings);
                self.lies[lie].set(&mut settings);
            }
        }
        settings
    }

    fn chosen(&self, case: Case) -> &Chosen {
        match self.variants[case.variant] {
            Variant::Hinted(Some(policy), _) | Variant::Without(policy, _) | Variant::Lied(policy, ..) => {
                &self.policies[policy]
            }
            Variant::Hinted(None, _) | Variant::Alone | Variant::Phases | Variant::Free => &self.yarn,
        }
    }

    /// The lever that parts are left out of.
    pub(super) fn fullest(&self) -> &'static Lever {
        self.levers.last().expect("there are no parts without a lever")
    }

    /// The share of jobs that recur, and how far earlier runs are off; none if no lever knows them.
    pub(super) fn history(&self) -> Option<(f64, f64)> {
        self.levers.iter().any(|lever| lever.history).then_some(self.lever_settings.recurring)
    }

    /// Jobs at the beginning of each trace that are learnt from, in place of that.
    pub(super) fn learn(&self) -> Option<u64> {
        self.cells.first().and_then(|cell| cell.trace.options.learn)
    }

    /// How receivers are held; none if no lever holds them.
    pub(super) fn hold(&self) -> Option<HoldSettings> {
        self.levers.iter().any(|lever| lever.holds).then_some(self.lever_settings.hold)
    }

    /// Who places.
    pub(super) fn policy_name(&self, policy: Option<usize>) -> &str {
        policy.map_or(self.yarn.name, |policy| self.policies[policy].name)
    }

    /// A variant in words.
    pub(super) fn variant_name(&self, variant: Variant) -> String {
        match variant {
            Variant::Alone => "YARN alone".to_owned(),
            Variant::Phases => "other phases".to_owned(),
            Variant::Free => "no network".to_owned(),
            Variant::Hinted(policy, lever) => self.levers[lever].row(policy.map(|policy| self.policies[policy].name)),
            Variant::Without(policy, part) => {
                self.parts[part].row(&self.fullest().row(Some(self.policies[policy].name)))
            }
            Variant::Lied(policy, lever, lie) => {
                self.lies[lie].row(&self.levers[lever].row(Some(self.policies[policy].name)))
            }
        }
    }

    fn name(&self, case: Case) -> String {
        let variant = self.variant_name(self.variants[case.variant]);
        format!("{}, {variant}, seed {}", self.cells[case.cell].name, self.seeds[case.seed])
    }

    /// All that a run hangs on, beside the program.
    fn of(&self, case: Case) -> Value {
        let (cell, chosen) = (&self.cells[case.cell], self.chosen(case));
        json!({
            "trace": cell.digest,
            "options": cell.trace.options,
            "cluster": self.places[cell.place].digest,
            "no_bottleneck": self.variants[case.variant] == Variant::Free,
            "job_model": self.model,
            "settings": self.settings(case),
            "policy": chosen.name,
            "params": chosen.params,
            "places_data": self.settings(case).has_homes(),
        })
    }
}

impl ClusterCase {
    fn read(name: &str, args: &WorthArgs) -> Result<Self, Failure> {
        let of_cluster = |failure: Failure| failure.of_option("--cluster");
        let cluster = cluster(name, args.container, Joined::ByNetwork).map_err(of_cluster)?;
        let text = match Shipped::find(name) {
            Some(shipped) => shipped.text.as_bytes().to_vec(),
            None => std::fs::read(name).map_err(|error| of_cluster(Failure::in_file(Path::new(name), error)))?,
        };
        let digest = format!("{} {:?}", digest(&text), cluster.cluster.container.0);
        // Delays are another file, and were read before.
        let settings = args.settings.read(&cluster).map_err(|failure| failure.of_option("--script"))?;
        Ok(Self { free: without_bottlenecks(&cluster.cluster), cluster, settings, digest })
    }
}

/// Policies that the daemon can ask.
fn policies(args: &WorthArgs) -> Result<Vec<Chosen>, Failure> {
    let policies = choose(&args.policy, &args.params)?;
    for policy in &policies {
        if policy.name == capacity::NAME {
            let name = policy.name;
            return Err(Failure::Input(format!("policy \"{name}\" is YARN alone, which the others are compared with")));
        }
        if !policy.is_asked() {
            let message =
                format!("policy \"{}\" schedules: only hints of policies that place are deployed", policy.name);
            return Err(Failure::Input(message));
        }
    }
    Ok(policies)
}

/// Refuses what would be asked for without any effect.
fn have_a_use(args: &WorthArgs, levers: &[&Lever], policies: &[Chosen]) -> Result<(), Failure> {
    let given = [
        ("--recurring", args.recurring.is_some()),
        ("--history-error", args.history_error.is_some()),
        ("--learn", args.learn.is_some()),
        ("--lies", !args.lies.is_empty()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && !levers.iter().any(|lever| lever.history))
    {
        let knowing = variants::LEVERS.iter().filter(|lever| lever.history).map(|lever| lever.name);
        let knowing = knowing.collect::<Vec<_>>().join(", ");
        let message = format!("{option} is for levers with history ({knowing}), and --levers names none of them");
        return Err(Failure::Input(message));
    }
    if args.recurring == Some(0.0) {
        let message = "--recurring 0: no earlier run is known, and levers with history would be those without";
        return Err(Failure::Input(message.to_owned()));
    }
    let holding = variants::LEVERS.iter().filter(|lever| lever.holds).map(|lever| lever.name);
    let wants = format!("levers that hold receivers ({})", holding.collect::<Vec<_>>().join(", "));
    args.hold.has_a_use(levers.iter().any(|lever| lever.holds), &wants)?;
    let Some(lever) = levers.iter().find(|lever| lever.places_data) else { return Ok(()) };
    match policies.iter().find(|policy| policy.places().is_none()) {
        Some(policy) => Err(policy.places_no_data(&format!("--levers {}", lever.name))),
        None => Ok(()),
    }
}

fn cells(args: &WorthArgs, model: &JobModel, places: &[ClusterCase], output: Output) -> Result<Vec<Cell>, Failure> {
    let mut cells = Vec::new();
    for path in &args.trace {
        let stem =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let stem = stem.split('.').find(|part| !part.is_empty()).unwrap_or("trace").to_owned();
        let of_trace = |failure: Failure| failure.of_option("--trace");
        let bytes = std::fs::read(path).map_err(|error| of_trace(Failure::in_file(path, error)))?;
        let digest = digest(&bytes);
        for (place, at) in places.iter().enumerate() {
            for (&load, first) in args.loads.iter().zip(0..) {
                let (jobs, skip_bad) = (Some(args.jobs.get()), args.skip_bad);
                let learn = args.learn.map(NonZeroU64::get);
                let options = TraceOptions { jobs, learn, scale_bytes: load, speed: args.speed, skip_bad };
                let trace = Trace::open(path, options, model).map_err(of_trace)?;
                check_learnt(args, &trace)?;
                if let Some(warning) = trace.warning().filter(|_| first == 0 && place == 0) {
                    output.progress(&warning);
                }
                let of = if places.len() > 1 { format!(" on {}", at.cluster.name) } else { String::new() };
                let name = format!("{stem}{of}, bytes x {load}");
                cells.push(Cell { trace, digest: digest.clone(), place, load, name });
            }
        }
    }
    Ok(cells)
}

/// That there is something left to be run, and something known of it.
fn check_learnt(args: &WorthArgs, trace: &Trace) -> Result<(), Failure> {
    let Some(learn) = args.learn else { return Ok(()) };
    let (path, jobs) = (trace.path.display(), trace.facts.jobs);
    let message = match (jobs, trace.facts.known) {
        (0, _) => format!("--learn {learn}: {path} has no more jobs than that, so that none is left to be run"),
        (_, 0) => format!(
            "--learn {learn}: of the {jobs} jobs of {path} that are to be run none reads a path that one of the {learn} \
             before them read, so that no earlier run is known"
        ),
        _ => return Ok(()),
    };
    Err(Failure::Input(message))
}

fn unique(option: &str, values: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut before = Vec::new();
    for value in values {
        if before.contains(&value) {
            return Err(Failure::Input(format!("{option}: {value} is given twice")));
        }
        before.push(value);
    }
    Ok(())
}
