//! What must survive a crash: one journal file, and the thread that commits to it in groups.
//!
//! [`Journal`] is the file: rows of the engine's tables, each transaction durable and all or nothing.
//! [`GroupCommit`] owns it on a thread of its own and tells each appender when its batch is durable;
//! an answer leaves only after that.

mod dump;
mod error;
#[cfg(test)]
mod faults;
mod group;
mod journal;
#[cfg(test)]
mod tests;

pub use dump::DumpError;
pub use error::{AppendError, ShutdownError, StoreError, StoreFailure};
pub use group::{Commit, CommitObserver, Done, GroupCommit, GroupCommitHandle, GroupOptions, StoreStats};
pub use journal::{Journal, OpenOptions, Recovered, Rows};
