//! The events of a run, in the order of their times.

use super::reading::Reading;
use super::spread::{UniformTraffic, spread};
use super::world::{Placed, World, mix};
use super::{AppReport, GangApp, GangError, GangReport, GangRun, Phase};
use crate::fluid::FluidNetwork;
use hintd_model::cluster::NodePair;
use hintd_model::network::maxmin::capacities;
use hintd_model::units::{Bytes, DirectedLinkIdx, NodeIdx};
use hintd_policy::problem::EdgeProblem;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

const BITS_PER_BYTE: f64 = 8.0;
/// Links are looked over so often, in events: each look costs as much as there are links.
const LOOK_EVERY: u64 = 64;
/// Rates come from a division; sums of them may pass a capacity by so much.
const ROUNDING: f64 = 1e-9;

/// Lets all applications run to their ends.
///
/// # Errors
/// [`GangError`]: applications that can't be run at all, or a rule of the simulator that does not hold.
pub fn simulate(run: &GangRun<'_>, apps: &[GangApp]) -> Result<GangReport, GangError> {
    let mut state = Run::new(run, apps)?;
    while state.step()? {}
    state.finish()
}

/// An application that runs.
struct RunningApplication {
    placed: Placed,
    /// The phase under way.
    phase: usize,
    /// Flows and timers that it waits for.
    open: u32,
    /// By group, in a phase of reading.
    reading: Vec<Option<Reading>>,
    /// Exchanged bytes whose flow or timer has ended.
    arrived: u64,
}

/// What a flow is for.
#[derive(Debug, Clone, Copy)]
struct Owner {
    app: usize,
    bytes: u64,
    /// The container's group and node, of a block.
    reader: Option<(usize, NodeIdx)>,
}

/// Bytes of an application that take a time of their own; in the order of moments, then as they were set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    /// Bits of the moment, which sort as moments do.
    at: u64,
    /// Tells those of one moment apart.
    number: u64,
    app: usize,
    bytes: u64,
}

struct Run<'a> {
    run: &'a GangRun<'a>,
    apps: &'a [GangApp],
    world: World<'a>,
    net: FluidNetwork,
    /// Links of the network; disks come after.
    links: usize,
    now_s: f64,
    /// Not come yet, the next one last.
    to_come: Vec<usize>,
    waiting: VecDeque<usize>,
    live: BTreeMap<usize, RunningApplication>,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    /// By flow.
    owners: Vec<Option<Owner>>,
    reports: Vec<AppReport>,
    events: u64,
}

impl<'a> Run<'a> {
    fn new(run: &'a GangRun<'a>, apps: &'a [GangApp]) -> Result<Self, GangError> {
        for (app, given) in apps.iter().enumerate() {
            let times = given.phases.iter().filter_map(|phase| match phase {
                Phase::Compute(seconds) => Some(*seconds),
                Phase::Read | Phase::Exchange(_) => None,
            });
            for seconds in times.chain([given.submit_s]) {
                if !(seconds.is_finite() && seconds >= 0.0) {
                    return Err(GangError::Time { app, seconds });
                }
            }
        }
        let world = World::new(run)?;
        let mut bits = capacities(world.network());
        let links = bits.len();
        bits.extend(world.disks().iter().map(|rate| rate.as_f64() * BITS_PER_BYTE));
        let mut to_come: Vec<usize> = (0..apps.len()).collect();
        to_come.sort_by(|&a, &b| apps[b].submit_s.total_cmp(&apps[a].submit_s).then(b.cmp(&a)));
        let reports = apps.iter().map(|app| AppReport { submit_s: app.submit_s, ..AppReport::default() }).collect();
        Ok(Self {
            run,
            apps,
            world,
            net: FluidNetwork::new(&bits)?,
            links,
            now_s: 0.0,
            to_come,
            waiting: VecDeque::new(),
            live: BTreeMap::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            owners: Vec::new(),
            reports,
            events: 0,
        })
    }

