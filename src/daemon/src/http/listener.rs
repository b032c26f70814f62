//! The listener's connections: how many there may be, and how long each may last.
//!
//! `axum::serve` bounds neither; hyper takes the connections here, and axum's router answers on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Connections served at a time; more wait to be accepted. Scrapers and supervisors are few.
const MAX_CONNECTIONS: usize = 32;
/// A connection ends after this long, whatever its client does; a scrape takes milliseconds.
const CONNECTION_LIMIT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running listener; dropping it stops listening.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Answers on `listen` by `routes`, on the current tokio runtime.
    pub(super) async fn start(listen: SocketAddr, routes: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, task: tokio::spawn(accept(listener, routes)) })
    }

    /// The bound address, with the real port where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, routes: Router) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let routes = routes.clone();
                tokio::spawn(async move {
                    answer(stream, routes, CONNECTION_LIMIT).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "metrics endpoint cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, routes: Router, limit: Duration) {
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // A client that breaks off or dawdles is its own problem.
    let _ = timeout(limit, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// An answer to one more connection, if it comes soon.
    async fn answered(address: SocketAddr) -> bool {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let soon = Duration::from_millis(200);
        timeout(soon, stream.read_to_end(&mut answer)).await.is_ok_and(|read| read.unwrap() > 0)
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_wait_until_others_end() {
        let endpoint = Endpoint::start("127.0.0.1:0".parse().unwrap(), Router::new()).await.unwrap();
        assert!(answered(endpoint.address()).await);
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(TcpStream::connect(endpoint.address()).await.unwrap());
        }
        assert!(!answered(endpoint.address()).await, "all places are taken");
        silent.clear();
        for _ in 0..50 {
            if answered(endpoint.address()).await {
                return;
            }
        }
        panic!("no place came free");
    }

    #[tokio::test]
    async fn a_connection_ends_in_time_whatever_its_client_does() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        let ended = answer(stream, Router::new(), Duration::from_millis(50));
        timeout(Duration::from_secs(10), ended).await.expect("it does not wait for the rest");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await; // a reset is as good an end
        assert_eq!(answer, b"");
    }
}
