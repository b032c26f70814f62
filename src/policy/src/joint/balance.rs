//! Receivers of an all-to-all edge whose senders stand: the placement whose busiest link is done first, exactly.
//!
//! Each of R receivers gets an R-th of what every node sends, so with x receivers on a node the bytes on its link are
//! linear in x: into it x ÷ R of what others send, out of it 1 − x ÷ R of its own. So it is with a rack. For a time T every
//! node and every rack has an interval of receivers with which its link is done by T; intervals of nodes add up to their
//! rack's, and those of racks to R. The least T for which all of that can hold is found by bisection. Most nodes of a rack
//! are alike: each kind is looked at once a round, so that finding T takes kinds × 60 steps, whatever R is. Within the
//! intervals of that T receivers are spread over racks one by one, so that no rack's way in is busier than it has to be.

use hintd_model::units::NodeIdx;
use std::collections::{BTreeMap, BTreeSet};

/// A node that may take receivers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slot {
    pub(super) node: NodeIdx,
    /// Position of its rack.
    pub(super) rack: usize,
    /// Receivers that it has room for.
    pub(super) most: u32,
    pub(super) link: Pipe,
    /// Among equals, lower is taken first.
    pub(super) rank: u32,
}

/// A link and what it carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pipe {
    /// Bytes that what is behind it sends to the group.
    pub(super) sends: f64,
    /// Bytes a second, out and in.
    pub(super) rate: [f64; 2],
    /// Seconds that other bytes take on it, out and in.
    pub(super) busy: [f64; 2],
}

/// Nodes of one rack that are alike.
#[derive(Debug)]
struct Kind {
    rack: usize,
    most: u32,
    link: Pipe,
    nodes: u32,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Receivers among whom the bytes are divided.
    pub(super) receivers: u32,
    /// Bytes of all senders.
    pub(super) bytes: f64,
    pub(super) slots: Vec<Slot>,
    pub(super) racks: Vec<Pipe>,
    /// By rack: receivers that it may take at most.
    pub(super) caps: Vec<u32>,
    /// Seconds that no choice changes: links of senders where no receiver can be.
    pub(super) least: f64,
}

/// Rounds of bisection: the time is exact to a 2^60th of its upper bound.
const ROUNDS: u32 = 60;

/// Links that are done together but for rounding may all be the busiest.
const TOGETHER: f64 = 1.0 + 1e-7;

/// Numbers of receivers, at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval {
    least: u32,
    most: u32,
}

impl Pipe {
    /// How many of `count` receivers may be behind the link so that it is done by `time`; `None`: no number will do.
    fn interval(&self, of: &Gathering, time: f64, count: u32) -> Option<Interval> {
        let receivers = f64::from(of.receivers);
        let [out, into] = [0, 1].map(|way| (time - self.busy[way]) * self.rate[way]);
        let others = of.bytes - self.sends;
        // A part in 10^9 forgives rounding: whole receivers are counted.
        let most = if others <= 0.0 { f64::from(count) } else { (receivers * into / others + 1e-9).floor() };
        let least =
            if self.sends <= 0.0 { 0.0 } else { (f64::from(count) - receivers * out / self.sends - 1e-9).ceil() };
        // A link that is busy longer than that, whatever comes, keeps nobody from leaving it alone.
        let whole = |number: f64| number.clamp(0.0, f64::from(count)) as u32;
        let interval = Interval { least: whole(least), most: whole(most) };
        (least <= f64::from(count) && interval.least <= interval.most).then_some(interval)
    }
}

impl Kind {
    /// How many of `count` receivers each of its nodes may have so that its link is done by `time`.
    fn interval(&self, of: &Gathering, time: f64, count: u32) -> Option<Interval> {
        let own = self.link.interval(of, time, count)?;
        let most = own.most.min(self.most);
        (own.least <= most).then_some(Interval { least: own.least, most })
    }
}

impl Gathering {
    /// Slots as kinds, by rack.
    fn kinds(&self) -> Vec<Kind> {
        let mut nodes: BTreeMap<(usize, u32, [u64; 5]), (Pipe, u32)> = BTreeMap::new();
        for &Slot { rack, most, link, .. } in &self.slots {
            let bits = [link.sends, link.rate[0], link.rate[1], link.busy[0], link.busy[1]].map(f64::to_bits);
            nodes.entry((rack, most, bits)).or_insert((link, 0)).1 += 1;
        }
        nodes.into_iter().map(|((rack, most, _), (link, nodes))| Kind { rack, most, link, nodes }).collect()
    }

