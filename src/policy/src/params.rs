//! Parameters of policies: read from a configuration table, checked, written back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeTable;

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
}

/// A table without keys: every parameter at its default.
#[must_use]
pub fn no_params() -> PolicyTable<'static> {
    Spanned::new(0..0, DeTable::new())
}

/// Reads and checks the parameters of `policy`.
///
/// # Errors
/// [`ParamError`] for an unknown key, a wrong type, or a value that [`Params::validate`] refuses.
pub fn read<P: Params>(policy: &'static str, table: PolicyTable<'_>) -> Result<P, ParamError> {
    let whole = Some(table.span()).filter(|span| !span.is_empty());
    let spans: Vec<(String, Range<usize>, Range<usize>)> =
        table.get_ref().iter().map(|(key, value)| (key.get_ref().to_string(), key.span(), value.span())).collect();
    let params = P::deserialize(toml::Deserializer::from(table)).map_err(|error| {
        let span = error.span();
        let inside = |range: &Range<usize>| span.as_ref().is_some_and(|span| range.contains(&span.start));
        let found = spans.iter().find(|(_, key, value)| inside(key) || inside(value));
        let key = found.map(|(name, ..)| name.clone());
        ParamError { policy, key, span: span.or_else(|| whole.clone()), message: error.message().trim_end().to_owned() }
    })?;
    params.validate().map_err(|invalid| {
        let span = spans.iter().find(|(name, ..)| name == invalid.key).map(|(.., value)| value.clone());
        ParamError { policy, key: Some(invalid.key.to_owned()), span: span.or(whole), message: invalid.message }
    })?;
    Ok(params)
}

/// Parameters as a configuration file would give them.
pub(super) fn to_toml<P: Params>(params: &P) -> String {
    toml::to_string(params).expect("parameters are plain values in string-keyed tables")
}
