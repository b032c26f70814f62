//! The resource manager's loop: what happens next, and who handles it.

mod check;
mod earlier;
mod sample;
mod shuffle_holds;

pub(crate) use earlier::known_shuffle;

use super::fabric::{Arrived, Fabric, JobNo};
use super::hdfs::Replicas;
use super::heartbeats::HeartbeatRing;
use super::run::{Progress, SimError, SimRun, SimWatch};
use super::shares::Kind;
use super::tables::{Jobs, Names, Node, Phase, State, Task, Tasks};
use super::tally::Tally;
use super::work::{Piece, Work};
use crate::report::RunReport;
use crate::settings::{Scripted, ScriptedEvent};
use crate::trace::TraceError;
use crate::trace::job::TraceJob;
use check::Ledger;
use earlier::Homes;
use hintd_model::cluster::{Overlay, Snapshot};
use hintd_model::units::{HostName, LinkName, Micros, NodeIdx, Timestamp};
use hintd_policy::dispatch::{DispatchEvent, DispatchState, View};
use sample::Racks;
use shuffle_holds::ShuffleHolds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Turns of the loop between two calls of the watch.
const WATCH_EVERY: u64 = 1_024;
/// Turns between two looks at whether all adds up, which take long.
const CHECK_EVERY: u64 = 16_384;

/// Jobs, read one ahead.
pub(super) type Trace<'a> = &'a mut dyn Iterator<Item = Result<TraceJob, TraceError>>;

/// One run under way.
pub(super) struct Sim<'a> {
    pub(super) run: SimRun<'a>,
    pub(super) now: Micros,
    /// As the RM sees it: what is occupied, what is lost.
    pub(super) snapshot: Snapshot,
    pub(super) leases: Overlay,
    pub(super) state: DispatchState,
    pub(super) fabric: Fabric,
    pub(super) replicas: Replicas,
    /// By path, who read it first.
    pub(super) readers: BTreeMap<Arc<str>, Arc<str>>,
    /// Where input is written; `None`: nobody says.
    pub(super) homes: Option<Homes>,
    pub(super) names: Names,
    pub(super) jobs: Jobs,
    pub(super) tasks: Tasks,
    pub(super) nodes: Vec<Node>,
    pub(super) beats: HeartbeatRing,
    /// Who starts and who works.
    pub(super) work: Work,
    /// Jobs whose client or ApplicationMaster starts, by number in the trace, and when they were submitted.
    pub(super) starting: BTreeMap<u64, (TraceJob, Micros)>,
    /// Tasks that wait for a container.
    pub(super) waiting: u64,
    pub(super) racks: Racks,
    pub(super) gathering: ShuffleHolds,
    pub(super) tally: Tally,
    pub(super) ledger: Ledger,
    /// When something last moved: a submission, a launch, bytes, an end, the script.
    pub(super) moved: Micros,
    script: Vec<ScriptedEvent>,
    /// Of the script, the first that is yet to come.
    ahead: usize,
    upcoming: Option<TraceJob>,
    arrived: Vec<Arrived>,
    turns: u64,
}

/// What happens next. Of one moment in this order.
enum Next {
    /// Failures and returns.
    Script,
    /// Bytes that are there.
    Arrivals,
    /// A piece of work ends.
    End,
    /// A job is submitted.
    Submit,
    /// The second's sample of the network.
    Sample,
    /// Circuits are chosen anew.
    Circuits,
    /// A node reports.
    Beat(NodeIdx),
}

impl<'a> Sim<'a> {
    pub(super) fn new(run: SimRun<'a>, skip: bool) -> Result<Self, SimError> {
        let (settings, snapshot) = (run.settings, run.cluster.snapshot.clone());
        let mut script = settings.script.clone();
        script.sort_by_key(|event| event.at);
        let mut fabric = Fabric::new(&snapshot, settings)?;
        if run.dispatch.as_times_shuffles().is_some() {
            fabric.hold_shuffles();
        }
        let mut sim = Self {
            now: Micros::ZERO,
            leases: Overlay::default(),
            state: run.dispatch.start(),
            replicas: Replicas::new(&snapshot, settings.replicas, settings.seed),
            readers: BTreeMap::new(),
            homes: settings.has_homes().then(|| Homes::new(&snapshot, &run.cluster.containers)),
            names: Names::new(settings.users),
            jobs: Jobs::default(),
            tasks: Tasks::default(),
            nodes: nodes(&run),
            beats: HeartbeatRing::new(snapshot.nodes(), settings.heartbeat, settings.seed_of_phases(), skip),
            work: Work::new(settings.delays.cores),
            starting: BTreeMap::new(),
            waiting: 0,
            racks: Racks::new(snapshot.statics.racks.len()),
            gathering: ShuffleHolds::default(),
            tally: Tally::new(),
            ledger: Ledger::new(settings.invariants),
            moved: Micros::ZERO,
            script,
            ahead: 0,
            upcoming: None,
            arrived: Vec::new(),
            turns: 0,
            run,
            snapshot,
            fabric,
        };
        for node in 0..sim.nodes.len() {
            sim.note_room(NodeIdx::new(node));
        }
        if settings.plan.is_some() {
            sim.observe(&DispatchEvent::Plan(settings.plan.clone()));
        }
        Ok(sim)
    }

