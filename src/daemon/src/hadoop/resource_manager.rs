//! The ResourceManager's REST interface (`/ws/v1/cluster`), read; no I/O.
//!
//! Fields that are not needed are not looked at. An empty list is `{}`, `null` or `""`, and a list of one may come without
//! its brackets, as Hadoop's versions have it.

use serde::Deserialize;
use serde_json::Value;

/// Whether a ResourceManager is the active one, and since when.
pub const INFO: &str = "/ws/v1/cluster/info";

/// Nodes that are there: others would come with all that ever were.
pub const NODES: &str = "/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING,UNHEALTHY";

/// A question in somebody's name.
#[must_use]
pub fn with_user(path: &str, user: &str) -> String {
    match user {
        "" => path.to_owned(),
        user => format!("{path}{}user.name={user}", if path.contains('?') { '&' } else { '?' }),
    }
}

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no JSON: HTML of a proxy or a login page, or half an answer.
    #[error("the answer is no JSON ({why}); it begins with {start:?}")]
    Json {
        /// Where it stops to be.
        why: String,
        /// The first characters.
        start: String,
    },
    /// It is JSON of another shape.
    #[error("the answer is not as Hadoop's: {0}")]
    Shape(String),
    /// It is of the right shape, and says what can't be.
    #[error("the answer says what can't be: {0}")]
    Value(String),
    /// It does not lead.
    #[error("it is {0}, not ACTIVE")]
    NotActive(String),
}

/// The life of a ResourceManager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterInfo {
    /// When it started, ms: another number is another life, or another ResourceManager.
    pub id: i64,
}

/// Which ResourceManager leads, by its place in the options, and its life.
pub(super) type Active = Option<(usize, ClusterInfo)>;

/// A node as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its name as YARN has it.
    pub host: String,
    /// Of its NodeManager.
    pub port: i32,
    /// As YARN has it.
    pub rack: String,
    /// YARN's word.
    pub state: String,
    /// All that it has.
    pub total: Amounts,
    /// What was given away of it.
    pub used: Amounts,
    /// Its partition.
    pub labels: Vec<String>,
    /// Attributes by `prefix/name`.
    pub attributes: Vec<(String, String)>,
}

/// Amounts of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amounts {
    /// MB.
    pub memory_mb: i64,
    /// vcores.
    pub vcores: i64,
    /// Others, by name.
    pub others: Vec<OtherAmount>,
}

/// An amount of a kind that only some clusters have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherAmount {
    /// The kind, as `yarn.io/gpu`.
    pub name: String,
    /// How much.
    pub value: i64,
    /// In which unit; empty: pieces.
    pub units: String,
}

/// The answer to [`INFO`].
///
/// # Errors
/// [`BadAnswer`], of one that does not lead among them.
pub fn info(body: &[u8]) -> Result<ClusterInfo, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Info {
        id: i64,
        ha_state: Option<String>,
    }
    let answer = json(body)?;
    let info = answer.get("clusterInfo").ok_or_else(|| BadAnswer::Shape("no clusterInfo".to_owned()))?;
    let info = Info::deserialize(info).map_err(shape)?;
    // One that knows no high availability says nothing, and leads.
    match info.ha_state {
        Some(state) if state != "ACTIVE" => Err(BadAnswer::NotActive(state)),
        _ => Ok(ClusterInfo { id: info.id }),
    }
}

/// The answer to [`NODES`].
///
/// # Errors
/// [`BadAnswer`], for the whole answer if one node of it makes no sense.
pub fn nodes(body: &[u8]) -> Result<Vec<NodeSeen>, BadAnswer> {
    let answer = json(body)?;
    let nodes = answer.get("nodes").ok_or_else(|| BadAnswer::Shape("no nodes".to_owned()))?;
    list(nodes, "node")?.into_iter().map(node).collect()
}

