//! What an experiment is, and running some of them.

use super::error::{ReproduceError, Scale};
use super::report::{Entry, Report};
use super::row::Row;
use super::runs::KeptRuns;
use hintd_model::solve::nearest;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Spread over fewer seeds says little; the papers' own figures rest on about as many runs.
pub const MIN_SEEDS_FULL: usize = 5;

/// How to run.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// How large a sample.
    pub scale: Scale,
    /// One run each; at least [`MIN_SEEDS_FULL`] at full scale.
    pub seeds: &'a [u64],
    /// How many runs at once.
    pub threads: NonZeroUsize,
    /// Told a line now and then, from any thread; the caller decides where it goes.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Where long runs are kept and found again; none: nowhere.
    pub kept: Option<&'a KeptRuns>,
}

impl RunContext<'_> {
    /// Runs `work` once for each seed, up to [`RunContext::threads`] at a time; results in the seeds' order, whichever
    /// run ends first.
    ///
    /// # Errors
    /// The error of the first seed, in the seeds' order, whose run failed.
    pub fn per_seed<T: Send>(
        &self,
        work: impl Fn(u64) -> Result<T, ReproduceError> + Sync,
    ) -> Result<Vec<T>, ReproduceError> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(self.seeds.len()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.get().min(self.seeds.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&seed) = self.seeds.get(at) else { break };
                        let result = work(seed);
                        done.lock().expect("no holder of this lock panics: it only pushes").push((at, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().expect("the scope has joined every thread");
        done.sort_by_key(|&(at, _)| at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// One figure or table of a paper.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name on the command line, as in `nas-throughput`.
    pub name: &'static str,
    /// The paper, as in "004 (Li), chapter 3".
    pub paper: &'static str,
    /// Figure or table and what it shows.
    pub figure: &'static str,
    /// Every setting that a reader needs to run it elsewhere, with its source: cluster, trace, scale factors, job model.
    pub settings: fn(Scale) -> Vec<(String, String)>,
    /// About how long it takes at quick scale on a quiet 2-core machine, seconds; said before it starts.
    pub quick_s: u64,
    /// The same at full scale.
    pub full_s: u64,
    /// What it measures.
    pub rows: &'static Measurement,
}

/// Runs every system on the same inputs for every seed of the context; gets the experiment's name for what it says.
/// Rows have one value for each seed. Same context, same rows. An error means that an input is missing or a run broke; a
/// figure that falls short is none.
pub type Measurement = dyn Fn(&'static str, &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> + Sync;

impl Experiment {
    /// About how long it takes at a scale, seconds.
    #[must_use]
    pub const fn expected_s(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => self.quick_s,
            Scale::Full => self.full_s,
        }
    }
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Settings with names of their own.
pub(super) fn texts<'n>(settings: impl IntoIterator<Item = (&'n str, String)>) -> Vec<(String, String)> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The experiments called `names`, each once and in the order asked for; all of them for no names.
///
/// # Errors
/// If one is unknown, with the names there are.
pub fn select<'e>(all: &'e [Experiment], names: &[String]) -> Result<Vec<&'e Experiment>, ReproduceError> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let mut chosen: Vec<&Experiment> = Vec::new();
    for name in names {
        let found = all.iter().find(|experiment| experiment.name == name);
        let found = found.ok_or_else(|| unknown(all, name))?;
        if !chosen.iter().any(|experiment| experiment.name == name) {
            chosen.push(found);
        }
    }
    Ok(chosen)
}

/// Runs `chosen` one after another and judges them.
///
/// # Errors
/// If there are too few seeds, an experiment fails, or its rows cannot be judged.
pub fn run(chosen: &[&Experiment], context: &RunContext<'_>) -> Result<Report, ReproduceError> {
    let needed = if context.scale == Scale::Full { MIN_SEEDS_FULL } else { 1 };
    if context.seeds.len() < needed {
        return Err(ReproduceError::Seeds { found: context.seeds.len(), needed, scale: context.scale });
    }
    let mut entries = Vec::with_capacity(chosen.len());
    for experiment in chosen {
        let (name, scale) = (experiment.name, context.scale);
        (context.progress)(&format!("{name}: {scale}, about {} s", experiment.expected_s(scale)));
        let rows = (experiment.rows)(name, context)?;
        let entry = Entry {
            entry: name.to_owned(),
            paper: experiment.paper.to_owned(),
            figure: experiment.figure.to_owned(),
            settings: (experiment.settings)(scale),
            seeds: context.seeds.len(),
            verdict: super::report::verdict(name, &rows)?,
            rows,
        };
        entry.check_values()?;
        entries.push(entry);
    }
    Ok(Report { scale: context.scale, command: None, commit: None, entries })
}

fn unknown(all: &[Experiment], name: &str) -> ReproduceError {
    let near = nearest(&name.to_lowercase(), all.iter().map(|experiment| experiment.name));
    ReproduceError::Unknown { name: name.to_owned(), near, known: known(all) }
}

fn known(all: &[Experiment]) -> String {
    if all.is_empty() {
        return "none in this version".to_owned();
    }
    all.iter().map(|experiment| experiment.name).collect::<Vec<_>>().join(", ")
}
