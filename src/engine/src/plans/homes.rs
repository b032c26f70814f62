//! Where data goes that a recurring job will read and no plan covers: the reader's home racks, remembered.
//!
//! The reader is the job whose earlier runs read that path or a folder above it, dates and numbers in both left out. Its
//! homes are [`PlaceData::homes`] of its last run, from the room of racks now, what runs there and what readers homed before
//! still have to do. They hold for all of the reader's paths, so that files of one directory, and blocks of one file, are
//! together; they end when nobody asks for an hour, after a day, or when none of them has a usable node without labels.
//!
//! Where data of a recurring job was sent nowhere, or an application's input is not where it was sent, each application may be
//! gathered in a few racks ([`DataHomes::gather`]).

use super::input_homes::InputTasks;
use super::replicas::{Replica, ReplicaPlan, ReplicaRequest, Why, named, of_block, replicas, usable};
use crate::generation::Generation;
use crate::history::{HistoryView, JobHistory};
use crate::placer::seed_of;
use crate::prediction::{key_paths, steady_path};
use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, RackIdx, RackPath, Timestamp};
use hintd_policy::Policy;
use hintd_policy::advise::{DataProblem, EarlierRun, HomeRack, HomesProblem, InputState, Lies, PlaceData};
use hintd_policy::joint::HomeBook;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Readers whose homes are remembered; beyond it the one goes that was asked for the longest ago.
pub const READERS_MAX: usize = 1_000;
/// Homes that nobody asks for end after so long.
pub const UNASKED_MAX: Micros = Micros::from_secs(3_600);
/// Homes end so long after they were chosen, for load and history change.
pub const AGE_MAX: Micros = Micros::from_secs(24 * 3_600);
/// Homes that data was sent to are said to its reader for so long after anybody last asked: what is read once a week is.
pub const GIVEN_MAX: Micros = Micros::from_secs(7 * 24 * 3_600);
/// An attempt whose containers have not all come asks again within so long.
const ASKS_WITHIN: Micros = Micros::from_secs(30);
/// The policy that chooses homes.
const CHOOSER: &str = "joint";

/// Homes of recurring data.
#[derive(Debug, Default)]
pub struct DataHomes {
    by_reader: BTreeMap<Arc<str>, Chosen>,
    readers: ReaderIndex,
    /// Where each reader's data was last said to go, and when; whether it was written is not known.
    given: BTreeMap<Arc<str>, (Vec<RackPath>, Timestamp)>,
    /// Where applications are gathered whose input lies everywhere: what one attempt's maps wrote is there for the next.
    gathered: BTreeMap<ApplicationId, Chosen>,
}

/// As a policy says that needs no reader.
fn by_machines(
    snapshot: &Snapshot,
    ask: &ReplicaRequest,
    places: &dyn PlaceData,
    now: Timestamp,
) -> Result<ReplicaPlan, Refusal> {
    let problem = |nth: u32| DataProblem {
        snapshot,
        path: Arc::clone(&ask.path),
        block: nth.into(),
        reader: ask.reader.clone(),
        plan: None,
        homes: &[],
        now,
        writer: None,
        replication: ask.replication,
        seed: ask.seed.unwrap_or_else(|| seed_of(&ask.path)),
    };
    let blocks: Vec<_> = (0..ask.blocks).map(|nth| of_block(places, &problem(nth))).collect::<Result<_, _>>()?;
    let told = blocks.iter().flatten().filter_map(|replica: &Replica| Some(&replica.place.as_ref()?.0));
    let racks: BTreeSet<RackIdx> = told.filter_map(|rack| snapshot.statics.by_rack.get(rack).copied()).collect();
    let reason = if racks.is_empty() { Why::RacksGone } else { Why::Classes };
    let racks = racks.into_iter().map(|rack| named(snapshot, rack)).collect();
    Ok(ReplicaPlan { plan: None, reader: ask.reader.clone(), job: None, racks, blocks, reason })
}

/// What was chosen for one reader, or one application.
#[derive(Debug, Clone)]
struct Chosen {
    run: EarlierRun,
    /// Empty: wherever HDFS puts it.
    racks: Vec<RackPath>,
    at: Timestamp,
    asked: Timestamp,
    /// Where the blocks of a gathered application's input lie, once it has said so.
    lies: Option<BlockPlaces>,
}

/// Where blocks lie; a task that reads one stands for it.
#[derive(Debug, Clone)]
struct BlockPlaces {
    blocks: u32,
    /// Those with a replica there, of racks that are known.
    by_rack: Vec<(RackPath, u32)>,
}

