//! What was proposed is checked once more and booked.

use super::allocator::Proposal;
use super::asks::{Live, Reservation};
use super::{AppIdx, CapacityScheduler, ContainerNo, Decision, NodeType, Place, Size, Verdict};
use hintd_model::units::{NodeIdx, SchedulerKey};
use std::sync::Arc;

impl CapacityScheduler {
    /// Books a proposal, or says that it was refused.
    pub(super) fn commit(&mut self, proposal: &Proposal) -> Decision {
        let Proposal { app, key, node, size, kind, .. } = *proposal;
        let mut decision =
            Decision { app, container: 0, node, key, size, kind, verdict: Verdict::Refused, unreserved: None };
        if !self.accepts(proposal) {
            return decision;
        }
        let again = proposal.reserves && proposal.reserved;
        (decision.container, decision.verdict) = match (proposal.reserves, proposal.reserved) {
            (true, true) => (self.reserve_again(app, key, node), Verdict::ReservedAgain),
            (true, false) => (self.reserve(proposal), Verdict::Reserved),
            (false, true) => {
                let container = self.drop_reservation(app, key, node).unwrap_or(0);
                self.allocate(proposal, container);
                (container, Verdict::FromReservation)
            }
            (false, false) => {
                let container = self.next_container(app);
                self.allocate(proposal, container);
                (container, Verdict::Allocated)
            }
        };
        if let Some(given_up) = proposal.unreserves.filter(|_| !again) {
            self.unreserve(app, key, given_up);
            decision.unreserved = Some(given_up);
        }
        // What comes from a reservation was counted when that was made.
        if !proposal.reserved {
            self.use_more(app, size);
            if let Some(queue) = self.app(app).map(|app| app.queue) {
                self.queues[queue].touch(app);
            }
        }
        decision
    }

    fn accepts(&mut self, proposal: &Proposal) -> bool {
        let calculator = self.settings.calculator;
        let Some(app) = self.app(proposal.app) else { return false };
        let Some(node) = self.nodes[proposal.node.at()].as_ref() else { return false };
        let (queue, user) = (app.queue, Arc::clone(&app.user));
        let Some(asks) = app.keys.get(&proposal.key) else { return false };
        let at_rack = asks.count(Place::Rack(node.rack)) > 0;
        let asked = match proposal.kind {
            _ if proposal.reserves => true,
            NodeType::NodeLocal => at_rack && asks.count(Place::Host(proposal.node)) > 0,
            NodeType::RackLocal => at_rack,
            NodeType::OffSwitch => true,
        };
        let fits = proposal.reserves || calculator.fits(proposal.size, node.free);
        if asks.count(Place::Any) == 0 || !asked || !fits {
            return false;
        }
        if proposal.reserved {
            return true;
        }
        let held = proposal.unreserves.and_then(|node| asks.reservations.get(&node));
        let released = held.map_or(Size::ZERO, |held| held.size);
        let limit = self.user_limit(queue);
        let Some(user) = self.queues[queue].leaf.users.get(&user) else { return false };
        if calculator.greater(self.cluster, user.used.minus(released), limit) {
            return false;
        }
        self.fits_up(queue, proposal.size.minus(released))
    }

    fn next_container(&mut self, app: AppIdx) -> ContainerNo {
        let Some(Some(app)) = self.apps.get_mut(app.at()) else { return 0 };
        app.containers += 1;
        app.containers
    }

    fn allocate(&mut self, proposal: &Proposal, container: ContainerNo) {
        let Proposal { app: at, key, node, size, kind, .. } = *proposal;
        if let Some(Some(app)) = self.apps.get_mut(at.at()) {
            app.live.insert(container, Live { node, size });
            app.used = app.used.plus(size);
        }
        if let Some(Some(row)) = self.nodes.get_mut(node.at()) {
            row.free = row.free.minus(size);
            row.containers.insert((at, container));
        }
        self.take_from_rows(at, key, node, kind);
    }

    /// One container less outstanding: at the row that it came by, and at those around it.
    fn take_from_rows(&mut self, at: AppIdx, key: SchedulerKey, node: NodeIdx, kind: NodeType) {
        let Some(rack) = self.nodes[node.at()].as_ref().map(|node| node.rack) else { return };
        let Some(asks) = self.key_mut(at, key) else { return };
        let Some(any) = asks.row(Place::Any) else { return };
        if kind == NodeType::NodeLocal {
            asks.decrement(Place::Host(node));
        }
        if kind != NodeType::OffSwitch {
            asks.decrement(Place::Rack(rack));
        }
        asks.decrement(Place::Any);
        if asks.count(Place::Any) == 0 {
            asks.outstanding = false;
            let done = self.app(at).filter(|app| app.asks_for_nothing()).map(|app| (app.queue, Arc::clone(&app.user)));
            if let Some((queue, user)) = done {
                self.queues[queue].leaf.users.asks_no_more(&user, at);
            }
        }
        self.add_pending(at, Size::ZERO.minus(any.size));
    }

    fn reserve(&mut self, proposal: &Proposal) -> ContainerNo {
        let Proposal { app, key, node, size, .. } = *proposal;
        let container = self.next_container(app);
        self.reservations += 1;
        let serial = self.reservations;
        if let Some(asks) = self.key_mut(app, key) {
            asks.reservations.insert(node, Reservation { container, size, serial });
            asks.reservations_peak = asks.reservations_peak.max(asks.reservations.len());
            asks.repeats = 0;
        }
        if let Some(Some(row)) = self.nodes.get_mut(node.at()) {
            row.reserved = Some((app, key));
        }
        self.add_reserved(app, size);
        container
    }

    fn reserve_again(&mut self, app: AppIdx, key: SchedulerKey, node: NodeIdx) -> ContainerNo {
        let Some(asks) = self.key_mut(app, key) else { return 0 };
        asks.repeats += 1;
        asks.reservations.get(&node).map_or(0, |held| held.container)
    }
}
