//! The tree of queues: capacities, limits, shares in use, and the order in which queues and applications are served.

use super::asks::App;
use super::settings::{AppOrdering, QueueOrdering, QueueSettings};
use super::users::{Basis, Users};
use super::{AppIdx, Calculator, Size};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

/// How sizes are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizing {
    pub(super) calculator: Calculator,
    /// What all nodes have.
    pub(super) cluster: Size,
    /// The least allocation.
    pub(super) minimum: Size,
}

/// What a queue may use at an offer, and what was found about it on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) limit: Size,
    pub(super) headroom: Size,
    /// What the user has to give up of reservations before more is allocated.
    pub(super) unreserve: Size,
    /// Room of children that are at their limits.
    pub(super) blocked: Size,
}

impl Limits {
    pub(super) const fn of(limit: Size) -> Self {
        Self { limit, headroom: limit, unreserve: Size::ZERO, blocked: Size::ZERO }
    }
}

/// Place of an application among those that are served: (priority reversed or memory in use, order of submission).
type Rank = (i64, u64, AppIdx);

/// What only leaves have.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    pub(super) users: Users,
    /// Active applications.
    pub(super) active: BTreeSet<Rank>,
    /// Active applications whose use changed since they were ranked.
    changed: BTreeSet<AppIdx>,
    /// Those that wait to be activated.
    pub(super) waiting: BTreeSet<Rank>,
    pub(super) masters: Size,
    /// What the queue could use at the last offer, and what the limit of ApplicationMasters goes by.
    pub(super) last_limit: Size,
    pub(super) masters_basis: Size,
}

/// One queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) settings: QueueSettings,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    pub(super) depth: usize,
    absolute: f32,
    absolute_maximum: f32,
    pub(super) capacity: Size,
    pub(super) maximum: Size,
    pub(super) used: Size,
    pub(super) reserved: Size,
    pub(super) pending: Size,
    /// Share of its capacity, and of the cluster, in use.
    share: f32,
    absolute_share: f32,
    pub(super) leaf: Leaf,
}

impl Queue {
    pub(super) fn new(settings: QueueSettings, parent: Option<(usize, &Self)>) -> Self {
        let (capacity, maximum) = (settings.capacity / 100.0, settings.maximum_capacity / 100.0);
        let (of, of_maximum) = parent.map_or((1.0, 1.0), |(_, queue)| (queue.absolute, queue.absolute_maximum));
        Self {
            parent: parent.map(|(at, _)| at),
            depth: parent.map_or(0, |(_, queue)| queue.depth + 1),
            children: Vec::new(),
            absolute: capacity * of,
            absolute_maximum: maximum * of_maximum,
            capacity: Size::ZERO,
            maximum: Size::ZERO,
            used: Size::ZERO,
            reserved: Size::ZERO,
            pending: Size::ZERO,
            share: 0.0,
            absolute_share: 0.0,
            leaf: Leaf::default(),
            settings,
        }
    }

    /// The cluster has another size.
    pub(super) fn resize(&mut self, cluster: Size) {
        let root = self.parent.is_none();
        self.capacity = if root { cluster } else { cluster.scaled(self.absolute) };
        self.maximum = if root { cluster } else { cluster.scaled(self.absolute_maximum) };
    }

    /// The shares in use, after a change of use or of the cluster.
    pub(super) fn reckon(&mut self, sizing: Sizing) {
        let Sizing { calculator, cluster, minimum } = sizing;
        (self.share, self.absolute_share) = (0.0, 0.0);
        if calculator.greater(cluster, cluster, Size::ZERO) {
            let guaranteed = calculator.max(cluster, self.capacity, minimum);
            self.absolute_share = calculator.divide(cluster, self.used, cluster);
            self.share = calculator.divide(cluster, self.used, guaranteed);
        }
    }

    pub(super) fn basis(&self, sizing: Sizing) -> Basis {
        let Sizing { calculator, cluster, minimum } = sizing;
        let (capacity, maximum) = (self.capacity, self.maximum);
        let (user_limit, factor) = (self.settings.user_limit, self.settings.user_limit_factor);
        Basis { calculator, cluster, minimum, capacity, maximum, user_limit, factor }
    }

