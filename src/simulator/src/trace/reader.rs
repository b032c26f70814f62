//! Traces of either format, told apart by their content, cut and scaled as a run asks.

use super::TraceError;
use super::job::{Earlier, TraceJob};
use super::json::JsonRows;
use super::lines::{JobReader, Rows};
use super::swim::{MAX_BYTES, SwimRows};
use crate::job_model::JobModel;
use hintd_model::units::{Bytes, Micros};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// SWIM's rows, 6 columns.
    Swim,
    /// SWIM's rows with input paths, 9 columns.
    SwimWithPaths,
    /// One JSON object a line.
    JsonLines,
}

impl TraceFormat {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Swim => "SWIM",
            Self::SwimWithPaths => "SWIM with input paths",
            Self::JsonLines => "JSON lines",
        }
    }
}

/// What a run takes of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TraceOptions {
    /// The first N jobs of those that are run.
    pub jobs: Option<u64>,
    /// The trace's first N jobs are not run: they ran before, and the last that read a path is the earlier run of jobs that read
    /// it. Those that are run come as if the first of them came with the trace's beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learn: Option<u64>,
    /// Factor on input, shuffle and output; what was above 0 stays above 0.
    pub scale_bytes: f64,
    /// Jobs come so many times as fast.
    pub speed: f64,
    /// Bad lines are counted, not errors.
    pub skip_bad: bool,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { jobs: None, learn: None, scale_bytes: 1.0, speed: 1.0, skip_bad: false }
    }
}

/// Reads a trace as the simulator takes it.
#[derive(Debug)]
pub struct TraceReader<R> {
    reader: JobReader<R, AnyRows>,
    options: TraceOptions,
    left: u64,
    to_learn: u64,
    /// By path: the last job learnt from that read it.
    learnt: BTreeMap<Arc<str>, Arc<TraceJob>>,
    /// When the first job came that is run, where others came before.
    began: Option<Micros>,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads from `reader`; for packed files see [`super::maybe_gzip`].
    pub fn new(reader: R, options: TraceOptions) -> Self {
        let mut reader = JobReader::with_rows(reader, AnyRows { scale: options.scale_bytes, ..AnyRows::default() });
        if options.skip_bad {
            reader = reader.skip_bad();
        }
        let (left, to_learn) = (options.jobs.unwrap_or(u64::MAX), options.learn.unwrap_or(0));
        Self { reader, options, left, to_learn, learnt: BTreeMap::new(), began: None }
    }

    /// Reads what is learnt from.
    fn learn(&mut self) -> Result<(), TraceError> {
        while self.to_learn > 0 {
            let Some(job) = self.reader.next() else { break };
            let job = job?;
            self.to_learn -= 1;
            if let Some(path) = &job.input_path {
                self.learnt.insert(Arc::clone(path), Arc::new(job));
            }
        }
        self.to_learn = 0;
        Ok(())
    }

    /// A job as it is run.
    fn told(&mut self, mut job: TraceJob) -> TraceJob {
        if self.options.learn.is_some() {
            let began = *self.began.get_or_insert(job.submit);
            job.submit = job.submit.saturating_sub(began);
            job.earlier = Earlier::Told(job.input_path.as_ref().and_then(|path| self.learnt.get(path).cloned()));
        }
        let speed = self.options.speed;
        if speed.to_bits() != 1.0_f64.to_bits() {
            job.submit = Micros((job.submit.as_f64() / speed).round() as u64);
        }
        job
    }

    /// Lines refused so far.
    pub const fn skipped(&self) -> u64 {
        self.reader.skipped()
    }

    /// Why the first of them was refused.
    pub const fn first_skipped(&self) -> Option<&TraceError> {
        self.reader.first_skipped()
    }

    /// The format, after the first good line.
    pub fn format(&self) -> Option<TraceFormat> {
        match &self.reader.rows().format {
            Format::Unknown => None,
            Format::Json(_) => Some(TraceFormat::JsonLines),
            Format::Swim(rows) => {
                rows.with_paths().map(|paths| if paths { TraceFormat::SwimWithPaths } else { TraceFormat::Swim })
            }
        }
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceJob, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if let Err(error) = self.learn() {
            return Some(Err(error));
        }
        let job = self.reader.next()?;
        Some(job.map(|job| self.told(job)))
    }
}

