//! Flows of bursts: which go by circuit, and what changes of circuits do to them.

use super::super::circuits::{CircuitUse, Ride};
use super::{ActiveFlows, Owner};
use hintd_model::network::optical::DemandMatrix;
use hintd_model::units::{BitsPerSec, Bytes, LinkIdx, Micros, RackIdx};

impl ActiveFlows {
    /// Whether so many bytes from a rack to another would make an elephant.
    pub(in crate::yarn::fabric) fn would_ride(&self, from: RackIdx, to: RackIdx, bytes: Bytes) -> bool {
        self.elephant(from, to).is_some_and(|elephant| bytes >= elephant)
    }

    /// From so many bytes on it is one; `None`: there can never be a circuit of the two.
    pub(in crate::yarn::fabric) fn elephant(&self, from: RackIdx, to: RackIdx) -> Option<Bytes> {
        self.circuits.as_ref()?.switch.elephant(from, to)
    }

    /// Starts a fetch from a rack to another, `bytes` for each of its members; `gathered` is what its job has under way
    /// and gathered for the pair, itself included.
    pub(in crate::yarn::fabric) fn start_between(
        &mut self,
        owner: Owner,
        ride: Ride,
        bytes: Bytes,
        members: u32,
        gathered: Bytes,
    ) -> u32 {
        let now_s = self.now_s();
        let taken = self.circuits.as_mut().map(|circuits| circuits.take_in(ride.pair, gathered, now_s));
        let by_circuit = taken.as_ref().is_some_and(|(by_circuit, _)| *by_circuit);
        for wire in taken.into_iter().flat_map(|(_, others)| others) {
            self.divert(wire, by_circuit);
        }
        let (ends, cap_bits_per_s) = ride.ends(by_circuit);
        let wire = self.start(owner, ends, bytes, members, cap_bits_per_s);
        if let Some(circuits) = &mut self.circuits {
            circuits.bursts.get_mut(&ride.pair).expect("it was taken in").wires.push(wire);
            self.set_ride(wire, ride);
        }
        wire
    }

    fn divert(&mut self, wire: u32, by_circuit: bool) {
        if let Some(ride) = self.ride(wire) {
            let (ends, cap_bits_per_s) = ride.ends(by_circuit);
            self.turn_to(wire, ends, cap_bits_per_s);
        }
    }

    /// When circuits should next be chosen, from `now` on; `None` while no elephant is about.
    pub(in crate::yarn::fabric) fn next_choice(&self, now: Micros) -> Option<Micros> {
        let circuits = self.circuits.as_ref()?;
        if circuits.elephants == 0 {
            return None;
        }
        let interval = circuits.switch.section().interval().0;
        let next = Micros(now.0.div_ceil(interval) * interval);
        let done = circuits.last_choice.is_some_and(|last| last >= next);
        Some(if done { next.saturating_add(Micros(interval)) } else { next })
    }

    /// Chooses the circuits of the interval that begins.
    pub(in crate::yarn::fabric) fn choose(&mut self, now: Micros) {
        let Some(mut circuits) = self.circuits.take() else { return };
        let mut demand = DemandMatrix::new(circuits.switch.racks());
        for (&(_, from, to), burst) in circuits.elephants() {
            let left: f64 = burst.wires.iter().map(|&wire| self.left_bytes(wire)).sum();
            demand.add(from, to, Bytes(left.ceil() as u64));
        }
        circuits.last_choice = Some(now);
        if circuits.switch.configure(&demand) {
            circuits.done.changes += 1;
            for (from, to) in std::mem::take(&mut circuits.lit) {
                self.set_circuit(from, to, BitsPerSec::ZERO);
            }
            let dark_until = now.saturating_add(circuits.switch.section().pause());
            circuits.pause_ends_s = Some(dark_until.as_secs_f64());
        }
        let moved = circuits.give_up(self.now_s());
        self.circuits = Some(circuits);
        for wire in moved {
            self.divert(wire, false);
        }
        self.light();
    }

