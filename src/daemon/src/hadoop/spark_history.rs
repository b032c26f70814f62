//! The REST interface of Spark's history server (`/api/v1`), read; no I/O.
//!
//! Of a finished application it tells, executor by executor, what its tasks read of files, and wrote for and read of
//! shuffles. Which executor sent what to which it does not tell: in a shuffle every task reads of every other, so all of
//! it counts as sent among the executors alike, a part of it to themselves. Where input lies it does not tell either.
//!
//! Executors are asked for under the number of their resource profile as priority (`YarnAllocator`), and with
//! `AMRMClient`'s allocation request 0.

use super::resource_manager::{BadAnswer, Rows, each_row, json, number, shape, wrong};
use hintd_engine::{EdgeHistory, LearnedGroup, LearnedRun};
use hintd_model::cluster::EdgePattern;
use hintd_model::units::{ApplicationId, Bytes, Calendar, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const APPLICATIONS: &str = "/api/v1/applications";
/// Applications that one list may have; the newest come first.
const LISTED: usize = 10_000;
/// More bytes than an executor moves: 1 EiB.
const BYTES_MAX: u64 = 1 << 60;
/// More resource profiles than an application has; others are left out.
const PROFILES: usize = 16;
/// The row of the driver, which is no executor.
const DRIVER: &str = "driver";

/// An application as the list has it: the last attempt of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkRun {
    /// Which.
    pub application: ApplicationId,
    /// The same in letters.
    pub id: String,
    /// The attempt's number; empty: the application has but one, and it has no number (client mode).
    pub attempt: String,
    /// Its name, as the driver has it.
    pub name: String,
    /// Whose.
    pub user: String,
    /// When it ended, ms.
    pub finished_ms: u64,
}

/// All executors of one resource profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProfileTotals {
    /// The most that were there at one time.
    pub executors: u32,
    /// Bytes that their tasks read of files.
    pub input: Bytes,
    /// Bytes that their tasks read of shuffles, of their own node as well.
    pub read: Bytes,
    /// Bytes that their tasks wrote for shuffles.
    pub wrote: Bytes,
}

/// Applications whose last attempt is over and that ended at or after `from_ms`, and by `until_ms`, where that is given; the
/// newest first.
#[must_use]
pub fn applications_path(from_ms: u64, until_ms: Option<u64>) -> String {
    let until = until_ms.map(|until| format!("&maxEndDate={}", date(until))).unwrap_or_default();
    format!("{APPLICATIONS}?status=completed&minEndDate={}{until}&limit={LISTED}", date(from_ms))
}

fn date(ms: u64) -> String {
    let Calendar { year, month, day, hour, minute, second } = Timestamp(ms.saturating_mul(1_000)).calendar(0);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}GMT", ms % 1_000)
}

/// The answer to [`applications_path`], in its order. What YARN did not run (`local-…`, `app-…`), or has no end, is left
/// out.
///
/// # Errors
/// [`BadAnswer`].
pub fn applications(body: &[u8]) -> Result<Rows<SparkRun>, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attempt {
        #[serde(default)]
        attempt_id: String,
        #[serde(default)]
        spark_user: String,
        completed: bool,
        end_time_epoch: i64,
    }
    #[derive(Deserialize)]
    struct Row {
        id: String,
        #[serde(default)]
        name: String,
        attempts: Vec<Attempt>,
    }
    let answer = json(body)?;
    let rows: Vec<&Value> = array(&answer)?.iter().take(LISTED).collect();
    let run = |row: Row| {
        let last = row.attempts.into_iter().next().filter(|last| last.completed)?;
        let application: ApplicationId = row.id.parse().ok()?;
        let plain = last.attempt_id.bytes().all(|c| c.is_ascii_digit());
        Some(SparkRun {
            application,
            id: application.to_string(),
            attempt: Some(last.attempt_id).filter(|_| plain)?,
            name: row.name,
            user: last.spark_user,
            finished_ms: u64::try_from(last.end_time_epoch).ok().filter(|ended| *ended > 0)?,
        })
    };
    each_row(&rows, |row| Row::deserialize(row).map(run).map_err(shape))
}

