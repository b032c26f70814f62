//! What a call can come to.

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
    },
    /// The daemon could not take the call in all the time there was.
    #[error("no answer in {waited:?}: {last}")]
    OutOfTime {
        /// How long it was tried.
        waited: Duration,
        /// What it said last.
        last: String,
    },
    /// The stream ended.
    #[error("the stream has ended")]
    Ended,
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        let field = status.metadata().get(crate::server::status::FIELD);
        Self::Refused {
            code: code(&status),
            message: status.message().to_owned(),
            field: field.and_then(|field| field.to_str().ok()).map(str::to_owned),
        }
    }
}

/// tonic calls its own expired time-out `CANCELLED`.
pub(super) fn code(status: &Status) -> Code {
    match status.code() {
        Code::Cancelled if status.message().contains("Timeout expired") => Code::DeadlineExceeded,
        code => code,
    }
}
