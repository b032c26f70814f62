//! Who may look at the operator's page: one-time keys, and sessions of browsers that showed one.
//!
//! Keys and sessions are kept hashed, in memory only: with the process they end.

use super::Daemon;
use hintd_engine::Refusal;
use hintd_model::units::Micros;
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Keys that wait for their browser; the oldest ends for one more.
const KEYS_MAX: usize = 8;
/// A key is to be used in this time.
const KEY_LIFE: Duration = Duration::from_secs(60);

/// `[page]`, where it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageOptions {
    /// Browsers that may look at one time; the one that came first ends for one more.
    pub sessions: usize,
    /// How long a browser may look.
    pub session_time: Duration,
    /// Event streams at one time, all browsers together.
    pub streams: usize,
}

/// Keys and sessions of the page at one address.
#[derive(Debug)]
pub struct PageAccess {
    address: SocketAddr,
    options: PageOptions,
    known: Mutex<Known>,
}

/// The page of a daemon: whether it is on, and who may look once its listener is up.
#[derive(Debug)]
pub(in crate::runtime) struct PageState {
    is_on: bool,
    access: OnceLock<Arc<PageAccess>>,
}

impl PageState {
    pub(in crate::runtime) const fn new(is_on: bool) -> Self {
        Self { is_on, access: OnceLock::new() }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Oldest first.
    keys: VecDeque<Pass>,
    sessions: VecDeque<Pass>,
}

/// A secret that was given out, hashed.
#[derive(Debug)]
struct Pass {
    hash: [u8; 32],
    until: Instant,
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Adds a secret of `life`, at most `most` of them; returns it.
fn give(into: &mut VecDeque<Pass>, most: usize, life: Duration, now: Instant) -> String {
    into.retain(|pass| pass.until > now);
    while into.len() >= most {
        into.pop_front();
    }
    let secret = format!("{:032x}", rand::random::<u128>());
    into.push_back(Pass { hash: hash(&secret), until: now + life });
    secret
}

impl PageAccess {
    /// Of a listener that is bound to `address`.
    #[must_use]
    pub fn new(address: SocketAddr, options: PageOptions) -> Self {
        Self { address, options, known: Mutex::default() }
    }

    /// The bounds.
    #[must_use]
    pub const fn options(&self) -> &PageOptions {
        &self.options
    }

    /// A new one-time address, and how long it can be used.
    #[must_use]
    pub fn invite(&self) -> (String, Duration) {
        let key = give(&mut self.lock().keys, KEYS_MAX, KEY_LIFE, Instant::now());
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let loopback = if address.is_ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
            address.set_ip(loopback);
        }
        (format!("http://{address}/page/?key={key}"), KEY_LIFE)
    }

    /// A session for whoever shows a key, which is used up by it; `None`: the key is no key (any more).
    #[must_use]
    pub fn redeem(&self, key: &str) -> Option<String> {
        self.redeem_at(key, Instant::now())
    }

    fn redeem_at(&self, key: &str, now: Instant) -> Option<String> {
        let hash = hash(key);
        let mut known = self.lock();
        let at = known.keys.iter().position(|pass| pass.hash == hash)?;
        let pass = known.keys.remove(at)?;
        let PageOptions { sessions, session_time, .. } = self.options;
        (pass.until > now).then(|| give(&mut known.sessions, sessions, session_time, now))
    }

    /// Whether a session is one.
    #[must_use]
    pub fn admits(&self, session: &str) -> bool {
        self.admits_at(session, Instant::now())
    }

    fn admits_at(&self, session: &str, now: Instant) -> bool {
        let hash = hash(session);
        self.lock().sessions.iter().any(|pass| pass.hash == hash && pass.until > now)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing under this lock can panic half way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    /// Lets operators be invited to a page. The first one set stays.
    pub fn set_page(&self, access: Arc<PageAccess>) {
        let _ = self.0.page.access.set(access);
    }

    /// Who may look at the page.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] where it is off, [`Refusal::Unavailable`] where its listener is not up yet: the admin socket
    /// is before it.
    pub fn page(&self) -> Result<&Arc<PageAccess>, Refusal> {
        self.0.page.access.get().ok_or_else(|| {
            if self.0.page.is_on {
                let message =
                    "the page is starting: the daemon answers already, and its HTTP listener does not yet".to_owned();
                return Refusal::Unavailable { message, retry_after: Micros::from_secs(1) };
            }
            let message = "false in the configuration: set it to true and restart the daemon".to_owned();
            Refusal::Invalid { field: "page.enabled".to_owned(), message }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> PageAccess {
        let options = PageOptions { sessions: 2, session_time: Duration::from_secs(600), streams: 1 };
        PageAccess::new("127.0.0.1:9470".parse().unwrap(), options)
    }

    fn key(access: &PageAccess) -> String {
        let (url, _) = access.invite();
        url.strip_prefix("http://127.0.0.1:9470/page/?key=").unwrap().to_owned()
    }

    #[test]
    fn a_key_opens_one_session_once_and_not_for_long() {
        let access = access();
        let first = key(&access);
        let session = access.redeem(&first).unwrap();
        assert!(access.admits(&session) && session.len() == 32);
        assert_eq!(access.redeem(&first), None, "it is used up");
        assert!(!access.admits(&first) && !access.admits("") && access.redeem("").is_none());
        let late = key(&access);
        assert_eq!(access.redeem_at(&late, Instant::now() + KEY_LIFE), None, "too late");
        assert_eq!(access.redeem(&late), None, "and used up by it");
        assert!(!access.admits_at(&session, Instant::now() + Duration::from_secs(601)), "sessions end");
    }

    #[test]
    fn keys_and_sessions_are_bounded_and_the_oldest_ends() {
        let access = access();
        let keys: Vec<String> = (0..=KEYS_MAX).map(|_| key(&access)).collect();
        assert_eq!(access.redeem(&keys[0]), None);
        let sessions: Vec<String> = keys[1..4].iter().map(|key| access.redeem(key).unwrap()).collect();
        let admitted: Vec<bool> = sessions.iter().map(|session| access.admits(session)).collect();
        assert_eq!(admitted, [false, true, true]);
        assert!(!format!("{access:?}").contains(&sessions[2]), "secrets are kept hashed");
    }
}
