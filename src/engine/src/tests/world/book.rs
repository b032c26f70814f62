//! Leases as the journal's operations tell of them, with every grant and every end counted: an oracle for the ledger.

use super::naive::{Amount, sum};
use crate::journal::{KeyPart, Op, Table, key_parts};
use crate::{Counter, Effect, Effects};
use hintd_model::units::{LeaseId, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Rows by table and key.
pub(super) type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

pub(super) fn apply(rows: &mut Rows, batch: &[Op]) {
    for op in batch {
        match op {
            Op::Put { table, key, value } => drop(rows.insert((*table, key.clone()), value.clone())),
            Op::Delete { table, key } => drop(rows.remove(&(*table, key.clone()))),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) host: String,
    pub(super) size: Amount,
    pub(super) expires: Timestamp,
    pub(super) attempt: String,
    pub(super) request: String,
    pub(super) group: String,
    pub(super) confirmed: bool,
}

/// What one call of the engine did to leases.
#[derive(Debug, Default)]
pub(super) struct LeaseChanges {
    pub(super) granted: BTreeSet<LeaseId>,
    pub(super) ended: BTreeMap<LeaseId, Row>,
    pub(super) counts: BTreeMap<Counter, u64>,
}

impl LeaseChanges {
    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.counts.get(&counter).copied().unwrap_or(0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) live: BTreeMap<LeaseId, Row>,
    /// By this life of the process, and by earlier ones where it was written: of what was not, nobody knows.
    ever: BTreeSet<LeaseId>,
    /// Everything that was meant to be written.
    pub(super) rows: Rows,
}

pub(super) fn lease_key(key: &[u8]) -> LeaseId {
    match key_parts(key).as_deref() {
        Some(&[KeyPart::Number(id)]) => LeaseId(id),
        other => panic!("{other:?} is no lease's key"),
    }
}

pub(super) fn read(value: &[u8]) -> Row {
    let row: Value = serde_json::from_slice(value).unwrap();
    let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("no {name} in {row}")).to_owned();
    let size = &row["size"];
    Row {
        host: text("host"),
        size: (size["memory_mb"].as_u64().unwrap(), size["vcores"].as_u64().unwrap()),
        expires: Timestamp(row["expires"].as_u64().unwrap()),
        attempt: text("attempt"),
        request: text("request"),
        group: text("group"),
        confirmed: row.get("confirmed").is_some_and(|container| !container.is_null()),
    }
}

impl Book {
    /// Takes what a call wants to be written and counted. `started`: the call recovered an engine, whose leases are not
    /// counted.
    pub(super) fn take(&mut self, effects: &Effects, started: bool) -> LeaseChanges {
        let mut changes = LeaseChanges::default();
        for op in &effects.journal {
            match op {
                Op::Put { table: Table::Leases, key, value } => {
                    let (id, row) = (lease_key(key), read(value));
                    if let Some(before) = self.live.insert(id, row.clone()) {
                        let same = |row: &Row| (row.host.clone(), row.size, row.attempt.clone(), row.request.clone());
                        assert_eq!(same(&before), same(&row), "a lease became another one");
                    } else {
                        assert!(self.ever.insert(id), "lease {id} was granted twice, or came back");
                        changes.granted.insert(id);
                    }
                }
                Op::Delete { table: Table::Leases, key } => {
                    let id = lease_key(key);
                    assert!(self.ever.contains(&id), "lease {id} ends and was never granted");
                    if let Some(row) = self.live.remove(&id) {
                        changes.ended.insert(id, row);
                    }
                }
                _ => {}
            }
        }
        apply(&mut self.rows, &effects.journal);
        for effect in &effects.out {
            if let Effect::Count(counter, by) = effect {
                *changes.counts.entry(*counter).or_default() += by;
            }
        }
        if !started {
            changes.check();
        }
        changes
    }

    /// The process starts anew with what is on the disk.
    pub(super) fn restart(&mut self, disk: &Rows, written: &BTreeSet<LeaseId>) {
        self.ever = written.clone();
        self.rows = disk.clone();
        let leases = disk.iter().filter(|((table, _), _)| *table == Table::Leases);
        self.live = leases.map(|((_, key), value)| (lease_key(key), read(value))).collect();
        assert!(self.live.keys().all(|id| self.ever.contains(id)), "a lease on the disk that was never granted");
    }

    /// Room that leases take on a host.
    pub(super) fn leased(&self, host: &str) -> Amount {
        self.live.values().filter(|row| row.host == host).fold((0, 0), |all, row| sum(all, row.size))
    }
}

impl LeaseChanges {
    /// Each lease that began or ended is counted once, under one kind.
    fn check(&self) {
        assert_eq!(self.granted.len() as u64, self.count(Counter::LeasesGranted), "grants are journalled and counted");
        let kinds = [
            Counter::LeasesBound,
            Counter::LeasesReleased,
            Counter::LeasesWithdrawn,
            Counter::LeasesExpired,
            Counter::LeasesUndone,
        ];
        let counted: u64 = kinds.iter().map(|&kind| self.count(kind)).sum();
        assert_eq!(self.ended.len() as u64, counted, "every end is journalled, and counted once: {:?}", self.counts);
    }
}
