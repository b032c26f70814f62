//! Watches of routes, on the engine's thread.

use super::super::options::WatchLimits;
use super::super::watchers::{WatchCaller, Watching};
use super::EngineThread;
use hintd_engine::{Refusal, WatchScope};
use hintd_model::units::{Micros, Timestamp};

impl EngineThread {
    /// Starts a Watch, unless all watchers together, or those of its peer, would watch more than `most`; pairs that a Watch of
    /// the same name watched until now are free.
    pub(super) fn watch(
        &mut self,
        caller: WatchCaller,
        scope: WatchScope,
        most: WatchLimits,
        now: Timestamp,
    ) -> Result<Watching, Refusal> {
        let (watcher, peer) = (&caller.watcher, caller.peer);
        self.shared.watchers.may_begin(watcher, &caller.proof, self.legacy())?;
        let WatchLimits { pairs: most, pairs_per_peer, watchers } = most;
        if self.shared.watchers.others(watcher) >= watchers {
            let message = format!("{watchers} others watch routes, as many as limits.watchers allows");
            return Err(Refusal::Unavailable { message, retry_after: Micros::from_secs(10) });
        }
        let watched = self.engine.counts().routes.saturating_sub(self.engine.watched_by(watcher));
        if watched + scope.pairs.len() > most {
            let message = format!(
                "{} pairs, beside {watched} that others watch; at most {most} (limits.watched_pairs)",
                scope.pairs.len()
            );
            return Err(Refusal::Invalid { field: "pairs".to_owned(), message });
        }
        let pairs = scope.pairs.len();
        let of_peer = peer.map_or(0, |peer| self.shared.watchers.pairs_of(peer, watcher));
        if peer.is_some() && of_peer + pairs > pairs_per_peer {
            let message = format!(
                "{pairs} pairs, beside {of_peer} that this peer watches; at most {pairs_per_peer} \
                 (limits.watched_pairs_per_peer)"
            );
            return Err(Refusal::Invalid { field: "pairs".to_owned(), message });
        }
        let first = self.engine.watch(watcher, scope, now)?;
        self.sessions += 1;
        let watching = self.shared.watchers.start(&caller, pairs, self.sessions, first);
        if watching.replaced {
            self.shared.metrics.watch_replaced(watcher);
        }
        Ok(watching)
    }

    pub(super) fn unwatch(&mut self, watcher: &str, session: u64) {
        if self.shared.watchers.stop(watcher, session) {
            self.engine.unwatch(watcher, self.clock.now());
        }
    }
}
