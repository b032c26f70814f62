//! The REST interface of MapReduce's JobHistoryServer (`/ws/v1/history/mapreduce`), read; no I/O.
//!
//! Of a finished job it tells what the job itself never said to YARN: how much its reduces fetched from its maps, what
//! the maps read, and how long both took. Containers of a job are told apart by their priority
//! (`RMContainerAllocator`): maps 20, maps that are tried again 5, maps that run opportunistically 19, reduces 10.

use super::resource_manager::{BadAnswer, Rows, each_row, json, list, shape, told};
use hintd_engine::prediction::Run;
use hintd_engine::{EdgeHistory, LearnedGroup, LearnedRun};
use hintd_model::cluster::EdgePattern;
use hintd_model::cluster::dataset::normal;
use hintd_model::units::{ApplicationId, Bytes, Micros, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Where jobs are listed.
pub const JOBS: &str = "/ws/v1/history/mapreduce/jobs";

/// More tasks of one kind than any job has.
const TASKS_MAX: u64 = 10_000_000;
/// More bytes than any job reads or shuffles: 1 EiB.
const BYTES_MAX: u64 = 1 << 60;
/// Longer than any task runs: a year, ms.
const TASK_MS_MAX: u64 = 365 * 24 * 3_600 * 1_000;

const MAPS: &str = "p20";
const REDUCES: &str = "p10";
/// Groups of maps that are not the first try, or opportunistic.
const OTHER_MAPS: [&str; 2] = ["p5", "p19"];

/// A job as the list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSeen {
    /// Its id: nothing but letters, digits and `_`.
    pub id: String,
    /// Its name, perhaps cut short (`mapreduce.jobhistory.jobname.limit`).
    pub name: String,
    /// Whose.
    pub user: String,
    /// When it was submitted, ms; `None`: that is not known.
    pub submitted_ms: Option<u64>,
    /// When it ended, ms.
    pub finished_ms: u64,
    /// Its maps.
    pub maps: u32,
    /// Its reduces.
    pub reduces: u32,
}

/// Mean times of its tasks that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// Of a map, from its launch to its end.
    pub map: Micros,
    /// Of a reduce, once it has fetched everything: a plan has the shuffle apart.
    pub reduce: Micros,
}

/// What its counters say, of all tasks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounted {
    /// Bytes that reduces fetched from maps: as reduces counted them, else as maps wrote them.
    pub shuffled: Option<Bytes>,
    /// Bytes that maps read: of their splits, else of HDFS.
    pub read: Option<Bytes>,
}

/// What its configuration says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobConf {
    /// The whole name; `None`: it does not say.
    pub name: Option<String>,
    /// What it reads.
    pub input_paths: Vec<String>,
    /// Memory of a map's container, MB; 0: it does not say.
    pub map_mb: u64,
    /// Memory of a reduce's container, MB; 0: it does not say.
    pub reduce_mb: u64,
}

/// Jobs that succeeded and ended at or after `from_ms`, and by `until_ms`, where that is given.
#[must_use]
pub fn jobs_path(from_ms: u64, until_ms: Option<u64>) -> String {
    let until = until_ms.map(|until| format!("&finishedTimeEnd={until}")).unwrap_or_default();
    format!("{JOBS}?state=SUCCEEDED&finishedTimeBegin={from_ms}{until}")
}

/// The answer to [`jobs_path`], in its order. An id that is none, or a job that did not succeed, is no job.
///
/// # Errors
/// [`BadAnswer`].
pub fn jobs(body: &[u8]) -> Result<Rows<JobSeen>, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        user: String,
        #[serde(default)]
        state: String,
        #[serde(default)]
        submit_time: i64,
        #[serde(default)]
        start_time: i64,
        finish_time: i64,
    }
    let answer = json(body)?;
    let jobs = answer.get("jobs").ok_or_else(|| BadAnswer::Shape("no jobs".to_owned()))?;
    let count = |row: &Value, field| {
        told(row, field, TASKS_MAX).map(|count| count.map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)))
    };
    each_row(&list(jobs, "job")?, |value| {
        let row = Row::deserialize(value).map_err(shape)?;
        let sound = row.id.starts_with("job_") && row.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let (Ok(finished_ms), true, "SUCCEEDED" | "") = (u64::try_from(row.finish_time), sound, &*row.state) else {
            return Ok(None);
        };
        // Old histories have no submission; it begins right after. A clock that went back tells nothing.
        let began = [row.submit_time, row.start_time].into_iter().find(|at| *at > 0);
        let began = began.and_then(|at| u64::try_from(at).ok()).filter(|at| *at <= finished_ms);
        Ok(Some(JobSeen {
            id: row.id,
            name: row.name,
            user: row.user,
            submitted_ms: began,
            finished_ms,
            maps: count(value, "mapsTotal")?,
            reduces: count(value, "reducesTotal")?,
        }))
    })
}