impl BlockPlaces {
    fn of(tasks: &InputTasks, snapshot: &Snapshot) -> Option<Self> {
        let known = |(rack, &blocks): (&RackPath, &u32)| {
            let (rack, _) = snapshot.statics.by_rack.get_key_value(rack)?;
            Some((rack.clone(), blocks))
        };
        let by_rack = || tasks.by_rack.iter().filter_map(known).collect();
        (tasks.outstanding > 0).then(|| Self { blocks: tasks.outstanding, by_rack: by_rack() })
    }

    fn counted(&self, snapshot: &Snapshot) -> CountedBlocks {
        let mut by_rack = vec![0; snapshot.statics.racks.len()];
        for (rack, blocks) in &self.by_rack {
            if let Some(rack) = snapshot.statics.by_rack.get(rack) {
                by_rack[rack.at()] = u64::from(*blocks);
            }
        }
        CountedBlocks { blocks: u64::from(self.blocks), by_rack }
    }
}

/// [`BlockPlaces`] by the racks of one snapshot.
struct CountedBlocks {
    blocks: u64,
    by_rack: Vec<u64>,
}

impl CountedBlocks {
    fn lies(&self) -> Lies<'_> {
        Lies { blocks: self.blocks, by_rack: &self.by_rack }
    }
}

impl Chosen {
    /// Whether an attempt may still run: it asks until its containers have come, and then they take their time.
    fn is_running(&self, now: Timestamp) -> bool {
        let last = self.run.maps.1.saturating_add(self.run.reduces.1);
        now.since(self.asked) < ASKS_WITHIN.saturating_add(last)
    }
}

