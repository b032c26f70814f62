//! SWIM's Facebook traces: one job per row, sorted by submit time, tab-separated, no header.
//!
//! | column | |
//! |---|---|
//! | 1 | job's name |
//! | 2 | submit time, seconds since the trace's start |
//! | 3 | gap to the previous job, seconds (redundant: read, not used) |
//! | 4, 5, 6 | bytes of map input, shuffle, reduce output; all may be 0 |
//! | 7, 8, 9 | input path, output path (never filled), an empty field; only in the files with input paths |
//!
//! Rows have 6 columns or 9, all rows of one trace alike. Several jobs may read one path with *different* input
//! bytes: a path names a dataset, the bytes say how much of it the job reads.

use super::TraceError;
use super::lines::{JobReader, Rows};
use hintd_model::units::{Bytes, Micros};
use std::collections::HashSet;
use std::io::BufRead;
use std::sync::Arc;

/// A pebibyte: more in one column is a damaged row, no job. The largest of Facebook's traces of 2009 and 2010 is
/// 85 TB; a pebibyte still has no more maps than a task's number can count.
pub const MAX_BYTES: u64 = 1 << 50;
/// A century: later submit times would not be seconds.
pub const MAX_SUBMIT_S: u64 = 100 * 366 * 86_400;
/// What an error shows of a row.
const SHOWN: usize = 80;

/// One job of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwimJob {
    /// As the trace names it.
    pub name: Arc<str>,
    /// Submit time since the trace's start.
    pub submit: Micros,
    /// Map input.
    pub input: Bytes,
    /// Map output that crosses to the reduces; 0 for a map-only job.
    pub shuffle: Bytes,
    /// Reduce output.
    pub output: Bytes,
    /// What it reads, where the trace says so; equal names share one allocation.
    pub input_path: Option<Arc<str>>,
}

/// Reads a SWIM trace in its order.
pub type SwimReader<R> = JobReader<R, SwimRows>;

impl<R: BufRead> SwimReader<R> {
    /// Reads from `reader`; for packed files see [`super::maybe_gzip`].
    pub fn new(reader: R) -> Self {
        Self::with_rows(reader, SwimRows::default())
    }
}

/// Rows of SWIM's format.
#[derive(Debug, Default)]
pub struct SwimRows {
    /// Columns of the first good row; all must have as many.
    columns: Option<usize>,
    latest_s: u64,
    paths: HashSet<Arc<str>>,
}

impl SwimRows {
    /// Whether rows name input paths; nothing before the first good row.
    #[must_use]
    pub fn with_paths(&self) -> Option<bool> {
        self.columns.map(|columns| columns > 6)
    }
}

impl Rows for SwimRows {
    type Job = SwimJob;

    fn row(&mut self, line: u64, text: &str) -> Result<SwimJob, TraceError> {
        let fields: Vec<&str> = text.split('\t').collect();
        let expected = match self.columns {
            Some(6) => "6, as in the rows before,",
            Some(_) => "9, as in the rows before,",
            None => "6, or 9 with input paths,",
        };
        let right = self.columns.map_or(matches!(fields.len(), 6 | 9), |columns| columns == fields.len());
        if !right {
            return Err(TraceError::Columns { line, found: fields.len(), expected, text: shown(text) });
        }
        if fields[0].is_empty() {
            return Err(TraceError::Missing { line, column: 1, what: "job" });
        }
        for (column, what) in [(1, "job"), (7, "input path")] {
            let field = fields.get(usize::from(column) - 1).filter(|field| field.chars().any(char::is_control));
            if let Some(value) = field.map(|field| shown(field)) {
                return Err(TraceError::Control { line, column, what, value });
            }
        }
        let row = Row { line, fields: &fields };
        let submit_s = row.number(2, "submit time, s", MAX_SUBMIT_S)?;
        row.number(3, "gap, s", MAX_SUBMIT_S)?;
        let input = Bytes(row.number(4, "map input, bytes", MAX_BYTES)?);
        let shuffle = Bytes(row.number(5, "shuffle, bytes", MAX_BYTES)?);
        let output = Bytes(row.number(6, "reduce output, bytes", MAX_BYTES)?);
        if submit_s < self.latest_s {
            return Err(TraceError::BackInTime { line, value: submit_s, previous: self.latest_s });
        }
        let name = fields[0].into();
        let input_path = fields.get(6).filter(|path| !path.is_empty()).map(|path| intern(&mut self.paths, path));
        self.columns = Some(fields.len());
        self.latest_s = submit_s;
        Ok(SwimJob { name, submit: Micros::from_secs(submit_s), input, shuffle, output, input_path })
    }
}

