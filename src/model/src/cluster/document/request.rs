//! The format `hintd.request/1`: a request for hints as one document.

use super::super::request::{Ask, Constraints, EdgePattern, Gang, GroupEdge, HintRequest, TaskGroup, WhenFull};
use super::amount::Amount;
use super::rows::no_request_id;
use super::text::{DocumentProblem, Problems};
use crate::units::{ApplicationId, AttemptId, Bytes, GroupIdx, SchedulerKey};
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What [`RequestDocument::format`] must say.
pub const REQUEST_FORMAT: &str = "hintd.request/1";

/// All edges together: an exabyte, far above any job and far below overflow.
const EDGE_BYTES_MAX: u64 = 1 << 60;

/// A request as it stands in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestDocument {
    /// [`REQUEST_FORMAT`].
    pub format: String,
    /// The request's id; left out: `request`.
    #[serde(default = "default_id")]
    pub id: String,
    /// The application; left out: `application_1_0001`.
    #[serde(default = "default_application")]
    pub application_id: ApplicationId,
    /// Its attempt, from 1.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// Its queue.
    #[serde(default = "default_queue")]
    pub queue: String,
    /// Its user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// `mapreduce`, `spark`, `flink`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub framework: String,
    /// Names the recurring job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurring_job_key: Option<String>,
    /// Overrides the configured policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Seed of the search, also as text, as answers have it; left out: drawn from the id.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seed")]
    pub seed: Option<u64>,
    /// `all` or `up_to`.
    #[serde(default)]
    pub gang: Gang,
    /// `advise` or `fail`.
    #[serde(default)]
    pub when_full: WhenFull,
    /// Where the ApplicationMaster runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub am_host: Option<String>,
    /// The application's input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_paths: Vec<String>,
    /// For every group.
    #[serde(default)]
    pub constraints: Constraints,
    /// At least one.
    pub groups: Vec<GroupEntry>,
    /// Traffic between groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeEntry>,
    /// YARN's ask table, where the replacement table is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskEntry>,
}

/// Like tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    /// Unique in the request.
    pub name: String,
    /// `map`, `reduce`, `worker`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Containers, at least 1.
    pub count: u32,
    /// Containers of the group in all, where it is asked for in parts; left out or 0: not said.
    #[serde(default)]
    pub whole: u32,
    /// Scheduler key: priority; left out: the group's position, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Scheduler key: allocation request id; left out: -1.
    #[serde(default = "no_request_id")]
    pub allocation_request_id: i64,
    /// Node label; left out: nodes without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Input of this group; left out: the request's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_paths: Vec<String>,
    /// Size of each container.
    pub size: Amount,
    /// Beside those of the request.
    #[serde(default)]
    pub constraints: Constraints,
}

/// Bytes between two groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeEntry {
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver; may be the sender.
    pub to: String,
    /// `all_to_all` or `one_to_one`.
    #[serde(default)]
    pub pattern: EdgePattern,
    /// All bytes of the edge.
    pub bytes: u64,
}

/// One row of YARN's ask table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskEntry {
    /// Scheduler key: priority.
    pub priority: i32,
    /// Scheduler key: allocation request id; left out: -1.
    #[serde(default = "no_request_id")]
    pub allocation_request_id: i64,
    /// Host, rack or `*`.
    pub resource_name: String,
    /// Absolute count.
    pub count: u32,
    /// May the scheduler go elsewhere? Left out: yes.
    #[serde(default = "yes")]
    pub relax_locality: bool,
    /// Node label expression.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Size of each container.
    pub size: Amount,
}