impl DataHomes {
    /// Where replicas of new data should go: as the plan in force has it, else as `general` says, the policy of queues that
    /// have none of their own, where it needs no reader, else in the homes of the recurring job that reads it. `policy_of`:
    /// policies by name.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a reader that is named and neither planned nor known by an earlier run.
    pub fn advise<'p>(
        remembered: &Mutex<Self>,
        generation: &Generation,
        ask: &ReplicaRequest,
        (general, policy_of): (&dyn Policy, impl Fn(&str) -> Option<&'p Arc<dyn Policy>>),
        now: Timestamp,
    ) -> Result<ReplicaPlan, Refusal> {
        let planned = replicas(generation, ask, &policy_of, now);
        let unplanned = match &planned {
            Ok(found) => matches!(found.reason, Why::NoPlan | Why::PlanExpired | Why::NotPlanned),
            Err(refusal) => matches!(refusal, Refusal::Unknown { .. }),
        };
        if !unplanned {
            return planned;
        }
        if let Some(places) = general.as_place_data().filter(|places| places.needs_no_reader()) {
            return by_machines(&generation.snapshot, ask, places, now);
        }
        // Only what is remembered is worked on one after the other.
        let lock = || remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reader) = lock().reader(generation, ask) else { return planned };
        let plan = planned.ok().and_then(|found| found.plan);
        let default = |reason| {
            let blocks = vec![vec![Replica { place: None }; ask.replication.into()]; ask.blocks as usize];
            let reader = Some(Arc::clone(&reader));
            ReplicaPlan { plan: plan.clone(), reader, job: None, racks: Vec::new(), blocks, reason }
        };
        let Some(run) = generation.history.get(&reader).and_then(|job| earlier_run(&reader, job)) else {
            return Ok(default(Why::NoEarlierRun));
        };
        let Some(places) = policy_of(CHOOSER).and_then(|policy| policy.as_place_data()) else {
            return Ok(default(Why::PolicyPlacesNoData));
        };
        let snapshot = &*generation.snapshot;
        let homes = lock().homes(generation, &reader, run, places, now);
        let homes = match homes {
            None => return Ok(default(Why::RacksGone)),
            Some(homes) if homes.is_empty() => return Ok(default(Why::Everywhere)),
            Some(homes) => homes,
        };
        lock().gave(&reader, &homes, snapshot, now);
        let first = turn(&ask.path);
        let problem = |nth: u32| DataProblem {
            snapshot,
            path: Arc::clone(&ask.path),
            block: first.wrapping_add(nth.into()),
            reader: Some(Arc::clone(&reader)),
            plan: None,
            homes: &homes,
            now,
            writer: None,
            replication: ask.replication,
            seed: ask.seed.unwrap_or_else(|| seed_of(&ask.path)),
        };
        let blocks = (0..ask.blocks).map(|nth| of_block(places, &problem(nth))).collect::<Result<_, _>>()?;
        let racks = homes.iter().map(|&rack| named(snapshot, rack)).collect();
        Ok(ReplicaPlan { racks, blocks, ..default(Why::Homes) })
    }

    fn gave(&mut self, reader: &Arc<str>, homes: &[RackIdx], snapshot: &Snapshot, now: Timestamp) {
        let racks = homes.iter().map(|rack| snapshot.statics.racks[rack.at()].clone()).collect();
        self.given.insert(Arc::clone(reader), (racks, now));
        if self.given.len() > READERS_MAX {
            let oldest = self.given.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| Arc::clone(key));
            oldest.map(|key| self.given.remove(&key));
        }
    }

    /// Where the reader's data was last said to go, for an application of its; `None`: nowhere, too long ago, or that one is
    /// gathered by now, for its input was not there.
    #[must_use]
    pub fn given(&self, application: ApplicationId, reader: &str, now: Timestamp) -> Option<&[RackPath]> {
        if self.gathered.get(&application).is_some_and(|chosen| !chosen.racks.is_empty()) {
            return None;
        }
        let (racks, at) = self.given.get(reader)?;
        (now.since(*at) < GIVEN_MAX).then_some(racks)
    }

    /// Racks in which an attempt of a recurring job is best gathered, which has input wherever HDFS put it: those that were
    /// chosen when its application first said where that is; until then, those that were chosen without. `None`: its job's
    /// earlier runs say nothing, or it was best where YARN puts it when it first asked, or it is too large to be like the last run.
    pub fn gather(
        &mut self,
        generation: &Generation,
        (attempt, key, tasks): (AttemptId, &Arc<str>, &InputTasks),
        places: &dyn PlaceData,
        now: Timestamp,
    ) -> Option<Vec<RackPath>> {
        let application = attempt.application;
        let lies = BlockPlaces::of(tasks, &generation.snapshot);
        // Who was told at its registration that it is not gathered has not waited for more.
        let settled = |chosen: &&mut Chosen| lies.is_none() || chosen.lies.is_some() || chosen.racks.is_empty();
        if let Some(chosen) = self.gathered.get_mut(&application).filter(settled) {
            chosen.asked = chosen.asked.max(now);
            if !chosen.run.is_like(tasks.outstanding.into()) {
                chosen.racks.clear(); // its first ask was a part of it
            }
            return Some(chosen.racks.clone()).filter(|racks| !racks.is_empty());
        }
        self.gathered.remove(&application); // what was chosen before is no load
        let run = generation.history.get(key).and_then(|job| earlier_run(key, job))?;
        self.gathered.retain(|_, chosen| now.since(chosen.at) < AGE_MAX);
        let racks = self.room(generation, container_mb(generation, key), now);
        let (snapshot, seed) = (&*generation.snapshot, seed_of(&application.to_string()));
        let counted = lies.as_ref().map(|lies| lies.counted(snapshot));
        let input = InputState::Written {
            others: self.others(snapshot, &racks, now),
            lies: counted.as_ref().map(CountedBlocks::lies),
        };
        let homes = places.homes(&HomesProblem { snapshot, run: &run, racks: &racks, seed, input });
        let racks: Vec<RackPath> = homes.iter().map(|rack| snapshot.statics.racks[rack.at()].clone()).collect();
        let lies = lies.filter(|_| !racks.is_empty()); // else nobody looks at it
        self.gathered.insert(application, Chosen { run, racks: racks.clone(), at: now, asked: now, lies });
        if self.gathered.len() > READERS_MAX {
            let oldest =
                self.gathered.iter().min_by_key(|(_, chosen)| chosen.asked).map(|(application, _)| *application);
            oldest.map(|application| self.gathered.remove(&application));
        }
        Some(racks).filter(|racks| !racks.is_empty())
    }

    /// Jobs that asked whether they are gathered, run now as far as is known, and shuffle enough to want the uplinks.
    fn others(&self, snapshot: &Snapshot, racks: &[HomeRack], now: Timestamp) -> u32 {
        let book = HomeBook::new(snapshot, racks.iter().map(|rack| (rack.slots, rack.disk)));
        let wants = |other: &&Chosen| other.is_running(now) && book.wants_uplinks(&other.run);
        u32::try_from(self.gathered.values().filter(wants).count()).unwrap_or(u32::MAX)
    }

    /// Readers whose homes are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_reader.len()
    }

    /// Whether none are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_reader.is_empty()
    }

    /// Who reads it: whoever is named, where anything is known of it; else, of those that name most of the path, one that has
    /// homes, else the one with the heaviest shuffle, else the first by key.
    fn reader(&mut self, generation: &Generation, ask: &ReplicaRequest) -> Option<Arc<str>> {
        let history = &generation.history;
        if let Some(key) = &ask.reader {
            return history.get(key).map(|_| Arc::clone(key));
        }
        self.readers.look(history);
        let readers = self.readers.of(&ask.path);
        let weight = |key: &Arc<str>| {
            let shuffle = history.get(key).and_then(|job| job.last).map(|run| run.shuffle);
            (self.by_reader.contains_key(key), shuffle, std::cmp::Reverse(Arc::clone(key)))
        };
        readers.into_iter().max_by_key(weight)
    }

    /// The reader's homes with a usable node: those that are remembered, or new ones. Empty: everywhere; `None`: no rack has
    /// room for a container now, which is nothing to remember.
    fn homes(
        &mut self,
        generation: &Generation,
        reader: &Arc<str>,
        run: EarlierRun,
        places: &dyn PlaceData,
        now: Timestamp,
    ) -> Option<Vec<RackIdx>> {
        let snapshot = &generation.snapshot;
        self.by_reader.retain(|_, chosen| now.since(chosen.asked) < UNASKED_MAX && now.since(chosen.at) < AGE_MAX);
        if let Some(chosen) = self.by_reader.get_mut(reader) {
            chosen.asked = chosen.asked.max(now);
            let there = still_there(chosen, snapshot);
            if chosen.racks.is_empty() || !there.is_empty() {
                return Some(there);
            }
        }
        let racks = self.room(generation, container_mb(generation, reader), now);
        if racks.iter().all(|rack| rack.slots == 0) {
            return None;
        }
        let seed = seed_of(reader);
        let homes =
            places.homes(&HomesProblem { snapshot, run: &run, racks: &racks, seed, input: InputState::Unwritten });
        let named = homes.iter().map(|rack| snapshot.statics.racks[rack.at()].clone()).collect();
        self.by_reader.insert(Arc::clone(reader), Chosen { run, racks: named, at: now, asked: now, lies: None });
        if self.by_reader.len() > READERS_MAX {
            let oldest = self.by_reader.iter().min_by_key(|(_, chosen)| chosen.asked).map(|(key, _)| Arc::clone(key));
            oldest.map(|key| self.by_reader.remove(&key));
        }
        Some(homes)
    }

    /// By rack: containers of that size, and what is to be done there: by readers homed before, and by what runs until it is
    /// expected to end. How full disks are only HDFS knows, which takes no node without room.
    fn room(&self, generation: &Generation, container_mb: u64, now: Timestamp) -> Vec<HomeRack> {
        let snapshot = &*generation.snapshot;
        let containers = |mb: u64| mb / container_mb.max(1);
        let slots = |(rack, _): (usize, _)| {
            let total = |node: NodeIdx| snapshot.statics.total[node.at()].memory_mb();
            open(snapshot, RackIdx::new(rack)).map(|node| containers(total(node))).sum::<u64>()
        };
        let racks = snapshot.statics.members.iter().enumerate().map(slots);
        let racks = racks.map(|slots| (u32::try_from(slots).unwrap_or(u32::MAX), Bytes(u64::MAX)));
        let mut book = HomeBook::new(snapshot, racks);
        let gathered = self.gathered.values().filter(|chosen| !chosen.racks.is_empty()).map(|chosen| (chosen, true));
        let mut before: Vec<_> = self.by_reader.values().map(|chosen| (chosen, false)).chain(gathered).collect();
        before.sort_by_key(|(chosen, _)| chosen.at);
        for (chosen, written) in before {
            let there = still_there(chosen, snapshot);
            book.racks(chosen.at);
            let counted = chosen.lies.as_ref().map(|lies| lies.counted(snapshot));
            let lies = counted.as_ref().map(CountedBlocks::lies);
            let input = if written { InputState::Written { others: 0, lies } } else { InputState::Unwritten };
            book.add(&there, &chosen.run, input);
        }
        let mut racks = book.racks(now).to_vec();
        for (node, releases) in generation.releases.iter() {
            let work = releases.iter().map(|release| {
                release.at.since(now).as_secs_f64() * release.size.memory_mb() as f64 / container_mb.max(1) as f64
            });
            let Some(rack) = snapshot.statics.rack.get(node.at()) else { continue };
            racks[rack.at()].work_s += work.sum::<f64>();
        }
        racks
    }
}

