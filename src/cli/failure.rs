//! Why a command did not do what it should, and the exit code for it.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// A command's failure.
#[derive(Debug)]
pub enum Failure {
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// Bad usage or bad input, the file, line or field named: exit code 2.
    Input(String),
}

impl Failure {
    /// Bad input in a file.
    pub fn in_file(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Input(format!("{}: {problem}", path.display()))
    }

    /// Work that failed, said in one sentence.
    pub fn work(problem: impl fmt::Display) -> Self {
        Self::Work(anyhow::anyhow!("{problem}"))
    }

    /// What the shell gets.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Work(_) => ExitCode::from(1),
            Self::Input(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => write!(f, "{error:#}"),
            Self::Input(problem) => f.write_str(problem),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Work(error)
    }
}

/// As the client has it: what the caller asked wrongly is bad input, all else failed work.
impl From<crate::client::ClientError> for Failure {
    fn from(error: crate::client::ClientError) -> Self {
        match error {
            crate::client::ClientError::Refused { code, message, .. } => Self::from(tonic::Status::new(code, message)),
            error => Self::work(error),
        }
    }
}

/// A daemon's refusal: what the caller asked wrongly is bad input, all else failed work.
impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        use tonic::Code;
        let said = format!("the daemon answers {:?}: {}", status.code(), status.message());
        match status.code() {
            Code::InvalidArgument | Code::NotFound | Code::AlreadyExists | Code::OutOfRange => Self::Input(said),
            _ => Self::work(said),
        }
    }
}
