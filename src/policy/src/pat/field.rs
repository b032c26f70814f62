//! What the protocol plays on: servers by switch, tasks with what pulls at them, and the run until all is quiet.

use super::protocol::{Kind, Message, Next, Post, Server, Task};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Hops where there is no way.
pub(crate) const NO_WAY: u16 = u16::MAX;

/// Servers, tasks and distances; `K` kinds of resource.
#[derive(Debug, Clone)]
pub(crate) struct Field<const K: usize> {
    /// By server: its switch.
    pub(crate) switch_of: Vec<u32>,
    /// By server: all that tasks may use, those of `tasks` that start there included.
    pub(crate) rooms: Vec<[u64; K]>,
    pub(crate) tasks: Vec<Mover<K>>,
    /// By place that pulls and switch: hops.
    pub(crate) hops: Vec<Vec<u16>>,
    /// By set and server: whether tasks of the set may go there; without sets all may.
    pub(crate) allowed: Vec<Vec<bool>>,
}

/// A container that may move.
#[derive(Debug, Clone)]
pub(crate) struct Mover<const K: usize> {
    pub(crate) size: [u64; K],
    pub(crate) server: u32,
    /// Ingress and egress boxes of its flows (Eq. 14), and ends that stay: place and rate.
    pub(crate) pulls: Vec<(u32, u64)>,
    /// Row of [`Field::allowed`].
    pub(crate) set: u32,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ran {
    pub(crate) messages: u64,
    pub(crate) moves: u64,
    /// Second checks that were rejected: the race of `accept`.
    pub(crate) races: u64,
    /// Whether it ended before it was quiet.
    pub(crate) stopped: bool,
}

/// Messages in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct InOrder(VecDeque<Message>);

impl Post for InOrder {
    fn send(&mut self, message: Message) {
        self.0.push_back(message);
    }

    fn next(&mut self) -> Option<Message> {
        self.0.pop_front()
    }
}

impl<const K: usize> Field<K> {
    /// Eq. 14 for a task below a switch, bit/s × links; `None`: some box is not reached from there (Eq. 12).
    pub(crate) fn cost_below(&self, task: u32, switch: u32) -> Option<u64> {
        self.cost_of(&self.tasks[task as usize].pulls, switch)
    }

    /// What these pulls cost below a switch; `None` where it reaches not all of them.
    pub(crate) fn cost_of(&self, pulls: &[(u32, u64)], switch: u32) -> Option<u64> {
        pulls.iter().try_fold(0_u64, |sum, &(place, rate)| match self.hops[place as usize][switch as usize] {
            NO_WAY => None,
            hops => Some(sum + rate * u64::from(hops)),
        })
    }

    fn may(&self, task: u32, server: u32) -> bool {
        let set = self.allowed.get(self.tasks[task as usize].set as usize);
        set.is_none_or(|set| set[server as usize])
    }
}

/// A run of the protocol.
pub(crate) struct Run<'f, const K: usize> {
    field: &'f Field<K>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) servers: Vec<Server<K>>,
    /// By switch: the first that is as far from everything that pulls; to tasks they are all one.
    like: Vec<u32>,
    /// Switches that are the first of those like them, ascending.
    firsts: Vec<u32>,
    /// By switch, where it is the first: servers below all like it by what is left of them as tasks know it, least first.
    by_room: Vec<BTreeSet<(u64, Reverse<u32>)>>,
    /// By server: the same.
    known: Vec<u64>,
    /// Whether tasks learn of it when a server's room changes; else they know what was at the start.
    pub(crate) news: bool,
    pub(crate) ran: Ran,
    /// Moves in the order in which servers confirmed them: task and server.
    pub(crate) log: Vec<(u32, u32)>,
}

impl<'f, const K: usize> Run<'f, K> {
    pub(crate) fn new(field: &'f Field<K>) -> Self {
        let mut left = field.rooms.clone();
        for task in &field.tasks {
            let room = &mut left[task.server as usize];
            room.iter_mut().zip(&task.size).for_each(|(room, size)| *room = room.saturating_sub(*size));
        }
        let mut servers: Vec<Server<K>> = left.into_iter().map(Server::new).collect();
        for (at, task) in (0..).zip(&field.tasks) {
            servers[task.server as usize].host(at);
        }
        let switches = field.hops.first().map_or(0, Vec::len);
        let switches = switches.max(field.switch_of.iter().map(|&switch| switch as usize + 1).max().unwrap_or(0));
        let (like, firsts) = alike(field, switches);
        let mut by_room = vec![BTreeSet::new(); switches];
        let known: Vec<u64> = servers.iter().zip(&field.rooms).map(|(server, room)| free(&server.left, room)).collect();
        for (at, (&switch, &free)) in (0..).zip(field.switch_of.iter().zip(&known)) {
            by_room[like[switch as usize] as usize].insert((free, Reverse(at)));
        }
        let tasks = field.tasks.iter().map(|task| Task::at(task.server)).collect();
        let (ran, log) = (Ran::default(), Vec::new());
        Self { field, tasks, servers, like, firsts, by_room, known, news: true, ran, log }
    }

    /// Episodes of all tasks, `window` of them under way at a time, again and again until a pass moves nobody. `step`
    /// says whether to go on.
    pub(crate) fn play(&mut self, window: usize, post: &mut impl Post, mut step: impl FnMut() -> bool) -> Ran {
        loop {
            let before = self.ran.moves;
            let mut waiting = 0..self.tasks.len() as u32;
            let mut under_way = 0;
            loop {
                while under_way < window.max(1) {
                    let Some(task) = waiting.next() else { break };
                    self.tasks[task as usize].begin();
                    under_way += usize::from(self.look(task, post));
                }
                let Some(message) = post.next() else {
                    if waiting.is_empty() {
                        break;
                    }
                    under_way = 0; // whoever is under way without a message has been forgotten by the post
                    continue;
                };
                self.ran.messages += 1;
                if !step() {
                    self.ran.stopped = true;
                }
                if self.deliver(message, post) {
                    under_way -= 1;
                }
                if self.ran.stopped {
                    waiting = 0..0;
                }
            }
            if self.ran.moves == before || self.ran.stopped {
                return self.ran;
            }
        }
    }