fn node(value: &Value) -> Result<NodeSeen, BadAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Node {
        id: String,
        rack: Option<String>,
        state: String,
        node_host_name: Option<String>,
        #[serde(default)]
        used_memory_mb: Option<i64>,
        #[serde(rename = "usedMemoryMB")]
        used_memory: Option<i64>,
        #[serde(rename = "availMemoryMB")]
        free_memory: Option<i64>,
        used_virtual_cores: Option<i64>,
        available_virtual_cores: Option<i64>,
        total_resource: Option<Value>,
        used_resource: Option<Value>,
        #[serde(default)]
        node_labels: Value,
        #[serde(default)]
        node_attributes_info: Value,
    }
    let node = Node::deserialize(value).map_err(shape)?;
    let (host, port) = node.id.rsplit_once(':').unwrap_or((&node.id, ""));
    let port = port.parse().unwrap_or(0);
    let host = node.node_host_name.filter(|name| !name.is_empty()).unwrap_or_else(|| host.to_owned());
    let plain = |memory: Option<i64>, vcores: Option<i64>| match memory {
        Some(memory_mb) => Ok(Amounts { memory_mb, vcores: vcores.unwrap_or(0), others: Vec::new() }),
        None => Err(BadAnswer::Shape(format!("node \"{host}\" does not say what it has"))),
    };
    let used_memory = node.used_memory.or(node.used_memory_mb);
    let used = match &node.used_resource {
        Some(found) => amounts(found)?,
        None => plain(used_memory, node.used_virtual_cores)?,
    };
    let sum = |a: Option<i64>, b: Option<i64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
    let total = match &node.total_resource {
        Some(found) => amounts(found)?,
        None => plain(sum(used_memory, node.free_memory), sum(node.used_virtual_cores, node.available_virtual_cores))?,
    };
    let labels = list(&node.node_labels, "nodeLabels")?;
    let labels = labels.into_iter().filter_map(Value::as_str).filter(|label| !label.is_empty());
    let mut seen = NodeSeen {
        port,
        rack: node.rack.unwrap_or_default(),
        state: node.state,
        total,
        used,
        labels: labels.map(str::to_owned).collect(),
        attributes: attributes(&node.node_attributes_info)?,
        host,
    };
    seen.labels.sort_unstable();
    seen.attributes.sort_unstable();
    Ok(seen)
}

fn amounts(value: &Value) -> Result<Amounts, BadAnswer> {
    #[derive(Deserialize)]
    struct Row {
        name: String,
        value: i64,
        #[serde(default)]
        units: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Known {
        memory: i64,
        #[serde(rename = "vCores")]
        vcores: i64,
        #[serde(default)]
        resource_informations: Value,
    }
    let known = Known::deserialize(value).map_err(shape)?;
    let mut others = Vec::new();
    for row in list(&known.resource_informations, "resourceInformation")? {
        let row = Row::deserialize(row).map_err(shape)?;
        if row.name != "memory-mb" && row.name != "vcores" {
            others.push(OtherAmount { name: row.name, value: row.value, units: row.units });
        }
    }
    others.sort_unstable();
    Ok(Amounts { memory_mb: known.memory, vcores: known.vcores, others })
}

fn attributes(value: &Value) -> Result<Vec<(String, String)>, BadAnswer> {
    #[derive(Deserialize)]
    struct Row {
        #[serde(default)]
        prefix: String,
        name: String,
        value: Option<String>,
    }
    let rows = list(value, "nodeAttributeInfo")?.into_iter().map(|row| Row::deserialize(row).map_err(shape));
    rows.map(|row| {
        let row = row?;
        let name = if row.prefix.is_empty() { row.name } else { format!("{}/{}", row.prefix, row.name) };
        Ok((name, row.value.unwrap_or_default()))
    })
    .collect()
}

/// The rows of a list: of an array, of the array or the single row under `name`, or none.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> Result<Vec<&'a Value>, BadAnswer> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::Array(rows) => Ok(rows.iter().collect()),
        Value::Object(fields) => match fields.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(rows)) => Ok(rows.iter().collect()),
            Some(row) => Ok(vec![row]),
        },
        _ => Err(BadAnswer::Shape(format!("{name}: neither rows nor nothing"))),
    }
}

