//! What a node is offered for: from the root down to a row of an application's ask.

use super::asks::{App, KeyAsks, Place, Row};
use super::limits::walked;
use super::queues::{Limits, Sizing, sorted};
use super::{AppIdx, CapacityScheduler, Decision, NodeType, Size, Verdict};
use hintd_model::units::{NodeIdx, SchedulerKey};
use smallvec::SmallVec;
use std::sync::Arc;

/// A container that is proposed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proposal {
    pub(super) app: AppIdx,
    pub(super) key: SchedulerKey,
    pub(super) node: NodeIdx,
    pub(super) size: Size,
    pub(super) kind: NodeType,
    /// It does not fit yet.
    pub(super) reserves: bool,
    /// It is of the node's reservation.
    pub(super) reserved: bool,
    /// Where a reservation is given up for it.
    pub(super) unreserves: Option<NodeIdx>,
}

/// What a queue or an application made of an offer.
enum Offered {
    Proposed(Proposal),
    /// The queue has no room for it.
    QueueLimit,
    /// Nothing for this application: the next is asked.
    NextApp,
    /// Nothing for this key.
    NextKey,
    Nothing,
}

/// Whether an ask stands.
type Stands<'a> = &'a dyn Fn(AppIdx, SchedulerKey) -> bool;

impl CapacityScheduler {
    /// A node reports: all that is decided there, in order.
    pub fn heartbeat(&mut self, node: NodeIdx) -> Vec<Decision> {
        self.heartbeat_where(node, &|_, _| true)
    }

    /// A node reports while some ApplicationMasters hold asks back: those that do not stand are passed over, and
    /// nothing is counted for them.
    pub fn heartbeat_where(&mut self, node: NodeIdx, stands: Stands<'_>) -> Vec<Decision> {
        let mut decided = Vec::new();
        let (mut off_switch, mut assigned) = (0, 0);
        let limit = self.settings.maximum_offswitch_assignments.max(1);
        while let Some(proposal) = self.offer(node, stands, &mut decided) {
            off_switch += u32::from(proposal.kind == NodeType::OffSwitch);
            assigned += 1;
            let most = self.settings.maximum_container_assignments;
            // YARN would propose what was refused until the limit is reached; without one it would never end.
            let refused = decided.last().is_some_and(|decision| decision.verdict == Verdict::Refused);
            let below = if most == -1 { !refused } else { assigned < most };
            let more = self.settings.multiple_assignments && below;
            if off_switch >= limit || proposal.reserves || !more {
                break;
            }
        }
        decided
    }

    /// One offer of a node; the proposal if there was one, whether it was committed or not. A reservation ends the
    /// heartbeat.
    fn offer(&mut self, node: NodeIdx, stands: Stands<'_>, decided: &mut Vec<Decision>) -> Option<Proposal> {
        let row = self.nodes.get(node.at())?.as_ref()?;
        if let Some((app, key)) = row.reserved {
            self.serve_reservation(node, app, key, decided);
            return None;
        }
        if self.settings.calculator.containers(row.free, self.settings.minimum) <= 0 {
            return None;
        }
        let mut limits = Limits::of(self.cluster);
        let Offered::Proposed(proposal) = self.offer_queue(0, node, stands, &mut limits) else { return None };
        decided.push(self.commit(&proposal));
        Some(proposal)
    }

    /// The node's reservation is served, made again, or given up where nothing is outstanding for it any more.
    fn serve_reservation(&mut self, node: NodeIdx, at: AppIdx, key: SchedulerKey, decided: &mut Vec<Decision>) {
        let Some(queue) = self.app(at).map(|app| app.queue) else { return };
        let mut limits = Limits::of(self.cluster);
        self.note_limit(queue, limits.limit);
        if self.app(at).is_none_or(|app| app.count(key, Place::Any) == 0) {
            let held = self.key_mut(at, key).and_then(|asks| asks.reservations.get(&node)).copied();
            self.unreserve(at, key, node);
            decided.extend(held.map(|held| Decision {
                app: at,
                container: held.container,
                node,
                key,
                size: held.size,
                kind: NodeType::NodeLocal,
                verdict: Verdict::GivenUp,
                unreserved: None,
            }));
            return;
        }
        if let Offered::Proposed(proposal) = self.offer_key(at, key, node, &mut limits, true) {
            decided.push(self.commit(&proposal));
        }
    }

