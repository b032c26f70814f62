//! The policy against the plain transcription, on random clusters, events and parameters.

use super::plain::Plain;
use super::{HoldMaps, Nas, NasParams, NasState, SkipBy};
use crate::dispatch::{Advice, DispatchEvent, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::sample::{Sample, cluster};
use crate::{Definition, Dispatch};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

const UNIT: Resource = Resource::new(1024, 1);
const MIB: u64 = 1 << 20;

/// A resource manager in which anything may happen, in any order.
struct Chaos {
    random: ChaCha8Rng,
    sample: Sample,
    racks: u32,
    nas: Nas,
    state: NasState,
    plain: Plain,
    now: Timestamp,
    /// Containers held by node.
    held: Vec<u64>,
    running: Vec<(TaskRef, NodeIdx)>,
    /// Maps that ended, for losing them.
    ended: Vec<TaskRef>,
    jobs: Vec<AttemptId>,
    submitted: u32,
    launches: usize,
    units: u64,
}

impl Chaos {
    fn new(seed: u64, params: NasParams) -> Self {
        Self::apart(seed, params.clone(), params)
    }

    /// The transcription with other parameters.
    fn apart(seed: u64, params: NasParams, plain: NasParams) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (racks, hosts, units) = (random.random_range(1..4), random.random_range(1..4), random.random_range(1..5));
        let spec = TreeSpec { racks, hosts_per_rack: hosts, ..TreeSpec::default() };
        let sample = cluster(&tree(&spec).unwrap(), UNIT.times(units), Bytes(1));
        let nodes = sample.snapshot.nodes();
        let nas = Nas::new(params);
        Self {
            random,
            racks: sample.snapshot.statics.racks.len() as u32,
            sample,
            state: nas.start(),
            nas,
            plain: Plain::new(plain),
            now: Timestamp(1),
            held: vec![0; nodes],
            running: vec![],
            ended: vec![],
            jobs: vec![],
            submitted: 0,
            launches: 0,
            units,
        }
    }

    fn observe(&mut self, event: &DispatchEvent) {
        let view = View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: false };
        self.nas.observe(&mut self.state, event, &view);
        self.plain.observe(event);
    }

    fn submit(&mut self) {
        self.submitted += 1;
        let application = ApplicationId { cluster_timestamp: 1, sequence: self.submitted };
        let attempt = AttemptId { application, attempt: 1 };
        self.jobs.push(attempt);
        let user: Arc<str> = format!("u{}", self.random.random_range(0..4)).into();
        let nodes = self.held.len();
        let bytes = [0, 1, MIB / 2, MIB, 5 * MIB, 100 * MIB][self.random.random_range(0..6)];
        let maps = self.random.random_range(1..9);
        let even = self.random.random_bool(0.5);
        let known = self.random.random_range(0..=maps);
        let inputs = (0..if self.random.random_bool(0.9) { maps } else { known }).map(|_| {
            let bytes = Bytes(if even { bytes } else { self.random.random_range(0..=bytes) });
            let mut at: Vec<_> = (0..self.random.random_range(1..4))
                .map(|_| NodeIdx(self.random.random_range(0..nodes as u32)))
                .collect();
            at.sort_unstable();
            at.dedup();
            TaskInput { bytes, nodes: at.into() }
        });
        let inputs = inputs.collect();
        let ratio = [None, None, None, Some(0.0), Some(0.3), Some(2.0)][self.random.random_range(0..6)];
        let group = |name: &str, count, inputs, output_ratio, size| WaitingGroup {
            attempt,
            user: Arc::clone(&user),
            queue: "q".into(),
            group: name.into(),
            role: name.into(),
            count,
            size,
            inputs,
            output_ratio,
            since: Timestamp(0),
        };
        let size = |random: &mut ChaCha8Rng| UNIT.times(if random.random_bool(0.9) { 1 } else { 2 });
        let size_of_maps = size(&mut self.random);
        let maps = group("map", maps, inputs, ratio, size_of_maps);
        self.observe(&DispatchEvent::Waiting(maps));
        if self.random.random_bool(0.8) {
            let count = self.random.random_range(1..7);
            let size = size(&mut self.random);
            self.observe(&DispatchEvent::Waiting(group("reduce", count, vec![], None, size)));
        }
    }

    fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.running.len());
        let (task, node) = self.running.swap_remove(at);
        self.held[node.at()] = self.held[node.at()].saturating_sub(1);
        let failed = self.random.random_bool(0.1);
        let input = Bytes(self.random.random_range(0..3 * MIB));
        let output = Bytes(self.random.random_range(0..60 * MIB) * u64::from(self.random.random_bool(0.7)));
        if !failed {
            self.ended.push(task.clone());
        }
        let duration = Micros::from_secs(1);
        self.observe(&DispatchEvent::Finished { task, node, duration, input, output, failed });
    }

    fn lose(&mut self) {
        if !self.ended.is_empty() {
            let at = self.random.random_range(0..self.ended.len());
            let task = self.ended.swap_remove(at);
            self.observe(&DispatchEvent::Lost(task));
        }
    }

    fn done(&mut self) {
        if !self.jobs.is_empty() {
            let at = self.random.random_range(0..self.jobs.len());
            let attempt = self.jobs.swap_remove(at);
            for (_, node) in self.running.extract_if(.., |(task, _)| task.attempt == attempt) {
                self.held[node.at()] = self.held[node.at()].saturating_sub(1);
            }
            self.ended.retain(|task| task.attempt != attempt);
            self.observe(&DispatchEvent::Done(attempt));
        }
    }

    /// Whether both say the same, which then happens.
    fn offer(&mut self, explain: bool) -> Result<(), TestCaseError> {
        let node = NodeIdx(self.random.random_range(0..self.held.len() as u32));
        let free = UNIT.times(self.units.saturating_sub(self.held[node.at()]));
        let offer = Offer { node, free };
        let view = View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain };
        let advice = self.nas.offer(&mut self.state, &offer, &view);
        let launch = advice.iter().find_map(|one| match one {
            Advice::Launch(task) => Some(task.clone()),
            Advice::NotYet { .. } => None,
        });
        let expected = self.plain.offer(&offer, &view);
        prop_assert_eq!(&launch, &expected, "launch {} on {:?} at {:?}", self.launches, offer, self.now);
        // Advice may be left aside.
        if let Some(task) = launch.filter(|_| self.random.random_bool(0.95)) {
            self.launches += 1;
            self.held[node.at()] += 1;
            self.running.push((task.clone(), node));
            self.observe(&DispatchEvent::Launched { task, node });
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), TestCaseError> {
        let job_limit = 10;
        match self.random.random_range(0..100) {
            0..6 if self.jobs.len() < job_limit => self.submit(),
            0..8 => self.done(),
            8..30 => self.finish(),
            30..32 => self.lose(),
            32..38 => {
                let rack = RackIdx(self.random.random_range(0..self.racks));
                let per_mille = [0, 700, 749, 750, 799, 800, 1000][self.random.random_range(0..7)];
                self.observe(&DispatchEvent::RackUse { rack, per_mille });
            }
            38..60 => self.now = self.now.plus(Micros::from_millis(self.random.random_range(0..900))),
            60 => {
                let json = serde_json::to_string(&self.state).unwrap();
                self.state = serde_json::from_str(&json).unwrap();
                prop_assert_eq!(serde_json::to_string(&self.state).unwrap(), json);
            }
            at => self.offer(at == 61)?,
        }
        Ok(())
    }
}

