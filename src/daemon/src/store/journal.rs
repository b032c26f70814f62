//! The journal file: the engine's tables in one redb database, with its format checked first.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use redb::{ReadTransaction, WriteTransaction};

use super::StoreError;
use crate::regular_file;
use hintd_engine::journal::{Batch, KeyPart, Op, Table, key_parts};

/// The format this program writes. It reads version 1, too, whose rows had no check sums, and rewrites such a journal; and
/// version 2, whose answers repeat their groups' names in every hint: the engine reads both, and rows written from now on
/// are new ones, which a program of version 2 could not read.
pub(super) const FORMAT_VERSION: u32 = 3;
/// The first version with check sums.
const SEALED: u32 = 2;
/// Written first into every journal, so that another program's redb file is not taken for one.
const FORMAT_NAME: &str = "hintd-journal";
/// Format name, version and sequence; apart from the engine's own tables.
pub(super) const FORMAT: TableDefinition<'static, &str, &str> = TableDefinition::new("hintd_format");
const NAME: &str = "name";
pub(super) const VERSION: &str = "version";
const SEQUENCE: &str = "sequence";

type OpenTable<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;
type Opener = Box<dyn Fn() -> Result<Database, StoreError> + Send>;

/// Rows of one table, key and value, sorted by key.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// How to open a journal.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Whether a journal that does not exist is created; its directory must exist.
    pub create: bool,
    /// Memory for cached pages, in bytes; each takes a quarter more of the allocator, for its header.
    pub cache_bytes: usize,
}

impl Default for OpenOptions {
    /// Creates; 8 MiB of cache (redb's own default is 1 GiB). It fills with pages as they are written, read again or not;
    /// beside a journal of 480,000 leases commits are no slower than with 32 MiB, and what is not cached here is by the
    /// system (docs/decisions.md).
    fn default() -> Self {
        Self { create: true, cache_bytes: 8 << 20 }
    }
}

/// What was in the journal when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The rows of every table, sorted by key; a table without rows has an empty list.
    pub rows: BTreeMap<Table, Rows>,
    /// True if the journal did not exist and was created, which an operator will want to know.
    pub created: bool,
}

