//! Servers that the daemon asks of its own accord, and how each stands: one account for status, metrics and the log.
//!
//! Whoever asks makes a [`Group`] of servers of which one is enough, goes round them, and tells the group what came of
//! each. The group says what of that is news, so that a log tells of changes and not of tries.

use super::setup::Setup;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Characters that are kept of an error: some carry the start of a stranger's page.
const ERROR_CHARS: usize = 400;

/// How a server stood when it was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// It was not asked: another one of its group answers.
    NotAsked,
    /// It gave a good answer.
    Answers,
    /// It answers, and does not lead.
    Standby,
    /// It answers that it does not know yet.
    SafeMode,
    /// It answers that it has too much to do.
    Busy,
    /// It answers, and not what was asked for.
    WrongAnswer,
    /// It gave no answer.
    Silent,
}

impl ServerStatus {
    /// For scripts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::Answers => "answers",
            Self::Standby => "standby",
            Self::SafeMode => "safe_mode",
            Self::Busy => "busy",
            Self::WrongAnswer => "wrong_answer",
            Self::Silent => "silent",
        }
    }

    /// It is there and will answer by itself after a while.
    const fn waits(self) -> bool {
        matches!(self, Self::SafeMode | Self::Busy)
    }
}

/// Why a server gave no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFailure {
    /// Anything but [`ServerStatus::Answers`].
    pub status: ServerStatus,
    /// A word out of a closed list: another word is news.
    pub reason: &'static str,
    /// In words.
    pub error: String,
    /// What an operator may do about it; empty: what the status says is all.
    pub advice: String,
}

impl ServerFailure {
    /// Of a server that is there: how it stands says what to do.
    pub fn status(status: ServerStatus, reason: &'static str, error: &impl std::fmt::Display) -> Self {
        Self { status, reason, error: error.to_string(), advice: String::new() }
    }
}

/// What is news of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// It is the first answer of the group, or another server gave the last one.
    pub moved: bool,
    /// For so long no server of the group gave a good answer; `None`: the last round had one.
    pub away: Option<Duration>,
}

/// A server at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    /// What it is asked for.
    pub source: &'static str,
    /// Its address.
    pub address: String,
    /// How it stood when it was asked last.
    pub status: ServerStatus,
    /// It gave the group's last good answer.
    pub in_use: bool,
    /// For how long it has stood so.
    pub since: Duration,
    /// Age of its last good answer.
    pub heard: Option<Duration>,
    /// Age of the last question to it.
    pub asked: Option<Duration>,
    /// Of the last question; empty: it was answered.
    pub error: String,
    /// What to do about it.
    pub advice: String,
}

/// Sets a group's gauges: whether the last round was answered, and how long ago one was, or since the start.
type Gauges = Arc<dyn Fn(bool, Duration) + Send + Sync>;

/// All groups, in the order in which they were made, and what the ResourceManager shows of itself.
#[derive(Clone, Default)]
pub struct Servers {
    groups: Arc<Mutex<Vec<Group>>>,
    setup: Arc<Setup>,
}

impl Servers {
    /// What the ResourceManager that leads shows of itself.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A group of servers of one source, by their addresses, of which one is enough.
    pub fn group(
        &self,
        source: &'static str,
        addresses: impl IntoIterator<Item = String>,
        gauges: impl Fn(bool, Duration) + Send + Sync + 'static,
    ) -> Group {
        let now = Instant::now();
        let round = Round::new(source, addresses, now);
        let group = Group { round: Arc::new(Mutex::new(round)), gauges: Arc::new(gauges) };
        group.gauge(now);
        lock(&self.groups).push(group.clone());
        group
    }

    /// Every server, group by group.
    #[must_use]
    pub fn all(&self) -> Vec<ServerView> {
        let now = Instant::now();
        lock(&self.groups).iter().flat_map(|group| lock(&group.round).views(now)).collect()
    }

    /// Sources of which no server gave a good answer in the last round; each once.
    #[must_use]
    pub fn silent(&self) -> Vec<&'static str> {
        let mut silent: Vec<&'static str> = Vec::new();
        for group in lock(&self.groups).iter() {
            let round = lock(&group.round);
            if round.outage.is_some() && !silent.contains(&round.source) {
                silent.push(round.source);
            }
        }
        silent
    }

    /// Sets the gauges of every group: ages grow while nobody asks, too.
    pub(super) fn gauge(&self) {
        let now = Instant::now();
        lock(&self.groups).iter().for_each(|group| group.gauge(now));
    }
}

/// Servers of which one is enough.
#[derive(Clone)]
pub struct Group {
    round: Arc<Mutex<Round>>,
    gauges: Gauges,
}

impl Group {
    /// A server gave a good answer, which ends a round.
    #[must_use = "what is news belongs into the log"]
    pub fn answered(&self, at: usize) -> Answered {
        let now = Instant::now();
        let answered = lock(&self.round).answered(at, now);
        self.gauge(now);
        answered
    }

