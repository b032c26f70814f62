//! What a NameNode's `/jmx` says of slow DataNodes; no I/O.
//!
//! The bean `NameNodeStatus` has `SlowPeersReport`, which is JSON in a string: a row for each slow DataNode, with the latencies that
//! each reporter has seen, in milliseconds (Hadoop 3.3.6 and 3.4), or with the reporters' names alone (before). It is null where
//! `dfs.datanode.peer.stats.enabled` is false, and is not there in older ones still. The NameNode names the five that most others
//! report (`dfs.datanode.max.nodes.to.report`), each for up to three times `dfs.datanode.outliers.report.interval` (30 minutes), and
//! says of none when it was reported.
//!
//! Both ends are addresses with ports, the slow one's of its web server, the reporter's of its IPC server. `LiveNodes` of the bean
//! `NameNodeInfo` says which host has which address.

use hintd_model::cluster::NodeStatics;
use hintd_model::network::latency::slow_peers::{MOST_PACKET, MOST_REPORTS, PacketTimes};
use hintd_model::units::{HostName, Micros};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where the report is, and whether the NameNode leads.
pub const STATUS: &str = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus";

/// Which host has which address: some 600 bytes a DataNode.
pub const LIVE_NODES: &str = "/jmx?get=Hadoop:service=NameNode,name=NameNodeInfo::LiveNodes";

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no JSON, half of it, or JSON of another shape.
    #[error("{what} is not as a NameNode's: {why}")]
    Json {
        /// The answer, or an attribute in it.
        what: &'static str,
        /// What is wrong, and where.
        why: String,
    },
    /// It has no such bean: it is no NameNode.
    #[error("the answer has no bean {0}")]
    NoBean(&'static str),
    /// It does not lead: DataNodes tell it too, but the one that leads is asked.
    #[error("it is {0}, not active")]
    NotActive(String),
}

/// What a NameNode says.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// It has no such attribute: an older Hadoop.
    Absent,
    /// Statistics of peers are off.
    Off,
    /// Rows, of which some may be left out.
    On(Rows),
}

/// Rows of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Those that can be.
    pub taken: Vec<Row>,
    /// Those that can't, by reason, and the first of each with what is wrong.
    pub left_out: BTreeMap<LeftOut, (u64, String)>,
}

/// One DataNode's word on another, in addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Who is slow: an address with a port.
    pub slow: String,
    /// Who says so: the same.
    pub reporter: String,
    /// Times of packets, where they are told.
    pub packet: Option<PacketTimes>,
}

/// Why a row is left out: a label of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// It is not as Hadoop's rows are.
    Malformed,
    /// A latency that can be none.
    BadNumber,
    /// What was reported is no more than the median.
    NotSlow,
    /// A host that YARN does not know.
    UnknownHost,
    /// A host reports itself.
    Itself,
    /// One too many.
    TooMany,
}

impl LeftOut {
    /// Its label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::BadNumber => "bad_number",
            Self::NotSlow => "not_slow",
            Self::UnknownHost => "unknown_host",
            Self::Itself => "itself",
            Self::TooMany => "too_many",
        }
    }
}

impl Rows {
    fn leave_out(&mut self, why: LeftOut, said: impl FnOnce() -> String) {
        self.left_out.entry(why).or_insert_with(|| (0, said())).0 += 1;
    }
}

/// The answer to [`STATUS`].
///
/// # Errors
/// [`BadAnswer`].
pub fn report(body: &[u8]) -> Result<Report, BadAnswer> {
    let bean = bean(body, "NameNodeStatus")?;
    match bean.get("State").and_then(Value::as_str) {
        None | Some("active") => {}
        Some(other) => return Err(BadAnswer::NotActive(other.chars().take(40).collect())),
    }
    match bean.get("SlowPeersReport") {
        None => Ok(Report::Absent),
        Some(Value::Null) => Ok(Report::Off),
        Some(Value::String(text)) => Ok(Report::On(rows(json("SlowPeersReport", text.as_bytes())?))),
        Some(other) => Err(BadAnswer::Json { what: "SlowPeersReport", why: format!("{} is no text", kind(other)) }),
    }
}

