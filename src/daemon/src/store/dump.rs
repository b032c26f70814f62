//! The journal as JSON lines, for people.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Journal, StoreError};
use hintd_engine::journal::{KeyPart, key_parts};

impl Journal {
    /// Writes every row as one JSON line: `{"table":…,"key":[…],"value":…}`, sorted by table and key.
    ///
    /// A key or value that is not one of the engine's stands in hexadecimal under `key_hex` or
    /// `value_hex`, so that a damaged row is shown and not hidden.
    ///
    /// # Errors
    /// [`StoreError`] from reading, [`io::Error`] from `out`, told apart by [`DumpError`].
    pub fn dump(&self, mut out: impl Write) -> Result<(), DumpError> {
        for (table, rows) in self.rows()? {
            for (key, value) in rows {
                let mut line = json!({ "table": table.name() });
                match key_parts(&key) {
                    Some(parts) => line["key"] = parts.into_iter().map(part).collect(),
                    None => line["key_hex"] = hex(&key),
                }
                match serde_json::from_slice(&value) {
                    Ok(value) => line["value"] = value,
                    Err(_) => line["value_hex"] = hex(&value),
                }
                writeln!(out, "{line}")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The journal could not be read.
    #[error("journal cannot be read")]
    Journal(#[from] StoreError),
    /// The output could not be written.
    #[error("dump cannot be written")]
    Output(#[from] io::Error),
}

fn part(part: KeyPart) -> Value {
    match part {
        KeyPart::Number(number) => number.into(),
        KeyPart::Text(text) => text.into(),
    }
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
