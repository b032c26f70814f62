//! What an application is told of the homes of its input, so that its tasks are asked for there.

use super::replicas::usable;
use crate::decision::WithheldReason;
use crate::generation::Generation;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, HostName, Micros, RackIdx, RackPath};
use hintd_policy::terms::link_time::LinkRates;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tasks go without a container at home for so long at least before they are asked for elsewhere: about as long as a reduce of a
/// gigabyte works.
pub const PATIENCE_MIN: Micros = Micros::from_secs(30);
/// And for so long at most.
pub const PATIENCE_MAX: Micros = Micros::from_secs(3_600);

/// How long a job's tasks are best waited for at home. Where its receivers run elsewhere, all that its senders left at home has
/// to leave over the homes' uplinks, `uplinks` bytes a second together: so long.
#[must_use]
pub fn patience(shuffle: Bytes, uplinks: f64) -> Micros {
    let seconds = (shuffle.as_f64() / uplinks.max(1.0)).min(PATIENCE_MAX.as_secs_f64());
    Micros((seconds * 1e6) as u64).max(PATIENCE_MIN)
}

/// Bytes a second that the uplinks of those racks carry together, out of them; infinite where one can't be full.
#[must_use]
pub fn uplinks(snapshot: &Snapshot, racks: impl IntoIterator<Item = RackIdx>) -> f64 {
    let rates = LinkRates::capacities(snapshot);
    racks.into_iter().map(|rack| rates.rack(rack).up).sum()
}

/// Tasks that read an application's input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputTasks {
    /// The recurring job that the application is a run of.
    pub recurring_key: Option<Arc<str>>,
    /// Containers that are still to come; 0: not asked for yet, and nobody says where the input lies.
    pub outstanding: u32,
    /// Of these, those that are asked for in a rack; one that names several racks counts in each.
    pub by_rack: BTreeMap<RackPath, u32>,
    /// Who asks can keep tasks in racks where their input is not.
    pub may_gather: bool,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputHomes {
    /// Where they are best asked for.
    Homes {
        /// The racks, and usable nodes of each.
        racks: Vec<(RackPath, Vec<HostName>)>,
        /// Tasks go without a container there for so long before they are better asked for elsewhere ([`patience`]).
        patience: Micros,
        /// The input lies wherever HDFS put it, and tasks are gathered there all the same.
        gathered: bool,
    },
    /// The queue is off.
    QueueOff,
    /// The application gets no advice.
    Withheld(WithheldReason),
    /// It is the run of no recurring job.
    NoKey,
    /// Data of this job was sent nowhere.
    NoneGiven,
    /// None of them has a usable node.
    RacksGone,
    /// Not all that is outstanding is asked for there: its data lies elsewhere.
    NotAtHome,
}

impl InputHomes {
    /// Stable token.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Homes { gathered: false, .. } => "homes",
            Self::Homes { gathered: true, .. } => "gathered",
            Self::QueueOff => "queue_off",
            Self::Withheld(reason) => reason.as_str(),
            Self::NoKey => "no_key",
            Self::NoneGiven => "none_given",
            Self::RacksGone => "racks_gone",
            Self::NotAtHome => "not_at_home",
        }
    }

    /// The homes of the tasks' input. `given`: where data of a job was last said to go ([`super::homes::DataHomes::given`]);
    /// `gathers`: where a job is gathered whose input is not there, or was sent nowhere ([`super::homes::DataHomes::gather`]).
    #[must_use]
    pub fn of(
        tasks: &InputTasks,
        given: impl FnOnce(&str) -> Option<Vec<RackPath>>,
        gathers: impl FnOnce(&Arc<str>) -> Option<Vec<RackPath>>,
        generation: &Generation,
    ) -> Self {
        let snapshot = &*generation.snapshot;
        let Some(key) = &tasks.recurring_key else { return Self::NoKey };
        let otherwise = match given(key).map(|racks| usable_homes(snapshot, &racks)) {
            None => Self::NoneGiven,
            Some(homes) if homes.is_empty() => Self::RacksGone,
            Some(homes) if tasks.have_input_in(&homes) => return Self::homes((homes, false), key, generation),
            Some(_) => Self::NotAtHome,
        };
        let Some(racks) = tasks.may_gather.then(|| gathers(key)).flatten() else { return otherwise };
        match usable_homes(snapshot, &racks) {
            homes if homes.is_empty() => Self::RacksGone,
            homes => Self::homes((homes, true), key, generation),
        }
    }

    fn homes((racks, gathered): (Vec<UsableHome>, bool), key: &Arc<str>, generation: &Generation) -> Self {
        let snapshot = &*generation.snapshot;
        let last = generation.history.get(key).and_then(|job| job.last);
        let shuffle = last.map_or(Bytes::ZERO, |run| run.shuffle);
        let home = |(rack, _): &UsableHome| snapshot.statics.by_rack.get(rack).copied();
        let patience = patience(shuffle, generation.scans.fabric().up(snapshot, racks.iter().filter_map(home)));
        Self::Homes { racks, patience, gathered }
    }
}

/// A rack and its usable nodes.
type UsableHome = (RackPath, Vec<HostName>);

/// Those of the racks that have any.
fn usable_homes(snapshot: &Snapshot, racks: &[RackPath]) -> Vec<UsableHome> {
    let home = |rack: &RackPath| {
        let index = *snapshot.statics.by_rack.get(rack)?;
        let hosts: Vec<_> = usable(snapshot, index).map(|node| snapshot.host(node).clone()).collect();
        (!hosts.is_empty()).then(|| (rack.clone(), hosts))
    };
    racks.iter().filter_map(home).collect()
}

impl InputTasks {
    /// Whether all that are outstanding are asked for in those racks.
    fn have_input_in(&self, homes: &[UsableHome]) -> bool {
        let there = homes.iter().filter_map(|(rack, _)| self.by_rack.get(rack)).map(|&count| u64::from(count));
        there.sum::<u64>() >= u64::from(self.outstanding)
    }
}
