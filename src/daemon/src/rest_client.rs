//! One kept connection to a REST interface, of an SDN controller or of Hadoop's, with TLS where its address is `https`;
//! answers are bounded in time and size.

use crate::regular_file::{self, LIST_BYTES};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, DATE, HOST, LOCATION};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore, crypto::ring};

/// Why there is no usable answer; `N` says what is wrong with one that came.
#[derive(Debug, thiserror::Error)]
pub enum RestError<N: std::error::Error + 'static> {
    /// It can't be reached.
    #[error("no connection to {address}: {source}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is reached, and not whom we trust, or it speaks no TLS.
    #[error("no TLS with {address}: {}", TlsTrouble::of(source).words(source))]
    Tls {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The answer did not come, or not all of it.
    #[error("no complete answer to {path} within {seconds} s")]
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
    #[error("{path}: the answer is {status}: {}", body.escape_debug())]
    // a stranger's words make no lines of a log
    Status {
        /// What was asked.
        path: String,
        /// Its status.
        status: StatusCode,
        /// The start of what it said.
        body: String,
        /// Where it sends us instead.
        location: Option<String>,
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

/// What a TLS handshake failed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsTrouble {
    /// What answers speaks no TLS.
    NoTls,
    /// Nobody that is trusted signed the certificate.
    Untrusted,
    /// It is an authority's own certificate, which no server may show.
    Authority,
    /// It is of another name.
    Name,
    /// It has expired, or is not valid yet.
    Expired,
    /// The other side ended it, or anything else.
    Other,
}

impl TlsTrouble {
    /// Of a handshake's error.
    #[must_use]
    pub fn of(source: &std::io::Error) -> Self {
        let Some(error) = source.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) else {
            return Self::Other;
        };
        match error {
            TlsError::InvalidMessage(_) => Self::NoTls,
            TlsError::InvalidCertificate(why) => match why {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Self::Name,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::Expired,
                // The crate that finds it names its errors by their variants only.
                other if format!("{other:?}").contains("CaUsedAsEndEntity") => Self::Authority,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    fn words(self, source: &std::io::Error) -> String {
        match self {
            Self::NoTls => "what answers there speaks no TLS".to_owned(),
            Self::Untrusted => "its certificate is signed by nobody that is trusted".to_owned(),
            Self::Authority => "its certificate is a certificate authority's own, which no server may show".to_owned(),
            Self::Name => "its certificate is of another name".to_owned(),
            Self::Expired => "its certificate is not valid now (expired, or not valid yet)".to_owned(),
            Self::Other => source.to_string(),
        }
    }
}

impl<N: std::error::Error + 'static> RestError<N> {
    /// A stable word for counters.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "unreachable",
            Self::Tls { .. } => "tls",
            Self::Late { .. } => "late",
            Self::Broken { .. } => "broken",
            Self::Status { .. } => "refused",
            Self::TooLarge { .. } => "too_large",
            Self::Nonsense { .. } => "nonsense",
            Self::Address(_) => "address",
        }
    }
}

/// Where a REST interface answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host and port.
    pub authority: String,
    /// `https`.
    pub tls: bool,
}

impl Address {
    /// Of an URL without a path; `None`: it is none, or names no port.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (tls, rest) = match url.strip_prefix("http://") {
            Some(rest) => (false, rest),
            None => (true, url.strip_prefix("https://")?),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':')?;
        let plain = !host.is_empty() && host.bytes().all(|c| c.is_ascii_graphic() && !b"/@?#".contains(&c));
        // Of a name there is one port; an IPv6 address stands in brackets.
        let plain = plain && (!host.contains(':') || host.starts_with('[') && host.ends_with(']'));
        let usable = plain && port.parse::<u16>().is_ok_and(|port| port > 0);
        usable.then(|| Self { authority: rest.to_owned(), tls })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority)
    }
}

/// Whose certificates are believed.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

/// Why there is nobody to trust.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file can't be read, or holds no certificate.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The system names nobody.
    #[error("the system has no trusted certificates ({0}): name a ca_file")]
    System(String),
}

impl Trust {
    /// The authorities in a file of PEM certificates, or whom the system trusts.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn read(ca_file: Option<&Path>) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = ca_file {
            let wrong = |why: String| TrustError::File { path: path.to_owned(), why };
            let pem = regular_file::read(path, LIST_BYTES).map_err(|error| wrong(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
        } else {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
                return Err(TrustError::System(why.join("; ")));
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().expect("ring has ciphers of TLS 1.2 and 1.3");
        Ok(Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// For these addresses: nothing is read where none of them is `https`.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn for_addresses(addresses: &[Address], ca_file: Option<&Path>) -> Result<Option<Self>, TrustError> {
        addresses.iter().any(|address| address.tls).then(|| Self::read(ca_file)).transpose()
    }
}

/// A REST interface.
#[derive(Debug)]
pub struct Rest {
    authority: String,
    trust: Option<Trust>,
    timeout: Duration,
    most: usize,
    connection: Option<SendRequest<Full<Bytes>>>,
    dated: Option<Dated>,
}

/// What a server's clock said when it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dated {
    /// `Date` of the answer, in whole seconds.
    pub date: SystemTime,
    /// When it was asked.
    pub asked: Instant,
    /// When the answer's head was there.
    pub came: Instant,
}

/// Of a refusal's text so much is shown.
const SHOWN: usize = 400;
/// A longer way to elsewhere is none.
const LOCATION_BYTES: usize = 2_048;

impl Rest {
    /// For `authority`, a host and port, without TLS; nothing is connected yet.
    #[must_use]
    pub const fn new(authority: String, timeout: Duration, most: usize) -> Self {
        Self { authority, trust: None, timeout, most, connection: None, dated: None }
    }

