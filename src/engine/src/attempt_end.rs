//! Attempts remembered, ended and forgotten, with all that is kept of them.

use super::arrivals::Arrivals;
use super::attempts::{self, Attempts};
use super::decision::RememberedRequest;
use super::dispatching::immediate::AskHandler;
use super::effects::{Counter, Effect};
use super::engine::Engine;
use super::flow_updates::RouteHandler;
use super::flows::Flows;
use super::holding::Holding;
use super::leasing::LeaseHandler;
use super::plans::RunTracker;
use super::rebalance::Rebalancing;
use super::routes::Watchers;
use hintd_model::units::{AttemptId, Timestamp};
use std::sync::Arc;

/// Silent attempts that are looked at in a tick.
const SILENT_AT_ONCE: usize = 256;

impl Engine {
    /// Attempts of which nothing was heard for longer than the settings' time of silence: no request, no news of tasks, no
    /// lease, no container on a node, no turn of a shuffle. Where the settings name no time there are none.
    pub fn silent_attempts(&mut self, now: Timestamp) -> Vec<AttemptId> {
        let Some(silence) = self.settings().attempt_silence else { return Vec::new() };
        let handler = self.attempt_handler();
        let holds = |attempt| handler.leases.ledger.holds(attempt) || handler.holding.knows(attempt);
        let silent = handler.known.silent((silence, SILENT_AT_ONCE), holds, now);
        if silent.is_empty() {
            return silent;
        }
        let (alive, silent) = silent.into_iter().partition::<Vec<_>, _>(|attempt| self.has_containers(*attempt));
        alive.into_iter().for_each(|attempt| self.attempt_alive(attempt, now));
        silent
    }

    /// An attempt showed that it is not over.
    pub fn attempt_alive(&mut self, attempt: AttemptId, now: Timestamp) {
        self.attempt_handler().known.alive(attempt, now);
    }

    /// Ends an attempt for an operator: its leases are given back; false: it is not known.
    pub fn end_attempt(&mut self, attempt: AttemptId, now: Timestamp) -> bool {
        let known = self.knows(attempt);
        if known {
            let mut handler = self.attempt_handler();
            handler.end(attempt, now);
            handler.leases.out.changed = true;
        }
        known
    }
}

/// Ends and forgets attempts: wherever something is kept by attempt, it goes. So it borrows what [`LeaseHandler`] does,
/// and attempts, flows and their watchers, arrivals, runs under way,
/// shuffles that are held and proposed moves. It touches neither facts nor
/// history, plans, circuits or generations.
pub(crate) struct AttemptHandler<'e> {
    pub(crate) leases: LeaseHandler<'e>,
    pub(crate) known: &'e mut Attempts,
    pub(crate) flows: &'e mut Flows,
    pub(crate) watchers: &'e mut Watchers,
    pub(crate) arrivals: &'e mut Arrivals,
    pub(crate) run_tracker: &'e mut RunTracker,
    pub(crate) holding: &'e mut Holding,
    pub(crate) rebalancing: &'e mut Rebalancing,
}

impl AttemptHandler<'_> {
    /// Flows, and who watches their routes.
    pub(crate) fn routes(&mut self) -> RouteHandler<'_> {
        RouteHandler {
            flows: self.flows,
            watchers: self.watchers,
            snapshot: self.leases.snapshot,
            settings: &self.leases.settings.routes,
            arrived: self.arrivals.view(),
            out: self.leases.out,
        }
    }

    /// Runs that are answered at once.
    pub(crate) fn asking(&mut self) -> AskHandler<'_> {
        AskHandler { dispatch: self.leases.dispatch(), run_tracker: self.run_tracker }
    }

    /// Ends an attempt: its leases are given back, its requests forgotten. Its answers stay their time.
    pub(crate) fn end(&mut self, attempt: AttemptId, now: Timestamp) {
        self.leases.release_all(attempt, now);
        self.forget(attempt, now);
        self.routes().end_attempt(attempt, now);
    }

    /// Ends the attempts of the same application before this one.
    pub(crate) fn end_earlier(&mut self, attempt: AttemptId, now: Timestamp) {
        for earlier in self.known.earlier(attempt) {
            self.end(earlier, now);
        }
    }

    /// Notes how much of an attempt ran on machines of the class that a policy learns of, for its run.
    pub(crate) fn note_class(&mut self, attempt: AttemptId) {
        let (class, snapshot) = (&self.leases.settings.machine_class, &**self.leases.snapshot);
        if let Some(arrived) = self.arrivals.view().get(&attempt) {
            self.run_tracker.ran_on(attempt.application, class, snapshot, arrived.all());
        }
    }

    /// Forgets an attempt. Its leases must have ended.
    pub(crate) fn forget(&mut self, attempt: AttemptId, now: Timestamp) {
        self.note_class(attempt);
        self.leases.dispatch().done(attempt, now);
        self.leases.adherence().attempt_over(attempt, now);
        self.rebalancing.forget(attempt);
        self.run_tracker.forget(attempt);
        self.arrivals.forget(attempt);
        self.holding.end(attempt);
        if let Some(known) = self.known.remove(attempt) {
            self.leases.out.effects.journal.extend(attempts::delete_attempt(attempt, &known));
            self.leases.out.effects.out.push(Effect::AttemptEnded(attempt));
        }
    }

    /// Forgets what exceeds the limits: the oldest without live leases.
    pub(crate) fn enforce_limits(&mut self, now: Timestamp) {
        let leases = &mut self.leases;
        let (most, bytes) = (leases.settings.answers_max, leases.settings.answers_bytes_max);
        while let Some(id) = leases.answers.surplus(most, bytes) {
            leases.out.effects.count(Counter::AnswersEvicted, 1);
            leases.forget_answer(&id);
        }
        let attempts = self.known.too_many(leases.settings.attempts_max, |attempt| leases.ledger.holds(attempt));
        leases.out.effects.count(Counter::AttemptsEvicted, attempts.len() as u64);
        for attempt in attempts {
            self.forget(attempt, now);
        }
    }

    /// Remembers a request of an attempt, in memory and, if `written`, in the journal. Its ask table was answered
    /// and is the application's to know: placing anew makes rows from groups.
    pub(crate) fn remember(&mut self, request: &RememberedRequest, written: bool) {
        let Some(known) = self.known.get_mut(request.attempt) else { return };
        let kept = if request.asks.is_empty() { Arc::clone(request) } else { Arc::new(request.without_asks()) };
        let journal = &mut self.leases.out.effects.journal;
        if written {
            journal.push(attempts::put_request(&kept));
        }
        for gone in known.remember(kept, self.leases.settings) {
            journal.push(attempts::delete_request(request.attempt, &gone));
        }
    }
}