/// The answer to `…/jobs/ID/counters`.
///
/// # Errors
/// [`BadAnswer`].
pub fn counted(body: &[u8]) -> Result<JobCounted, BadAnswer> {
    const SHUFFLED: [&str; 3] = ["REDUCE_SHUFFLE_BYTES", "MAP_OUTPUT_MATERIALIZED_BYTES", "MAP_OUTPUT_BYTES"];
    const READ: [&str; 2] = ["BYTES_READ", "HDFS_BYTES_READ"];
    let answer = json(body)?;
    let counters = answer.get("jobCounters").ok_or_else(|| BadAnswer::Shape("no jobCounters".to_owned()))?;
    let (mut shuffled, mut read) = ([None; 3], [None; 2]);
    each_counter(counters, |group, name, counter| {
        let of_splits = group.ends_with(".FileInputFormatCounter");
        let value = |field| told(counter, field, BYTES_MAX);
        if let Some(at) = SHUFFLED.iter().position(|known| *known == name) {
            shuffled[at] = value("totalCounterValue")?.or(shuffled[at]);
        }
        match name {
            name if name == READ[0] && of_splits => read[0] = value("totalCounterValue")?,
            name if name == READ[1] => read[1] = value("mapCounterValue")?,
            _ => {}
        }
        Ok(())
    })?;
    let first = |found: &[Option<u64>]| found.iter().flatten().next().copied().map(Bytes);
    Ok(JobCounted { shuffled: first(&shuffled), read: first(&read) })
}

/// Goes through `jobCounters`: each counter with its group's name and its own.
pub(super) fn each_counter(
    counters: &Value,
    mut seen: impl FnMut(&str, &str, &Value) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    let text = |of: &Value, field| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    for group in list(counters.get("counterGroup").unwrap_or(&Value::Null), "counterGroup")? {
        let group_name = text(group, "counterGroupName");
        for counter in list(group.get("counter").unwrap_or(&Value::Null), "counter")? {
            seen(&group_name, &text(counter, "name"), counter)?;
        }
    }
    Ok(())
}

/// The answer to `…/jobs/ID`. `None`: it does not say how long maps took, or, where there are any, reduces.
///
/// # Errors
/// [`BadAnswer`].
pub fn times(body: &[u8]) -> Result<Option<TaskTimes>, BadAnswer> {
    let answer = json(body)?;
    let job = answer.get("job").ok_or_else(|| BadAnswer::Shape("no job".to_owned()))?;
    let of = |field| {
        let told = told(job, field, TASK_MS_MAX)?;
        Ok(told.or_else(|| job.get(field).and_then(Value::as_u64)))
    };
    let (map, merge, reduce) = (of("avgMapTime")?, of("avgMergeTime")?, of("avgReduceTime")?);
    let reduce = match job.get("reducesTotal").and_then(Value::as_u64) {
        Some(0) => Some(0),
        // Sorting what it fetched is a part of its work.
        _ => merge.zip(reduce).map(|(merge, reduce)| merge.saturating_add(reduce)),
    };
    let found = map.filter(|map| *map > 0).zip(reduce);
    Ok(found.map(|(map, reduce)| TaskTimes { map: Micros::from_millis(map), reduce: Micros::from_millis(reduce) }))
}

/// The answer to `…/jobs/ID/conf`.
///
/// # Errors
/// [`BadAnswer`].
pub fn conf(body: &[u8]) -> Result<JobConf, BadAnswer> {
    let answer = json(body)?;
    let conf = answer.get("conf").ok_or_else(|| BadAnswer::Shape("no conf".to_owned()))?;
    let mut found = JobConf::default();
    for property in list(conf.get("property").unwrap_or(&Value::Null), "property")? {
        let text = |field| property.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("name") {
            "mapreduce.job.name" => found.name = Some(text("value").to_owned()).filter(|name| !name.is_empty()),
            "mapreduce.map.memory.mb" => found.map_mb = memory(text("value")),
            "mapreduce.reduce.memory.mb" => found.reduce_mb = memory(text("value")),
            "mapreduce.input.fileinputformat.inputdir" => found.input_paths = paths(text("value")),
            _ => {}
        }
    }
    Ok(found)
}