/// Usable nodes without a label: readers ask for none, and nodes that have one are theirs only while nobody else wants them.
fn open(snapshot: &Snapshot, rack: RackIdx) -> impl Iterator<Item = NodeIdx> + '_ {
    usable(snapshot, rack).filter(|node| snapshot.statics.labels[node.at()].0 == 0)
}

/// Racks of it that have an open node, ascending.
fn still_there(chosen: &Chosen, snapshot: &Snapshot) -> Vec<RackIdx> {
    let racks = chosen.racks.iter().filter_map(|rack| snapshot.statics.by_rack.get(rack).copied());
    let mut racks: Vec<_> = racks.filter(|&rack| open(snapshot, rack).next().is_some()).collect();
    racks.sort_unstable();
    racks
}

/// The job's last run; `None`: none was told with its times.
fn earlier_run(key: &Arc<str>, job: &JobHistory) -> Option<EarlierRun> {
    let run = job.last?;
    let (input, shuffle, maps, reduces) = (run.input, run.shuffle, run.maps, run.reduces);
    Some(EarlierRun { key: Arc::clone(key), input, shuffle, maps, reduces })
}

/// Memory of the reader's largest container, MB; not known: the scheduler's smallest.
fn container_mb(generation: &Generation, reader: &Arc<str>) -> u64 {
    let groups = generation.history.get(reader).into_iter().flat_map(|job| job.groups.values());
    let largest = groups.map(|group| group.memory_mb).max().unwrap_or(0);
    if largest > 0 { largest } else { generation.snapshot.rules.minimum.memory_mb() }
}

