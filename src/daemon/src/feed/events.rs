//! `Feed.Events`, and what `Placement.Follow` sends up: task events.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, ItemRefusal, Reason, convert};
use crate::runtime::proof;
use crate::runtime::registries::{RegistryLimits, bounded};
use hintd_client::wire::v1;
use hintd_engine::{Proof, TaskEvent, TaskWhat};
use hintd_model::cluster::Source;
use hintd_model::text::is_hidden;
use hintd_model::units::{ApplicationId, AttemptId, Bytes, IdError, LeaseId, Micros, Timestamp};
use std::sync::Arc;
use v1::event_item::Item;
use v1::task_event::What;

/// The longest group, task or recurring-job name that is taken, bytes.
const TEXT_BYTES: usize = 1_024;

/// Takes one item in. The event it held, and what its teller shows, are for the engine; `None`: a hello.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(
    registries: &FeedRegistries,
    stream: &mut FeedStream,
    item: v1::EventItem,
    received: Timestamp,
) -> Result<Option<(TaskEvent, Proof)>, ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(None)
        }
        Item::Event(event) => {
            stream.greeted()?;
            bounded_event(&event, registries.limits())?;
            let shown = proof(&event.token, &event.nonce);
            let shown = shown.map_err(|refusal| ItemRefusal::new(Reason::Malformed, refusal))?;
            let event = task_event(event, received)?;
            registries.heard(Source::Events);
            Ok(Some((event, shown)))
        }
    })
}

/// Whether an event is within the limits.
///
/// # Errors
/// [`Reason::TooMany`] paths.
pub fn bounded_event(wire: &v1::TaskEvent, limits: &RegistryLimits) -> Result<(), ItemRefusal> {
    match &wire.what {
        Some(What::Ready(ready)) => {
            bounded("input paths", ready.input_paths.len(), limits.paths_per_event, "paths_per_event")
        }
        _ => Ok(()),
    }
}

/// A task event off the wire; `received` stands in where the sender gave no time.
///
/// # Errors
/// [`Reason::Malformed`] ids and names, [`Reason::TooLarge`].
pub fn task_event(wire: v1::TaskEvent, received: Timestamp) -> Result<TaskEvent, ItemRefusal> {
    let application: ApplicationId = wire.application_id.parse().map_err(malformed)?;
    if wire.attempt == 0 {
        return Err(ItemRefusal::new(Reason::Zero, "attempt is 0; attempts count from 1"));
    }
    let recurring = text("recurring_job_key", &wire.recurring_job_key)?;
    let missing = || ItemRefusal::new(Reason::Malformed, "the event does not say what happened");
    Ok(TaskEvent {
        attempt: AttemptId { application, attempt: wire.attempt },
        group: text("group", &wire.group)?,
        task: text("task", &wire.task)?,
        what: what(wire.what.ok_or_else(missing)?)?,
        recurring_key: (!recurring.is_empty()).then_some(recurring),
        at: match wire.at_ms {
            0 => received,
            ms => Timestamp(ms.saturating_mul(1_000)),
        },
    })
}

fn what(wire: What) -> Result<TaskWhat, ItemRefusal> {
    Ok(match wire {
        What::Ready(ready) => {
            let paths = ready.input_paths.iter().map(|path| convert::path("input_paths", path));
            TaskWhat::Ready { input_paths: paths.collect::<Result<_, _>>()?, input: Bytes(ready.input_bytes) }
        }
        What::Allocated(allocated) => TaskWhat::Allocated {
            host: convert::host("host", &allocated.host)?,
            container: allocated.container_id.parse().map_err(malformed)?,
            lease: (allocated.lease_id != 0).then_some(LeaseId(allocated.lease_id)),
        },
        What::Finished(finished) => TaskWhat::Finished {
            host: convert::host("host", &finished.host)?,
            duration: Micros::from_millis(finished.duration_ms),
            input: Bytes(finished.input_bytes),
            output: Bytes(finished.output_bytes),
            failed: finished.failed,
        },
        What::Done(done) => TaskWhat::Done { failed: done.failed },
    })
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` hands it over
fn malformed(error: IdError) -> ItemRefusal {
    ItemRefusal::new(Reason::Malformed, error)
}

fn text(field: &str, text: &str) -> Result<Arc<str>, ItemRefusal> {
    if text.len() > TEXT_BYTES {
        let message = format!("{field} has {} bytes: at most {TEXT_BYTES}", text.len());
        return Err(ItemRefusal::new(Reason::TooLarge, message));
    }
    if text.chars().any(is_hidden) {
        return Err(ItemRefusal::new(Reason::Malformed, format!("{field} {text:?} holds hidden characters")));
    }
    Ok(text.into())
}
