//! Looks now and then at the clock of the ResourceManager that leads and at hintd's processor in it, for status and doctor.
//!
//! One question a minute, with a connection of its own: whoever asks for nodes and applications never waits for it, and where it
//! fails nothing is missing but what the doctor says of it.

use super::options::ResourceManagerOptions;
use super::processor::{self, BEAN, error_shown};
use super::resource_manager::{Active, with_user};
use crate::rest_client::{Address, Rest, Trust};
use crate::runtime::Daemon;
use crate::runtime::setup::{ClockDifference, Look};
use std::time::Duration;
use tokio::sync::watch;

/// Time between two looks at the same one.
const EVERY: Duration = Duration::from_secs(60);

/// One look after the other.
pub(super) struct SetupPoller {
    options: ResourceManagerOptions,
    daemon: Daemon,
    managers: Vec<Rest>,
    active: watch::Receiver<Active>,
}

impl SetupPoller {
    pub(super) fn new(
        options: ResourceManagerOptions,
        trust: Option<&Trust>,
        daemon: Daemon,
        active: watch::Receiver<Active>,
    ) -> Self {
        let rest = |address: &Address| options.servers.rest(address, trust);
        let managers = options.servers.addresses.iter().map(rest).collect();
        Self { options, daemon, managers, active }
    }

    pub(super) async fn run(mut self) {
        let mut looked: Active = None;
        loop {
            let active = *self.active.borrow_and_update();
            if let Some((at, _)) = active {
                self.look(at).await;
                looked = active;
            }
            if !self.wait(looked).await {
                return;
            }
        }
    }

    /// Until it is time for the next look, or another one leads, or the same one started anew; false: nobody asks any more. Who
    /// only fell silent for a moment is not looked at again for that.
    async fn wait(&mut self, looked: Active) -> bool {
        let time = tokio::time::sleep(EVERY);
        tokio::pin!(time);
        loop {
            tokio::select! {
                () = &mut time => return true,
                changed = self.active.changed() => match changed {
                    Err(_) => return false,
                    Ok(()) => {
                        let now = *self.active.borrow_and_update();
                        if now.is_some() && now != looked {
                            return true;
                        }
                    }
                },
            }
        }
    }

    async fn look(&mut self, at: usize) {
        let manager = &mut self.managers[at];
        let answer = manager.get(&with_user(BEAN, &self.options.servers.user), processor::processor).await;
        let clock = self.daemon.clock();
        // Any answer has a date, one that refuses to show beans as well.
        let difference = manager
            .dated()
            .and_then(|dated| ClockDifference::of(dated.date, clock.at(dated.asked), clock.at(dated.came)));
        let processor = answer.map_err(|error| {
            tracing::debug!(resource_manager = %self.options.servers.addresses[at], %error, "its processor is not shown");
            error_shown(&error)
        });
        let look = Look { at: clock.now(), clock: difference, processor };
        self.daemon.servers().setup().looked(self.options.servers.addresses[at].to_string(), look);
    }
}