    /// Receivers by slot, as many as have room.
    pub(super) fn place(&self) -> Vec<u32> {
        let mut room = vec![0_u64; self.racks.len()];
        self.slots.iter().for_each(|slot| room[slot.rack] += u64::from(slot.most));
        let room: u64 = room.iter().zip(&self.caps).map(|(&room, &cap)| room.min(u64::from(cap))).sum();
        let count = u32::try_from(room.min(u64::from(self.receivers))).unwrap_or(u32::MAX);
        if count == 0 {
            return vec![0; self.slots.len()];
        }
        let kinds = self.kinds();
        let Some(time) = shortest(self.least, |time| self.rack_intervals(&kinds, time, count).is_some()) else {
            return self.anyhow(count);
        };
        let Some(racks) = self.rack_intervals(&kinds, time * TOGETHER, count) else { return self.anyhow(count) };
        let of_rack = self.divide(&racks, count);
        let mut slots = vec![Vec::new(); self.racks.len()];
        self.slots.iter().enumerate().for_each(|(at, slot)| slots[slot.rack].push(at));
        let mut out = vec![0; self.slots.len()];
        for kinds in kinds.chunk_by(|a, b| a.rack == b.rack) {
            let rack = kinds[0].rack;
            if of_rack[rack] > 0 {
                self.fill_rack(kinds, &slots[rack], (of_rack[rack], count), &mut out);
            }
        }
        out
    }

    /// Receivers by rack so that all links are done by `time`; `None`: they can't be.
    fn rack_intervals(&self, kinds: &[Kind], time: f64, count: u32) -> Option<Vec<Interval>> {
        let mut racks = vec![Interval { least: 0, most: 0 }; self.racks.len()];
        for kind in kinds {
            let own = kind.interval(self, time, count)?;
            let rack = &mut racks[kind.rack];
            rack.least = rack.least.saturating_add(own.least.saturating_mul(kind.nodes));
            rack.most = rack.most.saturating_add(own.most.saturating_mul(kind.nodes));
        }
        for ((rack, pipe), &cap) in racks.iter_mut().zip(&self.racks).zip(&self.caps) {
            let own = pipe.interval(self, time, count)?;
            *rack = Interval { least: rack.least.max(own.least), most: rack.most.min(own.most).min(cap) };
            if rack.least > rack.most {
                return None;
            }
        }
        let least: u64 = racks.iter().map(|rack| u64::from(rack.least)).sum();
        let most: u64 = racks.iter().map(|rack| u64::from(rack.most)).sum();
        (least <= u64::from(count) && u64::from(count) <= most).then_some(racks)
    }

    /// Each rack its least; the rest one by one to where the way in is done first with one more. Most racks could take more
    /// before theirs is the busiest link, but then others would have nothing left of it.
    fn divide(&self, racks: &[Interval], count: u32) -> Vec<u32> {
        let mut out: Vec<u32> = racks.iter().map(|rack| rack.least).collect();
        let mut left = count - out.iter().sum::<u32>();
        let mut rank = vec![u32::MAX; racks.len()];
        self.slots.iter().for_each(|slot| rank[slot.rack] = rank[slot.rack].min(slot.rank));
        // Times are no less than 0, and such floats are in the order of their bits. Ways in that are never busy are all equal:
        // then who has fewest, who sends most, who has the emptiest node.
        let key = |rack: usize, have: u32| {
            let sends = self.racks[rack].sends;
            (self.done_in(rack, have + 1).to_bits(), have, std::cmp::Reverse(sends.to_bits()), rank[rack], rack)
        };
        let open = (0..racks.len()).filter(|&rack| out[rack] < racks[rack].most);
        let mut open: BTreeSet<_> = open.map(|rack| key(rack, out[rack])).collect();
        while left > 0
            && let Some((.., rack)) = open.pop_first()
        {
            out[rack] += 1;
            left -= 1;
            if out[rack] < racks[rack].most {
                open.insert(key(rack, out[rack]));
            }
        }
        out
    }

