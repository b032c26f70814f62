//! ApplicationMasters: when they ask, and for how long they hold a task back for a hint.

use hintd_model::units::{AttemptId, Micros, Timestamp};
use hintd_policy::dispatch::TaskRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One application's asks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Master {
    groups: Vec<Asked>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    group: Arc<str>,
    /// From when its ask may stand at YARN.
    from: Timestamp,
    /// When a task of it was last hinted or launched.
    served: Timestamp,
}

/// All applications' asks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Masters(BTreeMap<AttemptId, Master>);

impl Masters {
    /// A group is asked for from then on.
    pub(super) fn ask(&mut self, attempt: AttemptId, group: &Arc<str>, from: Timestamp) {
        let groups = &mut self.0.entry(attempt).or_default().groups;
        groups.retain(|asked| asked.group != *group);
        groups.push(Asked { group: Arc::clone(group), from, served: from });
    }

    /// Whether the group asks for any node, not only for hinted ones: after `patience` without hint or launch.
    pub(super) fn impatient(&self, attempt: AttemptId, group: &str, patience: Micros, now: Timestamp) -> bool {
        let asked = self.0.get(&attempt).and_then(|master| master.groups.iter().find(|asked| &*asked.group == group));
        asked.is_some_and(|asked| asked.from <= now && now.since(asked.served) >= patience)
    }

    /// A task was hinted or launched.
    pub(super) fn serve(&mut self, task: &TaskRef, now: Timestamp) {
        let groups = self.0.get_mut(&task.attempt).map(|master| &mut master.groups);
        let asked = groups.into_iter().flatten().find(|asked| asked.group == task.group);
        if let Some(asked) = asked {
            asked.served = asked.served.max(now);
        }
    }

    /// The application is done.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.0.remove(&attempt);
    }
}
