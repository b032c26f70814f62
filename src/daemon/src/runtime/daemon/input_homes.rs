//! Homes of applications' input: who is told of them, and where containers came then.

use super::Daemon;
use super::search::policies;
use dashmap::DashMap;
use hintd_engine::plans::input_homes::{InputHomes, InputTasks};
use hintd_engine::{Generation, Mode, Proof, Refusal, TaskEvent, TaskWhat};
use hintd_model::units::{AttemptId, HostName, QueueName, RackPath, Timestamp};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// Groups of attempts that are remembered; beyond it the one goes that was told the longest ago.
pub(in crate::runtime) const TOLD_MAX: usize = 1_000;

/// A group of an attempt.
pub type AttemptGroup = (AttemptId, Arc<str>);

/// A question for the homes of an application's input.
#[derive(Debug)]
pub struct InputHomesQuestion {
    /// Who asks.
    pub of: AttemptGroup,
    /// Its queue.
    pub queue: QueueName,
    /// Its tasks that read the input.
    pub tasks: InputTasks,
}

/// A group that was told of homes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomedGroup {
    /// Its homes.
    pub racks: Vec<RackPath>,
    /// Containers that came there since, and elsewhere.
    pub at_home: u64,
    /// See `at_home`.
    pub elsewhere: u64,
    last_told: Timestamp,
}

/// A container that came.
#[derive(Debug)]
pub(in crate::runtime) struct NewContainer {
    of: AttemptGroup,
    host: HostName,
}

/// Groups that were told of homes: requests write them, the engine's thread counts in them, a group at a time.
#[derive(Debug, Default)]
pub(in crate::runtime) struct ToldHomes(DashMap<AttemptGroup, HomedGroup>);

impl ToldHomes {
    /// Who asks again while none of its own containers is outstanding keeps others at home that go by them.
    fn told_again(&self, attempt: AttemptId, group: &Arc<str>, now: Timestamp) {
        if let Some(mut told) = self.0.get_mut(&(attempt, Arc::clone(group))) {
            told.last_told = now;
        }
    }

    fn told(&self, attempt: AttemptId, group: &Arc<str>, racks: Vec<RackPath>, now: Timestamp) {
        let fresh = HomedGroup { racks: Vec::new(), at_home: 0, elsewhere: 0, last_told: now };
        {
            let mut told = self.0.entry((attempt, Arc::clone(group))).or_insert(fresh);
            (told.racks, told.last_told) = (racks, now);
        }
        if self.0.len() > TOLD_MAX {
            let oldest = self.0.iter().min_by_key(|told| (told.last_told, told.key().clone()));
            let oldest = oldest.map(|told| told.key().clone());
            oldest.map(|key| self.0.remove(&key));
        }
    }

    /// What of an event counts: a container, of whom and where.
    pub(in crate::runtime) fn container(event: &TaskEvent) -> Option<NewContainer> {
        match &event.what {
            TaskWhat::Allocated { host, .. } => {
                Some(NewContainer { of: (event.attempt, Arc::clone(&event.group)), host: host.clone() })
            }
            _ => None,
        }
    }

    /// A container came; whether it came at home, where its group was told of any.
    pub(in crate::runtime) fn came(&self, container: &NewContainer, generation: &Generation) -> Option<bool> {
        let mut told = self.0.get_mut(&container.of)?;
        let snapshot = &generation.snapshot;
        let node = snapshot.statics.find(container.host.as_str())?;
        let at_home = told.racks.contains(&snapshot.statics.racks[snapshot.rack(node).at()]);
        *(if at_home { &mut told.at_home } else { &mut told.elsewhere }) += 1;
        Some(at_home)
    }

    /// Racks that the attempt stays in: it was told of them, and most containers came there. That nobody asks any more says
    /// nothing: who has all of its receivers does not.
    pub(in crate::runtime) fn stays(&self, attempt: AttemptId) -> Vec<RackPath> {
        let there = self.0.iter().filter(|told| told.key().0 == attempt && told.at_home > told.elsewhere);
        let racks: BTreeSet<RackPath> = there.flat_map(|told| told.racks.clone()).collect();
        racks.into_iter().collect()
    }

    fn of(&self, attempt: AttemptId) -> Vec<(Arc<str>, HomedGroup)> {
        let own = self.0.iter().filter(|told| told.key().0 == attempt);
        let mut own: Vec<_> = own.map(|told| (Arc::clone(&told.key().1), told.value().clone())).collect();
        own.sort_by(|one, other| one.0.cmp(&other.0));
        own
    }
}

impl Daemon {
    /// The homes of an attempt's input, and whether its queue is in shadow.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue that the configuration does not have; [`Refusal::NoToken`],
    /// [`Refusal::BadToken`]; [`Refusal::NotListed`] where a ResourceManager lists attempts; [`Refusal::Unavailable`].
    pub async fn input_homes(&self, question: InputHomesQuestion, proof: Proof) -> Result<(InputHomes, bool), Refusal> {
        let InputHomesQuestion { of: (attempt, group), queue, tasks } = question;
        let settings = self.settings();
        let (mode, policy) = settings.choose(&queue, "", None)?;
        let proof = self.listed_proof(attempt, proof).await?;
        self.may_tell(attempt, proof).await?;
        let generation = self.generation();
        let application = (attempt.application, queue.as_str());
        let participation =
            settings.engine.worth.participation(application, tasks.recurring_key.as_ref(), &generation.stopped);
        let now = self.clock().now();
        let found = match (mode, participation.withheld()) {
            (Mode::Off, _) => InputHomes::QueueOff,
            (Mode::On, Some(reason)) => InputHomes::Withheld(reason),
            _ => {
                // Copied, so that whoever writes data waits for no walk of racks.
                let given = |key: &str| {
                    let homes = self.0.data_homes.lock().unwrap_or_else(PoisonError::into_inner);
                    homes.given(attempt.application, key, now).map(<[_]>::to_vec)
                };
                // What the queue's policy says: others place what is asked for, and gather nobody.
                let places = policies(&settings, policy).0.as_place_data();
                let gathers = |key: &Arc<str>| {
                    let mut homes = self.0.data_homes.lock().unwrap_or_else(PoisonError::into_inner);
                    homes.gather(&generation, (attempt, key, &tasks), places?, now)
                };
                InputHomes::of(&tasks, given, gathers, &generation)
            }
        };
        self.metrics().input_homes(found.as_str());
        let told_homes = &self.0.shared.told_homes;
        match (&found, mode, tasks.outstanding) {
            (InputHomes::Homes { .. }, Mode::On, 0) => told_homes.told_again(attempt, &group, now),
            (InputHomes::Homes { racks, .. }, Mode::On, _) => {
                let racks = racks.iter().map(|(rack, _)| rack.clone()).collect();
                told_homes.told(attempt, &group, racks, now);
            }
            _ => {}
        }
        Ok((found, mode == Mode::Shadow))
    }

    /// Groups of the attempt that were told of homes, ascending.
    #[must_use]
    pub fn homed_groups(&self, attempt: AttemptId) -> Vec<(Arc<str>, HomedGroup)> {
        self.0.shared.told_homes.of(attempt)
    }
}