/// MB; 0 for what is none (`-1`: by the task's heap) or more than any node has.
fn memory(text: &str) -> u64 {
    const MOST_MB: u64 = 1 << 30;
    text.trim().parse().ok().filter(|mb| *mb <= MOST_MB).unwrap_or(0)
}

/// Paths between commas, of which those within a path come after a `\`; as HDFS spells them, without the NameNode.
/// Patterns of several paths are no path.
fn paths(text: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => paths.last_mut().expect("one was there first").extend(letters.next()),
            ',' => paths.push(String::new()),
            letter => paths.last_mut().expect("one was there first").push(letter),
        }
    }
    let plain = |path: String| {
        let path = match path.strip_prefix("hdfs://") {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => path.strip_prefix("hdfs:").unwrap_or(&path),
        };
        let path = normal(path);
        (path.starts_with('/') && !path.contains(['*', '?', '{', '['])).then(|| path.into_owned())
    };
    paths.into_iter().filter_map(plain).collect()
}

/// The key of a recurring MapReduce job.
#[must_use]
pub fn key(user: &str, name: &str) -> Arc<str> {
    recurring_key("mapreduce", user, name)
}

/// The key of a recurring job, as the ResourceManager's processor makes it: the numbers of its name left out.
#[must_use]
pub fn recurring_key(framework: &str, user: &str, name: &str) -> Arc<str> {
    let mut key = format!("{framework}:{user}:");
    let mut number = false;
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            key.push(letter);
        } else if !number {
            key.push('#');
        }
        number = letter.is_ascii_digit();
    }
    key.into()
}

/// What is to be remembered of a job.
#[must_use]
pub fn run(job: &JobSeen, conf: &JobConf, counted: JobCounted, times: Option<TaskTimes>) -> LearnedRun {
    let paths: Vec<Arc<str>> = conf.input_paths.iter().map(|path| path.as_str().into()).collect();
    let group = |name: &str, (count, memory_mb), input_paths| LearnedGroup {
        name: name.into(),
        count,
        memory_mb,
        input_paths,
        input: Bytes::ZERO,
    };
    let mut groups = vec![group(MAPS, (job.maps, conf.map_mb), paths)];
    let mut edges = Vec::new();
    if job.reduces > 0 && job.maps > 0 {
        groups.push(group(REDUCES, (job.reduces, conf.reduce_mb), Vec::new()));
        // Whatever a map is asked for as, all of them together send what was counted.
        let edge = |from: &str, bytes| EdgeHistory {
            from: from.into(),
            to: REDUCES.into(),
            pattern: EdgePattern::AllToAll,
            bytes,
        };
        edges.push(edge(MAPS, counted.shuffled.unwrap_or_default()));
        edges.extend(OTHER_MAPS.map(|from| edge(from, Bytes::ZERO)));
    }
    let whole = whole(job, counted, times);
    LearnedRun { finished: Timestamp(job.finished_ms.saturating_mul(1_000)), groups, edges, whole }
}

/// The run as the planner's book has it; `None`: it has no maps, or something that a plan needs is not told.
fn whole(job: &JobSeen, counted: JobCounted, times: Option<TaskTimes>) -> Option<Run> {
    let (times, submitted_ms) = (times?, job.submitted_ms?);
    (job.maps > 0).then(|| Run {
        submitted: Timestamp(submitted_ms.saturating_mul(1_000)),
        maps: (job.maps, times.map),
        reduces: (job.reduces, times.reduce),
        input: counted.read.unwrap_or_default(),
        shuffle: if job.reduces > 0 { counted.shuffled.unwrap_or_default() } else { Bytes::ZERO },
        application: application(&job.id),
        counted: true,
        ran_on: None, // it does not say where tasks ran
    })
}

impl JobSeen {
    /// Its application, and how long after its submission it ended; `None`: that is not told.
    #[must_use]
    pub fn took(&self) -> Option<(ApplicationId, Micros)> {
        let took = self.finished_ms.checked_sub(self.submitted_ms?).filter(|took| *took > 0)?;
        Some((application(&self.id)?, Micros::from_millis(took)))
    }
}