/// What is in a trace, from one reading of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TraceFacts {
    /// How it is written.
    pub format: Option<TraceFormat>,
    /// Jobs.
    pub jobs: u64,
    /// Bad lines that were skipped.
    pub skipped: u64,
    /// Why the first of them was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_skipped: Option<String>,
    /// Submit time of the first job.
    pub first_submit_s: f64,
    /// Submit time of the last job.
    pub last_submit_s: f64,
    /// Maps, under the job model where the trace does not say.
    pub maps: u64,
    /// Reduces, likewise.
    pub reduces: u64,
    /// Map input of all jobs.
    pub input_bytes: u64,
    /// Shuffle of all jobs.
    pub shuffle_bytes: u64,
    /// Reduce output of all jobs.
    pub output_bytes: u64,
    /// Jobs of which the trace tells an earlier run.
    #[serde(skip_serializing_if = "is_zero")]
    pub known: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TraceFacts {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The trace's first.
    pub fn read(reader: impl BufRead, options: TraceOptions, model: &JobModel) -> Result<Self, TraceError> {
        let mut reader = TraceReader::new(reader, options);
        let mut facts = Self::default();
        for job in reader.by_ref() {
            facts.count(&job?, model);
        }
        facts.format = reader.format();
        facts.skipped = reader.skipped();
        facts.first_skipped = reader.first_skipped().map(ToString::to_string);
        Ok(facts)
    }

    fn count(&mut self, job: &TraceJob, model: &JobModel) {
        if self.jobs == 0 {
            self.first_submit_s = job.submit.as_secs_f64();
        }
        self.jobs += 1;
        self.known += u64::from(matches!(job.earlier, Earlier::Told(Some(_))));
        self.last_submit_s = job.submit.as_secs_f64();
        self.maps += job.maps.unwrap_or_else(|| model.maps(job.input));
        self.reduces += job.reduces.unwrap_or_else(|| model.reduces(job.shuffle, job.output));
        for (sum, of_job) in [
            (&mut self.input_bytes, job.input),
            (&mut self.shuffle_bytes, job.shuffle),
            (&mut self.output_bytes, job.output),
        ] {
            *sum = sum.saturating_add(of_job.0);
        }
    }
}

/// Lines of whichever format the first one is.
#[derive(Debug, Default)]
struct AnyRows {
    format: Format,
    scale: f64,
}

#[derive(Debug, Default)]
enum Format {
    #[default]
    Unknown,
    Swim(SwimRows),
    Json(JsonRows),
}

impl Rows for AnyRows {
    type Job = TraceJob;

    fn row(&mut self, line: u64, text: &str) -> Result<TraceJob, TraceError> {
        if matches!(self.format, Format::Unknown) {
            // Names of SWIM's jobs never begin with a brace; a job of ours is an object.
            let json = text.trim_start().starts_with('{');
            self.format = if json { Format::Json(JsonRows::default()) } else { Format::Swim(SwimRows::default()) };
        }
        let mut job = match &mut self.format {
            Format::Json(rows) => rows.row(line, text)?,
            Format::Swim(rows) => rows.row(line, text)?.into(),
            Format::Unknown => return Err(TraceError::Empty { skipped: 0 }),
        };
        for (field, bytes) in [("input", &mut job.input), ("shuffle", &mut job.shuffle), ("output", &mut job.output)] {
            *bytes = scaled(*bytes, self.scale);
            if bytes.0 > MAX_BYTES {
                let problem = format!("{} bytes, scaled by {}, are more than {MAX_BYTES}", bytes.0, self.scale);
                return Err(TraceError::Field { line, field, problem });
            }
        }
        Ok(job)
    }
}

