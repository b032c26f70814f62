//! One dispatch policy in use: its State, and the groups it decides for.

use super::announced::{AskedAtOnce, Planned};
use super::group::{End, Group, Task};
use super::{LATE, NotYet, RequestedGroup};
use crate::history::Sample;
use crate::plans::run_key;
use hintd_model::cluster::{HintRequest, Overlay, Resource, Snapshot, TaskGroup};
use hintd_model::units::{AttemptId, Bytes, ContainerId, LeaseId, Micros, NodeIdx, RackIdx, RequestId, Timestamp};
use hintd_policy::Policy;
use hintd_policy::dispatch::{Advice, DispatchEvent, DispatchState, DynDispatch, Offer, TaskRef, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Attempt and group name, as the policy knows it.
pub(super) type GroupKey = (AttemptId, Arc<str>);

/// See the module. A clone decides as the original would, and changes nothing of it.
#[derive(Clone)]
pub(super) struct DispatcherInstance {
    pub(super) policy: Arc<dyn Policy>,
    pub(super) state: DispatchState,
    /// Shared with copies of the dispatcher instance until they change.
    pub(super) groups: BTreeMap<GroupKey, Arc<Group>>,
    /// Groups with waiting tasks, by when these have waited for too long.
    due: BTreeSet<Due>,
    waiting: u64,
    /// Groups that an ordinary placement is made for, and until when that is waited for.
    late: Vec<(Timestamp, GroupKey)>,
    /// When reasons were last asked for.
    explained: Option<Timestamp>,
    /// The plan and the runs that the policy was told of.
    pub(super) planned: Planned,
}

/// When a group's waiting tasks have waited for too long.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Timestamp,
    key: GroupKey,
}

impl std::fmt::Debug for DispatcherInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DispatcherInstance")
            .field("groups", &self.groups)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

/// What offers are made against: room goes as launches come.
#[derive(Debug, Clone)]
pub(super) struct OfferContext {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) leases: Overlay,
    /// How many more leases may be held.
    pub(super) left: usize,
    pub(super) now: Timestamp,
    /// Whether reasons are asked for.
    pub(super) explain: bool,
}

impl OfferContext {
    pub(super) fn view(&self) -> View<'_> {
        View { snapshot: &self.snapshot, leases: &self.leases, now: self.now, explain: self.explain }
    }

    /// Whether anything could be launched on the node. Labelled nodes are for those who ask for the label, and no
    /// dispatcher knows of any.
    pub(super) fn has_room(&self, node: NodeIdx) -> bool {
        let snapshot = &self.snapshot;
        snapshot.state[node.at()].usable()
            && snapshot.statics.labels[node.at()].0 == 0
            && !snapshot.room(node, &self.leases).is_zero()
            && self.fits(node, &snapshot.rules.minimum)
    }

    /// Whether a container of this size has room on the node.
    pub(super) fn fits(&self, node: NodeIdx, size: &Resource) -> bool {
        self.snapshot.rules.feasible(size, &self.snapshot.room(node, &self.leases))
    }

    /// Nodes on which anything could be launched.
    pub(super) fn with_room(&self) -> Vec<NodeIdx> {
        (0..self.snapshot.nodes()).map(NodeIdx::new).filter(|&node| self.has_room(node)).collect()
    }
}

/// What offers came to.
#[derive(Debug, Default)]
pub(super) struct OfferOutcome {
    pub(super) offers: u64,
    /// In the order of the launches.
    pub(super) launched: Vec<(TaskRef, NodeIdx)>,
    /// The last word on each group.
    pub(super) not_yet: BTreeMap<GroupKey, NotYet>,
}

impl DispatcherInstance {
    /// `None`: the policy does not dispatch.
    pub(super) fn new(policy: &Arc<dyn Policy>) -> Option<Self> {
        let state = policy.as_dispatch()?.start();
        let policy = Arc::clone(policy);
        let (groups, due, late) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let planned = Planned::default();
        Some(Self { policy, state, groups, due, waiting: 0, late, explained: None, planned })
    }