impl RequestDocument {
    /// The document that reads back as this request.
    #[must_use]
    pub fn from_request(request: &HintRequest) -> Self {
        let texts = |texts: &[Arc<str>]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let name = |group: GroupIdx| request.groups[group.at()].name.to_string();
        let group = |group: &TaskGroup| GroupEntry {
            name: group.name.to_string(),
            role: group.role.to_string(),
            count: group.count,
            whole: group.whole,
            priority: Some(group.key.priority),
            allocation_request_id: group.key.allocation_request_id,
            label: group.label.as_ref().map(ToString::to_string),
            input_paths: texts(&group.input_paths),
            size: Amount::of(&group.size),
            constraints: group.constraints.clone(),
        };
        let edge = |edge: &GroupEdge| EdgeEntry {
            from: name(edge.from),
            to: name(edge.to),
            pattern: edge.pattern,
            bytes: edge.bytes.0,
        };
        Self {
            format: REQUEST_FORMAT.to_owned(),
            id: request.id.to_string(),
            application_id: request.attempt.application,
            attempt: request.attempt.attempt,
            queue: request.queue.to_string(),
            user: request.user.to_string(),
            framework: request.framework.to_string(),
            recurring_job_key: request.recurring_key.as_ref().map(ToString::to_string),
            policy: request.policy.as_ref().map(ToString::to_string),
            seed: request.seed,
            gang: request.gang,
            when_full: request.when_full,
            am_host: request.am_host.as_ref().map(ToString::to_string),
            input_paths: texts(&request.input_paths),
            constraints: request.constraints.clone(),
            groups: request.groups.iter().map(group).collect(),
            edges: request.edges.iter().map(edge).collect(),
            asks: request.asks.iter().map(AskEntry::of).collect(),
        }
    }

    /// The request that this document says.
    ///
    /// # Errors
    /// All problems at once.
    pub fn to_request(&self) -> Result<HintRequest, Vec<DocumentProblem>> {
        let mut problems = Problems::default();
        problems.format(&self.format, REQUEST_FORMAT);
        problems.name("id", &self.id);
        if self.attempt == 0 {
            problems.add("attempt", "is 0; attempts count from 1");
        }
        let groups = self.core_groups(&mut problems);
        let edges = self.core_edges(&mut problems);
        let asks = self.asks.iter().enumerate().map(|(at, ask)| ask.ask(&format!("asks[{at}]"), &mut problems));
        let asks = asks.collect();
        let input_paths = paths("input_paths", &self.input_paths, &mut problems);
        problems.done()?;
        Ok(HintRequest {
            id: self.id.as_str().into(),
            attempt: AttemptId { application: self.application_id, attempt: self.attempt },
            queue: self.queue.as_str().into(),
            user: self.user.as_str().into(),
            framework: self.framework.as_str().into(),
            groups,
            edges,
            input_paths,
            recurring_key: self.recurring_job_key.as_deref().map(Arc::from),
            constraints: self.constraints.clone(),
            policy: self.policy.as_deref().map(Arc::from),
            seed: self.seed,
            gang: self.gang,
            when_full: self.when_full,
            am_host: self.am_host.as_deref().map(Into::into),
            asks,
            survivors: Vec::new(),
        })
    }

    fn core_groups(&self, problems: &mut Problems) -> Vec<TaskGroup> {
        if self.groups.is_empty() {
            problems.add("groups", "is empty: nothing is asked for");
        }
        let mut names = BTreeMap::new();
        let mut groups = Vec::with_capacity(self.groups.len());
        for (at, entry) in self.groups.iter().enumerate() {
            let field = format!("groups[{at}]");
            problems.name(format_args!("{field}.name"), &entry.name);
            if let Some(other) = names.insert(&entry.name, at) {
                let message = format!("\"{}\" is the name of groups[{other}] as well", entry.name);
                problems.add(format_args!("{field}.name"), message);
            }
            if entry.count == 0 {
                problems.add(format_args!("{field}.count"), "is 0; a group has at least 1 container");
            }
            let position = i32::try_from(at + 1).unwrap_or(i32::MAX);
            groups.push(TaskGroup {
                name: entry.name.as_str().into(),
                role: entry.role.as_str().into(),
                count: entry.count,
                whole: entry.whole,
                size: entry.size.size(&format!("{field}.size"), problems),
                key: SchedulerKey {
                    priority: entry.priority.unwrap_or(position),
                    allocation_request_id: entry.allocation_request_id,
                },
                label: entry.label.as_deref().map(Arc::from),
                input_paths: paths(&format!("{field}.input_paths"), &entry.input_paths, problems),
                constraints: entry.constraints.clone(),
            });
        }
        groups
    }