    fn offer_queue(&mut self, at: usize, node: NodeIdx, stands: Stands<'_>, limits: &mut Limits) -> Offered {
        if self.queues[at].children.is_empty() {
            return self.offer_leaf(at, node, stands, limits);
        }
        let sizing = self.sizing();
        let Sizing { calculator, cluster, minimum } = sizing;
        let queue = &self.queues[at];
        let room = self.nodes[node.at()].as_ref().is_some_and(|node| calculator.fits(minimum, node.free));
        if !room || !calculator.greater(cluster, queue.pending, Size::ZERO) {
            return Offered::Nothing;
        }
        let looks_on = self.settings.reservations_continue_looking;
        if !queue.may_use(calculator, cluster, limits, queue.reserved, looks_on) {
            return Offered::Nothing;
        }
        let mut result = Offered::Nothing;
        for child in sorted(&self.queues, at) {
            let mut below = self.queues[at].limits_of(&self.queues[child], sizing, limits, true);
            match self.offer_queue(child, node, stands, &mut below) {
                Offered::Proposed(proposal) => return Offered::Proposed(proposal),
                Offered::QueueLimit => {
                    let leaf = self.queues[child].children.is_empty();
                    let blocked = if leaf { below.headroom } else { below.blocked };
                    limits.blocked = limits.blocked.plus(calculator.max(cluster, blocked, Size::ZERO));
                    result = Offered::QueueLimit;
                }
                _ => {}
            }
        }
        result
    }

    fn offer_leaf(&mut self, at: usize, node: NodeIdx, stands: Stands<'_>, limits: &mut Limits) -> Offered {
        let (calculator, cluster) = (self.settings.calculator, self.cluster);
        self.note_limit(at, limits.limit);
        if !calculator.greater(cluster, self.queues[at].pending, Size::ZERO) {
            return Offered::Nothing;
        }
        self.queues[at].rerank(&mut self.apps);
        let looks_on = self.settings.reservations_continue_looking;
        let mut check_queue = true;
        let order: Vec<AppIdx> = self.queues[at].order().collect();
        for app in order {
            let Some(row) = self.apps[app.at()].as_ref() else { continue };
            let (reserved, user) = (row.reserved, Arc::clone(&row.user));
            let pending = calculator.greater(cluster, row.pending, Size::ZERO);
            if check_queue {
                if !self.queues[at].may_use(calculator, cluster, limits, reserved, looks_on) {
                    return Offered::Nothing;
                }
                check_queue = looks_on && reserved != Size::ZERO;
            }
            let user_limit = self.user_limit(at);
            if !pending || !self.user_may_use(at, &user, user_limit, reserved, limits) {
                continue;
            }
            match self.offer_app(app, node, stands, limits) {
                Offered::NextApp => {}
                Offered::NextKey => return Offered::Nothing,
                other => return other,
            }
        }
        Offered::Nothing
    }

    /// Whether the user stays within the limit, with what the application may give up of reservations.
    fn user_may_use(&self, queue: usize, user: &str, limit: Size, reserved: Size, limits: &mut Limits) -> bool {
        let (calculator, cluster) = (self.settings.calculator, self.cluster);
        let Some(user) = self.queues[queue].leaf.users.get(user) else { return false };
        limits.unreserve = Size::ZERO;
        if !calculator.greater(cluster, user.used, limit) {
            return true;
        }
        let looks_on = self.settings.reservations_continue_looking;
        if looks_on && !calculator.greater(cluster, user.used.minus(reserved), limit) {
            limits.unreserve = user.used.minus(limit);
            return true;
        }
        false
    }

    fn offer_app(&mut self, at: AppIdx, node: NodeIdx, stands: Stands<'_>, limits: &mut Limits) -> Offered {
        let Some(app) = self.app(at) else { return Offered::NextApp };
        let keys = app.keys.iter().filter(|(_, asks)| asks.outstanding).map(|(&key, _)| key);
        let keys: SmallVec<[SchedulerKey; 4]> = keys.filter(|&key| stands(at, key)).collect();
        for key in keys {
            match self.offer_key(at, key, node, limits, false) {
                Offered::NextKey => {}
                other => return other,
            }
        }
        Offered::NextApp
    }

    fn offer_key(
        &mut self,
        at: AppIdx,
        key: SchedulerKey,
        node: NodeIdx,
        limits: &mut Limits,
        reserved: bool,
    ) -> Offered {
        let calculator = self.settings.calculator;
        let (Some(app), Some(spot)) = (self.app(at), self.nodes[node.at()].as_ref()) else { return Offered::NextApp };
        let Some(any) = app.keys.get(&key).and_then(|asks| asks.row(Place::Any)) else { return Offered::NextKey };
        if !reserved {
            let looks_on = self.settings.reservations_continue_looking;
            if !looks_on && !self.wants_another(app, key, any.size) {
                return Offered::NextKey;
            }
            let room = if looks_on { limits.headroom.plus(app.reserved) } else { limits.headroom };
            if !calculator.fits(any.size, room) {
                return Offered::QueueLimit;
            }
        }
        if app.avoids.contains(&Place::Host(node)) || app.avoids.contains(&Place::Rack(spot.rack)) {
            return Offered::NextApp;
        }
        if let Some(asks) = self.key_mut(at, key) {
            asks.opportunities = asks.opportunities.saturating_add(1);
        }
        let offered = self.offer_rows(at, key, node, limits, reserved);
        let resets = self.settings.rack_locality_full_reset;
        if let Some(asks) = self.key_mut(at, key).filter(|_| !reserved) {
            match &offered {
                Offered::NextKey => asks.opportunities = asks.opportunities.saturating_sub(1),
                Offered::Proposed(Proposal { kind: NodeType::NodeLocal, .. }) => asks.opportunities = 0,
                Offered::Proposed(Proposal { kind: NodeType::RackLocal, .. }) if resets => asks.opportunities = 0,
                _ => {}
            }
        }
        offered
    }