    /// A dispatcher instance of what is known of one.
    pub(super) fn of(
        policy: &Arc<dyn Policy>,
        state: DispatchState,
        groups: BTreeMap<GroupKey, Arc<Group>>,
        planned: Planned,
    ) -> Self {
        let waiting = groups.values().map(|group| u64::from(group.waiting)).sum();
        let (due, late) = (BTreeSet::new(), Vec::new());
        Self { policy: Arc::clone(policy), state, groups, due, waiting, late, explained: None, planned }
    }

    pub(super) const fn policy_and_state(&self) -> (&Arc<dyn Policy>, &DispatchState) {
        (&self.policy, &self.state)
    }

    /// Tasks that wait.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether reasons are due: finding them costs more than an offer, and they are told once a second at most.
    pub(super) fn explains(&mut self, now: Timestamp) -> bool {
        let due = self.explained.is_none_or(|at| now.since(at) >= EXPLAIN_EVERY);
        if due {
            self.explained = Some(now);
        }
        due
    }

    /// Takes a request's groups in; their keys, in order.
    pub(super) fn wait(
        &mut self,
        request: &Arc<HintRequest>,
        wanted: &[RequestedGroup],
        confidence: f64,
        max_wait: Micros,
        view: &View<'_>,
    ) -> Vec<GroupKey> {
        let mut keys = Vec::with_capacity(wanted.len());
        if let Some(key) = run_key(request, self.planned.plan.as_deref()) {
            self.tell_run(request.attempt, &key, view);
        }
        for (at, wanted) in wanted.iter().enumerate() {
            let asked = Arc::clone(&wanted.waiting.group);
            let mut told = wanted.waiting.clone();
            // Later requests of an attempt may use the same name.
            let free = |name: &Arc<str>| !self.groups.contains_key(&(told.attempt, Arc::clone(name)));
            let names = (2_u32..).map(|n| Arc::from(format!("{asked}#{n}")));
            let name = std::iter::once(Arc::clone(&asked)).chain(names).find(free);
            told.group = name.expect("there are more names than groups");
            told.since = view.now;
            let key = (told.attempt, Arc::clone(&told.group));
            self.tell(&DispatchEvent::Waiting(told.clone()), view);
            let mut group = Group::new(told, asked, request, at);
            group.confidence = confidence;
            self.waiting += u64::from(group.waiting);
            self.groups.insert(key.clone(), Arc::new(group));
            self.schedule(&key, view.now.plus(max_wait));
            keys.push(key);
        }
        keys
    }

    /// Offers a node until nothing more is launched there.
    pub(super) fn offer(&mut self, node: NodeIdx, offer_context: &mut OfferContext, turn: &mut OfferOutcome) {
        while self.waiting > 0 && offer_context.left > 0 && offer_context.has_room(node) {
            turn.offers += 1;
            let offer = Offer { node, free: offer_context.snapshot.room(node, &offer_context.leases) };
            let advice = dispatcher(&self.policy).offer(&mut self.state, &offer, &offer_context.view());
            let mut launched = false;
            for advice in advice {
                match advice {
                    Advice::Launch(task) => launched |= self.launch(task, node, offer_context, turn),
                    Advice::NotYet { attempt, group, reason, expected_wait } => {
                        turn.not_yet.insert((attempt, group), NotYet { reason: reason.into(), expected_wait });
                    }
                }
            }
            if !launched {
                return;
            }
        }
    }

    /// Acts on a launch, unless the task does not wait (any more), an ordinary placement is on its way to it, or its
    /// size does not fit.
    fn launch(
        &mut self,
        task: TaskRef,
        node: NodeIdx,
        offer_context: &mut OfferContext,
        turn: &mut OfferOutcome,
    ) -> bool {
        let key = (task.attempt, Arc::clone(&task.group));
        let Some(group) = self.groups.get(&key) else { return false };
        let open = group.get(task.index) == Some(Task::Waiting)
            && (group.waiting > group.late || offer_context.now >= group.late_until);
        let size = group.told.size;
        if !open
            || offer_context.left == 0
            || !offer_context.snapshot.rules.feasible(&size, &offer_context.snapshot.room(node, &offer_context.leases))
        {
            return false;
        }
        offer_context.leases.set(node, offer_context.leases.leased(node).plus(&size));
        offer_context.left -= 1;
        self.launched(&task, Task::Leased { node, lease: LeaseId(0) }, &offer_context.view());
        turn.launched.push((task, node));
        true
    }

