//! Launches, in dense columns, to hints and ask tables, in names.

use super::dispatcher_instance::DispatcherInstance;
use crate::decision::Hint;
use crate::placer::{Hints, Row, replacement_asks};
use crate::plans::PlanNote;
use hintd_model::cluster::{HintRequest, Snapshot, TaskGroup};
use hintd_model::units::{AttemptId, NodeIdx, RequestId};
use hintd_policy::dispatch::TaskRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Launches of one request's tasks.
#[derive(Debug)]
pub(super) struct LaunchLayout {
    pub(super) request: Arc<HintRequest>,
    /// Tasks with neighbouring numbers on one node share a hint.
    pub(super) hints: Hints,
    /// The containers of the hints, in their order.
    pub(super) tasks: Vec<TaskRef>,
    /// How they stand to the plan in force; filled in later.
    pub(super) plan: Option<PlanNote>,
}

/// Hints by request.
pub(super) fn lay_out(
    dispatcher: &DispatcherInstance,
    launched: &[(TaskRef, NodeIdx)],
    snapshot: &Snapshot,
) -> BTreeMap<(AttemptId, RequestId), LaunchLayout> {
    let mut launched: Vec<&(TaskRef, NodeIdx)> = launched.iter().collect();
    launched.sort_unstable();
    let mut laid: BTreeMap<(AttemptId, RequestId), LaunchLayout> = BTreeMap::new();
    for (task, node) in launched {
        let Some(group) = dispatcher.groups.get(&(task.attempt, Arc::clone(&task.group))) else { continue };
        let of_request = laid.entry((task.attempt, group.request.id.clone())).or_insert_with(|| {
            let request = Arc::clone(&group.request);
            LaunchLayout { request, hints: Hints::default(), tasks: Vec::new(), plan: None }
        });
        let follows_on =
            of_request.tasks.last().is_some_and(|last| last.group == task.group && last.index + 1 == task.index);
        let Hints { hints, rows } = &mut of_request.hints;
        match (hints.last_mut(), rows.last_mut()) {
            (Some(hint), Some(row)) if follows_on && row.node == *node => {
                hint.count += 1;
                row.count += 1;
            }
            _ => {
                hints.push(Hint {
                    group: Arc::clone(&group.asked),
                    first_index: task.index,
                    count: 1,
                    host: snapshot.host(*node).clone(),
                    fallbacks: Vec::new(),
                    racks: vec![snapshot.statics.racks[snapshot.rack(*node).at()].clone()],
                    leases: Vec::new(),
                    expires: None,
                    expected_wait: None,
                    confidence: group.confidence,
                });
                let (size, key) = (group.told.size, group.request.groups[group.at].key);
                rows.push(Row { group: group.at, node: *node, count: 1, size, key, lease: true });
            }
        }
        of_request.tasks.push(task.clone());
    }
    laid
}

/// The ask table of what is hinted, and no more: what waits is asked for when its hint comes. Keys that no group has
/// come back as they came.
pub(super) fn table(request: &HintRequest, hints: &Hints) -> Vec<hintd_model::cluster::Ask> {
    let mut asked = request.without_asks();
    let hinted = |(at, group): (usize, &TaskGroup)| {
        let count = hints.rows.iter().filter(|row| row.group == at).map(|row| row.count).sum();
        TaskGroup { count, ..group.clone() }
    };
    asked.groups = request.groups.iter().enumerate().map(hinted).filter(|group| group.count > 0).collect();
    let of_group = |key| request.groups.iter().any(|group| group.key == key);
    asked.asks = request.asks.iter().filter(|ask| !of_group(ask.key)).cloned().collect();
    replacement_asks(&asked, hints)
}