struct Row<'a> {
    line: u64,
    fields: &'a [&'a str],
}

impl Row<'_> {
    fn number(&self, column: u8, what: &'static str, limit: u64) -> Result<u64, TraceError> {
        let line = self.line;
        let field = self.fields[usize::from(column) - 1];
        let value = || shown(field);
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if field.is_empty() {
            return Err(TraceError::Missing { line, column, what });
        }
        if field.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok()) {
            return Err(TraceError::Negative { line, column, what, value: value() });
        }
        if !digits(field) {
            return Err(TraceError::NotANumber { line, column, what, value: value() });
        }
        // Digits that do not fit u64 are beyond every limit as well.
        match field.parse() {
            Ok(number) if number <= limit => Ok(number),
            _ => Err(TraceError::TooLarge { line, column, what, value: value(), limit }),
        }
    }
}

pub(super) fn intern(paths: &mut HashSet<Arc<str>>, path: &str) -> Arc<str> {
    if let Some(known) = paths.get(path) {
        return Arc::clone(known);
    }
    let path: Arc<str> = path.into();
    paths.insert(Arc::clone(&path));
    path
}

/// The beginning of what is wrong, for a message: control characters but tabs as Rust writes them.
pub(super) fn shown(text: &str) -> String {
    let speaks = |letter: char| letter.is_control() && letter != '\t';
    let written = |letter: char| if speaks(letter) { letter.escape_debug().to_string() } else { letter.into() };
    let more = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
    text.chars().take(SHOWN).map(written).chain([more.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Result<Vec<SwimJob>, TraceError> {
        SwimReader::new(text).collect()
    }

    fn refused(text: &str) -> String {
        read(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn both_kinds_of_rows_are_read() {
        let jobs = read(b"job0\t49\t49\t740773\t2339561\t627471\r\njob1\t101\t52\t0\t0\t0").unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].submit, Micros::from_secs(49));
        assert_eq!(
            (jobs[0].input, jobs[0].shuffle, jobs[0].output),
            (Bytes(740_773), Bytes(2_339_561), Bytes(627_471))
        );
        assert_eq!(jobs[0].input_path, None);

        let jobs = read(b"a\t1\t1\t5\t0\t7\tp\t\t\nb\t1\t0\t9\t0\t7\tp\t\t\nc\t2\t1\t0\t0\t7\t\t\t\n").unwrap();
        let path = jobs[0].input_path.as_ref().unwrap();
        assert_eq!(path.as_ref(), "p");
        assert!(Arc::ptr_eq(path, jobs[1].input_path.as_ref().unwrap()), "equal paths share one allocation");
        assert_eq!(jobs[2].input_path, None);
    }

    #[test]
    fn every_bad_row_is_refused_with_line_column_and_value() {
        let good = "j\t10\t0\t1\t2\t3\n";
        let cases = [
            ("j\t10\t0\t1\t2", "line 2: 5 tab-separated columns where 6, as in the rows before,"),
            ("j\t10\t0\t1\t2\t3\tp\t\t", "line 2: 9 tab-separated columns"),
            ("\n", "line 2: 1 tab-separated columns"),
            ("\t10\t0\t1\t2\t3", "line 2, column 1 (job): empty"),
            ("j\u{1b}[2J\t10\t0\t1\t2\t3", "line 2, column 1 (job): \"j\\u{1b}[2J\" holds a control character"),
            ("j\u{1b}\t10", "2 tab-separated columns where 6, as in the rows before, are needed, in \"j\\u{1b}\t10\""),
            ("j\t10\t0\t\t2\t3", "line 2, column 4 (map input, bytes): empty"),
            ("j\t10\t0\t-1\t2\t3", "line 2, column 4 (map input, bytes): \"-1\" is negative"),
            ("j\t10\t0\t1\tx7\t3", "line 2, column 5 (shuffle, bytes): \"x7\" is not a whole number"),
            ("j\t10\t0\t1\t+7\t3", "\"+7\" is not a whole number"),
            ("j\t10.5\t0\t1\t2\t3", "line 2, column 2 (submit time, s): \"10.5\" is not a whole number"),
            ("j\t10\t0\t1\t2\tNaN", "line 2, column 6 (reduce output, bytes): \"NaN\" is not a whole number"),
            ("j\t10\t0\t1\t2\t1125899906842625", "\"1125899906842625\" is more than 1125899906842624"),
            ("j\t10\t0\t1\t2\t99999999999999999999999", "is more than 1125899906842624"),
            ("j\t9\t0\t1\t2\t3", "line 2, column 2 (submit time, s): 9 lies before 10"),
            ("j\t10\tgap\t1\t2\t3", "line 2, column 3 (gap, s): \"gap\" is not a whole number"),
        ];
        for (row, message) in cases {
            let error = refused(&format!("{good}{row}"));
            assert!(error.contains(message), "{row:?}: {error}");
        }
        assert!(refused("j\t10\t0").contains("3 tab-separated columns where 6, or 9 with input paths,"));
        assert!(refused("").contains("holds no job"));
        assert!(matches!(read(b"j\t1\t0\t1\t2\t3\n\xff\xfe\n"), Err(TraceError::NotText { line: 2 })));
    }

    #[test]
    fn the_largest_job_allowed_is_read() {
        assert_eq!(read(b"j\t0\t0\t1125899906842624\t0\t0").unwrap()[0].input, Bytes(MAX_BYTES));
    }

    #[test]
    fn a_reader_stops_at_the_first_error() {
        let mut reader = SwimReader::new(&b"j\t1\t0\t1\t2\t3\nbad\nk\t2\t0\t1\t2\t3\n"[..]);
        assert!(reader.next().unwrap().is_ok());
        assert!(reader.next().unwrap().is_err());
        assert!(reader.next().is_none());
    }

    #[test]
    fn bad_rows_are_counted_when_asked_to_skip_them() {
        let long = "x".repeat(100_000);
        let text = format!("bad\nj\t5\t0\t1\t2\t3\n{long}\nk\t4\t0\t1\t2\t3\nl\t6\t0\t1\t2\t3\n");
        let mut reader = SwimReader::new(text.as_bytes()).skip_bad();
        let names: Vec<_> = reader.by_ref().map(|job| job.unwrap().name.to_string()).collect();
        assert_eq!(names, ["j", "l"]);
        assert_eq!(reader.skipped(), 3);
        assert!(reader.first_skipped().unwrap().to_string().starts_with("line 1:"));

        let mut reader = SwimReader::new(&b"bad\nworse\n"[..]).skip_bad();
        assert!(matches!(reader.next(), Some(Err(TraceError::Empty { skipped: 2 }))));
    }

    #[test]
    fn a_line_without_an_end_is_not_read_into_memory() {
        let error = refused(&"9".repeat(1_000_000));
        assert_eq!(error, "line 1: longer than 65536 bytes");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_bytes_make_the_reader_panic_or_run_on(bytes in prop::collection::vec(
            prop_oneof![Just(b'\t'), Just(b'\n'), Just(b'0'), Just(b'7'), Just(b'-'), any::<u8>()], 0..200,
        )) {
            let rows = 1 + bytes.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert!(SwimReader::new(&bytes[..]).count() <= rows + 1);
            let mut reader = SwimReader::new(&bytes[..]).skip_bad();
            let jobs = reader.by_ref().filter(Result::is_ok).count();
            prop_assert!(jobs as u64 + reader.skipped() <= rows as u64);
        }
    }
}
