//! YARN in virtual time: the one model of the CapacityScheduler, and the tables of what ApplicationMasters ask it for.
//!
//! A group's tasks stand under one scheduler key: rows for the hosts and racks of their inputs, and `*`. A task that
//! is hinted leaves those rows. Its own ask names the hinted host alone, strictly; only that host's report looks at
//! it, so it is put up for that report and taken down after it.

use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{AttemptId, NodeIdx, SchedulerKey};
use hintd_policy::capacity_scheduler::{
    AppIdx, AppOrdering, AskRow, CapacityScheduler, ContainerNo, Decision, Place, QueueSettings, SchedulerSettings,
    Size, Submission,
};
use hintd_policy::dispatch::{TaskRef, WaitingGroup};
use hintd_policy::pool::NodeLocation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// MapReduce's priorities.
const REDUCES: i32 = 10;
const MAPS: i32 = 20;

/// NodeManagers' port; it matters to which of several reservations is given up, and here nodes are never reserved.
const PORT: u16 = 8041;

/// A group of an application.
#[derive(Debug, Clone)]
struct GroupTable {
    group: Arc<str>,
    key: SchedulerKey,
    size: Size,
    /// What is asked for, by place.
    rows: BTreeMap<Place, u32>,
}

#[derive(Debug, Clone)]
struct Application {
    attempt: AttemptId,
    groups: Vec<GroupTable>,
    /// Containers of tasks that run.
    containers: BTreeMap<(Arc<str>, u32), ContainerNo>,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) attempt: AttemptId,
    pub(super) group: &'a Arc<str>,
    /// Whether it is the ask for hinted hosts.
    pub(super) hinted: bool,
}

/// YARN and the asks that stand there.
#[derive(Debug, Clone)]
pub(super) struct ResourceManager {
    scheduler: Option<CapacityScheduler>,
    by_attempt: BTreeMap<AttemptId, AppIdx>,
    apps: Vec<Option<Application>>,
    /// Nodes may have come or gone.
    stale: bool,
}

impl ResourceManager {
    pub(super) const fn new() -> Self {
        Self { scheduler: None, by_attempt: BTreeMap::new(), apps: Vec::new(), stale: true }
    }

    /// Nodes may have come or gone.
    pub(super) const fn outdate(&mut self) {
        self.stale = true;
    }

    /// Nodes as the snapshot has them; on the offered one so much is free.
    fn keep_up(&mut self, snapshot: &Snapshot, offered: NodeIdx, free: &Resource) -> &mut CapacityScheduler {
        let scheduler = self.scheduler.get_or_insert_with(|| start(snapshot));
        if std::mem::take(&mut self.stale) {
            for node in snapshot.statics.indexes() {
                let there = scheduler.total_of(node) != Size::ZERO;
                if snapshot.state[node.at()].usable() && !there {
                    let room = Size::from(&snapshot.unoccupied(node));
                    scheduler.add_node(node, snapshot.rack(node), (snapshot.host(node).as_str(), PORT), room);
                } else if !snapshot.state[node.at()].usable() && there {
                    scheduler.remove_node(node);
                }
            }
        }
        // The simulator counts containers; what else is in use there is not YARN's.
        let used = scheduler.total_of(offered).minus(scheduler.free_on(offered));
        scheduler.resize_node(offered, used.plus(Size::from(free)));
        scheduler
    }

    /// The table of a group that waits; it replaces what was asked for the group before.
    pub(super) fn ask(&mut self, told: &WaitingGroup, reduces: bool, snapshot: &Snapshot) {
        let app = self.application(told, snapshot);
        let Some(Some(row)) = self.apps.get_mut(app.0 as usize) else { return };
        let known = row.groups.iter().position(|group| group.group == told.group);
        let at = known.unwrap_or(row.groups.len());
        let priority = if reduces { REDUCES } else { MAPS };
        let mut rows = BTreeMap::from([(Place::Any, told.count)]);
        let inputs = told.inputs.iter().take(if reduces { 0 } else { told.count as usize });
        for input in inputs {
            let spots = input.nodes.iter().map(|&node| NodeLocation { rack: snapshot.rack(node), node });
            for place in places(spots) {
                *rows.entry(place).or_default() += 1;
            }
        }
        // Of two keys for each group the first is for its own rows.
        let key = SchedulerKey { priority, allocation_request_id: 2 * at as i64 };
        let table = GroupTable { group: Arc::clone(&told.group), key, size: Size::from(&told.size), rows };
        match row.groups.get_mut(at) {
            Some(group) => *group = table,
            None => row.groups.push(table),
        }
        let changed: Vec<Place> = row.groups[at].rows.keys().copied().collect();
        self.send(app, at, &changed);
    }

