//! `scale_up_out` (004 Li, chapter 5): few large machines and many small ones in one cluster, each job on those where it
//! ends sooner.
//!
//! A classifier tells small jobs from large ones by maps, reduces and shuffle. Small jobs wait for scale-up machines, large
//! ones for scale-out machines; an idle scale-out machine without a job of its own steals the whole waiting job that is
//! nearest to the boundary. docs/policies.md says how gaps of the paper are settled.
//!
//! # Code map
//! - `params`; `time`: the time model that labels jobs; `classifier`, `logistic`: which jobs are small.
//! - `task_times`: what the time model is off by, from jobs that finished; `learned`: a classifier from such jobs.
//! - `classes`: which machines are which. `queues`: the dispatcher. `backlog`: what waits for a class. `place`: requests at once. `replicas`: data.

mod backlog;
mod classes;
mod classifier;
mod learned;
mod logistic;
mod params;
mod place;
mod queues;
mod replicas;
mod task_times;
#[cfg(test)]
mod tests;
mod time;

pub use classes::{ATTRIBUTE, Side, YARN_ATTRIBUTES, is_up};
pub use classifier::{Classifier, Mistakes};
pub use params::{Order, ScaleUpOutParams, Steal};
pub use queues::QueuesState;
pub use time::{BLOCK, JobShape, Stage, TimeModel};

use crate::advise::{DataProblem, ReplicaAdvice};
use crate::dispatch::{Advice, DispatchEvent, Offer, View};
use crate::learn::{FinishedJob, Learn, LearnError, Lesson, ToldClass};
use crate::place::KeptTo;
use crate::{
    Budget, Capabilities, Definition, Dispatch, Place, PlaceData, PlaceError, PlaceProblem, Placement, Policy,
};
use hintd_model::cluster::Snapshot;
use hintd_model::units::NodeIdx;
use learned::Learned;
use place::Decides;
use queues::Rules;
use replicas::Racks;
use std::sync::{Arc, OnceLock};
use task_times::TaskTimes;

/// Its name.
pub const NAME: &str = "scale_up_out";

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct ScaleUpOut {
    params: ScaleUpOutParams,
    /// Trained by `prepare`; `None` inside: by the parameters all jobs are better off in one class.
    classifier: OnceLock<Option<Arc<Classifier>>>,
    /// From jobs that finished; `None`: by the stated time model alone.
    learned: Option<Arc<Learned>>,
}

impl ScaleUpOut {
    /// With a classifier that was trained from jobs that ran.
    #[must_use]
    pub fn with_classifier(self, classifier: Arc<Classifier>) -> Self {
        Self { classifier: OnceLock::from(Some(classifier)), ..self }
    }

    /// The same parameters, by what was learnt.
    fn by(&self, learned: Learned) -> Self {
        let classifier = OnceLock::from(Some(Arc::clone(&learned.classifier)));
        Self { params: self.params.clone(), classifier, learned: Some(Arc::new(learned)) }
    }

    fn times(&self) -> TaskTimes {
        self.learned.as_ref().map_or_else(TaskTimes::default, |learned| learned.times)
    }

    /// Above 0: the job is small, and the further from 0 the surer. Until there is a classifier the time model says it, by
    /// which jobs are labelled that it is trained from.
    fn decision(&self, job: &JobShape) -> f64 {
        match (&self.learned, self.classifier.get()) {
            (Some(learned), _) => learned.decision(job, &self.params),
            (None, Some(trained)) => trained.as_ref().map_or(0.0, |classifier| classifier.decision(job)),
            (None, None) if self.params.time_model().small(job) => 1.0,
            (None, None) => -1.0,
        }
    }
}

impl ScaleUpOut {
    fn decides<'a, D: Fn(&JobShape) -> f64>(&'a self, times: &'a TaskTimes, decision: D) -> Decides<'a, D> {
        Decides { decision, times, lesson: self.learned.as_ref().map(|learned| &learned.lesson) }
    }