impl SparkRun {
    /// Where its executors are, those that left before its end among them.
    #[must_use]
    pub fn executors_path(&self) -> String {
        format!("{}/allexecutors", self.path())
    }

    /// Where its stages are that failed or never came to their end: of a run that has such the bytes are not those of
    /// the next.
    #[must_use]
    pub fn unfinished_stages_path(&self) -> String {
        format!("{}/stages?status=failed&status=active", self.path())
    }

    fn path(&self) -> String {
        let slash = if self.attempt.is_empty() { "" } else { "/" };
        format!("{APPLICATIONS}/{}{slash}{}", self.id, self.attempt)
    }
}

/// How many rows an answer has.
///
/// # Errors
/// [`BadAnswer`].
pub fn rows(body: &[u8]) -> Result<usize, BadAnswer> {
    Ok(array(&json(body)?)?.len())
}

/// The answer to [`SparkRun::executors_path`], by resource profile; without its field, of Spark before 3.1, all are of 0.
///
/// # Errors
/// [`BadAnswer`].
pub fn executors(body: &[u8]) -> Result<BTreeMap<u32, ProfileTotals>, BadAnswer> {
    let answer = json(body)?;
    let mut totals: BTreeMap<u32, ProfileTotals> = BTreeMap::new();
    let mut comings: BTreeMap<u32, Vec<(&str, i32)>> = BTreeMap::new();
    for row in array(&answer)? {
        if text(row, "id")? == DRIVER {
            continue;
        }
        let profile = match row.get("resourceProfileId") {
            None => 0,
            Some(_) => number(row, "resourceProfileId", u64::from(u32::MAX))? as u32,
        };
        if totals.len() >= PROFILES && !totals.contains_key(&profile) {
            continue;
        }
        let of = totals.entry(profile).or_default();
        for (sum, field) in [
            (&mut of.input, "totalInputBytes"),
            (&mut of.read, "totalShuffleRead"),
            (&mut of.wrote, "totalShuffleWrite"),
        ] {
            *sum = sum.saturating_add(Bytes(number(row, field, BYTES_MAX)?));
        }
        let comings = comings.entry(profile).or_default();
        comings.push((text(row, "addTime")?, 1));
        if row.get("removeTime").is_some() {
            comings.push((text(row, "removeTime")?, -1));
        }
    }
    for (profile, comings) in comings {
        totals.entry(profile).or_default().executors = most_at_once(comings);
    }
    Ok(totals)
}

/// The most that were there at one time. Times are alike in form (`2026-11-24T09:00:00.000GMT`), so letters order them.
fn most_at_once(mut comings: Vec<(&str, i32)>) -> u32 {
    comings.sort_unstable();
    let mut here = 0_i32;
    let counts = comings.iter().map(|(_, change)| {
        here += change;
        here
    });
    counts.max().and_then(|most| u32::try_from(most).ok()).unwrap_or(0)
}

fn array(answer: &Value) -> Result<&Vec<Value>, BadAnswer> {
    answer.as_array().ok_or_else(|| BadAnswer::Shape("no rows".to_owned()))
}

fn text<'v>(row: &'v Value, field: &str) -> Result<&'v str, BadAnswer> {
    row.get(field).and_then(Value::as_str).ok_or_else(|| wrong(row, field))
}

