//! Links that transfers share: each gets an even part of its narrowest link for each task that waits for it.

use hintd_model::units::Micros;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// A link's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link(u32);

/// Links that every rack has.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfRack {
    /// Into the packet switches.
    Up,
    /// Out of them.
    Down,
    /// Its nodes' links together, towards the nodes.
    Nodes,
    /// Its port of the optical switch, outwards.
    CircuitOut,
    /// The same, inwards.
    CircuitIn,
}

/// How many of them.
const OF_RACK: u32 = 5;
/// So few bytes are none: what rounding leaves.
const NOTHING: f64 = 0.5;
/// To share a group's links out takes as long as looking at so many links.
const SHARING: u64 = 200;
/// Times that what capped transfers leave is shared out anew; the last gives what is there.
const ROUNDS: u32 = 4;

/// Bytes under way.
#[derive(Debug)]
pub(super) struct Transfer<W> {
    /// Who waits for them.
    pub(super) what: W,
    /// Still to come, bytes.
    pub(super) left: f64,
    /// No faster, bytes/s.
    pub(super) cap: f64,
    /// Tasks that wait: links are shared by them.
    pub(super) tasks: f64,
    /// Links, and the share of the bytes that passes each.
    pub(super) links: SmallVec<[(Link, f64); 3]>,
    /// It rides the circuit between these racks and moves only while that is set.
    pub(super) circuit: Option<(usize, usize)>,
}

/// Transfers that share links with each other and with no others.
#[derive(Debug)]
struct Group<W> {
    /// Each with its rate, bytes/s.
    moving: Vec<(Transfer<W>, f64)>,
    /// What is left is of this moment.
    at: Micros,
    /// When the first ends, as far as is known.
    due: Option<Micros>,
    /// Rates are not of now.
    stale: bool,
}

/// All links, and what moves on them: within each rack, and between racks.
#[derive(Debug)]
pub(super) struct Links<W> {
    /// Bytes/s.
    capacity: Vec<f64>,
    /// By rack, and last what crosses.
    groups: Vec<Group<W>>,
    /// Groups with something due, by when.
    due: BTreeSet<(Micros, usize)>,
    /// Groups whose rates are not of now.
    stale: Vec<usize>,
    /// By sending rack, the rack that its circuit leads to.
    set: BTreeMap<usize, usize>,
    /// Circuits stay as they are for an interval; else each has its share of the ports at any time.
    chosen: bool,
    /// By link, used again for every group: capacity left, and tasks that wait for it.
    open: Vec<(f64, f64)>,
    /// Links that transfers were looked at for, so far: what time goes by.
    work: u64,
}

impl<W> Links<W> {
    /// Of so many racks, each with these capacities by [`OfRack`], bytes/s. `chosen`: circuits move only what
    /// [`Self::choose`] lets them.
    pub(super) fn new(racks: usize, of_rack: [f64; OF_RACK as usize], chosen: bool) -> Self {
        let capacity: Vec<f64> = std::iter::repeat_n(of_rack, racks).flatten().collect();
        let group = |_| Group { moving: Vec::new(), at: Micros::ZERO, due: None, stale: false };
        Self {
            open: vec![(0.0, 0.0); capacity.len()],
            capacity,
            groups: (0..=racks).map(group).collect(),
            due: BTreeSet::new(),
            stale: Vec::new(),
            set: BTreeMap::new(),
            chosen,
            work: 0,
        }
    }

    /// How much was reckoned so far: links that were looked at for transfers.
    pub(super) const fn work(&self) -> u64 {
        self.work
    }

    pub(super) const fn of_rack(rack: usize, which: OfRack) -> Link {
        Link(rack as u32 * OF_RACK + which as u32)
    }

    /// One more link.
    pub(super) fn add(&mut self, bytes_per_s: f64) -> Link {
        self.capacity.push(bytes_per_s);
        self.open.push((0.0, 0.0));
        Link(self.capacity.len() as u32 - 1)
    }

