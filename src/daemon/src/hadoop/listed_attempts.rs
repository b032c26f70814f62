//! Attempts that the ResourceManager lists as running: those may have tokens.

use super::applications::{self, ApplicationSeen};
use super::options::ResourceManagerOptions;
use super::resource_manager::{Active, with_user};
use crate::rest_client::{Address, Rest, RestError, Trust};
use crate::runtime::listing::{Listing, Looking};
use crate::telemetry::hadoop::HadoopMetrics;
use hintd_engine::Refusal;
use hintd_model::units::{ApplicationId, AttemptId, Micros};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use tokio::sync::{Mutex, Semaphore, watch};

/// Requests that wait for a look at their application at one time. Looks go one after the other, so that a flood of ids
/// that do not exist costs the ResourceManager one connection.
const WAITING_MAX: usize = 64;
/// When to come back, where a look has no place or nobody answers.
const RETRY: Micros = Micros::from_secs(1);

/// See the module.
pub(super) struct ListedAttempts {
    user: String,
    /// By position in the options.
    managers: Mutex<Vec<Rest>>,
    active: watch::Receiver<Active>,
    /// The running attempt of each application, as told last.
    running: RwLock<BTreeMap<ApplicationId, u32>>,
    waiting: Semaphore,
    metrics: HadoopMetrics,
}

impl ListedAttempts {
    pub(super) fn new(
        options: &ResourceManagerOptions,
        trust: Option<&Trust>,
        active: watch::Receiver<Active>,
        metrics: HadoopMetrics,
    ) -> Self {
        let rest = |address: &Address| options.servers.rest(address, trust);
        Self {
            user: options.servers.user.clone(),
            managers: Mutex::new(options.servers.addresses.iter().map(rest).collect()),
            active,
            running: RwLock::default(),
            waiting: Semaphore::new(WAITING_MAX),
            metrics,
        }
    }

    /// Takes a list of live applications in the place of all that was told before.
    pub(super) fn told(&self, live: &[ApplicationSeen]) {
        let running = live.iter().filter_map(|seen| Some((seen.id, seen.attempt?))).collect();
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = running;
    }

    async fn ask(&self, attempt: AttemptId) -> Result<(), Refusal> {
        let unavailable = |message: String| Refusal::Unavailable { message, retry_after: RETRY };
        let Ok(_place) = self.waiting.try_acquire() else {
            let message =
                format!("{WAITING_MAX} requests wait already for a look whether the ResourceManager lists them");
            return Err(unavailable(message));
        };
        let mut managers = self.managers.lock().await;
        if self.lists(attempt) {
            return Ok(()); // another request of it was faster
        }
        let Some((at, _)) = *self.active.borrow() else {
            let message = format!("no ResourceManager answers that could say whether {attempt} runs");
            return Err(unavailable(message));
        };
        let path = with_user(&applications::one(attempt.application), &self.user);
        let found = managers[at].get(&path, applications::alone).await;
        drop(managers);
        self.metrics.asked(found.as_ref().err().map(RestError::reason));
        let seen = match found {
            Ok(seen) => seen,
            Err(RestError::Status { status, body, .. }) if applications::is_unknown(status.as_u16(), &body) => {
                return Err(Refusal::NotListed { attempt });
            }
            Err(error) => {
                return Err(unavailable(format!("whether {attempt} runs, the ResourceManager did not say: {error}")));
            }
        };
        let running = seen.attempt.filter(|_| seen.over.is_none());
        if let Some(running) = running {
            self.running.write().unwrap_or_else(PoisonError::into_inner).insert(seen.id, running);
        }
        if running == Some(attempt.attempt) { Ok(()) } else { Err(Refusal::NotListed { attempt }) }
    }
}

impl Listing for ListedAttempts {
    fn lists(&self, attempt: AttemptId) -> bool {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.get(&attempt.application) == Some(&attempt.attempt)
    }

    fn look(&self, attempt: AttemptId) -> Looking<'_> {
        Box::pin(self.ask(attempt))
    }
}
