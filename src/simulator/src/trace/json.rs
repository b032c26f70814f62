//! The project's own traces: one JSON object a line, one job each, sorted by submit time.
//!
//! What SWIM's rows can't say stands here: a user, task counts, task times. docs/formats.md describes the fields.

use super::TraceError;
use super::job::{Earlier, TraceJob};
use super::lines::Rows;
use super::swim::{MAX_BYTES, MAX_SUBMIT_S, intern, shown};
use hintd_model::units::{Bytes, HostName, Micros};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

/// Most maps of one job: what the largest input of any job has in HDFS's blocks, and a fifth more.
pub const MAX_MAPS: u64 = 10_000_000;
/// Most reduces of one job: a hundred times the job model's.
pub const MAX_REDUCES: u64 = 100_000;

/// A line as it stands there; numbers are checked after it was read, so that what is wrong is said by field.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    submit_s: Number,
    input_bytes: Number,
    shuffle_bytes: Number,
    output_bytes: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_path: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<Vec<HostName>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maps: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reduces: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map_s: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reduce_s: Option<Number>,
}

/// Lines of this format.
#[derive(Debug, Default)]
pub struct JsonRows {
    latest: Micros,
    /// Users and paths; equal ones share one allocation.
    names: HashSet<Arc<str>>,
}

impl Rows for JsonRows {
    type Job = TraceJob;

    fn row(&mut self, line: u64, text: &str) -> Result<TraceJob, TraceError> {
        let read: Line<'_> = serde_json::from_str(text).map_err(|error| {
            // serde_json ends its messages with the place, which is told apart here.
            let whole = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let problem = whole.strip_suffix(&place).unwrap_or(&whole).to_owned();
            TraceError::Json { line, column: error.column(), problem }
        })?;
        let at = At { line };
        if read.name.is_empty() {
            return Err(at.wrong("name", "is empty"));
        }
        let texts =
            [("name", Some(&*read.name)), ("input_path", read.input_path.as_deref()), ("user", read.user.as_deref())];
        for (field, text) in texts.into_iter().filter_map(|(field, text)| Some((field, text?))) {
            if text.chars().any(char::is_control) {
                return Err(at.wrong(field, format!("\"{}\" holds a control character", shown(text))));
            }
        }
        let submit = at.seconds("submit_s", &read.submit_s)?;
        if submit < self.latest {
            let before = self.latest.as_secs_f64();
            let problem = format!("{} lies before {before}, the time of an earlier line", read.submit_s);
            return Err(at.wrong("submit_s", problem));
        }
        let mut job = TraceJob {
            name: read.name.as_ref().into(),
            submit,
            input: Bytes(at.whole("input_bytes", &read.input_bytes, MAX_BYTES)?),
            shuffle: Bytes(at.whole("shuffle_bytes", &read.shuffle_bytes, MAX_BYTES)?),
            output: Bytes(at.whole("output_bytes", &read.output_bytes, MAX_BYTES)?),
            input_path: None,
            blocks: read.blocks.map(Into::into),
            user: None,
            maps: at.count("maps", read.maps.as_ref(), MAX_MAPS)?,
            reduces: at.count("reduces", read.reduces.as_ref(), MAX_REDUCES)?,
            map_time: read.map_s.as_ref().map(|s| at.seconds("map_s", s)).transpose()?,
            reduce_time: read.reduce_s.as_ref().map(|s| at.seconds("reduce_s", s)).transpose()?,
            earlier: Earlier::Untold,
        };
        at.fits_together(&job)?;
        self.latest = submit;
        job.input_path = read.input_path.map(|path| intern(&mut self.names, &path));
        job.user = read.user.map(|user| intern(&mut self.names, &user));
        Ok(job)
    }
}

