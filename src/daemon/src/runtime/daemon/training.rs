//! Policies that learn from jobs that finished: trained beside all else from the runs that the journal keeps, put in force
//! as a whole, and kept in a file beside the journal for the next start.
//!
//! Training runs on a thread that nobody waits for, and what it makes is a new policy: the engine is told of it as of any
//! other, and records keep the policy that made them. It needs no journal: runs are in memory as well, and a file that can't
//! be written now is written after the next training.

use super::super::command::{Command, PlanCall};
use super::super::options::Settings;
use super::Daemon;
use crate::regular_file::{self, Readers};
use hintd_engine::Refusal;
use hintd_engine::prediction::{Run, Runs};
use hintd_model::units::{Micros, Timestamp};
use hintd_policy::Policy;
use hintd_policy::learn::{FinishedJob, Learn, LearnError};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two looks at what finished.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Which jobs are held out; any will do, as long as it stays.
const SEED: u64 = 1;
/// A policy is trained anew when so many runs have come, or a tenth of what it learns from.
const NEW_MIN: usize = 10;
/// Bytes of a file: some ten times what 2,000 jobs make of it.
const FILE_BYTES: u64 = 4 << 20;
/// Of its first line.
const FILE_NAME: &str = "hintd-learnt";
/// Of its first line; another is not read.
const FILE_FORMAT: &str = "1";

/// How training of the daemon's policies stands.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Training {
    journal: PathBuf,
    of: Mutex<BTreeMap<&'static str, PolicyTraining>>,
}

/// How training of one policy stands.
#[derive(Debug, Clone, Default)]
pub struct PolicyTraining {
    /// When it was trained last in this life of the daemon.
    pub trained_at: Option<Timestamp>,
    /// Why the last training came to nothing; `None`: it came to something.
    pub problem: Option<String>,
    /// What is wrong with the file that keeps what was learnt, until one is written in its place.
    pub damaged_file: Option<String>,
    /// Why what the last training taught is in no file; `None`: it is, or it taught nothing.
    pub not_kept: Option<String>,
    /// What the last training looked at.
    seen: Option<Seen>,
}

/// What a training looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    params: String,
    runs: usize,
    /// Of these, as many as it learns from.
    jobs: usize,
    newest: Option<Timestamp>,
}

impl Seen {
    fn of(policy: &dyn Policy, runs: &Runs, jobs: &[FinishedJob]) -> Self {
        let newest = runs.iter().filter_map(|(_, runs)| runs.last()).map(|run| run.submitted).max();
        Self { params: policy.params_toml(), runs: runs.total(), jobs: jobs.len(), newest }
    }

    /// Whether there is enough now that this one did not see.
    fn is_old(&self, now: &Self, runs: &Runs, learner: &dyn Learn) -> bool {
        let came = |run: &&Run| self.newest.is_none_or(|newest| run.submitted > newest);
        let newer: usize = runs.iter().map(|(_, runs)| runs.iter().rev().take_while(came).count()).sum();
        // A history server may tell of runs that are older than all that were seen.
        let new = newer.max(now.runs.saturating_sub(self.runs));
        let first = self.jobs < learner.jobs_min() && now.jobs >= learner.jobs_min();
        first || new >= NEW_MIN.max(self.runs.min(learner.jobs_max()) / 10) || self.params != now.params
    }
}

impl Training {
    /// Puts in force what was learnt before the daemon's start. A file that is damaged is named and left as it is: the next
    /// training takes its place.
    pub(in crate::runtime) fn restore(settings: &mut Settings, journal: &Path) -> Self {
        let training = Self { journal: journal.to_owned(), of: Mutex::default() };
        for (name, policy) in &mut settings.policies.built {
            let Some(learner) = policy.as_learn() else { continue };
            let path = training.file_of(name);
            let restored = match read(&path) {
                Ok(None) => continue,
                Ok(Some(text)) => learner.read_back(&text),
                Err(error) => Err(LearnError::Damaged(error.to_string())),
            };
            match restored {
                Ok(restored) => {
                    *policy = Arc::from(restored);
                    tracing::info!(policy = name, file = %path.display(), "goes on with what it learnt");
                }
                Err(LearnError::OtherParameters) => {
                    tracing::info!(policy = name, file = %path.display(), "learns anew: its parameters changed");
                }
                Err(error) => {
                    let problem = format!("{}: {error}; it is trained anew", path.display());
                    tracing::warn!(policy = name, problem, "what it learnt can't be read");
                    training.note(name, |of| of.damaged_file = Some(problem));
                }
            }
        }
        training
    }

    /// Beside the journal, under its name.
    fn file_of(&self, policy: &str) -> PathBuf {
        let mut name = self.journal.clone().into_os_string();
        name.push(format!(".{policy}"));
        name.into()
    }

    fn note(&self, policy: &'static str, change: impl FnOnce(&mut PolicyTraining)) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        change(of.entry(policy).or_default());
    }

    fn of(&self, policy: &str) -> PolicyTraining {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.get(policy).cloned().unwrap_or_default()
    }
}

