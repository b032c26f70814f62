//! What an operator should know and no counter says, each with what to do about it.
//!
//! A notice has its kind from whoever words it, and its advice from its kind: the one can be worded anew without the other.

use std::fmt;

/// Something to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is of.
    pub kind: NoticeKind,
    /// What is the matter, in words, without a stop.
    pub text: String,
}

/// What a notice is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// `[yarn]` states something else than the ResourceManager.
    SchedulerDiffers,
    /// The ResourceManager does not tell of applications or its scheduler.
    SchedulerSilent,
    /// The ResourceManager has no node.
    NoNode,
    /// The ResourceManager does not list nodes that it listed.
    NodesMissing,
    /// DataNodes report hosts as slow.
    SlowHosts,
    /// The network file makes no network.
    NetworkRefused,
    /// Hosts that have no place in the network, for they are called as a switch is.
    NetworkHostsLeftOut,
    /// Hosts that the network file names twice.
    NetworkHostsTwice,
    /// Racks that hang on another rack's switch.
    NetworkRacksOnRacks,
    /// The configuration on disk is refused.
    ConfigurationRefused,
    /// A plan is in force that nobody follows.
    PlanNotFollowed,
    /// Queues that are not named are refused.
    QueuesRefused,
    /// Applications are held out, and nobody says when they end.
    HoldoutUnheard,
}

impl Notice {
    /// A notice in words.
    #[must_use]
    pub fn new(kind: NoticeKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl NoticeKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SchedulerDiffers,
        Self::SchedulerSilent,
        Self::NoNode,
        Self::NodesMissing,
        Self::SlowHosts,
        Self::NetworkRefused,
        Self::NetworkHostsLeftOut,
        Self::NetworkHostsTwice,
        Self::NetworkRacksOnRacks,
        Self::ConfigurationRefused,
        Self::PlanNotFollowed,
        Self::QueuesRefused,
        Self::HoldoutUnheard,
    ];

    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SchedulerDiffers => "scheduler_differs",
            Self::SchedulerSilent => "scheduler_silent",
            Self::NoNode => "no_node",
            Self::NodesMissing => "nodes_missing",
            Self::SlowHosts => "slow_hosts",
            Self::NetworkRefused => "network_refused",
            Self::NetworkHostsLeftOut => "network_hosts_left_out",
            Self::NetworkHostsTwice => "network_hosts_twice",
            Self::NetworkRacksOnRacks => "network_racks_on_racks",
            Self::ConfigurationRefused => "configuration_refused",
            Self::PlanNotFollowed => "plan_not_followed",
            Self::QueuesRefused => "queues_refused",
            Self::HoldoutUnheard => "holdout_unheard",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::SchedulerDiffers => {
                "Write the ResourceManager's figure into [yarn] and restart hintd; without that section hintd takes all of them from it."
            }
            Self::SchedulerSilent => {
                "[yarn] counts until it does: look whether user of [resource_manager] may see that, and at the ResourceManager's log."
            }
            Self::NoNode => "See yarn node -list -all: NodeManagers have to register with it.",
            Self::NodesMissing => "Start their NodeManagers again, or wait until they count as gone.",
            Self::SlowHosts => {
                "Look at the network card, cable and switch port of these hosts, and at their load; hintctl latency shows by how much they are late."
            }
            Self::NetworkRefused => {
                "Fix the network file; hintctl network diff FILE says what is wrong with it and what it would change."
            }
            Self::NetworkHostsLeftOut => "Give the switch another name in the network file, then hintctl reload.",
            Self::NetworkHostsTwice => "Leave each host one name in the network file, then hintctl reload.",
            Self::NetworkRacksOnRacks => {
                "Declare the switch above the racks in the network file, of tier core or aggregation, then hintctl reload."
            }
            Self::ConfigurationRefused => {
                "Fix it before the next restart, which would fail: hintd --check --config FILE names every problem."
            }
            Self::PlanNotFollowed => {
                "Set plan.follow = true, or take the plan out of force: hintctl plan rollback --to-none."
            }
            Self::HoldoutUnheard => "Set [resource_manager] or [history_server], or holdout = 0.",
            Self::QueuesRefused => {
                "Add [queues.\"*\"] to the configuration with the mode that other queues are to have, then hintctl reload."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_of_notice_has_a_token_and_advice_of_its_own_that_is_a_sentence() {
        let tokens: BTreeSet<&str> = NoticeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let advice: BTreeSet<&str> = NoticeKind::ALL.iter().map(|kind| kind.advice()).collect();
        assert_eq!((tokens.len(), advice.len()), (NoticeKind::ALL.len(), NoticeKind::ALL.len()));
        for said in advice {
            assert!(said.ends_with('.') && !said.contains("what it names"), "{said}");
        }
    }
}