    /// For an address that may be of `https`: then `trust` must be there, see [`Trust::for_addresses`].
    #[must_use]
    pub fn at(address: &Address, trust: Option<&Trust>, timeout: Duration, most: usize) -> Self {
        let trust = trust.filter(|_| address.tls).cloned();
        Self { trust, ..Self::new(address.authority.clone(), timeout, most) }
    }

    /// What the server's clock said in the last answer, of a refusal as well; `None`: there was no answer, or it had no date.
    #[must_use]
    pub const fn dated(&self) -> Option<Dated> {
        self.dated
    }

    /// Asks for `path` and reads the answer.
    ///
    /// # Errors
    /// [`RestError`].
    pub async fn get<T, N: std::error::Error + 'static>(
        &mut self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, N>,
    ) -> Result<T, RestError<N>> {
        let body = self.ask(Method::GET, path, Bytes::new()).await?;
        read(&body).map_err(|source| RestError::Nonsense { path: path.to_owned(), source })
    }

    /// Sends `body` to `path` and reads the answer.
    ///
    /// # Errors
    /// [`RestError`].
    pub async fn post<T, N: std::error::Error + 'static>(
        &mut self,
        path: &str,
        body: &Value,
        read: impl FnOnce(&[u8]) -> Result<T, N>,
    ) -> Result<T, RestError<N>> {
        let answer = self.ask(Method::POST, path, Bytes::from(body.to_string())).await?;
        read(&answer).map_err(|source| RestError::Nonsense { path: path.to_owned(), source })
    }

    async fn ask<N: std::error::Error + 'static>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes, RestError<N>> {
        let late = || RestError::Late { path: path.to_owned(), seconds: self.timeout.as_secs_f64() };
        let late = late();
        self.dated = None;
        let timeout = self.timeout;
        let answer = match tokio::time::timeout(timeout, self.exchange(method, path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(late),
        };
        // After a refusal the connection is in order, after anything else it may not be.
        if !matches!(answer, Ok(_) | Err(RestError::Status { .. })) {
            self.connection = None;
        }
        answer
    }

    async fn exchange<N: std::error::Error + 'static>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes, RestError<N>> {
        let broken = |source| RestError::Broken { path: path.to_owned(), source };
        let uri: Uri = path.parse().map_err(|_| RestError::Address(path.to_owned()))?;
        let request =
            Request::builder().method(method).uri(uri).header(HOST, &self.authority).header(ACCEPT, "application/json");
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let request = request.map_err(|_| RestError::Address(self.authority.clone()))?;
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
            empty => empty.insert(connect(&self.authority, self.trust.as_ref()).await?),
        };
        let asked = Instant::now();
        let answer = connection.send_request(request).await.map_err(broken)?;
        let date = answer.headers().get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        self.dated = date.map(|date| Dated { date, asked, came: Instant::now() });
        let status = answer.status();
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let location = location.filter(|location| location.len() <= LOCATION_BYTES).map(str::to_owned);
        let body = match Limited::new(answer.into_body(), self.most).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(RestError::TooLarge { path: path.to_owned(), most: self.most });
            }
            Err(error) => {
                return Err(match error.downcast::<hyper::Error>() {
                    Ok(source) => broken(*source),
                    Err(_) => RestError::TooLarge { path: path.to_owned(), most: self.most },
                });
            }
        };
        if status.is_success() {
            return Ok(body);
        }
        let body = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        Err(RestError::Status { path: path.to_owned(), status, body, location })
    }
}

async fn connect<N: std::error::Error + 'static>(
    authority: &str,
    trust: Option<&Trust>,
) -> Result<SendRequest<Full<Bytes>>, RestError<N>> {
    let failed = |source| RestError::Connect { address: authority.to_owned(), source };
    let stream = TcpStream::connect(authority).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let Some(trust) = trust else { return open(stream).await.map_err(failed) };
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| RestError::Address(authority.to_owned()))?;
    let stream = TlsConnector::from(Arc::clone(&trust.0)).connect(name, stream).await;
    let stream = stream.map_err(|source| RestError::Tls { address: authority.to_owned(), source })?;
    open(stream).await.map_err(failed)
}

async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
) -> Result<SendRequest<Full<Bytes>>, std::io::Error> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
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
    fn an_address_is_a_scheme_a_host_and_a_port() {
        let shown = |url: &str| Address::parse(url).map(|address| address.to_string());
        assert_eq!(shown("http://rm1:8088/"), Some("http://rm1:8088".to_owned()));
        assert_eq!(shown("https://[::1]:9871"), Some("https://[::1]:9871".to_owned()));
        for none in ["rm1:8088", "http://rm1", "ftp://a:1", "http://a:0", "http://:1", "http://a/b:1", "https://u@a:1"]
        {
            assert_eq!(shown(none), None, "{none}");
        }
        for none in ["http://a:b:1", "http://::1:9871", "http://[::1:9871"] {
            assert_eq!(shown(none), None, "{none}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let problem = || Trust::read(Some(&path)).expect_err("refused").to_string();
        assert!(problem().starts_with(&format!("{}: ", path.display())), "{}", problem());
        std::fs::write(&path, "no PEM").unwrap();
        assert!(problem().ends_with("there is no certificate in it"), "{}", problem());
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(problem().ends_with("it is a FIFO, not a regular file"), "{}", problem());
    }

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        let most = Duration::from_secs(30);
        assert_eq!(backoff(1, most, 1.0), BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 1.0), 4 * BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 0.0), 2 * BACKOFF_FIRST);
        assert_eq!(backoff(u32::MAX, most, 1.0), most);
    }
}