    /// A waiting task was launched, by advice or otherwise.
    pub(super) fn launched(&mut self, task: &TaskRef, stands: Task, view: &View<'_>) {
        let Some(node) = stands.placed() else { return };
        self.set(task, stands);
        self.tell(&DispatchEvent::Launched { task: task.clone(), node }, view);
    }

    /// The lease of a launch that was acted on.
    pub(super) fn leased(&mut self, task: &TaskRef, lease: LeaseId) {
        if let Some(Task::Leased { node, .. }) = self.get(task) {
            self.set(task, Task::Leased { node, lease });
        }
    }

    /// Its application has this name for the task.
    pub(super) fn call(&mut self, task: &TaskRef, name: &Arc<str>) {
        let group = self.group_mut(&(task.attempt, Arc::clone(&task.group)));
        if let Some(group) = group.filter(|_| !name.is_empty()) {
            Arc::make_mut(&mut group.names).insert(Arc::clone(name), task.index);
        }
    }

    /// Whether tasks of a request wait.
    pub(super) fn holds(&self, attempt: AttemptId, request: &RequestId) -> bool {
        self.of_attempt(attempt).any(|(_, group)| group.waiting > 0 && group.request.id == *request)
    }

    /// The task has a container on `node`, wherever it was to run.
    pub(super) fn runs(&mut self, task: &TaskRef, node: NodeIdx, container: Option<ContainerId>, view: &View<'_>) {
        let running = Task::Running { node, container: container.map(|id| id.id), since: view.now };
        match self.get(task) {
            Some(Task::Waiting) => self.launched(task, running, view),
            Some(Task::Leased { node: on, .. } | Task::Running { node: on, .. }) => {
                if on != node {
                    self.tell(&none(task, on, true), view);
                    self.tell(&DispatchEvent::Launched { task: task.clone(), node }, view);
                }
                self.set(task, running);
            }
            Some(Task::Ended(_)) | None => {}
        }
    }

    /// What was launched came to nothing: it waits again.
    pub(super) fn requeue(&mut self, task: &TaskRef, max_wait: Micros, view: &View<'_>) {
        let Some(node) = self.get(task).and_then(|known| known.placed()) else { return };
        self.tell(&none(task, node, true), view);
        self.waits_again(task, max_wait, view.now);
    }

    /// A task ended; one that failed waits again. `None`: it is not known how.
    pub(super) fn finished(
        &mut self,
        task: &TaskRef,
        facts: Option<Sample>,
        failed: bool,
        max_wait: Micros,
        view: &View<'_>,
    ) {
        let Some((known, node)) = self.get(task).and_then(|known| Some((known, known.placed()?))) else { return };
        let ran = match known {
            Task::Running { since, .. } => view.now.since(since),
            _ => Micros::ZERO,
        };
        let unknown = Sample { duration: ran, input: Bytes::ZERO, output: Bytes::ZERO };
        let Sample { duration, input, output } = facts.unwrap_or(unknown);
        self.tell(&DispatchEvent::Finished { task: task.clone(), node, duration, input, output, failed }, view);
        if failed {
            self.waits_again(task, max_wait, view.now);
        } else {
            self.set(task, Task::Ended(End { node, duration, input, output }));
        }
    }

    /// The output of a task that had ended is lost: it waits again.
    pub(super) fn lost(&mut self, task: &TaskRef, max_wait: Micros, view: &View<'_>) {
        if matches!(self.get(task), Some(Task::Ended(_))) {
            self.tell(&DispatchEvent::Lost(task.clone()), view);
            self.waits_again(task, max_wait, view.now);
        }
    }

