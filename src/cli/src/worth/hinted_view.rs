//! A row of the document: what one policy came to by one lever.

use serde::Serialize;

/// What one policy came to by one lever.
#[derive(Debug, Serialize)]
pub(super) struct HintedView<'a, T> {
    pub(super) policy: &'a str,
    pub(super) lever: &'static str,
    /// The part of it that was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) without: Option<&'static str>,
    /// What earlier runs were told wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lie: Option<&'static str>,
    /// As people read it.
    #[serde(skip)]
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) figures: T,
}
