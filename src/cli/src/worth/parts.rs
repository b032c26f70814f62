//! What can be left out of the fullest lever, one part at a time, to see what it is worth.

use super::super::failure::Failure;
use super::variants::{LEVERS, Lever};
use hintd_engine::holding::HoldSettings;
use hintd_model::units::Micros;
use hintd_simulator::{Part, SimSettings};

/// What takes all parts of the lever in turn.
pub(super) const ALL: &str = "all";
/// Longer than any job waits.
const NEVER: Micros = Micros::from_secs(1_000_000_000);

/// A part that is left out.
pub(super) struct Without {
    /// As `--without` has it.
    pub(super) name: &'static str,
    /// What is so without it, for the page.
    pub(super) about: &'static str,
    /// Whether a lever has it.
    is_of: fn(&Lever) -> bool,
    /// Leaves it out.
    set: fn(&mut SimSettings),
}

/// All there are, a line each.
pub(super) const PARTS: &[Without] = &[
    Without {
        name: "guard",
        about: "hints are given whether they do any good or not (`placer.guard = false`)",
        is_of: |_| true,
        set: |settings| _ = settings.without.insert(Part::Guard),
    },
    Without {
        name: "receivers",
        about: "YARN places the receivers of jobs that have no homes; nobody is asked",
        is_of: |_| true,
        set: |settings| _ = settings.without.insert(Part::Receivers),
    },
    Without {
        name: "forecast",
        about: "receivers are placed without knowledge of earlier runs",
        is_of: |lever| lever.history,
        set: |settings| _ = settings.without.insert(Part::Forecast),
    },
    Without {
        name: "blocks",
        about: "maps of jobs whose input has no homes are asked for anywhere from the beginning",
        is_of: |_| true,
        set: |settings| _ = settings.without.insert(Part::Blocks),
    },
    Without {
        name: "homes",
        about: "input of recurring jobs lies wherever HDFS put it, and those that shuffle much are gathered",
        is_of: |lever| lever.places_data,
        set: |settings| settings.data_placement = false,
    },
    Without {
        name: "rack-width",
        about: "a job's input goes to one rack wherever the policy says one or several",
        is_of: |lever| lever.places_data,
        set: |settings| _ = settings.without.insert(Part::RackWidth),
    },
    Without {
        name: "stay",
        about: "no job is kept to the racks where its input was written or where it is gathered: its tasks are asked for anywhere from the beginning",
        is_of: |lever| lever.history,
        set: |settings| _ = settings.without.insert(Part::Stay),
    },
    Without {
        name: "home-patience",
        about: "tasks wait 30 s for a container at home, however much their job shuffles",
        is_of: |lever| lever.history,
        set: |settings| _ = settings.without.insert(Part::HomePatience),
    },
    Without {
        name: "hold",
        about: "no receivers are held",
        is_of: |lever| lever.holds,
        set: |settings| settings.hold = None,
    },
    Without {
        name: "order",
        about: "all heavy shuffles ask at once, each for its share of containers",
        is_of: |lever| lever.holds,
        set: |settings| settings.hold.iter_mut().for_each(|hold| (hold.at_once, hold.next_share) = (u32::MAX, 1.0)),
    },
    Without {
        name: "cap",
        about: "those whose turn it is ask for as many receivers as they like (`hold.share`, `hold.home_share` and `hold.next_share` 1)",
        is_of: |lever| lever.holds,
        set: |settings| {
            let all = |hold: &mut HoldSettings| (hold.share, hold.home_share, hold.next_share) = (1.0, 1.0, 1.0);
            settings.hold.iter_mut().for_each(all);
        },
    },
    Without {
        name: "next-share",
        about: "the next in the order asks for as many receivers as the first (`hold.next_share` 1)",
        is_of: |lever| lever.holds,
        set: |settings| settings.hold.iter_mut().for_each(|hold| hold.next_share = 1.0),
    },
    Without {
        name: "aging",
        about: "the order is by bytes left alone, however long a job has waited; `hold.longest` still bounds it",
        is_of: |lever| lever.holds,
        set: |settings| settings.hold.iter_mut().for_each(|hold| hold.patience = NEVER),
    },
    Without {
        name: "home-lanes",
        about: "jobs that stay in one rack take turns with all others",
        is_of: |lever| lever.holds && lever.history,
        set: |settings| _ = settings.without.insert(Part::HomeLanes),
    },
];

impl Without {
    /// A run without it.
    pub(super) fn set(&self, settings: &mut SimSettings) {
        (self.set)(settings);
    }

    /// A row's name; `whole`: that of the row with all parts.
    pub(super) fn row(&self, whole: &str) -> String {
        format!("{whole}, without {}", self.name)
    }
}

/// Names of all parts, and what takes them all.
pub(super) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).chain([ALL]).collect()
}

/// The parts of these names, left out of `lever`.
///
/// # Errors
/// [`Failure::Input`] for one that the lever has not: its row would be that of the lever.
pub(super) fn chosen(names: &[String], lever: &Lever) -> Result<Vec<&'static Without>, Failure> {
    let asked = |part: &&Without| names.iter().any(|name| name == part.name);
    if let Some(part) = PARTS.iter().filter(asked).find(|part| !(part.is_of)(lever)) {
        let with: Vec<&str> = LEVERS.iter().filter(|lever| (part.is_of)(lever)).map(|lever| lever.name).collect();
        let message = format!(
            "--without {} is of levers {}; the fullest of --levers is {}",
            part.name,
            with.join(", "),
            lever.name
        );
        return Err(Failure::Input(message));
    }
    let all = names.iter().any(|name| name == ALL);
    Ok(PARTS.iter().filter(|part| asked(part) || (all && (part.is_of)(lever))).collect())
}
