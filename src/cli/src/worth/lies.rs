//! Earlier runs that are told wrong, all of them by the same factor, to see what that costs.

use hintd_simulator::{HistoryLie, SimSettings};

/// What takes all of them in turn.
pub(super) const ALL: &str = "all";

/// A lie.
pub(super) struct Lie {
    /// As `--lies` has it.
    pub(super) name: &'static str,
    /// What is so by it, for the page.
    pub(super) about: &'static str,
    lie: HistoryLie,
}

/// All there are, a line each.
pub(super) const LIES: &[Lie] = &[
    Lie {
        name: "bytes-x10",
        about: "hintd is told that every earlier run read and shuffled ten times as much, by ten times as many tasks",
        lie: HistoryLie { bytes: 10.0, ..HistoryLie::NONE },
    },
    Lie {
        name: "bytes-x0.1",
        about: "hintd is told that every earlier run read and shuffled a tenth as much, by a tenth of the tasks",
        lie: HistoryLie { bytes: 0.1, ..HistoryLie::NONE },
    },
    Lie {
        name: "times-x5",
        about: "hintd is told that tasks of every earlier run took five times as long",
        lie: HistoryLie { times: 5.0, ..HistoryLie::NONE },
    },
];

impl Lie {
    /// A run by it.
    pub(super) const fn set(&self, settings: &mut SimSettings) {
        settings.history_lie = self.lie;
    }

    /// A row's name; `told`: that of the row without the lie.
    pub(super) fn row(&self, told: &str) -> String {
        format!("{told}, {}", self.name)
    }
}

/// Names of all lies, and what takes them all.
pub(super) fn names() -> Vec<&'static str> {
    LIES.iter().map(|lie| lie.name).chain([ALL]).collect()
}

/// The lies of these names.
pub(super) fn chosen(names: &[String]) -> Vec<&'static Lie> {
    LIES.iter().filter(|lie| names.iter().any(|name| name == lie.name || name == ALL)).collect()
}