fn params() -> impl Strategy<Value = NasParams> {
    let switches = prop::array::uniform5(prop::bool::weighted(0.8));
    (switches, any::<[bool; 2]>(), 0_u32..12, 0_u32..12, 0_u64..4_000, 0.0..1.0, 1_u64..4_000).prop_map(
        |(
            [mts, ca_rts, cr_rts, traffic_threshold, adaptive_threshold],
            [count, clear],
            map_skips,
            reduce_skips,
            skip_ms,
            early,
            refresh,
        )| {
            NasParams {
                mts,
                ca_rts,
                cr_rts,
                traffic_threshold,
                adaptive_threshold,
                skip_by: if count { SkipBy::Count } else { SkipBy::Time },
                hold_maps: if clear { HoldMaps::UntilClear } else { HoldMaps::UntilDue },
                map_skips,
                reduce_skips,
                skip_ms: skip_ms + 1,
                early_reduces: early,
                refresh_ms: refresh,
                ..NasParams::default()
            }
        },
    )
}

/// Whether the transcription under other parameters ever answers otherwise: else no property would see that mechanism.
fn told_apart(plain: &NasParams, seeds: u64) -> bool {
    let params = NasParams { map_skips: 4, reduce_skips: 4, ..NasParams::default() };
    (0..seeds).any(|seed| {
        let mut chaos = Chaos::apart(seed, params.clone(), plain.clone());
        (0..600).any(|_| chaos.step().is_err())
    })
}

#[test]
fn random_runs_see_every_mechanism() {
    let params = NasParams { map_skips: 4, reduce_skips: 4, ..NasParams::default() };
    assert!(!told_apart(&params, 6));
    for other in [
        NasParams { mts: false, ..params.clone() },
        NasParams { ca_rts: false, ..params.clone() },
        NasParams { cr_rts: false, ..params.clone() },
        NasParams { traffic_threshold: false, ..params.clone() },
        NasParams { adaptive_threshold: false, ..params.clone() },
        NasParams { skip_by: SkipBy::Time, ..params.clone() },
        NasParams { hold_maps: HoldMaps::UntilClear, ..params.clone() },
        NasParams { map_skips: 5, ..params.clone() },
        NasParams { reduce_skips: 5, ..params.clone() },
        NasParams { t_max: 0.6, ..params.clone() },
        NasParams { t_min: 0.1, ..params.clone() },
        NasParams { congestion_threshold: 0.81, ..params.clone() },
        NasParams { small_input_bytes: 0, ..params.clone() },
        NasParams { light_bytes: 0, ..params.clone() },
        NasParams { heavy_bytes: 10 << 20, ..params.clone() },
        NasParams { early_reduces: 0.5, ..params.clone() },
        NasParams { refresh_ms: 1, ..params.clone() },
    ] {
        assert!(told_apart(&other, 100), "{other:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_answer_is_that_of_the_plain_transcription(seed in any::<u64>(), params in params()) {
        let mut chaos = Chaos::new(seed, params);
        for _ in 0..600 {
            chaos.step()?;
        }
    }
}