    /// The application is over; whether it was known.
    pub(super) fn done(&mut self, attempt: AttemptId, view: &View<'_>) -> bool {
        let keys: Vec<GroupKey> = self.of_attempt(attempt).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        let ran = self.planned.runs.remove(&attempt).is_some();
        if ran || !keys.is_empty() {
            self.tell(&DispatchEvent::Done(attempt), view);
        }
        !keys.is_empty()
    }

    /// Forgets the groups of a request that was never answered. What else is known of its attempt is told again. What was
    /// decided of other jobs stays, for it can't be made again of what is known of them, as of one that was stolen.
    pub(super) fn forget(&mut self, attempt: AttemptId, request: &str, view: &View<'_>) {
        let of_it = self.of_attempt(attempt).filter(|(_, group)| group.request.id.as_str() == request);
        let keys: Vec<GroupKey> = of_it.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        if self.of_attempt(attempt).next().is_none()
            && self.planned.runs.get(&attempt).is_some_and(|run| run.asked.is_none())
        {
            self.planned.runs.remove(&attempt);
        }
        if keys.is_empty() {
            return;
        }
        self.tell(&DispatchEvent::Done(attempt), view);
        // Else the place that its run took in the plan would be that of a run that is over.
        if let Some(plan) = self.planned.plan.as_ref().map(|plan| Arc::clone(&plan.plan)) {
            self.tell(&DispatchEvent::Plan(Some(plan)), view);
        }
        let mut state = std::mem::replace(&mut self.state, dispatcher(&self.policy).start());
        self.tell_again(&mut state, |of| of == attempt, view);
        self.state = state;
    }

    /// Takes the policy as configured now, if it differs; its State is made of what is known of live applications. One that
    /// learnt is another policy with the same parameters: it goes on with the State that there is, for what was decided of
    /// jobs that wait or run, such as a job that was stolen, can't be made again of what is known of them.
    pub(super) fn replace(&mut self, policy: &Arc<dyn Policy>, uses: &[(RackIdx, u32)], view: &View<'_>) {
        if Arc::ptr_eq(&self.policy, policy) || policy.as_dispatch().is_none() {
            return;
        }
        let alike = self.policy.name() == policy.name() && self.policy.params_toml() == policy.params_toml();
        if alike && policy.as_learn().is_none() {
            return;
        }
        self.policy = Arc::clone(policy);
        if !alike {
            self.rebuild(uses, view);
        }
    }

    fn rebuild(&mut self, uses: &[(RackIdx, u32)], view: &View<'_>) {
        let dispatcher = dispatcher(&self.policy);
        let mut state = dispatcher.start();
        for &(rack, per_mille) in uses {
            dispatcher.observe(&mut state, &DispatchEvent::RackUse { rack, per_mille }, view);
        }
        if let Some(plan) = &self.planned.plan {
            dispatcher.observe(&mut state, &DispatchEvent::Plan(Some(Arc::clone(&plan.plan))), view);
        }
        self.tell_again(&mut state, |_| true, view);
        self.state = state;
    }

    /// Tells a State what is known of attempts, each as it came.
    fn tell_again(&self, state: &mut DispatchState, told: impl Fn(AttemptId) -> bool, view: &View<'_>) {
        let dispatcher = dispatcher(&self.policy);
        let runs = || self.planned.runs.iter().filter(|(attempt, _)| told(**attempt));
        for (&attempt, run) in runs() {
            dispatcher.observe(state, &DispatchEvent::Run { attempt, key: Arc::clone(&run.key) }, view);
        }
        // By its own time: places in a plan go by that as well.
        let asked = runs().filter_map(|(&attempt, run)| Some((run.asked?, attempt)));
        let mut asked: Vec<(AskedAtOnce, AttemptId)> = asked.collect();
        asked.sort_unstable();
        let mut asked = asked.into_iter().peekable();
        let asks = |state: &mut DispatchState, (AskedAtOnce { came, tasks }, attempt)| {
            dispatcher.observe(state, &DispatchEvent::Asks { attempt, came, tasks }, &View { now: came, ..*view });
        };
        let groups = self.groups.iter().filter(|((attempt, _), _)| told(*attempt));
        let mut groups: Vec<&Group> = groups.map(|(_, group)| &**group).collect();
        groups.sort_by_key(|group| group.told.since);
        for group in groups {
            let since = group.told.since;
            while let Some(earlier) = asked.next_if(|(asked, _)| asked.came <= since) {
                asks(state, earlier);
            }
            let waiting = DispatchEvent::Waiting((*group.told).clone());
            dispatcher.observe(state, &waiting, &View { now: since, ..*view });
            tell_tasks(dispatcher, state, group, view);
        }
        asked.for_each(|later| asks(state, later));
    }