    /// A server answered a question that any server answers whatever its state: it is there, and that it does not know
    /// yet, or has too much to do, may still be so for `holds` after it said that.
    #[must_use = "what is news belongs into the log"]
    pub fn answered_idly(&self, at: usize, holds: Duration) -> Option<Answered> {
        let now = Instant::now();
        let answered = lock(&self.round).answered_idly(at, holds, now);
        self.gauge(now);
        answered
    }

    /// A server gave no good answer; whether that is another reason than it had since it gave one.
    pub fn troubled(&self, at: usize, trouble: ServerFailure) -> bool {
        lock(&self.round).troubled(at, trouble, Instant::now())
    }

    /// No server gave a good answer, which ends a round. What each said, where that is news.
    #[must_use = "what is news belongs into the log"]
    pub fn nobody(&self) -> Option<String> {
        let now = Instant::now();
        let news = lock(&self.round).nobody(now);
        self.gauge(now);
        news
    }

    fn gauge(&self, now: Instant) {
        let (answers, age) = {
            let round = lock(&self.round);
            (
                round.outage.is_none() && round.heard.is_some(),
                now.saturating_duration_since(round.heard.unwrap_or(round.started)),
            )
        };
        (self.gauges)(answers, age);
    }
}

/// A group's account; time is an argument.
#[derive(Debug)]
struct Round {
    source: &'static str,
    servers: Vec<Server>,
    started: Instant,
    /// When a good answer came last.
    heard: Option<Instant>,
    /// Who gave it.
    in_use: Option<usize>,
    outage: Option<Outage>,
}

#[derive(Debug)]
struct Server {
    address: String,
    status: ServerStatus,
    since: Instant,
    heard: Option<Instant>,
    asked: Option<Instant>,
    reason: &'static str,
    error: String,
    advice: String,
    /// Reasons since its last good answer.
    told: BTreeSet<&'static str>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    /// Reasons that all servers had together: each is news once.
    told: BTreeSet<Vec<&'static str>>,
}

impl Round {
    fn new(source: &'static str, addresses: impl IntoIterator<Item = String>, now: Instant) -> Self {
        let server = |address| Server {
            address,
            status: ServerStatus::NotAsked,
            since: now,
            heard: None,
            asked: None,
            reason: "",
            error: String::new(),
            advice: String::new(),
            told: BTreeSet::new(),
        };
        let servers = addresses.into_iter().map(server).collect();
        Self { source, servers, started: now, heard: None, in_use: None, outage: None }
    }

    fn answered(&mut self, at: usize, now: Instant) -> Answered {
        let server = &mut self.servers[at];
        server.stands(ServerStatus::Answers, now);
        (server.heard, server.reason) = (Some(now), "");
        server.error.clear();
        server.advice.clear();
        server.told.clear();
        let moved = self.in_use.replace(at) != Some(at);
        self.heard = Some(now);
        Answered { moved, away: self.outage.take().map(|outage| now.saturating_duration_since(outage.since)) }
    }

    fn answered_idly(&mut self, at: usize, holds: Duration, now: Instant) -> Option<Answered> {
        let server = &mut self.servers[at];
        let said = server.asked.map_or(Duration::MAX, |asked| now.saturating_duration_since(asked));
        if server.status.waits() && said < holds {
            return None;
        }
        Some(self.answered(at, now))
    }

    fn troubled(&mut self, at: usize, trouble: ServerFailure, now: Instant) -> bool {
        let server = &mut self.servers[at];
        let ServerFailure { status, reason, error, advice } = trouble;
        server.stands(status, now);
        (server.reason, server.advice) = (reason, advice);
        server.error = error.chars().take(ERROR_CHARS).collect();
        server.told.insert(reason)
    }

    fn nobody(&mut self, now: Instant) -> Option<String> {
        let reasons: Vec<&'static str> = self.servers.iter().map(|server| server.reason).collect();
        let outage = self.outage.get_or_insert_with(|| Outage { since: now, told: BTreeSet::new() });
        let several = self.servers.len() > 1;
        let said = self.servers.iter().filter(|server| !server.error.is_empty());
        let said = said
            .map(|server| if several { format!("{}: {}", server.address, server.error) } else { server.error.clone() });
        outage.told.insert(reasons).then(|| said.collect::<Vec<_>>().join("; "))
    }

    fn views(&self, now: Instant) -> Vec<ServerView> {
        let age = |at: Instant| now.saturating_duration_since(at);
        let view = |(at, server): (usize, &Server)| ServerView {
            source: self.source,
            address: server.address.clone(),
            status: server.status,
            in_use: self.in_use == Some(at),
            since: age(server.since),
            heard: server.heard.map(age),
            asked: server.asked.map(age),
            error: server.error.clone(),
            advice: server.advice.clone(),
        };
        self.servers.iter().enumerate().map(view).collect()
    }
}