/// What is to be remembered of an application; `None`: it had no executors, or they moved nothing.
#[must_use]
pub fn run(run: &SparkRun, executors: &BTreeMap<u32, ProfileTotals>) -> Option<LearnedRun> {
    let sum =
        |of: fn(&ProfileTotals) -> Bytes| executors.values().fold(Bytes::ZERO, |sum, one| sum.saturating_add(of(one)));
    let (input, read, wrote) = (sum(|one| one.input), sum(|one| one.read), sum(|one| one.wrote));
    if input.saturating_add(read) == Bytes::ZERO {
        return None;
    }
    let name = |profile: u32| format!("p{profile}.0").into();
    let group = |(&profile, totals): (&u32, &ProfileTotals)| LearnedGroup {
        name: name(profile),
        count: totals.executors,
        memory_mb: 0,
        input_paths: Vec::new(),
        input: totals.input,
    };
    // What was read is what crossed; who wrote more of it sent more.
    let part = |of: Bytes, all: Bytes| if all == Bytes::ZERO { 0.0 } else { of.as_f64() / all.as_f64() };
    let mut edges = Vec::new();
    for (&from, sender) in executors {
        for (&to, receiver) in executors {
            // What an executor reads of itself goes nowhere.
            let others = if from == to { 1.0 - 1.0 / f64::from(sender.executors.max(1)) } else { 1.0 };
            let bytes = Bytes((receiver.read.as_f64() * part(sender.wrote, wrote) * others) as u64);
            if bytes > Bytes::ZERO {
                edges.push(EdgeHistory { from: name(from), to: name(to), pattern: EdgePattern::AllToAll, bytes });
            }
        }
    }
    let finished = Timestamp(run.finished_ms.saturating_mul(1_000));
    Some(LearnedRun { finished, groups: executors.iter().map(group).collect(), edges, whole: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPLICATION: &str = r#"{"id":"application_1700000000000_0012","name":"join of spark","attempts":[
        {"attemptId":"2","startTime":"2023-11-14T22:13:30.000GMT","endTime":"2023-11-14T22:14:20.000GMT",
         "lastUpdated":"2023-11-14T22:14:21.000GMT","duration":50000,"sparkUser":"ann","completed":true,
         "appSparkVersion":"3.5.5","startTimeEpoch":1700000010000,"endTimeEpoch":1700000060000,"lastUpdatedEpoch":1700000061000},
        {"attemptId":"1","startTime":"2023-11-14T22:13:20.000GMT","endTime":"2023-11-14T22:13:25.000GMT",
         "duration":5000,"sparkUser":"ann","completed":true,"startTimeEpoch":1700000000000,"endTimeEpoch":1700000005000}]}"#;

    fn executor(id: &str, came: &str, left: Option<&str>, moved: [u64; 3]) -> String {
        let [input, read, wrote] = moved;
        let left = left.map(|at| format!("\"removeTime\":\"{at}\",\"removeReason\":\"idle\",")).unwrap_or_default();
        format!(
            "{{\"id\":\"{id}\",\"hostPort\":\"w1:1\",\"isActive\":true,\"totalCores\":1,\"totalInputBytes\":{input},\
             \"totalShuffleRead\":{read},\"totalShuffleWrite\":{wrote},\"addTime\":\"{came}\",{left}\"resourceProfileId\":0}}"
        )
    }

    fn told(rows: &[String]) -> Result<BTreeMap<u32, ProfileTotals>, BadAnswer> {
        executors(format!("[{}]", rows.join(",")).as_bytes())
    }

    fn applications(body: &[u8]) -> Result<Vec<SparkRun>, BadAnswer> {
        super::applications(body).map(|found| found.rows)
    }

    fn seen() -> SparkRun {
        applications(format!("[{APPLICATION}]").as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn the_last_attempt_of_an_application_that_yarn_ran_is_read() {
        let found = seen();
        assert_eq!((&*found.id, &*found.attempt, &*found.user), ("application_1700000000000_0012", "2", "ann"));
        assert_eq!((&*found.name, found.finished_ms), ("join of spark", 1_700_000_060_000));
        let path = "/api/v1/applications/application_1700000000000_0012/2";
        assert_eq!(found.executors_path(), format!("{path}/allexecutors"));
        assert_eq!(found.unfinished_stages_path(), format!("{path}/stages?status=failed&status=active"));
        let client = APPLICATION.replace("\"attemptId\":\"2\",", "");
        let client = applications(format!("[{client}]").as_bytes()).unwrap().remove(0);
        assert_eq!(client.executors_path(), format!("{}/allexecutors", &path[..path.len() - 2]));
        let others = [
            APPLICATION.replace("application_17", "local-17"),
            APPLICATION.replace("application_17", "app-17"),
            APPLICATION.replace("application_17", "../application_17"),
            APPLICATION.replacen("\"completed\":true", "\"completed\":false", 1),
            APPLICATION.replace("\"attemptId\":\"2\"", "\"attemptId\":\"../2\""),
            APPLICATION.replace("1700000060000", "-1"),
            APPLICATION.replace("application_1700000000000_0012", "application_x"),
            "{\"id\":\"application_1_0001\",\"name\":\"\",\"attempts\":[]}".to_owned(),
        ];
        assert_eq!(applications(format!("[{}]", others.join(",")).as_bytes()), Ok(vec![]));
    }

    /// Recorded of Spark 3.5.5's history server, of a join with two shuffles on four executors (tests/hadoop/apps/spark) that
    /// ran without YARN: the application's id was put in place of Spark's own.
    #[test]
    fn what_a_real_history_server_says_is_read() {
        let listed = applications(include_bytes!("../../../../tests/data/spark/applications.json")).unwrap();
        let seen = SparkRun {
            application: ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence: 12 },
            id: "application_1700000000000_0012".into(),
            attempt: "1".into(),
            name: "join of spark".into(),
            user: "ann".into(),
            finished_ms: 1_795_539_895_941,
        };
        assert_eq!(listed, [seen]);
        let found = executors(include_bytes!("../../../../tests/data/spark/allexecutors.json")).unwrap();
        let (input, read, wrote) = (Bytes(9_197_660), Bytes(15_838_441), Bytes(15_838_441));
        assert_eq!(found, BTreeMap::from([(0, ProfileTotals { executors: 4, input, read, wrote })]));
        let learned = run(&listed[0], &found).unwrap();
        assert_eq!(
            (learned.edges.len(), learned.edges[0].bytes),
            (1, Bytes(11_878_830)),
            "three quarters go to others"
        );
    }

    #[test]
    fn an_application_is_listed_from_a_moment_on() {
        let path = "/api/v1/applications?status=completed&minEndDate=2023-11-14T22:14:20.007GMT&limit=10000";
        assert_eq!(applications_path(1_700_000_060_007, None), path);
        let part = path.replace("&limit", "&maxEndDate=2023-11-14T22:14:21.000GMT&limit");
        assert_eq!(applications_path(1_700_000_060_007, Some(1_700_000_061_000)), part);
    }

    #[test]
    fn a_row_that_makes_no_sense_is_left_out_and_named_and_the_others_are_read() {
        let odd = APPLICATION.replace("1700000060000", "\"soon\"").replace("_0012", "_0013");
        let found = super::applications(format!("[{odd},{APPLICATION},{{\"id\":7}}]").as_bytes()).unwrap();
        assert_eq!(found.rows, [seen()]);
        let said: Vec<_> = found.left_out.iter().map(|row| (row.row.as_str(), row.why.to_string())).collect();
        assert!(said[0].0.ends_with("_0013") && said[0].1.contains("soon"), "{said:?}");
        assert!(said[1].0 == "{\"id\":7}" && said.len() == 2, "{said:?}");
    }

    #[test]
    fn what_is_no_answer_is_said() {
        for body in ["<html>", "{\"apps\":[]}", "[{\"id\":7}]", "[{\"id\":\"a\",\"attempts\":7}]", "7", ""] {
            assert!(applications(body.as_bytes()).is_err(), "{body}");
            assert!(executors(body.as_bytes()).is_err(), "{body}");
        }
        assert!(applications(format!("[{}]", APPLICATION.replace("1700000060000", "\"soon\"")).as_bytes()).is_err());
        assert_eq!((rows(b"[]"), rows(b"[{},{}]")), (Ok(0), Ok(2)));
        assert!(rows(b"{}").is_err());
        let row = executor("1", "2023-11-14T22:13:40.000GMT", None, [5, 6, 7]);
        for (from, by, said) in [
            ("\"totalShuffleRead\":6", "\"totalShuffleRead\":-6", "totalShuffleRead: -6"),
            (
                "\"totalShuffleRead\":6",
                "\"totalShuffleRead\":1152921504606846977",
                "totalShuffleRead: 1152921504606846977",
            ),
            ("\"totalInputBytes\":5", "\"totalInputBytes\":0.5", "totalInputBytes: 0.5"),
            ("\"totalShuffleWrite\":7,", "", "totalShuffleWrite: missing"),
            ("\"addTime\":\"2023-11-14T22:13:40.000GMT\"", "\"addTime\":9", "addTime: 9"),
            ("\"id\":\"1\"", "\"id\":1", "id: 1"),
            ("\"resourceProfileId\":0", "\"resourceProfileId\":4294967296", "resourceProfileId: 4294967296"),
        ] {
            let wrong = told(&[row.replace(from, by)]).unwrap_err();
            assert_eq!(wrong, BadAnswer::Shape(said.to_owned()), "{by}");
        }
        assert!(told(&[row]).is_ok());
    }

    #[test]
    fn executors_are_summed_up_and_counted_as_many_as_were_there_at_once() {
        let at = |second: u32| format!("2023-11-14T22:13:{second:02}.000GMT");
        let driver = executor("driver", &at(30), None, [9, 9, 9]);
        let rows = [
            driver.clone(),
            executor("1", &at(40), Some(&at(50)), [10, 100, 200]),
            executor("2", &at(41), None, [20, 300, 100]),
            executor("3", &at(50), None, [0, 0, 0]),
            executor("4", &at(55), None, [1, 0, 0]),
        ];
        let found = told(&rows).unwrap();
        let all = ProfileTotals { executors: 3, input: Bytes(31), read: Bytes(400), wrote: Bytes(300) };
        assert_eq!(found, BTreeMap::from([(0, all)]));
        let old: Vec<String> = rows.iter().map(|row| row.replace(",\"resourceProfileId\":0", "")).collect();
        assert_eq!(told(&old), Ok(found), "of Spark before 3.1");
        assert_eq!(told(&[driver]), Ok(BTreeMap::new()));
        let profiles: Vec<String> = (0..40)
            .map(|profile| {
                executor("1", &at(1), None, [1, 1, 1]).replace("ProfileId\":0", &format!("ProfileId\":{profile}"))
            })
            .collect();
        assert_eq!(told(&profiles).unwrap().len(), PROFILES);
    }

    #[test]
    fn executors_send_to_each_other_what_was_read_but_for_their_own() {
        let totals = |executors, input, read, wrote| ProfileTotals {
            executors,
            input: Bytes(input),
            read: Bytes(read),
            wrote: Bytes(wrote),
        };
        let learned = run(&seen(), &BTreeMap::from([(0, totals(4, 500, 1_200, 1_300))])).unwrap();
        assert_eq!(learned.finished, Timestamp(1_700_000_060_000_000));
        let group = &learned.groups[0];
        assert_eq!((&*group.name, group.count, group.input, group.memory_mb), ("p0.0", 4, Bytes(500), 0));
        let edges = |learned: &LearnedRun| -> Vec<(String, u64)> {
            let name = |edge: &EdgeHistory| format!("{}>{}", edge.from, edge.to);
            learned.edges.iter().map(|edge| (name(edge), edge.bytes.0)).collect()
        };
        assert_eq!(edges(&learned), [("p0.0>p0.0".to_owned(), 900)], "each of four has a fourth on its own node");
        // Two profiles: one only writes, the other only reads.
        let two = BTreeMap::from([(0, totals(2, 500, 0, 1_000)), (3, totals(2, 0, 1_000, 0))]);
        assert_eq!(edges(&run(&seen(), &two).unwrap()), [("p0.0>p3.0".to_owned(), 1_000)]);
        let alone = BTreeMap::from([(0, totals(1, 500, 1_000, 1_000))]);
        assert_eq!(edges(&run(&seen(), &alone).unwrap()), []);
        assert_eq!(run(&seen(), &BTreeMap::from([(0, totals(2, 0, 0, 0))])), None, "it moved nothing");
        assert_eq!(run(&seen(), &BTreeMap::new()), None);
    }
}
