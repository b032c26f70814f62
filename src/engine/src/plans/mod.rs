//! Plans of recurring jobs in the daemon: kept by name, one of them in force, followed by policies that dispatch.
//!
//! # Code map
//! - `settings`: what operators set. `kept`: one plan that is kept, and its row of the journal.
//! - here: all that are kept, which plan is in force and which were before it; rows of the journal.
//! - `validate`: whether a plan can be kept and put in force on this cluster now.
//! - `serve`: calls of operators, and what policies are told.
//! - `note`: how a run, and an answer's hints, stand to the plan in force.
//! - `runs`: runs of recurring jobs, noted as they finish; `make`: a plan of what they let expect.
//! - `replicas`: where data goes that planned jobs will read; `homes`: that other recurring jobs will read; `input_homes`:
//!   what those jobs are told of it.
//!
//! # Invariants
//! - At most one plan is in force. It is put in force by name, never by being kept.
//! - What is in force, and what was before it, is in the journal's rows before anybody hears of it.
//! - A plan is advice: nothing is held back for it, and what it does not place goes as without one.

pub mod homes;
pub mod input_homes;
pub(crate) mod kept;
mod make;
mod note;
pub mod replicas;
mod runs;
pub(crate) mod serve;
pub(crate) mod settings;
mod validate;

pub use kept::{KeptPlan, SCHEDULE};
pub use make::{GeneratedPlan, PlanRequest, make, none_expected, recurrence_counts};
pub(crate) use note::{HintedContainers, run_key, stage_of};
pub use note::{PlanNote, PlannedRun};
pub(crate) use runs::RunTracker;
pub use settings::PlanSettings;
pub use validate::{ValidatedPlan, validate_plan};

use self::kept::{KEPT, kept_key};
use super::journal::{KeyBuilder, KeyPart, Op, Table, key_parts};
use super::refusal::Refusal;
use hintd_model::solve::nearest;
use hintd_model::units::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan that was put in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Its name.
    pub name: Arc<str>,
    /// When it came into force, the first time.
    pub since: Timestamp,
}

/// All plans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plans {
    kept: BTreeMap<Arc<str>, Arc<KeptPlan>>,
    /// The last is in force; rolling back goes to the one before it.
    activations: Vec<Activation>,
}

/// Activations that can be rolled back.
const ACTIVATIONS_MAX: usize = 16;
/// First parts of keys.
const ACTIVATIONS: &str = "activations";
/// Letters of a plan's name.
const NAME_MAX: usize = 128;

/// Whether operators may call a plan so.
///
/// # Errors
/// [`Refusal::Invalid`] for field `name`.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let fine = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let message = match name {
        "" => "a plan needs a name".to_owned(),
        long if long.len() > NAME_MAX => format!("{} letters, at most {NAME_MAX}", long.len()),
        name if !name.chars().all(fine) => format!("\"{name}\" has other letters than a-z, A-Z, 0-9, '.', '_' and '-'"),
        _ => return Ok(()),
    };
    Err(Refusal::Invalid { field: "name".to_owned(), message })
}

