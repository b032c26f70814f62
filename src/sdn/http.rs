//! One kept connection to a controller's REST interface; answers are bounded in time and size.

use super::ryu::BadAnswer;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;

/// Why the controller gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
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
    #[error("{path}: the controller answers {status}: {body}")]
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
        source: BadAnswer,
    },
    /// The address is none.
    #[error("\"{0}\" is no address")]
    Address(String),
}

impl AskError {
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

/// A controller's REST interface.
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
    pub async fn get<T>(
        &mut self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, AskError> {
        let body = self.ask(Method::GET, path, Bytes::new()).await?;
        read(&body).map_err(|source| AskError::Nonsense { path: path.to_owned(), source })
    }

    /// Sends `body` to `path` and reads the answer.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn post<T>(
        &mut self,
        path: &str,
        body: &Value,
        read: impl FnOnce(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, AskError> {
        let answer = self.ask(Method::POST, path, Bytes::from(body.to_string())).await?;
        read(&answer).map_err(|source| AskError::Nonsense { path: path.to_owned(), source })
    }

    async fn ask(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, AskError> {
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

    async fn exchange(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, AskError> {
        let broken = |source| AskError::Broken { path: path.to_owned(), source };
        let uri: Uri = path.parse().map_err(|_| AskError::Address(path.to_owned()))?;
        let request = Request::builder().method(method).uri(uri).header(HOST, &self.authority);
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

async fn connect(authority: &str) -> Result<SendRequest<Full<Bytes>>, AskError> {
    let failed = |source| AskError::Connect { address: authority.to_owned(), source };
    let stream = TcpStream::connect(authority).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| failed(std::io::Error::other(error)))?;
    // Ends with the sender, or when the other side closes; its error reaches whoever waits for an answer.
    tokio::spawn(connection);
    Ok(sender)
}