    /// Eq. 14 of all tasks where they are now, bit/s × links; what reaches no box is left out.
    #[cfg(any(test, feature = "samples"))]
    pub(crate) fn cost(&self) -> u128 {
        let below = |(at, task): (u32, &Task)| self.field.cost_below(at, self.field.switch_of[task.server as usize]);
        (0..).zip(&self.tasks).filter_map(below).map(u128::from).sum()
    }

    /// Hands a message over; whether that ended a task's episode.
    fn deliver(&mut self, message: Message, post: &mut impl Post) -> bool {
        let task = message.task;
        match message.kind {
            Kind::Request | Kind::Optimize | Kind::Release => {
                let size = &self.field.tasks[task as usize].size;
                let server = message.server as usize;
                if self.servers[server].receive(message, size, post) && self.news {
                    self.tell(message.server);
                }
                false
            }
            Kind::Accept | Kind::Reject | Kind::Confirm | Kind::RejectLate => {
                let known = &mut self.tasks[task as usize];
                match known.receive(message, post) {
                    Next::Wait => false,
                    Next::Look { moved } => {
                        if moved {
                            self.ran.moves += 1;
                            self.log.push((task, message.server));
                        }
                        self.ran.races += u64::from(message.kind == Kind::RejectLate);
                        self.ran.stopped || !self.look(task, post)
                    }
                }
            }
        }
    }

    /// `Optimization(c, L)`: asks the candidate of highest utility above 0, of equal ones the server with most left.
    /// Whether there is one.
    fn look(&mut self, task: u32, post: &mut impl Post) -> bool {
        let Some(server) = self.candidate(task) else { return false };
        self.tasks[task as usize].ask(task, server, post);
        true
    }

    fn candidate(&mut self, task: u32) -> Option<u32> {
        let (field, known) = (self.field, &self.tasks[task as usize]);
        let mover = &field.tasks[task as usize];
        let own = field.cost_below(task, field.switch_of[known.server as usize]).unwrap_or(u64::MAX);
        for (_, switches) in levels(field, &self.firsts, task, own) {
            let best = switches.iter().filter_map(|&switch| {
                let rooms = self.by_room[switch as usize].iter().rev();
                let fits = |server: u32| match self.news {
                    true => mover.size.iter().zip(&self.servers[server as usize].left).all(|(size, left)| size <= left),
                    false => true,
                };
                let mut open = rooms.take_while(|(free, _)| *free > 0);
                open.find(|&&(_, Reverse(server))| !known.avoids(server) && field.may(task, server) && fits(server))
            });
            if let Some(&(_, Reverse(server))) = best.max() {
                return Some(server);
            }
        }
        None
    }

    fn tell(&mut self, server: u32) {
        let now = free(&self.servers[server as usize].left, &self.field.rooms[server as usize]);
        let before = std::mem::replace(&mut self.known[server as usize], now);
        let switch = self.field.switch_of[server as usize] as usize;
        let rooms = &mut self.by_room[self.like[switch] as usize];
        rooms.remove(&(before, Reverse(server)));
        rooms.insert((now, Reverse(server)));
    }
}

/// Switches in sets of those that are equally far from everything that pulls: of each the first of its set, and the
/// firsts. In a fat-tree with boxes above the edge, all edge switches of a pod are one.
fn alike<const K: usize>(field: &Field<K>, switches: usize) -> (Vec<u32>, Vec<u32>) {
    let pulling: BTreeSet<u32> =
        field.tasks.iter().flat_map(|task| task.pulls.iter().map(|(place, _)| *place)).collect();
    let known = field.hops.first().map_or(0, Vec::len);
    let mut seen: BTreeMap<Vec<u16>, u32> = BTreeMap::new();
    let (mut like, mut firsts) = (Vec::with_capacity(switches), Vec::new());
    for switch in 0..switches {
        if switch >= known {
            like.push(switch as u32);
            continue;
        }
        let column = pulling.iter().map(|&place| field.hops[place as usize][switch]).collect();
        let first = *seen.entry(column).or_insert(switch as u32);
        if first == switch as u32 {
            firsts.push(first);
        }
        like.push(first);
    }
    (like, firsts)
}

/// Of `firsts` those below which a task would cost less than `own`, the cheapest first, equal ones together.
fn levels<const K: usize>(field: &Field<K>, firsts: &[u32], task: u32, own: u64) -> Vec<(u64, Vec<u32>)> {
    let cost = |&switch: &u32| Some((field.cost_below(task, switch).filter(|cost| *cost < own)?, switch));
    let mut costs: Vec<(u64, u32)> = firsts.iter().filter_map(cost).collect();
    costs.sort_unstable();
    let level = |level: &[(u64, u32)]| (level[0].0, level.iter().map(|(_, switch)| *switch).collect());
    costs.chunk_by(|a, b| a.0 == b.0).map(level).collect()
}

/// Free resources as servers are ranked by: of the kind of which least is left the share, in millionths.
fn free<const K: usize>(left: &[u64; K], room: &[u64; K]) -> u64 {
    let counted = left.iter().zip(room).filter(|(_, room)| **room > 0);
    counted.map(|(left, room)| (u128::from(*left) * 1_000_000 / u128::from(*room)) as u64).min().unwrap_or(0)
}
