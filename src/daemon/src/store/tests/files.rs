//! The file: what opens, what is refused, and that a refused file is left as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::{Database, TableDefinition};
use tempfile::tempdir;

use super::super::faults::FaultyDisk;
use super::super::journal::{FORMAT, FORMAT_VERSION, VERSION, definition, seal, unseal};
use super::super::{Journal, OpenOptions, Rows, StoreError};
use super::{open, pair, whole_pairs};
use hintd_engine::journal::{KeyBuilder, Op, Table, number_key, text_key};

fn refusal(path: &Path) -> StoreError {
    Journal::open(path, OpenOptions::default()).expect_err("the file should be refused")
}

/// Refused with an error that names the path, and not a byte changed.
fn refused_untouched(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = refusal(path);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(fs::read(path).unwrap(), before, "the refused file was changed");
    error
}

#[test]
fn rows_written_are_read_back_in_order_and_deleted_ones_are_gone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, recovered) = open(&path);
    assert!(recovered.created);
    assert!(recovered.rows.values().all(Vec::is_empty));
    journal.write(&[pair(3), pair(1)]).unwrap();
    journal
        .write(&[pair(2), vec![Op::delete(Table::Answers, number_key(3)), Op::delete(Table::Leases, number_key(3))]])
        .unwrap();
    // The last operation on a row wins, within one batch as well.
    journal
        .write(&[vec![Op::put(Table::Meta, text_key("id"), "1"), Op::put(Table::Meta, text_key("id"), "2")]])
        .unwrap();
    journal.write(&[vec![Op::delete(Table::History, text_key("never there"))]]).unwrap();
    drop(journal);
    let (_journal, recovered) = open(&path);
    assert!(!recovered.created);
    assert_eq!(whole_pairs(&recovered), [1, 2].into());
    let leases = &recovered.rows[&Table::Leases];
    assert_eq!(leases[0], (number_key(1), b"{\"lease\":1}".to_vec()));
    assert_eq!(leases[1], (number_key(2), b"{\"lease\":2}".to_vec()));
    assert_eq!(recovered.rows[&Table::Meta], [(text_key("id"), b"2".to_vec())]);
}

#[test]
fn a_fifo_in_the_journals_place_is_refused_and_not_waited_for() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = Journal::open(&path, OpenOptions::default()).expect_err("it is no file");
    let said = format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
    assert!(said.contains("journal") && said.contains("it is a FIFO, not a regular file"), "{said}");
}

#[test]
fn a_journal_whose_pages_were_overwritten_is_damaged_and_no_reason_to_panic() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, _) = open(&path);
    for number in 0..200 {
        journal.write(&[pair(number)]).unwrap();
    }
    drop(journal);
    let mut bytes = fs::read(&path).unwrap();
    for at in (4096..bytes.len() - 64).step_by(512) {
        for (offset, byte) in bytes[at..at + 64].iter_mut().enumerate() {
            *byte = (at / 512 * 31 + offset * 17) as u8;
        }
    }
    fs::write(&path, bytes).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_journal_can_be_read_by_the_daemons_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let _open = open(&path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a draft stayed behind");
}

