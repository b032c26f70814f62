//! The engine's settings: a plain struct that configuration fills and a reload replaces.

use super::dispatching::settings::DispatchSettings;
use super::flows::settings::RouteSettings;
use super::holding::HoldSettings;
use super::plans::settings::PlanSettings;
use super::rebalance::RebalanceSettings;
use super::records::settings::RecordSettings;
use super::worth::settings::WorthSettings;
use hintd_model::cluster::Source;
use hintd_model::network::chains::ChainsDocument;
use hintd_model::network::latency::LatencySettings;
use hintd_model::units::Micros;
use std::sync::Arc;

/// Settings of the engine. Every default is an operator's safe start.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// Time-to-live of a lease that no container was allocated for; see [`EngineSettings::lasts`].
    pub lease_ttl: Micros,
    /// A node silent for longer is stale: it gets no hints.
    pub stale_after: Micros,
    /// A node silent for longer is lost: its tasks are placed anew.
    pub lost_after: Micros,
    /// An answer is kept for so long after its last lease ended.
    pub answers_keep: Micros,
    /// Answers kept; beyond it the oldest without live leases go first.
    pub answers_max: usize,
    /// Bytes of their rows in the journal; beyond it the oldest of the application that has most go first.
    pub answers_bytes_max: usize,
    /// Leases at one time; a commit beyond it is refused as overload.
    pub leases_max: usize,
    /// Attempts kept; beyond it the oldest without live leases go first.
    pub attempts_max: usize,
    /// An attempt of which nothing was heard for longer is over; `None`: others say when it is, as a ResourceManager does.
    pub attempt_silence: Option<Micros>,
    /// How far above the last known attempt of its application a new one's number may be, where no ResourceManager lists it.
    pub attempt_jump: u32,
    /// Attempts whose first request has no nonce need to show nothing, as clients of 0.1.0 do not.
    pub legacy_clients: bool,
    /// Requests remembered by attempt for re-placing; the oldest go first.
    pub requests_per_attempt: usize,
    /// Bytes that they take, all attempts together; one attempt's have at most as much as is free.
    pub requests_bytes_max: usize,
    /// Recurring-job keys kept; the longest unused go first.
    pub history_keys: usize,
    /// Machines of this class, attribute or label are told from all others in what is kept of finished runs, for a policy
    /// that learns how fast either are; empty: none are.
    pub machine_class: Arc<str>,
    /// Samples kept by key and group; the oldest go first.
    pub history_samples: usize,
    /// Decisions whose hints are watched at one time; beyond it the oldest are counted as they stand.
    pub adherence_max: usize,
    /// Containers that were heard of, of attempts with hints: one told of twice counts once. The oldest are forgotten.
    pub containers_seen: usize,
    /// A hint whose container was not seen for so long counts as not followed.
    pub adherence_wait: Micros,
    /// Ages beyond which a source counts as old.
    pub max_age: SourceAges,
    /// How measured latency is read; see [`Self::latency()`].
    pub latency: LatencySettings,
    /// Flows and routes.
    pub routes: RouteSettings,
    /// What is kept of decisions.
    pub records: RecordSettings,
    /// Waiting tasks.
    pub dispatch: DispatchSettings,
    /// When receivers of heavy shuffles are held, in queues that hold.
    pub hold: HoldSettings,
    /// Who gets no hints, so that others can be compared with them.
    pub worth: WorthSettings,
    /// Plans of recurring jobs.
    pub plans: PlanSettings,
    /// Moves of running containers.
    pub rebalance: RebalanceSettings,
    /// Middleboxes and chains that the operator declares; none: feeds may.
    pub chains: Arc<ChainsDocument>,
}

/// How many times its time-to-live a lease holds once YARN has allocated its container. The container is on its way:
/// images and archives that its node must fetch first take minutes, and the room is taken all the while. With the
/// default of 30 s that makes 5 minutes, half of the 10 after which YARN itself gives an allocation up that nobody
/// started (`yarn.resourcemanager.rm.container-allocation.expiry-interval-ms`).
const CONFIRMED_LASTS: u64 = 10;

impl EngineSettings {
    /// How measured latency is read: beyond its source's age it counts no more.
    #[must_use]
    pub const fn latency(&self) -> LatencySettings {
        LatencySettings { max_age: self.max_age.of(Source::Latency), ..self.latency }
    }

    /// How long a lease lasts: from its grant, or from when its container's allocation was told.
    #[must_use]
    pub const fn lasts(&self, confirmed: bool) -> Micros {
        if confirmed { Micros(self.lease_ttl.0.saturating_mul(CONFIRMED_LASTS)) } else { self.lease_ttl }
    }
}

/// A time by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceAges(pub [Micros; Source::ALL.len()]);

impl SourceAges {
    /// The time of `source`.
    #[must_use]
    pub const fn of(&self, source: Source) -> Micros {
        self.0[source as usize]
    }

    /// Sets the time of `source`.
    pub const fn set(&mut self, source: Source, age: Micros) {
        self.0[source as usize] = age;
    }
}

impl Default for SourceAges {
    /// Heartbeats 10 s, block reports an hour (HDFS sends full ones every six, changes at once), topology
    /// a day (it changes by events), counters and latency a minute, events ten minutes.
    fn default() -> Self {
        let mut ages = Self([Micros::from_secs(60); Source::ALL.len()]);
        ages.set(Source::Heartbeats, Micros::from_secs(10));
        ages.set(Source::Blocks, Micros::from_secs(3_600));
        ages.set(Source::Topology, Micros::from_secs(86_400));
        ages.set(Source::Events, Micros::from_secs(600));
        ages
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            lease_ttl: Micros::from_secs(30),
            stale_after: Micros::from_secs(10),
            lost_after: Micros::from_secs(60),
            answers_keep: Micros::from_secs(600),
            answers_max: 100_000,
            answers_bytes_max: 512 << 20,
            leases_max: 500_000,
            attempts_max: 20_000,
            attempt_silence: None,
            attempt_jump: 100,
            legacy_clients: true,
            requests_per_attempt: 64,
            requests_bytes_max: 256 << 20,
            history_keys: 10_000,
            machine_class: Arc::default(),
            history_samples: 64,
            adherence_max: 20_000,
            containers_seen: 1_000_000,
            adherence_wait: Micros::from_secs(300),
            max_age: SourceAges::default(),
            latency: LatencySettings::default(),
            routes: RouteSettings::default(),
            records: RecordSettings::default(),
            dispatch: DispatchSettings::default(),
            hold: HoldSettings::default(),
            worth: WorthSettings::default(),
            plans: PlanSettings::default(),
            rebalance: RebalanceSettings::default(),
            chains: Arc::default(),
        }
    }
}
