//! The shape of JSON documents: key paths with value types, merged over all documents of a kind.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Objects whose keys are data, such as host names: kind of document and path.
const DATA_KEYS: &[(&str, &str)] = &[
    ("demo", ".jobs[].hints"),
    ("demo", ".jobs[].hints.*"),
    ("demo", ".replaced[].to"),
    ("demo", ".replaced[].to.*"),
    ("simulate", ".policies"),
    ("nodes", ".nodes[].total.resources"),
    ("nodes", ".nodes[].used.resources"),
    ("nodes", ".nodes[].leased.resources"),
    ("snapshot file", ".nodes[].attributes"),
    ("snapshot file", ".nodes[].resources"),
    ("bench soak", ".totals.refused"),
    ("bench soak", ".windows[].refused"),
    ("journal history", ".groups"),
    ("demo", ".summary.counters"),
    ("demo", ".summary.adherence[].misses"),
];

/// Kinds whose values depend on timing and may be absent: only keys are listed, without types.
const TIMED: &[&str] = &["demo", "bench"];

/// Shapes by kind of document.
#[derive(Debug, Default)]
pub(crate) struct Shapes(BTreeMap<String, BTreeMap<String, BTreeSet<&'static str>>>);

/// The type of an empty list or object.
const EMPTY: &str = "empty";

impl Shapes {
    /// Adds a document to its kind.
    pub(crate) fn add(&mut self, kind: &str, document: &Value) {
        let paths = self.0.entry(kind.to_owned()).or_default();
        walk(kind, document, String::new(), paths);
    }

    pub(crate) fn add_all(&mut self, kind: &str, documents: &[Value]) {
        documents.iter().for_each(|document| self.add(kind, document));
    }

    /// Lines of `kind path type|type`. An empty list or object is not listed if another document has it filled.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, paths) in &self.0 {
            let timed = TIMED.iter().any(|timed| kind.starts_with(timed));
            for (path, types) in paths {
                let filled =
                    |below: &String| below.starts_with(&format!("{path}.")) || below.starts_with(&format!("{path}["));
                let absent = |of: &str| of == EMPTY || timed && of == "null";
                let types: Vec<&str> =
                    types.iter().copied().filter(|of| !absent(of) || !paths.keys().any(filled)).collect();
                let path = if timed { path.trim_end_matches("[]").trim_end_matches(".*") } else { path };
                let path = if path.is_empty() { "." } else { path };
                match (types.is_empty(), timed) {
                    (true, _) => {}
                    (false, true) => lines.push(format!("{kind} {path}")),
                    (false, false) => lines.push(format!("{kind} {path} {}", types.join("|"))),
                }
            }
        }
        lines
    }
}

fn walk(kind: &str, value: &Value, path: String, paths: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let mut leaf = |what: &'static str| {
        paths.entry(path.clone()).or_default().insert(what);
    };
    match value {
        Value::Null => leaf("null"),
        Value::Bool(_) => leaf("bool"),
        Value::Number(number) if number.is_f64() => leaf("float"),
        Value::Number(_) => leaf("integer"),
        Value::String(_) => leaf("text"),
        Value::Array(rows) if rows.is_empty() => leaf(EMPTY),
        Value::Object(map) if map.is_empty() => leaf(EMPTY),
        Value::Array(rows) => rows.iter().for_each(|row| walk(kind, row, format!("{path}[]"), paths)),
        Value::Object(map) => {
            let data = DATA_KEYS.contains(&(kind, path.as_str()));
            for (key, value) in map {
                let key = if data { "*" } else { key };
                walk(kind, value, format!("{path}.{key}"), paths);
            }
        }
    }
}
