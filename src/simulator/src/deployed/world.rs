//! What happens when: heartbeats of ApplicationMasters, answers, rows that are taken back, and nodes' heartbeats.

use super::block_rows::BlockRows;
use super::hintd::{Hintd, Reduces, ReducesAsk};
use super::home_rows::HomeRows;
use super::master::{MAPS, Master, REDUCES};
use super::rows::{HintRows, Stage};
use super::{ANSWER, Deployed, HOSTS_FOR, MASTER_BEAT, PROGRESS, RACKS_FOR};
use crate::capacity::HintOutcome;
use crate::settings::Part;
use crate::streams::{MASTER_BEATS, stream};
use crate::yarn::SimCluster;
use hintd_engine::holding::{self, HoldSettings, Holding, Lane, LaneCapacity, Turn};
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, RackIdx, SchedulerKey, Timestamp};
use hintd_policy::advise::EarlierRun;
use hintd_policy::capacity_scheduler::{
    AppIdx, AppOrdering, AskRow, CapacityScheduler, ContainerNo, Place, QueueSettings, SchedulerSettings, Size,
    Submission, Verdict,
};
use hintd_policy::dispatch::{DispatchEvent, TaskRef, View, WaitingGroup};
use hintd_policy::pool::EARLY_REDUCES;
use hintd_policy::terms::rack_rates::RackRates;
use rand::RngExt as _;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

/// What is on the agenda.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// An ApplicationMaster's heartbeat.
    Beat(AttemptId),
    /// hintd's answer, or that there is none, for so many more reduces.
    Answer(AttemptId, Vec<(NodeIdx, u32)>),
    /// Rows of a key go back a stage; the version of hints that they are of.
    Widen(AttemptId, Stage, u64),
    /// A receiver's bytes are seen to be there.
    Received(AttemptId),
}

/// How receivers are held, and what each lane can carry.
#[derive(Debug)]
struct Hold {
    settings: HoldSettings,
    uplinks: LaneCapacity,
    racks: Vec<LaneCapacity>,
}

impl Hold {
    fn new(settings: HoldSettings, cluster: &SimCluster) -> Self {
        let snapshot = &cluster.snapshot;
        let containers = |nodes: &Vec<NodeIdx>| nodes.iter().map(|node| cluster.containers[node.at()]).sum();
        let racks = snapshot.statics.members.iter().zip(holding::access(snapshot));
        let racks = racks.map(|(nodes, rate)| LaneCapacity { rate, containers: containers(nodes) });
        let rate = RackRates::capacities(snapshot).uplinks();
        Self {
            settings,
            uplinks: LaneCapacity { rate, containers: cluster.containers.iter().sum() },
            racks: racks.collect(),
        }
    }

