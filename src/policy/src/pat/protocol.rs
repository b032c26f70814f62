//! 002 §6.3's two state machines, over messages that may come late, twice, and in any order.
//!
//! Algorithm 1 (a task) and Algorithm 2 (a server), with what they leave open settled:
//! - a task moves once its server *confirms* the second check, and then *releases* its old server;
//! - `accept` reserves nothing: between it and the second check others may take the room, and the check rejects. That
//!   race is the paper's, and is kept;
//! - every request has a turn. An answer to an earlier turn, or to the other check, is ignored; a server that has decided
//!   on an `optimize` says the same again, so that messages may be repeated;
//! - servers that rejected stand on the blacklist of the episode, which ends with a move or when no candidate is left
//!   whose utility is above 0.

use std::collections::{BTreeMap, BTreeSet};

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Task: is there room?
    Request,
    /// Server: there is, now.
    Accept,
    /// Server: there is none, on request.
    Reject,
    /// Task: then take me.
    Optimize,
    /// Server: taken; the room is yours.
    Confirm,
    /// Server: there is none any more.
    RejectLate,
    /// Task, to the server that it left.
    Release,
}

/// A message between a task and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What.
    pub kind: Kind,
    /// Which task.
    pub task: u32,
    /// Which server.
    pub server: u32,
    /// The task's turn; of a release, that of the reservation that it gives back.
    pub turn: u32,
}

/// Where messages are until they arrive.
pub trait Post {
    /// Sends a message.
    fn send(&mut self, message: Message);
    /// The next that arrives; `None`: nothing is under way.
    fn next(&mut self) -> Option<Message>;
}

/// A task (Algorithm 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Where it runs.
    pub(crate) server: u32,
    /// The turn that got it there.
    held_turn: u32,
    turn: u32,
    stage: Stage,
    blacklist: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Still,
    Asked(u32),
    Moving(u32),
}

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for an answer.
    Wait,
    /// It looks for another candidate; `true`: it has just moved, a new episode begins.
    Look { moved: bool },
}

impl Task {
    pub(crate) const fn at(server: u32) -> Self {
        Self { server, held_turn: 0, turn: 0, stage: Stage::Still, blacklist: Vec::new() }
    }

    /// Whether it waits for nobody.
    #[cfg(test)]
    pub(crate) fn is_still(&self) -> bool {
        self.stage == Stage::Still
    }

    /// Whether the server rejected it in this episode.
    pub(crate) fn avoids(&self, server: u32) -> bool {
        self.blacklist.contains(&server)
    }

    /// Begins an episode.
    pub(crate) fn begin(&mut self) {
        self.blacklist.clear();
    }

    /// Asks a candidate.
    pub(crate) fn ask(&mut self, task: u32, server: u32, post: &mut impl Post) {
        self.turn += 1;
        self.stage = Stage::Asked(server);
        post.send(Message { kind: Kind::Request, task, server, turn: self.turn });
    }

    /// Takes an answer.
    pub(crate) fn receive(&mut self, message: Message, post: &mut impl Post) -> Next {
        let Message { kind, task, server, turn } = message;
        if turn != self.turn {
            return Next::Wait;
        }
        match (self.stage, kind) {
            (Stage::Asked(asked), Kind::Accept) if asked == server => {
                self.stage = Stage::Moving(server);
                post.send(Message { kind: Kind::Optimize, ..message });
                Next::Wait
            }
            (Stage::Asked(asked), Kind::Reject) | (Stage::Moving(asked), Kind::RejectLate) if asked == server => {
                self.stage = Stage::Still;
                self.blacklist.push(server);
                Next::Look { moved: false }
            }
            (Stage::Moving(asked), Kind::Confirm) if asked == server => {
                post.send(Message { kind: Kind::Release, task, server: self.server, turn: self.held_turn });
                (self.server, self.held_turn, self.stage) = (server, turn, Stage::Still);
                self.blacklist.clear();
                Next::Look { moved: true }
            }
            _ => Next::Wait,
        }
    }
}

/// A server (Algorithm 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server<const K: usize> {
    pub(crate) left: [u64; K],
    /// Tasks that have room here, with the turn of each.
    reserved: BTreeSet<(u32, u32)>,
    /// By task: the last turn that was decided on.
    decided: BTreeMap<u32, u32>,
}

impl<const K: usize> Server<K> {
    /// With what is left once `seated` have their room.
    pub(crate) fn new(left: [u64; K]) -> Self {
        Self { left, reserved: BTreeSet::new(), decided: BTreeMap::new() }
    }

    /// A task that runs here from the start; its room is taken already.
    pub(crate) fn host(&mut self, task: u32) {
        self.reserved.insert((task, 0));
        self.decided.insert(task, 0);
    }

    /// Takes a message of a task of such a size. Whether its room changed.
    pub(crate) fn receive(&mut self, message: Message, size: &[u64; K], post: &mut impl Post) -> bool {
        let Message { kind, task, turn, .. } = message;
        let fits = size.iter().zip(&self.left).all(|(size, left)| size <= left);
        let answer = |kind| Message { kind, ..message };
        match kind {
            Kind::Request => {
                post.send(answer(if fits { Kind::Accept } else { Kind::Reject }));
                false
            }
            Kind::Optimize => {
                if self.decided.get(&task).is_some_and(|decided| *decided >= turn) {
                    let again = if self.reserved.contains(&(task, turn)) { Kind::Confirm } else { Kind::RejectLate };
                    post.send(answer(again));
                    return false;
                }
                self.decided.insert(task, turn);
                if fits {
                    self.reserved.insert((task, turn));
                    self.left.iter_mut().zip(size).for_each(|(left, size)| *left -= size);
                }
                post.send(answer(if fits { Kind::Confirm } else { Kind::RejectLate }));
                fits
            }
            Kind::Release => {
                let held = self.reserved.remove(&(task, turn));
                if held {
                    self.left.iter_mut().zip(size).for_each(|(left, size)| *left += size);
                }
                held
            }
            Kind::Accept | Kind::Reject | Kind::Confirm | Kind::RejectLate => false,
        }
    }
}
