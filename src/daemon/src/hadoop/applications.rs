//! Applications and their containers over the ResourceManager's REST interface, read, and what is over of what the
//! daemon knows; no I/O, no clock.

use super::resource_manager::{BadAnswer, Rows, each_row, json, list, shape};
use hintd_model::units::{ApplicationId, AttemptId, ContainerId, HostName};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Applications that are not over; `most`: so many of them, where all are more than an answer may have.
#[must_use]
pub fn live_path(most: Option<usize>) -> String {
    let limit = most.map(|most| format!("&limit={most}")).unwrap_or_default();
    format!("/ws/v1/cluster/apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING&deSelects=resourceRequests{limit}")
}

/// One application.
#[must_use]
pub fn one(application: ApplicationId) -> String {
    format!("/ws/v1/cluster/apps/{application}?deSelects=resourceRequests")
}

/// Running containers of an attempt.
#[must_use]
pub fn containers_of(attempt: AttemptId) -> String {
    format!("/ws/v1/cluster/apps/{}/appattempts/{attempt}/containers", attempt.application)
}

/// An application as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSeen {
    /// Which.
    pub id: ApplicationId,
    /// How it ended; `None`: it is not over.
    pub over: Option<How>,
    /// The attempt whose ApplicationMaster runs, or ran last; `None`: it has none yet.
    pub attempt: Option<u32>,
    /// From its submission to its end; `None`: it is not over, or that is not told.
    pub took: Option<Duration>,
}

/// How an attempt came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The application finished, and calls it a success.
    Finished,
    /// The application, or this attempt of it, failed.
    Failed,
    /// Somebody killed the application.
    Killed,
    /// The ResourceManager has not known the application for long.
    Unknown,
}

impl How {
    /// For counters and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Unknown => "unknown",
        }
    }
}

/// A running container as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSeen {
    /// Which.
    pub id: ContainerId,
    /// Where.
    pub host: HostName,
    /// Since when.
    pub elapsed: Duration,
}

/// The answer to [`live_path`]. Who is left out of it, because its row makes no sense, may live all the same.
///
/// # Errors
/// [`BadAnswer`].
pub fn live(body: &[u8]) -> Result<Rows<ApplicationSeen>, BadAnswer> {
    let answer = json(body)?;
    let apps = answer.get("apps").ok_or_else(|| BadAnswer::Shape("no apps".to_owned()))?;
    each_row(&list(apps, "app")?, |row| application(row).map(Some))
}

/// The answer to [`one`].
///
/// # Errors
/// [`BadAnswer`].
pub fn alone(body: &[u8]) -> Result<ApplicationSeen, BadAnswer> {
    let answer = json(body)?;
    application(answer.get("app").ok_or_else(|| BadAnswer::Shape("no app".to_owned()))?)
}

/// What an application was called when it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationNamed {
    /// Whose.
    pub user: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// As its client says: `SPARK`, `MAPREDUCE`.
    #[serde(default)]
    application_type: String,
}

impl ApplicationNamed {
    /// The framework, as the ResourceManager's processor and the configuration name it.
    #[must_use]
    pub fn framework(&self) -> String {
        self.application_type.to_lowercase()
    }
}

/// The answer to [`one`]: what it is called.
///
/// # Errors
/// [`BadAnswer`].
pub fn named(body: &[u8]) -> Result<ApplicationNamed, BadAnswer> {
    let answer = json(body)?;
    ApplicationNamed::deserialize(answer.get("app").ok_or_else(|| BadAnswer::Shape("no app".to_owned()))?)
        .map_err(shape)
}

/// Whether a refusal says that there is no such application.
#[must_use]
pub fn is_unknown(status: u16, body: &str) -> bool {
    status == 404 && body.contains("NotFoundException")
}

fn application(value: &Value) -> Result<ApplicationSeen, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        id: String,
        state: String,
        #[serde(default)]
        final_status: String,
        am_container_logs: Option<String>,
        #[serde(default)]
        started_time: i64,
        #[serde(default)]
        finished_time: i64,
        #[serde(default)]
        elapsed_time: i64,
    }
    let row = Row::deserialize(value).map_err(shape)?;
    let id = row.id.parse().map_err(|error: hintd_model::units::IdError| BadAnswer::Shape(error.to_string()))?;
    // ".../containerlogs/container_1_0001_02_000001/user": no other field names the attempt.
    let words = row.am_container_logs.as_deref().unwrap_or_default().split('/');
    let master = words.filter_map(|word| word.parse::<ContainerId>().ok()).next();
    let over = match row.state.as_str() {
        "FINISHED" if row.final_status == "SUCCEEDED" => Some(How::Finished),
        "FINISHED" | "FAILED" => Some(How::Failed),
        "KILLED" => Some(How::Killed),
        _ => None,
    };
    let between = row.finished_time.saturating_sub(row.started_time);
    let took = if row.started_time > 0 && row.finished_time > 0 { between } else { row.elapsed_time };
    let took = u64::try_from(took).ok().filter(|took| *took > 0 && over.is_some());
    let attempt = master.map(|container| container.attempt.attempt);
    Ok(ApplicationSeen { id, over, attempt, took: took.map(Duration::from_millis) })
}