    fn application(&mut self, told: &WaitingGroup, snapshot: &Snapshot) -> AppIdx {
        if let Some(&app) = self.by_attempt.get(&told.attempt) {
            return app;
        }
        let scheduler = self.scheduler.get_or_insert_with(|| start(snapshot));
        let (queue, user) = ("root.default".to_owned(), Arc::clone(&told.user));
        // An ApplicationMaster takes no container here.
        let app = scheduler.submit(Submission { queue, user, priority: 0, master: Size::ZERO });
        let app = app.expect("the queue was made with the scheduler");
        if app.0 as usize >= self.apps.len() {
            self.apps.resize_with(app.0 as usize + 1, || None);
        }
        self.apps[app.0 as usize] =
            Some(Application { attempt: told.attempt, groups: Vec::new(), containers: BTreeMap::new() });
        self.by_attempt.insert(told.attempt, app);
        app
    }

    /// Sends rows as they stand.
    fn send(&mut self, app: AppIdx, group: usize, places: &[Place]) {
        let Some(table) = self.apps[app.0 as usize].as_ref().and_then(|row| row.groups.get(group)) else { return };
        let row = |&place: &Place| {
            let count = table.rows.get(&place).copied().unwrap_or(0);
            AskRow { key: table.key, place, size: table.size, count, relax: true }
        };
        let rows: Vec<AskRow> = places.iter().map(row).collect();
        if let Some(scheduler) = self.scheduler.as_mut() {
            scheduler.ask(app, &rows);
        }
    }

    /// A task waits for its rows again, or does no more; YARN is told of the rows that changed, and of those `also`.
    pub(super) fn count(
        &mut self,
        task: &TaskRef,
        replicas: impl Iterator<Item = NodeLocation>,
        more: bool,
        also: Option<NodeLocation>,
    ) {
        let Some((app, at)) = self.find(task.attempt, &task.group) else { return };
        let Some(Some(row)) = self.apps.get_mut(app.0 as usize) else { return };
        let rows = &mut row.groups[at].rows;
        let mut changed: Vec<Place> = places(replicas).collect();
        changed.push(Place::Any);
        for place in &changed {
            let count = rows.entry(*place).or_default();
            *count = if more { *count + 1 } else { count.saturating_sub(1) };
        }
        self.tell(app, at, changed, also);
    }

    /// Tells YARN of rows as they stand: of those that it lowered itself where a container came, too.
    fn tell(&mut self, app: AppIdx, at: usize, mut changed: Vec<Place>, also: Option<NodeLocation>) {
        let Some(Some(row)) = self.apps.get(app.0 as usize) else { return };
        for place in also.into_iter().flat_map(|spot| [Place::Host(spot.node), Place::Rack(spot.rack)]) {
            if row.groups[at].rows.contains_key(&place) && !changed.contains(&place) {
                changed.push(place);
            }
        }
        self.send(app, at, &changed);
    }

    /// Rows of the group as they stand, where a container came for a task that had left them.
    pub(super) fn restore(&mut self, task: &TaskRef, spot: NodeLocation) {
        if let Some((app, at)) = self.find(task.attempt, &task.group) {
            self.tell(app, at, vec![Place::Any], Some(spot));
        }
    }

    fn find(&self, attempt: AttemptId, group: &str) -> Option<(AppIdx, usize)> {
        let app = *self.by_attempt.get(&attempt)?;
        let at = self.apps[app.0 as usize].as_ref()?.groups.iter().position(|table| &*table.group == group)?;
        Some((app, at))
    }