    /// Something begins to move, within a rack or between racks; no link may be used both ways.
    pub(super) fn start(&mut self, now: Micros, within: Option<usize>, transfer: Transfer<W>) {
        let group = within.unwrap_or(self.groups.len() - 1);
        self.groups[group].move_to(now);
        self.groups[group].moving.push((transfer, 0.0));
        self.mark(group);
    }

    fn mark(&mut self, group: usize) {
        if !std::mem::replace(&mut self.groups[group].stale, true) {
            self.stale.push(group);
        }
    }

    /// When the first transfer ends if nothing else happens, from `now` on; none: nothing moves.
    pub(super) fn next(&mut self, now: Micros) -> Option<Micros> {
        for at in std::mem::take(&mut self.stale) {
            self.groups[at].move_to(now);
            self.share(at);
            let group = &mut self.groups[at];
            group.stale = false;
            let due = group.next();
            let before = std::mem::replace(&mut group.due, due);
            before.map(|due| self.due.remove(&(due, at)));
            due.map(|due| self.due.insert((due, at)));
        }
        self.due.first().map(|&(due, _)| due)
    }

    /// What has ended by now.
    pub(super) fn ended(&mut self, now: Micros) -> Vec<W> {
        let mut ended = Vec::new();
        while let Some(&(due, at)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, at));
            let group = &mut self.groups[at];
            group.due = None;
            group.move_to(now);
            let over = group.moving.extract_if(.., |(transfer, _)| transfer.left <= NOTHING);
            ended.extend(over.map(|(transfer, _)| transfer.what));
            self.mark(at);
        }
        ended
    }

    /// Whether anything rides circuits.
    pub(super) fn rides(&self) -> bool {
        self.crossing().any(|(transfer, _)| transfer.circuit.is_some())
    }

    fn crossing(&self) -> impl Iterator<Item = &(Transfer<W>, f64)> {
        self.groups.last().into_iter().flat_map(|group| &group.moving)
    }

    /// Sets circuits for an interval in which one brings at most so many bytes: the pair of racks with most to send
    /// first, of what is left the next.
    pub(super) fn choose(&mut self, now: Micros, most: f64) {
        let crossing = self.groups.len() - 1;
        self.work += self.groups[crossing].moving.len() as u64 + SHARING;
        self.groups[crossing].move_to(now);
        let mut demand: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (transfer, _) in self.crossing() {
            if let Some(pair) = transfer.circuit {
                *demand.entry(pair).or_default() += transfer.left;
            }
        }
        let mut pairs: Vec<_> = demand.into_iter().map(|(pair, bytes)| (bytes.min(most), pair)).collect();
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.set.clear();
        let mut taken = BTreeSet::new();
        for (_, (from, to)) in pairs {
            if !self.set.contains_key(&from) && taken.insert(to) {
                self.set.insert(from, to);
            }
        }
        self.mark(crossing);
    }

    /// Rates of a group: each task that waits for a link has an even part of it, no transfer more than its cap, and
    /// what those leave is shared out again.
    fn share(&mut self, group: usize) {
        let Self { capacity, groups, set, chosen, open, work, .. } = self;
        let moving = &mut groups[group].moving;
        *work += moving.iter().map(|(transfer, _)| transfer.links.len() as u64).sum::<u64>() + 1;
        let dark = |&(from, to): &(usize, usize)| *chosen && set.get(&from) != Some(&to);
        let mut unsettled: Vec<usize> = Vec::with_capacity(moving.len());
        for (transfer, _) in moving.iter() {
            transfer.links.iter().for_each(|(link, _)| open[link.at()] = (capacity[link.at()], 0.0));
        }
        for (at, (transfer, rate)) in moving.iter_mut().enumerate() {
            *rate = 0.0;
            if transfer.circuit.as_ref().is_none_or(|pair| !dark(pair)) {
                unsettled.push(at);
                transfer.links.iter().for_each(|&(link, part)| open[link.at()].1 += transfer.tasks * part);
            }
        }
        for round in 1..=ROUNDS {
            let mut settled = Vec::new();
            unsettled.retain(|&at| {
                let (transfer, rate) = &mut moving[at];
                let even = |(link, _): &(Link, f64)| {
                    let (left, tasks) = open[link.at()];
                    left.max(0.0) / tasks.max(1e-9) * transfer.tasks
                };
                let even = transfer.links.iter().map(even).fold(f64::INFINITY, f64::min);
                if transfer.cap > even && round < ROUNDS {
                    return true;
                }
                *rate = transfer.cap.min(even);
                settled.push(at);
                false
            });
            for (transfer, rate) in settled.into_iter().map(|at| &moving[at]) {
                for &(link, part) in &transfer.links {
                    let (left, tasks) = open[link.at()];
                    open[link.at()] = (left - rate * part, tasks - transfer.tasks * part);
                }
            }
        }
    }
}

