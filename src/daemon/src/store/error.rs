//! What can go wrong with the journal, in the operator's terms.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the journal file could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the journal open; retrying helps once that process ends.
    #[error("journal {} is held by another process", path.display())]
    Locked {
        /// The journal file.
        path: PathBuf,
    },
    /// The file is not a journal of this program; it was left as it is.
    #[error("{} is not a hintd journal: found {found}", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// The journal was written by a newer version of this program; it was left as it is.
    #[error("journal {} has format version {found}, this program knows versions up to {known}", path.display())]
    NewerVersion {
        /// The journal file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The journal is damaged; retrying does not help.
    #[error("journal {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The journal file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The disk or quota is full; retrying helps once there is room.
    #[error("no room left on the disk for journal {}", path.display())]
    Full {
        /// The journal file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file or its directory may not be written by this process.
    #[error("journal {} cannot be written by this process", path.display())]
    ReadOnly {
        /// The journal file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other failure of the file system.
    #[error("input or output error on journal {}", path.display())]
    Io {
        /// The journal file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An earlier write failed; the journal must be reopened before the next.
    #[error("journal {} must be reopened after a failed write", path.display())]
    Broken {
        /// The journal file.
        path: PathBuf,
    },
    /// The database refused for a reason that names no file or disk.
    #[error("journal {}: {detail}", path.display())]
    Refused {
        /// The journal file.
        path: PathBuf,
        /// The database's words.
        detail: String,
    },
}

/// Why an append was not accepted; its completion is then never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// As many appends are waiting as the queue holds; retrying helps.
    #[error("journal queue is full with {limit} waiting")]
    QueueFull {
        /// The queue's size.
        limit: usize,
    },
    /// The last write failed and the journal has not recovered yet; retrying helps once it has.
    #[error("journal cannot be written at present")]
    Unhealthy,
    /// The writer is shutting down.
    #[error("journal is shutting down")]
    Closed,
}

/// Why an accepted append did not become durable.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreFailure {
    /// The write that carried it failed, or one before it in the queue did.
    #[error("journal write failed")]
    Write(#[source] Arc<StoreError>),
    /// The writer ended before its turn came.
    #[error("journal closed before the write")]
    Closed,
}

/// A shutdown that could not flush everything within its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("journal shutdown reached its limit with {dropped} appends unwritten")]
pub struct ShutdownError {
    /// Appends that were waiting and have been failed.
    pub dropped: usize,
}

impl StoreError {
    /// Sorts an operating system's error into the operator's terms.
    pub(super) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            _ => Self::Io { path, source },
        }
    }

    /// Sorts a database error into the operator's terms.
    pub(super) fn from_redb(path: &Path, error: redb::Error) -> Self {
        let owned = path.to_path_buf();
        match error {
            redb::Error::DatabaseAlreadyOpen => Self::Locked { path: owned },
            redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Corrupt { path: owned, detail: "it ends before its own length".to_owned() }
            }
            redb::Error::Io(source) => Self::from_io(path, source),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => Self::Broken { path: owned },
            redb::Error::Corrupted(detail) => Self::Corrupt { path: owned, detail },
            error @ (redb::Error::RepairAborted | redb::Error::TableTypeMismatch { .. }) => {
                Self::Corrupt { path: owned, detail: error.to_string() }
            }
            error @ redb::Error::UpgradeRequired(_) => Self::NotAJournal { path: owned, found: error.to_string() },
            other => Self::Refused { path: owned, detail: other.to_string() },
        }
    }
}