fn rows(peers: Vec<Value>) -> Rows {
    let mut rows = Rows::default();
    for peer in peers {
        match serde_json::from_value::<Peer>(peer) {
            Ok(Peer { slow, latencies, reporters }) => {
                latencies.into_iter().for_each(|said| add(&mut rows, &slow, said));
                let unnumbered = |reporter| serde_json::json!({ "ReportingNode": reporter });
                reporters.into_iter().for_each(|reporter| add(&mut rows, &slow, unnumbered(reporter)));
            }
            Err(error) => rows.leave_out(LeftOut::Malformed, || format!("a slow peer is not as Hadoop's: {error}")),
        }
    }
    rows
}

fn add(rows: &mut Rows, slow: &str, said: Value) {
    let said = match serde_json::from_value::<Said>(said) {
        Ok(said) => said,
        Err(error) => {
            return rows.leave_out(LeftOut::Malformed, || format!("a report on {slow} is not as Hadoop's: {error}"));
        }
    };
    let Said { reporter, reported, median } = said;
    let packet = match packet(&reported, &median) {
        Ok(packet) => packet,
        Err((why, what)) => return rows.leave_out(why, || format!("{reporter} on {slow}: {what}")),
    };
    if rows.taken.len() >= MOST_REPORTS {
        return rows
            .leave_out(LeftOut::TooMany, || format!("{reporter} on {slow}: {MOST_REPORTS} reports are kept at most"));
    }
    rows.taken.push(Row { slow: slow.to_owned(), reporter, packet });
}

/// Times of packets; `None`: one of the two is not told.
fn packet(reported: &Value, median: &Value) -> Result<Option<PacketTimes>, (LeftOut, String)> {
    let (reported, median) = (micros("ReportedLatency", reported)?, micros("MedianLatency", median)?);
    let (Some(reported), Some(median)) = (reported, median) else { return Ok(None) };
    if reported <= median {
        let [reported, median] = [reported, median].map(|time| time.0 as f64 / 1e3);
        return Err((LeftOut::NotSlow, format!("{reported} ms is not above the median of {median} ms")));
    }
    Ok(Some(PacketTimes { reported, median }))
}

/// Milliseconds of a double, which is text where it is no number: `"NaN"`.
fn micros(what: &str, said: &Value) -> Result<Option<Micros>, (LeftOut, String)> {
    let most_ms = MOST_PACKET.0 as f64 / 1e3;
    match (said, said.as_f64()) {
        (Value::Null, _) => Ok(None),
        (_, Some(ms)) if (0.0..=most_ms).contains(&ms) => Ok(Some(Micros((ms * 1e3).round() as u64))),
        _ => Err((LeftOut::BadNumber, format!("{what} {said} is not within 0 to {most_ms} ms"))),
    }
}

/// A slow peer, as either version of Hadoop has it.
#[derive(Deserialize)]
struct Peer {
    #[serde(rename = "SlowNode")]
    slow: String,
    #[serde(rename = "SlowPeerLatencyWithReportingNodes", default)]
    latencies: Vec<Value>,
    #[serde(rename = "ReportingNodes", default)]
    reporters: Vec<Value>,
}

/// What one reporter says of it.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "ReportingNode")]
    reporter: String,
    #[serde(rename = "ReportedLatency", default)]
    reported: Value,
    #[serde(rename = "MedianLatency", default)]
    median: Value,
}

/// Hosts by their addresses, as the answer to [`LIVE_NODES`] has them.
///
/// # Errors
/// [`BadAnswer`].
pub fn live_nodes(body: &[u8]) -> Result<BTreeMap<String, String>, BadAnswer> {
    let bean = bean(body, "NameNodeInfo")?;
    let Some(text) = bean.get("LiveNodes").and_then(Value::as_str) else {
        return Err(BadAnswer::Json { what: "LiveNodes", why: "there is no text of that name".to_owned() });
    };
    let nodes: BTreeMap<String, Value> = json("LiveNodes", text.as_bytes())?;
    let address = |(name, node): (String, Value)| {
        let address = ["xferaddr", "infoAddr"].into_iter().find_map(|key| node.get(key)?.as_str())?;
        Some((without_port(address).to_owned(), without_port(&name).to_owned()))
    };
    Ok(nodes.into_iter().filter_map(address).collect())
}

