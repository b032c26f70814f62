//! What the sections read their values with: spans of time, and one word of a few.

use super::reader::Key;
use std::time::Duration;
use toml::de::DeValue;

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// One word of a few.
pub(super) fn one_of<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, String> {
    let text = String::read(value)?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        format!("\"{text}\" is none of {}", known.join(", "))
    })
}
