//! Amounts of resources as files spell them.

use super::super::resource::{AMOUNT_MAX, MEMORY_NAME, NamedResource, Resource, ResourceKinds, VCORES_NAME};
use super::text::Problems;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An amount of every kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// MB.
    pub memory_mb: u64,
    /// Virtual cores.
    #[serde(default)]
    pub vcores: u64,
    /// Further kinds by YARN's name, for example `yarn.io/gpu`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u64>,
}

impl Amount {
    /// Whether nothing of any kind.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.memory_mb == 0 && self.vcores == 0 && self.resources.values().all(|&amount| amount == 0)
    }

    pub(super) fn of_row(row: &Resource, kinds: &ResourceKinds) -> Self {
        Self::of(&NamedResource::from_row(row, kinds))
    }

    pub(super) fn of(named: &NamedResource) -> Self {
        let resources = named.named.iter().map(|(name, amount)| (name.to_string(), *amount));
        Self { memory_mb: named.memory_mb, vcores: named.vcores, resources: resources.collect() }
    }

    /// Checked, in the core's form.
    pub(super) fn named(&self, field: &str, problems: &mut Problems) -> NamedResource {
        let own = [("memory_mb", self.memory_mb), ("vcores", self.vcores)];
        let further = self.resources.iter().map(|(name, &amount)| (name.as_str(), amount));
        for (name, amount) in own.into_iter().chain(further) {
            if amount > AMOUNT_MAX {
                problems.add(format_args!("{field}.{name}"), format_args!("{amount} is more than {AMOUNT_MAX}"));
            }
        }
        for name in [MEMORY_NAME, VCORES_NAME] {
            if self.resources.contains_key(name) {
                problems.add(format_args!("{field}.resources"), format_args!("\"{name}\" has a field of its own"));
            }
        }
        let named = self.resources.iter().map(|(name, &amount)| (Arc::from(name.as_str()), amount));
        NamedResource { memory_mb: self.memory_mb, vcores: self.vcores, named: named.collect() }
    }

    /// Checked, with memory in it.
    pub(super) fn size(&self, field: &str, problems: &mut Problems) -> NamedResource {
        if self.memory_mb == 0 {
            problems.add(format_args!("{field}.memory_mb"), "is 0");
        }
        self.named(field, problems)
    }
}
