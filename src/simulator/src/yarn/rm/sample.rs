//! Once a second, at whole seconds: racks in congestion, nodes over the traffic threshold, use by tier.
//!
//! A rack's use is the larger of its uplink's and downlink's. It is congested from the setting's share of capacity on
//! (80 %) until its use falls below that less 5 points; each second in which it is congested when sampled counts.
//! While the cluster stands empty and no stream of others runs, seconds are counted without being sampled.

use super::super::run::SimError;
use super::Sim;
use hintd_model::cluster::{LinkLoad, LinkMean};
use hintd_model::units::{BitsPerSec, Bytes, LinkIdx, Micros, RackIdx};
use hintd_policy::dispatch::DispatchEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

const STEP: Micros = Micros::from_secs(1);
/// A congested rack stays so until its use has fallen so far below the threshold, per mille.
const LEFT_BELOW: u32 = 50;
/// Smaller changes of a rack's use are not told, per mille.
const TOLD_FROM: u32 = 10;
/// So long nothing may move, and nothing be to come, before a run is given up.
const STALLED: Micros = Micros::from_secs(6 * 3600);

/// What is sampled, and what was told of it.
#[derive(Debug)]
pub(in crate::yarn) struct Racks {
    /// By rack: use as last told, and whether it is congested.
    told: Vec<(u32, bool)>,
    next: Option<Micros>,
    /// Seconds since loads were told, and the sums of what links carried in each, bits/s by direction.
    counted: (u32, BTreeMap<LinkIdx, [f64; 2]>),
    /// As hintd's feeds have them, but that a first reading counts for its seconds.
    means: BTreeMap<LinkIdx, LinkMean>,
    /// The last second sampled before the cluster stood empty.
    idle_from: Option<Micros>,
    /// ΣS and ΣK of Eq. 3.3 over the jobs that live.
    shuffle: u128,
    maps: u64,
}

impl Racks {
    pub(in crate::yarn) fn new(racks: usize) -> Self {
        Self {
            told: vec![(0, false); racks],
            next: None,
            counted: Default::default(),
            means: BTreeMap::new(),
            idle_from: None,
            shuffle: 0,
            maps: 0,
        }
    }

    pub(in crate::yarn) const fn next_sample(&self) -> Option<Micros> {
        self.next
    }

    pub(in crate::yarn) const fn job_begins(&mut self, shuffle: Bytes, maps: u32) {
        self.shuffle += shuffle.0 as u128;
        self.maps += maps as u64;
    }

    pub(in crate::yarn) const fn job_ends(&mut self, shuffle: Bytes, maps: u32) {
        self.shuffle -= shuffle.0 as u128;
        self.maps -= maps as u64;
    }

    /// ΣS ÷ ΣK: what a map of the live jobs puts out on average, bytes.
    fn output_of_a_map(&self) -> f64 {
        if self.maps == 0 { 0.0 } else { self.shuffle as f64 / self.maps as f64 }
    }
}

