//! A journal keeps few pages in memory, however many it has written.
//!
//! A file of its own: it goes by the resident set of the process.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use hintd::store::{Journal, OpenOptions};
use hintd::telemetry::process::resident_bytes;
use hintd_engine::journal::{Batch, Op, Table, number_key};

/// Of so many rows each: 22 MB in all.
const COMMITS: u64 = 300;
const ROWS: u64 = 240;

#[test]
fn a_journal_keeps_few_pages_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(&folder.path().join("journal.redb"), OpenOptions::default()).unwrap();
    let resident = || resident_bytes(std::process::id()).unwrap();
    let before = resident();
    for commit in 0..COMMITS {
        let row = |id| Op::put(Table::Leases, number_key(id), vec![b'x'; 300]);
        let batch: Batch = (commit * ROWS..(commit + 1) * ROWS).map(row).collect();
        journal.write(&[batch]).unwrap();
    }
    let grew = resident().saturating_sub(before);
    // 9.4 MB; 27.3 where 32 MiB may be cached.
    assert!(grew < 16 << 20, "{grew} bytes after {COMMITS} commits of {ROWS} rows");
}
