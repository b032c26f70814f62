//! Groups that hints name, each once.

use super::hint::Hint;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Groups of a decision's hints, each once, in the order in which hints name them first.
#[derive(Debug, Default)]
pub struct GroupNames<'d> {
    names: Vec<&'d Arc<str>>,
    positions: BTreeMap<&'d str, u32>,
}

impl<'d> GroupNames<'d> {
    /// Groups of these hints.
    pub(crate) fn of(hints: &'d [Hint]) -> Self {
        let mut groups = Self::default();
        for hint in hints {
            // Hints of one group follow each other.
            if groups.names.last().is_some_and(|last| **last == hint.group) {
                continue;
            }
            let next = u32::try_from(groups.names.len()).unwrap_or(u32::MAX);
            if *groups.positions.entry(&hint.group).or_insert(next) == next {
                groups.names.push(&hint.group);
            }
        }
        groups
    }

    /// The names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'d Arc<str>> {
        self.names.iter().copied()
    }

    /// Where one of them stands.
    ///
    /// # Panics
    /// For a group that no hint of the decision names.
    #[must_use]
    pub fn index(&self, group: &str) -> u32 {
        self.positions[group]
    }
}
