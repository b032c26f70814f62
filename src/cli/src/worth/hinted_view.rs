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

impl<T> HintedView<'_, T> {
    /// Whether all parts of the lever were there, and earlier runs were told right.
    pub(super) const fn is_whole(&self) -> bool {
        self.without.is_none() && self.lie.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lever_is_whole_with_all_parts_and_the_truth() {
        let of =
            |without, lie| HintedView { policy: "p", lever: "when", without, lie, name: String::new(), figures: 0 };
        assert!(of(None, None).is_whole());
        assert!(!of(Some("cap"), None).is_whole() && !of(None, Some("times-x5")).is_whole());
    }
}
