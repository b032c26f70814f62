//! What a decision read of its own: of the attempt, its paths and its recurring job.

use super::memory_size;
use super::tally::Tally;
use crate::arrivals::Arrived;
use crate::generation::{Generation, HeldContainers};
use crate::history::JobHistory;
use crate::placer::{PlacerSettings, RoundMember};
use hintd_model::cluster::{Application, Dataset, HintRequest, Snapshot, dataset};
use std::sync::Arc;

/// See the module.
pub(super) struct Facts {
    held: Option<Arc<[HeldContainers]>>,
    application: Option<Arc<Application>>,
    arrived: Option<Arc<Arrived>>,
    history: Option<Arc<JobHistory>>,
    read: Vec<Arc<Dataset>>,
}

impl Facts {
    /// Of a request; `read`: input paths that were found, `None`: to be looked up.
    pub(super) fn of(generation: &Generation, request: &HintRequest, read: Option<Vec<Arc<Dataset>>>) -> Self {
        let history = request.recurring_key.as_ref().and_then(|key| generation.history.get(key)).cloned();
        let read = read.unwrap_or_else(|| found(request, history.as_deref(), &generation.snapshot));
        Self {
            held: generation.held.get(&request.attempt).cloned(),
            application: generation.snapshot.applications.get(&request.attempt).cloned(),
            arrived: generation.arrived.get(&request.attempt).cloned(),
            history,
            read,
        }
    }

    /// Bytes that it shares with none.
    pub(super) fn own(&self) -> usize {
        self.held.as_ref().map_or(0, |held| size_of_val(&**held)) + self.read.len() * size_of::<usize>()
    }

    /// Takes it among those that are kept.
    pub(super) fn hold(&self, tally: &mut Tally) {
        for read in &self.read {
            tally.hold(read, || memory_size::dataset(read));
        }
        if let Some(known) = &self.application {
            tally.hold(known, || memory_size::application(known));
        }
        if let Some(known) = &self.arrived {
            tally.hold(known, || memory_size::arrived(known));
        }
        if let Some(known) = &self.history {
            tally.hold(known, || memory_size::job_history(known));
        }
    }

    /// Takes it out.
    pub(super) fn release(&self, tally: &mut Tally) {
        self.read.iter().for_each(|read| _ = tally.release(read));
        self.application.iter().for_each(|known| _ = tally.release(known));
        self.arrived.iter().for_each(|known| _ = tally.release(known));
        self.history.iter().for_each(|known| _ = tally.release(known));
    }

    /// Puts it back where `request` reads it.
    pub(super) fn thaw(&self, request: &HintRequest, generation: &mut Generation) {
        let snapshot = Arc::make_mut(&mut generation.snapshot);
        if !self.read.is_empty() {
            let known = Arc::make_mut(&mut snapshot.datasets);
            known.extend(self.read.iter().map(|read| (Arc::clone(&read.path), Arc::clone(read))));
        }
        snapshot.applications.set(&request.attempt, self.application.clone());
        generation.held.set(&request.attempt, self.held.clone());
        generation.arrived.set(&request.attempt, self.arrived.clone());
        if let Some(key) = &request.recurring_key {
            generation.history.set(key, self.history.clone());
        }
    }
}

/// Paths of a request that nobody says were read: those that there are.
fn found(request: &HintRequest, history: Option<&JobHistory>, snapshot: &Snapshot) -> Vec<Arc<Dataset>> {
    let own = request.groups.iter().flat_map(|group| &group.input_paths).chain(&request.input_paths);
    let known = history
        .into_iter()
        .flat_map(|job| job.input_paths.iter().chain(job.groups.values().flat_map(|group| &group.input_paths)));
    own.chain(known).flat_map(|path| dataset::below(&snapshot.datasets, path)).cloned().collect()
}

/// All requests of a round, each with what it was asked with and what was read for it: to decide one anew takes all of them.
pub struct RoundInputs(Vec<Input>);

struct Input {
    request: Arc<HintRequest>,
    settings: PlacerSettings,
    facts: Facts,
}

impl std::fmt::Debug for RoundInputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|input| &input.request.id)).finish()
    }
}

impl RoundInputs {
    /// Of a round that is decided on `generation`.
    #[must_use]
    pub fn new(generation: &Generation, members: &[RoundMember<'_>]) -> Self {
        let input = |member: &RoundMember<'_>| Input {
            request: Arc::clone(member.request),
            settings: member.settings.clone(),
            facts: Facts::of(generation, member.request, None),
        };
        Self(members.iter().map(input).collect())
    }

    /// The round again.
    pub(super) fn members(&self) -> Vec<RoundMember<'_>> {
        self.0.iter().map(|input| RoundMember { request: &input.request, settings: &input.settings }).collect()
    }

    pub(super) fn thaw(&self, generation: &mut Generation) {
        self.0.iter().for_each(|input| input.facts.thaw(&input.request, generation));
    }

    /// Without the requests, which records of the round have as well.
    pub(super) fn bytes(&self) -> usize {
        let input = |input: &Input| size_of::<Input>() + memory_size::notes(&input.settings) + input.facts.own();
        size_of::<Self>() + self.0.iter().map(input).sum::<usize>()
    }

    /// Takes it among those that are kept.
    pub(super) fn hold(&self, tally: &mut Tally) {
        for Input { request, facts, .. } in &self.0 {
            tally.hold(request, || memory_size::request(request));
            facts.hold(tally);
        }
    }

    /// Takes it out.
    pub(super) fn release(&self, tally: &mut Tally) {
        for Input { request, facts, .. } in &self.0 {
            tally.release(request);
            facts.release(tally);
        }
    }
}

/// Where a decision stands in its round.
#[derive(Debug, Clone)]
pub struct RoundPosition {
    /// All of the round.
    pub inputs: Arc<RoundInputs>,
    /// Its position.
    pub at: usize,
}
