//! Books of queues: what is used and outstanding up to the root, who may be activated, and a cluster that changes.

use super::asks::App;
use super::queues::{Limits, Sizing, deepest_first};
use super::{AppIdx, CapacityScheduler, ContainerNo, Size};
use hintd_model::units::{NodeIdx, SchedulerKey};
use std::sync::Arc;

impl CapacityScheduler {
    /// The queue and its parents up to the root.
    fn upward(&self, queue: usize) -> impl Iterator<Item = usize> + use<> {
        let mut path = vec![queue];
        while let Some(parent) = self.queues[path[path.len() - 1]].parent {
            path.push(parent);
        }
        path.into_iter()
    }

    /// More outstanding, or less of a negative size.
    pub(super) fn add_pending(&mut self, at: AppIdx, size: Size) {
        let Some(Some(app)) = self.apps.get_mut(at.at()) else { return };
        app.pending = app.pending.plus(size);
        let queue = app.queue;
        for queue in self.upward(queue) {
            self.queues[queue].pending = self.queues[queue].pending.plus(size);
        }
    }

    pub(super) const fn sizing(&self) -> Sizing {
        Sizing { calculator: self.settings.calculator, cluster: self.cluster, minimum: self.settings.minimum }
    }

    /// The application's queues and user use more.
    pub(super) fn use_more(&mut self, at: AppIdx, size: Size) {
        let Some(Some(app)) = self.apps.get(at.at()) else { return };
        let (queue, user) = (app.queue, Arc::clone(&app.user));
        let sizing = self.sizing();
        for queue in self.upward(queue) {
            let queue = &mut self.queues[queue];
            queue.used = queue.used.plus(size);
            queue.reckon(sizing);
        }
        self.queues[queue].leaf.users.use_more(&user, size, sizing.calculator, sizing.cluster);
    }

    pub(super) fn use_less(&mut self, at: AppIdx, size: Size) {
        self.use_more(at, Size::ZERO.minus(size));
    }

    /// Reserved up to the root; usage is counted beside it.
    pub(super) fn add_reserved(&mut self, at: AppIdx, size: Size) {
        let Some(Some(app)) = self.apps.get_mut(at.at()) else { return };
        app.reserved = app.reserved.plus(size);
        let queue = app.queue;
        for queue in self.upward(queue) {
            self.queues[queue].reserved = self.queues[queue].reserved.plus(size);
        }
    }

    /// Takes a reservation off the books of node and application; what its queues and user use stays counted.
    pub(super) fn drop_reservation(&mut self, at: AppIdx, key: SchedulerKey, node: NodeIdx) -> Option<ContainerNo> {
        let asks = self.key_mut(at, key)?;
        let reservation = asks.reservations.remove(&node)?;
        if asks.reservations.is_empty() {
            asks.reservations_peak = 0;
        }
        asks.repeats = 0;
        if let Some(Some(node)) = self.nodes.get_mut(node.at()) {
            node.reserved = None;
        }
        self.add_reserved(at, Size::ZERO.minus(reservation.size));
        Some(reservation.container)
    }

    /// A reservation is given up.
    pub(super) fn unreserve(&mut self, at: AppIdx, key: SchedulerKey, node: NodeIdx) {
        let size = self.key_mut(at, key).and_then(|asks| asks.reservations.get(&node)).map(|held| held.size);
        let Some(size) = size else { return };
        self.drop_reservation(at, key, node);
        if let Some(queue) = self.app(at).map(|app| app.queue) {
            self.queues[queue].touch(at);
        }
        self.use_less(at, size);
    }

    /// What one user of the leaf may have.
    pub(super) fn user_limit(&mut self, queue: usize) -> Size {
        let sizing = self.sizing();
        let queue = &mut self.queues[queue];
        let basis = queue.basis(sizing);
        queue.leaf.masters_basis = queue.leaf.last_limit;
        queue.leaf.users.limit(&basis)
    }

