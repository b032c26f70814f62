//! The engine's side: when circuits are chosen, who is told, what is reported.

use super::told::{CircuitReport, CircuitsView, ReportTaken, WantedCircuits};
use crate::effects::{Counter, Effect};
use crate::engine::Engine;
use crate::refusal::Refusal;
use hintd_model::units::Timestamp;
use std::sync::Arc;

impl Engine {
    /// Chooses circuits where an interval has passed or the network is another, and tells whoever watches them. Costs a
    /// look at every task of jobs with reduces, once an interval, where there is an optical switch, else nothing.
    pub(crate) fn tick_circuits(&mut self, now: Timestamp) {
        self.fit_circuits(now);
        let (asks, chooses) = (self.asks_shuffles(now), self.circuits.is_due(now));
        if !asks && !chooses {
            return;
        }
        let jobs = self.dispatching.shuffles(&self.snapshot);
        // Just before circuits are chosen, so that what starts can ride in the same interval.
        if asks {
            self.time_shuffles(&jobs, now);
        }
        let wanted = if chooses { self.circuits.choose(&jobs, now) } else { None };
        match wanted {
            Some(wanted) => self.tell_circuits(wanted, now),
            None => self.routes.renew_circuits(self.circuits.wanted.as_ref()),
        }
    }

    fn fit_circuits(&mut self, now: Timestamp) {
        if let Some(wanted) = self.circuits.fit(&self.snapshot, now) {
            self.tell_circuits(wanted, now);
        }
        // What makes no sense for the network is as if it had not been said: its sender says it again when anything changes.
        if let Some((watcher, report)) = self.circuits.take_early() {
            let _ = self.report_circuits(&watcher, report, now);
        }
    }

    fn tell_circuits(&mut self, wanted: Arc<WantedCircuits>, now: Timestamp) {
        self.effects.count(Counter::CircuitChanges, 1);
        let told = self.routes.tell_circuits(wanted, &self.settings.routes, now);
        self.effects.out.extend(told.into_iter().map(|(watcher, update)| Effect::Routes { watcher, update }));
    }

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
        if !self.routes.watches_circuits(watcher) {
            return Err(Refusal::Unknown { what: "watcher", name: watcher.to_string(), nearest: None });
        }
        self.fit_circuits(now); // a report may come before the tick after the network
        if self.snapshot.topology.network.is_none() {
            return Ok(self.circuits.hold(watcher, report));
        }
        let (taken, wanted) = self.circuits.report(watcher, report, now)?;
        if let Some(wanted) = wanted {
            self.tell_circuits(wanted, now);
        }
        self.effects.count(Counter::CircuitReports, 1);
        self.begin_timing(now);
        Ok(taken)
    }

    /// That watcher's stream has ended, or is another one: if it is the controller, it is believed no more.
    pub(crate) fn controller_left(&mut self, watcher: &str, now: Timestamp) {
        if let Some(watcher) = self.circuits.left(watcher, now) {
            self.effects.out.push(Effect::ControllerLeft { watcher });
        }
    }

    /// Circuits as operators see them; `None`: there is no optical switch.
    #[must_use]
    pub fn circuits(&self) -> Option<CircuitsView> {
        let view = self.circuits.view()?;
        let replaced = view.reported.as_ref().map_or(0, |reported| self.routes.replaced(&reported.watcher));
        Some(CircuitsView { replaced, ..view })
    }
}
