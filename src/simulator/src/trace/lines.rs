//! Lines of a trace, numbered, bounded in length; and the reader that all formats share.

use super::TraceError;
use std::io::{self, BufRead, Read as _};

/// No line is longer; without a bound a file with no line break would be read into memory whole.
const MAX_LINE: u64 = 64 * 1024;

/// Turns the lines of one format into jobs.
pub trait Rows {
    /// What a line holds.
    type Job;

    /// Reads a line, which comes without its end. What it remembers of earlier lines (their times, their columns)
    /// changes only if the line is good.
    ///
    /// # Errors
    /// What is wrong with it.
    fn row(&mut self, line: u64, text: &str) -> Result<Self::Job, TraceError>;
}

/// Reads jobs in the trace's order. Stops after the first error, unless [`JobReader::skip_bad`] was asked for.
#[derive(Debug)]
pub struct JobReader<R, P> {
    reader: R,
    rows: P,
    line: u64,
    jobs: u64,
    skip: bool,
    skipped: u64,
    first_skipped: Option<TraceError>,
    ended: bool,
    buffer: Vec<u8>,
}

impl<R: BufRead, P: Rows> JobReader<R, P> {
    /// Reads from `reader`; for packed files see [`super::maybe_gzip`].
    pub fn with_rows(reader: R, rows: P) -> Self {
        let (line, jobs, skipped) = (0, 0, 0);
        let (skip, ended, first_skipped, buffer) = (false, false, None, Vec::new());
        Self { reader, rows, line, jobs, skip, skipped, first_skipped, ended, buffer }
    }

    /// Counts bad lines instead of stopping at them. A stream that breaks, or holds no good line, is still an error.
    #[must_use]
    pub fn skip_bad(mut self) -> Self {
        self.skip = true;
        self
    }

    /// Lines refused so far.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Why the first of them was refused.
    pub const fn first_skipped(&self) -> Option<&TraceError> {
        self.first_skipped.as_ref()
    }

    /// What turns lines into jobs.
    pub const fn rows(&self) -> &P {
        &self.rows
    }

    fn advance(&mut self) -> Result<Option<P::Job>, TraceError> {
        loop {
            let result = match self.read_line() {
                Ok(false) if self.jobs == 0 => Err(TraceError::Empty { skipped: self.skipped }),
                Ok(false) => return Ok(None),
                Ok(true) => self.parse(),
                Err(error) => Err(error),
            };
            match result {
                Ok(job) => {
                    self.jobs += 1;
                    return Ok(Some(job));
                }
                Err(error) if self.skip && error.is_one_line() => {
                    self.skipped += 1;
                    self.first_skipped.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn parse(&mut self) -> Result<P::Job, TraceError> {
        let line = self.line;
        let text = std::str::from_utf8(&self.buffer).map_err(|_| TraceError::NotText { line })?;
        self.rows.row(line, text)
    }

    /// Fills the buffer with the next line, without its end; `false` at the end of the trace.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.buffer.clear();
        let line = self.line;
        let broken = |source: io::Error| match source.kind() {
            io::ErrorKind::UnexpectedEof => TraceError::TruncatedGzip { line },
            _ => TraceError::Read { line, source },
        };
        let read = (&mut self.reader).take(MAX_LINE + 1).read_until(b'\n', &mut self.buffer).map_err(broken)?;
        if read == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if read as u64 > MAX_LINE {
            self.reader.skip_until(b'\n').map_err(broken)?;
            return Err(TraceError::LineTooLong { line: self.line, limit: MAX_LINE });
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(true)
    }
}

impl<R: BufRead, P: Rows> Iterator for JobReader<R, P> {
    type Item = Result<P::Job, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