impl Sim<'_> {
    /// A job comes: from the next whole second on there is something to sample.
    pub(in crate::yarn) fn begin_sampling(&mut self) {
        if self.racks.next.is_some() {
            return;
        }
        let next = self.now.0.div_ceil(STEP.0) * STEP.0;
        if let Some(from) = self.racks.idle_from.take() {
            self.tally.idle((next - from.0) / STEP.0 - 1);
            self.tell_idle(Micros(next - from.0));
        }
        self.racks.next = Some(Micros(next));
    }

    pub(in crate::yarn) fn sample(&mut self) -> Result<(), SimError> {
        let mut quiet = true;
        for rack in 0..self.racks.told.len() {
            quiet &= self.sample_rack(RackIdx::new(rack));
        }
        self.count_links();
        let share = self.over_threshold();
        self.tally.over(share);
        for used in self.fabric.tier_use() {
            self.tally.tier(used.tier, used.mean, used.max);
        }
        let empty = self.jobs.live() == 0 && quiet && self.run.settings.background.is_empty();
        if empty {
            self.tell_loads();
            self.tell_idle(STEP);
        }
        self.racks.next = (!empty).then(|| self.now.saturating_add(STEP));
        self.racks.idle_from = empty.then_some(self.now);
        self.time_shuffles();
        self.preempt()?;
        self.stalled()
    }

    /// Adds a second to the links' counters, and has them told when it is time.
    fn count_links(&mut self) {
        let Some(every) = self.run.settings.link_counters else { return };
        let loads = self.fabric.link_loads();
        let (seconds, sums) = &mut self.racks.counted;
        *seconds += 1;
        for (link, both) in loads {
            let sum = sums.entry(link).or_default();
            *sum = [sum[0] + both[0], sum[1] + both[1]];
        }
        if u64::from(*seconds) * STEP.0 >= every.0 {
            self.tell_loads();
        }
    }

    /// Loads of links since the last time, by the snapshot that everybody sees.
    fn tell_loads(&mut self) {
        let (seconds, sums) = std::mem::take(&mut self.racks.counted);
        if seconds == 0 {
            return;
        }
        let bits = |sum: f64| BitsPerSec((sum / f64::from(seconds)) as u64);
        let span = Micros(u64::from(seconds) * STEP.0);
        let mut told = BTreeMap::new();
        for (link, [a_to_b, b_to_a]) in sums {
            let reading = LinkLoad::steady(bits(a_to_b), bits(b_to_a));
            let mean = self.racks.means.entry(link).or_default();
            told.insert(self.fabric.link_name(link).clone(), mean.add(reading, span));
        }
        self.snapshot.link_loads = Arc::new(told);
    }

    /// Links carried nothing for so long, while the cluster stood empty.
    fn tell_idle(&mut self, span: Micros) {
        let nothing = LinkLoad::steady(BitsPerSec(0), BitsPerSec(0));
        let rows = self.racks.means.iter_mut().map(|(&link, mean)| (link, mean.add(nothing, span)));
        let told: BTreeMap<_, _> = rows.map(|(link, load)| (self.fabric.link_name(link).clone(), load)).collect();
        if !told.is_empty() {
            self.snapshot.link_loads = Arc::new(told);
        }
    }

    /// Whether the rack is quiet.
    fn sample_rack(&mut self, rack: RackIdx) -> bool {
        let per_mille = self.fabric.rack_use_per_mille(rack);
        let (told, was) = self.racks.told[rack.at()];
        let threshold = self.run.settings.congested_per_mille;
        let congested = per_mille >= if was { threshold.saturating_sub(LEFT_BELOW) } else { threshold };
        self.tally.congested_s += u64::from(congested);
        self.tally.congestions += u64::from(congested && !was);
        if congested != was || per_mille.abs_diff(told) >= TOLD_FROM || (per_mille == 0 && told > 0) {
            self.racks.told[rack.at()] = (per_mille, congested);
            self.observe(&DispatchEvent::RackUse { rack, per_mille });
        }
        per_mille == 0
    }

    /// Share of nodes whose running maps put out more than m × ΣS ÷ ΣK (Eq. 3.3), m the node's containers.
    fn over_threshold(&self) -> f64 {
        let output_of_a_map = self.racks.output_of_a_map();
        let over = |node: &&super::super::tables::Node| node.output as f64 > f64::from(node.limit) * output_of_a_map;
        match self.nodes.len() {
            0 => 0.0,
            nodes => self.nodes.iter().filter(over).count() as f64 / nodes as f64,
        }
    }

    fn stalled(&mut self) -> Result<(), SimError> {
        let idle = self.now.saturating_sub(self.moved);
        if self.jobs.live() == 0 || idle < STALLED || !self.nothing_to_come() {
            return Ok(());
        }
        Err(SimError::Stalled {
            at_s: self.now_s(),
            idle_s: idle.as_secs_f64(),
            waiting: self.waiting,
            running: self.tasks.running(),
            jobs: u64::from(self.jobs.live()),
        })
    }
}
