//! Refusals that come before any search: noted beside those of searches, so that who looks for an application finds that it asked.

use super::daemon::Daemon;
use super::daemon::place::Refused;
use super::daemon::search::{placer, policies};
use super::pool::JobContext;
use hintd_engine::records::{DecidedRequest, RequestOutcome};
use hintd_engine::{Mode, Refusal};
use hintd_model::cluster::HintRequest;
use hintd_model::units::DecisionId;
use std::sync::Arc;
use std::time::Duration;

impl Daemon {
    /// Notes a refusal that came before any search, or after one whose proposal was not taken: that its application asked,
    /// and why it got nothing.
    #[must_use]
    pub fn refused_early(&self, request: &Arc<HintRequest>, decision: DecisionId, refusal: Refusal) -> Refused {
        let settings = self.settings();
        if !settings.engine.records.takes(decision) {
            return Refused { refusal, recorded: false, seen: true };
        }
        let chosen = settings.choose(&request.queue, &request.framework, request.policy.as_deref());
        // Without a name where none was chosen.
        let (mode, name) = chosen.unwrap_or((Mode::On, ""));
        let built = if name.is_empty() { settings.policies.default } else { name };
        let (policy, baseline) = policies(&settings, built);
        let (generation, now) = (self.generation(), self.0.clock.now());
        let recorded = self.0.recorder.see(DecidedRequest {
            request: Arc::clone(request),
            queue_named: settings.queues.contains_key(request.queue.as_str()),
            policy: Arc::clone(policy),
            name: name.into(),
            baseline: Arc::clone(baseline),
            mode,
            settings: placer(&settings, JobContext { fill: 0.0, commits: Duration::ZERO }),
            now,
            stopped: None,
            follows: false,
            generation,
            read: Some(Vec::new()),
            round: None,
            came: RequestOutcome::RefusedEarly { decision, at: now, refusal: refusal.clone() },
        });
        Refused { refusal, recorded, seen: true }
    }
}
