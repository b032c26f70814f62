//! One lease: room on one node for one container, promised for a time.

use super::journal::{Op, Table, number_key};
use hintd_model::cluster::{NamedResource, Resource, ResourceKinds};
use hintd_model::units::{
    AttemptId, ContainerId, DecisionId, HostName, LeaseId, NodeIdx, RequestId, SchedulerKey, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which; older leases have smaller ids.
    pub id: LeaseId,
    /// The decision that granted it.
    pub decision: DecisionId,
    /// The request that was answered.
    pub request: RequestId,
    /// Whose.
    pub attempt: AttemptId,
    /// For a container of this group.
    pub group: Arc<str>,
    /// Scheduler key of the group.
    pub key: SchedulerKey,
    /// Where.
    pub node: NodeIdx,
    /// How much.
    pub size: Resource,
    /// When it ends by itself; later once its container is allocated.
    pub expires: Timestamp,
    /// The container that YARN allocated for it, once the application said so.
    pub confirmed: Option<ContainerId>,
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseEnd {
    /// Its container is in what the node reports.
    Bound,
    /// Given back, or YARN allocated elsewhere, or its application ended, or its task where nodes name no containers.
    Released,
    /// Foreign use left no room for it, or its node is gone.
    Withdrawn,
    /// Nobody used it in time.
    Expired,
}

impl LeaseEnd {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Released => "released",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
        }
    }
}

/// A lease as the journal keeps it: names for indexes, which another process gives anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseRow {
    decision: DecisionId,
    request: RequestId,
    attempt: AttemptId,
    group: Arc<str>,
    key: SchedulerKey,
    pub(crate) host: HostName,
    pub(crate) size: NamedResource,
    pub(crate) expires: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confirmed: Option<ContainerId>,
}

impl LeaseRow {
    /// The lease, once host and kinds have their positions.
    pub(crate) fn into_lease(self, id: LeaseId, node: NodeIdx, size: Resource) -> Lease {
        Lease {
            id,
            decision: self.decision,
            request: self.request,
            attempt: self.attempt,
            group: self.group,
            key: self.key,
            node,
            size,
            expires: self.expires,
            confirmed: self.confirmed,
        }
    }
}

impl Lease {
    /// The operation that remembers it.
    pub(crate) fn put(&self, host: &HostName, kinds: &ResourceKinds) -> Op {
        let row = LeaseRow {
            decision: self.decision,
            request: self.request.clone(),
            attempt: self.attempt,
            group: Arc::clone(&self.group),
            key: self.key,
            host: host.clone(),
            size: NamedResource::from_row(&self.size, kinds),
            expires: self.expires,
            confirmed: self.confirmed,
        };
        let value = serde_json::to_vec(&row).expect("a lease has only texts and numbers");
        Op::put(Table::Leases, number_key(self.id.0), value)
    }

    /// The operation that forgets it.
    pub(crate) fn delete(id: LeaseId) -> Op {
        Op::delete(Table::Leases, number_key(id.0))
    }
}
