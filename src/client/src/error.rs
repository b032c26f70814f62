//! What a call can come to.

use crate::status::{FIELD, REASON, refused_of};
use crate::wire::v1;
use std::error::Error as _;
use std::fmt;
use std::time::Duration;
use tonic::{Code, Status};

/// A call that brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not an address.
    #[error("\"{address}\" is no address as in 127.0.0.1:8470")]
    Address {
        /// What was given.
        address: String,
        /// Why not.
        source: tonic::transport::Error,
    },
    /// Nobody listens there.
    #[error("no daemon at {address}")]
    Connect {
        /// Where.
        address: String,
        /// Why not.
        source: tonic::transport::Error,
    },
    /// The daemon said no; repeating the call does not help, unless the code says so.
    #[error("{}: {}", code.description(), message)]
    Refused {
        /// Its code, by the daemon's table.
        code: Code,
        /// Its words.
        message: String,
        /// The field that is wrong, where there is one.
        field: Option<String>,
        /// What blocks, and nodes that come nearest, where the daemon says so.
        why: Option<Box<v1::Refused>>,
    },
    /// The connection broke, or never stood. Whether the daemon did what it was asked is not known.
    #[error("the connection broke: {message}")]
    Broken {
        /// As the transport says it.
        message: String,
    },
    /// The daemon could not take the call in all the time there was.
    #[error("no answer in {}: {last}", in_words(*waited))]
    OutOfTime {
        /// How long it was tried.
        waited: Duration,
        /// What stood in the way last.
        cause: Cause,
        /// The last word of the daemon, or of the transport.
        last: String,
    },
    /// The caller gave the call no time at all: it was not made.
    #[error("a deadline of 0 leaves no time for an answer")]
    NoTime,
    /// The stream ended.
    #[error("the stream has ended")]
    Ended,
}

/// Why there are no hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A daemon is there and takes no requests now: too many, shutting down, or its journal can't be written.
    Overload,
    /// Nobody listens, or the connection broke.
    Unreachable,
    /// No answer in the caller's time.
    Deadline,
    /// The daemon said no; asking again as before won't help.
    Refused,
}

impl Cause {
    /// A stable token: overload, unreachable, deadline, refused.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overload => "overload",
            Self::Unreachable => "unreachable",
            Self::Deadline => "deadline",
            Self::Refused => "refused",
        }
    }

    /// Of a status, by who made it: the daemon signs its own.
    pub(super) fn of(status: &Status) -> Self {
        let daemons = status.metadata().contains_key(REASON);
        match code(status) {
            Code::DeadlineExceeded => Self::Deadline,
            Code::Unavailable if daemons => Self::Overload,
            Code::Unavailable => Self::Unreachable,
            // What the transport makes up has its error as the source; what came over the wire has none.
            _ if !daemons && status.source().is_some() => Self::Unreachable,
            _ => Self::Refused,
        }
    }

    /// Whether another try may bring what this one did not.
    pub(super) const fn may_pass(self) -> bool {
        matches!(self, Self::Overload | Self::Unreachable)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl ClientError {
    /// What stood in the way.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        match self {
            Self::Address { .. } | Self::NoTime => Cause::Refused,
            Self::Connect { .. } | Self::Broken { .. } | Self::Ended => Cause::Unreachable,
            Self::OutOfTime { cause, .. } => *cause,
            Self::Refused { code: Code::Unavailable, .. } => Cause::Overload,
            Self::Refused { code: Code::DeadlineExceeded, .. } => Cause::Deadline,
            Self::Refused { .. } => Cause::Refused,
        }
    }
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        if Cause::of(&status) == Cause::Unreachable {
            return Self::Broken { message: innermost(&status) };
        }
        let field = status.metadata().get(FIELD);
        Self::Refused {
            code: code(&status),
            message: status.message().to_owned(),
            field: field.and_then(|field| field.to_str().ok()).map(str::to_owned),
            why: refused_of(&status).map(Box::new),
        }
    }
}

/// A span for people: `400 ms`, `9.12 s`.
pub(super) fn in_words(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return format!("{} ms", span.as_millis());
    }
    format!("{} s", (span.as_secs_f64() * 100.0).round() / 100.0)
}

/// tonic calls its own expired time-out `CANCELLED`.
pub(super) fn code(status: &Status) -> Code {
    match status.code() {
        Code::Cancelled if status.message().contains("Timeout expired") => Code::DeadlineExceeded,
        code => code,
    }
}

/// What the transport's errors come down to, as in `Connection refused`: the layers above say "transport error".
pub(super) fn innermost(status: &Status) -> String {
    let mut cause: Option<&dyn std::error::Error> = status.source();
    let mut found = status.message().to_owned();
    while let Some(error) = cause {
        found = error.to_string();
        cause = error.source();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_signs_is_told_from_what_the_transport_makes_up() {
        let signed = |mut status: Status| {
            status.metadata_mut().insert(REASON, "x".parse().unwrap());
            status
        };
        let broken = Status::from_error(Box::new(std::io::Error::other("reset by peer")));
        assert_eq!(Cause::of(&broken), Cause::Unreachable);
        assert!(matches!(ClientError::from(broken), ClientError::Broken { message } if message == "reset by peer"));
        assert_eq!(Cause::of(&signed(Status::unavailable("busy"))), Cause::Overload);
        assert_eq!(Cause::of(&Status::unavailable("a proxy's")), Cause::Unreachable);
        assert_eq!(Cause::of(&Status::cancelled("Timeout expired")), Cause::Deadline);
        assert_eq!(Cause::of(&signed(Status::already_exists("id"))), Cause::Refused);
        assert_eq!(Cause::of(&Status::internal("over the wire")), Cause::Refused);
    }

    #[test]
    fn spans_are_printed_for_people() {
        let waited = Duration::from_nanos(9_118_672_906);
        let late = ClientError::OutOfTime { waited, cause: Cause::Overload, last: "busy".into() };
        assert_eq!(late.to_string(), "no answer in 9.12 s: busy");
    }
}