    /// The rows that name the node, nearest first.
    fn offer_rows(&self, at: AppIdx, key: SchedulerKey, node: NodeIdx, limits: &Limits, reserved: bool) -> Offered {
        let (Some(app), Some(spot)) = (self.app(at), self.nodes[node.at()].as_ref()) else { return Offered::NextKey };
        let Some(asks) = app.keys.get(&key) else { return Offered::NextKey };
        let propose = |row: Row, kind| {
            let (reserves, unreserves) = self.fit(app, key, row.size, node, limits, reserved)?;
            Some(Offered::Proposed(Proposal {
                app: at,
                key,
                node,
                size: row.size,
                kind,
                reserves,
                reserved,
                unreserves,
            }))
        };
        let rack = asks.row(Place::Rack(spot.rack));
        if let Some(row) = asks.row(Place::Host(node))
            && rack.is_some()
            && let Some(offered) = propose(row, NodeType::NodeLocal)
        {
            return offered;
        }
        if let Some(row) = rack {
            if !asks.relaxes(Place::Rack(spot.rack)) {
                return Offered::NextKey;
            }
            if i64::from(asks.opportunities) > self.rack_delay()
                && let Some(offered) = propose(row, NodeType::RackLocal)
            {
                return offered;
            }
        }
        let Some(row) = asks.row(Place::Any) else { return Offered::NextKey };
        if !asks.relaxes(Place::Any) {
            return Offered::NextKey;
        }
        if reserved || self.may_go_anywhere(asks, row.count) {
            return propose(row, NodeType::OffSwitch).unwrap_or(Offered::NextApp);
        }
        Offered::NextApp
    }

    /// Offers to let go by before a rack-local container.
    fn rack_delay(&self) -> i64 {
        i64::from(self.node_count).min(i64::from(self.settings.node_locality_delay))
    }

    fn may_go_anywhere(&self, asks: &KeyAsks, outstanding: u32) -> bool {
        let places = asks.rows.len();
        if places == 1 {
            return true;
        }
        let (nodes, missed) = (i64::from(self.node_count), i64::from(asks.opportunities));
        let additional = self.settings.rack_locality_additional_delay;
        if additional > -1 {
            let delay = i64::from(self.settings.node_locality_delay) + i64::from(additional);
            return missed > delay.min(nodes);
        }
        let factor = (places.saturating_sub(1) as f32 / nodes as f32).min(1.0);
        (nodes as f32).min(outstanding as f32 * factor) < missed as f32
    }

    /// Whether a container of the size goes to the node: at once, or by reserving it; and where a reservation has to be
    /// given up for it.
    fn fit(
        &self,
        app: &App,
        key: SchedulerKey,
        size: Size,
        node: NodeIdx,
        limits: &Limits,
        reserved: bool,
    ) -> Option<(bool, Option<NodeIdx>)> {
        let (calculator, cluster) = (self.settings.calculator, self.cluster);
        let spot = self.nodes[node.at()].as_ref()?;
        if !calculator.fits(size, spot.total) {
            return None;
        }
        let another = self.wants_another(app, key, size);
        let beyond = calculator.max(cluster, size.minus(limits.headroom), limits.unreserve);
        let must_give_up = calculator.any_above_zero(beyond);
        let looks_on = self.settings.reservations_continue_looking && !reserved;
        if calculator.containers(spot.free, size) > 0 {
            if looks_on && (!another || must_give_up) {
                let needed = if must_give_up { beyond } else { size };
                let hash = |node: NodeIdx| self.nodes[node.at()].as_ref().map_or(0, |node| node.hash);
                let mut held = walked(app, key, hash);
                let (given_up, _) = held.find(|&(_, held)| calculator.fits(needed, held))?;
                return Some((false, Some(given_up)));
            }
            return Some((false, None));
        }
        let may_reserve = (another || reserved) && !(looks_on && must_give_up);
        may_reserve.then_some((true, None))
    }

    /// Whether more containers are outstanding under the key than reserved, with some credit for reservations that were
    /// made again and again, the less the larger the container.
    fn wants_another(&self, app: &App, key: SchedulerKey, size: Size) -> bool {
        let Some(asks) = app.keys.get(&key) else { return false };
        let (outstanding, held) = (i64::from(asks.count(Place::Any)), asks.reservations.len() as i64);
        let mut starvation = 0;
        if held > 0 {
            let (calculator, most) = (self.settings.calculator, self.settings.maximum);
            let of_largest = calculator.ratio(size, most);
            let bias = of_largest.min(calculator.ratio(most.minus(self.settings.minimum), most));
            starvation = ((asks.repeats as f32 / held as f32) * (1.0 - bias)) as i64;
        }
        starvation + outstanding > held
    }
}
