//! Users of a leaf queue: what they use, who counts as active, and how much one of them may have.
//!
//! A user is active while an application of theirs that was activated has something outstanding. The limit is computed
//! again only when usage or the set of active users changed, as in YARN: what changes besides shows at the next such
//! moment.

use super::java_order;
use super::{AppIdx, Calculator, Size};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the limit is computed from, beside the users.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis {
    pub(super) calculator: Calculator,
    pub(super) cluster: Size,
    pub(super) minimum: Size,
    /// Of the queue.
    pub(super) capacity: Size,
    pub(super) maximum: Size,
    /// Percent.
    pub(super) user_limit: f32,
    pub(super) factor: f32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct User {
    pub(super) used: Size,
    pub(super) masters: Size,
    pending: i32,
    active: i32,
    ratio: f32,
}

/// All of a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Users {
    users: BTreeMap<Arc<str>, User>,
    /// Most users at once, for the order in which shares are summed.
    peak: usize,
    active: BTreeSet<Arc<str>>,
    inactive: BTreeSet<Arc<str>>,
    /// Applications with something outstanding, by user.
    asking: BTreeMap<Arc<str>, BTreeSet<AppIdx>>,
    /// Users who have waiting applications only, as of the last computation.
    only_waiting: i32,
    used_by_active: Size,
    used_by_inactive: Size,
    /// Active users, as of the last change of their set.
    weights: f32,
    ratio: f32,
    version: u64,
    /// The limit and the version it is of.
    limit: Option<(u64, Size)>,
}

impl Users {
    pub(super) fn get(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    fn entry(&mut self, name: &Arc<str>) -> &mut User {
        if !self.users.contains_key(name) {
            self.users.insert(Arc::clone(name), User::default());
            self.peak = self.peak.max(self.users.len());
            self.inactive.insert(Arc::clone(name));
        }
        self.users.entry(Arc::clone(name)).or_default()
    }

    /// An application of theirs waits to be activated.
    pub(super) fn submit(&mut self, name: &Arc<str>) {
        self.entry(name).pending += 1;
    }

    pub(super) fn activate(&mut self, name: &Arc<str>, master: Size) {
        let user = self.entry(name);
        user.pending -= 1;
        user.active += 1;
        user.masters = user.masters.plus(master);
    }

    /// An application is over.
    pub(super) fn finish(&mut self, name: &Arc<str>, was_active: Option<Size>) {
        let user = self.entry(name);
        match was_active {
            Some(master) => {
                user.masters = user.masters.minus(master);
                user.active -= 1;
            }
            None => user.pending -= 1,
        }
        if user.pending + user.active == 0 {
            self.users.remove(name);
            self.active.remove(name);
            self.inactive.remove(name);
            self.weights = self.active.len() as f32;
        }
    }

    /// Resources of the user's applications masters that run or may.
    pub(super) fn masters(&mut self, name: &Arc<str>) -> Size {
        self.entry(name).masters
    }

    /// The application has something outstanding.
    pub(super) fn asks(&mut self, name: &Arc<str>, app: AppIdx) {
        if self.users.get(name).is_some_and(|user| user.active <= 0) {
            return;
        }
        if !self.asking.contains_key(name) {
            self.asking.insert(Arc::clone(name), BTreeSet::new());
            self.version += 1;
            let used = self.entry(name).used;
            if self.inactive.remove(name) {
                self.active.insert(Arc::clone(name));
                self.weights = self.active.len() as f32;
                self.used_by_inactive = self.used_by_inactive.minus(used);
                self.used_by_active = self.used_by_active.plus(used);
            }
        }
        if let Some(apps) = self.asking.get_mut(name) {
            apps.insert(app);
        }
    }

    /// It has nothing outstanding any more.
    pub(super) fn asks_no_more(&mut self, name: &Arc<str>, app: AppIdx) {
        let Some(apps) = self.asking.get_mut(name) else { return };
        apps.remove(&app);
        if !apps.is_empty() {
            return;
        }
        self.asking.remove(name);
        self.version += 1;
        let Some(used) = self.users.get(name).map(|user| user.used) else { return };
        if self.active.remove(name) {
            self.inactive.insert(Arc::clone(name));
            self.weights = self.active.len() as f32;
            self.used_by_active = self.used_by_active.minus(used);
            self.used_by_inactive = self.used_by_inactive.plus(used);
        }
    }

    /// Users who count for the share of ApplicationMasters.
    pub(super) fn number_active(&self) -> i32 {
        self.asking.len() as i32 + self.only_waiting
    }

    /// Uses more, or less of a negative size.
    pub(super) fn use_more(&mut self, name: &Arc<str>, size: Size, calculator: Calculator, cluster: Size) {
        let active = self.active.contains(name);
        let user = self.entry(name);
        user.used = user.used.plus(size);
        let ratio = calculator.ratio(user.used, cluster);
        let delta = ratio - user.ratio;
        user.ratio = ratio;
        let sum = if active { &mut self.used_by_active } else { &mut self.used_by_inactive };
        *sum = sum.plus(size);
        self.version += 1;
        self.ratio += delta;
    }

    /// The cluster has another size.
    pub(super) fn recount(&mut self, calculator: Calculator, cluster: Size) {
        let peak = self.peak;
        let mut order: Vec<(&Arc<str>, &mut User)> = self.users.iter_mut().collect();
        order.sort_by_key(|(name, _)| java_order::bucket(java_order::string_hash(name), peak));
        let mut sum = 0.0;
        for (_, user) in order {
            user.ratio = calculator.ratio(user.used, cluster);
            sum += user.ratio;
        }
        self.ratio = sum;
    }

    /// The limit has to be computed again.
    pub(super) const fn outdate(&mut self) {
        self.version += 1;
    }

    /// What one user may have.
    pub(super) fn limit(&mut self, basis: &Basis) -> Size {
        let limit = match self.limit {
            Some((version, limit)) if version == self.version => limit,
            _ => {
                let limit = self.compute(basis);
                let waits = |user: &&User| user.pending > 0 && user.active <= 0;
                self.only_waiting = self.users.values().filter(waits).count() as i32;
                self.limit = Some((self.version, limit));
                limit
            }
        };
        basis.calculator.round_down(limit, basis.minimum)
    }

    fn compute(&self, basis: &Basis) -> Size {
        let Basis { calculator, cluster, minimum, .. } = *basis;
        let capacity = calculator.max(cluster, basis.capacity, minimum);
        let consumed = calculator.scale_up(cluster, self.ratio, minimum);
        let current = if calculator.less(cluster, consumed, capacity) { capacity } else { consumed.plus(minimum) };
        let even = calculator.divide_up(self.used_by_active.plus(minimum), self.weights);
        let share = calculator.percent(current.scaled(basis.user_limit));
        let wanted = calculator.max(cluster, even, share);
        let most = if basis.factor == -1.0 || basis.capacity == Size::ZERO {
            calculator.round_down(basis.maximum, minimum)
        } else {
            capacity.scaled(basis.factor)
        };
        calculator.round_up(calculator.min(cluster, wanted, most), minimum)
    }
}