    /// Whether its use stays below the limit, with what may be given up of reservations; sets the headroom.
    pub(super) fn may_use(
        &self,
        calculator: Calculator,
        cluster: Size,
        limits: &mut Limits,
        reserved: Size,
        looks_on: bool,
    ) -> bool {
        let limit = calculator.min(cluster, self.maximum, limits.limit);
        limits.headroom = limit.minus(self.used);
        if calculator.less(cluster, self.used, limit) {
            return true;
        }
        looks_on
            && calculator.greater(cluster, reserved, Size::ZERO)
            && calculator.less(cluster, self.used.minus(reserved), limit)
    }

    /// What a child may use; lowers the own limit to the own maximum.
    pub(super) fn limits_of(&self, child: &Self, sizing: Sizing, limits: &mut Limits, net: bool) -> Limits {
        let Sizing { calculator, cluster, minimum } = sizing;
        limits.limit = calculator.min(cluster, limits.limit, self.maximum);
        let limit = if net { limits.limit.minus(limits.blocked) } else { limits.limit };
        Limits::of(calculator.round_down(limit.minus(self.used).plus(child.used), minimum))
    }

    /// Which of two children is offered a node first; queues without capacity come last.
    pub(super) fn before(&self, other: &Self, ordering: QueueOrdering) -> Ordering {
        let (mine, others) = (self.absolute > 0.0, other.absolute > 0.0);
        let shares = match (mine, others) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => [self.absolute_share, other.absolute_share],
            (true, true) => [self.share, other.share],
        };
        let (first, second) = match ordering {
            QueueOrdering::Utilization => (0, 0),
            QueueOrdering::PriorityUtilization => (self.settings.priority, other.settings.priority),
        };
        let by_share = shares[0].total_cmp(&shares[1]);
        let same_side = (shares[0] < 1.0) == (shares[1] < 1.0);
        let order = if first != second && same_side { second.cmp(&first) } else { by_share };
        order.then(other.absolute.total_cmp(&self.absolute))
    }

    fn rank(&self, at: AppIdx, app: &App) -> Rank {
        let first = match self.settings.ordering {
            AppOrdering::Fifo => -i64::from(app.priority),
            AppOrdering::Fair => app.ranked_mb,
        };
        (first, app.serial, at)
    }

    pub(super) fn waiting_rank(at: AppIdx, app: &App) -> Rank {
        (-i64::from(app.priority), app.serial, at)
    }

    pub(super) fn begin(&mut self, at: AppIdx, app: &App) {
        let rank = self.rank(at, app);
        self.leaf.active.insert(rank);
    }

    /// Whether it was active.
    pub(super) fn end(&mut self, at: AppIdx, app: &App) -> bool {
        self.leaf.changed.remove(&at);
        let rank = self.rank(at, app);
        self.leaf.active.remove(&rank)
    }

    /// The application's use changed: fair ordering ranks it anew before the next offer.
    pub(super) fn touch(&mut self, at: AppIdx) {
        if self.settings.ordering == AppOrdering::Fair {
            self.leaf.changed.insert(at);
        }
    }

    /// Ranks anew who changed.
    pub(super) fn rerank(&mut self, apps: &mut [Option<App>]) {
        for at in std::mem::take(&mut self.leaf.changed) {
            let Some(app) = apps.get_mut(at.at()).and_then(Option::as_mut) else { continue };
            let old = self.rank(at, app);
            app.ranked_mb = app.used.memory_mb;
            let new = self.rank(at, app);
            if self.leaf.active.remove(&old) || app.active {
                self.leaf.active.insert(new);
            }
        }
    }

    /// Active applications in their order.
    pub(super) fn order(&self) -> impl Iterator<Item = AppIdx> + '_ {
        self.leaf.active.iter().map(|rank| rank.2)
    }
}

/// Children by their order; of equals as configured.
pub(super) fn sorted(queues: &[Queue], parent: usize) -> Vec<usize> {
    let ordering = queues[parent].settings.children;
    let mut children = queues[parent].children.clone();
    children.sort_by(|&one, &other| queues[one].before(&queues[other], ordering));
    children
}

/// Children before their parents.
pub(super) fn deepest_first(queues: &[Queue]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..queues.len()).collect();
    order.sort_by_key(|&at| Reverse(queues[at].depth));
    order
}
