//! Receivers of an all-to-all edge whose senders stand: the placement whose busiest link is done first, exactly.
//!
//! Each of R receivers gets an R-th of what every node sends, so with x receivers on a node the bytes on its link are
//! linear in x: into it x ÷ R of what others send, out of it 1 − x ÷ R of its own. So it is with a rack. For a time T every
//! node and every rack has an interval of receivers with which its link is done by T; intervals of nodes add up to their
//! rack's, and those of racks to R. The least T for which all of that can hold is found by bisection, in time
//! proportional to nodes × 60, whatever R is.

use hintd_model::units::NodeIdx;

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

/// How much longer than the shortest the busiest rack's uplink may take where that keeps bytes inside racks: what others
/// send gains by it.
const SLACK: f64 = 1.02;

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

impl Gathering {
    /// Receivers by slot, as many as have room.
    pub(super) fn place(&self) -> Vec<u32> {
        let mut room = vec![0_u64; self.racks.len()];
        self.slots.iter().for_each(|slot| room[slot.rack] += u64::from(slot.most));
        let room: u64 = room.iter().zip(&self.caps).map(|(&room, &cap)| room.min(u64::from(cap))).sum();
        let count = u32::try_from(room.min(u64::from(self.receivers))).unwrap_or(u32::MAX);
        if count == 0 {
            return vec![0; self.slots.len()];
        }
        let Some(time) = shortest(self.least, |time| self.rack_intervals(time, count).is_some()) else {
            return self.anyhow(count);
        };
        let time = (time * SLACK).max(time);
        let Some(racks) = self.rack_intervals(time, count) else { return self.anyhow(count) };
        let of_rack = self.divide(&racks, count);
        let mut out = vec![0; self.slots.len()];
        for (rack, &here) in of_rack.iter().enumerate().filter(|(_, here)| **here > 0) {
            self.fill_rack(rack, (here, count), &mut out);
        }
        out
    }

    /// Receivers by rack so that all links are done by `time`; `None`: they can't be.
    fn rack_intervals(&self, time: f64, count: u32) -> Option<Vec<Interval>> {
        let mut racks = vec![Interval { least: 0, most: 0 }; self.racks.len()];
        for slot in &self.slots {
            let own = slot.link.interval(self, time, count)?;
            let most = own.most.min(slot.most);
            if own.least > most {
                return None;
            }
            let rack = &mut racks[slot.rack];
            (rack.least, rack.most) = (rack.least + own.least, rack.most.saturating_add(most));
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

    /// Each rack its least; the rest to those that send most, for what they send stays inside.
    fn divide(&self, racks: &[Interval], count: u32) -> Vec<u32> {
        let mut out: Vec<u32> = racks.iter().map(|rack| rack.least).collect();
        let mut left = count - out.iter().sum::<u32>();
        let mut order: Vec<usize> = (0..racks.len()).collect();
        order.sort_by(|&a, &b| self.racks[b].sends.total_cmp(&self.racks[a].sends).then(a.cmp(&b)));
        for rack in order {
            let more = left.min(racks[rack].most - out[rack]);
            out[rack] += more;
            left -= more;
        }
        out
    }

    /// The rack's receivers over its nodes: the busiest of their links is done first, and equals share.
    fn fill_rack(&self, rack: usize, (here, count): (u32, u32), out: &mut [u32]) {
        let slots: Vec<usize> = (0..self.slots.len()).filter(|&at| self.slots[at].rack == rack).collect();
        let intervals = |time: f64| {
            let of = |&at: &usize| {
                let slot = &self.slots[at];
                let own = slot.link.interval(self, time, count)?;
                let most = own.most.min(slot.most);
                (own.least <= most).then_some(Interval { least: own.least, most })
            };
            let all: Vec<Interval> = slots.iter().map(of).collect::<Option<_>>()?;
            let least: u64 = all.iter().map(|own| u64::from(own.least)).sum();
            let most: u64 = all.iter().map(|own| u64::from(own.most)).sum();
            (least <= u64::from(here) && u64::from(here) <= most).then_some(all)
        };
        let known = shortest(0.0, |time| intervals(time).is_some()).and_then(intervals);
        let all =
            known.unwrap_or_else(|| slots.iter().map(|&at| Interval { least: 0, most: self.slots[at].most }).collect());
        let mut left = here;
        for (&at, own) in slots.iter().zip(&all) {
            out[at] = own.least.min(left);
            left -= out[at];
        }
        // One by one to whoever has fewest: ties by what it sends, then by rank.
        let key =
            |at: usize, have: u32| (have, std::cmp::Reverse(self.slots[at].link.sends as u64), self.slots[at].rank);
        let mut open: std::collections::BTreeSet<_> = slots
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