/// Which hosts of YARN a report is of.
#[derive(Debug)]
pub struct Hosts<'a> {
    /// As YARN has them.
    pub nodes: &'a NodeStatics,
    /// Names by address, as HDFS has them.
    pub names: &'a BTreeMap<String, String>,
}

/// A row of two hosts that YARN knows.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRow {
    /// Who is slow.
    pub slow: HostName,
    /// Who says so.
    pub reporter: HostName,
    /// What it measured.
    pub packet: Option<PacketTimes>,
}

impl Hosts<'_> {
    /// The host that YARN knows by the address, by the name that HDFS has for it, or by the first part of that.
    #[must_use]
    pub fn find(&self, address: &str) -> Option<HostName> {
        let address = without_port(address);
        let name = self.names.get(address).map_or("", String::as_str);
        let first = |name: &str| match name.parse::<std::net::IpAddr>() {
            Ok(_) => String::new(),
            Err(_) => name.split('.').next().unwrap_or_default().to_owned(),
        };
        let spellings = [address.to_owned(), name.to_owned(), first(address), first(name)];
        let found = spellings.iter().filter(|name| !name.is_empty()).find_map(|name| self.nodes.find(name));
        found.map(|node| self.nodes.host[node.at()].clone())
    }

    /// Addresses of these rows that no name is known for.
    #[must_use]
    pub fn unknown<'r>(&self, rows: &'r [Row]) -> BTreeSet<&'r str> {
        let all = rows.iter().flat_map(|row| [row.slow.as_str(), row.reporter.as_str()]);
        all.map(without_port).filter(|address| self.find(address).is_none()).collect()
    }

    /// Rows of hosts, each pair once; others are left out.
    #[must_use]
    pub fn named(&self, rows: &mut Rows) -> Vec<NamedRow> {
        let mut seen = BTreeSet::new();
        let mut named = Vec::new();
        for Row { slow, reporter, packet } in std::mem::take(&mut rows.taken) {
            let (Some(of), Some(by)) = (self.find(&slow), self.find(&reporter)) else {
                let unknown = if self.find(&slow).is_none() { &slow } else { &reporter };
                rows.leave_out(LeftOut::UnknownHost, || format!("\"{unknown}\" belongs to no node of YARN"));
                continue;
            };
            if of == by {
                rows.leave_out(LeftOut::Itself, || format!("\"{of}\" reports itself"));
            } else if seen.insert((of.clone(), by.clone())) {
                named.push(NamedRow { slow: of, reporter: by, packet });
            }
        }
        named
    }
}

/// `10.0.0.1:9866`, `[2001:db8::1]:9866` and `worker1:9866` without what follows.
pub(super) fn without_port(address: &str) -> &str {
    let bare = match address.rsplit_once(':') {
        // An IPv6 address without brackets has no port.
        Some((host, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => {
            if host.contains(':') && !host.starts_with('[') && address.parse::<std::net::Ipv6Addr>().is_ok() {
                address
            } else {
                host
            }
        }
        _ => address,
    };
    bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare)
}

/// The bean of this name.
fn bean(body: &[u8], name: &'static str) -> Result<serde_json::Map<String, Value>, BadAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        beans: Vec<serde_json::Map<String, Value>>,
    }
    let answer: Answer = json("the answer", body)?;
    let is_it = |bean: &serde_json::Map<String, Value>| {
        bean.get("name").and_then(Value::as_str).is_some_and(|found| found.ends_with(&format!("name={name}")))
    };
    answer.beans.into_iter().find(is_it).ok_or(BadAnswer::NoBean(name))
}

fn json<T: DeserializeOwned>(what: &'static str, text: &[u8]) -> Result<T, BadAnswer> {
    serde_json::from_slice(text).map_err(|error| BadAnswer::Json { what, why: error.to_string() })
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
