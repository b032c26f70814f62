//! Why routes change.

use super::messages::Phase;
use hintd_model::cluster::Change;
use std::sync::Arc;

/// Why routes change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    pub(crate) what: &'static str,
    /// The link, switch, host or decision.
    pub(crate) subject: Arc<str>,
}

impl Cause {
    /// A cause that is not the network's.
    pub fn new(what: &'static str, subject: impl Into<Arc<str>>) -> Self {
        Self { what, subject: subject.into() }
    }

    /// The cause that a change of the model is, if it is one of the network.
    pub(crate) fn of(change: &Change) -> Option<Self> {
        let cause = |what, subject: &Arc<str>| Some(Self { what, subject: Arc::clone(subject) });
        match change {
            Change::Link { link, up: Some(true), .. } => cause("link_up", &link.0),
            Change::Link { link, up: Some(false), .. } => cause("link_down", &link.0),
            Change::Link { link, up: None, .. } => cause("link_capacity", &link.0),
            Change::LinkRemoved(link) => cause("link_removed", &link.0),
            Change::Switch { name, up: true } => cause("switch_up", name),
            Change::Switch { name, up: false } => cause("switch_down", name),
            Change::Middlebox { name, up: Some(true), .. } => cause("box_up", name),
            Change::Middlebox { name, up: Some(false), .. } => cause("box_down", name),
            Change::Middlebox { name, up: None, .. } => cause("box_capacity", name),
            Change::Chains { .. } => cause("chains", &"".into()),
            Change::Network(_) => cause("topology", &"".into()),
            _ => None,
        }
    }
}

/// Changes that are told together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangeBatch {
    pub(crate) phase: Phase,
    pub(crate) cause: Cause,
}
