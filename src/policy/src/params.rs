//! Parameters of policies: read from a configuration table, checked, written back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration file's `[policies.NAME]`, with places in the file.
pub type PolicyTable<'i> = Spanned<DeTable<'i>>;

/// A policy's parameters. Defaults are named and reasoned where they stand.
pub trait Params: Serialize + DeserializeOwned + Default {
    /// Checks single values and those that hang together.
    ///
    /// # Errors
    /// The first value that can't be meant.
    fn validate(&self) -> Result<(), Invalid>;
}

/// A value that can't be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The key it stands at.
    pub key: &'static str,
    /// What is wrong, with the value.
    pub message: String,
}

/// Parameters that a policy refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policies.{policy}{}: {message}", key.as_ref().map(|key| format!(".{key}")).unwrap_or_default())]
pub struct ParamError {
    /// The policy.
    pub policy: &'static str,
    /// The key, where it is known.
    pub key: Option<String>,
    /// Bytes of the file that hold the offence, where they are known.
    pub span: Option<Range<usize>>,
    /// What is wrong, with the value.
    pub message: String,
    /// Further keys that can't be read.
    pub others: Vec<ParamError>,
}

/// A table without keys: every parameter at its default.
#[must_use]
pub fn no_params() -> PolicyTable<'static> {
    Spanned::new(0..0, DeTable::new())
}

/// Reads and checks the parameters of `policy`.
///
/// # Errors
/// [`ParamError`] for each unknown key and each value of a wrong type, or else the first value that [`Params::validate`] refuses.
pub fn read<P: Params>(policy: &'static str, table: PolicyTable<'_>) -> Result<P, ParamError> {
    let whole = Some(table.span()).filter(|span| !span.is_empty());
    let mut spans: Vec<(String, Range<usize>, Vec<Range<usize>>)> = Vec::new();
    for (key, value) in table.get_ref() {
        let mut within = Vec::new();
        ranges(value, &mut within);
        spans.push((key.get_ref().to_string(), key.span(), within));
    }
    let unread = |error: &toml::de::Error| {
        let span = error.span();
        let inside = |range: &Range<usize>| span.as_ref().is_some_and(|span| range.contains(&span.start));
        let found = spans.iter().find(|(_, key, value)| inside(key) || value.iter().any(inside));
        let key = found.map(|(name, ..)| name.clone());
        let message = error.message().trim_end().to_owned();
        ParamError { policy, key, span: span.or_else(|| whole.clone()), message, others: Vec::new() }
    };
    let params: P = deserialized(table, unread)?;
    params.validate().map_err(|invalid| {
        let span = spans.iter().find(|(name, ..)| name == invalid.key).and_then(|(.., value)| value.first().cloned());
        let key = Some(invalid.key.to_owned());
        ParamError { policy, key, span: span.or(whole), message: invalid.message, others: Vec::new() }
    })?;
    Ok(params)
}

/// Bytes of a value and of all within it, its own first: a table under a header of its own spans that header alone.
fn ranges(value: &Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) {
    found.push(value.span());
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                found.push(key.span());
                ranges(value, found);
            }
        }
        DeValue::Array(values) => values.iter().for_each(|value| ranges(value, found)),
        _ => {}
    }
}

/// Reads the table without the keys that can't be read until the rest can, so that all of them are named.
fn deserialized<P: Params>(
    mut table: PolicyTable<'_>,
    unread: impl Fn(&toml::de::Error) -> ParamError,
) -> Result<P, ParamError> {
    let mut wrong = Vec::new();
    let params = loop {
        match P::deserialize(toml::Deserializer::from(table.clone())) {
            Ok(params) => break Some(params),
            Err(error) => {
                let error = unread(&error);
                let taken = error.key.as_deref().and_then(|key| table.get_mut().remove(key));
                wrong.push(error);
                if taken.is_none() {
                    break None;
                }
            }
        }
    };
    // In the order of the file, whichever the deserializer takes.
    wrong.sort_by_key(|error: &ParamError| error.span.as_ref().map_or(usize::MAX, |span| span.start));
    let mut wrong = wrong.into_iter();
    match (wrong.next(), params) {
        (Some(mut first), _) => {
            first.others = wrong.collect();
            Err(first)
        }
        (None, params) => Ok(params.expect("the loop ends without parameters only after an error")),
    }
}

/// Parameters as a configuration file would give them.
pub(super) fn to_toml<P: Params>(params: &P) -> String {
    toml::to_string(params).expect("parameters are plain values in string-keyed tables")
}
