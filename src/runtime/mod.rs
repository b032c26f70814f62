//! The daemon's inside: clock, pool, the one writer, and what streams wait on.

pub mod clock;
pub mod options;
pub mod outbox;
pub mod pool;
pub mod watchers;
