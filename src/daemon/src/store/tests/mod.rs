//! The journal and its group commit against real files, full disks, power cuts and SIGKILL.

mod commit;
mod crash;
mod files;

use super::{Journal, OpenOptions, Recovered};
use hintd_engine::journal::{Batch, Op, Table, number_key};

/// Two rows that belong together, as a lease and the answer that names it do.
fn pair(id: u64) -> Batch {
    vec![
        Op::put(Table::Leases, number_key(id), format!("{{\"lease\":{id}}}")),
        Op::put(Table::Answers, number_key(id), format!("{{\"answer\":{id}}}")),
    ]
}

fn open(path: &std::path::Path) -> (Journal, Recovered) {
    Journal::open(path, OpenOptions::default()).unwrap()
}

/// The ids whose two rows are both there; panics over a half one.
fn whole_pairs(recovered: &Recovered) -> std::collections::BTreeSet<u64> {
    let ids = |table: Table| -> std::collections::BTreeSet<u64> {
        let id = |key: &[u8]| u64::from_be_bytes(key[1..].try_into().unwrap());
        recovered.rows[&table].iter().map(|(key, _)| id(key)).collect()
    };
    let leases = ids(Table::Leases);
    assert_eq!(leases, ids(Table::Answers), "a batch is there by half");
    leases
}
