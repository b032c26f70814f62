//! What is compared in each cell.

use hintd_engine::holding::HoldSettings;
use hintd_simulator::SimSettings;

/// What hints may do, as settings of a run.
pub(super) struct Lever {
    /// As `--levers` has it.
    pub(super) name: &'static str,
    /// What it does beside who places, as rows of tables have it; empty: nothing.
    pub(super) beside: &'static str,
    /// For the page.
    pub(super) about: &'static str,
    /// Heavy shuffles take turns.
    pub(super) holds: bool,
    /// Jobs recur: hintd knows earlier runs.
    pub(super) history: bool,
    /// Whether the policy says where data goes as well.
    pub(super) places_data: bool,
    /// Whether it does anything where YARN places by itself.
    pub(super) by_itself: bool,
}

const WHERE: Lever = Lever {
    name: "where",
    beside: "",
    about: "asks name the policy's hosts and racks; nothing is known of earlier runs",
    holds: false,
    history: false,
    places_data: false,
    by_itself: false,
};

/// What levers are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeverSettings {
    /// The share of jobs that recur, and how far earlier runs are off, where a lever knows them.
    pub(super) recurring: (f64, f64),
    /// How receivers are held, where a lever holds them.
    pub(super) hold: HoldSettings,
}

/// All there are, a line each.
pub(super) const LEVERS: &[Lever] = &[
    WHERE,
    Lever {
        name: "when",
        beside: "receivers held",
        about: "the same, and receivers of heavy shuffles are held, as in queues with `hold = true`; also where YARN places by itself",
        holds: true,
        by_itself: true,
        ..WHERE
    },
    Lever {
        name: "history",
        beside: "earlier runs known",
        about: "as `where`, and hintd knows an earlier run of recurring jobs; those that shuffle much are gathered in few racks (`gathers` of the processor)",
        history: true,
        ..WHERE
    },
    Lever {
        name: "history-when",
        beside: "earlier runs known, receivers held",
        about: "as `history`, and receivers of heavy shuffles are held: all that needs no plug-in of the NameNode",
        holds: true,
        history: true,
        ..WHERE
    },
    Lever {
        name: "data",
        beside: "data placed",
        about: "as `history`, but none is gathered: input of recurring jobs was written where the policy says",
        history: true,
        places_data: true,
        ..WHERE
    },
    Lever {
        name: "data-when",
        beside: "data placed, receivers held",
        about: "as `data`, and receivers of heavy shuffles are held",
        holds: true,
        history: true,
        places_data: true,
        ..WHERE
    },
];

impl Lever {
    /// What is compared, as people read it; `policy`: who places, none where YARN does so by itself.
    pub(super) fn row(&self, policy: Option<&str>) -> String {
        let places = policy.map_or_else(|| "YARN's own places".to_owned(), |policy| format!("places by {policy}"));
        if self.beside.is_empty() { places } else { format!("{places}, {}", self.beside) }
    }

    /// A run by it.
    pub(super) fn set(&self, settings: &mut SimSettings, common: &LeverSettings) {
        settings.hold = self.holds.then_some(common.hold);
        if self.history {
            (settings.recurring, settings.history_error) = common.recurring;
            settings.data_placement = self.places_data;
        }
    }
}

/// Names of all levers.
pub(super) fn names() -> Vec<&'static str> {
    LEVERS.iter().map(|lever| lever.name).collect()
}

/// Those of these names.
pub(super) fn chosen(names: &[String]) -> Vec<&'static Lever> {
    LEVERS.iter().filter(|lever| names.iter().any(|name| name == lever.name)).collect()
}

/// One way to run a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// YARN alone.
    Alone,
    /// YARN alone, heartbeats at other phases.
    Phases,
    /// YARN alone, links that never are the bottleneck.
    Free,
    /// Hinted: place among the policies, none where YARN places by itself; place among the levers.
    Hinted(Option<usize>, usize),
    /// Hinted by the last of the levers, less a part of it: place among the policies; place among the parts.
    Without(usize, usize),
    /// Hinted by what earlier runs are told wrong: place among the policies; among the levers, one with history; among the lies.
    Lied(usize, usize, usize),
}

impl Variant {
    /// All of a cell, in their order.
    pub(super) fn all(policies: usize, levers: &[&Lever], parts: usize, lies: usize) -> Vec<Self> {
        let of = |policy: Option<usize>| {
            let does = move |lever: &usize| policy.is_some() || levers[*lever].by_itself;
            (0..levers.len()).filter(does).map(move |lever| Self::Hinted(policy, lever))
        };
        let hinted = (0..policies).map(Some).chain([None]).flat_map(of);
        let without = (0..policies).flat_map(|policy| (0..parts).map(move |part| Self::Without(policy, part)));
        let knowing = (0..policies)
            .flat_map(|policy| (0..levers.len()).map(move |lever| (policy, lever)))
            .filter(|&(_, lever)| levers[lever].history);
        let lied = knowing.flat_map(|(policy, lever)| (0..lies).map(move |lie| Self::Lied(policy, lever, lie)));
        [Self::Alone, Self::Phases, Self::Free].into_iter().chain(hinted).chain(without).chain(lied).collect()
    }
}

/// The seed of other phases: no run of this command has it for anything else.
pub(super) const fn other_phases(seed: u64) -> u64 {
    u64::MAX - seed
}