    /// When the pause under way ends, seconds.
    pub(in crate::yarn::fabric) fn pause_ends_s(&self) -> Option<f64> {
        self.circuits.as_ref()?.pause_ends_s
    }

    /// Ends the pause if it is over.
    pub(in crate::yarn::fabric) fn light(&mut self) {
        let now_s = self.now_s();
        let Some(circuits) = &mut self.circuits else { return };
        if circuits.pause_ends_s.take_if(|ends_s| *ends_s <= now_s).is_none() {
            return;
        }
        circuits.lit = circuits.switch.circuits().collect();
        let moved = circuits.come_back(now_s);
        let lit: Vec<_> =
            circuits.lit.iter().map(|&(from, to)| (from, to, circuits.switch.bits_per_s(from, to))).collect();
        for (from, to, bits_per_s) in lit {
            self.set_circuit(from, to, bits_per_s);
        }
        for wire in moved {
            self.divert(wire, true);
        }
    }

    /// If the link is an optical port: it fails or works again.
    pub(in crate::yarn::fabric) fn set_port(&mut self, link: LinkIdx, up: bool) -> bool {
        let now_s = self.now_s();
        let Some(circuits) = &mut self.circuits else { return false };
        let Some(rack) = circuits.switch.rack_of_port(link) else { return false };
        circuits.switch.set_failed(rack, !up);
        let (gone, lit) = std::mem::take(&mut circuits.lit)
            .into_iter()
            .partition(|&(from, to): &(RackIdx, RackIdx)| !up && (from == rack || to == rack));
        circuits.lit = lit;
        let moved = if up { Vec::new() } else { circuits.give_up(now_s) };
        for (from, to) in gone {
            self.set_circuit(from, to, BitsPerSec::ZERO);
        }
        for wire in moved {
            self.divert(wire, false);
        }
        true
    }

    /// If the link is an optical port: its mirrors stick or move again. Says whether it is one.
    pub(in crate::yarn::fabric) fn stick_port(&mut self, link: LinkIdx, stuck: bool) -> bool {
        let Some(circuits) = &mut self.circuits else { return false };
        circuits.switch.rack_of_port(link).is_some_and(|rack| circuits.switch.set_stuck(rack, stuck))
    }

    /// What circuits have done so far; `None` without an optical switch.
    pub(in crate::yarn::fabric) fn circuit_use(&self) -> Option<CircuitUse> {
        self.circuits.as_ref().map(|circuits| circuits.done)
    }

    /// What does not hold of: an input and an output have one circuit at most, only circuits that are set carry, nothing
    /// moves in a pause.
    pub(in crate::yarn::fabric) fn check_circuits(&mut self) -> Result<(), String> {
        let Some(circuits) = self.circuits.clone() else { return Ok(()) };
        let mut outputs: Vec<RackIdx> = circuits.switch.circuits().map(|(_, to)| to).collect();
        outputs.sort_unstable();
        if let Some(two) = outputs.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("two circuits lead to rack {}", two[0].0));
        }
        if circuits.elephants != circuits.elephants().count() {
            return Err(format!("{} elephants were counted", circuits.elephants));
        }
        if circuits.pause_ends_s.is_some() && !circuits.lit.is_empty() {
            return Err(format!("{} circuits carry in a pause", circuits.lit.len()));
        }
        for from in (0..circuits.switch.racks()).map(RackIdx::new) {
            for to in (0..circuits.switch.racks()).map(RackIdx::new) {
                let load = self.circuit_load(from, to);
                let set = circuits.lit.contains(&(from, to)) && circuits.switch.circuit(from) == Some(to);
                let most = if set { circuits.switch.bits_per_s(from, to).as_f64() * 1.5 } else { 0.0 };
                if load > most {
                    return Err(format!("{load} bit/s from rack {} to rack {} over a circuit of {most}", from.0, to.0));
                }
            }
        }
        Ok(())
    }
}
