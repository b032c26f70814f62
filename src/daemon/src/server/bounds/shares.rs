//! What one connection has of a listener's budgets, and those budgets.

use super::budget::{Budget, Share};
use super::pace::{Outgoing, Pace};
use crate::runtime::options::Listen;
use std::sync::Arc;

/// What one connection holds.
#[derive(Debug, Clone)]
pub(in crate::server) struct Shares {
    pub(in crate::server) inbound: Share,
    pub(in crate::server) outbound: Outgoing,
}

/// The budgets of a listener.
#[derive(Debug, Clone)]
pub(in crate::server) struct Budgets {
    inbound: Arc<Budget>,
    outbound: Arc<Budget>,
    pace: Pace,
}

impl Budgets {
    pub(in crate::server) fn new(listen: &Listen) -> Self {
        let pace = Pace { unread: listen.unread, bytes_per_s: listen.read_bytes_per_s };
        Self { inbound: Budget::new(listen.inbound_bytes), outbound: Budget::new(listen.outbound_bytes), pace }
    }

    /// Those of a new connection.
    pub(in crate::server) fn shares(&self) -> Shares {
        Shares { inbound: self.inbound.share(), outbound: Outgoing::new(self.outbound.share(), self.pace) }
    }
}
