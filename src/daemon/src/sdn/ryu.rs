//! Ryu 4.34's JSON: `rest_topology`, `ofctl_rest` and `ws_topology`, read and written; no I/O.
//!
//! Shapes are those recorded from a real controller (docs/sdn.md). Fields that are not needed are not looked at;
//! a missing or malformed one that is needed refuses the whole answer, so that half a picture is never taken for a
//! whole one.

use super::model::{BadAddress, Dpid, Entry, EntryFound, Event, HostSeen, Mac, Match, Output};
use super::model::{PortAt, PortCount, PortSeen};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no JSON of the wanted shape.
    #[error("the answer is not as Ryu's: {0}")]
    Shape(String),
    /// An address in it is none.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// It is about another switch.
    #[error("the answer says nothing of switch {0}")]
    OtherSwitch(Dpid),
    /// It knows no switch at all, where some were known.
    #[error("the controller knows no switch any more; {0} were known")]
    Empty(usize),
}

#[derive(Deserialize)]
struct RawPort {
    dpid: String,
    port_no: String,
}

#[derive(Deserialize)]
struct RawSwitch {
    dpid: String,
}

#[derive(Deserialize)]
struct RawLink {
    src: RawPort,
    dst: RawPort,
}

#[derive(Deserialize)]
struct RawHost {
    mac: String,
    #[serde(default)]
    ipv4: Vec<String>,
    port: RawPort,
}

#[derive(Deserialize)]
struct RawDescription {
    port_no: Value,
    config: u32,
    state: u32,
    #[serde(default)]
    curr_speed: u64,
}

#[derive(Deserialize)]
struct RawCount {
    port_no: Value,
    rx_bytes: u64,
    tx_bytes: u64,
    duration_sec: u64,
    #[serde(default)]
    duration_nsec: u32,
}

#[derive(Deserialize)]
struct RawEntry {
    #[serde(default)]
    table_id: u8,
    cookie: u64,
    priority: u16,
    #[serde(rename = "match")]
    matches: Value,
    actions: Vec<Value>,
}

#[derive(Deserialize)]
struct RawCall {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Vec<Value>,
}

/// `OFPPC_PORT_DOWN`: switched off.
const CONFIG_DOWN: u32 = 1;
/// `OFPPS_LINK_DOWN`: no carrier.
const STATE_DOWN: u32 = 1;

/// Datapath ids of `GET /v1.0/topology/switches`.
///
/// # Errors
/// [`BadAnswer`].
pub fn switches(body: &[u8]) -> Result<BTreeSet<Dpid>, BadAnswer> {
    let raw: Vec<RawSwitch> = read(body)?;
    raw.iter().map(|switch| Ok(switch.dpid.parse()?)).collect()
}

/// Directed links of `GET /v1.0/topology/links`: sender's port, receiver's port.
///
/// # Errors
/// [`BadAnswer`].
pub fn links(body: &[u8]) -> Result<BTreeSet<(PortAt, PortAt)>, BadAnswer> {
    let raw: Vec<RawLink> = read(body)?;
    raw.iter().map(link).collect()
}

/// Hosts of `GET /v1.0/topology/hosts`.
///
/// # Errors
/// [`BadAnswer`].
pub fn hosts(body: &[u8]) -> Result<Vec<HostSeen>, BadAnswer> {
    let raw: Vec<RawHost> = read(body)?;
    raw.iter().map(host).collect()
}

/// Ports of `GET /stats/portdesc/<dpid>`; those without a number (`LOCAL`) are left out.
///
/// # Errors
/// [`BadAnswer`].
pub fn ports(switch: Dpid, body: &[u8]) -> Result<Vec<PortSeen>, BadAnswer> {
    let raw: Vec<RawDescription> = of_switch(switch, body)?;
    let numbered = raw.iter().filter_map(|port| Some((number(&port.port_no)?, port)));
    let seen = numbered.map(|(number, port)| PortSeen {
        port: number,
        up: port.config & CONFIG_DOWN == 0 && port.state & STATE_DOWN == 0,
        kbit_per_s: port.curr_speed,
    });
    Ok(seen.collect())
}

/// Counters of `GET /stats/port/<dpid>`; those without a number (`LOCAL`) are left out.
///
/// # Errors
/// [`BadAnswer`].
pub fn counts(switch: Dpid, body: &[u8]) -> Result<Vec<PortCount>, BadAnswer> {
    let raw: Vec<RawCount> = of_switch(switch, body)?;
    let numbered = raw.iter().filter_map(|port| Some((number(&port.port_no)?, port)));
    let counts = numbered.map(|(number, port)| PortCount {
        port: number,
        rx_bytes: port.rx_bytes,
        tx_bytes: port.tx_bytes,
        counted: Duration::from_secs(port.duration_sec) + Duration::from_nanos(port.duration_nsec.into()),
    });
    Ok(counts.collect())
}

/// Entries in table 0 of `/stats/flow/<dpid>`.
///
/// # Errors
/// [`BadAnswer`].
pub fn entries(switch: Dpid, body: &[u8]) -> Result<Vec<EntryFound>, BadAnswer> {
    let raw: Vec<RawEntry> = of_switch(switch, body)?;
    let found = raw.into_iter().filter(|entry| entry.table_id == 0).map(|entry| EntryFound {
        cookie: entry.cookie,
        priority: entry.priority,
        matches: matches(&entry.matches),
        outputs: entry.actions.iter().map(output).collect(),
        raw: entry.matches,
    });
    Ok(found.collect())
}

