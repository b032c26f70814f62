//! Small requests, asks and answers for tests.

use super::answer::Answer;
use super::decision::{Decision, Hint, Mode, TermValues};
use super::engine::Engine;
use super::plans::ValidatedPlan;
use super::plans::serve::PlanChange;
use super::proof::Token;
use super::refusal::Refusal;
use hintd_model::cluster::{Ask, Constraints, Gang, HintRequest, NamedResource, TaskGroup, WhenFull};
use hintd_model::units::{
    ApplicationId, AttemptId, DecisionId, LeaseId, Micros, SchedulerKey, SnapshotVersion, Timestamp,
};
use hintd_policy::Ended;
use std::sync::Arc;

pub(crate) fn attempt(sequence: u32, attempt: u32) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence }, attempt }
}

/// 1024 MB and one vcore a container, groups with keys of priority 1, 2, …
pub(crate) fn request(id: &str, groups: &[(&str, u32)]) -> HintRequest {
    let group = |(priority, &(name, count)): (i32, &(&str, u32))| TaskGroup {
        name: name.into(),
        role: name.into(),
        count,
        whole: 0,
        size: NamedResource { memory_mb: 1024, vcores: 1, named: Vec::new() },
        key: SchedulerKey { priority, allocation_request_id: -1 },
        label: None,
        input_paths: Vec::new(),
        constraints: Constraints::default(),
    };
    HintRequest {
        id: id.into(),
        attempt: attempt(1, 1),
        queue: "default".into(),
        user: "ann".into(),
        framework: "mapreduce".into(),
        groups: (1..).zip(groups).map(group).collect(),
        edges: Vec::new(),
        input_paths: Vec::new(),
        recurring_key: None,
        constraints: Constraints::default(),
        policy: None,
        seed: None,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise,
        am_host: None,
        asks: Vec::new(),
        survivors: Vec::new(),
    }
}

pub(crate) fn ask(key: SchedulerKey, resource_name: &str, count: u32) -> Ask {
    let size = NamedResource { memory_mb: 1024, vcores: 1, named: Vec::new() };
    Ask { key, resource_name: resource_name.into(), size, count, relax_locality: true, label: "".into() }
}

pub(crate) fn hint(group: &str, host: &str, count: u32, fallbacks: &[&str], racks: &[&str]) -> Hint {
    Hint {
        group: group.into(),
        first_index: 0,
        count,
        host: host.into(),
        fallbacks: fallbacks.iter().map(|&host| host.into()).collect(),
        racks: racks.iter().map(|&rack| rack.into()).collect(),
        leases: Vec::new(),
        expires: None,
        expected_wait: None,
        confidence: 1.0,
    }
}

pub(crate) fn answer(id: &str, digest: u64) -> Arc<Answer> {
    let decision = Decision {
        id: DecisionId::of(digest),
        request: id.into(),
        attempt: attempt(1, 1),
        queue: "default".into(),
        recurring_key: None,
        at: Timestamp(0),
        snapshot: SnapshotVersion(1),
        policy: "spread".into(),
        mode: Mode::On,
        hints: Vec::new(),
        routes: Vec::new(),
        asks: Vec::new(),
        terms: TermValues::default(),
        baseline: None,
        baseline_places: None,
        expected_gain: None,
        unguarded: None,
        terms_of_whole: None,
        round: None,
        withheld: None,
        ended: Ended::Complete,
        gap: None,
        steps: 0,
        seed: 0,
        exclusions: Vec::new(),
        ages: Vec::new(),
        degraded: Vec::new(),
        plan: None,
        learnt: None,
        pending: Vec::new(),
        blocked: Vec::new(),
        without_room: 0,
        next_wave: 0,
        conflicts: 0,
        elapsed: Micros::ZERO,
    };
    Arc::new(Answer { decision, token: Token("t".into()), nonce: None, digest })
}

/// Changes of plans that a journal takes at once.
impl Engine {
    fn took(&mut self, change: PlanChange, now: Timestamp) {
        self.lease_handler().out.effects.journal.extend_from_slice(change.ops());
        self.take_plans(change, now);
    }

    pub(crate) fn keep_plan(
        &mut self,
        name: &str,
        examined: ValidatedPlan,
        of: (bool, &str),
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let change = self.plan_kept(name, examined, of, now)?;
        self.took(change, now);
        Ok(())
    }

    pub(crate) fn activate_plan(&mut self, name: &str, replace: bool, now: Timestamp) -> Result<(), Refusal> {
        let change = self.plan_activated(name, replace, now)?;
        self.took(change, now);
        Ok(())
    }

    pub(crate) fn roll_back_plan(&mut self, to_none: bool, now: Timestamp) -> Result<Option<Arc<str>>, Refusal> {
        let change = self.plan_rolled_back(to_none, now)?;
        let to = change.in_force();
        self.took(change, now);
        Ok(to)
    }

    pub(crate) fn remove_plan(&mut self, name: &str) -> Result<(), Refusal> {
        let change = self.plan_removed(name)?;
        self.took(change, Timestamp(0));
        Ok(())
    }
}

/// An answer with so many hints of one group, each with a lease.
pub(crate) fn long_answer(id: &str, group: &str, hints: u64) -> Arc<Answer> {
    let mut long = (*answer(id, 7)).clone();
    let group: Arc<str> = group.into();
    let hint = |lease: u64| Hint {
        group: Arc::clone(&group),
        leases: vec![LeaseId(lease)],
        ..hint("", &format!("node-{lease:04}"), 1, &["node-a", "node-b"], &["/r0", "/r0", "/r1"])
    };
    long.decision.hints = (1..=hints).map(hint).collect();
    Arc::new(long)
}