/// Which home is first: files that jobs write are numbered, so that in turns each home gets as many; of others the path decides.
fn turn(path: &str) -> u64 {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Not a date, whose first number is the same for a year.
    let numbered = name.starts_with("part-") || name.chars().all(|letter| letter.is_ascii_digit() || letter == '_');
    let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let digits = &digits[..digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len())];
    digits.parse().ok().filter(|_| numbered).unwrap_or_else(|| seed_of(path))
}

/// Who reads which paths, numbers left out; of a history's shards only those are read again that changed.
#[derive(Debug, Default)]
struct ReaderIndex {
    shards: Vec<Shard>,
}

type Jobs = Arc<BTreeMap<Arc<str>, Arc<JobHistory>>>;

type Readers = BTreeMap<String, BTreeSet<Arc<str>>>;

#[derive(Debug)]
struct Shard {
    of: Jobs,
    /// By path that the job's last run read.
    readers: Readers,
    /// By path that an earlier run read.
    earlier: Readers,
}

impl Shard {
    fn new(of: &Jobs) -> Self {
        let mut shard = Self { of: Arc::clone(of), readers: Readers::new(), earlier: Readers::new() };
        let note = |readers: &mut Readers, path: &str, key: &Arc<str>| {
            let path = steady_path(path);
            if path.contains(char::is_alphabetic) {
                readers.entry(path).or_default().insert(Arc::clone(key));
            }
        };
        for (key, job) in of.iter() {
            let of_groups = job.groups.values().flat_map(|group| &group.input_paths);
            let told = job.input_paths.iter().chain(of_groups).map(|path| &**path);
            told.chain(key_paths(key)).for_each(|path| note(&mut shard.readers, path, key));
            job.read.iter().for_each(|path| note(&mut shard.earlier, path, key));
        }
        shard
    }
}

impl ReaderIndex {
    fn look(&mut self, history: &HistoryView) {
        for (at, of) in history.parts().enumerate() {
            match self.shards.get_mut(at) {
                Some(shard) if Arc::ptr_eq(&shard.of, of) => {}
                Some(shard) => *shard = Shard::new(of),
                None => self.shards.push(Shard::new(of)),
            }
        }
    }

    /// Those that name most of the path: it itself, or the nearest folder above it that anybody reads. Where no last run read
    /// any of them, those of whom an earlier run did.
    fn of(&self, path: &str) -> BTreeSet<Arc<str>> {
        let now = self.nearest(path, |shard| &shard.readers);
        if now.is_empty() { self.nearest(path, |shard| &shard.earlier) } else { now }
    }

    fn nearest(&self, path: &str, readers: impl Fn(&Shard) -> &Readers) -> BTreeSet<Arc<str>> {
        let steady = steady_path(path);
        let mut folder = steady.as_str();
        loop {
            let named = self.shards.iter().filter_map(|shard| readers(shard).get(folder));
            let found: BTreeSet<_> = named.flatten().cloned().collect();
            match folder.rfind('/') {
                Some(above) if found.is_empty() => folder = &folder[..above],
                _ => return found,
            }
        }
    }
}