/// The application that ran a job: `job_1700000000000_0001` is of `application_1700000000000_0001`.
fn application(job: &str) -> Option<ApplicationId> {
    format!("application_{}", job.strip_prefix("job_")?).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Hadoop 3.4's JobHistoryServer lists a job.
    const JOB: &str = r#"{"submitTime":1700000000000,"startTime":1700000001000,"finishTime":1700000009000,
        "id":"job_1700000000000_0001","name":"word count","queue":"root.default","user":"ann","state":"SUCCEEDED",
        "mapsTotal":4,"mapsCompleted":4,"reducesTotal":6,"reducesCompleted":6}"#;

    fn listed(jobs_field: &str) -> Result<Vec<JobSeen>, BadAnswer> {
        jobs(format!("{{\"jobs\":{jobs_field}}}").as_bytes()).map(|found| found.rows)
    }

    #[test]
    fn a_job_is_read_and_what_is_none_left_out() {
        let expected = JobSeen {
            id: "job_1700000000000_0001".into(),
            name: "word count".into(),
            user: "ann".into(),
            submitted_ms: Some(1_700_000_000_000),
            finished_ms: 1_700_000_009_000,
            maps: 4,
            reduces: 6,
        };
        let (of, took) = expected.took().unwrap();
        assert_eq!((of.to_string().as_str(), took), ("application_1700000000000_0001", Micros::from_secs(9)));
        assert_eq!(listed(&format!("{{\"job\":[{JOB}]}}")), Ok(vec![expected.clone()]));
        let others = [JOB.replace("job_17", "../job_17"), JOB.replace("SUCCEEDED", "KILLED"), JOB.to_owned()];
        assert_eq!(listed(&format!("{{\"job\":[{}]}}", others.join(","))), Ok(vec![expected]));
        for empty in ["{}", "null", "\"\"", "{\"job\":[]}"] {
            assert_eq!(listed(empty), Ok(vec![]), "{empty}");
        }
        assert!(matches!(jobs(b"<html>"), Err(BadAnswer::Json { .. })));
        assert!(matches!(jobs(b"{}"), Err(BadAnswer::Shape(_))));
    }

    #[test]
    fn a_row_that_makes_no_sense_is_left_out_and_named_and_the_others_are_read() {
        let odd = [
            JOB.replace("1700000009000", "\"soon\"").replace("_0001", "_0002"),
            JOB.replace("\"id\":\"job_1700000000000_0001\",", ""),
            JOB.replace("\"mapsTotal\":4", "\"mapsTotal\":10000001").replace("_0001", "_0003"),
            JOB.replace("\"reducesTotal\":6", "\"reducesTotal\":-6").replace("_0001", "_0004"),
        ];
        let found = jobs(format!("{{\"jobs\":{{\"job\":[{},{JOB}]}}}}", odd.join(",")).as_bytes()).unwrap();
        assert_eq!(found.rows.iter().map(|job| &*job.id).collect::<Vec<_>>(), ["job_1700000000000_0001"]);
        let said: Vec<_> = found.left_out.iter().map(|row| (row.row.as_str(), row.why.to_string())).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].0.ends_with("_0002") && said[0].1.contains("soon"), "{said:?}");
        assert!(said[1].0.starts_with('{') && said[1].1.contains("missing field `id`"), "{said:?}");
        assert!(said[2].0.ends_with("_0003") && said[2].1.ends_with("can't be: mapsTotal: 10000001"), "{said:?}");
        assert!(said[3].0.ends_with("_0004") && said[3].1.ends_with("can't be: reducesTotal: -6"), "{said:?}");
        // Where no row is of the right shape the answer is another one; one that says what can't be is a list all the same.
        assert!(listed("{\"job\":[{\"id\":7},{}]}").is_err());
        assert_eq!(listed(&format!("{{\"job\":[{}]}}", odd[3])), Ok(vec![]));
        let back = listed(&format!("{{\"job\":[{}]}}", JOB.replace("1700000000000,\"start", "1700000009001,\"start")));
        assert_eq!(back.unwrap()[0].submitted_ms, None, "a clock that went back");
    }

    #[test]
    fn numbers_that_can_not_be_are_refused_and_named() {
        let counter = |name: &str, value: &str| {
            let row = format!("{{\"name\":\"{name}\",\"mapCounterValue\":{value},\"totalCounterValue\":{value}}}");
            counted(format!("{{\"jobCounters\":{{\"counterGroup\":[{{\"counter\":[{row}]}}]}}}}").as_bytes())
        };
        let refused = |field: &str, value: &str| Err(BadAnswer::Value(format!("{field}: {value}")));
        for value in ["-1", "1152921504606846977", "18446744073709551616", "0.5", "\"many\""] {
            let shown = if value.starts_with("1844") { "1.8446744073709552e+19" } else { value };
            assert_eq!(counter("REDUCE_SHUFFLE_BYTES", value), refused("totalCounterValue", shown));
            assert_eq!(counter("HDFS_BYTES_READ", value), refused("mapCounterValue", shown));
            assert_eq!(counter("SPILLED_RECORDS", value), Ok(JobCounted::default()), "nobody looks at it");
        }
        assert!(counter("REDUCE_SHUFFLE_BYTES", "1152921504606846976").is_ok());
        let took = |map: &str| {
            let job = format!("{{\"job\":{{\"reducesTotal\":0,\"avgMapTime\":{map}}}}}");
            times(job.as_bytes())
        };
        assert!(took("31536000000").unwrap().is_some(), "a year");
        assert_eq!(took("31536000001"), Err(BadAnswer::Value("avgMapTime: 31536000001".to_owned())));
        assert_eq!(took("-1"), Err(BadAnswer::Value("avgMapTime: -1".to_owned())));
    }

    #[test]
    fn a_part_of_the_time_is_asked_for_where_the_whole_is_too_much() {
        assert_eq!(jobs_path(5, None), format!("{JOBS}?state=SUCCEEDED&finishedTimeBegin=5"));
        assert_eq!(jobs_path(5, Some(9)), format!("{JOBS}?state=SUCCEEDED&finishedTimeBegin=5&finishedTimeEnd=9"));
    }

    #[test]
    fn bytes_are_those_that_reduces_fetched_else_those_that_maps_wrote() {
        let counters = |rows: &str| {
            let group =
                format!("{{\"counterGroupName\":\"org.apache.hadoop.mapreduce.TaskCounter\",\"counter\":[{rows}]}}");
            let found =
                counted(format!("{{\"jobCounters\":{{\"id\":\"job_1_1\",\"counterGroup\":[{group}]}}}}").as_bytes());
            found.map(|counted| counted.shuffled)
        };
        let row = |name: &str, total: u64| {
            format!(
                "{{\"name\":\"{name}\",\"reduceCounterValue\":0,\"mapCounterValue\":0,\"totalCounterValue\":{total}}}"
            )
        };
        let (wrote, fetched) = (row("MAP_OUTPUT_BYTES", 900), row("REDUCE_SHUFFLE_BYTES", 700));
        assert_eq!(counters(&format!("{wrote},{fetched}")), Ok(Some(Bytes(700))));
        assert_eq!(counters(&format!("{wrote},{}", row("REDUCE_SHUFFLE_BYTES", 0))), Ok(Some(Bytes(900))));
        assert_eq!(counters(&row("SPILLED_RECORDS", 9)), Ok(None));
        assert!(counted(b"{\"jobCounters\":{\"counterGroup\":7}}").is_err());
    }

    #[test]
    fn what_maps_read_is_counted_by_their_splits_else_by_hdfs() {
        let read = |groups: &str| {
            let body = format!("{{\"jobCounters\":{{\"counterGroup\":[{groups}]}}}}");
            counted(body.as_bytes()).unwrap().read
        };
        let group = |of: &str, name: &str, map: u64, total: u64| {
            format!(
                "{{\"counterGroupName\":\"org.apache.hadoop.mapreduce.{of}\",\"counter\":[{{\"name\":\"{name}\",\
                 \"mapCounterValue\":{map},\"reduceCounterValue\":7,\"totalCounterValue\":{total}}}]}}"
            )
        };
        let splits = group("lib.input.FileInputFormatCounter", "BYTES_READ", 0, 500);
        let hdfs = group("FileSystemCounter", "HDFS_BYTES_READ", 640, 647);
        assert_eq!(read(&format!("{hdfs},{splits}")), Some(Bytes(500)));
        assert_eq!(read(&hdfs), Some(Bytes(640)), "not what reduces read");
        assert_eq!(read(&group("lib.output.FileOutputFormatCounter", "BYTES_READ", 0, 9)), None);
    }

    #[test]
    fn a_job_that_says_how_long_its_tasks_took_is_a_run_of_its_application() {
        let job = |reduces| JobSeen { reduces, ..listed(&format!("{{\"job\":{JOB}}}")).unwrap().remove(0) };
        let counted = JobCounted { shuffled: Some(Bytes(700)), read: Some(Bytes(500)) };
        let said = |text: &str| times(format!("{{\"job\":{{{text}}}}}").as_bytes()).unwrap();
        let both = said(
            "\"reducesTotal\":6,\"avgMapTime\":1200,\"avgShuffleTime\":900,\"avgMergeTime\":3,\"avgReduceTime\":40",
        );
        let whole = run(&job(6), &JobConf::default(), counted, both).whole.unwrap();
        assert_eq!((whole.maps, whole.reduces), ((4, Micros::from_millis(1_200)), (6, Micros::from_millis(43))));
        assert_eq!(
            (whole.submitted, whole.input, whole.shuffle),
            (Timestamp(1_700_000_000_000_000), Bytes(500), Bytes(700))
        );
        assert_eq!(whole.application.unwrap().to_string(), "application_1700000000000_0001");
        let maps = said("\"reducesTotal\":0,\"avgMapTime\":1200");
        let alone = run(&job(0), &JobConf::default(), counted, maps).whole.unwrap();
        assert_eq!((alone.reduces, alone.shuffle), ((0, Micros(0)), Bytes(0)));
        for nothing in ["", "\"reducesTotal\":6,\"avgMapTime\":1200", "\"reducesTotal\":0,\"avgMapTime\":0"] {
            assert_eq!(said(nothing), None, "{nothing}");
        }
        assert_eq!(run(&job(6), &JobConf::default(), counted, None).whole, None);
        let undated = JobSeen { submitted_ms: None, ..job(6) };
        assert_eq!(run(&undated, &JobConf::default(), counted, both).whole, None);
        assert!(times(b"{\"jobs\":{}}").is_err());
    }

    #[test]
    fn paths_are_as_hdfs_has_them() {
        let conf_of = |value: &str| {
            let properties = format!(
                "[{{\"name\":\"mapreduce.job.name\",\"value\":\"word count of a long name\",\"source\":[\"job.xml\"]}},
                  {{\"name\":\"mapreduce.input.fileinputformat.inputdir\",\"value\":{}}}]",
                Value::String(value.to_owned())
            );
            conf(format!("{{\"conf\":{{\"path\":\"x\",\"property\":{properties}}}}}").as_bytes()).unwrap()
        };
        let found = conf_of("hdfs://nn:8020//in//,hdfs:/b/,/with\\,comma,/logs/*,s3a://bucket/x,hdfs://nn");
        assert_eq!(found.input_paths, ["/in", "/b", "/with,comma", "/"]);
        assert_eq!(found.name.as_deref(), Some("word count of a long name"));
        assert_eq!(conf(b"{\"conf\":{}}"), Ok(JobConf::default()));
        assert_eq!(["1536", " 2048 ", "-1", "2 GB", "9999999999999"].map(memory), [1_536, 2_048, 0, 0, 0]);
    }

    #[test]
    fn runs_that_differ_in_numbers_have_one_key() {
        assert_eq!(&*key("ann", "etl 2026-11-22 part 7"), "mapreduce:ann:etl #-#-# part #");
        assert_eq!(key("ann", "etl12"), key("ann", "etl7"));
        assert_ne!(key("ann", "etl"), key("bob", "etl"));
    }

    #[test]
    fn maps_send_to_reduces_and_a_job_without_reduces_sends_nothing() {
        let job = |reduces| JobSeen { reduces, ..listed(&format!("{{\"job\":{JOB}}}")).unwrap().remove(0) };
        let conf = JobConf { input_paths: vec!["/in".into()], map_mb: 1_536, reduce_mb: 3_072, ..JobConf::default() };
        let counted = JobCounted { shuffled: Some(Bytes(700)), read: None };
        let found = run(&job(6), &conf, counted, None);
        let edges: Vec<_> = found.edges.iter().map(|edge| (&*edge.from, &*edge.to, edge.bytes.0)).collect();
        assert_eq!(edges, [("p20", "p10", 700), ("p5", "p10", 0), ("p19", "p10", 0)]);
        assert_eq!(found.groups.iter().map(|group| group.memory_mb).collect::<Vec<_>>(), [1_536, 3_072]);
        assert_eq!((found.groups[0].count, &*found.groups[0].input_paths[0], found.groups[1].count), (4, "/in", 6));
        let alone = run(&job(0), &conf, JobCounted::default(), None);
        assert_eq!((alone.groups.len(), alone.edges.len()), (1, 0));
    }
}
