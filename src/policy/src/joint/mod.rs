//! `joint`: a request is placed so that its busiest link is done first.
//!
//! What counts is when the last byte is there, not how many bytes cross racks: access links and racks' uplinks in each
//! direction, beside what is measured on them and what the request's other groups send. A job in few racks keeps its
//! bytes off the uplinks; a job in one rack alone may fill one downlink. Which of the two is better hangs on bytes and
//! rates, so both are built and timed.
//!
//! Where no bytes are known, and where a request wants its containers `spread` or `together`, `container` places: links say
//! nothing of that. Where somebody sends of whom nothing says where to be, or a group sends to itself, the placement of
//! `container` is timed beside the others. A group that sends to itself, such as the executors of a Spark application, is
//! tried in one rack, in two and so on: in few racks its bytes stay off the uplinks, in many they share more links.
//!
//! # Code map
//! - `balance`: receivers of senders that stand, exactly.
//! - `readers`: who reads input, near one of its replicas, widely or in few racks.
//! - `within`: who sends to its own group, evenly over some racks.
//! - `homes`: racks to which the input of a recurring job is written.

mod balance;
mod homes;
mod readers;
#[cfg(test)]
mod tests;
mod within;

use crate::advise::{DataProblem, HomesProblem, PlaceData, ReplicaAdvice};
use crate::container::Container;
use crate::params::{Invalid, Params};
use crate::place::readable;
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::problem::GroupProblem;
use crate::terms::are_known;
use crate::terms::link_time::{LinkBytes, LinkRates, LinkTime, link_bytes};
use crate::{Budget, Capabilities, Definition, Ended, Objective, Place, PlaceError, PlaceProblem, Placement};
use balance::{Gathering, Pipe, Slot};
use hintd_model::units::{NodeIdx, RackIdx};
pub use homes::HomeBook;
use readers::Width;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its name.
pub const NAME: &str = "joint";

/// It has no parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointParams {}

impl Params for JointParams {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Joint {
    params: JointParams,
}

impl Definition for Joint {
    type Params = JointParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "puts containers where the busiest link is done first: the bytes that links will carry against how fast they are";

    fn new(params: JointParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &JointParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), place_data: Some(self), ..Capabilities::default() }
    }
}

impl Place for Joint {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        if !sees(problem) {
            return without(problem, budget);
        }
        let rates = LinkRates::of(problem);
        let reads = problem.groups.iter().any(|group| !group.input.is_empty());
        // Width is a choice only where somebody reads and what comes of it is sent on.
        let narrow = (reads && !problem.edges.is_empty()).then_some(Width::FewRacks);
        let timed = |placement: Placement| (link_bytes(problem, &placement).time(&rates), placement);
        let mut best = timed(construct(problem, &rates, Width::All, budget));
        if let Some(width) = narrow.filter(|_| !budget.over()) {
            best = first_done(best, timed(construct(problem, &rates, width, budget)));
        }
        for width in within::widths(problem) {
            if budget.over() {
                break;
            }
            best = first_done(best, timed(construct(problem, &rates, Width::Within(width), budget)));
        }
        if !budget.over() && sends_from_anywhere(problem) {
            best = first_done(best, timed(unproven(by_container(problem, budget)?)));
        }
        let (time, placement) = best;
        let Objective { value, parts } = objective(time);
        Ok(Placement { objective: value, parts, steps: budget.used(), ..placement })
    }

    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        if !are_known(problem) {
            return Container::default().objective(problem, placement);
        }
        Some(objective(link_bytes(problem, placement).time(&LinkRates::of(problem))))
    }

    fn knows_senders(&self) -> bool {
        true
    }
}

impl PlaceData for Joint {
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
        Ok(homes::replicas(problem))
    }

    fn homes(&self, problem: &HomesProblem<'_>) -> Vec<RackIdx> {
        homes::choose(problem)
    }
}

/// Whether links say where the request's containers should be, as it wants them.
fn sees(problem: &PlaceProblem<'_>) -> bool {
    let wishes = problem.groups.iter().any(|group| group.spread || group.together);
    !wishes && are_known(problem)
}

/// The placement of `container`.
fn by_container(problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
    let container = Container::default();
    container.place(&readable(&container, problem), budget)
}

/// The same, where links say nothing; priced by them where they do.
fn without(problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
    let placement = by_container(problem, budget)?;
    if !are_known(problem) {
        return Ok(placement);
    }
    let Objective { value, parts } = objective(link_bytes(problem, &placement).time(&LinkRates::of(problem)));
    Ok(Placement { objective: value, parts, ..unproven(placement) })
}

/// What is optimal for another objective is not for ours.
fn unproven(placement: Placement) -> Placement {
    let ended = if placement.ended == Ended::Optimal { Ended::Complete } else { placement.ended };
    Placement { ended, gap: None, ..placement }
}

/// Whether somebody sends of whom neither input nor senders say where to be, or to its own group.
fn sends_from_anywhere(problem: &PlaceProblem<'_>) -> bool {
    let told = |group: usize| {
        let to_it = |to: hintd_model::units::GroupIdx| to.at() == group;
        !problem.groups[group].input.is_empty()
            || problem.senders.iter().any(|edge| to_it(edge.to))
            || problem.edges.iter().any(|edge| to_it(edge.to) && edge.from != edge.to)
    };
    problem.edges.iter().any(|edge| edge.from == edge.to || !told(edge.from.at()))
}