/// Looks at what finished until the daemon stops.
pub(in crate::runtime) async fn run(daemon: Daemon) {
    loop {
        tokio::select! {
            () = daemon.stopping().cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if daemon.train().await.is_err() {
            return; // the engine is gone
        }
    }
}

impl Daemon {
    /// Trains every policy in use that learns, where enough has finished since; those that the configuration does not name
    /// and no request named yet are not in use.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn train(&self) -> Result<(), Refusal> {
        let settings = self.settings();
        for (&name, policy) in &settings.policies.built {
            let Some(learner) = policy.as_learn().filter(|_| policy.is_prepared()) else { continue };
            let runs = self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Runs(reply))).await?;
            let jobs = finished_jobs(learner, &runs);
            let now = Seen::of(&**policy, &runs, &jobs);
            let is_old = |before: PolicyTraining| before.seen.is_none_or(|seen| seen.is_old(&now, &runs, learner));
            let due = is_old(self.0.training.of(name));
            // While they are held, the next run that ends makes the engine's thread copy all of them.
            drop(runs);
            if due {
                self.train_one(name, policy, (jobs, now)).await;
            }
        }
        Ok(())
    }

    async fn train_one(&self, name: &'static str, policy: &Arc<dyn Policy>, (jobs, seen): (Vec<FinishedJob>, Seen)) {
        let learner = Arc::clone(policy);
        let learnt = tokio::task::spawn_blocking(move || learn(&learner, &jobs)).await;
        let learnt = learnt.unwrap_or_else(|_| Err("training ended in a panic".to_owned()));
        self.0.training.note(name, |of| of.seen = Some(seen));
        let (learnt, written) = match learnt {
            Ok(found) => found,
            Err(problem) => {
                tracing::info!(policy = name, problem, "nothing was learnt: it stays as it was");
                return self.0.training.note(name, |of| of.problem = Some(problem));
            }
        };
        if !self.replace_policy(name, policy, learnt).await {
            return tracing::info!(policy = name, "what was learnt is dropped: its parameters changed meanwhile");
        }
        let path = self.0.training.file_of(name);
        let (file, journal) = (path.clone(), self.0.training.journal.clone());
        let kept = tokio::task::spawn_blocking(move || write(&file, &written, &journal)).await;
        let kept = kept.unwrap_or_else(|_| Err(io::Error::other("writing it ended in a panic")));
        let not_kept = kept.err().map(|error| format!("{}: {error}; the next start learns anew", path.display()));
        match &not_kept {
            None => tracing::info!(policy = name, "learnt from what finished"),
            Some(problem) => tracing::warn!(policy = name, problem, "what was learnt is not kept"),
        }
        let now = self.clock().now();
        self.0.training.note(name, |of| {
            (of.trained_at, of.problem) = (Some(now), None);
            if not_kept.is_none() {
                of.damaged_file = None;
            }
            of.not_kept = not_kept;
        });
    }

    /// Puts a policy in the place of the one that it was made from; false: a reload has put another there.
    async fn replace_policy(&self, name: &'static str, from: &Arc<dyn Policy>, learnt: Arc<dyn Policy>) -> bool {
        let _no_reload_meanwhile = self.0.reloading.lock().await;
        let mut settings = Settings::clone(&self.settings());
        match settings.policies.built.get_mut(name) {
            Some(current) if Arc::ptr_eq(current, from) => *current = learnt,
            _ => return false,
        }
        self.0.engine_handle.tell(Command::Policies(settings.policies.built.clone()));
        self.0.settings.store(Arc::new(settings));
        true
    }

    /// How training of a policy stands.
    #[must_use]
    pub fn training_of(&self, policy: &str) -> PolicyTraining {
        self.0.training.of(policy)
    }
}

/// The policy with what it learnt, and that written down.
fn learn(policy: &Arc<dyn Policy>, jobs: &[FinishedJob]) -> Result<(Arc<dyn Policy>, String), String> {
    let learner = policy.as_learn().ok_or("it does not learn")?;
    let (learnt, written) = learner.learn(jobs, SEED).map_err(|error| error.to_string())?;
    Ok((Arc::from(learnt), written))
}

/// What the policy learns from.
fn finished_jobs(learner: &dyn Learn, runs: &Runs) -> Vec<FinishedJob> {
    let runs = runs.newest_of_each(learner.jobs_max());
    runs.iter().map(|run| finished(run, learner.class())).collect()
}

fn finished(run: &Run, class: &str) -> FinishedJob {
    // A container of a reduce waits for maps as well: what it takes says nothing of how fast its machine is.
    let reduce_time = if run.counted { run.reduces.1 } else { Micros::ZERO };
    FinishedJob {
        maps: (run.maps.0.into(), run.maps.1),
        reduces: (run.reduces.0.into(), reduce_time),
        input: run.input,
        shuffle: run.shuffle,
        on_class: run.ran_on.and_then(|share| share.of(class)),
    }
}

/// What a file holds behind its first line; `None`: there is none.
fn read(path: &Path) -> io::Result<Option<String>> {
    let text = match regular_file::read_text(path, FILE_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let damaged = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    let (first, rest) = text.split_once('\n').ok_or_else(|| damaged("it has no first line".to_owned()))?;
    let sum = format!("{:08x}", crc32fast::hash(rest.as_bytes()));
    match first.split(' ').collect::<Vec<_>>()[..] {
        [FILE_NAME, FILE_FORMAT, said] if said == sum => Ok(Some(rest.to_owned())),
        [FILE_NAME, FILE_FORMAT, said] => Err(damaged(format!("its check sum is {sum}, not {said}"))),
        _ => Err(damaged(format!("its first line is not \"{FILE_NAME} {FILE_FORMAT}\" and a check sum"))),
    }
}

/// For the readers of the journal.
fn write(path: &Path, text: &str, journal: &Path) -> io::Result<()> {
    let sum = crc32fast::hash(text.as_bytes());
    let text = format!("{FILE_NAME} {FILE_FORMAT} {sum:08x}\n{text}");
    regular_file::replace(path, text.as_bytes(), Readers::Of(journal))
}

#[cfg(test)]
mod tests;
