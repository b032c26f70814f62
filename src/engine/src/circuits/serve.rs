//! When circuits are chosen, who is told, what is reported.

use super::Circuits;
use super::messages::{CircuitReport, CircuitsView, ReportTaken, WantedCircuits};
use super::timing::ShuffleHandler;
use crate::attempts::Attempts;
use crate::dispatching::Dispatching;
use crate::effects::{Counter, Effect, Effects};
use crate::engine::Engine;
use crate::flows::settings::RouteSettings;
use crate::ledger::Ledger;
use crate::plans::kept::KeptPlan;
use crate::refusal::Refusal;
use crate::routes::Watchers;
use hintd_model::cluster::Snapshot;
use hintd_model::units::Timestamp;
use std::sync::Arc;

impl Engine {
    /// Takes in what a controller says of its optical switch; before any network is known it is kept until one is.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a watcher without a stream that watches circuits; [`Refusal::Invalid`] beside another
    /// controller whose stream is open, for a version that was never wanted, a port that is not there, two circuits of one
    /// port, or a circuit of a failed one.
    pub fn report_circuits(
        &mut self,
        watcher: &Arc<str>,
        report: CircuitReport,
        now: Timestamp,
    ) -> Result<ReportTaken, Refusal> {
        self.circuit_handler().report(watcher, report, now)
    }
}

/// Circuits of an optical switch, and the shuffles that are timed by them. Writes circuits, what watchers of circuits were
/// told, dispatchers (who are asked about shuffles) and effects; reads the followed plan, attempts, leases and the snapshot.
pub(crate) struct CircuitHandler<'e> {
    pub(crate) circuits: &'e mut Circuits,
    pub(crate) watchers: &'e mut Watchers,
    pub(crate) dispatching: &'e mut Dispatching,
    /// The plan that is followed.
    pub(crate) plan: Option<&'e KeptPlan>,
    pub(crate) attempts: &'e Attempts,
    pub(crate) ledger: &'e Ledger,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) settings: &'e RouteSettings,
    pub(crate) effects: &'e mut Effects,
}

impl CircuitHandler<'_> {
    /// Shuffles, without who watches circuits.
    pub(crate) fn shuffles(&mut self) -> ShuffleHandler<'_> {
        ShuffleHandler {
            circuits: self.circuits,
            dispatching: self.dispatching,
            plan: self.plan,
            attempts: self.attempts,
            ledger: self.ledger,
            snapshot: self.snapshot,
            effects: self.effects,
        }
    }

    /// Chooses circuits where an interval has passed or the network is another, and tells whoever watches them. Costs a
    /// look at every task of jobs with reduces, once an interval, where there is an optical switch, else nothing.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.fit(now);
        let (asks, chooses) = (self.shuffles().asks(now), self.circuits.is_due(now));
        if !asks && !chooses {
            return;
        }
        let jobs = self.dispatching.shuffles(self.snapshot);
        // Just before circuits are chosen, so that what starts can ride in the same interval.
        if asks {
            self.shuffles().time_all(&jobs, now);
        }
        let wanted = if chooses { self.circuits.choose(&jobs, now) } else { None };
        match wanted {
            Some(wanted) => self.tell(wanted, now),
            None => self.watchers.renew_circuits(self.circuits.wanted.as_ref()),
        }
    }

    fn fit(&mut self, now: Timestamp) {
        if let Some(wanted) = self.circuits.fit(self.snapshot, now) {
            self.tell(wanted, now);
        }
        // What makes no sense for the network is as if it had not been said: its sender says it again when anything changes.
        if let Some((watcher, report)) = self.circuits.take_early() {
            let _ = self.report(&watcher, report, now);
        }
    }

    fn tell(&mut self, wanted: Arc<WantedCircuits>, now: Timestamp) {
        self.effects.count(Counter::CircuitChanges, 1);
        let told = self.watchers.tell_circuits(wanted, self.settings, now);
        self.effects.out.extend(told.into_iter().map(|(watcher, update)| Effect::Routes { watcher, update }));
    }

    fn report(&mut self, watcher: &Arc<str>, report: CircuitReport, now: Timestamp) -> Result<ReportTaken, Refusal> {
        if !self.watchers.watches_circuits(watcher) {
            return Err(Refusal::Unknown { what: "watcher", name: watcher.to_string(), nearest: None });
        }
        self.fit(now); // a report may come before the tick after the network
        if self.snapshot.topology.network.is_none() {
            return Ok(self.circuits.hold(watcher, report));
        }
        let (taken, wanted) = self.circuits.report(watcher, report, now)?;
        if let Some(wanted) = wanted {
            self.tell(wanted, now);
        }
        self.effects.count(Counter::CircuitReports, 1);
        self.shuffles().begin(now);
        Ok(taken)
    }
}

impl Circuits {
    /// As operators see them; `None`: there is no optical switch.
    pub(crate) fn view_beside(&self, watchers: &Watchers) -> Option<CircuitsView> {
        let view = self.view()?;
        let replaced = view.reported.as_ref().map_or(0, |reported| watchers.replaced(&reported.watcher));
        Some(CircuitsView { replaced, ..view })
    }
}
