//! Whether a plan makes sense on this cluster now; on other threads, as plans may be large.

use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{RackPath, Timestamp};
use hintd_policy::plan::{Defect, Facts, Plan, all_rack_rooms, check, nothing_planned};
use hintd_policy::registry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan that was looked at and found right.
#[derive(Debug, Clone)]
pub struct ValidatedPlan {
    /// It.
    pub(super) plan: Arc<Plan>,
    /// What is of note, in words: racks that have less room than it counts on.
    pub warnings: Vec<String>,
}

/// Defects that a refusal names.
const NAMED: usize = 5;

/// Looks at a plan with the independent checker: by itself, and against racks with usable nodes and the time. Fewer
/// containers than planned are no reason to refuse it, as a plan holds nothing back: it ends later, and that is said.
///
/// # Errors
/// [`Refusal::MissingFeed`] where no rack is known yet; [`Refusal::Plan`] with what is wrong with it.
pub fn validate_plan(
    name: &str,
    plan: Arc<Plan>,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<ValidatedPlan, Refusal> {
    // The plan does not say how large its containers are: of the smallest that YARN gives there are the most.
    let rooms = all_rack_rooms(snapshot, &snapshot.rules.minimum);
    let racks: BTreeMap<RackPath, u32> = rooms.into_iter().map(|room| (room.rack, room.containers)).collect();
    if racks.values().all(|containers| *containers == 0) {
        let message = "no node has reported, so that no plan can be held against the cluster".to_owned();
        return Err(Refusal::MissingFeed { feed: "heartbeats", message });
    }
    let facts = Facts { racks: Some(racks), now: Some(now), policies: Some(registry::planners()) };
    let mut found = check(&plan, &facts);
    found.extend(nothing_planned(&plan));
    let (notes, wrong): (Vec<Defect>, Vec<Defect>) =
        found.into_iter().partition(|defect| matches!(defect, Defect::RackShrunk { .. }));
    if wrong.is_empty() {
        return Ok(ValidatedPlan { plan, warnings: notes.iter().map(ToString::to_string).collect() });
    }
    let named: Vec<String> = wrong.iter().take(NAMED).map(ToString::to_string).collect();
    let more = wrong.len() - named.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Err(Refusal::Plan { name: name.into(), why: format!("{}{more}", named.join("; ")) })
}
