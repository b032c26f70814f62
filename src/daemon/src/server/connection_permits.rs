//! How many connections there may be: those beyond are told so call by call, and many beyond are closed at once.
//!
//! A connection that never speaks HTTP/2 is closed after a time: its permit is for others. Once it has spoken, HTTP/2's own
//! keepalive finds out whether somebody is there.
//!
//! Nor does one keep its permit that leaves unread what waits for it, or reads it too slowly.
//!
//! A connection that came too late gets its permit with the first call after one became free; so a client that keeps
//! its connection needs to do nothing but ask again.

use super::bounds::{Budgets, Late, Shares};
use crate::runtime::Daemon;
use crate::runtime::options::Listen;
use crate::telemetry::metrics::{ConnectionRefusal, MessageRefusal};
use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep, sleep_until};
use tonic::transport::server::Connected;

/// Connections beyond the limit that are told so; further ones are closed without a word.
const WAITING_CONNECTIONS_MAX: usize = 64;
/// When to ask again for a permit.
const RETRY_AFTER: Micros = Micros::from_secs(1);

/// What every HTTP/2 client sends first, before it waits for anything (RFC 9113, section 3.4).
const GREETING: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// All permits of a listener.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    daemon: Daemon,
    /// How long a connection may take to greet.
    greeting: Duration,
    permits: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    most: usize,
    budgets: Budgets,
}

/// One connection's; told to its calls as an extension.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPermit(Arc<PermitSlot>);

#[derive(Debug)]
struct PermitSlot {
    peer: Option<SocketAddr>,
    permits: Arc<Semaphore>,
    most: usize,
    held: Mutex<PermitState>,
    shares: Shares,
}

#[derive(Debug)]
enum PermitState {
    Permitted { _permit: OwnedSemaphorePermit },
    Waiting { _place: OwnedSemaphorePermit },
}

/// A connection with its permit.
#[derive(Debug)]
pub(super) struct PermittedConnection {
    stream: TcpStream,
    permit: ConnectionPermit,
    /// Until it has greeted.
    greeting: Option<Greeting>,
    unread: Unread,
    /// Whether anything was written.
    spoke: bool,
}

/// Sees that what waits for a connection is read.
#[derive(Debug)]
struct Unread {
    /// Set while something waits.
    until: Option<Pin<Box<Sleep>>>,
    daemon: Daemon,
}

#[derive(Debug)]
struct Greeting {
    /// Bytes that are still to come.
    missing: usize,
    within: Pin<Box<Sleep>>,
    daemon: Daemon,
    /// What `within` was made of, for the log.
    limit: Duration,
}

impl ConnectionLimiter {
    pub(super) fn new(listen: &Listen, daemon: Daemon, budgets: Budgets) -> Self {
        let most = listen.connections.min(Semaphore::MAX_PERMITS);
        Self {
            daemon,
            greeting: listen.greeting,
            budgets,
            permits: Arc::new(Semaphore::new(most)),
            waiting: Arc::new(Semaphore::new(WAITING_CONNECTIONS_MAX)),
            most,
        }
    }

    /// Lets a connection in; `None`: it is to be closed.
    pub(super) fn permit(&self, stream: TcpStream) -> Option<PermittedConnection> {
        let held = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => PermitState::Permitted { _permit: permit },
            Err(_) => {
                let place = Arc::clone(&self.waiting).try_acquire_owned().ok();
                let turned = if place.is_some() { ConnectionRefusal::Standing } else { ConnectionRefusal::Closed };
                self.daemon.metrics().connection_turned(turned, self.most);
                PermitState::Waiting { _place: place? }
            }
        };
        let peer = stream.peer_addr().ok().map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()));
        let (permits, shares) = (Arc::clone(&self.permits), self.budgets.shares());
        let place = PermitSlot { peer, permits, most: self.most, held: Mutex::new(held), shares };
        let within = Box::pin(sleep(self.greeting));
        let greeting = Greeting { missing: GREETING, within, daemon: self.daemon.clone(), limit: self.greeting };
        let unread = Unread { until: None, daemon: self.daemon.clone() };
        let permit = ConnectionPermit(Arc::new(place));
        Some(PermittedConnection { stream, permit, greeting: Some(greeting), unread, spoke: false })
    }
}

