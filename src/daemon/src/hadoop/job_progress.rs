//! How far a running MapReduce job is, as its ApplicationMaster says it (`/ws/v1/mapreduce`) through the
//! ResourceManager's web proxy; no I/O.
//!
//! Who answers is the job itself, a stranger's program perhaps: a number that can't be is no answer at all.

use super::history_server::each_counter;
use super::resource_manager::{BadAnswer, json, list, number, wrong};
use crate::rest_client::Address;
use hintd_engine::holding::Shuffle;
use hintd_model::units::{ApplicationId, Bytes};
use serde_json::Value;

/// Of a job with more reduces it is not asked how far each of them is: a row takes some 350 bytes.
pub const REDUCES_LISTED: u32 = 2_000;
/// More tasks than any job has.
const TASKS_MAX: u64 = 10_000_000;
/// More bytes than any job shuffles: 1 EiB.
const BYTES_MAX: u64 = 1 << 60;
/// Copying is the first third of a reduce's work, in percent; at its end it stands at 33.333.
const COPIED: f64 = 33.34;

/// Tasks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// All of them.
    pub total: u32,
    /// Those that succeeded.
    pub completed: u32,
}

/// A job's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobTasks {
    /// Its maps.
    pub maps: TaskCounts,
    /// Its reduces.
    pub reduces: TaskCounts,
}

/// What tasks that run or succeeded have counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShuffleCounted {
    /// Bytes that maps left for reduces; a map counts them when it ends.
    pub wrote: Bytes,
    /// Bytes that reduces have.
    pub fetched: Bytes,
}

/// Where the job of an application answers.
#[must_use]
pub fn job_path(application: ApplicationId) -> String {
    format!("{}ws/v1/mapreduce/jobs/{}", proxied(application), job_id(application))
}

/// Where its counters are.
#[must_use]
pub fn counters_path(application: ApplicationId) -> String {
    format!("{}/counters", job_path(application))
}

/// Where its reduces are.
#[must_use]
pub fn reduces_path(application: ApplicationId) -> String {
    format!("{}/tasks?type=r", job_path(application))
}

fn proxied(application: ApplicationId) -> String {
    format!("/proxy/{application}/")
}

/// MapReduce has one job in an application, with its number.
fn job_id(application: ApplicationId) -> String {
    format!("job_{}_{:04}", application.cluster_timestamp, application.sequence)
}

/// The path that a redirect leads to, where that is the same application at the same proxy: nobody is asked for whom the
/// configuration does not name.
#[must_use]
pub fn redirected(location: &str, proxy: &Address, application: ApplicationId) -> Option<String> {
    let path = if location.starts_with('/') { location } else { location.strip_prefix(&proxy.to_string())? };
    // The second spelling is what an ApplicationMaster makes of it that sends a caller to the proxy.
    let within = path.strip_prefix("/proxy/redirect/").or_else(|| path.strip_prefix("/proxy/"))?;
    let rest = within.strip_prefix(&application.to_string())?.strip_prefix('/')?;
    let plain = rest.bytes().all(|c| c.is_ascii_graphic()) && !rest.split(['/', '?']).any(|part| part == "..");
    plain.then(|| path.to_owned())
}

/// The answer to [`job_path`].
///
/// # Errors
/// [`BadAnswer`], of another job's among them.
pub fn job_tasks(body: &[u8], application: ApplicationId) -> Result<JobTasks, BadAnswer> {
    let answer = json(body)?;
    let job = answer.get("job").ok_or_else(|| BadAnswer::Shape("no job".to_owned()))?;
    is_it(job, application)?;
    let count = |field| number(job, field, TASKS_MAX).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let of = |total, completed| {
        let (total, completed) = (count(total)?, count(completed)?);
        if completed > total {
            return Err(BadAnswer::Shape(format!("{completed} of {total} tasks are completed")));
        }
        Ok(TaskCounts { total, completed })
    };
    Ok(JobTasks { maps: of("mapsTotal", "mapsCompleted")?, reduces: of("reducesTotal", "reducesCompleted")? })
}

