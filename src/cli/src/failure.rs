//! Why a command did not do what it should, and the exit code for it.

use super::blocked::blocked_text;
use super::printable::{one_line, one_line_strings};
use hintd::config::without_secrets;
use hintd_client::ClientError;
use hintd_client::status::refused_of;
use hintd_client::wire::v1;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use tonic::Code;

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

    /// The same of what an option named, as `--output: out.json: ...`.
    #[must_use]
    pub fn of_option(self, option: &str) -> Self {
        match self {
            Self::Work(error) => Self::work(format!("{option}: {error:#}")),
            Self::Input(problem) => Self::Input(format!("{option}: {problem}")),
        }
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
        let said = match self {
            Self::Work(error) => format!("{error:#}"),
            Self::Input(problem) => problem.clone(),
        };
        // It names what was given, and a URL may have a password or a token in it.
        f.write_str(&without_secrets(&said, &mut |_, _| {}))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Work(error)
    }
}

/// As the client has it: what the caller asked wrongly is bad input, all else failed work.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { code, message, why, .. } => refused(code, &message, why.as_deref()),
            error => Self::work(indented(&error.to_string())), // with what the daemon said last
        }
    }
}

/// What blocks, nodes that come nearest, and how to ask again later.
fn why(refused: &v1::Refused) -> String {
    let blocked = match &refused.blocked[..] {
        [] => String::new(),
        blocked => format!("\n{}", blocked_text(blocked)),
    };
    let later = match refused.decision_id.as_str() {
        "" => String::new(),
        id => format!("\nhintctl explain {id} tells more, as long as it is recorded"),
    };
    let chain = match refused.chain.as_str() {
        "" => String::new(),
        chain => format!("\n{} \"{chain}\": hintctl chains tells how it stands", refused.reason),
    };
    chain + &blocked + &later
}

/// A daemon's refusal: what the caller asked wrongly is bad input, all else failed work.
impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        refused(status.code(), status.message(), refused_of(&status).as_ref())
    }
}

/// As gRPC and the documents write it.
fn name(code: Code) -> String {
    let camel = format!("{code:?}");
    let letter = |(at, letter): (usize, char)| match letter.is_ascii_uppercase() && at > 0 {
        true => format!("_{letter}"),
        false => letter.to_ascii_uppercase().to_string(),
    };
    camel.chars().enumerate().map(letter).collect()
}

/// Each line after the first further in. Problems of a configuration come one a line; none of these lines may look like one of our own.
fn indented(message: &str) -> String {
    message.lines().map(one_line).collect::<Vec<_>>().join("\n  ")
}

fn refused(code: Code, message: &str, because: Option<&v1::Refused>) -> Failure {
    let because = because.map(one_line_strings);
    let (code_name, why) = (name(code), because.as_ref().map(why).unwrap_or_default());
    let said = format!("the daemon answers {code_name}: {}{why}", indented(message));
    match code {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists | Code::OutOfRange => Failure::Input(said),
        _ => Failure::work(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_in_the_documents() {
        let said = Failure::from(tonic::Status::invalid_argument("deadline")).to_string();
        assert_eq!(said, "the daemon answers INVALID_ARGUMENT: deadline");
        let said = Failure::from(tonic::Status::unavailable("a\nhintctl: done\u{1b}[2J")).to_string();
        assert_eq!(said, "the daemon answers UNAVAILABLE: a\n  hintctl: done\\u{1b}[2J");
        let said = Failure::Input("no daemon at http://ann:hunter2@h:1".to_owned()).to_string();
        assert_eq!(said, "no daemon at http://(left out)@h:1");
        assert_eq!([name(Code::Ok), name(Code::NotFound)], ["OK", "NOT_FOUND"]);
    }

    #[test]
    fn what_an_option_named_fails_as_before_with_the_option_in_front() {
        let input = Failure::in_file(Path::new("out.json"), "it is there").of_option("--output");
        assert!(matches!(input, Failure::Input(_)), "{input}");
        assert_eq!(input.to_string(), "--output: out.json: it is there");
        let work = Failure::Work(anyhow::anyhow!("no room").context("out.md")).of_option("--markdown");
        assert!(matches!(work, Failure::Work(_)), "{work}");
        assert_eq!(work.to_string(), "--markdown: out.md: no room");
    }
}
