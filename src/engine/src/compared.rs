//! What hints were compared by with where YARN puts the containers by itself: which links, on which hosts, and why hints
//! were given that gain nothing.

use hintd_model::units::{HostName, LinkName, RackPath};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The links that a placement's costs are of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CostLinks {
    /// The one that is done last by hosts' links and racks' uplinks alone; `None`: no bytes are known, or none cross a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<CostLink>,
    /// The same on the network's own paths: what `worst_link_s` is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<CostLink>,
}

impl CostLinks {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.busiest.is_none() && self.worst.is_none()
    }
}

/// A link, which way and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostLink {
    /// Its id; of a rack with several uplinks the first of these, which are taken as one. Empty: no network is known.
    pub links: Vec<LinkName>,
    /// How many links they are.
    pub links_total: u32,
    /// Where its bytes come from: an end of the link, or the rack that several are uplinks of. Empty: what is above that rack.
    pub from: Arc<str>,
    /// Where they go.
    pub to: Arc<str>,
    /// Seconds until it has carried them.
    pub seconds: f64,
}

/// Where YARN would put the containers by itself, as it was estimated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BaselinePlaces {
    /// By group in the request's order, of each group the hosts with most containers first, and of these not all.
    pub places: Vec<BaselinePlace>,
    /// Containers that are not among them.
    pub more_containers: u64,
    /// Hosts of groups that are not among them.
    pub more_hosts: u32,
}

/// Containers of a group on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselinePlace {
    /// The group's name.
    pub group: Arc<str>,
    /// Where.
    pub host: HostName,
    /// Its rack.
    pub rack: RackPath,
    /// How many.
    pub count: u32,
}

/// Why hints are given whatever they gain: the guard, which keeps back those that are no better than YARN's own choice, has no say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unguarded {
    /// `placer.guard` is off, or tasks that were lost with their node are placed anew.
    Off,
    /// The policy seeks something else than short transfers.
    Policy,
    /// All or none of the containers are wanted: a gang.
    Gang,
    /// The request bounds where its containers may be.
    Constraints,
    /// A plan in force has racks for them.
    Plan,
    /// Chains of middleboxes are declared.
    Chains,
    /// A group is asked for in parts, and all of it has room: where YARN puts each is chance.
    Parts,
    /// The hints find room for more containers.
    MoreRoom,
}

impl Unguarded {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Policy => "policy",
            Self::Gang => "gang",
            Self::Constraints => "constraints",
            Self::Plan => "plan",
            Self::Chains => "chains",
            Self::Parts => "parts",
            Self::MoreRoom => "more_room",
        }
    }

    /// The same in words, after "for".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Off => {
                "placer.guard is off, or tasks that were lost with their node are placed anew, which have to have a place"
            }
            Self::Policy => "the policy seeks something else than short transfers, which the guard can't judge",
            Self::Gang => "all or none of the containers are wanted (a gang), which YARN can't do by itself",
            Self::Constraints => "the request bounds where its containers may be, which YARN can't do by itself",
            Self::Plan => "the plan in force has racks for them",
            Self::Chains => "chains of middleboxes are declared, which YARN does not know",
            Self::Parts => {
                "the group is asked for in parts, and all of it has room: where YARN puts one after the other is chance, so that the comparison may be wrong either way"
            }
            Self::MoreRoom => "they find room for more containers than YARN does",
        }
    }
}