impl<W> Group<W> {
    fn move_to(&mut self, now: Micros) {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        self.moving.iter_mut().for_each(|(transfer, rate)| transfer.left -= *rate * seconds);
        self.at = now;
    }

    /// When the first of it ends.
    fn next(&self) -> Option<Micros> {
        let times = self.moving.iter().map(|(transfer, rate)| match transfer.left <= NOTHING {
            true => 0.0,
            false => transfer.left / rate * 1e6,
        });
        let first = times.filter(|time| time.is_finite()).min_by(f64::total_cmp)?;
        Some(self.at.saturating_add(Micros(first.ceil() as u64)))
    }
}

impl Link {
    const fn at(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn over(what: u32, left: f64, tasks: f64, links: &[(Link, f64)]) -> Transfer<u32> {
        Transfer { what, left, cap: f64::INFINITY, tasks, links: links.into(), circuit: None }
    }

    /// Everything that moves, with the moment of its end in seconds.
    fn run(links: &mut Links<u32>, mut now: Micros) -> Vec<(u32, f64)> {
        let mut ends = vec![];
        while let Some(next) = links.next(now) {
            now = next;
            ends.extend(links.ended(now).into_iter().map(|what| (what, now.as_millis() as f64 / 1e3)));
        }
        ends
    }

    #[test]
    fn tasks_share_a_link_evenly_and_get_what_others_leave() {
        let mut links = Links::new(1, [100.0; 5], false);
        let link = Links::<u32>::of_rack(0, OfRack::Up);
        links.start(Micros::ZERO, Some(0), over(1, 100.0, 1.0, &[(link, 1.0)]));
        links.start(Micros::ZERO, Some(0), over(2, 300.0, 3.0, &[(link, 1.0)]));
        links.start(Micros::ZERO, Some(0), Transfer { cap: 20.0, ..over(3, 100.0, 4.0, &[(link, 1.0)]) });
        // 20 go to the capped one, 20 and 60 to the others; all of it has been carried after five seconds.
        assert_eq!(run(&mut links, Micros::ZERO), [(1, 5.0), (2, 5.0), (3, 5.0)]);
    }

    #[test]
    fn a_transfer_from_several_racks_takes_of_each_uplink_its_part() {
        let mut links = Links::new(2, [100.0; 5], false);
        let up = |rack| (Links::<u32>::of_rack(rack, OfRack::Up), 0.5);
        links.start(Micros::ZERO, Some(0), over(1, 400.0, 1.0, &[up(0), up(1)]));
        assert_eq!(run(&mut links, Micros::ZERO), [(1, 2.0)]);
    }

    #[test]
    fn of_circuits_the_pair_with_most_to_send_is_set_first() {
        let mut links = Links::new(2, [100.0; 5], true);
        for (what, bytes) in [(1, 100.0), (2, 300.0)] {
            let out = Links::<u32>::of_rack(0, OfRack::CircuitOut);
            let circuit = Some((0, what as usize));
            links.start(
                Micros::ZERO,
                None,
                Transfer { circuit, links: smallvec![(out, 1.0)], ..over(what, bytes, 1.0, &[]) },
            );
        }
        assert_eq!(links.next(Micros::ZERO), None, "none is set");
        links.choose(Micros::ZERO, 1e9);
        assert_eq!(run(&mut links, Micros::ZERO), [(2, 3.0)]);
        links.choose(Micros::from_secs(3), 1e9);
        assert_eq!(run(&mut links, Micros::from_secs(3)), [(1, 4.0)]);
    }
}