    /// Activates waiting applications while ApplicationMasters' shares, the queue's and the user's, allow it. The first
    /// of a queue always is.
    pub(super) fn activate(&mut self, queue: usize) {
        let (calculator, minimum) = (self.settings.calculator, self.settings.minimum);
        let row = &self.queues[queue];
        let usable =
            if calculator.fits(row.capacity, row.leaf.masters_basis) { row.leaf.masters_basis } else { row.capacity };
        let most = calculator.scale_up(usable, row.settings.maximum_am_share, minimum);
        let each = self.masters_of_a_user(queue, most);
        let waiting: Vec<AppIdx> = row.leaf.waiting.iter().map(|rank| rank.2).collect();
        for at in waiting {
            let Some(Some(app)) = self.apps.get_mut(at.at()) else { continue };
            let leaf = &mut self.queues[queue].leaf;
            let none_yet = leaf.active.is_empty() || !calculator.greater(self.cluster, leaf.masters, Size::ZERO);
            if !calculator.fits(app.master.plus(leaf.masters), most) && !none_yet {
                continue;
            }
            let of_user = app.master.plus(leaf.users.masters(&app.user));
            if !calculator.fits(of_user, each) && !none_yet {
                continue;
            }
            app.active = true;
            leaf.users.activate(&app.user, app.master);
            leaf.masters = leaf.masters.plus(app.master);
            leaf.waiting.remove(&super::queues::Queue::waiting_rank(at, app));
            self.queues[queue].begin(at, app);
        }
    }

    /// What ApplicationMasters of one user may have.
    fn masters_of_a_user(&self, queue: usize, most: Size) -> Size {
        let (calculator, row) = (self.settings.calculator, &self.queues[queue]);
        let (share, factor) = (row.settings.maximum_am_share, row.settings.user_limit_factor);
        let alone = 1.0 / (row.leaf.users.number_active().max(1) as f32);
        let limit = (row.settings.user_limit / 100.0).max(alone).min(1.0);
        let by = if factor == -1.0 { share } else { share * limit * factor };
        let each = calculator.scale_up(row.capacity, by, self.settings.minimum);
        calculator.min(self.cluster, each, most)
    }

    /// Nodes came or went.
    pub(super) fn resize_cluster(&mut self) {
        let sizing = self.sizing();
        let cluster = sizing.cluster;
        self.queues.iter_mut().for_each(|queue| queue.resize(cluster));
        self.resize_below(0, Limits::of(cluster));
        for queue in deepest_first(&self.queues) {
            self.queues[queue].reckon(sizing);
        }
    }

    fn resize_below(&mut self, at: usize, mut limits: Limits) {
        let sizing = self.sizing();
        if self.queues[at].children.is_empty() {
            self.note_limit(at, limits.limit);
            let leaf = &mut self.queues[at].leaf;
            leaf.masters_basis = leaf.last_limit;
            leaf.users.recount(sizing.calculator, sizing.cluster);
            self.activate(at);
            self.queues[at].leaf.users.outdate();
            if !self.queues[at].leaf.active.is_empty() {
                self.user_limit(at);
            }
            return;
        }
        for child in self.queues[at].children.clone() {
            let of_child = self.queues[at].limits_of(&self.queues[child], sizing, &mut limits, false);
            self.resize_below(child, of_child);
        }
    }

    /// What the leaf can use, as of an offer.
    pub(super) fn note_limit(&mut self, queue: usize, limit: Size) {
        let (calculator, cluster) = (self.settings.calculator, self.cluster);
        let row = &mut self.queues[queue];
        let most = calculator.round_down(row.maximum, self.settings.minimum);
        row.leaf.last_limit = calculator.min(cluster, most, limit);
    }

    pub(super) fn fits_up(&self, queue: usize, net: Size) -> bool {
        let fits = |at: usize| {
            let queue = &self.queues[at];
            self.settings.calculator.fits(queue.used.plus(net), queue.maximum)
        };
        self.upward(queue).all(fits)
    }
}

/// Order in which Java walks reservations of one key.
pub(super) fn walked<'a>(
    app: &'a App,
    key: SchedulerKey,
    hash: impl Fn(NodeIdx) -> i32,
) -> impl Iterator<Item = (NodeIdx, Size)> + 'a {
    let asks = app.keys.get(&key);
    let peak = asks.map_or(0, |asks| asks.reservations_peak);
    let held = asks.into_iter().flat_map(|asks| &asks.reservations);
    let mut held: Vec<_> = held
        .map(|(&node, held)| ((super::java_order::bucket(hash(node), peak), held.serial), node, held.size))
        .collect();
    held.sort_unstable_by_key(|&(order, ..)| order);
    held.into_iter().map(|(_, node, size)| (node, size))
}
