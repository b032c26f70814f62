//! Questions for homes of an application's input, and answers.

use super::plans::rack_hosts;
use super::request::attempt;
use crate::runtime::input_homes::{HomedGroup, InputHomesQuestion};
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_engine::plans::input_homes::{InputHomes, InputTasks};
use std::sync::Arc;

/// Names are no longer, as in requests.
const NAME_MAX: usize = 1_024;
/// Racks that a group's asks may name.
const RACKS_MAX: usize = 10_000;
/// Who asks for tasks there asks again before that: some heartbeats of MapReduce's ApplicationMaster.
const HOLDS_FOR_MS: u32 = 5_000;

/// Whose input, in which queue, and the tasks that read it.
///
/// # Errors
/// [`Refusal::Invalid`] names the field.
pub(in crate::server) fn input_homes_question(wire: &v1::InputHomesRequest) -> Result<InputHomesQuestion, Refusal> {
    let attempt = attempt(&wire.application_id, wire.attempt)?;
    let invalid = |field: &str, message: String| Err(Refusal::Invalid { field: field.to_owned(), message });
    for (field, name) in
        [("queue", &wire.queue), ("group", &wire.group), ("recurring_job_key", &wire.recurring_job_key)]
    {
        if name.len() > NAME_MAX {
            return invalid(field, format!("{} bytes are more than {NAME_MAX}", name.len()));
        }
    }
    if wire.by_rack.len() > RACKS_MAX {
        return invalid("by_rack", format!("{} racks are more than {RACKS_MAX}", wire.by_rack.len()));
    }
    if let Some(long) = wire.by_rack.keys().find(|rack| rack.len() > NAME_MAX) {
        return invalid("by_rack", format!("{} bytes of a rack are more than {NAME_MAX}", long.len()));
    }
    let key = Some(wire.recurring_job_key.as_str()).filter(|key| !key.is_empty());
    let tasks = InputTasks {
        recurring_key: key.map(Into::into),
        outstanding: wire.outstanding,
        by_rack: wire.by_rack.iter().map(|(rack, &count)| (rack.as_str().into(), count)).collect(),
        may_gather: wire.may_gather,
    };
    let of = (attempt, wire.group.as_str().into());
    Ok(InputHomesQuestion { of, queue: wire.queue.as_str().into(), tasks })
}

/// What it came to.
pub(in crate::server) fn input_homes((found, shadow): &(InputHomes, bool)) -> v1::InputHomesResponse {
    let (homes, patience, gathered) = match found {
        InputHomes::Homes { racks, patience, gathered } => {
            (racks.iter().map(rack_hosts).collect(), patience.as_millis(), *gathered)
        }
        _ => (Vec::new(), 0, false),
    };
    let reason = found.as_str().to_owned();
    let patience_ms = u32::try_from(patience).unwrap_or(u32::MAX);
    v1::InputHomesResponse { homes, reason, shadow: *shadow, holds_for_ms: HOLDS_FOR_MS, patience_ms, gathered }
}

/// What became of groups that were told.
pub(in crate::server) fn homed_groups(groups: Vec<(Arc<str>, HomedGroup)>) -> Vec<v1::HomedGroup> {
    let group = |(group, told): (Arc<str>, HomedGroup)| v1::HomedGroup {
        group: group.to_string(),
        racks: told.racks.iter().map(ToString::to_string).collect(),
        at_home: told.at_home,
        elsewhere: told.elsewhere,
    };
    groups.into_iter().map(group).collect()
}