/// The answer to [`containers_of`]: those that run and are not the ApplicationMaster's own.
///
/// # Errors
/// [`BadAnswer`].
pub fn containers(body: &[u8]) -> Result<Vec<ContainerSeen>, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        container_id: String,
        assigned_node_id: Option<String>,
        node_id: Option<String>,
        /// As text, where Hadoop writes this list; a number elsewhere.
        #[serde(default)]
        elapsed_time: Value,
        #[serde(default)]
        container_state: String,
    }
    let answer = json(body)?;
    let rows = answer.get("containers").unwrap_or(&answer);
    let mut found = Vec::new();
    for row in list(rows, "container")? {
        let row = Row::deserialize(row).map_err(shape)?;
        let id: ContainerId = row
            .container_id
            .parse()
            .map_err(|error: hintd_model::units::IdError| BadAnswer::Shape(error.to_string()))?;
        let node = row.assigned_node_id.or(row.node_id).unwrap_or_default();
        let host = node.rsplit_once(':').map_or(node.as_str(), |(host, _)| host);
        if is_master(id) || row.container_state == "COMPLETE" || host.is_empty() {
            continue;
        }
        let elapsed = match &row.elapsed_time {
            Value::String(text) => text.parse().unwrap_or(0),
            other => other.as_u64().unwrap_or(0),
        };
        found.push(ContainerSeen { id, host: HostName::from(host), elapsed: Duration::from_millis(elapsed) });
    }
    Ok(found)
}

/// Whether a container is an ApplicationMaster's: the first of its attempt, whatever the ResourceManager's epoch.
fn is_master(container: ContainerId) -> bool {
    const SEQUENCE: u64 = (1 << 40) - 1;
    container.id & SEQUENCE == 1
}

/// Which attempts that the daemon knows are over, as answers tell it bit by bit.
#[derive(Debug, Default)]
pub struct Endings {
    /// Since when the ResourceManager does not know an application.
    unknown: BTreeMap<ApplicationId, Duration>,
}

/// What a list of live applications says of what is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Sorted {
    /// Attempts whose application has a newer one.
    pub superseded: Vec<AttemptId>,
    /// Attempts that may hold containers.
    pub running: Vec<AttemptId>,
    /// Applications that are not in the list, and to be asked for one by one.
    pub doubtful: Vec<ApplicationId>,
}

impl Endings {
    /// Sorts what is known by a list of what is not over; of `awaited` only the end is of interest.
    pub fn sort(&mut self, known: &[AttemptId], awaited: &[ApplicationId], live: &[ApplicationSeen]) -> Sorted {
        let live: BTreeMap<ApplicationId, Option<u32>> = live.iter().map(|seen| (seen.id, seen.attempt)).collect();
        let mut sorted = Sorted { superseded: Vec::new(), running: Vec::new(), doubtful: Vec::new() };
        let mut doubtful: BTreeSet<ApplicationId> =
            awaited.iter().filter(|application| !live.contains_key(application)).copied().collect();
        for &attempt in known {
            match live.get(&attempt.application) {
                None => _ = doubtful.insert(attempt.application),
                Some(Some(newest)) if *newest > attempt.attempt => sorted.superseded.push(attempt),
                Some(_) => sorted.running.push(attempt),
            }
        }
        self.unknown.retain(|application, _| doubtful.contains(application));
        sorted.doubtful = doubtful.into_iter().collect();
        sorted
    }

