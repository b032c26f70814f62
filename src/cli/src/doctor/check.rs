//! One finding of the doctor: what was checked, what it means, what to do, and where to read more.

use super::super::printable::one_line;
use serde::Serialize;

/// Where each check is explained: a page of docs/, which packages install beside their other documents.
pub(super) mod page {
    pub(crate) const DOCTOR: &str = "docs/operations.md#when-something-is-wrong-doctor";
    pub(crate) const UPGRADE: &str = "docs/operations.md#upgrade";
    pub(crate) const WATCH: &str = "docs/operations.md#watch";
    pub(crate) const DOWN: &str = "docs/operations.md#hintddown";
    pub(crate) const CONFIGURE: &str = "docs/operations.md#configure";
    pub(crate) const RELOAD: &str = "docs/operations.md#hintdreloadrefused";
    pub(crate) const NO_HEARTBEATS: &str = "docs/operations.md#hintdnoheartbeats";
    pub(crate) const FEED_STOPPED: &str = "docs/operations.md#hintdfeedstopped";
    pub(crate) const FEED_REFUSED: &str = "docs/operations.md#hintdfeedrefused";
    pub(crate) const RESOURCE_MANAGER: &str = "docs/operations.md#hintdresourcemanagersilent";
    pub(crate) const NAME_NODE: &str = "docs/operations.md#hintdnamenodesilent";
    pub(crate) const HISTORY_SERVER: &str = "docs/operations.md#hintdhistoryserversilent";
    pub(crate) const FROM_NAME_NODE: &str = "docs/operations.md#from-a-namenode";
    pub(crate) const NODES: &str = "docs/operations.md#hintdnodessilent";
    pub(crate) const NETWORK: &str = "docs/network.md#looking-and-changing";
    pub(crate) const RACKS: &str = "docs/network.md#who-believes-what-of-racks";
    pub(crate) const LINK_DOWN: &str = "docs/operations.md#hintdlinkdown";
    pub(crate) const CUT: &str = "docs/operations.md#hintdpairscut";
    pub(crate) const CONTROLLER: &str = "docs/operations.md#hintdcontrolleraway";
    pub(crate) const WATCHER: &str = "docs/operations.md#hintdwatchersilent";
    pub(crate) const ASKED: &str = "docs/yarn.md";
    pub(crate) const FOLLOWED: &str = "docs/operations.md#are-hints-followed";
    pub(crate) const WORTH: &str = "docs/operations.md#what-are-hints-worth";
    pub(crate) const PLANS: &str = "docs/plans.md";
    pub(crate) const REFUSED: &str = "docs/operations.md#who-misbehaves";
    pub(crate) const SIZE: &str = "docs/operations.md#size";
    pub(crate) const LOG: &str = "docs/operations.md#hintdloglinesdropped";
    pub(crate) const JOURNAL: &str = "docs/operations.md#hintdjournalunwritable";
    pub(crate) const TRUST: &str = "docs/operations.md#whom-it-trusts";
}

/// How a check ended, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// What it takes is not there; `finding` says what.
    NotChecked,
    /// Hints are worse than they could be, or will be soon.
    Warning,
    /// Hints are missing or wrong.
    Problem,
}

impl Verdict {
    pub(super) const fn words(self) -> &'static str {
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
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    /// One sentence.
    pub(super) finding: String,
    /// What to do; empty: nothing.
    pub(super) advice: String,
    pub(super) page: &'static str,
}

impl Check {
    pub(super) fn ok(name: &'static str, page: &'static str, finding: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, finding: finding.into(), advice: String::new(), page }
    }

    pub(super) fn not_checked(name: &'static str, page: &'static str, why: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::NotChecked, finding: why.into(), advice: String::new(), page }
    }

    pub(super) fn warning(
        name: &'static str,
        page: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, verdict: Verdict::Warning, finding: finding.into(), advice: advice.into(), page }
    }

    pub(super) fn problem(
        name: &'static str,
        page: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, verdict: Verdict::Problem, finding: finding.into(), advice: advice.into(), page }
    }

    /// For people: verdict, name and finding; below it what to do and where to read more, unless all is well.
    pub(super) fn text(&self) -> String {
        let Self { name, verdict, finding, advice, page } = self;
        let first = format!("{:<11}  {name:<16}  {}", verdict.words(), one_line(finding));
        if *verdict < Verdict::Warning {
            return first;
        }
        let advice = one_line(advice);
        format!("{first}\n{:<31}-> {advice} ({page})", "")
    }
}

/// The first few names, and how many more there are.
pub(super) fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `1 host`, `2 hosts`.
pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
