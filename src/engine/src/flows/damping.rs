//! Links that go up and down too often are avoided until they were quiet for a while.

use super::settings::RouteSettings;
use hintd_model::units::{LinkIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Changes of state by link, and links that are avoided.
#[derive(Debug, Default)]
pub(super) struct Damping {
    /// Those of the last while, oldest first.
    changes: BTreeMap<LinkIdx, VecDeque<Timestamp>>,
    /// Shared with generations.
    avoided: Arc<BTreeSet<LinkIdx>>,
}

impl Damping {
    /// A link's state changed. Whether it is avoided from now on and was not before.
    pub(super) fn changed(&mut self, link: LinkIdx, settings: &RouteSettings, now: Timestamp) -> bool {
        let changes = self.changes.entry(link).or_default();
        changes.push_back(now);
        while changes.front().is_some_and(|&first| now.since(first) > settings.within) {
            changes.pop_front();
        }
        // More are of no account.
        while changes.len() > settings.flaps as usize + 1 {
            changes.pop_front();
        }
        changes.len() > settings.flaps as usize && Arc::make_mut(&mut self.avoided).insert(link)
    }

    /// Links that are avoided.
    pub(super) const fn avoided(&self) -> &Arc<BTreeSet<LinkIdx>> {
        &self.avoided
    }

    /// Forgets what is long ago; links that are no longer avoided.
    pub(super) fn calm(&mut self, settings: &RouteSettings, now: Timestamp) -> Vec<LinkIdx> {
        let mut calm = Vec::new();
        let avoided = &mut self.avoided;
        self.changes.retain(|link, changes| {
            let quiet = changes.back().map_or(settings.within, |&last| now.since(last));
            if quiet >= settings.hold && avoided.contains(link) {
                Arc::make_mut(avoided).remove(link);
                calm.push(*link);
                return false; // a new start
            }
            avoided.contains(link) || quiet <= settings.within
        });
        calm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Micros;

    #[test]
    fn a_link_that_flaps_is_avoided_until_it_was_quiet() {
        let settings = RouteSettings::default();
        let mut damping = Damping::default();
        let at = |second| Timestamp(0).plus(Micros::from_secs(second));
        let flaps: Vec<bool> = (0..7).map(|second| damping.changed(LinkIdx(3), &settings, at(second))).collect();
        assert_eq!(flaps, [false, false, false, false, true, false, false], "more than four changes");
        assert!(damping.calm(&settings, at(35)).is_empty() && damping.avoided().contains(&LinkIdx(3)));
        assert_eq!(damping.calm(&settings, at(36)), [LinkIdx(3)]);
        assert!(damping.avoided().is_empty() && damping.changes.is_empty());
    }

    #[test]
    fn changes_that_lie_apart_are_no_flapping() {
        let settings = RouteSettings::default();
        let mut damping = Damping::default();
        for minute in 0..50 {
            assert!(!damping.changed(LinkIdx(3), &settings, Timestamp(0).plus(Micros::from_secs(20 * minute))));
            assert!(damping.calm(&settings, Timestamp(0).plus(Micros::from_secs(20 * minute))).is_empty());
        }
        damping.calm(&settings, Timestamp(0).plus(Micros::from_secs(2_000)));
        assert!(damping.changes.is_empty(), "what is long ago is forgotten");
    }
}
