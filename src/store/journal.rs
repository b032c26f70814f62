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
use crate::engine::journal::{Batch, Op, Table};

/// The newest format this program writes and reads.
pub(super) const FORMAT_VERSION: u32 = 1;
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
    /// Memory for cached pages, in bytes.
    pub cache_bytes: usize,
}

impl Default for OpenOptions {
    /// Creates; 32 MiB of cache, several times a busy ledger's size (redb's own default is 1 GiB).
    fn default() -> Self {
        Self { create: true, cache_bytes: 32 << 20 }
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
    undo: Vec<Op>,
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
        let sequence = check_format(path, &db)?;
        let rows = read_rows(&db).map_err(|e| StoreError::from_redb(path, e))?;
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
    pub fn write(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        let Some(db) = &self.db else { return Err(StoreError::Broken { path: self.path.clone() }) };
        let mut undo = Vec::new();
        match commit(db, self.sequence + 1, batches.iter().flatten(), &mut undo) {
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
        let found = check_format(&self.path, &db)?;
        if found < self.sequence {
            let detail = format!("it ends at transaction {found}, but {} was acknowledged", self.sequence);
            return Err(StoreError::Corrupt { path: self.path.clone(), detail });
        }
        commit(&db, found + 1, &self.undo, &mut Vec::new()).map_err(|e| StoreError::from_redb(&self.path, e))?;
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
        read_rows(db).map_err(|e| StoreError::from_redb(&self.path, e))
    }
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
    File::open(path).map_err(io_error)?.take(16).read_to_end(&mut head).map_err(io_error)?;
    if head.starts_with(b"redb") {
        return Ok(());
    }
    let found = match head.as_slice() {
        [] => "an empty file".to_owned(),
        bytes => format!("a file that starts with \"{}\"", bytes.escape_ascii()),
    };
    Err(StoreError::NotAJournal { path: path.to_path_buf(), found })
}

/// Checks name and version, and reads the number of the last transaction.
fn check_format(path: &Path, db: &Database) -> Result<u64, StoreError> {
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
    let version: u32 = field(VERSION).parse().map_err(|_| damaged(VERSION))?;
    if version > FORMAT_VERSION {
        return Err(StoreError::NewerVersion { path: path.to_path_buf(), found: version, known: FORMAT_VERSION });
    }
    field(SEQUENCE).parse().map_err(|_| damaged(SEQUENCE))
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

fn read_rows(db: &Database) -> Result<BTreeMap<Table, Rows>, redb::Error> {
    let txn = db.begin_read()?;
    Table::ALL.into_iter().map(|table| Ok((table, read_table(&txn, table)?))).collect()
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
fn commit<'a>(
    db: &Database,
    sequence: u64,
    ops: impl IntoIterator<Item = &'a Op>,
    undo: &mut Vec<Op>,
) -> Result<(), redb::Error> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.open_table(FORMAT)?.insert(SEQUENCE, sequence.to_string().as_str())?;
    apply(&txn, ops, undo)?;
    Ok(txn.commit()?)
}

fn apply<'a>(
    txn: &WriteTransaction,
    ops: impl IntoIterator<Item = &'a Op>,
    undo: &mut Vec<Op>,
) -> Result<(), redb::Error> {
    let mut tables: BTreeMap<Table, OpenTable<'_>> = BTreeMap::new();
    for op in ops {
        let (Op::Put { table, key, .. } | Op::Delete { table, key }) = op;
        let rows = match tables.entry(*table) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(txn.open_table(definition(*table))?),
        };
        let before = match op {
            Op::Put { value, .. } => rows.insert(key.as_slice(), value.as_slice())?,
            Op::Delete { .. } => rows.remove(key.as_slice())?,
        };
        undo.push(match before {
            Some(value) => Op::put(*table, key.clone(), value.value()),
            None => Op::delete(*table, key.clone()),
        });
    }
    Ok(())
}

pub(super) fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}