    /// Tells the policy.
    pub(super) fn tell(&mut self, event: &DispatchEvent, view: &View<'_>) {
        dispatcher(&self.policy).observe(&mut self.state, event, view);
    }

    /// A group that is to change: copies keep theirs.
    pub(super) fn group_mut(&mut self, key: &GroupKey) -> Option<&mut Group> {
        self.groups.get_mut(key).map(Arc::make_mut)
    }

    pub(super) fn get(&self, task: &TaskRef) -> Option<Task> {
        self.groups.get(&(task.attempt, Arc::clone(&task.group)))?.get(task.index)
    }

    pub(super) fn of_attempt(&self, attempt: AttemptId) -> impl Iterator<Item = (&GroupKey, &Group)> {
        let all = self.groups.range((attempt, Arc::from(""))..);
        all.take_while(move |((of, _), _)| *of == attempt).map(|(key, group)| (key, &**group))
    }

    /// Groups of which something has waited for too long; each is looked at again after `max_wait`. Reduces whose maps
    /// are not done wait for their own application: their time begins when the last map has ended.
    ///
    /// Tasks that a plan has in certain racks wait for these until the plan has them ended, and `patience` after that:
    /// where racks are full a plan makes its jobs wait, and that is no fault.
    ///
    /// Placements are made one after another, also for lost nodes: while [`LATE_MAX`] are under way the others wait.
    pub(super) fn overdue(&mut self, max_wait: Micros, patience: Micros, now: Timestamp) -> Vec<GroupKey> {
        let groups = &self.groups;
        self.late.retain(|(until, key)| *until > now && groups.get(key).is_some_and(|group| group.late > 0));
        let free = LATE_MAX - self.late.len();
        let due: Vec<Due> = self.due.iter().take_while(|due| due.at <= now).take(free).cloned().collect();
        let mut keys = Vec::with_capacity(due.len());
        for Due { key, .. } in due {
            let held = self.waits_for_maps(&key);
            if let Some(until) = self.planned_until(&key, patience).filter(|until| *until > now && !held) {
                // Looked at again before that: its rack may die meanwhile.
                self.schedule(&key, until.min(now.plus(max_wait)));
                continue;
            }
            let Some(group) = self.group_mut(&key) else {
                continue;
            };
            let was_held = std::mem::replace(&mut group.held, held);
            self.schedule(&key, now.plus(if held { Micros(max_wait.0 / 4) } else { max_wait }));
            if !held && !was_held {
                keys.push(key);
            }
        }
        keys
    }

    /// Makes an ordinary placement of all that waits of a group.
    pub(super) fn place_late(&mut self, key: &GroupKey, max_wait: Micros, now: Timestamp) -> Option<HintRequest> {
        let group = self.groups.get_mut(key).filter(|group| group.waiting > 0).map(Arc::make_mut)?;
        (group.late, group.late_until) = (group.waiting, now.plus(Micros(max_wait.0 / 2)));
        self.late.push((group.late_until, key.clone()));
        Some(late_request(group, now))
    }

    /// Whether the group's tasks are reduces, and maps of its application wait, or run where their end will be seen.
    fn waits_for_maps(&self, key: &GroupKey) -> bool {
        let goes_on = |task: &Task| match task {
            Task::Waiting | Task::Leased { .. } => true,
            Task::Running { container, .. } => container.is_some(),
            Task::Ended(_) => false,
        };
        let is = |group: &Group, role: &str| *group.told.role == *role;
        self.groups.get(key).is_some_and(|group| is(group, "reduce"))
            && self.of_attempt(key.0).any(|(_, group)| is(group, "map") && group.tasks.iter().any(goes_on))
    }