impl Unread {
    /// Whether what waits was left unread for too long, or read too slowly. Asked whenever the connection looks for what comes in.
    fn is_over(&mut self, shares: &Shares, cx: &mut Context<'_>) -> bool {
        let Some((due, late)) = shares.outbound.due() else {
            self.until = None;
            return false;
        };
        let due = tokio::time::Instant::from_std(due);
        let until = self.until.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if until.deadline() != due {
            until.as_mut().reset(due);
        }
        let over = until.as_mut().poll(cx).is_ready();
        if over {
            let refusal = match late {
                Late::Unread => MessageRefusal::Unread,
                Late::Slow => MessageRefusal::Slow,
            };
            self.daemon.metrics().message_refused(refusal);
        }
        over
    }
}

impl ConnectionPermit {
    /// What the connection holds of the memory of messages.
    pub(super) fn shares(&self) -> &Shares {
        &self.0.shares
    }

    /// Whose connection it is.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.0.peer.map(|peer| peer.ip())
    }

    /// Who shares quotas: a machine, and on loopback, where all have one address, a connection.
    pub(super) fn quota_peer(&self) -> Option<SocketAddr> {
        self.0.peer.map(|peer| SocketAddr::new(peer.ip(), if peer.ip().is_loopback() { peer.port() } else { 0 }))
    }

    /// Whether the connection has a permit, or gets one now.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] while there is none.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let PermitSlot { permits, most, held, .. } = &*self.0;
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let PermitState::Waiting { .. } = *held {
            let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
                let message = format!("{most} connections stand, as many as limits.connections allows");
                return Err(Refusal::Unavailable { message, retry_after: RETRY_AFTER });
            };
            *held = PermitState::Permitted { _permit: permit };
        }
        Ok(())
    }
}

impl Connected for PermittedConnection {
    type ConnectInfo = ConnectionPermit;

    fn connect_info(&self) -> ConnectionPermit {
        self.permit.clone()
    }
}

impl AsyncRead for PermittedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let connection = &mut *self;
        let Some(greeting) = &mut connection.greeting else {
            if read.is_pending() && connection.unread.is_over(&connection.permit.0.shares, cx) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            return read;
        };
        greeting.missing = greeting.missing.saturating_sub(buf.filled().len() - before);
        if greeting.missing == 0 {
            connection.greeting = None;
        } else if read.is_pending() && greeting.within.as_mut().poll(cx).is_ready() {
            greeting
                .daemon
                .metrics()
                .connection_turned(ConnectionRefusal::Silent, format_args!("{:?}", greeting.limit));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for PermittedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.spoke = true;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.spoke = true;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    /// No for who asks before anything is written, which is h2 as it begins: it copies answers of up to 1 KiB in between their
    /// head and their trailers then and writes all at once, and not those of up to 256 bytes only. What is larger is written
    /// from where it lies all the same, for each write asks anew.
    fn is_write_vectored(&self) -> bool {
        self.spoke && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::runtime::tests::running;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    #[tokio::test(flavor = "multi_thread")]
    async fn it_gathers_writes_but_says_so_only_once_something_was_written() {
        let (_folder, running) = running().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let listen = Config::from_text("", "test.toml").unwrap().options.listen;
        let limiter = ConnectionLimiter::new(&listen, running.daemon.clone(), Budgets::new(&listen));
        let mut connection = limiter.permit(stream).unwrap();
        assert!(!connection.is_write_vectored(), "h2 asks as it begins, and copies more then");
        connection.write_all(b"x").await.unwrap();
        assert!(connection.is_write_vectored(), "and again at each write");
        drop(connection);
        running.shutdown().await.unwrap();
    }
}