/// Rows of a list that make sense, and those that were left out because they make none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T> {
    /// In the order of the list.
    pub rows: Vec<T>,
    /// The others.
    pub left_out: Vec<RowLeftOut>,
}

/// A row that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLeftOut {
    /// Its id, or how it begins.
    pub row: String,
    /// What is wrong with it.
    pub why: BadAnswer,
}

/// Reads row by row; `None`: it is none of those that are looked for.
///
/// # Errors
/// [`BadAnswer`] where no row is of the right shape: then the answer is another one.
pub(super) fn each_row<T>(
    found: &[&Value],
    read: impl Fn(&Value) -> Result<Option<T>, BadAnswer>,
) -> Result<Rows<T>, BadAnswer> {
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for row in found {
        match read(row) {
            Ok(read) => rows.extend(read),
            Err(why) => left_out.push(RowLeftOut { row: name_of(row), why }),
        }
    }
    let misshapen = |row: &RowLeftOut| matches!(row.why, BadAnswer::Shape(_));
    match left_out.first() {
        Some(first) if left_out.len() == found.len() && left_out.iter().all(misshapen) => Err(first.why.clone()),
        _ => Ok(Rows { rows, left_out }),
    }
}

fn name_of(row: &Value) -> String {
    let id = row.get("id").and_then(Value::as_str).map_or_else(|| row.to_string(), str::to_owned);
    id.chars().take(SHOWN).collect()
}

/// A whole number of at most `most`; `None`: it is not told, or zero.
///
/// # Errors
/// [`BadAnswer::Value`], which names what is told.
pub(super) fn told(of: &Value, field: &str, most: u64) -> Result<Option<u64>, BadAnswer> {
    match of.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|&value| value <= most) {
            Some(value) => Ok(Some(value).filter(|&value| value > 0)),
            None => Err(BadAnswer::Value(shown(of, field))),
        },
    }
}

