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

#[cfg(test)]
mod tests {
    use super::super::options::ServerOptions;
    use super::*;
    use crate::telemetry::metrics::Metrics;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    #[tokio::test]
    async fn a_number_of_requests_wait_for_a_look_and_more_are_refused() {
        let second = Duration::from_secs(1);
        let servers = ServerOptions {
            addresses: Vec::new(),
            ca_file: None,
            user: String::new(),
            poll: second,
            timeout: second,
            backoff: second,
            answer_bytes: 1 << 20,
        };
        let (applications, stated) = (None, None);
        let options =
            ResourceManagerOptions { servers, unheard_kept: second, absent_kept: second, applications, stated };
        let (_active, active) = watch::channel(None);
        let listed = ListedAttempts::new(&options, None, active, Metrics::new().hadoop());
        let application = ApplicationId { cluster_timestamp: 1, sequence: 1 };
        let ask = || listed.look(AttemptId { application, attempt: 1 });
        let cx = &mut Context::from_waker(Waker::noop());
        let looks = listed.managers.lock().await;
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| ask()).collect();
        assert!(waiting.iter_mut().all(|request| request.as_mut().poll(cx).is_pending()));
        let Poll::Ready(Err(refused)) = ask().as_mut().poll(cx) else { panic!("one more waits") };
        assert!(refused.to_string().contains("requests wait already"), "{refused}");
        drop((looks, waiting));
        let alone = ask().await.unwrap_err();
        assert!(alone.to_string().contains("no ResourceManager answers"), "{alone}");
        assert_eq!(listed.waiting.available_permits(), WAITING_MAX);
    }
}