/// Writes jobs, one line each.
///
/// # Errors
/// Those of `out`.
pub fn write_json<'a>(jobs: impl IntoIterator<Item = &'a TraceJob>, mut out: impl Write) -> io::Result<()> {
    for job in jobs {
        let seconds = |time: Micros| match time.0 % 1_000_000 {
            0 => Number::from(time.0 / 1_000_000),
            _ => Number::from_f64(time.as_secs_f64()).expect("a span of time is finite"),
        };
        let line = Line {
            name: job.name.as_ref().into(),
            submit_s: seconds(job.submit),
            input_bytes: job.input.0.into(),
            shuffle_bytes: job.shuffle.0.into(),
            output_bytes: job.output.0.into(),
            input_path: job.input_path.clone(),
            blocks: job.blocks.as_deref().map(<[_]>::to_vec),
            user: job.user.clone(),
            maps: job.maps.map(Number::from),
            reduces: job.reduces.map(Number::from),
            map_s: job.map_time.map(seconds),
            reduce_s: job.reduce_time.map(seconds),
        };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct At {
    line: u64,
}

impl At {
    fn wrong(self, field: &'static str, problem: impl Into<String>) -> TraceError {
        TraceError::Field { line: self.line, field, problem: problem.into() }
    }

    /// A whole number, also one written `1e9`.
    fn whole(self, field: &'static str, number: &Number, most: u64) -> Result<u64, TraceError> {
        let text = || shown(&number.to_string());
        let value =
            number.as_u64().or_else(|| number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as u64));
        match value {
            _ if number.as_f64().is_some_and(|float| float < 0.0) => {
                Err(self.wrong(field, format!("{} is negative", text())))
            }
            None => Err(self.wrong(field, format!("{} is not a whole number", text()))),
            Some(value) if value > most => Err(self.wrong(field, format!("{} is more than {most}", text()))),
            Some(value) => Ok(value),
        }
    }

    fn count(self, field: &'static str, number: Option<&Number>, most: u64) -> Result<Option<u64>, TraceError> {
        number.map(|number| self.whole(field, number, most)).transpose()
    }

    /// Seconds, to the microsecond.
    fn seconds(self, field: &'static str, number: &Number) -> Result<Micros, TraceError> {
        let seconds = number.as_f64().unwrap_or(f64::INFINITY);
        if seconds < 0.0 {
            return Err(self.wrong(field, format!("{number} is negative")));
        }
        if seconds > MAX_SUBMIT_S as f64 {
            return Err(self.wrong(field, format!("{number} is more than {MAX_SUBMIT_S}")));
        }
        Ok(Micros((seconds * 1e6).round() as u64))
    }

    /// Task counts and bytes that contradict each other.
    fn fits_together(self, job: &TraceJob) -> Result<(), TraceError> {
        if job.maps == Some(0) {
            return Err(self.wrong("maps", "is 0: a job has at least one map"));
        }
        if let Some(blocks) = &job.blocks
            && job.maps != Some(blocks.len() as u64)
        {
            let maps = job.maps.map_or_else(|| "no number".to_owned(), |maps| maps.to_string());
            return Err(self.wrong("blocks", format!("has {} entries, and maps says {maps}", blocks.len())));
        }
        if job.reduces == Some(0) && job.shuffle > Bytes::ZERO {
            let problem = format!("is 0, and shuffle_bytes {}: nobody would fetch them", job.shuffle.0);
            return Err(self.wrong("reduces", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::JobReader;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<TraceJob>, TraceError> {
        JobReader::with_rows(text.as_bytes(), JsonRows::default()).collect()
    }

    const FULL: &str = r#"{"name":"j","submit_s":1.5,"input_bytes":1000,"shuffle_bytes":20,"output_bytes":3,"input_path":"/p","user":"u","maps":7,"reduces":2,"map_s":4,"reduce_s":0.25}"#;

    #[test]
    fn every_field_is_read_and_written_as_it_was() {
        let jobs = read(&format!("{FULL}\n")).unwrap();
        let job = &jobs[0];
        assert_eq!((job.submit, job.input, job.maps, job.reduces), (Micros(1_500_000), Bytes(1000), Some(7), Some(2)));
        assert_eq!((job.map_time, job.reduce_time), (Some(Micros(4_000_000)), Some(Micros(250_000))));
        let mut written = Vec::new();
        write_json(&jobs, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), format!("{FULL}\n"));
    }

    #[test]
    fn a_bad_line_is_refused_by_number_with_its_reason() {
        let line = |change: &str| {
            let (field, value) = change.split_once('=').unwrap();
            let mut all: serde_json::Value = serde_json::from_str(FULL).unwrap();
            all[field] = serde_json::from_str(value).unwrap();
            read(&format!("{FULL}\n{all}\n")).unwrap_err().to_string()
        };
        for (change, message) in [
            ("input_bytes=-1", "line 2, input_bytes: -1 is negative"),
            ("shuffle_bytes=-1.5", "line 2, shuffle_bytes: -1.5 is negative"),
            ("output_bytes=1.5", "line 2, output_bytes: 1.5 is not a whole number"),
            (
                "input_bytes=1000000000000000000",
                "line 2, input_bytes: 1000000000000000000 is more than 1125899906842624",
            ),
            ("input_bytes=1e18", "line 2, input_bytes: 1e+18 is more than 1125899906842624"),
            ("submit_s=1", "line 2, submit_s: 1 lies before 1.5, the time of an earlier line"),
            ("submit_s=-2", "line 2, submit_s: -2 is negative"),
            ("submit_s=1e300", "line 2, submit_s: 1e+300 is more than 3162240000"),
            ("maps=0", "line 2, maps: is 0: a job has at least one map"),
            ("maps=20000000", "line 2, maps: 20000000 is more than 10000000"),
            ("reduces=0", "line 2, reduces: is 0, and shuffle_bytes 20: nobody would fetch them"),
            ("map_s=-1", "line 2, map_s: -1 is negative"),
            ("blocks=[[\"a\"]]", "line 2, blocks: has 1 entries, and maps says 7"),
            ("name=\"\"", "line 2, name: is empty"),
            ("name=\"j\\u001b[2J\"", "line 2, name: \"j\\u{1b}[2J\" holds a control character"),
            ("input_path=\"/p\\n\"", "line 2, input_path: \"/p\\n\" holds a control character"),
            ("user=\"\\u009b\"", "line 2, user: \"\\u{9b}\" holds a control character"),
        ] {
            assert_eq!(line(change), message, "{change}");
        }
        assert!(line("colour=1").starts_with("line 2, column "), "{}", line("colour=1"));
        assert!(line("colour=1").contains("unknown field `colour`"));
        assert_eq!(read("{\"name\":\"j\"}").unwrap_err().to_string(), "line 1, column 12: missing field `submit_s`");
        assert!(read(&format!("{FULL}\n\n")).unwrap_err().to_string().starts_with("line 2, column 0: EOF"));
    }

    #[test]
    fn blocks_of_maps_are_read_and_written_as_they_were() {
        let line =
            FULL.replace("\"user\"", r#""blocks":[["a","b"],[],["a"]],"user""#).replace("\"maps\":7", "\"maps\":3");
        let jobs = read(&line).unwrap();
        let count: Vec<usize> = jobs[0].blocks.as_deref().unwrap().iter().map(Vec::len).collect();
        assert_eq!(count, [2, 0, 1]);
        let mut written = Vec::new();
        write_json(&jobs, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), format!("{line}\n"));
        let without = line.replace("\"maps\":3,", "");
        assert_eq!(read(&without).unwrap_err().to_string(), "line 1, blocks: has 3 entries, and maps says no number");
    }

    #[test]
    fn whole_numbers_may_be_written_with_an_exponent() {
        let job = FULL.replace("\"input_bytes\":1000", "\"input_bytes\":1e9");
        assert_eq!(read(&job).unwrap()[0].input, Bytes(1_000_000_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_bytes_make_the_reader_panic(text in r#"[{}":,\[\]a-z0-9.\-\n ]{0,120}"#) {
            let lines = 1 + text.matches('\n').count();
            prop_assert!(JobReader::with_rows(text.as_bytes(), JsonRows::default()).count() <= lines + 1);
        }
    }
}