impl Plans {
    /// Takes a row of the journal in.
    pub(super) fn restore(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let parts = key_parts(key).ok_or("the key is none of ours")?;
        let read = |error: serde_json::Error| error.to_string();
        match parts.as_slice() {
            [KeyPart::Text(kind), KeyPart::Text(name)] if kind == KEPT => {
                let kept = KeptPlan::read(name.as_str().into(), value).map_err(read)?;
                self.kept.insert(Arc::clone(&kept.name), Arc::new(kept));
            }
            [KeyPart::Text(kind)] if kind == ACTIVATIONS => {
                self.activations = serde_json::from_slice(value).map_err(read)?;
            }
            _ => return Err("the key is none of ours".to_owned()),
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<KeptPlan>> {
        self.kept.values()
    }

    pub(super) fn get(&self, name: &str) -> Result<&Arc<KeptPlan>, Refusal> {
        self.kept.get(name).ok_or_else(|| {
            let nearest = nearest(name, self.kept.keys().map(|name| &**name)).map(str::to_owned);
            Refusal::Unknown { what: "plan", name: name.to_owned(), nearest }
        })
    }

    /// The plan in force, and since when.
    pub(super) fn in_force(&self) -> Option<(&Arc<KeptPlan>, Timestamp)> {
        let last = self.activations.last()?;
        Some((self.kept.get(&last.name)?, last.since))
    }

    /// Whether rolling back would come to this plan now.
    pub(super) fn is_before(&self, name: &str, now: Timestamp) -> bool {
        let before = self.before(now).and_then(|at| self.activations.get(at));
        before.is_some_and(|before| *before.name == *name)
    }

    /// Where rolling back goes: the last activation before the one in force of another plan that has not expired.
    fn before(&self, now: Timestamp) -> Option<usize> {
        let (last, earlier) = self.activations.split_last()?;
        let usable = |name: &Arc<str>| self.kept.get(name).is_some_and(|plan| !plan.has_expired(now));
        earlier.iter().rposition(|before| before.name != last.name && usable(&before.name))
    }

    /// Keeps a plan; what to write.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where another plan of that name is kept and is not to be replaced, or is in force; or where too
    /// many are kept.
    pub(super) fn keep(
        &mut self,
        plan: KeptPlan,
        replace: bool,
        most: usize,
        now: Timestamp,
    ) -> Result<Vec<Op>, Refusal> {
        let name = Arc::clone(&plan.name);
        let refuse = |why: String| Err(Refusal::Plan { name: Arc::clone(&name), why });
        let in_force = self.in_force().is_some_and(|(known, _)| known.name == name);
        match self.kept.get(&name) {
            Some(known) if known.plan == plan.plan => return Ok(Vec::new()),
            Some(_) if in_force => return refuse("is in force; submit the new one under another name".to_owned()),
            Some(_) if !replace => {
                return refuse("another plan of that name is kept; replace it, or choose another".to_owned());
            }
            _ => {}
        }
        let room = if self.kept.contains_key(&name) { self.kept.len() + 1 } else { most.max(1) };
        let Some(gone) = self.goes_for(room, now) else {
            return refuse(format!("{} plans are kept, and plan.kept is {most}; remove one", self.kept.len()));
        };
        let mut ops = Vec::new();
        for gone in gone {
            self.activations.retain(|active| active.name != gone);
            ops.push(self.put_activations());
            self.kept.remove(&gone);
            ops.push(Op::delete(Table::Plans, kept_key(&gone)));
        }
        ops.push(plan.put());
        self.kept.insert(name, Arc::new(plan));
        Ok(ops)
    }

    /// Which plans go so that fewer than `room` are left; `None`: too few may go. The oldest first, of those that have expired or
    /// that the daemon made itself, but for the one in force and the one before it.
    fn goes_for(&self, room: usize, now: Timestamp) -> Option<Vec<Arc<str>>> {
        let too_many = (self.kept.len() + 1).saturating_sub(room);
        let guides = |known: &KeptPlan| {
            self.in_force().is_some_and(|(active, _)| active.name == known.name) || self.is_before(&known.name, now)
        };
        let may_go = |known: &&Arc<KeptPlan>| (known.has_expired(now) || *known.origin == *SCHEDULE) && !guides(known);
        let mut gone: Vec<&Arc<KeptPlan>> = self.kept.values().filter(may_go).collect();
        gone.sort_by_key(|known| (known.kept_at, Arc::clone(&known.name)));
        let gone: Vec<Arc<str>> = gone.into_iter().take(too_many).map(|known| Arc::clone(&known.name)).collect();
        (gone.len() == too_many).then_some(gone)
    }

    /// Puts a plan in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where another is in force, has not expired and is not to be replaced.
    pub(super) fn activate(&mut self, name: &str, replace: bool, now: Timestamp) -> Result<Vec<Op>, Refusal> {
        let plan = Arc::clone(self.get(name)?);
        if let Some((active, _)) = self.in_force() {
            if active.name == plan.name {
                return Ok(Vec::new());
            }
            if !replace && !active.has_expired(now) {
                let left = active.plan.until.since(now).in_words();
                let why = format!("plan \"{}\" is in force for another {left}; replace it deliberately", active.name);
                return Err(Refusal::Plan { name: Arc::clone(&plan.name), why });
            }
        }
        self.activations.push(Activation { name: Arc::clone(&plan.name), since: now });
        let surplus = self.activations.len().saturating_sub(ACTIVATIONS_MAX);
        self.activations.drain(..surplus);
        Ok(vec![self.put_activations()])
    }

    /// Puts the plan before the one in force in force again, or none.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where none is in force.
    pub(super) fn roll_back(&mut self, to_none: bool, now: Timestamp) -> Result<Vec<Op>, Refusal> {
        if self.activations.is_empty() {
            let why = "none is in force".to_owned();
            return Err(Refusal::Plan { name: Arc::default(), why });
        }
        let before = if to_none { None } else { self.before(now) };
        self.activations.truncate(before.map_or(0, |at| at + 1));
        Ok(vec![self.put_activations()])
    }

    /// Forgets a plan.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where it is in force.
    pub(super) fn remove(&mut self, name: &str) -> Result<Vec<Op>, Refusal> {
        let plan = Arc::clone(self.get(name)?);
        if self.in_force().is_some_and(|(active, _)| active.name == plan.name) {
            let why = "is in force; roll it back first".to_owned();
            return Err(Refusal::Plan { name: Arc::clone(&plan.name), why });
        }
        self.kept.remove(&plan.name);
        self.activations.retain(|active| active.name != plan.name);
        Ok(vec![self.put_activations(), Op::delete(Table::Plans, kept_key(name))])
    }

    /// The row of that key as it is now; `None`: the key is none of ours.
    fn row(&self, key: &[u8]) -> Option<Op> {
        match key_parts(key)?.as_slice() {
            [KeyPart::Text(kind), KeyPart::Text(name)] if kind == KEPT => {
                Some(self.kept.get(name.as_str()).map_or_else(|| Op::delete(Table::Plans, key), |kept| kept.put()))
            }
            [KeyPart::Text(kind)] if kind == ACTIVATIONS => Some(self.put_activations()),
            _ => None,
        }
    }

    fn put_activations(&self) -> Op {
        let value = serde_json::to_vec(&self.activations).expect("activations are texts and numbers");
        Op::put(Table::Plans, KeyBuilder::new().text(ACTIVATIONS).build(), value)
    }
}