/// An open journal; the file is locked against other processes until it is dropped.
pub struct Journal {
    path: PathBuf,
    opener: Opener,
    /// None after a failed write: redb refuses everything until the file is opened anew.
    db: Option<Database>,
    /// Number of the last transaction known to be durable.
    sequence: u64,
    /// What puts back the rows that a failed write may or may not have changed.
    undo: Vec<Stored>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.path).field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the journal at `path`, creating it if asked, and reads every row.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::NotAJournal`] and [`StoreError::NewerVersion`] leave the
    /// file as it is; the others name what the disk or the file did.
    pub fn open(path: &Path, options: OpenOptions) -> Result<(Self, Recovered), StoreError> {
        if let Some(folder) = path.parent().filter(|_| options.create) {
            fs::create_dir_all(folder).map_err(|error| StoreError::from_io(path, error))?;
        }
        let created = options.create && create_if_absent(path, &options)?;
        let owned = path.to_path_buf();
        let opener = move || {
            check_magic(&owned)?;
            builder(&options).open(&owned).map_err(|e| StoreError::from_redb(&owned, e.into()))
        };
        // redb reads pages with a checksum at their roots only: on overwritten ones it panics.
        let read = catch_unwind(AssertUnwindSafe(|| Self::open_with(path, Box::new(opener))));
        let (journal, mut recovered) = read.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let detail = format!("its pages can't be read: {}", said.unwrap_or("the database gave up"));
            Err(StoreError::Corrupt { path: path.to_path_buf(), detail })
        })?;
        recovered.created = created;
        Ok((journal, recovered))
    }

    /// Opens whatever database `opener` gives, which is called again after each failed write.
    pub(super) fn open_with(path: &Path, opener: Opener) -> Result<(Self, Recovered), StoreError> {
        let db = opener()?;
        let (sequence, version) = check_format(path, &db)?;
        if version < FORMAT_VERSION {
            upgrade(&db, version).map_err(|e| StoreError::from_redb(path, e))?;
        }
        let rows = read_rows(path, &db)?;
        let journal = Self { path: path.to_path_buf(), opener, db: Some(db), sequence, undo: Vec::new() };
        Ok((journal, Recovered { rows, created: false }))
    }

    /// The journal's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the batches in one transaction, durable when this returns.
    ///
    /// # Errors
    /// After an error the journal must be [reopened](Self::reopen); the rows are then as they were
    /// before this write. Until then they may or may not be in the file.
    pub fn write<B: AsRef<Batch>>(&mut self, batches: &[B]) -> Result<(), StoreError> {
        let Some(db) = &self.db else { return Err(StoreError::Broken { path: self.path.clone() }) };
        let mut undo = Vec::new();
        match commit(db, self.sequence + 1, batches.iter().flat_map(AsRef::as_ref).map(Stored::of), &mut undo) {
            Ok(()) => {
                self.sequence += 1;
                Ok(())
            }
            Err(error) => {
                self.db = None;
                undo.reverse();
                self.undo = undo;
                Err(StoreError::from_redb(&self.path, error))
            }
        }
    }

    /// Opens the file anew after a failed write and puts back the rows that write may have changed.
    ///
    /// redb says of a failed commit that it may have become durable all the same. Its appenders were
    /// told that it failed, so the rows as they were before are written again; this is also the probe
    /// that shows the disk to be writable.
    ///
    /// # Errors
    /// As [`Journal::open`]; [`StoreError::Corrupt`] also if acknowledged transactions are gone.
    pub fn reopen(&mut self) -> Result<(), StoreError> {
        self.db = None;
        let db = (self.opener)()?;
        let (found, _) = check_format(&self.path, &db)?;
        if found < self.sequence {
            let detail = format!("it ends at transaction {found}, but {} was acknowledged", self.sequence);
            return Err(StoreError::Corrupt { path: self.path.clone(), detail });
        }
        commit(&db, found + 1, self.undo.iter().cloned(), &mut Vec::new())
            .map_err(|e| StoreError::from_redb(&self.path, e))?;
        self.sequence = found + 1;
        self.undo.clear();
        self.db = Some(db);
        Ok(())
    }

    /// Every row as it stands.
    ///
    /// # Errors
    /// [`StoreError::Broken`] after a failed write; whatever reading meets.
    pub fn rows(&self) -> Result<BTreeMap<Table, Rows>, StoreError> {
        let Some(db) = &self.db else { return Err(StoreError::Broken { path: self.path.clone() }) };
        read_rows(&self.path, db)
    }
}

/// A row as the file has it.
#[derive(Clone)]
struct Stored {
    table: Table,
    key: Vec<u8>,
    /// Sealed; `None`: there is no such row.
    value: Option<Vec<u8>>,
}

impl Stored {
    fn of(op: &Op) -> Self {
        match op {
            Op::Put { table, key, value } => {
                Self { table: *table, key: key.clone(), value: Some(seal(*table, key, value)) }
            }
            Op::Delete { table, key } => Self { table: *table, key: key.clone(), value: None },
        }
    }
}

/// A value with the check sum of its row behind it: CRC-32 finds any one changed byte, and up to four in a row.
pub(super) fn seal(table: Table, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(value.len() + SUM);
    sealed.extend_from_slice(value);
    sealed.extend(check_sum(table, key, value).to_le_bytes());
    sealed
}

/// The value of a sealed row; `None`: row and check sum do not belong together.
pub(super) fn unseal<'v>(table: Table, key: &[u8], sealed: &'v [u8]) -> Option<&'v [u8]> {
    let (value, sum) = sealed.split_last_chunk()?;
    (u32::from_le_bytes(*sum) == check_sum(table, key, value)).then_some(value)
}

/// Bytes of a check sum.
const SUM: usize = size_of::<u32>();

/// Over table and key as well: a row is not another's.
fn check_sum(table: Table, key: &[u8], value: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(table.name().as_bytes());
    sum.update(&(key.len() as u64).to_le_bytes());
    sum.update(key);
    sum.update(value);
    sum.finalize()
}

/// Makes a journal of an earlier version one of this: of version 1, rows get their check sums, all or none.
fn upgrade(db: &Database, version: u32) -> Result<(), redb::Error> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.open_table(FORMAT)?.insert(VERSION, FORMAT_VERSION.to_string().as_str())?;
    for table in Table::ALL.into_iter().filter(|_| version < SEALED) {
        let mut rows = txn.open_table(definition(table))?;
        let read = |row: Result<_, _>| {
            let (key, value): (redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>) = row?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        };
        let plain: Rows = rows.iter()?.map(read).collect::<Result<_, redb::Error>>()?;
        for (key, value) in plain {
            // Where a wound made an older version of the version, its rows have their sums.
            if unseal(table, &key, &value).is_none() {
                rows.insert(key.as_slice(), seal(table, &key, &value).as_slice())?;
            }
        }
    }
    Ok(txn.commit()?)
}

/// Makes an empty journal in a fresh database: format first, then the engine's tables.
pub(super) fn initialise(db: &Database) -> Result<(), redb::Error> {
    let txn = db.begin_write()?;
    {
        let mut format = txn.open_table(FORMAT)?;
        format.insert(NAME, FORMAT_NAME)?;
        format.insert(VERSION, FORMAT_VERSION.to_string().as_str())?;
        format.insert(SEQUENCE, "0")?;
    }
    for table in Table::ALL {
        txn.open_table(definition(table))?;
    }
    Ok(txn.commit()?)
}

fn builder(options: &OpenOptions) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Creates the journal unless the path exists; true if it did.
///
/// The file is made complete under another name and then linked: a crash in between leaves no half
/// journal under the real name, and of two processes that start together one wins.
fn create_if_absent(path: &Path, options: &OpenOptions) -> Result<bool, StoreError> {
    let io_error = |source| StoreError::from_io(path, source);
    if path.try_exists().map_err(io_error)? {
        return Ok(false);
    }
    let mut draft = path.as_os_str().to_os_string();
    draft.push(format!(".{}.new", std::process::id()));
    let draft = PathBuf::from(draft);
    let made = create_draft(&draft, options).map_err(|e| StoreError::from_redb(path, e));
    let linked = made.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        other => other.map(|()| true).map_err(io_error),
    });
    // A draft that stays behind does no harm, and the first error is the one to report.
    let _ = fs::remove_file(&draft);
    let created = linked?;
    // The directory entry must be as durable as the rows that will be acknowledged.
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|dir| dir.sync_all()).map_err(io_error)?;
    Ok(created)
}

fn create_draft(draft: &Path, options: &OpenOptions) -> Result<(), redb::Error> {
    // Attempts' tokens are in it: for the daemon's own user only.
    let mut open = fs::OpenOptions::new();
    let file = open.read(true).write(true).create(true).truncate(true).mode(0o600).open(draft)?;
    let db = builder(options).create_file(file)?;
    initialise(&db)
}

/// Refuses a file that is no redb database before redb opens it for writing.
fn check_magic(path: &Path) -> Result<(), StoreError> {
    let io_error = |source| StoreError::from_io(path, source);
    let mut head = Vec::new();
    regular_file::open(path).map_err(io_error)?.take(16).read_to_end(&mut head).map_err(io_error)?;
    if head.starts_with(b"redb") {
        return Ok(());
    }
    let found = match head.as_slice() {
        [] => "an empty file".to_owned(),
        bytes => format!("a file that starts with \"{}\"", bytes.escape_ascii()),
    };
    Err(StoreError::NotAJournal { path: path.to_path_buf(), found })
}

/// Checks name and version; the number of the last transaction, and the version.
fn check_format(path: &Path, db: &Database) -> Result<(u64, u32), StoreError> {
    let not_ours = |found: String| StoreError::NotAJournal { path: path.to_path_buf(), found };
    let fields = match read_format(db).map_err(|e| StoreError::from_redb(path, e))? {
        Some(fields) => fields,
        None => return Err(not_ours("a redb database of another program".to_owned())),
    };
    let field = |key: &str| fields.get(key).map_or("", String::as_str);
    if field(NAME) != FORMAT_NAME {
        return Err(not_ours(format!("a format named \"{}\"", field(NAME))));
    }
    let damaged = |key: &str| StoreError::Corrupt {
        path: path.to_path_buf(),
        detail: format!("its {key} is \"{}\"", field(key)),
    };
    let version: u32 = field(VERSION).parse().ok().filter(|version| *version > 0).ok_or_else(|| damaged(VERSION))?;
    if version > FORMAT_VERSION {
        return Err(StoreError::NewerVersion { path: path.to_path_buf(), found: version, known: FORMAT_VERSION });
    }
    Ok((field(SEQUENCE).parse().map_err(|_| damaged(SEQUENCE))?, version))
}

fn read_format(db: &Database) -> Result<Option<BTreeMap<String, String>>, redb::Error> {
    let table = match db.begin_read()?.open_table(FORMAT) {
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => return Ok(None),
        other => other?,
    };
    let mut fields = BTreeMap::new();
    for row in table.iter()? {
        let (key, value) = row?;
        fields.insert(key.value().to_owned(), value.value().to_owned());
    }
    Ok(Some(fields))
}

fn read_rows(path: &Path, db: &Database) -> Result<BTreeMap<Table, Rows>, StoreError> {
    let from_redb = |error| StoreError::from_redb(path, error);
    let txn = db.begin_read().map_err(|error| from_redb(error.into()))?;
    let table = |table| {
        let sealed = read_table(&txn, table).map_err(from_redb)?;
        let rows = sealed.into_iter().map(|(key, mut value)| match unseal(table, &key, &value).map(<[u8]>::len) {
            Some(length) => {
                value.truncate(length);
                Ok((key, value))
            }
            None => Err(torn(path, table, &key)),
        });
        Ok((table, rows.collect::<Result<Rows, StoreError>>()?))
    };
    Table::ALL.into_iter().map(table).collect()
}

/// A row that is not as it was written.
fn torn(path: &Path, table: Table, key: &[u8]) -> StoreError {
    let part = |part: KeyPart| match part {
        KeyPart::Number(number) => number.to_string(),
        KeyPart::Text(text) => format!("{text:?}"),
    };
    let key = match key_parts(key) {
        Some(parts) => parts.into_iter().map(part).collect::<Vec<_>>().join(", "),
        None => format!("{} (hexadecimal)", key.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    };
    let detail = format!("in table {table} the row with key {key} is not as it was written: its check sum differs");
    StoreError::Corrupt { path: path.to_path_buf(), detail }
}

fn read_table(txn: &ReadTransaction, table: Table) -> Result<Rows, redb::Error> {
    let rows = match txn.open_table(definition(table)) {
        // A journal from before the table was thought of.
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        other => other?,
    };
    let row = |row: Result<_, _>| {
        let (key, value): (redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>) = row?;
        Ok((key.value().to_vec(), value.value().to_vec()))
    };
    rows.iter()?.map(row).collect()
}

/// One durable transaction. `undo` gathers, in the order of the operations, what was there before.
///
/// One fsync per commit: redb's default commit finds a torn one by its checksums. Its two-phase mode
/// costs a second fsync and guards against an attacker who chooses values and can crash the machine
/// during a commit; whoever can do that on a scheduler's host needs no journal.
fn commit(
    db: &Database,
    sequence: u64,
    rows: impl IntoIterator<Item = Stored>,
    undo: &mut Vec<Stored>,
) -> Result<(), redb::Error> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.open_table(FORMAT)?.insert(SEQUENCE, sequence.to_string().as_str())?;
    apply(&txn, rows, undo)?;
    Ok(txn.commit()?)
}

fn apply(
    txn: &WriteTransaction,
    rows: impl IntoIterator<Item = Stored>,
    undo: &mut Vec<Stored>,
) -> Result<(), redb::Error> {
    let mut tables: BTreeMap<Table, OpenTable<'_>> = BTreeMap::new();
    for Stored { table, key, value } in rows {
        let rows = match tables.entry(table) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(txn.open_table(definition(table))?),
        };
        let before = match value {
            Some(value) => rows.insert(key.as_slice(), value.as_slice())?,
            None => rows.remove(key.as_slice())?,
        };
        let value = before.map(|before| before.value().to_vec());
        undo.push(Stored { table, key, value });
    }
    Ok(())
}

pub(super) fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}
