//! One finding of the doctor: what was checked, what it means, what to do, and where to read more.

use serde::Serialize;

/// Where each check is explained: a page of docs/, which packages install beside their other documents.
#[allow(missing_docs)] // their names are those of what they explain
pub mod page {
    pub const DOCTOR: &str = "docs/operations.md#when-something-is-wrong-doctor";
    pub const UPGRADE: &str = "docs/operations.md#upgrade";
    pub const WATCH: &str = "docs/operations.md#watch";
    pub const DOWN: &str = "docs/operations.md#hintddown";
    pub const CONFIGURE: &str = "docs/operations.md#configure";
    pub const RELOAD: &str = "docs/operations.md#hintdreloadrefused";
    pub const NO_HEARTBEATS: &str = "docs/operations.md#hintdnoheartbeats";
    pub const FEED_STOPPED: &str = "docs/operations.md#hintdfeedstopped";
    pub const FEED_REFUSED: &str = "docs/operations.md#hintdfeedrefused";
    pub const RESOURCE_MANAGER: &str = "docs/operations.md#hintdresourcemanagersilent";
    pub const RESOURCE_MANAGER_SETUP: &str = "docs/operations.md#from-a-resourcemanager";
    pub const YARN_DELAYS: &str = "docs/yarn.md#what-it-does-to-requests";
    pub const YARN_PROCESSOR: &str = "docs/yarn.md#from-nothing-to-hinted-applications";
    pub const NAME_NODE: &str = "docs/operations.md#hintdnamenodesilent";
    pub const HISTORY_SERVER: &str = "docs/operations.md#hintdhistoryserversilent";
    pub const FROM_NAME_NODE: &str = "docs/operations.md#from-a-namenode";
    pub const NODES: &str = "docs/operations.md#hintdnodessilent";
    pub const NETWORK: &str = "docs/network.md#looking-and-changing";
    pub const RACKS: &str = "docs/network.md#who-believes-what-of-racks";
    pub const LINK_DOWN: &str = "docs/operations.md#hintdlinkdown";
    pub const CUT: &str = "docs/operations.md#hintdpairscut";
    pub const CONTROLLER: &str = "docs/operations.md#hintdcontrolleraway";
    pub const WATCHER: &str = "docs/operations.md#hintdwatchersilent";
    pub const ASKED: &str = "docs/yarn.md";
    pub const FOLLOWED: &str = "docs/operations.md#are-hints-followed";
    pub const WORTH: &str = "docs/operations.md#what-are-hints-worth";
    pub const PLANS: &str = "docs/plans.md";
    pub const SCALE_UP_OUT: &str = "docs/policies.md#scale_up_out";
    pub const REFUSED: &str = "docs/operations.md#common-refusals";
    pub const SIZE: &str = "docs/operations.md#size";
    pub const LOG: &str = "docs/operations.md#hintdloglinesdropped";
    pub const JOURNAL: &str = "docs/operations.md#hintdjournalunwritable";
    pub const RECOVER: &str = "docs/operations.md#recover";
    pub const TRUST: &str = "docs/operations.md#whom-it-trusts";
}

/// How a check ended, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong.
    Ok,
    /// What it takes is not there; `finding` says what.
    NotChecked,
    /// Hints are worse than they could be, or will be soon.
    Warning,
    /// Hints are missing or wrong.
    Problem,
}

impl Verdict {
    /// As people read it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotChecked => "not checked",
            Self::Warning => "WARNING",
            Self::Problem => "PROBLEM",
        }
    }
}

/// See the module. Several may be of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// One sentence.
    pub finding: String,
    /// What to do; empty: nothing.
    pub advice: String,
    /// Where more is said.
    pub page: &'static str,
}

impl Check {
    /// All is well.
    pub fn ok(name: &'static str, page: &'static str, finding: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, finding: finding.into(), advice: String::new(), page }
    }

    /// What it takes is not there.
    pub fn not_checked(name: &'static str, page: &'static str, why: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::NotChecked, finding: why.into(), advice: String::new(), page }
    }

    /// Worse than it could be.
    pub fn warning(
        name: &'static str,
        page: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, verdict: Verdict::Warning, finding: finding.into(), advice: advice.into(), page }
    }

    /// Missing or wrong.
    pub fn problem(
        name: &'static str,
        page: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, verdict: Verdict::Problem, finding: finding.into(), advice: advice.into(), page }
    }
}

/// The first few names, and how many more there are.
#[must_use]
pub fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `1 host`, `2 hosts`.
#[must_use]
pub fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
