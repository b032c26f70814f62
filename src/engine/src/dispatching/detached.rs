//! A dispatcher instance set apart: as it was at one moment, to decide as the engine would and change nothing there. What-if and
//! replay run on one, on any thread.

use super::DispatchRequest;
use super::announced::Planned;
use super::deciding::{decide, no_dispatcher};
use super::dispatcher_instance::{DispatcherInstance, GroupKey, OfferContext};
use super::group::{Group, Task};
use crate::decision::Decision;
use crate::placer::{Proposal, Row};
use crate::refusal::Refusal;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use hintd_model::cluster::{Overlay, Snapshot};
use hintd_model::units::{AttemptId, Micros, Timestamp};
use hintd_policy::Policy;
use hintd_policy::dispatch::TaskInput;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub struct DetachedDispatcher {
    pub(super) dispatcher: DispatcherInstance,
    pub(super) offer_context: OfferContext,
    pub(super) max_wait: Micros,
    /// Said of answers: where congestion is known from.
    pub(super) degraded: Option<&'static str>,
}

impl DetachedDispatcher {
    /// The answer that a request would get, were it committed at that moment.
    #[must_use]
    pub fn preview(self, mut proposal: Proposal) -> Decision {
        match proposal.waits.take() {
            Some(waits) => self.decide(proposal, &waits).0,
            None => proposal.preview(),
        }
    }

    /// What the proposal's request would be answered, and where its containers go.
    pub(crate) fn decide(mut self, mut proposal: Proposal, waits: &DispatchRequest) -> (Decision, Vec<Row>) {
        decide(&mut self.dispatcher, &mut proposal, waits, &mut self.offer_context, self.max_wait);
        proposal.draft.degraded.extend(self.degraded.map(str::to_owned));
        (proposal.preview(), proposal.rows)
    }

    /// The same tasks and room under another policy, whose State is made of what is known of live applications.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] where the policy does not dispatch.
    pub(crate) fn under(mut self, name: &str, policy: &Arc<dyn Policy>) -> Result<Self, Refusal> {
        if policy.as_dispatch().is_none() {
            return Err(no_dispatcher(name));
        }
        self.dispatcher.replace(policy, &[], &self.offer_context.view());
        Ok(self)
    }

    /// The room it offers.
    pub(crate) const fn room(&self) -> (&Arc<Snapshot>, &Overlay) {
        (&self.offer_context.snapshot, &self.offer_context.leases)
    }

    /// For keeping; the groups that may matter to a request of `attempt`. `None`: the State can't be written down.
    pub(crate) fn keep(&self, attempt: AttemptId) -> Option<StoredDispatcher> {
        let (policy, state) = self.dispatcher.policy_and_state();
        let matters = |(key, group): &(&GroupKey, &Arc<Group>)| key.0 == attempt || group.waiting > 0;
        let groups: BTreeMap<GroupKey, Arc<Group>> = self
            .dispatcher
            .groups
            .iter()
            .filter(matters)
            .map(|(key, group)| (key.clone(), Arc::clone(group)))
            .collect();
        let groups_of: BTreeSet<AttemptId> = groups.keys().map(|(attempt, _)| *attempt).collect();
        Some(StoredDispatcher {
            policy: Arc::clone(policy),
            state: deflate(state.to_json().ok()?.as_bytes()),
            planned: self.dispatcher.planned(|run| run == attempt || groups_of.contains(&run)),
            groups,
            left: self.offer_context.left,
            now: self.offer_context.now,
            explain: self.offer_context.explain,
            max_wait: self.max_wait,
            degraded: self.degraded,
        })
    }
}

/// A dispatcher instance set apart, as it is kept: its State written down, its groups shared with the dispatcher instance that lives on.
pub(crate) struct StoredDispatcher {
    policy: Arc<dyn Policy>,
    /// JSON, deflated.
    state: Box<[u8]>,
    groups: BTreeMap<GroupKey, Arc<Group>>,
    planned: Planned,
    left: usize,
    now: Timestamp,
    explain: bool,
    max_wait: Micros,
    degraded: Option<&'static str>,
}

impl std::fmt::Debug for StoredDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let groups = self.groups.len();
        f.debug_struct("KeptDispatcher")
            .field("policy", &self.policy.name())
            .field("groups", &groups)
            .finish_non_exhaustive()
    }
}

impl StoredDispatcher {
    /// The dispatcher instance as it was, over the room that was kept beside it; `None`: what was written does not read back.
    pub(crate) fn thaw(&self, snapshot: Arc<Snapshot>, leases: Overlay) -> Option<DetachedDispatcher> {
        let json = inflate(&self.state)?;
        let state = self.policy.as_dispatch()?.restore(&json).ok()?;
        let dispatcher = DispatcherInstance::of(&self.policy, state, self.groups.clone(), self.planned.clone());
        let offer_context = OfferContext { snapshot, leases, left: self.left, now: self.now, explain: self.explain };
        Some(DetachedDispatcher { dispatcher, offer_context, max_wait: self.max_wait, degraded: self.degraded })
    }

    /// Bytes of its own.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.state.len() + self.groups.len() * 64
    }

    /// What it shares with other dispatcher instances, and bytes.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (&Arc<Group>, usize)> {
        self.groups.values().map(|group| {
            let own = size_of::<Group>() + size_of_val(&*group.tasks) + group.names.len() * 64;
            (group, own + group.told.inputs.len() * size_of::<TaskInput>())
        })
    }
}

fn deflate(bytes: &[u8]) -> Box<[u8]> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte").into()
}

fn inflate(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Tasks of groups are most of what is copied when a group changes that a copy shares.
const _: () = assert!(size_of::<Task>() <= 48);
