//! Users in the order of fairness, and who has local tasks where.

use super::bits::Bits;
use super::{JobIdx, UserIdx};
use hintd_model::units::NodeIdx;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A job among its user's: fewest running containers first, then as they came.
pub(super) type JobKey = (u32, u64, JobIdx);

/// One user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) name: Arc<str>,
    /// Containers that run.
    pub(super) running: u32,
    /// When it was last given one: a count of launches.
    served: u64,
    /// Jobs with waiting maps.
    pub(super) maps: BTreeSet<JobKey>,
    /// Jobs whose reduces may be launched: those with waiting maps, and the rest.
    pub(super) early: BTreeSet<JobKey>,
    pub(super) late: BTreeSet<JobKey>,
}

/// All users ever seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Users {
    all: Vec<User>,
    by_name: BTreeMap<Arc<str>, UserIdx>,
    launches: u64,
    /// Those with anything to launch: fewest running first, then least recently served, then by name.
    order: Vec<UserIdx>,
    /// Running and served of each of them: a search looks at nothing else but among the never served.
    order_keys: Vec<(u32, u64)>,
    /// With waiting maps; with reduces that may be launched, early and late.
    pub(super) maps: Bits,
    pub(super) early: Bits,
    pub(super) late: Bits,
    local: Local,
}

/// Waiting maps by node and user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Local {
    /// Room for so many users in each row.
    users: usize,
    /// Row by row, a node each.
    counts: Vec<u32>,
    /// Whether the count is above 0: `users ÷ 64` words a node.
    any: Vec<u64>,
    /// Those that read as well anywhere, by user.
    anywhere: Vec<u32>,
    anywhere_any: Bits,
}

impl Users {
    pub(super) fn intern(&mut self, name: &Arc<str>) -> UserIdx {
        if let Some(&user) = self.by_name.get(name) {
            return user;
        }
        let user = UserIdx::new(self.all.len());
        self.by_name.insert(Arc::clone(name), user);
        self.all.push(User {
            name: Arc::clone(name),
            running: 0,
            served: 0,
            maps: BTreeSet::new(),
            early: BTreeSet::new(),
            late: BTreeSet::new(),
        });
        user
    }

    pub(super) fn get(&self, user: UserIdx) -> &User {
        &self.all[user.at()]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn order(&self) -> &[UserIdx] {
        &self.order
    }

    /// Changes a user and keeps its place in the order.
    pub(super) fn change(&mut self, user: UserIdx, change: impl FnOnce(&mut User, &mut u64)) {
        let was = self.ready(user).then(|| self.place(user));
        change(&mut self.all[user.at()], &mut self.launches);
        let row = &self.all[user.at()];
        self.maps.set(user.at(), !row.maps.is_empty());
        self.early.set(user.at(), !row.early.is_empty());
        self.late.set(user.at(), !row.late.is_empty());
        let now = self.ready(user);
        if let Some(at) = was {
            self.order.remove(at);
            self.order_keys.remove(at);
        }
        if now {
            let at = self.place(user);
            self.order.insert(at, user);
            let User { running, served, .. } = self.all[user.at()];
            self.order_keys.insert(at, (running, served));
        }
    }

    fn ready(&self, user: UserIdx) -> bool {
        let row = &self.all[user.at()];
        !(row.maps.is_empty() && row.early.is_empty() && row.late.is_empty())
    }

    fn place(&self, user: UserIdx) -> usize {
        let User { running, served, ref name, .. } = self.all[user.at()];
        let key = (running, served);
        let from = self.order_keys.partition_point(|&other| other < key);
        // Only users that were never served are alike before their names.
        let alike = self.order_keys[from..].iter().zip(&self.order[from..]).take_while(|(other, _)| **other == key);
        from + alike.take_while(|(_, other)| self.all[other.at()].name < *name).count()
    }

    /// More or fewer local maps of the user on the node; none: maps that read as well anywhere.
    pub(super) fn count_local(&mut self, user: UserIdx, node: Option<NodeIdx>, by: i64) {
        self.local.change(user.at(), node, by);
    }

    /// Users `64 * at ..` with a map that is local on the node or reads as well anywhere.
    pub(super) fn local_word(&self, node: NodeIdx, at: usize) -> u64 {
        let words = self.local.users / 64;
        let on_node = if at < words { self.local.any.get(node.at() * words + at).copied().unwrap_or(0) } else { 0 };
        on_node | self.local.anywhere_any.word(at)
    }
}

impl Local {
    fn change(&mut self, user: usize, node: Option<NodeIdx>, by: i64) {
        let Some(node) = node else {
            if user >= self.anywhere.len() {
                self.anywhere.resize(user + 1, 0);
            }
            self.anywhere[user] = changed(self.anywhere[user], by);
            self.anywhere_any.set(user, self.anywhere[user] > 0);
            return;
        };
        if user >= self.users {
            self.widen((user + 1).next_multiple_of(64).max(2 * self.users));
        }
        let at = node.at() * self.users + user;
        if at >= self.counts.len() {
            self.counts.resize((node.at() + 1) * self.users, 0);
            self.any.resize((node.at() + 1) * self.users / 64, 0);
        }
        self.counts[at] = changed(self.counts[at], by);
        let (word, bit) = (at / 64, 1 << (at % 64));
        self.any[word] = if self.counts[at] > 0 { self.any[word] | bit } else { self.any[word] & !bit };
    }

    fn widen(&mut self, users: usize) {
        let old = std::mem::take(self);
        let nodes = old.counts.len().checked_div(old.users).unwrap_or(0);
        *self = Self { users, counts: vec![0; nodes * users], any: vec![0; nodes * users / 64], ..old };
        for node in 0..nodes {
            let (from, to) = (node * old.users, node * users);
            self.counts[to..to + old.users].copy_from_slice(&old.counts[from..from + old.users]);
            self.any[to / 64..(to + old.users) / 64].copy_from_slice(&old.any[from / 64..(from + old.users) / 64]);
        }
    }
}

fn changed(count: u32, by: i64) -> u32 {
    u32::try_from(i64::from(count) + by).expect("as many are taken away as were added, and a group has below 2^32")
}

impl User {
    /// It was given a container.
    pub(super) fn serve(&mut self, launches: &mut u64) {
        *launches += 1;
        self.served = *launches;
    }
}