fn scaled(bytes: Bytes, scale: f64) -> Bytes {
    if bytes == Bytes::ZERO || scale.to_bits() == 1.0_f64.to_bits() {
        return bytes;
    }
    Bytes(((bytes.as_f64() * scale).round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWIM: &str = "a\t0\t0\t100\t10\t1\nb\t10\t10\t0\t0\t0\n";
    const PATHS: &str = "a\t0\t0\t100\t10\t1\t/p\t\t\n";
    const JSON: &str = "{\"name\":\"a\",\"submit_s\":0,\"input_bytes\":100,\"shuffle_bytes\":10,\"output_bytes\":1}\n\
        {\"name\":\"b\",\"submit_s\":10,\"input_bytes\":0,\"shuffle_bytes\":0,\"output_bytes\":0}\n";

    fn read(text: &str, options: TraceOptions) -> Vec<TraceJob> {
        TraceReader::new(text.as_bytes(), options).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn formats_are_told_apart_by_their_content() {
        let one = TraceOptions::default();
        for (text, format) in
            [(SWIM, TraceFormat::Swim), (PATHS, TraceFormat::SwimWithPaths), (JSON, TraceFormat::JsonLines)]
        {
            let facts = TraceFacts::read(text.as_bytes(), one, &JobModel::default()).unwrap();
            assert_eq!(facts.format, Some(format));
        }
        assert_eq!(read(SWIM, one), read(JSON, one), "the same jobs in both");
    }

    #[test]
    fn a_trace_is_cut_scaled_and_sped_up() {
        let options = TraceOptions { jobs: Some(1), ..TraceOptions::default() };
        assert_eq!(read(SWIM, options).len(), 1);
        let options = TraceOptions { scale_bytes: 0.05, speed: 4.0, ..TraceOptions::default() };
        let jobs = read(SWIM, options);
        assert_eq!((jobs[0].input, jobs[0].shuffle, jobs[0].output), (Bytes(5), Bytes(1), Bytes(1)));
        assert_eq!((jobs[1].input, jobs[1].submit), (Bytes(0), Micros(2_500_000)));
        let options = TraceOptions { scale_bytes: 1e15, ..TraceOptions::default() };
        let error = TraceReader::new(SWIM.as_bytes(), options).next().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("line 1, input: 100000000000000000 bytes, scaled by "), "{error}");
    }

    #[test]
    fn what_was_learnt_from_is_the_last_run_of_its_path_and_is_not_run() {
        let row = |at: u64, bytes: u64, path: &str| format!("j{at}\t{at}\t1\t{bytes}\t{bytes}\t1\t{path}\t\t\n");
        let text = [row(0, 5, "/a"), row(10, 7, "/a"), row(20, 9, "/b"), row(30, 11, "/a"), row(50, 13, "/c")].concat();
        let options = TraceOptions { learn: Some(3), scale_bytes: 2.0, speed: 2.0, ..TraceOptions::default() };
        let jobs = read(&text, options);
        let told = |job: &TraceJob| match &job.earlier {
            Earlier::Told(known) => known.as_ref().map(|known| (known.input, known.shuffle)),
            Earlier::Untold => panic!("{job:?}"),
        };
        assert_eq!(jobs.iter().map(told).collect::<Vec<_>>(), [Some((Bytes(14), Bytes(14))), None]);
        assert_eq!(jobs.iter().map(|job| job.submit.as_secs_f64()).collect::<Vec<_>>(), [0.0, 10.0]);
        let facts = |options| TraceFacts::read(text.as_bytes(), options, &JobModel::default()).unwrap();
        assert_eq!((facts(options).jobs, facts(options).known), (2, 1));
        assert_eq!(facts(TraceOptions { jobs: Some(1), ..options }).jobs, 1);
        assert_eq!(facts(TraceOptions { learn: Some(9), ..options }).jobs, 0, "all of them ran before");
        assert!(read(&text, TraceOptions::default()).iter().all(|job| job.earlier == Earlier::Untold));
        let bad = text.replacen("\t5\t5", "\t-5\t5", 1);
        let error = TraceReader::new(bad.as_bytes(), options).next().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("line 1, column 4"), "{error}");
    }

    #[test]
    fn bad_lines_are_counted_with_the_first_reason() {
        let text = format!("{SWIM}c\t5\t0\t1\t1\t1\nd\t20\t0\t-1\t0\t0\ne\t30\t0\t1\t0\t0\n");
        let options = TraceOptions { skip_bad: true, ..TraceOptions::default() };
        let facts = TraceFacts::read(text.as_bytes(), options, &JobModel::default()).unwrap();
        assert_eq!((facts.jobs, facts.skipped, facts.maps), (3, 2, 3));
        let reason = "line 3, column 2 (submit time, s): 5 lies before 10, the time of an earlier line";
        assert_eq!(facts.first_skipped.as_deref(), Some(reason));
        assert_eq!((facts.first_submit_s, facts.last_submit_s), (0.0, 30.0));
    }
}
