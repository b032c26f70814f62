//! The journal file as it is on disk: table names, and rows, which are JSON texts. No command prints them, but every
//! upgrade depends on them.

use serde_json::Value;
use std::io::BufRead as _;

/// The kind of a row, recognized by keys that no other kind has.
fn kind(row: &Value) -> Option<&'static str> {
    let has = |key: &str| row.get(key).is_some();
    Some(match row {
        _ if has("kept_at") => "journal kept plan",
        _ if has("arm") && has("share") => "journal application under way",
        _ if has("held_out") && has("hinted") => "journal completion times",
        _ if has("submitted") => "journal run",
        _ if has("since") && has("name") => "journal plan in force",
        _ if row["decision"].is_object() => "journal answer",
        _ if has("decision") && has("host") => "journal lease",
        _ if has("token") && has("supersedes") => "journal attempt",
        _ if row["groups"].is_array() && has("attempt") => "journal request",
        _ if row["groups"].is_object() && has("runs") => "journal history",
        _ => return None,
    })
}

/// The rows in the file, including deleted ones that are not yet overwritten.
pub(crate) fn rows(file: &[u8]) -> Vec<(&'static str, Value)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = find(&file[at..], b"{\"") {
        at += next;
        let mut read = serde_json::Deserializer::from_slice(&file[at..]).into_iter::<Value>();
        let Some(Ok(row)) = read.next() else {
            at += 1;
            continue;
        };
        at += read.byte_offset();
        found.extend(kind(&row).map(|kind| (kind, row)));
    }
    found
}

/// Where such bytes begin. By the standard library's search: the file is large, and tests are not optimized.
fn find(file: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut rest = file;
    loop {
        rest.skip_until(wanted[0]).ok().filter(|skipped| *skipped > 0)?;
        let at = file.len() - rest.len() - 1;
        if file[at..].starts_with(wanted) {
            return Some(at);
        }
    }
}

/// The names of all tables, which are stored back to back, and the format's own name.
pub(crate) fn names(file: &[u8]) -> Vec<String> {
    let printed = |wanted: &[u8]| {
        let at = find(file, wanted)?;
        let part = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'_' || **byte == b'-';
        let before = file[..at].iter().rev().take_while(part).count();
        let after = file[at..].iter().take_while(part).count();
        Some(String::from_utf8_lossy(&file[at - before..at + after]).into_owned())
    };
    let mut names = Vec::new();
    for (what, wanted) in [("tables", &b"hintd_format"[..]), ("format", &b"hintd-journal"[..])] {
        names.push(format!("journal {what}: {}", printed(wanted).unwrap_or_else(|| "gone".to_owned())));
    }
    names
}
