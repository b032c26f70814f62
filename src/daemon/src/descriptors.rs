//! File descriptors: as many as the system gives, and no more connections than fit into them.
//!
//! Where they run out, connections are neither taken nor refused, and the journal may not be opened again: it is better
//! to know the bound at the start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside gRPC connections: the metrics listener's connections (32), gRPC connections that are told to come
/// again (64), and the daemon's own files, sockets and timers (some 25).
const RESERVED: u64 = 128;
/// Connections without which a daemon makes no sense: feeds and some applications.
const CONNECTIONS_MIN: u64 = 64;

/// There are too few descriptors.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the process may have {have} open files (ulimit -n, LimitNOFILE), and needs {} at least: {RESERVED} of its own and \
     {CONNECTIONS_MIN} connections",
    RESERVED + CONNECTIONS_MIN
)]
pub struct TooFew {
    have: u64,
}

/// How many of the `wanted` gRPC connections fit, after the soft limit was raised as far as the hard one lets.
///
/// # Errors
/// [`TooFew`].
pub fn connections(wanted: usize) -> Result<usize, TooFew> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // What can't be raised is counted with as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    let have = getrlimit(Resource::Nofile).current;
    let fit = fit(have, wanted)?;
    if fit < wanted {
        tracing::warn!(
            open_files = have,
            wanted,
            connections = fit,
            "limits.connections is more than open files allow"
        );
    }
    Ok(fit)
}

/// `have`: descriptors of the process; none: without a bound.
fn fit(have: Option<u64>, wanted: usize) -> Result<usize, TooFew> {
    let Some(have) = have else { return Ok(wanted) };
    let room = have.saturating_sub(RESERVED);
    if room < CONNECTIONS_MIN {
        return Err(TooFew { have });
    }
    Ok(wanted.min(usize::try_from(room).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_beside_the_daemons_own_files_or_it_says_what_it_needs() {
        assert_eq!(fit(None, 10_000), Ok(10_000));
        assert_eq!(fit(Some(65_536), 10_000), Ok(10_000));
        assert_eq!(fit(Some(1_024), 10_000), Ok(896));
        assert_eq!(fit(Some(192), 10_000), Ok(64));
        assert_eq!(fit(Some(192), 7), Ok(7), "less is the operator's choice");
        let error = fit(Some(64), 10_000).unwrap_err().to_string();
        assert!(error.contains("may have 64 open files") && error.contains("needs 192"), "{error}");
    }
}
