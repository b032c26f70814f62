//! Rounds of rebalancing: whatever they come to is within its bounds, worth it, and told once in a time.

use super::disk::Reply;
use super::state::{Call, World};
use crate::{Effect, FollowBody, MoveNote, Round};
use hintd_model::units::ContainerId;
use std::collections::BTreeMap;
use std::sync::Arc;

impl World {
    /// A round is searched at once, whichever policy decided, by the one that can.
    pub(super) fn rebalance(&mut self, round: &Arc<Round>) {
        let (_, policy) = self.policies.iter().find(|(name, _)| *name == "pat").expect("it is registered");
        let policy = Arc::clone(policy);
        let found = round.search(|_| Some(("pat", Arc::clone(&policy))), self.placer.steps, &mut || false);
        self.engine.rebalanced(round.number, &found, self.now);
        self.did(Call::Other, None, Reply::Nobody);
    }

    /// A move was told.
    pub(super) fn proposed(&mut self, container: ContainerId, gain: f64) {
        let settings = &self.settings.rebalance;
        assert!(settings.enabled && gain >= settings.gain_min(), "{container} would gain {gain}");
        let before = self.moves.insert(container, self.now);
        let cool = (0..4).map(|which| super::state::settings(which).rebalance.cool_down).min().unwrap_or_default();
        // A restart forgets; what waited for the disk is told later than it was found.
        let again = before.is_some_and(|at| at >= self.start && self.disk.is_settled() && self.now.since(at) < cool);
        assert!(!again, "{container} was told to move before it had cooled down");
    }

    /// What one round tells.
    pub(super) fn check_moves(&self, out: &[Effect]) {
        let mut by_application: BTreeMap<_, usize> = BTreeMap::new();
        for effect in out {
            if let Effect::Follow { message: FollowBody::Move(told), .. } = effect {
                let MoveNote { container, to, .. } = &**told;
                *by_application.entry(container.attempt.application).or_default() += 1;
                let runs = self.engine.current_snapshot().applications.get(&container.attempt);
                let runs = runs.and_then(|of| of.containers.get(container)).expect("only what runs is to move");
                assert_ne!(self.engine.current_snapshot().host(runs.node), to, "it is there already");
            }
        }
        let settings = &self.settings.rebalance;
        assert!(by_application.values().sum::<usize>() <= settings.moves_per_round);
        assert!(by_application.values().all(|count| *count <= settings.moves_per_application));
    }
}