    fn core_edges(&self, problems: &mut Problems) -> Vec<GroupEdge> {
        let mut total = 0_u64;
        let mut edges = Vec::with_capacity(self.edges.len());
        for (at, entry) in self.edges.iter().enumerate() {
            let [from, to] = [("from", &entry.from), ("to", &entry.to)].map(|(end, name)| {
                let found = self.groups.iter().position(|group| group.name == *name).map(GroupIdx::new);
                if found.is_none() {
                    problems.add(format_args!("edges[{at}].{end}"), format_args!("\"{name}\" is none of `groups`"));
                }
                found
            });
            let (before, bytes) = (total, entry.bytes);
            total = total.saturating_add(bytes);
            if before <= EDGE_BYTES_MAX && total > EDGE_BYTES_MAX {
                let message = format!("{bytes} makes more than {EDGE_BYTES_MAX} bytes in all");
                problems.add(format_args!("edges[{at}].bytes"), message);
            }
            if let (Some(from), Some(to)) = (from, to) {
                edges.push(GroupEdge { from, to, pattern: entry.pattern, bytes: Bytes(bytes) });
            }
        }
        edges
    }
}

impl AskEntry {
    fn of(ask: &Ask) -> Self {
        Self {
            priority: ask.key.priority,
            allocation_request_id: ask.key.allocation_request_id,
            resource_name: ask.resource_name.to_string(),
            count: ask.count,
            relax_locality: ask.relax_locality,
            label: ask.label.to_string(),
            size: Amount::of(&ask.size),
        }
    }

    fn ask(&self, field: &str, problems: &mut Problems) -> Ask {
        problems.name(format_args!("{field}.resource_name"), &self.resource_name);
        let (size_field, priority) = (format!("{field}.size"), self.priority);
        // A row of count 0 takes an earlier one back, with or without a size.
        let size = match self.count {
            0 => self.size.named(&size_field, problems),
            _ => self.size.size(&size_field, problems),
        };
        Ask {
            key: SchedulerKey { priority, allocation_request_id: self.allocation_request_id },
            resource_name: self.resource_name.as_str().into(),
            size,
            count: self.count,
            relax_locality: self.relax_locality,
            label: self.label.as_str().into(),
        }
    }
}

fn paths(field: &str, paths: &[String], problems: &mut Problems) -> Vec<Arc<str>> {
    for (at, path) in paths.iter().enumerate() {
        if !path.starts_with('/') && !path.contains("://") {
            problems.add(format_args!("{field}[{at}]"), format_args!("\"{path}\" is not absolute"));
        }
    }
    paths.iter().map(|path| path.as_str().into()).collect()
}

/// The id of a request whose document names none.
pub const DEFAULT_ID: &str = "request";

/// A number, or its digits as text: answers have seeds as text, for JSON's numbers lose some of their 64 bits on the way.
fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    struct Seed;

    impl Visitor<'_> for Seed {
        type Value = Option<u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number from 0 to 18446744073709551615, or its digits as text")
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(Some(value))
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
            u64::try_from(value).map(Some).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
        }

        fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
            let digits = !value.is_empty() && value.bytes().all(|letter| letter.is_ascii_digit());
            let number = digits.then(|| value.parse().ok()).flatten();
            number.map(Some).ok_or_else(|| E::invalid_value(Unexpected::Str(value), &self))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Seed)
}

fn default_id() -> String {
    DEFAULT_ID.to_owned()
}

const fn default_application() -> ApplicationId {
    ApplicationId { cluster_timestamp: 1, sequence: 1 }
}

const fn first_attempt() -> u32 {
    1
}

fn default_queue() -> String {
    "default".to_owned()
}

const fn yes() -> bool {
    true
}
