//! What the engine asks to be remembered: journal operations, and keys that sort and read back.
//!
//! The engine emits [`Op`]s and never writes them; `store` makes a [`Batch`] durable, all or nothing,
//! before the answer that depends on it leaves. Values are JSON written by the engine, so that a dump
//! can be read by a person and fields can be added later; the store treats them as bytes.

use serde::Serialize;
use std::fmt;

/// One step's operations, made durable together or not at all, applied in order.
pub type Batch = Vec<Op>;

/// The closed set of journal tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Leases on node capacity, until bound, released, withdrawn or expired.
    Leases,
    /// Answers by request id, for idempotent retries.
    Answers,
    /// Application attempts and their tokens.
    Attempts,
    /// Finished groups by recurring-job key.
    History,
    /// The engine's own few facts (counters, instance id).
    Meta,
    /// Plans of recurring jobs, and which is in force.
    Plans,
    /// Finished runs of recurring jobs.
    Runs,
    /// Completion times of hinted and held-out applications.
    Worth,
}

impl Table {
    /// Every table, in the order of a dump.
    pub const ALL: [Table; 8] = [
        Table::Leases,
        Table::Answers,
        Table::Attempts,
        Table::History,
        Table::Meta,
        Table::Plans,
        Table::Runs,
        Table::Worth,
    ];

    /// The table's name in the file; stable, never reused for another meaning.
    pub fn name(self) -> &'static str {
        match self {
            Table::Leases => "leases",
            Table::Answers => "answers",
            Table::Attempts => "attempts",
            Table::History => "history",
            Table::Meta => "meta",
            Table::Plans => "plans",
            Table::Runs => "runs",
            Table::Worth => "worth",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One change to one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes the row, replacing what was there.
    Put {
        /// The table.
        table: Table,
        /// The row's key, as [`KeyBuilder`] makes them.
        key: Vec<u8>,
        /// The row's value: JSON text.
        value: Vec<u8>,
    },
    /// Removes the row; a row that is not there is no error.
    Delete {
        /// The table.
        table: Table,
        /// The row's key.
        key: Vec<u8>,
    },
}

impl Op {
    /// Writes a row.
    pub fn put(table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Op {
        Op::Put { table, key: key.into(), value: value.into() }
    }

    /// Removes a row.
    pub fn delete(table: Table, key: impl Into<Vec<u8>>) -> Op {
        Op::Delete { table, key: key.into() }
    }

    /// The key of the row.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Op::Put { key, .. } | Op::Delete { key, .. } => key,
        }
    }
}

// A part starts with its kind, so that a key can be read back without knowing its table. Both are
// below 0xFF, which marks an escaped zero inside text: a shorter text sorts before its extensions.
const NUMBER: u8 = 0x01;
const TEXT: u8 = 0x02;
const END: u8 = 0x00;
const ESCAPED: u8 = 0xFF;

/// Builds a key of several parts that sorts part by part: numbers by value, texts by bytes.
///
/// ```
/// use hintd_engine::journal::KeyBuilder;
/// let small = KeyBuilder::new().text("app").number(9).build();
/// let large = KeyBuilder::new().text("app").number(10).build();
/// assert!(small < large);
/// ```
#[derive(Debug, Clone, Default)]
pub struct KeyBuilder(Vec<u8>);

impl KeyBuilder {
    /// An empty key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, value: u64) -> Self {
        self.0.push(NUMBER);
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, value: &str) -> Self {
        self.0.reserve(value.len() + 2);
        self.0.push(TEXT);
        for (at, part) in value.as_bytes().split(|&byte| byte == END).enumerate() {
            if at > 0 {
                self.0.extend([END, ESCAPED]);
            }
            self.0.extend_from_slice(part);
        }
        self.0.push(END);
        self
    }

    /// The key.
    pub fn build(self) -> Vec<u8> {
        self.0
    }
}

/// A row's value: JSON, written into room for so many bytes, as one that grows is copied each time.
///
/// # Panics
/// Where serde can't make JSON of it: maps whose keys are no texts.
pub(crate) fn row_value<T: Serialize>(row: &T, room: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(room);
    serde_json::to_writer(&mut value, row).expect("a row has only texts, numbers, lists and string-keyed maps");
    value
}

/// The key of a single number.
pub fn number_key(value: u64) -> Vec<u8> {
    KeyBuilder::new().number(value).build()
}

/// The key of a single text.
pub fn text_key(value: &str) -> Vec<u8> {
    KeyBuilder::new().text(value).build()
}

/// One part of a key, read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// Reads the parts of a key made by [`KeyBuilder`]; `None` if the bytes are not such a key.
pub fn key_parts(key: &[u8]) -> Option<Vec<KeyPart>> {
    let mut parts = Vec::new();
    let mut rest = key;
    while let Some((&kind, tail)) = rest.split_first() {
        let (part, after) = match kind {
            NUMBER => {
                let (bytes, after) = tail.split_first_chunk::<8>()?;
                (KeyPart::Number(u64::from_be_bytes(*bytes)), after)
            }
            TEXT => read_text(tail)?,
            _ => return None,
        };
        parts.push(part);
        rest = after;
    }
    Some(parts)
}

fn read_text(mut rest: &[u8]) -> Option<(KeyPart, &[u8])> {
    let mut bytes = Vec::new();
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        if byte == END {
            match rest.split_first() {
                Some((&ESCAPED, tail)) => rest = tail,
                _ => return Some((KeyPart::Text(String::from_utf8(bytes).ok()?), rest)),
            }
        }
        bytes.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts() -> impl Strategy<Value = Vec<KeyPart>> {
        let part = prop_oneof![
            prop_oneof![0..4_u64, any::<u64>()].prop_map(KeyPart::Number),
            "[a\0\u{ff}]{0,4}".prop_map(KeyPart::Text),
        ];
        prop::collection::vec(part, 0..4)
    }

    fn build(parts: &[KeyPart]) -> Vec<u8> {
        let build = parts.iter().fold(KeyBuilder::new(), |key, part| match part {
            KeyPart::Number(value) => key.number(*value),
            KeyPart::Text(value) => key.text(value),
        });
        build.build()
    }

    // The oracle: numbers before texts, each by its own order, part by part.
    fn order(parts: &[KeyPart]) -> Vec<(u8, u64, &[u8])> {
        let rank = |part| match part {
            &KeyPart::Number(value) => (0, value, &[][..]),
            KeyPart::Text(value) => (1, 0, value.as_bytes()),
        };
        parts.iter().map(rank).collect()
    }

    proptest! {
        #[test]
        fn keys_sort_as_their_parts_do_and_read_back(a in parts(), b in parts()) {
            prop_assert_eq!(build(&a).cmp(&build(&b)), order(&a).cmp(&order(&b)));
            prop_assert_eq!(key_parts(&build(&a)), Some(a));
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_not_read_as_one() {
        for bytes in [&[7_u8][..], &[NUMBER, 1, 2], &[TEXT, b'a'], &[TEXT, 0xC3, END]] {
            assert_eq!(key_parts(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn table_names_are_distinct() {
        let names: std::collections::BTreeSet<_> = Table::ALL.iter().map(|table| table.name()).collect();
        assert_eq!(names.len(), Table::ALL.len());
    }
}