    /// An application was asked for by itself; `None`: nobody knows it. How it ended, if it did: what nobody knows is
    /// over when that has been so for `kept`, for a ResourceManager that has just started may still learn of it.
    pub fn judge(
        &mut self,
        application: ApplicationId,
        seen: Option<&ApplicationSeen>,
        now: Duration,
        kept: Duration,
    ) -> Option<How> {
        if let Some(seen) = seen {
            self.unknown.remove(&application);
            return seen.over;
        }
        let since = *self.unknown.entry(application).or_insert(now);
        let over = now.saturating_sub(since) >= kept;
        if over {
            self.unknown.remove(&application); // who asks for it again has the whole time again
        }
        over.then_some(How::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_called_as_it_was_submitted() {
        let body = r#"{"app":{"id":"application_1_0001","user":"ann","name":"io.hintd.Join","queue":"default",
            "state":"FINISHED","finalStatus":"SUCCEEDED","applicationType":"SPARK"}}"#;
        let found = named(body.as_bytes()).unwrap();
        assert_eq!((&*found.user, &*found.name, &*found.framework()), ("ann", "io.hintd.Join", "spark"));
        assert!(named(b"{\"apps\":{}}").is_err() && named(b"{\"app\":{\"name\":\"x\"}}").is_err());
    }

