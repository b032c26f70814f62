//! Authority `deployed`: stock MapReduce applications, YARN's CapacityScheduler, the ResourceManager's
//! processor, and the engine itself, in virtual time.
//!
//! # The model
//! - An ApplicationMaster asks as MapReduce's does (`master`): maps by the hosts and racks of their blocks at priority 20,
//!   reduces anywhere at priority 10 once a fifth of the maps are done (004 §3.3.1; `Delays::slow_start`), ramped up as room allows, jobs with
//!   waiting maps holding a tenth of the cluster at most, as under every policy of a comparison; a heartbeat a second.
//! - YARN allocates at nodes' heartbeats by `hintd_policy::capacity_scheduler`, which is held against Hadoop's own classes.
//! - The processor asks hintd for what grew under keys without places of their own (docs/yarn.md), adds rows of hosts and
//!   racks when the answer comes, and takes them back: hosts after `HOSTS_FOR`, racks `RACKS_FOR` later.
//! - In a queue that holds, the processor lets through to YARN as many reduces as hintd's order of heavy shuffles allows
//!   (`hintd_engine::holding`), by what finished maps wrote and how many reduces have all of their bytes, both of which hintd
//!   asks the ApplicationMaster's pages for, every `PROGRESS`. The ApplicationMaster does not know, and goes on as if all stood at YARN.
//! - A recurring job's earlier run reaches hintd when the job comes, as from a JobHistoryServer; where its input was written
//!   to home racks, its asks stay there for a while (`home_rows`). Maps of other jobs wait a while for hosts of their blocks,
//!   then for racks (`block_rows`).
//! - hintd is the engine: facts, events and requests reach it `ANSWER` late, the placer runs with the daemon's budget,
//!   leases, arrivals and the guard are its own.
//! - A policy called `capacity` is YARN by itself: nobody is asked.
//!
//! What takes no time: the RM's decisions, and, without delays of a real cluster ([`crate::delays`]), from a container's
//! allocation to its task's start. An ApplicationMaster takes no container. Both are so under every policy.

mod block_rows;
mod hintd;
mod home_rows;
mod master;
pub mod recording;
mod rows;
#[cfg(test)]
mod tests;
mod world;

use super::capacity::HintOutcome;
use super::settings::{Part, SimSettings};
use super::yarn::SimCluster;
use hintd_engine::holding::HoldSettings;
use hintd_engine::{Guard, PlacerSettings};
use hintd_model::units::Micros;
use hintd_policy::dispatch::{Advice, DispatchEvent, DispatchState, Offer, View};
use hintd_policy::{DynDispatch, Policy};
use serde::de::Error as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::World;

/// From the processor's question to hintd's answer: the median on a real small cluster was 7.6 ms (docs/yarn.md).
const ANSWER: Micros = Micros::from_millis(8);
/// How often hintd asks an ApplicationMaster how far its shuffle is, where its queue holds.
const PROGRESS: Micros = Micros::from_secs(5);
/// `hosts-for-ms` of the processor.
const HOSTS_FOR: Micros = Micros::from_secs(3);
/// `racks-for-ms` of the processor.
const RACKS_FOR: Micros = Micros::from_secs(3);
/// `blocks-for-ms` of the processor.
const BLOCKS_FOR: Micros = Micros::from_secs(1);
/// `block-racks-for-ms` of the processor.
const BLOCK_RACKS_FOR: Micros = Micros::from_secs(4);
/// `yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms`.
const MASTER_BEAT: Micros = Micros::from_secs(1);

/// YARN, ApplicationMasters, processor and hintd, as one dispatcher for the simulator.
pub struct Deployed<'p> {
    cluster: &'p SimCluster,
    hintd: Option<(&'p dyn Policy, &'p dyn Policy)>,
    placer: PlacerSettings,
    seed: u64,
    master_delay: Micros,
    slow_start: f64,
    rack_delay: i32,
    hold: Option<HoldSettings>,
    without: BTreeSet<Part>,
    outcome: Mutex<HintOutcome>,
}

impl std::fmt::Debug for Deployed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployed").field("hints", &self.hintd.is_some()).finish_non_exhaustive()
    }
}

impl<'p> Deployed<'p> {
    /// With hints of a policy that places, compared with `baseline` by the guard; without one, YARN by itself.
    #[must_use]
    pub fn new(
        cluster: &'p SimCluster,
        hintd: Option<(&'p dyn Policy, &'p dyn Policy)>,
        settings: &SimSettings,
    ) -> Self {
        let without = settings.without.clone();
        let guard = (!without.contains(&Part::Guard)).then(Guard::default);
        let placer = PlacerSettings { guard, ..PlacerSettings::default() };
        let &SimSettings { seed, master_delay, rack_delay, hold, delays, .. } = settings;
        let slow_start = delays.slow_start;
        Self {
            cluster,
            hintd,
            placer,
            seed,
            master_delay,
            slow_start,
            rack_delay,
            hold,
            without,
            outcome: Mutex::default(),
        }
    }

    /// Whether anybody hints.
    #[must_use]
    pub const fn hints(&self) -> bool {
        self.hintd.is_some()
    }

    /// What became of hints, over all runs with this value.
    #[must_use]
    pub fn outcome(&self) -> HintOutcome {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The world, shared by copies of its State: a run has one.
#[derive(Clone)]
struct SharedWorld(Arc<Mutex<World>>);

impl Serialize for SharedWorld {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("a simulated YARN is not written down: a run starts from its trace"))
    }
}

fn own(state: &mut DispatchState) -> MutexGuard<'_, World> {
    let world: &mut SharedWorld = state.of().expect("a State is used only with the dispatcher that started it");
    world.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DynDispatch for Deployed<'_> {
    fn start(&self) -> DispatchState {
        let world = World::new(self);
        DispatchState::new(SharedWorld(Arc::new(Mutex::new(world))))
    }

    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>) {
        let mut world = own(state);
        world.catch_up(self, view);
        world.observe(event, view);
    }

    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let mut world = own(state);
        world.catch_up(self, view);
        let launch = world.heartbeat(offer.node, view.snapshot, view.now);
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        *outcome = world.outcome;
        launch.map(Advice::Launch).into_iter().collect()
    }

    fn restore(&self, _json: &str) -> Result<DispatchState, serde_json::Error> {
        Err(serde_json::Error::custom("a simulated YARN is not read back: a run starts from its trace"))
    }
}
