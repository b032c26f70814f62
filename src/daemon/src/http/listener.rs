//! The listener's connections: how many there may be, and how long each may last.
//!
//! `axum::serve` bounds neither; hyper takes the connections here, and axum's router answers on them. Nobody waits for a
//! place: where all are taken, the connection that was longest without a request, of the peer that has the most, ends for
//! the new one. So those who connect and say nothing push out each other, and a probe is answered at once.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::page::{ConnectionEnds, Peer};
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

/// Connections at a time. Scrapers and supervisors are few.
const MAX_CONNECTIONS: usize = 32;
/// Of these, one peer's: others are to find places whatever it does.
const MAX_PER_PEER: usize = 24;
/// A request's head comes within this time, or its connection ends.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
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
        Self::on(TcpListener::bind(listen).await?, routes)
    }

    /// The same where it is bound already.
    pub(super) fn on(listener: TcpListener, routes: Router) -> std::io::Result<Self> {
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

/// Open connections, the one that was longest without a request first.
#[derive(Debug, Default)]
struct Connections {
    open: Vec<Connection>,
    /// Connections so far.
    numbers: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    peer: IpAddr,
    /// Ends its task; there as soon as there is a task.
    task: Option<AbortHandle>,
}

impl Connections {
    /// Makes place for a connection, and returns its number.
    fn enter(&mut self, peer: IpAddr) -> u64 {
        let peer = peer.to_canonical();
        let crowded = match self.of(peer) >= MAX_PER_PEER {
            true => Some(peer),
            false if self.open.len() < MAX_CONNECTIONS => None,
            // Whoever has the most; of equals, the one that was longest without a request.
            false => self.open.iter().rev().map(|connection| connection.peer).max_by_key(|peer| self.of(*peer)),
        };
        let oldest = self.open.iter().position(|connection| Some(connection.peer) == crowded);
        if let Some(task) = oldest.and_then(|at| self.open.remove(at).task) {
            task.abort();
        }
        self.numbers += 1;
        self.open.push(Connection { number: self.numbers, peer, task: None });
        self.numbers
    }

    /// How many a peer has.
    fn of(&self, peer: IpAddr) -> usize {
        self.open.iter().filter(|connection| connection.peer == peer).count()
    }

    fn runs(&mut self, number: u64, task: AbortHandle) {
        if let Some(found) = self.open.iter_mut().find(|connection| connection.number == number) {
            found.task = Some(task);
        }
    }

    /// A request came on it: it is the last to end.
    fn asks(&mut self, number: u64) {
        if let Some(at) = self.open.iter().position(|connection| connection.number == number) {
            let found = self.open.remove(at);
            self.open.push(found);
        }
    }

    fn leave(&mut self, number: u64) {
        self.open.retain(|connection| connection.number != number);
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    // Nothing under this lock can panic half way.
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a connection off the list when its task ends, be it from outside.
struct Place(Arc<Mutex<Connections>>, u64);

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.0).leave(self.1);
    }
}

async fn accept(listener: TcpListener, routes: Router) {
    let connections = Arc::<Mutex<Connections>>::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let mut all = lock(&connections);
                let place = Place(Arc::clone(&connections), all.enter(peer.ip()));
                let (number, routes) = (place.1, routes.clone());
                // It may end before it is known here, but not leave: the list is locked.
                let task = tokio::spawn(answer(stream, routes, place, HEAD_LIMIT, CONNECTION_LIMIT));
                all.runs(number, task.abort_handle());
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "metrics endpoint cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, routes: Router, place: Place, head: Duration, limit: Duration) {
    // Who it is: of a connection that has ended there is nothing to answer.
    let peer = stream.peer_addr().map(|peer| Peer(peer.ip()));
    let ends = ConnectionEnds(Instant::now() + limit);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        lock(&place.0).asks(place.1);
        request.extensions_mut().insert(ends);
        if let Ok(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        routes.clone().oneshot(request)
    });
    let mut server = http1::Builder::new();
    let connection =
        server.timer(TokioTimer::new()).header_read_timeout(head).serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or dawdles is its own problem.
    let _ = timeout(limit, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SOON: Duration = Duration::from_secs(30);

    async fn start() -> Endpoint {
        Endpoint::start("127.0.0.1:0".parse().unwrap(), Router::new()).await.unwrap()
    }

    /// The answer to one more connection.
    async fn answered(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        read_all(&mut stream).await
    }

    async fn read_all(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        // A reset is as good an end.
        let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.expect("it ends");
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn who_connects_and_says_nothing_delays_nobody() {
        let endpoint = start().await;
        let mut silent = Vec::new();
        for connection in 0..2 * MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
            if connection % 2 == 0 {
                stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
            }
            silent.push(stream);
        }
        let began = std::time::Instant::now();
        assert!(answered(endpoint.address()).await.starts_with("HTTP/1.0 404"));
        assert!(began.elapsed() < HEAD_LIMIT, "it waited for none of them: {:?}", began.elapsed());
        assert_eq!(read_all(&mut silent[0]).await, "", "the first one ended for later ones");
    }

    #[test]
    fn the_one_that_asked_longest_ago_ends_first_and_a_peer_has_its_own_bound() {
        let peer = |number: u8| IpAddr::from([10, 0, 0, number]);
        let mut all = Connections::default();
        let first: Vec<u64> = (0..MAX_PER_PEER).map(|_| all.enter(peer(1))).collect();
        let others: Vec<u64> = (MAX_PER_PEER..MAX_CONNECTIONS).map(|_| all.enter(peer(2))).collect();
        all.asks(first[0]);
        let has = |all: &Connections, number| all.open.iter().any(|connection| connection.number == number);
        all.enter(peer(1));
        assert!(has(&all, first[0]) && !has(&all, first[1]), "it asked a moment ago");
        assert_eq!(all.open.len(), MAX_CONNECTIONS);
        all.enter(peer(3));
        assert!(!has(&all, first[2]) && others.iter().all(|other| has(&all, *other)), "of whoever has the most");
        all.leave(first[0]);
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        for _ in 0..2 * MAX_CONNECTIONS {
            all.enter(mapped);
        }
        assert_eq!(all.of(peer(1)), MAX_CONNECTIONS - others.len() - 1, "what others leave");
        assert!(others.iter().all(|other| has(&all, *other)), "one peer pushes out itself only");
    }

    #[tokio::test]
    async fn a_connection_ends_in_time_whatever_its_client_does() {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(3_600));
        for (head, limit) in [(short, long), (long, short)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
            let ended = answer(stream, Router::new(), Place(Arc::default(), 0), head, limit);
            timeout(SOON, ended).await.expect("it does not wait for the rest");
            assert!(!read_all(&mut client).await.contains("200 OK"));
        }
    }
}
