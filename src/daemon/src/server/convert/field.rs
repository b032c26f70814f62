//! Paths of fields in refusals, and checks that many fields share.

use crate::runtime::RequestLimits;
use hintd_engine::Refusal;
use hintd_model::text::is_hidden;
use std::fmt::Display;
use std::sync::Arc;

/// The longest name of a watcher or class, and the longest reason, bytes.
pub(super) const NAME_BYTES: usize = 256;

/// A refusal of one field.
pub(super) fn invalid(field: impl Into<String>, message: impl Display) -> Refusal {
    Refusal::Invalid { field: field.into(), message: message.to_string() }
}

/// A text that may be empty, within the limit.
pub(super) fn text(field: impl Display, value: &str, limits: &RequestLimits) -> Result<Arc<str>, Refusal> {
    within(field, value, Most(limits.text_bytes, "text_bytes"))
}

/// A name that answers and rows of the journal repeat; it may be empty.
pub(super) fn short(field: impl Display, value: &str, limits: &RequestLimits) -> Result<Arc<str>, Refusal> {
    let most = limits.name_bytes.min(limits.text_bytes);
    within(field, value, Most(most, if most < limits.name_bytes { "text_bytes" } else { "name_bytes" }))
}

/// A text of at most so many bytes that shows all that it holds. Whatever goes to logs and to terminals passes here.
pub(super) fn within(field: impl Display, value: &str, Most(most, name): Most) -> Result<Arc<str>, Refusal> {
    if value.len() > most {
        let shown: String = value.chars().take(32).collect();
        let message = format!("\"{shown}…\" has {} bytes; at most {most} are allowed (limits.{name})", value.len());
        return Err(invalid(field.to_string(), message));
    }
    plain(field, value)?;
    Ok(value.into())
}

/// A reason is for people, and kept for them: its beginning will do.
pub(super) fn reason(wire: &str) -> String {
    wire.chars().filter(|letter| !is_hidden(*letter)).take(NAME_BYTES).collect()
}

/// Refuses control characters, and such as change how others look.
pub(super) fn plain(field: impl Display, value: &str) -> Result<(), Refusal> {
    let Some(letter) = value.chars().find(|letter| is_hidden(*letter)) else { return Ok(()) };
    let kind = if letter.is_control() { "control" } else { "invisible" };
    let code = letter.escape_unicode();
    Err(invalid(field.to_string(), format!("{value:?} holds the {kind} character {code}")))
}

/// A text that must be there.
pub(super) fn named(field: impl Display, value: &str, limits: &RequestLimits) -> Result<Arc<str>, Refusal> {
    if value.trim().is_empty() {
        return Err(missing(field, value));
    }
    text(field, value, limits)
}

/// The same of a name that answers and rows of the journal repeat.
pub(super) fn short_named(field: impl Display, value: &str, limits: &RequestLimits) -> Result<Arc<str>, Refusal> {
    if value.trim().is_empty() {
        return Err(missing(field, value));
    }
    short(field, value, limits)
}

fn missing(field: impl Display, value: &str) -> Refusal {
    invalid(field.to_string(), format!("is missing: {value:?}"))
}

/// A list of texts that must be there, within a bound.
pub(super) fn list(
    field: &str,
    values: &[String],
    most: Most,
    limits: &RequestLimits,
) -> Result<Vec<Arc<str>>, Refusal> {
    bounded(field, values.len(), most)?;
    values.iter().enumerate().map(|(at, value)| named(format_args!("{field}[{at}]"), value, limits)).collect()
}

/// A bound, and the name that the configuration has for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most(pub(super) usize, pub(super) &'static str);

/// How many entries a list has, against its bound.
pub(super) fn bounded(field: &str, found: usize, Most(most, name): Most) -> Result<(), Refusal> {
    if found > most {
        return Err(invalid(field, format!("{found} entries; at most {most} are allowed (limits.{name})")));
    }
    Ok(())
}

/// What a request of too many containers is told.
pub(super) fn containers_allowed(most: u64) -> String {
    format!("at most {most} are allowed in one request (limits.containers_per_request)")
}

/// A count that must be above zero and within a bound.
pub(super) fn count(field: &str, value: u64, most: u64) -> Result<u32, Refusal> {
    match u32::try_from(value) {
        Ok(0) => Err(invalid(field, "0 containers; a group has at least 1")),
        Ok(count) if value <= most => Ok(count),
        _ => Err(invalid(field, format!("{value} containers; {}", containers_allowed(most)))),
    }
}
