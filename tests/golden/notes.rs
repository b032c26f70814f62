//! Collects what all stories see, for all lists.

use crate::grpc::{Call, Place, SCHEMA, SOON, Status, unary};
use crate::programs::{Daemon, document, documents, run, said};
use crate::proto::Kind;
use crate::shape::Shapes;
use prost::Message as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shared collection; stories add to it from several threads.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Seen>);

#[derive(Default)]
pub(crate) struct Seen {
    /// JSON printed by `hintctl`, by command.
    pub(crate) json: Shapes,
    /// Fields that were set in messages from the daemon.
    pub(crate) messages: BTreeSet<String>,
    pub(crate) refusals: BTreeSet<String>,
    /// Metrics pages.
    pub(crate) metrics: Vec<String>,
    /// Stable tokens by field.
    pub(crate) words: BTreeSet<String>,
    /// Journal rows.
    pub(crate) rows: Shapes,
}

/// The needed part of `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

impl Notes {
    /// The collection; still usable after a story failed.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command that must succeed and records its JSON document.
    pub(crate) fn json(&self, kind: &str, args: &[&str]) -> Value {
        let found = document(args);
        self.seen().json.add(kind, &found);
        found
    }

    /// Runs a command that may fail and records its JSON documents.
    pub(crate) fn all_json(&self, kind: &str, args: &[&str]) -> Vec<Value> {
        let found = documents(args);
        self.seen().json.add_all(kind, &found);
        found
    }

    /// Records a message.
    pub(crate) fn message(&self, name: &str, message: &Value) {
        let mut seen = self.seen();
        filled(name, message, &mut seen.messages);
        words(message, "", &mut seen.words);
    }

    /// Makes a call that must succeed and records the answer.
    pub(crate) fn ask(&self, place: &Place, method: &str, request: &Value) -> Value {
        let answer = unary(place, method, request);
        let answer = answer.unwrap_or_else(|status| panic!("{method} of {request}: {status:?}"));
        self.message(&SCHEMA.method(method).output.0, &answer);
        answer
    }

    /// Makes a call that must be refused and records how.
    pub(crate) fn refused(&self, what: &str, place: &Place, method: &str, request: &Value) -> Status {
        match unary(place, method, request) {
            Err(status) => self.refusal(what, method, status),
            Ok(answer) => panic!("{what}: {method} is not refused: {answer}"),
        }
    }

    pub(crate) fn refusal(&self, what: &str, method: &str, status: Status) -> Status {
        let (_, method) = method.trim_start_matches("/hintd.v1.").split_once('/').unwrap();
        self.seen().refusals.insert(format!("{method}: {what}: {}", shown(&status)));
        status
    }

    /// Runs a command that the daemon must refuse; records the exit code and the gRPC code in its message.
    pub(crate) fn refused_command(&self, what: &str, daemon: &Daemon, args: &[&str]) {
        let output = run(&daemon.args(args));
        let (out, err) = said(&output);
        assert!(!output.status.success() && out.is_empty(), "{args:?}: {out}");
        let code = err.split("answers ").nth(1).and_then(|rest| rest.split(':').next());
        let code = code.unwrap_or_else(|| panic!("{args:?}: {err}"));
        let exit = output.status.code().unwrap();
        self.seen().refusals.insert(format!("hintctl {}: {what}: {code}, exit code {exit}", args[0]));
    }

    /// Reads and records messages of a stream until one matches.
    pub(crate) fn until(&self, call: &mut Call, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let next = call.next_within(SOON).unwrap_or_else(|| panic!("{what}: nothing comes"));
            let message = next.unwrap_or_else(|status| panic!("{what}: {status:?}"));
            let message = message.unwrap_or_else(|| panic!("{what}: the stream ended"));
            self.message(name, &message);
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Records the status, from the wire and from `hintctl`.
    pub(crate) fn status(&self, daemon: &Daemon) {
        self.message("hintd.v1.StatusResponse", &daemon.status());
        self.json("status", &daemon.args(&["status", "--live"]));
    }

    /// Records the rows of the journal.
    pub(crate) fn journal(&self, daemon: &Daemon) {
        let journal = std::fs::read(daemon.files.path("journal.redb")).unwrap();
        let rows = crate::journal::rows(&journal);
        let mut seen = self.seen();
        rows.iter().for_each(|(kind, row)| seen.rows.add(kind, row));
    }

    /// Records status, journal, and metrics at the end of a story.
    pub(crate) fn farewell(&self, daemon: &Daemon) {
        self.status(daemon);
        self.journal(daemon);
        let page = daemon.page("/metrics").1;
        self.seen().metrics.push(page);
    }
}

/// Message fields that hold tokens.
const WORDS: &[&str] = &[
    "reason",
    "cause",
    "constraint",
    "state",
    "standing",
    "degraded",
    "deviations",
    "declared_by",
    "origin",
    "source",
    "term",
    "capabilities",
    "verdict",
    "when_broken",
    "objective",
];

/// Records the set fields of a message and of the messages in it.
fn filled(name: &str, message: &Value, into: &mut BTreeSet<String>) {
    for (key, value) in message.as_object().into_iter().flatten() {
        let field = SCHEMA.messages[name].fields.iter().find(|field| field.name == *key).expect("decoded by it");
        into.insert(format!("{name}: {key}"));
        let rows = match value {
            Value::Array(rows) => rows.as_slice(),
            one => std::slice::from_ref(one),
        };
        match &field.kind {
            Kind::Message(inner) => rows.iter().for_each(|row| filled(inner, row, into)),
            Kind::Enum(_) => {
                into.extend(rows.iter().map(|row| format!("{name}: {key} {}", row.as_str().unwrap_or("?"))))
            }
            _ => {}
        }
    }
}

/// Records the tokens in a message.
fn words(message: &Value, field: &str, into: &mut BTreeSet<String>) {
    match message {
        Value::Object(map) => map.iter().for_each(|(key, value)| words(value, key, into)),
        Value::Array(rows) => rows.iter().for_each(|row| words(row, field, into)),
        Value::String(word) if WORDS.contains(&field) => {
            // What follows a colon is data; text with blanks is for people.
            let word = word.split(':').next().unwrap_or_default();
            if !word.contains(' ') && !word.is_empty() {
                into.insert(format!("word of {field}: {word}"));
            }
        }
        _ => {}
    }
}

/// Code, reason, field, the names of other metadata, and the types of details.
fn shown(status: &Status) -> String {
    let mut line = status.code.clone();
    for (key, value) in &status.metadata {
        match key.as_str() {
            "hintd-reason" | "hintd-field" => line += &format!(", {key} {value}"),
            "grpc-status-details-bin" => line += &details(value),
            "date" | "content-type" | "content-length" => {}
            other => line += &format!(", {other}"),
        }
    }
    line
}

fn details(text: &str) -> String {
    let status = RpcStatus::decode(&*base64(text)).expect("details are a status");
    status.details.iter().map(|any| format!(", detail {}", any.type_url)).collect()
}

/// Decodes base64, with or without padding.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | LETTERS.iter().position(|known| *known == letter).expect("base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    out
}

#[test]
fn details_are_read_from_their_text() {
    assert_eq!(base64("aGludGQ="), b"hintd");
    assert_eq!(base64("aGludHM"), b"hints");
    assert_eq!(details(""), "");
    assert_eq!(shown(&Status { code: "OK".into(), ..Status::default() }), "OK");
    let found = json!({ "reason": "full", "message": "no room" });
    let mut into = BTreeSet::new();
    words(&found, "", &mut into);
    assert_eq!(into.into_iter().collect::<Vec<_>>(), ["word of reason: full"]);
}