    fn waits_again(&mut self, task: &TaskRef, max_wait: Micros, now: Timestamp) {
        self.set(task, Task::Waiting);
        let key = (task.attempt, Arc::clone(&task.group));
        if self.groups.get(&key).is_some_and(|group| group.overdue.is_none()) {
            self.schedule(&key, now.plus(max_wait));
        }
    }

    fn set(&mut self, task: &TaskRef, stands: Task) {
        let key = (task.attempt, Arc::clone(&task.group));
        let Some(group) = self.groups.get_mut(&key).map(Arc::make_mut) else {
            return;
        };
        let before = group.waiting;
        group.set(task.index, stands);
        self.waiting = self.waiting + u64::from(group.waiting) - u64::from(before);
        if group.waiting == 0
            && let Some(at) = group.overdue.take()
        {
            self.due.remove(&Due { at, key });
        }
    }

    fn schedule(&mut self, key: &GroupKey, at: Timestamp) {
        let Some(group) = self.groups.get_mut(key).map(Arc::make_mut) else {
            return;
        };
        if let Some(before) = group.overdue.replace(at) {
            self.due.remove(&Due { at: before, key: key.clone() });
        }
        self.due.insert(Due { at, key: key.clone() });
    }

    fn remove(&mut self, key: &GroupKey) {
        let Some(group) = self.groups.remove(key) else { return };
        self.waiting -= u64::from(group.waiting);
        if let Some(at) = group.overdue {
            self.due.remove(&Due { at, key: key.clone() });
        }
    }
}

/// Time between offers that are to be explained; those of nodes that report together count as one.
const EXPLAIN_EVERY: Micros = Micros::from_millis(50);

/// Groups that ordinary placements are made for at one time, because they wait too long.
const LATE_MAX: usize = 64;

/// What became of the group's tasks.
fn tell_tasks(dispatcher: &dyn DynDispatch, state: &mut DispatchState, group: &Group, view: &View<'_>) {
    for (index, task) in (0_u32..).zip(&group.tasks) {
        let named = group.task(index);
        let (node, end) = match *task {
            Task::Waiting => continue,
            Task::Leased { node, .. } | Task::Running { node, .. } => (node, None),
            Task::Ended(end) => (end.node, Some(end)),
        };
        dispatcher.observe(state, &DispatchEvent::Launched { task: named.clone(), node }, view);
        if let Some(End { node, duration, input, output }) = end {
            let event = DispatchEvent::Finished { task: named, node, duration, input, output, failed: false };
            dispatcher.observe(state, &event, view);
        }
    }
}

pub(super) fn dispatcher(policy: &Arc<dyn Policy>) -> &dyn DynDispatch {
    policy.as_dispatch().expect("an instance is opened for dispatchers only")
}

/// An ordinary placement of all that waits of a group.
fn late_request(group: &Group, now: Timestamp) -> HintRequest {
    let request = &*group.request;
    let asked = &request.groups[group.at];
    let reads = !group.told.inputs.is_empty();
    let paths = |paths: &Vec<Arc<str>>| if reads { paths.clone() } else { Vec::new() };
    HintRequest {
        id: format!("{}{LATE}{}/{}", request.id, group.told.group, now.as_millis()).as_str().into(),
        groups: vec![TaskGroup { count: group.waiting, input_paths: paths(&asked.input_paths), ..asked.clone() }],
        edges: Vec::new(),
        survivors: Vec::new(),
        input_paths: paths(&request.input_paths),
        recurring_key: None, // what it ran like before is not to be looked up for a part of it
        ..request.without_asks()
    }
}

/// A launch that came to nothing: it ran for no time and did nothing.
fn none(task: &TaskRef, node: NodeIdx, failed: bool) -> DispatchEvent {
    let (duration, input, output) = (Micros::ZERO, Bytes::ZERO, Bytes::ZERO);
    DispatchEvent::Finished { task: task.clone(), node, duration, input, output, failed }
}