#[test]
fn a_dump_is_json_lines_and_hides_nothing() {
    let (_disk, mut journal) = FaultyDisk::with_journal();
    let key = KeyBuilder::new().text("app_1").number(7).build();
    let batch = vec![
        Op::put(Table::Attempts, key, "{\"queue\":\"root\"}"),
        Op::put(Table::Leases, number_key(1), "{\"node\":\"n1\"}"),
        Op::put(Table::Meta, vec![9_u8], vec![0xFF_u8]),
    ];
    journal.write(&[batch]).unwrap();
    let mut out = Vec::new();
    journal.dump(&mut out).unwrap();
    let expected = concat!(
        "{\"key\":[1],\"table\":\"leases\",\"value\":{\"node\":\"n1\"}}\n",
        "{\"key\":[\"app_1\",7],\"table\":\"attempts\",\"value\":{\"queue\":\"root\"}}\n",
        "{\"key_hex\":\"09\",\"table\":\"meta\",\"value_hex\":\"ff\"}\n",
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_second_open_finds_the_journal_locked() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (first, _) = open(&path);
    let error = refusal(&path);
    assert!(matches!(&error, StoreError::Locked { path: named } if *named == path), "{error}");
    drop(first);
    open(&path);
}

#[test]
fn a_file_of_something_else_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("notes.txt");
    for (bytes, found) in [(&b"dear diary"[..], "dear diary"), (b"", "an empty file"), (&[0; 5000], "\\x00\\x00")] {
        fs::write(&path, bytes).unwrap();
        let error = refused_untouched(&path);
        assert!(matches!(error, StoreError::NotAJournal { .. }), "{error}");
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn another_programs_database_is_refused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("other.redb");
    let table: TableDefinition<'_, u64, u64> = TableDefinition::new("theirs");
    let db = Database::create(&path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(table).unwrap().insert(1, 2).unwrap();
    txn.commit().unwrap();
    drop(db);
    let error = refusal(&path);
    assert!(error.to_string().contains("another program"), "{error}");
    let txn = redb::ReadableDatabase::begin_read(&Database::open(&path).unwrap()).unwrap();
    assert_eq!(txn.open_table(table).unwrap().get(1).unwrap().unwrap().value(), 2);
}

fn set_version(path: &Path, version: &str) {
    let db = Database::open(path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(FORMAT).unwrap().insert(VERSION, version).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_newer_format_is_refused_and_a_nonsensical_one_is_damage() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    open(&path);
    set_version(&path, &(FORMAT_VERSION + 1).to_string());
    let error = refusal(&path);
    assert!(matches!(error, StoreError::NewerVersion { found, known, .. } if found == known + 1), "{error}");
    for nonsense in ["one", "0"] {
        set_version(&path, nonsense);
        let error = refusal(&path);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
    set_version(&path, &FORMAT_VERSION.to_string());
    open(&path);
}

#[test]
fn every_changed_byte_of_a_stored_row_is_found() {
    let (table, key) = (Table::Answers, text_key("application_1_1"));
    let value = br#"{"decision":{"id":7,"hints":[{"host":"node-7","count":2}]},"digest":9}"#;
    let sealed = seal(table, &key, value);
    assert_eq!(unseal(table, &key, &sealed), Some(&value[..]));
    for at in 0..sealed.len() {
        for change in 1..=255_u8 {
            let mut wounded = sealed.clone();
            wounded[at] ^= change;
            assert_eq!(unseal(table, &key, &wounded), None, "byte {at} by {change}");
        }
    }
    for at in 0..key.len() {
        let mut other = key.clone();
        other[at] ^= 1;
        assert_eq!(unseal(table, &other, &sealed), None, "byte {at} of the key");
    }
    assert_eq!(unseal(Table::Leases, &key, &sealed), None, "another table's");
    for length in 0..sealed.len() {
        assert_eq!(unseal(table, &key, &sealed[..length]), None, "cut to {length}");
    }
}

/// Writes a value past the journal, as a wound would.
fn overwrite(path: &Path, table: Table, key: &[u8], value: &[u8]) {
    overwrite_all(path, &[(table, vec![(key.to_vec(), value.to_vec())])].into());
}

fn overwrite_all(path: &Path, rows: &BTreeMap<Table, Rows>) {
    let db = Database::open(path).unwrap();
    let txn = db.begin_write().unwrap();
    for (table, rows) in rows {
        let mut open = txn.open_table(definition(*table)).unwrap();
        rows.iter().for_each(|(key, value)| drop(open.insert(key.as_slice(), value.as_slice()).unwrap()));
    }
    txn.commit().unwrap();
}

#[test]
fn a_row_that_is_not_as_it_was_written_is_refused_by_table_and_key() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, _) = open(&path);
    journal.write(&[pair(1), vec![Op::put(Table::Answers, text_key("r-7"), "{\"host\":\"node-7\"}")]]).unwrap();
    drop(journal);
    let mut wounded = seal(Table::Answers, &text_key("r-7"), b"{\"host\":\"node-7\"}");
    wounded[14] = b'8'; // still readable
    overwrite(&path, Table::Answers, &text_key("r-7"), &wounded);
    let error = refusal(&path);
    assert!(matches!(&error, StoreError::Corrupt { path: named, .. } if *named == path), "{error}");
    assert!(error.to_string().contains("in table answers the row with key \"r-7\""), "{error}");
    overwrite(&path, Table::Answers, &text_key("r-7"), &seal(Table::Answers, &text_key("r-7"), b"sound"));
    open(&path);
    overwrite(&path, Table::Leases, &number_key(1), b"");
    assert!(refusal(&path).to_string().contains("in table leases the row with key 1 "));
}

#[test]
fn a_journal_of_the_first_format_is_rewritten_with_all_its_rows() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, _) = open(&path);
    journal.write(&(0..300).map(pair).collect::<Vec<_>>()).unwrap();
    let rows = journal.rows().unwrap();
    drop(journal);
    overwrite_all(&path, &rows);
    set_version(&path, "1");
    let (mut journal, recovered) = open(&path);
    assert_eq!(recovered.rows, rows);
    journal.write(&[pair(300)]).unwrap();
    drop(journal);
    let (_journal, recovered) = open(&path);
    assert_eq!(whole_pairs(&recovered).len(), 301, "and it is of the second format now");
}