    /// Handles events until every job has ended, or the watch has seen enough.
    pub(super) fn run(&mut self, trace: Trace<'_>, watch: &mut dyn SimWatch) -> Result<(), SimError> {
        self.read_ahead(trace)?;
        while let Some((at, next)) = self.next() {
            debug_assert!(at >= self.now, "time runs forward");
            self.now = at;
            self.snapshot.taken_at = Timestamp(at.0);
            self.tally.events += 1;
            match next {
                Next::Script => self.follow_script()?,
                Next::Arrivals => self.arrivals(),
                Next::End => self.piece_ends()?,
                Next::Submit => {
                    let job = self.upcoming.take().expect("a submission happens only with a job ahead");
                    self.submit(job)?;
                    self.read_ahead(trace)?;
                }
                Next::Sample => self.sample()?,
                Next::Circuits => self.fabric.choose_circuits(self.now),
                Next::Beat(node) => self.beat(node)?,
            }
            self.turns += 1;
            if self.turns.is_multiple_of(CHECK_EVERY) {
                self.check()?;
            }
            if self.turns.is_multiple_of(WATCH_EVERY) && watch.progress(self.progress()).is_break() {
                return Ok(());
            }
        }
        self.check()?;
        self.check_end()
    }

    /// What was added up; jobs that live did not finish.
    pub(super) fn report(self) -> RunReport {
        let (bytes, circuits) = (self.fabric.bytes(), self.fabric.circuits());
        let unfinished = u64::from(self.jobs.live()) + self.starting.len() as u64;
        let rack_bytes = if self.run.settings.by_job { self.fabric.rack_bytes().to_vec() } else { Vec::new() };
        let report = self.tally.report(self.run.policy, self.run.settings, &bytes, unfinished);
        RunReport { circuits: circuits.map(|circuits| circuits.report(bytes.cross_rack())), rack_bytes, ..report }
    }

    fn progress(&self) -> Progress {
        let Tally { submitted, done, events, .. } = self.tally;
        Progress { now: self.now, submitted, done, events }
    }

    fn read_ahead(&mut self, trace: Trace<'_>) -> Result<(), SimError> {
        self.upcoming = trace.next().transpose()?;
        match &self.upcoming {
            Some(job) if job.submit < self.now => Err(SimError::BackInTime {
                job: job.name.to_string(),
                submit_s: job.submit.as_secs_f64(),
                previous_s: self.now.as_secs_f64(),
            }),
            _ => Ok(()),
        }
    }

    /// `None` when every job has ended and none is to come: what the script still holds does not matter then.
    fn next(&mut self) -> Option<(Micros, Next)> {
        if self.upcoming.is_none() && self.jobs.live() == 0 && self.starting.is_empty() {
            return None;
        }
        let (now, waits) = (self.now, self.waiting > 0);
        let beat = self.beats.next(now, waits);
        let of_one_moment = [
            (self.script.get(self.ahead).map(|event| event.at.max(now)), Next::Script),
            (self.fabric.next_s().map(|at_s| moment(at_s).max(now)), Next::Arrivals),
            (self.work.next().map(|at| at.max(now)), Next::End),
            (self.upcoming.as_ref().map(|job| job.submit), Next::Submit),
            (self.racks.next_sample(), Next::Sample),
            (self.fabric.next_choice(now), Next::Circuits),
            (beat.map(|(at, _)| at), Next::Beat(beat.map_or(NodeIdx(0), |(_, node)| node))),
        ];
        let mut first: Option<(Micros, Next)> = None;
        for (at, next) in of_one_moment {
            if let Some(at) = at
                && first.as_ref().is_none_or(|&(earliest, _)| at < earliest)
            {
                first = Some((at, next));
            }
        }
        first
    }

    fn follow_script(&mut self) -> Result<(), SimError> {
        let event = self.script[self.ahead].what.clone();
        self.ahead += 1;
        self.moved = self.now;
        match event {
            Scripted::NodeDown(host) => self.node_down(self.node_of(&host)),
            Scripted::NodeUp(host) => self.node_up(self.node_of(&host)),
            Scripted::LinkDown(link) => self.set_link(&link, false)?,
            Scripted::LinkUp(link) => self.set_link(&link, true)?,
            Scripted::PortStuck(link) => self.stick_port(&link, true)?,
            Scripted::PortLoose(link) => self.stick_port(&link, false)?,
        }
        Ok(())
    }