    /// A node reports: what YARN gives there of the asks that stand. `hinted`: hinted tasks whose asks name the node.
    pub(super) fn heartbeat<'t>(
        &mut self,
        snapshot: &Snapshot,
        (node, free): (NodeIdx, &Resource),
        hinted: impl Iterator<Item = &'t TaskRef>,
        stands: impl Fn(Asked<'_>) -> bool,
    ) -> Vec<Decision> {
        self.keep_up(snapshot, node, free);
        let mut by_group: BTreeMap<(AppIdx, usize), u32> = BTreeMap::new();
        for task in hinted {
            if let Some(at) = self.find(task.attempt, &task.group) {
                *by_group.entry(at).or_default() += 1;
            }
        }
        by_group.iter().for_each(|(&at, &count)| self.ask_hinted(at, snapshot, node, count));
        let Some(scheduler) = self.scheduler.as_mut() else { return Vec::new() };
        let apps = &self.apps;
        let decided = scheduler.heartbeat_where(node, &|app, key| asked(apps, app, key).is_some_and(&stands));
        by_group.keys().for_each(|&at| self.ask_hinted(at, snapshot, node, 0));
        decided
    }

    /// Puts up, or takes down with 0, the ask for hinted tasks of a group on the node.
    fn ask_hinted(&mut self, (app, at): (AppIdx, usize), snapshot: &Snapshot, node: NodeIdx, count: u32) {
        let Some(table) = self.apps[app.0 as usize].as_ref().and_then(|row| row.groups.get(at)) else { return };
        let key = SchedulerKey { allocation_request_id: table.key.allocation_request_id + 1, ..table.key };
        let row = |place| AskRow { key, place, size: table.size, count, relax: false };
        let rows = [Place::Host(node), Place::Rack(snapshot.rack(node)), Place::Any].map(row);
        if let Some(scheduler) = self.scheduler.as_mut() {
            scheduler.ask(app, &rows);
        }
    }

    /// For what a decision is.
    pub(super) fn asked(&self, decision: &Decision) -> Option<Asked<'_>> {
        asked(&self.apps, decision.app, decision.key)
    }

    /// Nobody wants the container.
    pub(super) fn give_back(&mut self, decision: &Decision) {
        if let Some(scheduler) = self.scheduler.as_mut() {
            scheduler.release(decision.app, decision.container);
        }
    }

    /// The task runs in the container.
    pub(super) fn runs(&mut self, task: &TaskRef, container: ContainerNo) {
        if let Some(row) = self.row_mut(task.attempt) {
            row.containers.insert((Arc::clone(&task.group), task.index), container);
        }
    }

    /// The task's container ended.
    pub(super) fn ends(&mut self, task: &TaskRef) {
        let container =
            self.row_mut(task.attempt).and_then(|row| row.containers.remove(&(Arc::clone(&task.group), task.index)));
        if let (Some(container), Some(&app)) = (container, self.by_attempt.get(&task.attempt))
            && let Some(scheduler) = self.scheduler.as_mut()
        {
            scheduler.release(app, container);
        }
    }

    /// The application is over.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        let Some(app) = self.by_attempt.remove(&attempt) else { return };
        self.apps[app.0 as usize] = None;
        if let Some(scheduler) = self.scheduler.as_mut() {
            scheduler.finish(app);
        }
    }

    fn row_mut(&mut self, attempt: AttemptId) -> Option<&mut Application> {
        let app = self.by_attempt.get(&attempt)?;
        self.apps.get_mut(app.0 as usize)?.as_mut()
    }
}

fn asked(apps: &[Option<Application>], app: AppIdx, key: SchedulerKey) -> Option<Asked<'_>> {
    let row = apps.get(app.0 as usize)?.as_ref()?;
    let table = row.groups.get(usize::try_from(key.allocation_request_id / 2).ok()?)?;
    Some(Asked { attempt: row.attempt, group: &table.group, hinted: key.allocation_request_id % 2 == 1 })
}

/// Hosts of a task's replicas, and their racks once each.
fn places(replicas: impl Iterator<Item = NodeLocation>) -> impl Iterator<Item = Place> {
    let mut all = Vec::with_capacity(6);
    for spot in replicas {
        all.push(Place::Host(spot.node));
        if !all.contains(&Place::Rack(spot.rack)) {
            all.push(Place::Rack(spot.rack));
        }
    }
    all.into_iter()
}

/// One queue with everything, fair among applications; sizes are taken as they are.
fn start(snapshot: &Snapshot) -> CapacityScheduler {
    let settings = SchedulerSettings {
        calculator: snapshot.rules.calculator.into(),
        minimum: Size::new(1, 0),
        maximum: Size::new(i64::from(u32::MAX), i64::from(u32::MAX)),
        ..SchedulerSettings::default()
    };
    let queue = QueueSettings { ordering: AppOrdering::Fair, ..QueueSettings::new("root.default") };
    CapacityScheduler::single_queue(settings, queue).expect("these settings are within their ranges")
}