    /// When the way into a rack is done with so many receivers there.
    fn done_in(&self, rack: usize, receivers: u32) -> f64 {
        let Pipe { sends, rate: [_, into], busy: [_, busy] } = self.racks[rack];
        busy + (self.bytes - sends) * f64::from(receivers) / f64::from(self.receivers) / into
    }

    /// The rack's receivers over its nodes: the busiest of their links is done first, and equals share.
    fn fill_rack(&self, kinds: &[Kind], slots: &[usize], (here, count): (u32, u32), out: &mut [u32]) {
        let will_do = |time: f64| {
            let (mut least, mut most) = (0_u64, 0_u64);
            for kind in kinds {
                let Some(own) = kind.interval(self, time, count) else { return false };
                least += u64::from(own.least) * u64::from(kind.nodes);
                most += u64::from(own.most) * u64::from(kind.nodes);
            }
            least <= u64::from(here) && u64::from(here) <= most
        };
        let time = shortest(0.0, will_do);
        let interval = |&at: &usize| {
            let Slot { link, most, .. } = &self.slots[at];
            let known = time.and_then(|time| link.interval(self, time, count));
            known.map_or(Interval { least: 0, most: *most }, |own| Interval { most: own.most.min(*most), ..own })
        };
        let all: Vec<Interval> = slots.iter().map(interval).collect();
        let mut left = here;
        for (&at, own) in slots.iter().zip(&all) {
            out[at] = own.least.min(left);
            left -= out[at];
        }
        // One by one to whoever has fewest: ties by what it sends, then by rank.
        let key =
            |at: usize, have: u32| (have, std::cmp::Reverse(self.slots[at].link.sends as u64), self.slots[at].rank);
        let mut open: BTreeSet<_> = slots
            .iter()
            .enumerate()
            .filter(|&(position, &at)| out[at] < all[position].most)
            .map(|(position, &at)| (key(at, out[at]), position))
            .collect();
        while left > 0
            && let Some((_, position)) = open.pop_first()
        {
            let at = slots[position];
            out[at] += 1;
            left -= 1;
            if out[at] < all[position].most {
                open.insert((key(at, out[at]), position));
            }
        }
    }

    /// Where no time will do (a link carries nothing): wherever there is room.
    fn anyhow(&self, count: u32) -> Vec<u32> {
        let (mut left, mut caps) = (count, self.caps.clone());
        let take = |slot: &Slot| {
            let taken = left.min(slot.most).min(caps[slot.rack]);
            caps[slot.rack] -= taken;
            left -= taken;
            taken
        };
        self.slots.iter().map(take).collect()
    }

    /// When the busiest link is done with those receivers.
    #[cfg(test)]
    pub(super) fn seconds(&self, placed: &[u32]) -> f64 {
        let receivers = f64::from(self.receivers);
        let time = |pipe: &Pipe, here: u32| {
            let part = f64::from(here) / receivers;
            let placed_part = f64::from(placed.iter().sum::<u32>()) / receivers;
            let out = pipe.sends * (placed_part - part) / pipe.rate[0];
            let into = (self.bytes - pipe.sends) * part / pipe.rate[1];
            (out + pipe.busy[0]).max(into + pipe.busy[1])
        };
        let mut racks = vec![0; self.racks.len()];
        self.slots.iter().zip(placed).for_each(|(slot, count)| racks[slot.rack] += count);
        let slots = self.slots.iter().zip(placed).map(|(slot, &count)| time(&slot.link, count));
        let racks = self.racks.iter().zip(&racks).map(|(pipe, &count)| time(pipe, count));
        slots.chain(racks).fold(self.least, f64::max)
    }
}

/// The shortest time from `least` on that will do, as exact as floats are; `None`: none will.
fn shortest(least: f64, will_do: impl Fn(f64) -> bool) -> Option<f64> {
    if will_do(least) {
        return Some(least);
    }
    let (mut low, mut high) = (least, least.max(1e-6));
    while !will_do(high) {
        low = high;
        high *= 2.0;
        if high > 1e15 {
            return None;
        }
    }
    for _ in 0..ROUNDS {
        let middle = f64::midpoint(low, high);
        if will_do(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}