    fn with_rules<R>(&self, act: impl FnOnce(&Rules<'_>) -> R) -> R {
        let decision = |job: &JobShape| self.decision(job);
        let seconds = |side: Side, job: &JobShape, containers: u64| {
            self.times().seconds(&self.params.time_model(), side, job, containers)
        };
        act(&Rules { params: &self.params, decision: &decision, seconds: &seconds })
    }
}

impl Definition for ScaleUpOut {
    type Params = ScaleUpOutParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "small jobs on few large machines, large jobs on many small ones, which take small jobs as well where the large ones have no room or would end them later";

    fn new(params: ScaleUpOutParams) -> Self {
        Self { params, classifier: OnceLock::new(), learned: None }
    }

    fn params(&self) -> &ScaleUpOutParams {
        &self.params
    }

    fn prepare(&self) {
        let trained = || Classifier::of_time_model(&self.params).ok().map(Arc::new);
        self.classifier.get_or_init(trained);
    }

    fn is_prepared(&self) -> bool {
        self.classifier.get().is_some()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        let (place, dispatch, place_data) = (Some(self as &dyn Place), Some(self as _), Some(self as _));
        Capabilities { place, dispatch, place_data, learn: Some(self), ..Capabilities::default() }
    }
}

impl Place for ScaleUpOut {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let times = self.times();
        place::place(problem, &self.params, self.decides(&times, |job| self.decision(job)), budget)
    }

    fn keeps_to(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        could: &dyn Fn(usize) -> Vec<NodeIdx>,
    ) -> Option<KeptTo> {
        let times = self.times();
        place::keeps_to(problem, &self.params, self.decides(&times, |job| self.decision(job)), placement, could)
    }

    fn knows_senders(&self) -> bool {
        true // they tell what is shuffled
    }

    fn weighs_bytes(&self) -> bool {
        false // it seeks the faster machines
    }
}

impl PlaceData for ScaleUpOut {
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
        if !self.params.replicas {
            return Ok(vec![ReplicaAdvice::Default; problem.replication.into()]);
        }
        Ok(Racks::of(problem, &self.params.scale_up).replicas(problem, problem.block))
    }

    fn place_blocks(&self, problem: &DataProblem<'_>, blocks: u64) -> Result<Vec<Vec<ReplicaAdvice>>, PlaceError> {
        if !self.params.replicas {
            return Ok(vec![vec![ReplicaAdvice::Default; problem.replication.into()]; blocks as usize]);
        }
        let racks = Racks::of(problem, &self.params.scale_up);
        Ok((0..blocks).map(|block| racks.replicas(problem, block)).collect())
    }

    fn needs_no_reader(&self) -> bool {
        self.params.replicas
    }
}

impl Learn for ScaleUpOut {
    fn class(&self) -> &str {
        &self.params.scale_up
    }

    fn is_of_class(&self, snapshot: &Snapshot, node: NodeIdx) -> bool {
        is_up(snapshot, node, &self.params.scale_up)
    }

    fn class_parameter(&self) -> &'static str {
        "scale_up"
    }

    fn classes_told(&self, snapshot: &Snapshot, node: NodeIdx) -> Vec<ToldClass> {
        classes::told(snapshot, node, &self.params.scale_up)
    }

    fn jobs_min(&self) -> usize {
        learned::JOBS_MIN
    }

    fn jobs_max(&self) -> usize {
        self.params.training_jobs as usize
    }

    fn learn(&self, jobs: &[FinishedJob], seed: u64) -> Result<(Box<dyn Policy>, String), LearnError> {
        let learned = Learned::of(jobs, &self.params, seed)?;
        let written = learned.written(&self.params);
        Ok((Box::new(self.by(learned)), written))
    }

    fn read_back(&self, written: &str) -> Result<Box<dyn Policy>, LearnError> {
        Ok(Box::new(self.by(Learned::read(written, &self.params)?)))
    }

    fn lesson(&self) -> Option<Lesson> {
        self.learned.as_ref().map(|learned| learned.lesson)
    }
}

impl Dispatch for ScaleUpOut {
    type State = QueuesState;

    fn start(&self) -> QueuesState {
        QueuesState::new(&self.params)
    }

    fn observe(&self, state: &mut QueuesState, event: &DispatchEvent, view: &View<'_>) {
        self.with_rules(|rules| state.observe(rules, event, view));
    }

    fn offer(&self, state: &mut QueuesState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        self.with_rules(|rules| state.offer(rules, offer, view))
    }
}
