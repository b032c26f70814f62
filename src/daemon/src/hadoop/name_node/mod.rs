//! Where blocks of paths lie, asked of the NameNode over WebHDFS when a request names the paths.
//!
//! # Code map
//! - Without I/O: `web_hdfs` (its questions and answers), `path_cache` (what is known of paths, for how long, how much of it).
//! - With I/O: `ask` (one question to whichever NameNode answers), `read` (a path, its files, their blocks), `locate`
//!   (what a request is told, and when; what is asked again).
//!
//! # Invariants
//! - A request never waits longer than its own time and `wait` allow; a NameNode that is gone costs it nothing.
//! - An answer that is late, cut short, too large, HTML or nonsense changes nothing of what was known.
//! - What a NameNode says reaches the model as items of `Feed.Datasets` do: checked, counted, bounded.
//! - Block tokens are never read into a value, so that none can be logged or passed on.

mod ask;
mod locate;
pub mod path_cache;
mod read;
pub mod web_hdfs;

pub use locate::NameNodes;
