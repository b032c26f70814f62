//! One kept connection to a REST interface, of an SDN controller or of Hadoop's; answers are bounded in time and size.

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;

/// Why there is no usable answer; `N` says what is wrong with one that came.
#[derive(Debug, thiserror::Error)]
pub enum AskError<N: std::error::Error + 'static> {
    /// It can't be reached.
    #[error("no connection to {address}: {source}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The answer did not come, or not all of it.
    #[error("no whole answer to {path} within {seconds} s")]
    Late {
        /// What was asked.
        path: String,
        /// How long was waited.
        seconds: f64,
    },
    /// The connection broke, or what came is no HTTP.
    #[error("{path}: {source}")]
    Broken {
        /// What was asked.
        path: String,
        /// Why.
        source: hyper::Error,
    },
    /// A refusal.
    #[error("{path}: the answer is {status}: {body}")]
    Status {
        /// What was asked.
        path: String,
        /// Its status.
        status: StatusCode,
        /// The start of what it said.
        body: String,
    },
    /// Too much.
    #[error("{path}: more than {most} bytes")]
    TooLarge {
        /// What was asked.
        path: String,
        /// The bound.
        most: usize,
    },
    /// Not what was asked for.
    #[error("{path}: {source}")]
    Nonsense {
        /// What was asked.
        path: String,
        /// Why.
        source: N,
    },
    /// The address is none.
    #[error("\"{0}\" is no address")]
    Address(String),
}

impl<N: std::error::Error + 'static> AskError<N> {
    /// A stable word for counters.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "unreachable",
            Self::Late { .. } => "late",
            Self::Broken { .. } => "broken",
            Self::Status { .. } => "refused",
            Self::TooLarge { .. } => "too_large",
            Self::Nonsense { .. } => "nonsense",
            Self::Address(_) => "address",
        }
    }
}

/// A REST interface.
#[derive(Debug)]
pub struct Rest {
    authority: String,
    timeout: Duration,
    most: usize,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// Of a refusal's text so much is shown.
const SHOWN: usize = 200;

impl Rest {
    /// For `authority`, a host and port; nothing is connected yet.
    #[must_use]
    pub const fn new(authority: String, timeout: Duration, most: usize) -> Self {
        Self { authority, timeout, most, connection: None }
    }

    /// Asks for `path` and reads the answer.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn get<T, N: std::error::Error + 'static>(
        &mut self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, N>,
    ) -> Result<T, AskError<N>> {
        let body = self.ask(Method::GET, path, Bytes::new()).await?;
        read(&body).map_err(|source| AskError::Nonsense { path: path.to_owned(), source })
    }

    /// Sends `body` to `path` and reads the answer.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn post<T, N: std::error::Error + 'static>(
        &mut self,
        path: &str,
        body: &Value,
        read: impl FnOnce(&[u8]) -> Result<T, N>,
    ) -> Result<T, AskError<N>> {
        let answer = self.ask(Method::POST, path, Bytes::from(body.to_string())).await?;
        read(&answer).map_err(|source| AskError::Nonsense { path: path.to_owned(), source })
    }

    async fn ask<N: std::error::Error + 'static>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes, AskError<N>> {
        let late = || AskError::Late { path: path.to_owned(), seconds: self.timeout.as_secs_f64() };
        let late = late();
        let timeout = self.timeout;
        let answer = match tokio::time::timeout(timeout, self.exchange(method, path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(late),
        };
        // After a refusal the connection is in order, after anything else it may not be.
        if !matches!(answer, Ok(_) | Err(AskError::Status { .. })) {
            self.connection = None;
        }
        answer
    }

    async fn exchange<N: std::error::Error + 'static>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes, AskError<N>> {
        let broken = |source| AskError::Broken { path: path.to_owned(), source };
        let uri: Uri = path.parse().map_err(|_| AskError::Address(path.to_owned()))?;
        let request =
            Request::builder().method(method).uri(uri).header(HOST, &self.authority).header(ACCEPT, "application/json");
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let request = request.map_err(|_| AskError::Address(self.authority.clone()))?;
        // An idle connection may have been closed by the other side: that is no failure of this question.
        let usable = match &mut self.connection {
            Some(connection) => connection.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            self.connection = None;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(connect(&self.authority).await?),
        };
        let answer = connection.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let body = match Limited::new(answer.into_body(), self.most).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(AskError::TooLarge { path: path.to_owned(), most: self.most });
            }
            Err(error) => {
                return Err(match error.downcast::<hyper::Error>() {
                    Ok(source) => broken(*source),
                    Err(_) => AskError::TooLarge { path: path.to_owned(), most: self.most },
                });
            }
        };
        if status.is_success() {
            return Ok(body);
        }
        let body = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        Err(AskError::Status { path: path.to_owned(), status, body })
    }
}

async fn connect<N: std::error::Error + 'static>(authority: &str) -> Result<SendRequest<Full<Bytes>>, AskError<N>> {
    let failed = |source| AskError::Connect { address: authority.to_owned(), source };
    let stream = TcpStream::connect(authority).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| failed(std::io::Error::other(error)))?;
    // Ends with the sender, or when the other side closes; its error reaches whoever waits for an answer.
    tokio::spawn(connection);
    Ok(sender)
}

/// The first wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The wait after `failures` in a row: doubled each time up to `most`, then between half and all of it.
#[must_use]
pub fn backoff(failures: u32, most: Duration, random: f64) -> Duration {
    let doubled = BACKOFF_FIRST.saturating_mul(1_u32 << failures.saturating_sub(1).min(16)).min(most);
    doubled.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        let most = Duration::from_secs(30);
        assert_eq!(backoff(1, most, 1.0), BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 1.0), 4 * BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 0.0), 2 * BACKOFF_FIRST);
        assert_eq!(backoff(u32::MAX, most, 1.0), most);
    }
}
