//! A map that is copied shard by shard: versions of it share what did not change.

use crate::units::{AttemptId, NodeIdx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A map in shards that are shared between generations, so that a change copies one shard and not the map.
#[derive(Debug, Clone)]
pub struct Shards<K, V> {
    shards: Vec<Arc<BTreeMap<K, V>>>,
}

/// Where a key's shard is.
pub trait Sharded: Ord + Clone {
    /// Any number; keys that come together should give different ones.
    fn spread(&self) -> usize;
}

impl Sharded for AttemptId {
    fn spread(&self) -> usize {
        self.application.sequence as usize
    }
}

impl Sharded for NodeIdx {
    fn spread(&self) -> usize {
        self.at()
    }
}

impl Sharded for Arc<str> {
    fn spread(&self) -> usize {
        self.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)))
    }
}

/// Shards of a map: at 10,000 keys a change copies some 80 entries.
const SHARDS: usize = 128;

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self { shards: Vec::new() }
    }
}

impl<K: Sharded, V: Clone> Shards<K, V> {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.shards.get(key.spread() % SHARDS)?.get(key)
    }

    /// Sets or, with `None`, removes a value.
    pub fn set(&mut self, key: &K, value: Option<V>) {
        match value {
            Some(value) => {
                if self.shards.is_empty() {
                    self.shards.resize_with(SHARDS, Arc::default);
                }
                Arc::make_mut(&mut self.shards[key.spread() % SHARDS]).insert(key.clone(), value);
            }
            None if self.get(key).is_some() => {
                Arc::make_mut(&mut self.shards[key.spread() % SHARDS]).remove(key);
            }
            None => {}
        }
    }

    /// The value of `key`, to be changed in place; its shard is copied if another version shares it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let shard = self.shards.get_mut(key.spread() % SHARDS)?;
        if shard.contains_key(key) { Arc::make_mut(shard).get_mut(key) } else { None }
    }

    /// The value of `key`, made if there is none, to be changed in place.
    pub fn get_or_default(&mut self, key: &K) -> &mut V
    where
        V: Default,
    {
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Arc::default);
        }
        Arc::make_mut(&mut self.shards[key.spread() % SHARDS]).entry(key.clone()).or_default()
    }

    /// The shards themselves, for who counts what versions share and what not.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<BTreeMap<K, V>>> {
        self.shards.iter()
    }

    /// Whether both share every shard, so that one is certainly what the other is.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.shards.len() == other.shards.len() && self.shards.iter().zip(&other.shards).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Values, in the order of [`Self::iter`].
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Entries, in no order that means anything, but always the same.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_copy_does_not_see_what_a_newer_one_changed() {
        let mut old = Shards::default();
        old.set(&NodeIdx(1), Some(1));
        old.set(&NodeIdx(129), Some(2));
        let mut new = old.clone();
        new.set(&NodeIdx(1), None);
        new.set(&NodeIdx(129), Some(3));
        assert_eq!((old.get(&NodeIdx(1)), old.get(&NodeIdx(129)), old.len()), (Some(&1), Some(&2), 2));
        assert_eq!((new.get(&NodeIdx(1)), new.get(&NodeIdx(129)), new.len()), (None, Some(&3), 1));
    }
}