#[test]
fn a_wound_in_the_version_alone_changes_no_row() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, _) = open(&path);
    journal.write(&[pair(1)]).unwrap();
    let rows = journal.rows().unwrap();
    drop(journal);
    set_version(&path, "1");
    assert_eq!(open(&path).1.rows, rows);
    assert_eq!(open(&path).1.rows, rows);
}

#[test]
fn a_truncated_journal_is_refused_at_any_length() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, _) = open(&path);
    journal.write(&(0..500).map(pair).collect::<Vec<_>>()).unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    for length in [0, 3, 20, 400, 5_000, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refused_untouched(&path);
        let expected = matches!(error, StoreError::NotAJournal { .. } | StoreError::Corrupt { .. });
        assert!(expected, "cut to {length} of {}: {error:?}", whole.len());
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(whole_pairs(&open(&path).1).len(), 500);
}

/// A directory where this process cannot create a file; root needs one that the kernel refuses.
fn unwritable(dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
    match fs::write(dir.join("probe"), "") {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => dir.to_path_buf(),
        _ => PathBuf::from("/sys"),
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = tempdir().unwrap();
    let path = unwritable(dir.path()).join("journal");
    let error = refusal(&path);
    assert!(matches!(&error, StoreError::ReadOnly { path: named, .. } if *named == path), "{error:?}");
}

#[test]
fn a_missing_directory_is_made_unless_nothing_is_to_be_created() {
    let dir = tempdir().unwrap();
    let missing =
        |error: StoreError| matches!(error, StoreError::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    let options = OpenOptions { create: false, ..OpenOptions::default() };
    let path = dir.path().join("nowhere").join("journal");
    assert!(missing(Journal::open(&path, options).unwrap_err()));
    assert!(Journal::open(&path, OpenOptions::default()).unwrap().1.created);
}

#[test]
fn a_failed_write_leaves_the_rows_as_they_were_wherever_it_failed() {
    let base = (0..20).map(pair).collect::<Vec<_>>();
    let change = vec![
        Op::put(Table::Leases, number_key(5), "changed"),
        Op::put(Table::Leases, number_key(5), "changed twice"),
        Op::delete(Table::Answers, number_key(6)),
        Op::put(Table::Meta, text_key("new"), "1"),
    ];
    let mut failed = 0;
    let mut landed = 0;
    for writes in 0.. {
        let (disk, mut journal) = FaultyDisk::with_journal();
        journal.write(&base).unwrap();
        let before = journal.rows().unwrap();
        disk.fail_after_with_lying_sync(writes);
        let Err(error) = journal.write(std::slice::from_ref(&change)) else { break };
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(matches!(journal.write(&base), Err(StoreError::Broken { .. })));
        assert!(journal.reopen().is_err(), "the disk is still full");
        disk.heal();
        let changed = disk.after_power_cut(0).open().map(|(_, r)| r.rows != before).unwrap();
        landed += u32::from(changed);
        journal.reopen().unwrap();
        assert_eq!(journal.rows().unwrap(), before, "after {writes} writes");
        journal.write(std::slice::from_ref(&change)).unwrap();
        assert_ne!(journal.rows().unwrap(), before);
        failed += 1;
    }
    assert!(failed >= 3, "the disk failed at {failed} places only");
    assert!(landed >= 1, "no failed commit was durable all the same: the undo was not tried");
}

#[test]
fn a_journal_that_lost_acknowledged_rows_does_not_turn_healthy() {
    let (disk, mut journal) = FaultyDisk::with_journal();
    let early = disk.after_power_cut(1);
    journal.write(&[pair(1)]).unwrap();
    let swap = early.clone();
    let (mut swapped, _) = Journal::open_with(
        Path::new("swapped"),
        Box::new({
            let mut opens = 0;
            let disks = [disk, swap];
            let next = std::sync::Mutex::new(move || {
                opens += 1;
                disks[usize::from(opens > 1)].clone()
            });
            drop(journal);
            move || {
                let disk = (next.lock().unwrap())();
                Ok(redb::Builder::new().create_with_backend(disk).unwrap())
            }
        }),
    )
    .unwrap();
    let error = swapped.reopen().unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { detail, .. } if detail.contains("acknowledged")), "{error:?}");
}