    fn application(number: u32) -> ApplicationId {
        ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence: number }
    }

    fn attempt(number: u32, attempt: u32) -> AttemptId {
        AttemptId { application: application(number), attempt }
    }

    fn row(number: u32, state: &str, status: &str, attempt: u32) -> String {
        format!(
            "{{\"id\":\"{}\",\"user\":\"u\",\"state\":\"{state}\",\"finalStatus\":\"{status}\",\"amContainerLogs\":\
             \"http://w1:8042/node/containerlogs/container_1700000000000_{number:04}_{attempt:02}_000001/u\"}}",
            application(number)
        )
    }

    #[test]
    fn an_application_says_how_it_ended_and_which_attempt_is_its_last() {
        let alone = |state: &str, status: &str| alone(format!("{{\"app\":{}}}", row(1, state, status, 2)).as_bytes());
        let seen = |over| Ok(ApplicationSeen { id: application(1), over, attempt: Some(2), took: None });
        assert_eq!(alone("RUNNING", "UNDEFINED"), seen(None));
        assert_eq!(alone("FINISHED", "SUCCEEDED"), seen(Some(How::Finished)));
        assert_eq!(alone("FINISHED", "FAILED"), seen(Some(How::Failed)));
        assert_eq!(alone("FAILED", "FAILED"), seen(Some(How::Failed)));
        assert_eq!(alone("KILLED", "KILLED"), seen(Some(How::Killed)));
        let accepted = format!("{{\"app\":{{\"id\":\"{}\",\"state\":\"ACCEPTED\"}}}}", application(1));
        let new = ApplicationSeen { id: application(1), over: None, attempt: None, took: None };
        assert_eq!(super::alone(accepted.as_bytes()), Ok(new));
    }

    #[test]
    fn an_application_that_is_over_says_how_long_it_took() {
        let took = |state: &str, times: &str| {
            let body = format!("{{\"app\":{{\"id\":\"{}\",\"state\":\"{state}\",{times}}}}}", application(1));
            alone(body.as_bytes()).map(|seen| seen.took.map(|took| took.as_millis()))
        };
        let both = "\"startedTime\":1700000000000,\"finishedTime\":1700000009000,\"elapsedTime\":77";
        assert_eq!(took("FINISHED", both), Ok(Some(9_000)));
        assert_eq!(took("FINISHED", "\"elapsedTime\":77"), Ok(Some(77)));
        assert_eq!(took("FINISHED", "\"startedTime\":5,\"finishedTime\":0,\"elapsedTime\":0"), Ok(None));
        assert_eq!(took("RUNNING", "\"startedTime\":1,\"finishedTime\":0,\"elapsedTime\":77"), Ok(None));
        assert_eq!(took("FINISHED", "\"startedTime\":9,\"finishedTime\":5"), Ok(None), "a clock that went back");
    }

    fn live(body: &[u8]) -> Result<Vec<ApplicationSeen>, BadAnswer> {
        super::live(body).map(|found| found.rows)
    }

    #[test]
    fn a_row_that_makes_no_sense_is_left_out_and_named_and_the_others_are_read() {
        let odd =
            [row(2, "RUNNING", "UNDEFINED", 1).replace("\"state\"", "\"stage\""), "{\"state\":\"RUNNING\"}".to_owned()];
        let rows = [&odd[0], &row(3, "RUNNING", "UNDEFINED", 1), &odd[1]].map(String::as_str).join(",");
        let found = super::live(format!("{{\"apps\":{{\"app\":[{rows}]}}}}").as_bytes()).unwrap();
        assert_eq!(found.rows.iter().map(|seen| seen.id).collect::<Vec<_>>(), [application(3)]);
        let said: Vec<_> = found.left_out.iter().map(|row| (row.row.as_str(), row.why.to_string())).collect();
        assert!(said[0].0.ends_with("_0002") && said[0].1.contains("missing field `state`"), "{said:?}");
        assert!(said[1].0.starts_with('{') && said[1].1.contains("missing field `id`"), "{said:?}");
        assert!(live(format!("{{\"apps\":{{\"app\":[{}]}}}}", odd.join(",")).as_bytes()).is_err(), "another answer");
        assert!(live_path(Some(7)).ends_with("RUNNING&deSelects=resourceRequests&limit=7"));
    }

    #[test]
    fn a_list_may_be_empty_in_any_shape_or_a_single_row() {
        for empty in ["null", "{}", "\"\"", "{\"app\":[]}", "{\"app\":null}"] {
            assert_eq!(live(format!("{{\"apps\":{empty}}}").as_bytes()), Ok(vec![]), "{empty}");
        }
        let single = format!("{{\"apps\":{{\"app\":{}}}}}", row(3, "RUNNING", "UNDEFINED", 1));
        assert_eq!(live(single.as_bytes()).unwrap()[0].id, application(3));
        assert!(live(b"{\"apps\":7}").is_err() && live(b"{}").is_err());
        assert!(is_unknown(404, "{\"RemoteException\":{\"exception\":\"NotFoundException\""));
        assert!(!is_unknown(404, "<html>") && !is_unknown(500, "NotFoundException"));
    }

    #[test]
    fn running_containers_come_without_the_masters() {
        let row = |number: u32, state: &str| {
            format!(
                "{{\"containerId\":\"container_e17_1700000000000_0001_01_{number:06}\",\"assignedNodeId\":\"w{number}:8041\",\
                 \"elapsedTime\":\"1500\",\"containerState\":\"{state}\"}}"
            )
        };
        let text = format!(
            "{{\"containers\":{{\"container\":[{},{},{}]}}}}",
            row(1, "RUNNING"),
            row(2, "RUNNING"),
            row(3, "COMPLETE")
        );
        let found = containers(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].host.as_str(), found[0].elapsed), ("w2", Duration::from_millis(1_500)));
        assert_eq!(found[0].id.attempt, attempt(1, 1));
        // One container comes without brackets, and Hadoop 3.4.2 gives no name to the whole.
        let one = containers(format!("{{\"container\":{}}}", row(2, "RUNNING")).as_bytes()).unwrap();
        assert_eq!(one, found);
        assert_eq!(containers(b"{\"containers\":{}}"), Ok(vec![]));
        assert_eq!(containers(b"null"), Ok(vec![]));
        let path =
            "/ws/v1/cluster/apps/application_1700000000000_0001/appattempts/appattempt_1700000000000_0001_000002";
        assert_eq!(containers_of(attempt(1, 2)), format!("{path}/containers"));
    }

    #[test]
    fn what_is_not_live_is_asked_for_and_what_nobody_knows_is_over_after_a_while() {
        let seen = |number, attempt| ApplicationSeen { id: application(number), over: None, attempt, took: None };
        let mut endings = Endings::default();
        let known = [attempt(1, 1), attempt(1, 2), attempt(2, 1), attempt(3, 1), attempt(3, 2)];
        let awaited = [application(2), application(3), application(9)];
        let sorted = endings.sort(&known, &awaited, &[seen(1, Some(2)), seen(2, None)]);
        assert_eq!((sorted.superseded, sorted.running), (vec![attempt(1, 1)], vec![attempt(1, 2), attempt(2, 1)]));
        assert_eq!(sorted.doubtful, [application(3), application(9)]);
        let s = Duration::from_secs;
        assert_eq!(endings.judge(application(3), None, s(10), s(60)), None);
        assert_eq!(endings.judge(application(3), None, s(69), s(60)), None);
        assert_eq!(endings.judge(application(3), None, s(70), s(60)), Some(How::Unknown));
        assert_eq!(endings.judge(application(3), None, s(71), s(60)), None, "it asked again");
        assert_eq!(endings.judge(application(3), Some(&seen(3, None)), s(71), s(60)), None, "it is known now");
        assert_eq!(endings.judge(application(3), None, s(72), s(60)), None, "and the time begins anew");
        endings.sort(&known, &[], &[seen(3, None)]);
        assert_eq!(endings.judge(application(3), None, s(140), s(60)), None);
    }
}