pub(super) fn json(body: &[u8]) -> Result<Value, BadAnswer> {
    let start = || String::from_utf8_lossy(body).chars().take(40).collect();
    serde_json::from_slice(body).map_err(|error| BadAnswer::Json { why: error.to_string(), start: start() })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn shape(error: serde_json::Error) -> BadAnswer {
    BadAnswer::Shape(error.to_string())
}

/// Characters that are shown of what is no number.
pub(super) const SHOWN: usize = 40;

/// A whole number of at most `most`; what is none is named.
pub(super) fn number(of: &Value, field: &str, most: u64) -> Result<u64, BadAnswer> {
    of.get(field).and_then(Value::as_u64).filter(|&value| value <= most).ok_or_else(|| wrong(of, field))
}

/// Names the value, of which a stranger may have made a long one.
pub(super) fn wrong(of: &Value, field: &str) -> BadAnswer {
    BadAnswer::Shape(shown(of, field))
}

fn shown(of: &Value, field: &str) -> String {
    let shown: String = match of.get(field) {
        None => "missing".to_owned(),
        Some(value) => value.to_string().chars().take(SHOWN).collect(),
    };
    format!("{field}: {shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Hadoop 3.4 answers, shortened to what is read and a few fields beside.
    const NODE: &str = r#"{"rack":"/rack1","state":"RUNNING","id":"n1:45454","nodeHostName":"n1",
        "nodeHTTPAddress":"n1:8042","lastHealthUpdate":1700000000000,"version":"3.4.1","healthReport":"",
        "numContainers":2,"usedMemoryMB":2048,"availMemoryMB":6144,"usedVirtualCores":2,"availableVirtualCores":6,
        "nodeLabels":["gpu"],"resourceUtilization":{"nodeCPUUsage":0.5},
        "usedResource":{"memory":2048,"vCores":2,"resourceInformations":{"resourceInformation":[
          {"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":2048},
          {"name":"vcores","units":"","value":2},{"name":"yarn.io/gpu","units":"","value":1}]}},
        "totalResource":{"memory":8192,"vCores":8,"resourceInformations":{"resourceInformation":[
          {"name":"memory-mb","units":"Mi","value":8192},{"name":"vcores","units":"","value":8},
          {"name":"yarn.io/gpu","units":"","value":4}]}},
        "nodeAttributesInfo":{"nodeAttributeInfo":[{"prefix":"rm.yarn.io","name":"os","type":"STRING","value":"linux"}]}}"#;

    fn answer(nodes: &str) -> Result<Vec<NodeSeen>, BadAnswer> {
        nodes_of(&format!("{{\"nodes\":{nodes}}}"))
    }

    fn nodes_of(text: &str) -> Result<Vec<NodeSeen>, BadAnswer> {
        nodes(text.as_bytes())
    }

    #[test]
    fn a_node_is_read_with_all_kinds_of_resources() {
        let found = answer(&format!("{{\"node\":[{NODE}]}}")).unwrap();
        let gpu = |value| vec![OtherAmount { name: "yarn.io/gpu".to_owned(), value, units: String::new() }];
        let expected = NodeSeen {
            host: "n1".into(),
            port: 45_454,
            rack: "/rack1".into(),
            state: "RUNNING".into(),
            total: Amounts { memory_mb: 8_192, vcores: 8, others: gpu(4) },
            used: Amounts { memory_mb: 2_048, vcores: 2, others: gpu(1) },
            labels: vec!["gpu".into()],
            attributes: vec![("rm.yarn.io/os".into(), "linux".into())],
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn older_nodes_say_what_they_have_in_four_numbers() {
        let old = r#"{"rack":"/r","state":"UNHEALTHY","id":"n2:1","nodeHostName":"n2","usedMemoryMB":1024,
            "availMemoryMB":3072,"usedVirtualCores":1,"availableVirtualCores":3}"#;
        let found = answer(&format!("{{\"node\":{old}}}")).unwrap().remove(0);
        assert_eq!(found.total, Amounts { memory_mb: 4_096, vcores: 4, others: vec![] }, "a row without brackets");
        assert_eq!(found.used, Amounts { memory_mb: 1_024, vcores: 1, others: vec![] });
        let nothing = answer(r#"{"node":[{"rack":"/r","state":"RUNNING","id":"n2:1"}]}"#).unwrap_err();
        assert!(nothing.to_string().contains("node \"n2\" does not say what it has"), "{nothing}");
    }

    #[test]
    fn every_shape_of_an_empty_list_is_one() {
        for empty in ["{}", "null", "\"\"", "[]", "{\"node\":[]}", "{\"node\":null}"] {
            assert_eq!(answer(empty), Ok(vec![]), "{empty}");
        }
        assert!(answer("7").unwrap_err().to_string().contains("neither rows nor nothing"));
    }

    #[test]
    fn what_is_no_answer_is_said_with_its_beginning() {
        let html = nodes_of("<!DOCTYPE html><title>Login</title>").unwrap_err().to_string();
        assert!(html.contains("no JSON") && html.contains("<!DOCTYPE html>"), "{html}");
        let half = format!("{{\"nodes\":{{\"node\":[{}", &NODE[..40]);
        assert!(nodes_of(&half).unwrap_err().to_string().contains("EOF"), "half an answer is none");
        assert!(matches!(nodes_of("{}"), Err(BadAnswer::Shape(_))));
        assert!(matches!(nodes_of("There is no active RM right now."), Err(BadAnswer::Json { .. })));
    }

    #[test]
    fn only_an_active_one_is_believed() {
        let of = |state: &str| info(format!("{{\"clusterInfo\":{{\"id\":17{state}}}}}").as_bytes());
        assert_eq!(of(",\"haState\":\"ACTIVE\""), Ok(ClusterInfo { id: 17 }));
        assert_eq!(of(""), Ok(ClusterInfo { id: 17 }), "without high availability");
        assert_eq!(of(",\"haState\":\"STANDBY\""), Err(BadAnswer::NotActive("STANDBY".into())));
        assert!(matches!(info(b"{}"), Err(BadAnswer::Shape(_))));
    }
}
