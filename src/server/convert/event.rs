//! Task events, as Follow and the event feed carry them.

use super::field::{invalid, list, text};
use super::request::{Limits, attempt};
use crate::engine::{Refusal, TaskEvent, TaskWhat};
use crate::units::{Bytes, ContainerId, HostName, LeaseId, Micros, Timestamp};
use crate::wire::v1;
use crate::wire::v1::task_event::What;

/// A task event that is well-formed; `now` stands in where the sender gave no time.
///
/// # Errors
/// [`Refusal::Invalid`] with the field that is not.
pub fn event(wire: &v1::TaskEvent, limits: &Limits, now: Timestamp) -> Result<TaskEvent, Refusal> {
    let key = text("recurring_job_key", &wire.recurring_job_key, limits)?;
    Ok(TaskEvent {
        attempt: attempt(&wire.application_id, wire.attempt)?,
        group: text("group", &wire.group, limits)?,
        task: text("task", &wire.task, limits)?,
        what: what(wire.what.as_ref(), limits)?,
        recurring_key: (!key.is_empty()).then_some(key),
        at: if wire.at_ms == 0 { now } else { Timestamp(wire.at_ms.saturating_mul(1_000)) },
    })
}

fn what(wire: Option<&What>, limits: &Limits) -> Result<TaskWhat, Refusal> {
    Ok(match wire {
        None => return Err(invalid("what", "is missing: ready, allocated, finished or done")),
        Some(What::Ready(ready)) => TaskWhat::Ready {
            input_paths: list("ready.input_paths", &ready.input_paths, limits.paths, limits)?,
            input: Bytes(ready.input_bytes),
        },
        Some(What::Allocated(allocated)) => TaskWhat::Allocated {
            host: host("allocated.host", &allocated.host, limits)?,
            container: allocated
                .container_id
                .parse::<ContainerId>()
                .map_err(|error| invalid("allocated.container_id", error))?,
            lease: (allocated.lease_id != 0).then_some(LeaseId(allocated.lease_id)),
        },
        Some(What::Finished(finished)) => TaskWhat::Finished {
            host: host("finished.host", &finished.host, limits)?,
            duration: Micros::from_millis(finished.duration_ms),
            input: Bytes(finished.input_bytes),
            output: Bytes(finished.output_bytes),
            failed: finished.failed,
        },
        Some(What::Done(done)) => TaskWhat::Done { failed: done.failed },
    })
}

fn host(field: &str, value: &str, limits: &Limits) -> Result<HostName, Refusal> {
    super::field::named(field, value, limits).map(HostName)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(what: Option<What>) -> v1::TaskEvent {
        v1::TaskEvent { application_id: "application_1_0001".into(), attempt: 1, what, ..Default::default() }
    }

    #[test]
    fn an_event_without_a_time_gets_the_time_of_receipt() {
        let done = Some(What::Done(v1::ApplicationDone { failed: true }));
        let found = event(&wire(done), &Limits::default(), Timestamp(7)).unwrap();
        assert_eq!((found.at, found.what), (Timestamp(7), TaskWhat::Done { failed: true }));
    }

    #[test]
    fn what_can_not_be_read_is_refused_by_field() {
        let allocated = |host: &str, container: &str| {
            Some(What::Allocated(v1::TaskAllocated { host: host.into(), container_id: container.into(), lease_id: 0 }))
        };
        for (what, expected) in [
            (None, "what"),
            (allocated("", "container_1_0001_01_000002"), "allocated.host"),
            (allocated("h", "container_x"), "allocated.container_id"),
        ] {
            let Err(Refusal::Invalid { field, .. }) = event(&wire(what), &Limits::default(), Timestamp(0)) else {
                panic!("accepted: {expected}")
            };
            assert_eq!(field, expected);
        }
    }
}
