//! A web server of Hadoop's as tests want it: it answers each question as it is told to, over TLS if asked to.

use hintd::hadoop::ServerOptions;
use hintd::rest_client::Address;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A whole answer, head and all, and how long it takes.
#[derive(Clone)]
pub(crate) struct Said(pub(crate) String, pub(crate) Duration);

type Script = Arc<Mutex<Arc<dyn Fn(&str) -> Said + Send + Sync>>>;

/// See the module.
pub(crate) struct Server {
    pub(crate) address: Address,
    script: Script,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers a question by its path and query.
    pub(crate) async fn start(script: impl Fn(&str) -> Said + Send + Sync + 'static) -> Self {
        Self::launch(script, None).await
    }

    /// The same over TLS, with the certificate of tests/data/tls.
    pub(crate) async fn with_tls(script: impl Fn(&str) -> Said + Send + Sync + 'static) -> Self {
        let chain = CertificateDer::pem_file_iter(tls("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(tls("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(chain, key).unwrap();
        Self::launch(script, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn launch(script: impl Fn(&str) -> Said + Send + Sync + 'static, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address { authority: listener.local_addr().unwrap().to_string(), tls: tls.is_some() };
        let script: Script = Arc::new(Mutex::new(Arc::new(script)));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (own, seen) = (Arc::clone(&script), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, asked, tls) = (Arc::clone(&own), Arc::clone(&seen), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer(stream, script, asked).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, script, asked).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, script, asked }
    }

    pub(crate) fn says(&self, script: impl Fn(&str) -> Said + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// What was asked so far, path and query.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A file of tests/data/tls.
pub(crate) fn tls(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, script: Script, asked: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let question = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(question.clone());
    let script = Arc::clone(&*script.lock().unwrap());
    let Said(text, after) = script(&question);
    tokio::time::sleep(after).await;
    _ = stream.write_all(text.as_bytes()).await;
    _ = stream.shutdown().await;
}

/// An answer at once.
pub(crate) fn http(status: &str, body: &str) -> Said {
    let length = body.len();
    Said(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"), Duration::ZERO)
}

/// Asked impatiently, as `user`.
pub(crate) fn asked<'a>(servers: impl IntoIterator<Item = &'a Server>, user: &str, poll: Duration) -> ServerOptions {
    ServerOptions {
        addresses: servers.into_iter().map(|server| server.address.clone()).collect(),
        ca_file: None,
        user: user.into(),
        poll,
        // A busy machine halts for a second: that is no answer that came too late.
        timeout: Duration::from_secs(2),
        backoff: Duration::from_millis(100),
        answer_bytes: 1 << 20,
    }
}
