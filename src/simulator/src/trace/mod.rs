//! Job traces: reading, unpacking and generating them.

pub mod generate;
pub mod job;
pub mod json;
pub mod lines;
pub mod reader;
pub mod swim;

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// The first two bytes of every gzip member (RFC 1952, 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What is wrong with a trace. Lines and columns count from 1.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A row that is cut or has fields too many.
    #[error("line {line}: {found} tab-separated columns where {expected} are needed, in \"{text}\"")]
    Columns {
        /// Its number.
        line: u64,
        /// How many there are.
        found: usize,
        /// How many there may be.
        expected: &'static str,
        /// The row, cut to a readable length.
        text: String,
    },
    /// A field that must hold something is empty.
    #[error("line {line}, column {column} ({what}): empty")]
    Missing {
        /// Its line.
        line: u64,
        /// Its column.
        column: u8,
        /// The column's meaning.
        what: &'static str,
    },
    /// A name that would speak to a terminal or break a log's line.
    #[error("line {line}, column {column} ({what}): \"{value}\" holds a control character")]
    Control {
        /// Its line.
        line: u64,
        /// Its column.
        column: u8,
        /// The column's meaning.
        what: &'static str,
        /// What stands there.
        value: String,
    },
    /// A field that is no whole number.
    #[error("line {line}, column {column} ({what}): \"{value}\" is not a whole number")]
    NotANumber {
        /// Its line.
        line: u64,
        /// Its column.
        column: u8,
        /// The column's meaning.
        what: &'static str,
        /// What stands there.
        value: String,
    },
    /// A number below zero.
    #[error("line {line}, column {column} ({what}): \"{value}\" is negative")]
    Negative {
        /// Its line.
        line: u64,
        /// Its column.
        column: u8,
        /// The column's meaning.
        what: &'static str,
        /// What stands there.
        value: String,
    },
    /// A number beyond every cluster.
    #[error("line {line}, column {column} ({what}): \"{value}\" is more than {limit}")]
    TooLarge {
        /// Its line.
        line: u64,
        /// Its column.
        column: u8,
        /// The column's meaning.
        what: &'static str,
        /// What stands there.
        value: String,
        /// The largest value taken.
        limit: u64,
    },
    /// A submit time before that of an earlier row.
    #[error("line {line}, column 2 (submit time, s): {value} lies before {previous}, the time of an earlier line")]
    BackInTime {
        /// Its line.
        line: u64,
        /// The time, seconds.
        value: u64,
        /// The latest time so far, seconds.
        previous: u64,
    },
    /// A field of a JSON line that can't be meant.
    #[error("line {line}, {field}: {problem}")]
    Field {
        /// Its line.
        line: u64,
        /// The field.
        field: &'static str,
        /// What stands there and what is wrong with it.
        problem: String,
    },
    /// A line that is not JSON, or not a job's.
    #[error("line {line}, column {column}: {problem}")]
    Json {
        /// Its number.
        line: u64,
        /// Where in it.
        column: usize,
        /// What is wrong, in the JSON reader's words.
        problem: String,
    },
    /// A row beyond the length that any job needs.
    #[error("line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// Its number.
        line: u64,
        /// The largest length, bytes.
        limit: u64,
    },
    /// A row that is not UTF-8.
    #[error("line {line}: not text (is the file packed with something other than gzip?)")]
    NotText {
        /// Its number.
        line: u64,
    },
    /// A trace without a job.
    #[error("the trace holds no job ({skipped} bad lines were skipped)")]
    Empty {
        /// Rows refused and skipped.
        skipped: u64,
    },
    /// The gzip stream stops before its end mark: the file was cut.
    #[error("after line {line}: the gzip data stop before their end, the file is cut")]
    TruncatedGzip {
        /// The last whole line.
        line: u64,
    },
    /// The reader below failed.
    #[error("after line {line}: reading failed")]
    Read {
        /// The last whole line.
        line: u64,
        /// Why.
        source: io::Error,
    },
}

impl TraceError {
    /// Whether one row is bad and the next may be read; otherwise the stream itself has ended.
    #[must_use]
    pub const fn is_one_line(&self) -> bool {
        !matches!(self, Self::Empty { .. } | Self::TruncatedGzip { .. } | Self::Read { .. })
    }
}

/// Unpacks `reader` if it starts as gzip does, whatever the file is called; passes everything else through.
/// Several gzip members in a row read as one.
///
/// # Errors
/// If the first two bytes cannot be read.
pub fn maybe_gzip<'a>(mut reader: impl BufRead + Send + 'a) -> Result<Box<dyn BufRead + Send + 'a>, TraceError> {
    let mut head = Vec::with_capacity(GZIP_MAGIC.len());
    // `fill_buf` may give one byte only, so the head is read and put back in front.
    (&mut reader)
        .take(GZIP_MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|source| TraceError::Read { line: 0, source })?;
    let packed = head == GZIP_MAGIC;
    let whole = Cursor::new(head).chain(reader);
    if packed { Ok(Box::new(BufReader::new(MultiGzDecoder::new(whole)))) } else { Ok(Box::new(whole)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;

    const ROW: &[u8] = b"job0\t49\t49\t740773\t2339561\t627471\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Gives one byte at a time, as a slow pipe may.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(self.0.len()).min(1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn plain_and_packed_traces_read_alike() {
        let packed = gzip(ROW);
        let twice = [gzip(ROW), gzip(b"job1\t50\t1\t1\t2\t3\n")].concat();
        for (bytes, jobs) in [(ROW, 1), (&packed, 1), (&twice, 2)] {
            let read: Result<Vec<_>, _> = swim::SwimReader::new(maybe_gzip(bytes).unwrap()).collect();
            assert_eq!(read.unwrap().len(), jobs);
            let drip = BufReader::with_capacity(1, Drip(bytes));
            let read: Result<Vec<_>, _> = swim::SwimReader::new(maybe_gzip(drip).unwrap()).collect();
            assert_eq!(read.unwrap().len(), jobs, "one byte at a time");
        }
    }

    #[test]
    fn a_cut_gzip_file_is_told_as_such() {
        let rows = ROW.repeat(1000);
        let packed = gzip(&rows);
        for length in [2, 9, packed.len() / 2, packed.len() - 1] {
            let reader = swim::SwimReader::new(maybe_gzip(&packed[..length]).unwrap());
            let last = reader.last().expect("at least the error");
            assert!(matches!(last, Err(TraceError::TruncatedGzip { .. })), "{length} bytes: {last:?}");
        }
    }

    #[test]
    fn a_corrupt_gzip_file_is_refused() {
        let mut packed = gzip(&ROW.repeat(1000));
        let end = packed.len() - 6; // inside the checksum
        packed[end] ^= 0xff;
        let last = swim::SwimReader::new(maybe_gzip(packed.as_slice()).unwrap()).last();
        assert!(matches!(last, Some(Err(TraceError::Read { .. }))), "{last:?}");
    }

    #[test]
    fn nothing_at_all_is_an_empty_trace() {
        for bytes in [Vec::new(), gzip(b"")] {
            let first = swim::SwimReader::new(maybe_gzip(bytes.as_slice()).unwrap()).next();
            assert!(matches!(first, Some(Err(TraceError::Empty { skipped: 0 }))), "{first:?}");
        }
    }
}
