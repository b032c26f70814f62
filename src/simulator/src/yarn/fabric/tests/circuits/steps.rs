//! The same bursts, a quarter of a millisecond at a time: rates by filling links bit by bit, courses by the rules of the
//! module's comment, circuits by the switch.

use super::*;
use hintd_model::network::optical::{DemandMatrix, OpticalSwitch};
use proptest::prelude::*;

/// Steps of a second.
const STEPS: u64 = 4_000;
const CIRCUIT: f64 = 125e6;
const UPLINK: f64 = 12.5e6;
const ELEPHANT: f64 = 11.25e6;
const PATIENCE: u64 = 3;

#[derive(Debug, Clone)]
struct Case {
    racks: u32,
    /// Second in which it begins, racks, bytes.
    bursts: Vec<(u64, u32, u32, u64)>,
    /// A rack's port: fails and works again at so many quarters of a second.
    failure: Option<(u32, u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum On {
    Packets,
    /// Since which step it has had none.
    Circuit(u64),
}

struct Flow {
    from: u32,
    to: u32,
    left: f64,
    on: Option<On>,
    ended: Option<u64>,
}

struct Steps {
    switch: OpticalSwitch,
    flows: Vec<Flow>,
    racks: usize,
    dark_until: u64,
    failed: Option<u32>,
}

impl Steps {
    fn serves(&self, flow: &Flow) -> bool {
        self.failed.is_none_or(|rack| rack != flow.from && rack != flow.to)
    }

    fn has_circuit(&self, flow: &Flow) -> bool {
        self.switch.circuit(RackIdx(flow.from)) == Some(RackIdx(flow.to))
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.flows.len()).filter(|&at| self.flows[at].on.is_some() && self.flows[at].ended.is_none())
    }

    fn begin(&mut self, at: usize, step: u64) {
        let flow = &self.flows[at];
        let elephant = flow.left >= ELEPHANT && self.serves(flow);
        self.flows[at].on = Some(if elephant { On::Circuit(step) } else { On::Packets });
    }

    fn choose(&mut self, step: u64, elephants: &[bool]) {
        let mut demand = DemandMatrix::new(self.racks);
        let mut any = false;
        for at in self.live().filter(|&at| elephants[at]).collect::<Vec<_>>() {
            let flow = &self.flows[at];
            demand.add(RackIdx(flow.from), RackIdx(flow.to), Bytes(flow.left.ceil() as u64));
            any = true;
        }
        if any && self.switch.configure(&demand) {
            self.dark_until = step + STEPS / 100;
        }
        for at in self.live().collect::<Vec<_>>() {
            let Some(On::Circuit(since)) = self.flows[at].on else { continue };
            let on = match (self.has_circuit(&self.flows[at]), step - since >= PATIENCE * STEPS) {
                (true, _) => On::Circuit(step),
                (false, true) => On::Packets,
                (false, false) => On::Circuit(since),
            };
            self.flows[at].on = Some(on);
        }
    }

    /// Elephants by packets come back when circuits light up.
    fn light(&mut self, step: u64, elephants: &[bool]) {
        for at in self.live().filter(|&at| elephants[at]).collect::<Vec<_>>() {
            if self.flows[at].on == Some(On::Packets) && self.has_circuit(&self.flows[at]) {
                self.flows[at].on = Some(On::Circuit(step));
            }
        }
    }

    /// Rates by raising all together until a link is full, bytes a second.
    fn rates(&self, step: u64) -> Vec<f64> {
        let mut rates = vec![0.0; self.flows.len()];
        let mut open: Vec<usize> = self.live().filter(|&at| self.flows[at].on == Some(On::Packets)).collect();
        let mut room = vec![UPLINK; 2 * self.racks];
        let links = |flow: &Flow| [2 * flow.from as usize, 2 * flow.to as usize + 1];
        while !open.is_empty() {
            let users = |link: usize| open.iter().filter(|&&at| links(&self.flows[at]).contains(&link)).count();
            let used = (0..room.len()).filter(|&link| users(link) > 0);
            let raise = used.map(|link| room[link] / users(link) as f64).fold(f64::INFINITY, f64::min);
            for &at in &open {
                rates[at] += raise;
                links(&self.flows[at]).into_iter().for_each(|link| room[link] -= raise);
            }
            open.retain(|&at| links(&self.flows[at]).iter().all(|&link| room[link] > 1e-3));
        }
        let rides =
            |at: &usize| matches!(self.flows[*at].on, Some(On::Circuit(_))) && self.has_circuit(&self.flows[*at]);
        let riders: Vec<usize> = self.live().filter(rides).filter(|_| step >= self.dark_until).collect();
        for &at in &riders {
            let like = |other: &&usize| self.flows[**other].from == self.flows[at].from;
            rates[at] = CIRCUIT / riders.iter().filter(like).count() as f64;
        }
        rates
    }

    fn fail(&mut self, rack: Option<u32>) {
        if let Some(rack) = self.failed.or(rack) {
            self.switch.set_failed(RackIdx(rack), self.failed.is_none());
        }
        self.failed = rack;
        for at in self.live().collect::<Vec<_>>() {
            if matches!(self.flows[at].on, Some(On::Circuit(_))) && !self.serves(&self.flows[at]) {
                self.flows[at].on = Some(On::Packets);
            }
        }
    }
}

/// Ends by burst, in steps.
fn by_steps(case: &Case, switch: OpticalSwitch) -> Vec<u64> {
    let flows =
        case.bursts.iter().map(|&(_, from, to, bytes)| Flow { from, to, left: bytes as f64, on: None, ended: None });
    let racks = case.racks as usize;
    let mut all = Steps { switch, flows: flows.collect(), racks, dark_until: 0, failed: None };
    // One that begins while its port has failed is no less an elephant.
    let elephants: Vec<bool> = case.bursts.iter().map(|burst| burst.3 as f64 >= ELEPHANT).collect();
    let mut step = 0;
    while all.flows.iter().any(|flow| flow.ended.is_none()) {
        for at in 0..all.flows.len() {
            if step == case.bursts[at].0 * STEPS {
                all.begin(at, step);
            }
        }
        if step == all.dark_until {
            all.light(step, &elephants);
        }
        if let Some((rack, down, up)) = case.failure {
            if step == down * STEPS / 4 {
                all.fail(Some(rack));
            } else if step == up * STEPS / 4 {
                all.fail(None);
            }
        }
        if step % STEPS == 0 {
            all.choose(step, &elephants);
        }
        let rates = all.rates(step);
        step += 1;
        for (flow, rate) in all.flows.iter_mut().zip(rates) {
            flow.left -= rate / STEPS as f64;
            if flow.on.is_some() && flow.left <= 1.0 {
                flow.ended.get_or_insert(step);
            }
        }
    }
    all.flows.iter().map(|flow| flow.ended.unwrap()).collect()
}

/// Ends by burst, seconds, as the fabric has them.
fn ours(case: &Case, cluster: &Snapshot) -> Vec<f64> {
    let mut fabric = Fabric::new(cluster, &exact(FlowGrain::Racks)).unwrap();
    let mut ends = vec![f64::NAN; case.bursts.len()];
    let mut script: Vec<(f64, Option<usize>, bool)> =
        (0..case.bursts.len()).map(|at| (case.bursts[at].0 as f64 - 0.5, Some(at), false)).collect();
    if let Some((_, down, up)) = case.failure {
        script.extend([(down as f64 / 4.0, None, false), (up as f64 / 4.0, None, true)]);
    }
    script.sort_by(|a, b| a.0.total_cmp(&b.0));
    script.push((1e6, None, true));
    let mut now_s = 0.0;
    for (at_s, begins, up) in script {
        for (job, end_s) in pass(&mut fabric, now_s, at_s) {
            ends[job as usize] = end_s;
        }
        match (begins, case.failure) {
            (Some(job), _) => {
                let (_, from, to, bytes) = case.bursts[job];
                burst(&mut fabric, job as u32, at_s, (from, to), bytes);
            }
            (None, Some((rack, ..))) if at_s < 1e6 => {
                assert!(fabric.link(at_s, &LinkName(format!("edge-0{}--optical", rack + 1).into()), up));
            }
            (None, _) => {}
        }
        now_s = at_s;
    }
    assert_eq!((fabric.under_way(), fabric.stalled()), ((0, 0), 0));
    let bytes: u64 = case.bursts.iter().map(|burst| burst.3).sum();
    assert_eq!(fabric.bytes().cross_rack_shuffle, Bytes(bytes), "every byte arrives once");
    ends
}

fn case() -> impl Strategy<Value = Case> {
    let burst = (1_u64..5, 0_u32..3, 1_u32..3, prop_oneof![1_u64..11 * MB, 12 * MB..300 * MB]);
    // Quarters that are no whole seconds: failures and choices do not meet.
    let failure = (0_u32..2, 1_u64..8, 1_u64..8).prop_map(|(rack, at, span)| (rack, 4 * at + 1, 4 * (at + span) + 2));
    (2_u32..4, prop::collection::vec(burst, 1..7), prop::option::of(failure)).prop_map(|(racks, bursts, failure)| {
        let within = |(second, from, by, bytes): (u64, u32, u32, u64)| {
            let from = from % racks;
            (second, from, (from + 1 + (by - 1) % (racks - 1)) % racks, bytes)
        };
        Case { racks, bursts: bursts.into_iter().map(within).collect(), failure }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bursts_end_when_a_simulation_in_small_steps_says(case in case()) {
        let cluster = with_circuits(case.racks as usize, 2, |section| section.patience_ms = Some(PATIENCE * 1_000));
        let network = cluster.topology.network.clone().unwrap();
        let rack = |vertex| {
            let name: &str = &network.vertex_at(vertex).name;
            name.strip_prefix("edge-").and_then(|rack| rack.parse().ok()).map(|rack: u32| RackIdx(rack - 1))
        };
        let switch = OpticalSwitch::new(&network, case.racks as usize, &rack).unwrap().unwrap();
        let steps = by_steps(&case, switch);
        // What ends just about when circuits are chosen may be demand for the one and not for the other.
        prop_assume!(steps.iter().all(|end| (end % STEPS).min(STEPS - end % STEPS) > STEPS / 50));
        for (ours, steps) in ours(&case, &cluster).into_iter().zip(steps) {
            let steps_s = steps as f64 / STEPS as f64;
            prop_assert!((ours - steps_s).abs() < 0.01, "{} s, and {} s in steps", ours, steps_s);
        }
    }
}