    fn capacity(&self, lane: Lane) -> LaneCapacity {
        match lane {
            Lane::Uplinks => self.uplinks,
            Lane::Rack(rack) => self.racks[rack.at()],
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    scheduler: CapacityScheduler,
    size: Size,
    slots: u32,
    running: u32,
    /// By node.
    racks: Arc<[RackIdx]>,
    masters: BTreeMap<AttemptId, Master>,
    hints: BTreeMap<AttemptId, HintRows>,
    homes: HomeRows,
    blocks: BlockRows,
    by_app: BTreeMap<AppIdx, AttemptId>,
    agenda: BinaryHeap<Reverse<(Timestamp, u64, Happening)>>,
    turns: u64,
    hintd: Option<Hintd>,
    hold: Option<Hold>,
    holding: Holding,
    /// Applications of which something is held back.
    held: BTreeSet<AttemptId>,
    /// What is left out.
    without: BTreeSet<Part>,
    seed: u64,
    master_delay: Micros,
    slow_start: f64,
    /// The heartbeat that was answered, and what it is yet to launch.
    answered: Option<(NodeIdx, Timestamp)>,
    launches: VecDeque<TaskRef>,
    /// The container of a reduce that failed: where the simulator has a map take its place, it is the map's.
    freed: Option<(AttemptId, NodeIdx, ContainerNo)>,
    pub(super) outcome: HintOutcome,
}

impl World {
    pub(super) fn new(of: &Deployed<'_>) -> Self {
        let (cluster, seed, master_delay) = (of.cluster, of.seed, of.master_delay);
        let snapshot = &cluster.snapshot;
        let size = sized(&cluster.container);
        let (minimum, maximum) = (size, Size::new(size.memory_mb, size.vcores));
        let settings = SchedulerSettings {
            minimum,
            maximum,
            rack_locality_additional_delay: of.rack_delay,
            ..SchedulerSettings::default()
        };
        // One user may have it all, and ApplicationMasters take nothing here.
        let queue = QueueSettings {
            ordering: AppOrdering::Fair,
            user_limit_factor: -1.0,
            maximum_am_share: 1.0,
            ..QueueSettings::new("root.default")
        };
        let made = CapacityScheduler::single_queue(settings, queue);
        let mut scheduler = made.expect("one queue with everything is sound");
        let mut slots = 0;
        for node in snapshot.statics.indexes() {
            let count = cluster.containers[node.at()];
            slots += count;
            let total = Size::new(size.memory_mb * i64::from(count), size.vcores * i64::from(count));
            scheduler.add_node(node, snapshot.rack(node), (snapshot.host(node).as_str(), 8041), total);
        }
        Self {
            scheduler,
            size,
            slots,
            running: 0,
            racks: snapshot.statics.rack.as_slice().into(),
            masters: BTreeMap::new(),
            hints: BTreeMap::new(),
            homes: HomeRows::default(),
            blocks: BlockRows::default(),
            by_app: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            turns: 0,
            hintd: of.hints().then(|| Hintd::new(cluster)),
            hold: of.hold.map(|settings| Hold::new(settings, cluster)),
            holding: Holding::default(),
            held: BTreeSet::new(),
            without: of.without.clone(),
            seed,
            master_delay,
            slow_start: of.slow_start,
            answered: None,
            launches: VecDeque::new(),
            freed: None,
            outcome: HintOutcome::default(),
        }
    }

    fn at(&mut self, when: Timestamp, what: Happening) {
        self.turns += 1;
        self.agenda.push(Reverse((when, self.turns, what)));
    }

    /// Handles what is due.
    pub(super) fn catch_up(&mut self, deployed: &Deployed<'_>, view: &View<'_>) {
        if let Some(hintd) = &mut self.hintd {
            hintd.counters(view.snapshot, view.now);
        }
        while self.agenda.peek().is_some_and(|Reverse((when, ..))| *when <= view.now) {
            let Some(Reverse((when, _, what))) = self.agenda.pop() else { return };
            match what {
                Happening::Beat(attempt) => self.beat(deployed, attempt, view.snapshot, when),
                Happening::Answer(attempt, hosts) => self.answer(attempt, &hosts, when),
                Happening::Widen(attempt, stage, version) => self.widen(attempt, stage, version, when),
                Happening::Received(attempt) => self.seen_received(attempt, when),
            }
        }
    }

    pub(super) fn observe(&mut self, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(group) => self.waits(group),
            DispatchEvent::Finished { task, node, failed, output, .. } => {
                self.finished(task, *node, (*failed, *output), view);
            }
            DispatchEvent::Lost(task) => {
                if let Some(master) = self.masters.get_mut(&task.attempt) {
                    master.completed = master.completed.saturating_sub(1);
                    master.map_waits(task.index);
                }
                self.wake(task.attempt, view.now);
            }
            DispatchEvent::Done(attempt) => self.done(*attempt, view.now),
            DispatchEvent::Launched { task, .. } => self.launched(task, view.snapshot, view.now),
            DispatchEvent::Recurs { attempt, run, homes, gathered } => {
                self.recurs(*attempt, run, (homes, *gathered), view);
            }
            DispatchEvent::Received(task) => self.received(task.attempt, view.now),
            DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn recurs(&mut self, attempt: AttemptId, run: &EarlierRun, (homes, gathered): (&[RackIdx], bool), view: &View<'_>) {
        let Some(hintd) = &mut self.hintd else { return };
        if !self.without.contains(&Part::Forecast) {
            hintd.recurs(attempt, run, view.now);
        }
        if !self.without.contains(&Part::Stay) {
            let shuffle = if self.without.contains(&Part::HomePatience) { Bytes::ZERO } else { run.shuffle };
            self.homes.has_homes(attempt, (homes, gathered), shuffle, view.snapshot);
        }
    }

    fn waits(&mut self, group: &WaitingGroup) {
        let attempt = group.attempt;
        if !self.masters.contains_key(&attempt) {
            let (user, master) = (Arc::clone(&group.user), Size::ZERO);
            let submission = Submission { queue: "root.default".to_owned(), user, priority: 0, master };
            let app = self.scheduler.submit(submission).expect("the one queue takes everybody");
            let first = group.since.plus(self.master_delay).plus(self.phase(attempt));
            self.by_app.insert(app, attempt);
            let at = (first, self.slow_start);
            self.masters.insert(attempt, Master::new(app, Arc::clone(&group.user), Arc::clone(&self.racks), at));
        }
        let Some(master) = self.masters.get_mut(&attempt) else { return };
        if &*group.role == "reduce" {
            master.reduces = Arc::clone(&group.group);
            master.has_reduces(group.count);
        } else {
            master.maps = Arc::clone(&group.group);
            master.has_maps(&group.inputs, group.count);
        }
        self.wake(attempt, group.since);
    }

    /// When within a second its heartbeats come: by seed and application alone.
    fn phase(&self, attempt: AttemptId) -> Micros {
        let number = u64::from(attempt.application.sequence);
        Micros(stream([self.seed, number, MASTER_BEATS, 0]).random_range(0..MASTER_BEAT.0))
    }

    /// Something changed for an ApplicationMaster: its next heartbeat is of use.
    fn wake(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(master) = self.masters.get_mut(&attempt).filter(|master| !master.beats) else { return };
        master.beats = true;
        let first = master.first_beat;
        let passed = if now < first { 0 } else { now.since(first).0 / MASTER_BEAT.0 + 1 };
        self.at(first.plus(Micros(passed * MASTER_BEAT.0)), Happening::Beat(attempt));
    }

    fn beat(&mut self, deployed: &Deployed<'_>, attempt: AttemptId, snapshot: &Snapshot, now: Timestamp) {
        let free = self.slots - self.running;
        let Some(master) = self.masters.get_mut(&attempt) else { return };
        master.beats = false;
        let mut rows = master.map_rows();
        for place in master.asked.keys() {
            rows.entry(*place).or_insert(0);
        }
        let by_blocks = self.hintd.is_some() && !self.without.contains(&Part::Blocks) && !self.homes.has(attempt);
        let strict = if by_blocks {
            self.blocks.strict(attempt, &mut rows, &self.racks, now)
        } else {
            self.homes.narrow(attempt, &mut rows, snapshot, now)
        };
        let changed: Vec<(Place, u32)> = rows.into_iter().collect();
        master.asked = changed.iter().filter(|(_, count)| *count > 0).copied().collect();
        let (app, user) = (master.app, Arc::clone(&master.user));
        let more = match master.more_reduces(free) {
            more if more > 0 && master.maps_wait() => more.min(self.early_reduces_left()),
            more => more,
        };
        let Some(master) = self.masters.get_mut(&attempt) else { return };
        master.asked_reduces += more;
        let whole = if self.hold.is_some() { master.asked_in_all() } else { 0 };
        ask(&mut self.scheduler, app, (MAPS, self.size), changed, !strict);
        if strict {
            self.wake(attempt, now);
        }
        let more = self.pass(attempt, now);
        if more == 0 {
            return;
        }
        match &mut self.hintd {
            Some(hintd) => {
                let hosts = if self.without.contains(&Part::Receivers) {
                    Vec::new()
                } else {
                    let reduces = Reduces { count: more, whole };
                    hintd.ask(deployed, ReducesAsk { attempt, user: &user, reduces }, snapshot, now)
                };
                let hosts = self.homes.fill(attempt, more, hosts);
                self.at(now.plus(ANSWER), Happening::Answer(attempt, hosts));
            }
            None => self.ask_reduces(attempt),
        }
    }

    /// How many more of its reduces the processor lets through to YARN now.
    fn pass(&mut self, attempt: AttemptId, now: Timestamp) -> u32 {
        let Some(master) = self.masters.get_mut(&attempt) else { return 0 };
        let turn = match (&self.hold, master.shuffle()) {
            (Some(hold), Some(shuffle)) if master.asked_reduces > 0 => {
                let left = self.hints.get(&attempt).is_some_and(HintRows::left);
                let homes =
                    if left || self.without.contains(&Part::HomeLanes) { &[] } else { self.homes.homes(attempt) };
                let lane = Lane::of(homes);
                self.holding.wishes(attempt, shuffle.over_links_of(homes.len()), lane, now);
                self.holding.turn(attempt, &hold.settings, hold.capacity(lane), now)
            }
            _ => Turn::Free,
        };
        let may_ask = turn.may_ask(master.asked_reduces - master.passed, master.reduces_held());
        let more = if self.homes.holds_reduces(attempt) { 0 } else { may_ask };
        master.passed += more;
        if master.passed < master.asked_reduces {
            self.held.insert(attempt);
        } else {
            self.held.remove(&attempt);
        }
        more
    }

    /// hintd sees that a receiver has its bytes when it asks the ApplicationMaster next.
    fn received(&mut self, attempt: AttemptId, now: Timestamp) {
        if self.hold.is_none() {
            return;
        }
        let phase = self.phase(attempt).0;
        let asked = now.0.saturating_sub(phase) / PROGRESS.0;
        self.at(Timestamp(phase + (asked + 1) * PROGRESS.0), Happening::Received(attempt));
    }

    fn seen_received(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(master) = self.masters.get_mut(&attempt) else { return };
        master.received += 1;
        self.holding.received(attempt);
        self.turn(now);
    }

    /// A shuffle has fewer bytes left, or none: others may have their turn.
    fn turn(&mut self, now: Timestamp) {
        let held: Vec<AttemptId> = self.held.iter().copied().collect();
        held.into_iter().for_each(|attempt| self.wake(attempt, now));
    }

    /// How many more reduces jobs with waiting maps may hold together. MapReduce's own way out is to kill reduces where
    /// maps find no room; here nobody comes so far but by lost maps.
    fn early_reduces_left(&self) -> u32 {
        let most = (f64::from(self.slots) * EARLY_REDUCES) as u32;
        let held = self.masters.values().filter(|master| master.maps_wait()).map(Master::reduces_held).sum();
        most.saturating_sub(held)
    }

    fn answer(&mut self, attempt: AttemptId, hosts: &[(NodeIdx, u32)], now: Timestamp) {
        if !hosts.is_empty() && self.masters.contains_key(&attempt) {
            let rows = self.hints.entry(attempt).or_insert_with(HintRows::new);
            rows.add(hosts);
            (rows.last, rows.homes) = (now, self.homes.nodes(attempt, &self.racks));
            let version = rows.version;
            self.at(now.plus(HOSTS_FOR), Happening::Widen(attempt, Stage::Racks, version));
            self.at(now.plus(HOSTS_FOR).plus(RACKS_FOR), Happening::Widen(attempt, Stage::Anywhere, version));
        }
        self.ask_reduces(attempt);
    }

    fn widen(&mut self, attempt: AttemptId, stage: Stage, version: u64, now: Timestamp) {
        let Some(rows) = self.hints.get_mut(&attempt).filter(|rows| rows.version == version) else { return };
        let until = rows.last.plus(self.homes.reduces_for(attempt));
        let outstanding = self.masters.get(&attempt).is_some_and(|master| master.passed > 0) && rows.hinted() > 0;
        if stage == Stage::Anywhere && outstanding && until > now && self.homes.keeps(attempt) {
            self.at(until, Happening::Widen(attempt, stage, version));
            return;
        }
        rows.stage = stage;
        if stage == Stage::Anywhere {
            self.outcome.expired += u64::from(rows.hinted());
        }
        self.ask_reduces(attempt);
    }

    /// What is outstanding of reduces, with the rows that hints add.
    fn ask_reduces(&mut self, attempt: AttemptId) {
        let Some(master) = self.masters.get(&attempt) else { return };
        let racks = &self.racks;
        let rows = match self.hints.get_mut(&attempt) {
            Some(rows) => rows.rows(master.passed, |node| racks[node.at()]),
            None => vec![(Place::Any, master.passed)],
        };
        let all = self.hints.get(&attempt).is_some_and(|rows| rows.names(master.passed));
        let relax = !(all && self.homes.keeps(attempt));
        ask(&mut self.scheduler, master.app, (REDUCES, self.size), rows, relax);
    }

    /// A node reports; the next task to launch there.
    pub(super) fn heartbeat(&mut self, node: NodeIdx, snapshot: &Snapshot, now: Timestamp) -> Option<TaskRef> {
        if self.answered != Some((node, now)) {
            self.answered = Some((node, now));
            if let Some(hintd) = &mut self.hintd {
                hintd.heartbeat(node, snapshot, now);
            }
            self.launches.clear();
            self.give_freed_back();
            for decision in self.scheduler.heartbeat(node) {
                if matches!(decision.verdict, Verdict::Allocated | Verdict::FromReservation) {
                    self.allocated(decision.app, (decision.container, decision.key), node, now);
                }
            }
        }
        self.launches.pop_front()
    }

    fn give_freed_back(&mut self) {
        if let Some((attempt, _, container)) = self.freed.take()
            && let Some(master) = self.masters.get(&attempt)
        {
            self.scheduler.release(master.app, container);
            self.running -= 1;
        }
    }

    fn allocated(&mut self, app: AppIdx, (container, key): (u64, SchedulerKey), node: NodeIdx, now: Timestamp) {
        let Some(&attempt) = self.by_app.get(&app) else { return };
        let Some(master) = self.masters.get_mut(&attempt) else { return };
        let map = key == MAPS;
        let task = if map { master.assign_map(node) } else { master.assign_reduce() };
        let Some(index) = task else {
            // More than it has tasks for: given back, as MapReduce does.
            self.scheduler.release(app, container);
            return;
        };
        master.holds((map, index), (container, node));
        self.running += 1;
        let group = Arc::clone(if map { &master.maps } else { &master.reduces });
        if !map {
            let hinted = self.hints.get_mut(&attempt).filter(|rows| rows.hinted() > 0).map(|rows| {
                rows.last = now;
                rows.came(node)
            });
            match hinted {
                Some(true) => self.outcome.followed += 1,
                Some(false) => self.outcome.elsewhere += 1,
                None => self.outcome.unhinted += 1,
            }
        }
        self.launches.push_back(TaskRef { attempt, group, index });
    }

    /// hintd hears where a container came.
    fn tell(&mut self, attempt: AttemptId, map: bool, at: (u64, NodeIdx), snapshot: &Snapshot, now: Timestamp) {
        if let Some(hintd) = &mut self.hintd {
            hintd.came((attempt, at.0), map, at.1, snapshot, now);
        }
        if map {
            self.homes.map_at(attempt, (at.1, self.racks[at.1.at()]));
        }
    }

    fn finished(&mut self, task: &TaskRef, node: NodeIdx, (failed, output): (bool, Bytes), view: &View<'_>) {
        self.give_freed_back();
        let Some(master) = self.masters.get_mut(&task.attempt) else { return };
        let map = task.group == master.maps;
        let ended = master.gives_back((map, task.index));
        if let Some((container, _)) = ended {
            if failed && !map {
                self.freed = Some((task.attempt, node, container));
            } else {
                self.scheduler.release(master.app, container);
                self.running -= 1;
            }
        }
        match (failed, map) {
            (true, true) => master.map_waits(task.index),
            (true, false) => master.reduce_waits(task.index),
            (false, true) => {
                master.completed += 1;
                master.map_output = Bytes(master.map_output.0 + output.0);
            }
            (false, false) => {}
        }
        if let (Some(hintd), Some((container, _))) = (&mut self.hintd, ended) {
            hintd.ended((task.attempt, container), (map, failed), node, view.snapshot, view.now);
        }
        self.wake(task.attempt, view.now);
    }

    /// A launch was acted on.
    pub(super) fn launched(&mut self, task: &TaskRef, snapshot: &Snapshot, now: Timestamp) {
        let Some(master) = self.masters.get_mut(&task.attempt) else { return };
        let map = task.group == master.maps;
        if map
            && master.container((true, task.index)).is_none()
            && let Some((_, node, container)) = self.freed.take_if(|(attempt, ..)| *attempt == task.attempt)
        {
            master.takes_map(task.index);
            master.holds((true, task.index), (container, node));
        }
        let known = master.container((map, task.index));
        if let Some(at) = known {
            self.tell(task.attempt, map, at, snapshot, now);
        }
        self.wake(task.attempt, now);
    }

    fn done(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(master) = self.masters.remove(&attempt) else { return };
        self.running -= master.running();
        self.scheduler.finish(master.app);
        self.by_app.remove(&master.app);
        self.hints.remove(&attempt);
        self.homes.forget(attempt);
        self.blocks.forget(attempt);
        self.held.remove(&attempt);
        self.holding.end(attempt);
        self.turn(now);
        if let Some(hintd) = &mut self.hintd {
            hintd.done(attempt, now);
        }
    }
}

/// Unless it may `relax`, what is asked for comes only where rows name a host or a rack.
fn ask(
    scheduler: &mut CapacityScheduler,
    app: AppIdx,
    (key, size): (SchedulerKey, Size),
    rows: Vec<(Place, u32)>,
    relax: bool,
) {
    let row = |(place, count)| AskRow { key, place, size, count, relax: relax || place != Place::Any };
    let rows: Vec<AskRow> = rows.into_iter().map(row).collect();
    scheduler.ask(app, &rows);
}

fn sized(resource: &Resource) -> Size {
    let [memory, cores] = [resource.0[0], resource.0[1]].map(|kind| i64::try_from(kind).unwrap_or(i64::MAX));
    Size::new(memory.max(1), cores.max(1))
}