    fn set_link(&mut self, link: &LinkName, up: bool) -> Result<(), SimError> {
        if self.fabric.link(self.now_s(), link, up) {
            return Ok(());
        }
        Err(SimError::Settings { field: "script", problem: format!("the network has no link \"{link}\"") })
    }

    fn stick_port(&mut self, link: &LinkName, stuck: bool) -> Result<(), SimError> {
        if self.fabric.stick_port(self.now_s(), link, stuck) {
            return Ok(());
        }
        let problem = format!("the network has no optical port \"{link}\" whose circuits are chosen");
        Err(SimError::Settings { field: "script", problem })
    }

    /// Bytes that are there: tasks that waited for them go to work.
    fn arrivals(&mut self) {
        let Some(at_s) = self.fabric.next_s() else { return };
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.clear();
        self.fabric.advance(at_s, &mut arrived);
        for &arrival in &arrived {
            let row = match arrival {
                Arrived::Read(reader) => reader.0,
                Arrived::Shuffle { job, reduce } => {
                    self.received(job, reduce);
                    self.reduce_row(job, reduce)
                }
            };
            self.go_to_work(row);
        }
        self.arrived = arrived;
    }

    /// A task has its bytes and goes to work.
    pub(super) fn go_to_work(&mut self, row: u32) {
        let task = self.tasks.at_mut(row);
        debug_assert_eq!(task.phase, Phase::Reads, "bytes arrive once a launch");
        (task.phase, task.ready) = (Phase::Works, self.now);
        let Task { job, kind, index, serial, node, .. } = *task;
        let shares = &self.jobs.at(job).shares;
        let time = shares.time(kind, index, self.run.model);
        let time = self.run.cluster.task_time(node, time, (shares.input(), shares.shuffle()));
        self.work.begin(self.now, Piece::Task(serial, row), time);
        self.ledger.arrived(kind, self.jobs.at(job).shares.read(kind, index));
        self.moved = self.now;
    }

    pub(super) fn observe(&mut self, event: &DispatchEvent) {
        let now = Timestamp(self.now.0);
        let view = View { snapshot: &self.snapshot, leases: &self.leases, now, explain: false };
        self.run.dispatch.observe(&mut self.state, event, &view);
    }

    /// Whether nothing of the script, of the trace, of the network or of tasks that work is to come.
    pub(super) fn nothing_to_come(&mut self) -> bool {
        self.ahead == self.script.len()
            && self.upcoming.is_none()
            && self.work.is_empty()
            && self.fabric.next_s().is_none()
            && self.gathering.is_empty()
            && self.fabric.next_choice(self.now).is_none()
    }

    /// The moment in the fabric's unit.
    pub(super) fn now_s(&self) -> f64 {
        self.now.as_secs_f64()
    }

    fn node_of(&self, host: &HostName) -> NodeIdx {
        self.snapshot.statics.find(host.as_str()).expect("the script's nodes were looked up before the run began")
    }

    /// The policy hears that a reduce has its bytes.
    fn received(&mut self, job: JobNo, reduce: u32) {
        let task = self.names.task(self.jobs.at(job.0).attempt, Kind::Reduce, reduce);
        self.observe(&DispatchEvent::Received(task));
    }

    fn reduce_row(&self, job: JobNo, reduce: u32) -> u32 {
        match self.jobs.at(job.0).reduces.state(reduce) {
            Some(State::Runs(row)) => row,
            _ => unreachable!("bytes arrive for reduces that run"),
        }
    }

    /// Keeps the ring of reports true of the node's room.
    pub(super) fn note_room(&mut self, node: NodeIdx) {
        let free = self.nodes[node.at()].free() > 0;
        self.beats.frees(node, free);
    }
}

/// Containers by node: no more than the run has for it, and than fit beside what is occupied.
fn nodes(run: &SimRun<'_>) -> Vec<Node> {
    let (snapshot, container) = (&run.cluster.snapshot, run.cluster.container);
    let fitting = |node: NodeIdx| {
        let room = snapshot.unoccupied(node);
        let kinds = room.0.iter().zip(container.0).filter(|&(_, size)| size > 0);
        kinds.map(|(room, size)| room / size).min().unwrap_or(0)
    };
    let node = |node: NodeIdx| Node {
        up: snapshot.state[node.at()].usable(),
        limit: u64::from(run.cluster.containers[node.at()]).min(fitting(node)) as u32,
        ..Node::default()
    };
    snapshot.statics.indexes().map(node).collect()
}

/// The first whole microsecond that does not lie before.
fn moment(at_s: f64) -> Micros {
    Micros((at_s * 1e6).ceil() as u64)
}