/// The one that has more containers, else whose busiest link is done first; of equals the former.
fn first_done(one: (LinkTime, Placement), other: (LinkTime, Placement)) -> (LinkTime, Placement) {
    let placed = [&one, &other].map(|(_, placement)| placement.placed_all());
    let better = placed[1] > placed[0] || (placed[1] == placed[0] && other.0.is_before(&one.0));
    if better { other } else { one }
}

fn objective(time: LinkTime) -> Objective {
    let parts = vec![("busiest_link_s".to_owned(), time.seconds), ("across_racks".to_owned(), time.across_racks)];
    Objective { value: time.seconds, parts }
}

/// Senders before receivers, else as YARN serves them.
fn order(problem: &PlaceProblem<'_>) -> Vec<usize> {
    let mut waiting = by_priority(problem);
    let mut done = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let free = |group: &usize| {
            let to_it = problem.edges.iter().filter(|edge| edge.to.at() == *group && edge.from != edge.to);
            to_it.into_iter().all(|edge| done.contains(&edge.from.at()))
        };
        // Of a circle the first begins.
        let next = waiting.iter().position(free).unwrap_or(0);
        done.push(waiting.remove(next));
    }
    done
}

fn construct(problem: &PlaceProblem<'_>, rates: &LinkRates<'_>, width: Width, budget: &mut Budget<'_>) -> Placement {
    let mut filling = PlacementBuilder::new(problem);
    for group in order(problem) {
        if !budget.step() {
            break;
        }
        if let Width::Within(racks) = width
            && within::talks(problem, group)
        {
            within::place(problem, &mut filling, group, racks);
            continue;
        }
        let senders = senders(problem, &filling, group);
        if senders.is_empty() {
            readers::place(problem, &mut filling, group, width);
            continue;
        }
        let so_far = link_bytes(problem, &filling.clone().finish(budget));
        let gathering = gathering(problem, &filling, (group, &senders), (rates, &so_far));
        let mut task = 0;
        for (slot, count) in gathering.slots.iter().zip(gathering.place()) {
            for _ in 0..count {
                filling.put(group, task, slot.node);
                task += 1;
            }
        }
    }
    filling.finish(budget)
}

/// Bytes that each node sends to the group: from containers that came before, and from groups placed by now.
fn senders(problem: &PlaceProblem<'_>, filling: &PlacementBuilder<'_, '_>, group: usize) -> BTreeMap<NodeIdx, f64> {
    let mut out: BTreeMap<NodeIdx, f64> = BTreeMap::new();
    for edge in problem.senders.iter().filter(|edge| edge.to.at() == group) {
        edge.from.iter().for_each(|(node, bytes)| *out.entry(*node).or_default() += bytes.as_f64());
    }
    for edge in problem.edges.iter().filter(|edge| edge.to.at() == group && edge.from != edge.to) {
        let places = filling.nodes_of(edge.from.at());
        let all: u32 = places.values().sum();
        for (&node, &count) in places {
            *out.entry(node).or_default() += edge.bytes.as_f64() * f64::from(count) / f64::from(all);
        }
    }
    out.retain(|_, bytes| *bytes > 0.0);
    out
}

fn gathering(
    problem: &PlaceProblem<'_>,
    filling: &PlacementBuilder<'_, '_>,
    (group, senders): (usize, &BTreeMap<NodeIdx, f64>),
    (rates, so_far): (&LinkRates<'_>, &LinkBytes),
) -> Gathering {
    let asked = &problem.groups[group];
    let snapshot = problem.snapshot;
    let pipe = |sends: f64, rate: crate::terms::rack_rates::Duplex, bytes: Option<&[f64; 2]>| {
        let [out, into] = bytes.copied().unwrap_or_default();
        let rate = [rate.up, rate.down];
        Pipe { sends, rate, busy: [out / rate[0], into / rate[1]] }
    };
    let slot = |&node: &NodeIdx| {
        let most = room(problem, filling, group, node);
        let sends = senders.get(&node).copied().unwrap_or(0.0);
        let link = pipe(sends, rates.node(node), so_far.nodes.get(&node));
        let rank = problem.rank(node);
        (most > 0).then(|| Slot { node, rack: snapshot.rack(node).at(), most, link, rank })
    };
    let slots: Vec<Slot> = asked.candidates.iter().filter_map(slot).collect();
    let mut by_rack = vec![0.0; snapshot.statics.racks.len()];
    senders.iter().for_each(|(&node, bytes)| by_rack[snapshot.rack(node).at()] += bytes);
    let rack = |(at, &sends): (usize, &f64)| {
        let rack = RackIdx::new(at);
        pipe(sends, rates.rack(rack), so_far.racks.get(&rack))
    };
    let racks = by_rack.iter().enumerate().map(rack).collect();
    let cap = |at: usize| asked.max_per_rack.saturating_sub(filling.in_rack(group, RackIdx::new(at)));
    let caps = (0..by_rack.len()).map(cap).collect();
    let takes = |node: &NodeIdx| slots.binary_search_by_key(node, |slot| slot.node).is_ok();
    let elsewhere = senders.iter().filter(|(node, _)| !takes(node));
    let least = elsewhere.map(|(&node, bytes)| bytes / rates.node(node).up).fold(0.0, f64::max);
    let bytes = senders.values().sum();
    Gathering { receivers: asked.count, bytes, slots, racks, caps, least }
}

/// Containers of the group that a node has room for.
fn room(problem: &PlaceProblem<'_>, filling: &PlacementBuilder<'_, '_>, group: usize, node: NodeIdx) -> u32 {
    let GroupProblem { size, max_per_node, .. } = &problem.groups[group];
    let fit = problem.snapshot.rules.how_many(size, &filling.room(node));
    fit.min(max_per_node.saturating_sub(filling.on_node(group, node)))
}