    /// Goes to the next moment at which something happens; whether there was one.
    fn step(&mut self) -> Result<bool, GangError> {
        let timer = self.timers.peek().map(|Reverse(timer)| f64::from_bits(timer.at));
        let coming = self.to_come.last().map(|&app| self.apps[app].submit_s);
        let flow = self.net.next_completion_s();
        let Some(next_s) = [timer, coming, flow].into_iter().flatten().reduce(f64::min) else { return Ok(false) };
        self.now_s = self.now_s.max(next_s);
        let mut ready = BTreeSet::new();
        // All owners first: what starts now may get the index of a flow that has ended now.
        let mut ended = Vec::new();
        self.net.advance(self.now_s, &mut ended);
        let owners: Vec<Owner> = ended.iter().filter_map(|ended| self.owners[ended.flow.at()].take()).collect();
        for owner in owners {
            self.flow_ended(owner, &mut ready)?;
        }
        while let Some(&Reverse(Timer { at, app, bytes, .. })) = self.timers.peek()
            && f64::from_bits(at) <= self.now_s
        {
            self.timers.pop();
            self.waits_less(app, bytes, &mut ready);
        }
        while let Some(&app) = self.to_come.last()
            && self.apps[app].submit_s <= self.now_s
        {
            self.to_come.pop();
            self.waiting.push_back(app);
            self.events += 1;
        }
        for app in ready {
            self.go_on(app)?;
        }
        self.admit()?;
        if self.run.settings.invariants && self.events.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        Ok(true)
    }

    fn flow_ended(&mut self, owner: Owner, ready: &mut BTreeSet<usize>) -> Result<(), GangError> {
        match owner.reader {
            Some((group, node)) => {
                self.read(owner.app, group, node)?;
                self.waits_less(owner.app, 0, ready);
            }
            None => self.waits_less(owner.app, owner.bytes, ready),
        }
        Ok(())
    }

    fn waits_less(&mut self, app: usize, bytes: u64, ready: &mut BTreeSet<usize>) {
        self.events += 1;
        let live = self.live.get_mut(&app).expect("an application ends after all that it waits for");
        live.open -= 1;
        live.arrived += bytes;
        if live.open == 0 {
            live.phase += 1;
            self.reports[app].phase_end_s.push(self.now_s);
            ready.insert(app);
        }
    }