impl Server {
    fn stands(&mut self, status: ServerStatus, now: Instant) {
        if self.status != status {
            (self.status, self.since) = (status, now);
        }
        self.asked = Some(now);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn round(addresses: &[&str]) -> (Round, Instant) {
        let start = Instant::now();
        (Round::new("resource_manager", addresses.iter().map(ToString::to_string), start), start)
    }

    fn trouble(status: ServerStatus, reason: &'static str) -> ServerFailure {
        ServerFailure { status, reason, error: format!("it is {reason}"), advice: format!("mend {reason}") }
    }

    #[test]
    fn an_outage_is_news_once_for_each_reason_and_once_when_it_is_over() {
        let (mut round, start) = round(&["a"]);
        assert_eq!(round.answered(0, start), Answered { moved: true, away: None });
        assert_eq!(round.answered(0, start + S), Answered { moved: false, away: None });
        let mut fails = |reason, at: u32| {
            round.troubled(0, trouble(ServerStatus::Silent, reason), start + at * S);
            round.nobody(start + at * S)
        };
        assert_eq!(fails("late", 10).as_deref(), Some("it is late"));
        assert_eq!(fails("late", 11), None, "said before");
        assert_eq!(fails("refused", 12).as_deref(), Some("it is refused"));
        assert_eq!(fails("late", 13), None, "one that goes to and fro does not fill the log");
        let view = &round.views(start + 20 * S)[0];
        assert_eq!((view.status, view.since, view.heard), (ServerStatus::Silent, 10 * S, Some(19 * S)));
        assert_eq!((view.asked, &*view.error, view.in_use), (Some(7 * S), "it is late", true));
        assert_eq!(view.advice, "mend late");
        assert_eq!(round.answered(0, start + 30 * S), Answered { moved: false, away: Some(20 * S) });
        assert_eq!(round.answered(0, start + 31 * S).away, None);
        let view = &round.views(start + 31 * S)[0];
        assert_eq!((&*view.error, &*view.advice), ("", ""));
        round.troubled(0, trouble(ServerStatus::Silent, "late"), start + 40 * S);
        assert!(round.nobody(start + 40 * S).is_some(), "another outage");
    }

    #[test]
    fn of_several_servers_one_is_enough_and_each_keeps_its_own_word() {
        let (mut round, start) = round(&["a", "b", "c"]);
        assert!(round.troubled(0, trouble(ServerStatus::Standby, "standby"), start));
        assert_eq!(round.answered(1, start), Answered { moved: true, away: None });
        assert!(round.outage.is_none());
        assert!(!round.troubled(0, trouble(ServerStatus::Standby, "standby"), start + S), "it was one before");
        let words: Vec<_> = round.views(start + S).iter().map(|view| (view.status, view.in_use)).collect();
        assert_eq!(
            words,
            [(ServerStatus::Standby, false), (ServerStatus::Answers, true), (ServerStatus::NotAsked, false)]
        );
        round.troubled(1, trouble(ServerStatus::Silent, "late"), start + 2 * S);
        assert_eq!(round.nobody(start + 2 * S).as_deref(), Some("a: it is standby; b: it is late"));
        assert_eq!(round.answered(0, start + 4 * S), Answered { moved: true, away: Some(2 * S) });
    }

    #[test]
    fn an_idle_answer_does_not_end_a_safe_mode_that_was_told_of_just_now() {
        let (mut round, start) = round(&["a"]);
        round.troubled(0, trouble(ServerStatus::SafeMode, "later"), start);
        round.nobody(start);
        assert_eq!(round.answered_idly(0, 10 * S, start + 9 * S), None);
        assert_eq!(round.views(start + 9 * S)[0].status, ServerStatus::SafeMode);
        assert_eq!(round.answered_idly(0, 10 * S, start + 10 * S).unwrap().away, Some(10 * S));
        round.troubled(0, trouble(ServerStatus::Silent, "late"), start + 20 * S);
        round.nobody(start + 20 * S);
        assert!(round.answered_idly(0, 10 * S, start + 21 * S).is_some(), "it is there again");
    }

    #[test]
    fn sources_without_any_answer_are_named_once_and_their_age_counts_from_the_start() {
        let ages = Arc::new(Mutex::new(Vec::new()));
        let servers = Servers::default();
        let seen = Arc::clone(&ages);
        let one = servers.group("history_server", ["a".to_owned()], move |answers, _| lock(&seen).push(answers));
        let other = servers.group("history_server", ["b".to_owned()], |_, _| {});
        assert_eq!(servers.silent(), [""; 0], "nobody was asked yet");
        for group in [&one, &other] {
            group.troubled(0, trouble(ServerStatus::Silent, "late"));
            assert!(group.nobody().is_some());
        }
        assert_eq!(servers.silent(), ["history_server"]);
        assert!(one.answered(0).away.is_some() && other.answered(0).away.is_some());
        servers.gauge();
        assert_eq!((servers.silent().len(), servers.all().len()), (0, 2));
        assert_eq!(*lock(&ages), [false, false, true, true]);
    }
}
