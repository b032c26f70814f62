//! What is asked of the active ResourceManager beside nodes, and more seldom: which applications are over, where their
//! containers run, how its scheduler is set.

use super::applications::{self, ApplicationSeen, ContainerSeen, Endings, How, Sorted};
use super::listed_attempts::ListedAttempts;
use super::options::ResourceManagerOptions;
use super::processor::error_shown;
use super::resource_manager::{Active, BadAnswer, Rows, with_user};
use super::scheduler::{self, SchedulerSeen};
use crate::notice::{Notice, NoticeKind};
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::Daemon;
use crate::telemetry::hadoop::HadoopMetrics;
use crate::times::micros;
use hintd_engine::{Proof, TaskEvent, TaskWhat};
use hintd_model::units::{ApplicationId, AttemptId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Applications, and attempts, that are asked for one by one in one turn; the others have theirs later.
const ONE_BY_ONE: usize = 64;
/// Without applications to look at, time between two looks whether the scheduler's settings are to be read.
const IDLE: Duration = Duration::from_secs(10);
/// Settings that do not come are asked for in every so many-th turn at least.
const SETTINGS_TURNS: u32 = 16;

/// What notices of failing errands are filed under.
const MATTER: &str = "applications";

/// One errand after the other.
pub(super) struct ApplicationQueries {
    options: ResourceManagerOptions,
    /// Who is to hear which attempts run.
    listed: Option<Arc<ListedAttempts>>,
    daemon: Daemon,
    metrics: HadoopMetrics,
    managers: Vec<Rest>,
    active: watch::Receiver<Active>,
    endings: Endings,
    started: Instant,
    settings: SettingsTurns,
    /// The errands that failed last, if they did.
    trouble: Option<FailureStreak>,
    /// Who was asked for last, one by one: the next turn begins behind them, also where the last one ended early.
    last: (Option<ApplicationId>, Option<AttemptId>),
    /// How many live applications are asked for, where all were more than an answer may have.
    listed_at_once: ListedAtOnce,
    /// The last list had rows that make no sense.
    left_out: bool,
}

/// How many rows a list is asked for; `None`: all.
#[derive(Debug, Default)]
struct ListedAtOnce(Option<usize>);

/// A row of an application takes less than this many bytes; where it takes more, half as many are asked for next.
const ROW_BYTES: usize = 4_096;

impl ListedAtOnce {
    /// A list of so many rows came, with so many bytes of those that an answer may have.
    fn came(&mut self, rows: usize, bytes: usize, most: usize) {
        self.0 = match self.0 {
            Some(asked) if rows < asked => None, // it has all
            Some(asked) if bytes <= most / 4 => Some(asked * 2),
            asked => asked,
        };
    }

    /// It was more than an answer may have.
    fn too_large(&mut self, most: usize) {
        self.0 = Some(self.0.map_or(most / ROW_BYTES, |asked| asked / 2).max(1));
    }
}

type Failure = RestError<BadAnswer>;

/// Why a turn did not bring all that was asked for.
struct Missed {
    error: Failure,
    /// No answer came to the list of applications; where none was asked for, none to the settings.
    silent: bool,
}

/// Whose settings were read, and in which turn they are asked for again where no answer came.
#[derive(Default)]
struct SettingsTurns {
    read: Active,
    /// Who was asked last.
    asked: Active,
    /// Without an answer, in a row.
    failures: u32,
    /// Turns that pass first.
    left: u32,
}

impl SettingsTurns {
    /// Whether this one is to be asked in this turn. Another one, or another life of it, is asked at once.
    fn due(&mut self, active: Active) -> bool {
        if self.asked != active {
            *self = Self { asked: active, read: self.read, ..Self::default() };
        }
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    /// They were read, refused, or did not come: then ever more turns pass, for each costs the time that an answer has.
    fn came_to(&mut self, result: &Result<(), Failure>) {
        match result {
            Ok(()) => (self.read, self.failures) = (self.asked, 0),
            Err(error) if is_answer(error) => self.failures = 0,
            Err(_) => {
                self.failures = self.failures.saturating_add(1);
                self.left = (1 << self.failures.min(16)).min(SETTINGS_TURNS) - 1;
            }
        }
    }
}

/// How an application ended, and how long it took.
type Over = (How, Option<Duration>);

/// A list of live applications, and what it was asked for.
struct LiveList {
    /// Attempts that the daemon knows.
    known: Vec<AttemptId>,
    /// Applications whose end is awaited.
    awaited: Vec<ApplicationId>,
    live: Vec<ApplicationSeen>,
}

/// Errands that fail one after the other.
struct FailureStreak {
    since: Instant,
    /// Why: each reason is told once.
    told: BTreeSet<&'static str>,
}

impl ApplicationQueries {
    pub(super) fn new(
        (options, listed): (ResourceManagerOptions, Option<Arc<ListedAttempts>>),
        trust: Option<&Trust>,
        daemon: Daemon,
        metrics: HadoopMetrics,
        active: watch::Receiver<Active>,
    ) -> Self {
        let rest = |address: &Address| options.servers.rest(address, trust);
        let managers = options.servers.addresses.iter().map(rest).collect();
        let (endings, started) = (Endings::default(), Instant::now());
        Self {
            managers,
            options,
            listed,
            daemon,
            metrics,
            active,
            endings,
            started,
            settings: SettingsTurns::default(),
            trouble: None,
            last: (None, None),
            listed_at_once: ListedAtOnce::default(),
            left_out: false,
        }
    }

    pub(super) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let every = self.options.applications.unwrap_or(IDLE);
            let active = *self.active.borrow_and_update();
            let wait = match active {
                // Who asks for nodes says that nobody leads; how it stood with the last one that did is not changed by it.
                None => every,
                Some((at, _)) => match self.go(at, active).await {
                    Ok(all) => {
                        if all {
                            self.done(at);
                        }
                        failures = 0;
                        every
                    }
                    Err(Missed { error, silent }) => {
                        self.missed(at, &error);
                        // Who answers, if not with all that was asked for, is asked as often as ever: for the rest.
                        failures = if silent { failures.saturating_add(1) } else { 0 };
                        let rest = backoff(failures, self.options.servers.backoff, rand::random());
                        if failures > 0 { rest.max(every) } else { every }
                    }
                },
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // Another one leads: it may know more, or less.
                changed = self.active.changed() => if changed.is_err() { return },
            }
        }
    }

    fn done(&mut self, at: usize) {
        let Some(trouble) = self.trouble.take() else { return };
        let resource_manager = &self.options.servers.addresses[at];
        let away_s = trouble.since.elapsed().as_secs_f64();
        tracing::info!(%resource_manager, away_s, "applications and settings are told again");
        self.daemon.notice(MATTER, Vec::new());
    }

    fn missed(&mut self, at: usize, error: &Failure) {
        self.metrics.asked(Some(error.reason()));
        let resource_manager = &self.options.servers.addresses[at];
        let trouble =
            self.trouble.get_or_insert_with(|| FailureStreak { since: Instant::now(), told: BTreeSet::new() });
        if trouble.told.insert(error.reason()) {
            tracing::warn!(%resource_manager, %error, "applications and settings stay as they were told last");
        }
        let what = "does not say which applications are over, or how its scheduler is set";
        let words = format!("{resource_manager} {what}: {error}");
        self.daemon.notice(MATTER, vec![Notice::new(NoticeKind::SchedulerSilent, words)]);
    }

    /// One turn; whether nothing is left to ask for. Neither applications nor settings keep the other waiting for good: a
    /// web interface may keep its settings for admins, or be too slow with them, and tell of applications all the same.
    async fn go(&mut self, at: usize, active: Active) -> Result<bool, Missed> {
        let (list, applications) = match self.options.applications {
            Some(_) => match self.list(at).await {
                Ok(Some(list)) => (Some(true), self.heed_list(at, list).await),
                Ok(None) => (None, Ok(())),
                Err(error) => (Some(is_answer(&error)), Err(error)),
            },
            None => (None, Ok(())),
        };
        let settings = self.settings(at, active).await;
        let answered = list.unwrap_or_else(|| settings.as_ref().err().is_none_or(is_answer));
        applications.and(settings).map_err(|error| Missed { error, silent: !answered })
    }

    /// Reads the scheduler's settings, once in each life of the ResourceManager; whether they are read by now.
    async fn settings(&mut self, at: usize, active: Active) -> Result<bool, Failure> {
        if self.settings.read == active {
            return Ok(true);
        }
        if !self.settings.due(active) {
            return Ok(false);
        }
        let read = self.read_settings(at).await;
        self.settings.came_to(&read);
        read.map(|()| true)
    }

    async fn read_settings(&mut self, at: usize) -> Result<(), Failure> {
        let conf = self.ask(at, scheduler::CONF, scheduler::conf).await;
        let address = self.options.servers.addresses[at].to_string();
        let shown = conf.as_ref().map(SchedulerSeen::shown).map_err(error_shown);
        self.daemon.servers().setup().conf(address, shown);
        let mut seen = conf?;
        seen.effective(self.ask(at, scheduler::SCHEDULER, scheduler::maximum).await?);
        self.heed(&seen);
        Ok(())
    }

    async fn ask<T>(
        &mut self,
        at: usize,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, Failure> {
        let answer = self.managers[at].get(&with_user(path, &self.options.servers.user), read).await;
        if answer.is_ok() {
            self.metrics.asked(None);
        }
        answer
    }

    /// Takes the scheduler's settings, or says where the configuration states other ones.
    fn heed(&mut self, seen: &SchedulerSeen) {
        let in_force = &self.daemon.generation().snapshot.rules;
        if let Some(stated) = &self.options.stated {
            let differ = seen.differences(stated);
            for difference in &differ {
                tracing::warn!(%difference, "[yarn] and the ResourceManager's scheduler disagree: [yarn] counts");
            }
            self.metrics.disagrees(differ.len());
            self.daemon.notice("yarn", differ);
            return;
        }
        let rules = seen.rules(in_force);
        if rules != **in_force {
            tracing::info!(scheduler = %seen.class, ?rules, "sizes are the scheduler's");
            self.daemon.registries().rules(rules);
        }
    }

    /// Asks which applications are not over; `None`: nothing of any application is here to end.
    async fn list(&mut self, at: usize) -> Result<Option<LiveList>, Failure> {
        let (Ok(known), Ok(awaited)) = (self.daemon.attempts().await, self.daemon.awaited_applications().await) else {
            return Ok(None);
        };
        if known.is_empty() && awaited.is_empty() {
            return Ok(None);
        }
        let live = self.live(at).await?;
        if let Some(listed) = &self.listed {
            listed.told(&live);
        }
        Ok(Some(LiveList { known, awaited, live }))
    }

    /// Applications that are not over, as far as one answer has room for them. Who is not among them is asked for by itself.
    async fn live(&mut self, at: usize) -> Result<Vec<ApplicationSeen>, Failure> {
        let (most, mut bytes) = (self.options.servers.answer_bytes, 0);
        let read = |body: &[u8]| {
            bytes = body.len();
            applications::live(body)
        };
        let listed = self.ask(at, &applications::live_path(self.listed_at_once.0), read).await;
        if let Err(RestError::TooLarge { .. }) = &listed {
            self.listed_at_once.too_large(most);
        }
        let Rows { rows, left_out } = listed?;
        self.listed_at_once.came(rows.len() + left_out.len(), bytes, most);
        self.daemon.metrics().add("application_rows_left_out", left_out.len() as u64);
        let before = std::mem::replace(&mut self.left_out, !left_out.is_empty());
        if let Some(first) = left_out.first().filter(|_| !before) {
            let (resource_manager, rows) = (&self.options.servers.addresses[at], left_out.len());
            tracing::warn!(%resource_manager, rows, first = first.row, why = %first.why, "rows of its applications are left out");
        }
        Ok(rows)
    }

    /// Ends what is over of what asked for hints, tells how long it took, and tells where the containers of the rest run.
    async fn heed_list(&mut self, at: usize, list: LiveList) -> Result<(), Failure> {
        let LiveList { known, awaited, live } = list;
        let Sorted { superseded, running, doubtful } = self.endings.sort(&known, &awaited, &live);
        for attempt in superseded {
            self.end(attempt, How::Failed).await;
        }
        let told = self.end_what_is_over(at, &doubtful, (&known, &awaited)).await;
        let generation = self.daemon.generation();
        let held: BTreeSet<AttemptId> = running
            .into_iter()
            .filter(|attempt| generation.held.get(attempt).is_some_and(|held| !held.is_empty()))
            .collect();
        told.and(self.confirm_leases(at, &held.into_iter().collect::<Vec<_>>()).await)
    }

    /// What it refuses to tell of one keeps none of the others waiting. Where no whole answer comes the others have their
    /// turn next: it is asked for no more now. So with leases.
    async fn end_what_is_over(
        &mut self,
        at: usize,
        doubtful: &[ApplicationId],
        (known, awaited): (&[AttemptId], &[ApplicationId]),
    ) -> Result<(), Failure> {
        let mut refused = Ok(());
        for application in behind(doubtful, self.last.0) {
            self.last.0 = Some(application);
            match self.judge(at, application).await {
                Ok(None) => {}
                Ok(Some(over)) => self.ended((application, over), known, awaited).await,
                Err(error) if is_answer(&error) => refused = refused.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        refused
    }

    async fn confirm_leases(&mut self, at: usize, held: &[AttemptId]) -> Result<(), Failure> {
        let mut refused = Ok(());
        for attempt in behind(held, self.last.1) {
            self.last.1 = Some(attempt);
            match self.containers(at, attempt).await {
                Ok(()) => {}
                Err(error) if is_answer(&error) => refused = refused.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        refused
    }

    /// An application is over: whoever awaits its end hears of it, and its attempts end.
    async fn ended(
        &self,
        (application, (how, took)): (ApplicationId, Over),
        known: &[AttemptId],
        awaited: &[ApplicationId],
    ) {
        if awaited.binary_search(&application).is_ok() {
            let took = took.filter(|_| how == How::Finished).map(micros);
            _ = self.daemon.application_ended(application, took).await; // refused only where the daemon ends
        }
        for attempt in known.iter().filter(|attempt| attempt.application == application) {
            self.end(*attempt, how).await;
        }
    }

    /// How an application ended, if it did, and how long it took.
    async fn judge(&mut self, at: usize, application: ApplicationId) -> Result<Option<Over>, Failure> {
        let seen = match self.ask(at, &applications::one(application), applications::alone).await {
            Ok(seen) => Some(seen),
            Err(RestError::Status { status, body, .. }) if applications::is_unknown(status.as_u16(), &body) => None,
            Err(error) => return Err(error),
        };
        let how = self.endings.judge(application, seen.as_ref(), self.started.elapsed(), self.options.absent_kept);
        Ok(how.map(|how| (how, seen.and_then(|seen| seen.took))))
    }

    async fn end(&self, attempt: AttemptId, how: How) {
        tracing::info!(%attempt, how = how.as_str(), "the ResourceManager says that it is over: its leases end");
        self.metrics.ended(how.as_str());
        self.tell(attempt, TaskWhat::Done { failed: how != How::Finished }).await;
    }

    /// Containers that run where hints are outstanding. Those of the last moments are left out: whoever feeds events says
    /// more of them, and is to be heard first.
    async fn containers(&mut self, at: usize, attempt: AttemptId) -> Result<(), Failure> {
        let old = self.options.applications.unwrap_or(IDLE);
        let path = applications::containers_of(attempt);
        let found = match self.ask(at, &path, applications::containers).await {
            Ok(found) => found,
            // It ended since the list was made.
            Err(RestError::Status { status, body, .. }) if applications::is_unknown(status.as_u16(), &body) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for ContainerSeen { id, host, .. } in found.into_iter().filter(|seen| seen.elapsed >= old) {
            self.tell(id.attempt, TaskWhat::Allocated { host, container: id, lease: None }).await;
        }
        Ok(())
    }

    async fn tell(&self, attempt: AttemptId, what: TaskWhat) {
        let at = self.daemon.clock().now();
        let event = TaskEvent { attempt, group: "".into(), task: "".into(), what, recurring_key: None, at };
        // It is refused only where the daemon ends.
        _ = self.daemon.event(event, Proof::Trusted).await;
    }
}

/// Whether it answered, if not with what was asked for: it may answer for others. Where no whole answer comes the turn ends.
const fn is_answer(error: &Failure) -> bool {
    matches!(error, RestError::Status { .. } | RestError::Nonsense { .. } | RestError::TooLarge { .. })
}

/// At most [`ONE_BY_ONE`] of them, which ascend: those behind the last one first, then on from the beginning.
fn behind<T: Copy + Ord>(all: &[T], last: Option<T>) -> Vec<T> {
    let start = last.map_or(0, |last| all.partition_point(|one| *one <= last));
    all[start..].iter().chain(&all[..start]).take(ONE_BY_ONE).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::resource_manager::ClusterInfo;
    use super::*;

    #[test]
    fn a_turn_begins_behind_the_last_one_that_was_asked_for_and_all_have_theirs() {
        assert_eq!(behind(&[1, 3, 5], None), [1, 3, 5]);
        assert_eq!(behind(&[1, 3, 5], Some(1)), [3, 5, 1]);
        assert_eq!(behind(&[1, 3, 5], Some(4)), [5, 1, 3], "the last one is gone");
        assert_eq!(behind(&[1, 3, 5], Some(5)), [1, 3, 5]);
        assert!(behind::<u32>(&[], Some(5)).is_empty());
        let all: Vec<usize> = (0..150).collect();
        let first = behind(&all, None);
        let second = behind(&all, first.last().copied());
        let third = behind(&all, second.last().copied());
        assert_eq!([first, second, third].concat(), (0..150).chain(0..42).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_that_is_too_large_is_asked_for_in_part_and_whole_again_when_it_fits() {
        let (mut at_once, most) = (ListedAtOnce::default(), 64 << 20);
        at_once.came(40_000, most, most);
        assert_eq!(at_once.0, None, "all of it fits");
        at_once.too_large(most);
        at_once.too_large(most);
        assert_eq!(at_once.0, Some(8_192));
        at_once.came(8_192, most / 2, most);
        assert_eq!(at_once.0, Some(8_192));
        at_once.came(8_192, most / 4, most);
        assert_eq!(at_once.0, Some(16_384));
        at_once.came(16_383, most / 2, most);
        assert_eq!(at_once.0, None, "it was all of it");
        (0..40).for_each(|_| at_once.too_large(4_096));
        assert_eq!(at_once.0, Some(1), "never none");
    }

    #[test]
    fn settings_that_do_not_come_are_asked_for_ever_more_seldom_until_another_one_leads() {
        let late = || Err(RestError::Late { path: scheduler::CONF.to_owned(), seconds: 5.0 });
        let life = |id| Some((0, ClusterInfo { id }));
        let mut turns = SettingsTurns::default();
        let asked_in = |turns: &mut SettingsTurns, life, count: u32| {
            let asked = |_: &u32| {
                let due = turns.due(life);
                if due {
                    turns.came_to(&late());
                }
                due
            };
            (0..count).filter(asked).collect::<Vec<u32>>()
        };
        assert_eq!(asked_in(&mut turns, life(1), 60), [0, 2, 6, 14, 30, 46]);
        assert_eq!(asked_in(&mut turns, life(2), 3), [0, 2], "another life");
        while !turns.due(life(2)) {}
        turns.came_to(&Ok(()));
        assert_eq!((turns.read, turns.failures), (life(2), 0));
    }
}