    /// Those who wait, in their order, as far as there is room.
    fn admit(&mut self) -> Result<(), GangError> {
        while let Some(&app) = self.waiting.front() {
            match self.world.place(app, &self.apps[app])? {
                Some(placed) => {
                    self.waiting.pop_front();
                    let nodes: BTreeSet<NodeIdx> = placed.groups.iter().flatten().map(|share| share.node).collect();
                    let report = &mut self.reports[app];
                    (report.start_s, report.nodes) = (self.now_s, nodes.len() as u32);
                    let live = RunningApplication { placed, phase: 0, open: 0, reading: Vec::new(), arrived: 0 };
                    self.live.insert(app, live);
                    self.go_on(app)?;
                }
                None if self.live.is_empty() => {
                    self.waiting.pop_front();
                    let report = &mut self.reports[app];
                    (report.never_fits, report.start_s, report.end_s) = (true, report.submit_s, report.submit_s);
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Begins the phase that an application is in, or the next one that there is anything to wait for in.
    fn go_on(&mut self, app: usize) -> Result<(), GangError> {
        let apps = self.apps;
        loop {
            let live = &self.live[&app];
            let Some(phase) = apps[app].phases.get(live.phase) else { return self.end(app) };
            match phase {
                Phase::Read => self.begin_reading(app)?,
                Phase::Compute(seconds) => self.timer(app, *seconds, 0),
                Phase::Exchange(edges) => {
                    for edge in edges {
                        self.exchange(app, edge)?;
                    }
                }
            }
            let live = self.live.get_mut(&app).expect("it was there");
            if live.open > 0 {
                return Ok(());
            }
            live.phase += 1;
            self.reports[app].phase_end_s.push(self.now_s);
        }
    }

    fn timer(&mut self, app: usize, seconds: f64, bytes: u64) {
        self.timers_set += 1;
        let at = (self.now_s + seconds).to_bits();
        self.timers.push(Reverse(Timer { at, number: self.timers_set, app, bytes }));
        self.live.get_mut(&app).expect("only those who run wait").open += 1;
    }

    /// Receivers fetch bytes × links at a rate, whatever else is under way.
    fn delayed(&mut self, app: usize, edge: &EdgeProblem, bits_per_s: f64) -> Result<(), GangError> {
        let groups = self.live[&app].placed.groups.clone();
        let receivers = |node: NodeIdx| -> u32 {
            groups[edge.to.at()].iter().filter(|share| share.node == node).map(|share| share.count).sum()
        };
        let mut fetches: BTreeMap<NodeIdx, (f64, u64)> = BTreeMap::new();
        for like in spread(edge, &groups) {
            let bytes = u64::from(like.members) * like.bytes.0;
            let (from, to) = (like.from, like.to);
            let shortest = self.world.shortest(NodePair { from, to });
            let links = if from == to { Some(0) } else { shortest.first().map(|path| path.len()) };
            let links = links.ok_or(GangError::Cut { app, from, to })?;
            self.count(app, &like, bytes);
            let fetch = fetches.entry(to).or_default();
            fetch.0 += bytes as f64 * BITS_PER_BYTE * links as f64 / bits_per_s / f64::from(receivers(to).max(1));
            fetch.1 += bytes;
        }
        for (seconds, bytes) in fetches.into_values() {
            self.timer(app, seconds / super::FETCHES, bytes);
        }
        Ok(())
    }

    fn count(&mut self, app: usize, like: &UniformTraffic, bytes: u64) {
        let cross = self.world.rack(like.from) != self.world.rack(like.to);
        let report = &mut self.reports[app];
        if like.from == like.to {
            report.local = report.local.saturating_add(Bytes(bytes));
            return;
        }
        report.remote = report.remote.saturating_add(Bytes(bytes));
        if cross {
            report.cross_rack = report.cross_rack.saturating_add(Bytes(bytes));
        }
    }

    fn exchange(&mut self, app: usize, edge: &EdgeProblem) -> Result<(), GangError> {
        if let Some(bits_per_s) = self.run.settings.delay_bits_per_s {
            return self.delayed(app, edge, bits_per_s);
        }
        for like in spread(edge, &self.live[&app].placed.groups) {
            let bytes = u64::from(like.members) * like.bytes.0;
            self.count(app, &like, bytes);
            if like.from == like.to {
                let seconds = like.bytes.as_f64() * BITS_PER_BYTE / self.run.settings.local_bits_per_s;
                self.timer(app, seconds, bytes);
                continue;
            }
            for (path, members) in self.paths(app, &like)? {
                let owner = Owner { app, bytes: u64::from(members) * like.bytes.0, reader: None };
                self.flow(&path, like.bytes, members, owner)?;
            }
        }
        Ok(())
    }

    /// Paths for the members of a like flow: all on the route that was chosen, or each on one of the shortest.
    fn paths(&self, app: usize, like: &UniformTraffic) -> Result<Vec<(Vec<DirectedLinkIdx>, u32)>, GangError> {
        let (from, to) = (like.from, like.to);
        let pair = NodePair { from, to };
        if let Some(links) = self.world.chosen(pair) {
            return Ok(vec![(links.to_vec(), like.members)]);
        }
        let shortest = self.world.shortest(pair);
        if shortest.is_empty() {
            return Err(GangError::Cut { app, from, to });
        }
        let mut members = vec![0_u32; shortest.len()];
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        let seed = mix(self.run.settings.seed ^ mix(pair ^ mix(app as u64)));
        for member in 0..like.members {
            members[(mix(seed ^ u64::from(member)) % shortest.len() as u64) as usize] += 1;
        }
        let used = shortest.into_iter().zip(members).filter(|(_, members)| *members > 0);
        Ok(used.map(|(path, members)| (path.to_vec(), members)).collect())
    }

    fn flow(&mut self, path: &[DirectedLinkIdx], bytes: Bytes, members: u32, owner: Owner) -> Result<(), GangError> {
        let flow = self.net.start(path, bytes, members)?;
        if flow.at() >= self.owners.len() {
            self.owners.resize(flow.at() + 1, None);
        }
        self.owners[flow.at()] = Some(owner);
        self.events += 1;
        self.live.get_mut(&owner.app).expect("only those who run send").open += 1;
        Ok(())
    }

    fn begin_reading(&mut self, app: usize) -> Result<(), GangError> {
        let groups = &self.apps[app].groups;
        let of = |(group, asked): (usize, &super::GangGroup)| match Reading::of(&asked.input) {
            _ if asked.input.is_empty() => Ok(None),
            Ok(reading) => Ok(Some(reading)),
            Err(block) => Err(GangError::NoReplica { app, group, block }),
        };
        let reading = groups.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
        let live = self.live.get_mut(&app).expect("only those who run read");
        live.reading = reading;
        let shares = live.placed.groups.clone();
        // Turn by turn, as containers ask: those first on a node must not take all before the others.
        let most = shares.iter().flatten().map(|share| share.count).max().unwrap_or(0);
        for turn in 0..most {
            for (group, shares) in shares.iter().enumerate() {
                for share in shares.iter().filter(|share| turn < share.count) {
                    self.read(app, group, share.node)?;
                }
            }
        }
        Ok(())
    }

    /// A container of the group on a node begins its next block, if one is left.
    fn read(&mut self, app: usize, group: usize, node: NodeIdx) -> Result<(), GangError> {
        let draw = mix(self.run.settings.seed ^ mix(app as u64) ^ self.events);
        let world = &self.world;
        let live = self.live.get_mut(&app).expect("only those who run read");
        let Some(reading) = live.reading.get_mut(group).and_then(Option::as_mut) else { return Ok(()) };
        let Some(taken) = reading.take(node, &|node| world.rack(node), draw) else { return Ok(()) };
        if world.disks()[taken.from.at()].0 == 0 {
            return Err(GangError::NoDisk { app, node: taken.from });
        }
        let disk = DirectedLinkIdx::new(self.links + taken.from.at());
        let owner = Owner { app, bytes: taken.bytes.0, reader: Some((group, node)) };
        let report = &mut self.reports[app];
        if taken.from == node {
            report.local_read = report.local_read.saturating_add(taken.bytes);
            return self.flow(&[disk], taken.bytes, 1, owner);
        }
        report.remote_read = report.remote_read.saturating_add(taken.bytes);
        if world.rack(taken.from) != world.rack(node) {
            report.cross_rack_read = report.cross_rack_read.saturating_add(taken.bytes);
        }
        let like = UniformTraffic { from: taken.from, to: node, members: 1, bytes: taken.bytes };
        let (path, _) = self.paths(app, &like)?.swap_remove(0);
        let path: Vec<DirectedLinkIdx> = [disk].into_iter().chain(path).collect();
        self.flow(&path, taken.bytes, 1, owner)
    }

    fn end(&mut self, app: usize) -> Result<(), GangError> {
        let live = self.live.remove(&app).expect("it ends once");
        self.world.release(&live.placed);
        let report = &mut self.reports[app];
        report.end_s = self.now_s;
        self.events += 1;
        if self.run.settings.invariants {
            self.check_bytes(app, &live)?;
        }
        Ok(())
    }

    fn broken(&self, problem: String) -> GangError {
        GangError::Broken { now_s: self.now_s, problem }
    }

    fn check_bytes(&self, app: usize, live: &RunningApplication) -> Result<(), GangError> {
        let (asked, report) = (&self.apps[app], &self.reports[app]);
        let moved = report.remote.0 + report.local.0;
        // An edge between tasks that are not there, as within a group of one, moves nothing.
        let phases = asked.phases.iter().filter_map(|phase| match phase {
            Phase::Exchange(edges) => Some(edges),
            Phase::Read | Phase::Compute(_) => None,
        });
        let joins = |edge: &&EdgeProblem| edge.from != edge.to || asked.groups[edge.from.at()].count > 1;
        let exchanged: u64 = phases.flatten().filter(joins).map(|edge| edge.bytes.0).sum();
        if moved != exchanged || live.arrived != exchanged {
            let arrived = live.arrived;
            return Err(self.broken(format!("application {app}: {moved} of {exchanged} bytes sent, {arrived} arrived")));
        }
        let reads = asked.phases.iter().filter(|phase| matches!(phase, Phase::Read)).count() as u64;
        let input: u64 = reads * asked.groups.iter().map(|group| group.input.bytes.0).sum::<u64>();
        let read = report.local_read.0 + report.remote_read.0;
        if read != input {
            return Err(self.broken(format!("application {app}: {read} of {input} bytes read")));
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), GangError> {
        let disks = self.world.disks().len();
        let rates = self.net.rates();
        let over = (0..self.links + disks).map(DirectedLinkIdx::new).find_map(|link| {
            let (load, capacity) = (rates.load(link), rates.capacity(link));
            (load > capacity * (1.0 + ROUNDING)).then_some((link, load, capacity))
        });
        match over {
            None => Ok(()),
            Some((link, load, capacity)) => {
                Err(self.broken(format!("link {} carries {load} of {capacity} bits/s", link.0)))
            }
        }
    }

    fn finish(mut self) -> Result<GangReport, GangError> {
        if let Some((app, live)) = self.live.first_key_value() {
            let open = live.open;
            return Err(self.broken(format!("application {app} waits for {open} flows that never end")));
        }
        if let Some(problem) = self.world.leftover() {
            return Err(self.broken(problem));
        }
        self.look()?;
        let makespan_s = self.reports.iter().map(|report| report.end_s).fold(0.0, f64::max);
        Ok(GangReport { apps: self.reports, makespan_s, events: self.events })
    }
}
