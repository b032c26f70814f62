//! What policies do once before they are used (`scale_up_out` trains its classifier): never on the engine's thread, a
//! placer's or one that serves calls. Policies that the configuration names are prepared before it is in force; any other
//! when a request names it, which is told to come again. What is prepared outlasts reloads.

use super::daemon::Daemon;
use super::options::{Policies, Settings};
use hintd_engine::Refusal;
use hintd_model::units::Micros;
use hintd_policy::Policy;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Who names a policy that is not prepared comes again after so long.
const COME_AGAIN: Micros = Micros::from_secs(1);

impl Settings {
    /// Keeps the policies of the settings before whose parameters are the same, with all that they have prepared, or are
    /// preparing now: a reload that does not concern a policy refuses nobody.
    pub(super) fn keep_policies(&mut self, before: &Self) {
        let Policies { built, params, .. } = &mut self.policies;
        for (name, policy) in built {
            let same = params.get(name) == before.policies.params.get(name);
            if let Some(kept) = before.policies.built.get(name).filter(|_| same) {
                *policy = Arc::clone(kept);
            }
        }
    }

    /// Prepares every policy that the configuration names for a queue, a framework or all others. May take seconds.
    pub(super) fn prepare_policies(&self) {
        let of_queues = self.queues.values().filter_map(|queue| queue.policy);
        let named = of_queues.chain(self.policies.frameworks.values().copied()).chain([self.policies.default]);
        named.filter_map(|name| self.policies.built.get(name)).for_each(|policy| policy.prepare());
    }
}

impl Daemon {
    /// Whether the policy can be used; if not, it is being prepared from now on, one policy at a time.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`]: not yet.
    pub(super) fn prepared(&self, policy: &Arc<dyn Policy>) -> Result<(), Refusal> {
        if policy.is_prepared() {
            return Ok(());
        }
        if !self.0.preparing.swap(true, Ordering::AcqRel) {
            let (daemon, policy) = (self.clone(), Arc::clone(policy));
            tokio::task::spawn_blocking(move || {
                let _over = Over(daemon);
                policy.prepare();
                tracing::info!(policy = policy.name(), "prepared");
            });
        }
        let message = format!("policy \"{}\" is being prepared", policy.name());
        Err(Refusal::Unavailable { message, retry_after: COME_AGAIN })
    }
}

/// The next may be prepared, be it after a panic.
struct Over(Daemon);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.0.preparing.store(false, Ordering::Release);
    }
}