/// The body that asks `/stats/flow/<dpid>` for entries whose cookie is `cookie` under `mask`.
#[must_use]
pub fn entries_wanted(cookie: u64, mask: u64) -> Value {
    json!({ "cookie": cookie, "cookie_mask": mask })
}

/// The body of `/stats/flowentry/add`, which also replaces an entry of the same priority and match.
#[must_use]
pub fn add(switch: Dpid, entry: &Entry) -> Value {
    let actions: Vec<Value> = entry
        .outputs
        .iter()
        .map(|output| match output {
            Output::Port(port) => json!({ "type": "OUTPUT", "port": port }),
            Output::Controller => json!({ "type": "OUTPUT", "port": "CONTROLLER" }),
        })
        .collect();
    json!({
        "dpid": switch.0,
        "table_id": 0,
        "cookie": entry.cookie,
        "priority": entry.priority,
        "match": match_json(&entry.matches),
        "actions": actions,
    })
}

/// The body of `/stats/flowentry/delete_strict`.
#[must_use]
pub fn remove(switch: Dpid, priority: u16, matches: &Value) -> Value {
    json!({ "dpid": switch.0, "table_id": 0, "priority": priority, "match": matches })
}

/// A match as `ofctl_rest` takes it.
#[must_use]
pub fn match_json(matches: &Match) -> Value {
    match matches.src {
        Some(src) => json!({ "eth_src": src.to_string(), "eth_dst": matches.dst.to_string() }),
        None => json!({ "eth_dst": matches.dst.to_string() }),
    }
}

/// A call that came over the websocket, and the answer that Ryu waits for.
///
/// # Errors
/// [`BadAnswer`]; an event with wrong parameters still has its answer, so that Ryu does not wait for ever.
pub fn call(text: &str) -> Result<(Result<Event, BadAnswer>, String), BadAnswer> {
    let call: RawCall = read(text.as_bytes())?;
    let answer = json!({ "jsonrpc": "2.0", "id": call.id, "result": "" }).to_string();
    Ok((event(&call.method, call.params.into_iter().next().unwrap_or_default()), answer))
}

fn event(method: &str, subject: Value) -> Result<Event, BadAnswer> {
    Ok(match method {
        "event_link_add" => {
            let (src, dst) = link(&of_value(subject)?)?;
            Event::LinkAdd(src, dst)
        }
        "event_link_delete" => {
            let (src, dst) = link(&of_value(subject)?)?;
            Event::LinkDelete(src, dst)
        }
        "event_switch_enter" => Event::SwitchEnter(of_value::<RawSwitch>(subject)?.dpid.parse()?),
        "event_switch_leave" => Event::SwitchLeave(of_value::<RawSwitch>(subject)?.dpid.parse()?),
        "event_host_add" => Event::HostAdd(host(&of_value(subject)?)?),
        other => Event::Other(other.to_owned()),
    })
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, BadAnswer> {
    serde_json::from_slice(body).map_err(|error| BadAnswer::Shape(error.to_string()))
}

fn of_value<T: for<'v> Deserialize<'v>>(value: Value) -> Result<T, BadAnswer> {
    serde_json::from_value(value).map_err(|error| BadAnswer::Shape(error.to_string()))
}

/// What stands under the switch's decimal id.
fn of_switch<T: for<'v> Deserialize<'v>>(switch: Dpid, body: &[u8]) -> Result<Vec<T>, BadAnswer> {
    let mut by_switch: BTreeMap<String, Vec<T>> = read(body)?;
    by_switch.remove(&switch.0.to_string()).ok_or(BadAnswer::OtherSwitch(switch))
}

fn port(raw: &RawPort) -> Result<PortAt, BadAnswer> {
    let Dpid(number) = raw.port_no.parse()?;
    let number = u32::try_from(number).map_err(|_| BadAnswer::Shape(format!("port {} is no port", raw.port_no)))?;
    Ok(PortAt { switch: raw.dpid.parse()?, port: number })
}

fn link(raw: &RawLink) -> Result<(PortAt, PortAt), BadAnswer> {
    Ok((port(&raw.src)?, port(&raw.dst)?))
}

fn host(raw: &RawHost) -> Result<HostSeen, BadAnswer> {
    let addresses = raw.ipv4.iter().filter_map(|address| address.parse().ok()).collect();
    Ok(HostSeen { mac: raw.mac.parse()?, addresses, at: port(&raw.port)? })
}

/// A port's number: a number, or a word for one of OpenFlow's own.
fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// A match as `ofctl_rest` shows or takes it; `None` where it looks at more than addresses.
pub(super) fn matches(raw: &Value) -> Option<Match> {
    let fields = raw.as_object()?;
    let (mut src, mut dst) = (None, None);
    for (name, value) in fields {
        let address = value.as_str().and_then(|text| text.parse::<Mac>().ok())?;
        match name.as_str() {
            "dl_src" | "eth_src" => src = Some(address),
            "dl_dst" | "eth_dst" => dst = Some(address),
            _ => return None,
        }
    }
    Some(Match { src, dst: dst? })
}

fn output(raw: &Value) -> Option<Output> {
    match raw.as_str()?.strip_prefix("OUTPUT:")? {
        "CONTROLLER" => Some(Output::Controller),
        port => port.parse().ok().map(Output::Port),
    }
}

#[cfg(test)]
mod tests;