/// The answer to [`counters_path`]. A counter that is not there yet is 0.
///
/// # Errors
/// [`BadAnswer`], of another job's among them.
pub fn counted(body: &[u8], application: ApplicationId) -> Result<ShuffleCounted, BadAnswer> {
    let answer = json(body)?;
    let counters = answer.get("jobCounters").ok_or_else(|| BadAnswer::Shape("no jobCounters".to_owned()))?;
    is_it(counters, application)?;
    let mut found = ShuffleCounted::default();
    each_counter(counters, |group, name, counter| {
        if group != "org.apache.hadoop.mapreduce.TaskCounter" {
            return Ok(());
        }
        match name {
            "MAP_OUTPUT_MATERIALIZED_BYTES" => found.wrote = Bytes(number(counter, "totalCounterValue", BYTES_MAX)?),
            "REDUCE_SHUFFLE_BYTES" => found.fetched = Bytes(number(counter, "totalCounterValue", BYTES_MAX)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// The answer to [`reduces_path`]: how many reduces have all of their bytes, of a job with these tasks.
///
/// # Errors
/// [`BadAnswer`], of more reduces than there are among them.
pub fn received(body: &[u8], tasks: JobTasks) -> Result<u32, BadAnswer> {
    let answer = json(body)?;
    let rows = list(answer.get("tasks").ok_or_else(|| BadAnswer::Shape("no tasks".to_owned()))?, "task")?;
    if rows.len() > tasks.reduces.total as usize {
        return Err(BadAnswer::Shape(format!("{} reduces of {}", rows.len(), tasks.reduces.total)));
    }
    let copied = format!("{0} / {0} copied.", tasks.maps.total);
    let mut received = 0;
    for row in rows {
        let text = |field| row.get(field).and_then(Value::as_str).unwrap_or_default();
        let progress = row.get("progress").and_then(Value::as_f64).filter(|percent| (0.0..=100.0).contains(percent));
        let progress = progress.ok_or_else(|| wrong(row, "progress"))?;
        // A small merge is over before the next report: then the last words of copying are what there is.
        let has_all = text("state") == "SUCCEEDED" || progress > COPIED || text("status") == copied;
        received += u32::from(has_all && text("type") == "REDUCE");
    }
    Ok(received)
}

/// The shuffle of a job by what its maps that ended wrote; `None`: it has none, or no map has ended. `received`: reduces
/// that have all of their bytes, where each was looked at.
#[must_use]
pub fn shuffle(tasks: JobTasks, counted: ShuffleCounted, received: Option<u32>) -> Option<Shuffle> {
    let JobTasks { maps, reduces } = tasks;
    if maps.completed == 0 || reduces.total == 0 {
        return None;
    }
    let whole = u128::from(counted.wrote.0) * u128::from(maps.total) / u128::from(maps.completed);
    let bytes = Bytes(u64::try_from(whole).unwrap_or(u64::MAX));
    let all_there = maps.completed == maps.total && counted.fetched >= bytes;
    let received = if all_there { reduces.total } else { received.unwrap_or(0).max(reduces.completed) };
    Some(Shuffle { bytes, receivers: reduces.total, received, fetched: counted.fetched })
}

/// Whether it is the job that was asked for.
fn is_it(answer: &Value, application: ApplicationId) -> Result<(), BadAnswer> {
    let job = job_id(application);
    if answer.get("id").and_then(Value::as_str) == Some(&job) { Ok(()) } else { Err(wrong(answer, "id")) }
}

#[cfg(test)]
mod tests {
    use super::super::resource_manager::SHOWN;
    use super::*;
    use proptest::prelude::*;

    /// As Hadoop 3.4.2's ApplicationMaster answers through the ResourceManager's proxy, while a TeraSort runs.
    const JOB: &str = r#"{"job":{"startTime":1795440188538,"finishTime":0,"elapsedTime":15256,"id":"job_1795440036575_0002",
        "name":"TeraSort","user":"root","queue":"root.default","state":"RUNNING","mapsTotal":8,"mapsCompleted":4,
        "reducesTotal":3,"reducesCompleted":0,"mapProgress":50.0,"reduceProgress":0.0,"mapsPending":0,"mapsRunning":4,
        "reducesPending":3,"reducesRunning":0,"uberized":false,"diagnostics":"","newReduceAttempts":3,
        "runningReduceAttempts":0,"failedReduceAttempts":0,"killedReduceAttempts":0,"successfulReduceAttempts":0,
        "newMapAttempts":0,"runningMapAttempts":4,"failedMapAttempts":0,"killedMapAttempts":0,"successfulMapAttempts":4}}"#;

    /// Likewise, later, of its counters some.
    const COUNTERS: &str = r#"{"jobCounters":{"id":"job_1795440036575_0002","counterGroup":[
        {"counterGroupName":"org.apache.hadoop.mapreduce.JobCounter","counter":[
          {"name":"TOTAL_LAUNCHED_MAPS","totalCounterValue":8,"mapCounterValue":0,"reduceCounterValue":0}]},
        {"counterGroupName":"org.apache.hadoop.mapreduce.TaskCounter","counter":[
          {"name":"MAP_OUTPUT_BYTES","totalCounterValue":20400000,"mapCounterValue":20400000,"reduceCounterValue":0},
          {"name":"MAP_OUTPUT_MATERIALIZED_BYTES","totalCounterValue":20800144,"mapCounterValue":20800144,"reduceCounterValue":0},
          {"name":"REDUCE_SHUFFLE_BYTES","totalCounterValue":13853416,"mapCounterValue":0,"reduceCounterValue":13853416},
          {"name":"SPILLED_RECORDS","totalCounterValue":333205,"mapCounterValue":200000,"reduceCounterValue":133205}]}]}}"#;

    /// Likewise: two have all of their bytes and count none yet, one has just begun.
    const REDUCES: &str = r#"{"tasks":{"task":[
        {"startTime":1795440204991,"finishTime":0,"elapsedTime":6407,"progress":0.0,"id":"task_1795440036575_0002_r_000000",
         "state":"RUNNING","type":"REDUCE","successfulAttempt":"","status":"8 / 8 copied."},
        {"startTime":1795440205001,"finishTime":0,"elapsedTime":6397,"progress":0.0,"id":"task_1795440036575_0002_r_000001",
         "state":"RUNNING","type":"REDUCE","successfulAttempt":"","status":"8 / 8 copied."},
        {"startTime":1795440205001,"finishTime":0,"elapsedTime":6397,"progress":0.0,"id":"task_1795440036575_0002_r_000002",
         "state":"RUNNING","type":"REDUCE","successfulAttempt":"","status":"NEW"}]}}"#;

    /// One that has ended.
    const ENDED: &str = r#"{"tasks":{"task":{"startTime":1795440204991,"finishTime":1795440211646,"elapsedTime":6655,
        "progress":100.0,"id":"task_1795440036575_0002_r_000000","state":"SUCCEEDED","type":"REDUCE",
        "successfulAttempt":"attempt_1795440036575_0002_r_000000_0","status":"reduce > reduce"}}}"#;

    const APPLICATION: ApplicationId = ApplicationId { cluster_timestamp: 1_795_440_036_575, sequence: 2 };
    const TASKS: JobTasks =
        JobTasks { maps: TaskCounts { total: 8, completed: 4 }, reduces: TaskCounts { total: 3, completed: 0 } };

    #[test]
    fn what_a_real_application_master_says_is_read() {
        assert_eq!(job_tasks(JOB.as_bytes(), APPLICATION), Ok(TASKS));
        let found = ShuffleCounted { wrote: Bytes(20_800_144), fetched: Bytes(13_853_416) };
        assert_eq!(counted(COUNTERS.as_bytes(), APPLICATION), Ok(found));
        assert_eq!([REDUCES, ENDED].map(|body| received(body.as_bytes(), TASKS)), [Ok(2), Ok(1)]);
        let path = "/proxy/application_1795440036575_0002/ws/v1/mapreduce/jobs/job_1795440036575_0002";
        let paths = [job_path, counters_path, reduces_path].map(|path| path(APPLICATION));
        assert_eq!(paths, [path.to_owned(), format!("{path}/counters"), format!("{path}/tasks?type=r")]);
    }

    #[test]
    fn before_anything_is_counted_there_are_no_counters() {
        for none in ["", ",\"counterGroup\":[]", ",\"counterGroup\":null"] {
            let body = format!("{{\"jobCounters\":{{\"id\":\"job_1795440036575_0002\"{none}}}}}");
            assert_eq!(counted(body.as_bytes(), APPLICATION), Ok(ShuffleCounted::default()));
        }
        for none in ["{\"tasks\":null}", "{\"tasks\":{}}", "{\"tasks\":{\"task\":[]}}"] {
            assert_eq!(received(none.as_bytes(), TASKS), Ok(0));
        }
    }

    #[test]
    fn numbers_that_can_not_be_are_named_and_no_answer() {
        let refused = |found: Result<JobTasks, BadAnswer>| match found {
            Err(BadAnswer::Shape(why)) => why,
            other => panic!("{other:?}"),
        };
        let job = |from: &str, by: &str| job_tasks(JOB.replace(from, by).as_bytes(), APPLICATION);
        for (value, shown) in [
            ("-1", "mapsTotal: -1"),
            ("8.5", "mapsTotal: 8.5"),
            ("\"8\"", "mapsTotal: \"8\""),
            ("1e300", "mapsTotal: 1e"),
            ("10000001", "mapsTotal: 10000001"),
            ("18446744073709551616", "mapsTotal: 1.8446744073709552e"),
            ("3", "4 of 3 tasks are completed"),
        ] {
            let said = refused(job("\"mapsTotal\":8", &format!("\"mapsTotal\":{value}")));
            assert!(said.starts_with(shown), "{said}");
        }
        assert_eq!(refused(job("\"mapsTotal\":8,", "")), "mapsTotal: missing");
        assert_eq!(refused(job("job_1795440036575_0002", "job_1_0001")), "id: \"job_1_0001\"");
        let long = refused(job("\"id\":\"job_1795440036575_0002\"", &format!("\"id\":\"{}\"", "x".repeat(9_000))));
        assert_eq!(long.chars().count(), "id: ".len() + SHOWN);
        assert!(matches!(job("\"mapsTotal\":8", "\"mapsTotal\":NaN"), Err(BadAnswer::Json { .. })));
        let counters = |value: &str| counted(COUNTERS.replace("20800144", value).as_bytes(), APPLICATION);
        assert!(counters("1152921504606846976").is_ok(), "1 EiB");
        for value in ["-5", "1152921504606846977", "1.5", "null", "[]"] {
            assert!(matches!(counters(value), Err(BadAnswer::Shape(_))), "{value}");
        }
        let reduces = |value: &str| received(REDUCES.replace("0.0", value).as_bytes(), TASKS);
        for value in ["-0.1", "100.1", "1e300", "\"NaN\"", "null"] {
            assert!(matches!(reduces(value), Err(BadAnswer::Shape(_))), "{value}");
        }
        let fewer = JobTasks { reduces: TaskCounts { total: 2, completed: 0 }, ..TASKS };
        assert_eq!(received(REDUCES.as_bytes(), fewer), Err(BadAnswer::Shape("3 reduces of 2".to_owned())));
        assert!(job_tasks(b"{}", APPLICATION).is_err() && counted(b"[]", APPLICATION).is_err());
    }

    #[test]
    fn copying_is_a_third_of_a_reduce() {
        let at = |progress: &str, status: &str| {
            let body = REDUCES.replace("0.0", progress).replace("8 / 8 copied.", status);
            received(body.as_bytes(), TASKS).unwrap()
        };
        assert_eq!((at("33.333336", "7 / 8 copied."), at("33.35", "reduce > sort")), (0, 3));
        assert_eq!((at("0.0", "9 / 9 copied."), at("0.0", "8 / 8 copied. soon")), (0, 0));
        let maps = REDUCES.replace("\"REDUCE\"", "\"MAP\"");
        assert_eq!(received(maps.as_bytes(), TASKS), Ok(0));
    }

    #[test]
    fn the_whole_is_what_maps_that_ended_wrote_times_all_of_them() {
        let counted = |wrote, fetched| ShuffleCounted { wrote: Bytes(wrote), fetched: Bytes(fetched) };
        let found = shuffle(TASKS, counted(100, 30), None);
        assert_eq!(found, Some(Shuffle { bytes: Bytes(200), receivers: 3, received: 0, fetched: Bytes(30) }));
        let none = JobTasks { maps: TaskCounts { total: 8, completed: 0 }, ..TASKS };
        assert_eq!(shuffle(none, counted(100, 0), None), None, "no map has ended");
        assert_eq!(shuffle(JobTasks { reduces: TaskCounts::default(), ..TASKS }, counted(100, 0), None), None);
        let ended = JobTasks { maps: TaskCounts { total: 8, completed: 8 }, ..TASKS };
        let received = |wrote, fetched, seen| shuffle(ended, counted(wrote, fetched), seen).unwrap().received;
        assert_eq!((received(100, 99, Some(2)), received(100, 100, None), received(100, 99, None)), (2, 3, 0));
        let one = JobTasks { reduces: TaskCounts { total: 3, completed: 1 }, ..ended };
        assert_eq!(shuffle(one, counted(100, 99), Some(0)).unwrap().received, 1);
        let most = JobTasks { maps: TaskCounts { total: 10_000_000, completed: 1 }, ..TASKS };
        assert_eq!(shuffle(most, counted(BYTES_MAX, 0), None).unwrap().bytes, Bytes(u64::MAX));
    }

    #[test]
    fn a_redirect_leads_nowhere_but_to_the_same_application_at_the_same_proxy() {
        let proxy = Address { authority: "rm1:8088".to_owned(), tls: false };
        let to = |location: &str| redirected(location, &proxy, APPLICATION);
        let own = "/proxy/application_1795440036575_0002/ws/v1/mapreduce/jobs?x=1";
        assert_eq!(to(own).as_deref(), Some(own));
        assert_eq!(to(&format!("http://rm1:8088{own}")).as_deref(), Some(own));
        let again = own.replace("/proxy/", "/proxy/redirect/");
        assert_eq!(to(&again), Some(again.clone()));
        for other in [
            // Of a real one: before the ApplicationMaster has registered, and after the end.
            "http://localhost:8088/cluster/app/application_1795440036575_0002",
            "http://localhost:19888/jobhistory/job/job_1795440036575_0002/ws/v1/mapreduce/jobs/job_1795440036575_0002",
            "/cluster/app/application_1795440036575_0002",
            "http://rm1:80880/proxy/application_1795440036575_0002/x",
            "http://rm1:8088@evil:80/proxy/application_1795440036575_0002/x",
            "https://rm1:8088/proxy/application_1795440036575_0002/x",
            "//evil/proxy/application_1795440036575_0002/x",
            "/proxy/application_1795440036575_00021/x",
            "/proxy/application_1795440036575_0002/../../ws/v1/cluster/apps",
            "/proxy/application_1795440036575_0002/x y",
            "/proxy/application_1795440036575_0002",
            "",
        ] {
            assert_eq!(to(other), None, "{other}");
        }
    }

    proptest! {
        /// Whatever is said, no number comes out that can't be.
        #[test]
        fn anything_at_all_is_read_or_refused(from in 0_usize..1_200, by in "[0-9a-zA-Z\\[\\]{}:,.\"-]{0,12}") {
            for body in [JOB, COUNTERS, REDUCES] {
                let mut body = body.to_owned();
                let from = from.min(body.len());
                body.replace_range(from..(from + by.len()).min(body.len()), &by);
                if let Ok(tasks) = job_tasks(body.as_bytes(), APPLICATION) {
                    prop_assert!(tasks.maps.completed <= tasks.maps.total && tasks.reduces.completed <= tasks.reduces.total);
                }
                if let Ok(found) = counted(body.as_bytes(), APPLICATION) {
                    prop_assert!(found.wrote.0 <= BYTES_MAX && found.fetched.0 <= BYTES_MAX);
                }
                if let Ok(found) = received(body.as_bytes(), TASKS) {
                    prop_assert!(found <= 3);
                }
            }
        }
    }
}
