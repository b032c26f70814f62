//! Web servers that answer like Hadoop's and Ryu's, as far as the daemon asks.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Maps method, path with query, and body to a status and an answer.
pub(super) type Script = Arc<dyn Fn(&str, &str, &str) -> (u16, String) + Send + Sync>;

/// A web server that runs until the test ends.
pub(super) struct Server {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Listens on a free port. Websocket clients get these texts.
    pub(super) fn start(script: Script, events: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen, events) = (Arc::clone(&script), Arc::clone(&seen), events.clone());
                std::thread::spawn(move || answer(stream.unwrap(), &script, &seen, &events));
            }
        });
        Self { url, asked }
    }

    /// Whether a path that contains these words was requested.
    pub(super) fn was_asked(&self, words: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|asked| asked.contains(words))
    }
}

/// Serves one connection until the client leaves.
fn answer(stream: TcpStream, script: &Script, seen: &Mutex<Vec<String>>, events: &[String]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((method, path, headers, body)) = question(&mut reader) {
        seen.lock().unwrap().push(path.clone());
        if let Some(key) = headers.get("sec-websocket-key") {
            return websocket(stream, reader, key, events);
        }
        let (status, body) = script(&method, &path, &body);
        let head = format!(
            "HTTP/1.1 {status} x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

type Question = (String, String, BTreeMap<String, String>, String);

fn question(reader: &mut BufReader<TcpStream>) -> Option<Question> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?, headers, String::from_utf8(body).unwrap()))
}

/// Does the websocket handshake, sends the events, and reads until the client leaves.
fn websocket(mut stream: TcpStream, mut reader: BufReader<TcpStream>, key: &str, events: &[String]) {
    let accept = base64(&sha1(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes()));
    let head = format!(
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    let mut out = head.into_bytes();
    for event in events {
        out.extend([0x81, 126]);
        out.extend((event.len() as u16).to_be_bytes());
        out.extend(event.as_bytes());
    }
    let _ = stream.write_all(&out);
    let mut rest = [0; 256];
    while reader.read(&mut rest).is_ok_and(|length| length > 0) {}
}

fn sha1(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301_u32, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in padded.chunks(64) {
        let mut words: Vec<u32> = block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        for at in 16..80 {
            words.push((words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mix, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5A82_7999_u32),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6),
            };
            let next = a.rotate_left(5).wrapping_add(mix).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (old, new) in state.iter_mut().zip([a, b, c, d, e]) {
            *old = old.wrapping_add(new);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char;
            out.push(if at > part.len() { '=' } else { letter });
        }
    }
    out
}

/// What a ResourceManager's configuration says.
fn conf() -> Value {
    let rows = [
        ("yarn.scheduler.minimum-allocation-mb", "256"),
        ("yarn.resourcemanager.scheduler.class", "org.apache.hadoop.yarn.CapacityScheduler"),
        ("yarn.resourcemanager.application-master-service.processors", "io.hintd.rm.HintProcessor"),
    ];
    json!({ "properties": rows.map(|(key, value)| json!({ "key": key, "value": value })) })
}

/// The bean of hintd's processor in a ResourceManager.
fn processor() -> Value {
    json!({
        "name": "hintd:name=RmProcessor", "Version": "0.1.0", "BreakerOpen": false,
        "Modes": [{ "key": "*", "value": "ON" }],
        "Delays": [{ "key": "node_locality_delay", "value": 40 }, { "key": "rack_locality_additional_delay", "value": 20 }],
        "Counts": [{ "key": "asked", "value": 7 }],
    })
}

/// A ResourceManager with two nodes and one application, which may be over.
pub(super) fn resource_manager(state: &'static str, over: Arc<Mutex<bool>>) -> Script {
    Arc::new(move |_, path, _| {
        let node = |host: &str| {
            json!({
                "id": format!("{host}:8041"), "nodeHostName": host, "rack": format!("/rack{}", &host[1..2]),
                "state": "RUNNING",
                "usedMemoryMB": 0, "availMemoryMB": 8_192, "usedVirtualCores": 0, "availableVirtualCores": 8,
            })
        };
        let over = *over.lock().unwrap();
        let app = |number: u32| {
            let logs = format!("http://r0n0:8042/node/containerlogs/container_1_{number:04}_01_000001/u");
            json!({
                "id": format!("application_1_{number:04}"), "state": "RUNNING", "finalStatus": "UNDEFINED",
                "amContainerLogs": logs,
            })
        };
        let asked_for = (1..4).find(|number| path.contains(&format!("/apps/application_1_{number:04}")));
        // The first application is a MapReduce job whose maps run.
        let job = json!({
            "id": "job_1_0001", "mapsTotal": 2, "mapsCompleted": 0, "reducesTotal": 1, "reducesCompleted": 0,
        });
        let found = match path.split(['?', '&']).next().unwrap() {
            "/proxy/application_1_0001/ws/v1/mapreduce/jobs/job_1_0001" => json!({ "job": job }),
            "/ws/v1/cluster/info" => json!({ "clusterInfo": { "id": 1, "haState": state } }),
            "/ws/v1/cluster/nodes" => json!({ "nodes": { "node": [node("r0n0"), node("r1n0")] } }),
            "/conf" => conf(),
            "/jmx" => json!({ "beans": [processor()] }),
            "/ws/v1/cluster/scheduler" => json!({ "scheduler": { "schedulerInfo": { "type": "capacityScheduler" } } }),
            "/ws/v1/cluster/apps" if over => json!({ "apps": {} }),
            "/ws/v1/cluster/apps" => json!({ "apps": { "app": [app(1), app(2), app(3)] } }),
            path if path.ends_with("/containers") => Value::Null,
            _ => match asked_for {
                Some(number) if !over => json!({ "app": app(number) }),
                Some(number) => {
                    let id = format!("application_1_{number:04}");
                    json!({ "app": { "id": id, "state": "FINISHED", "finalStatus": "SUCCEEDED" } })
                }
                None => return (404, json!({ "RemoteException": { "exception": "NotFoundException" } }).to_string()),
            },
        };
        (200, found.to_string())
    })
}

/// A NameNode with one file `/in` of two blocks, which is told of a slow DataNode by another and by one that YARN does not know.
pub(super) fn name_node() -> Script {
    const BLOCK: u64 = 1 << 20;
    Arc::new(|_, path, _| {
        let found = path.starts_with("/webhdfs/v1/in?");
        let missing = json!({
            "RemoteException": { "exception": "FileNotFoundException", "javaClassName": "x", "message": "y" },
        });
        let file = json!({ "pathSuffix": "", "type": "FILE", "length": 2 * BLOCK, "blockSize": BLOCK });
        let block = |at: u64| {
            let host = json!({ "hostName": "r0n0", "ipAddr": "10.0.0.1", "networkLocation": "/x" });
            json!({
                "block": { "blockId": 7 + at, "numBytes": BLOCK }, "startOffset": at * BLOCK,
                "isCorrupt": false, "locations": [host],
            })
        };
        let latency = |reporter: &str| {
            json!({
                "ReportingNode": reporter, "ReportedLatency": 7.5, "MedianLatency": 1.5, "MadLatency": 0.5,
                "UpperLimitLatency": 5.0,
            })
        };
        let slow = json!([{
            "SlowNode": "r1n0:9864",
            "SlowPeerLatencyWithReportingNodes": [latency("r0n0:9867"), latency("10.0.0.7:9867")],
        }]);
        let bean = |name: &str, key: &str, value: String| {
            let name = format!("Hadoop:service=NameNode,name={name}");
            (200, json!({ "beans": [{ "name": name, "State": "active", key: value }] }).to_string())
        };
        match path {
            path if path.contains("NameNodeStatus") => bean("NameNodeStatus", "SlowPeersReport", slow.to_string()),
            path if path.contains("LiveNodes") => bean("NameNodeInfo", "LiveNodes", "{}".to_owned()),
            path if path.contains("op=LISTSTATUS") && found => {
                (200, json!({ "FileStatuses": { "FileStatus": [file] } }).to_string())
            }
            path if path.contains("op=GET_BLOCK_LOCATIONS") && found => (
                200,
                json!({ "LocatedBlocks": { "fileLength": 1, "locatedBlocks": [block(0), block(1)] } }).to_string(),
            ),
            path if path.contains("op=LISTSTATUS") || path.contains("op=GET_BLOCK") => (404, missing.to_string()),
            _ => (200, json!({ "FileStatus": {} }).to_string()),
        }
    })
}

/// A JobHistoryServer with three runs of one job that ended at this time.
pub(super) fn history_server(finished_ms: u64) -> Script {
    Arc::new(move |_, path, _| {
        let row = |id: u64| {
            json!({
                "id": format!("job_1_{id:04}"), "name": "etl 20", "user": "ann", "state": "SUCCEEDED",
                "submitTime": finished_ms + id - 900, "finishTime": finished_ms + id, "mapsTotal": 3, "reducesTotal": 2,
            })
        };
        let path = path.split('?').next().unwrap();
        let found = if path.ends_with("/jobs") {
            json!({ "jobs": { "job": [row(1), row(2), row(3)] } })
        } else if path.ends_with("/counters") {
            let counter = json!({ "name": "REDUCE_SHUFFLE_BYTES", "totalCounterValue": 1_000_000 });
            json!({ "jobCounters": { "counterGroup": [{ "counter": [counter] }] } })
        } else if path.ends_with("/conf") {
            json!({ "conf": { "property": [{ "name": "mapreduce.job.name", "value": "etl 2026" }] } })
        } else {
            json!({
                "job": {
                    "reducesTotal": 2, "avgMapTime": 1_200, "avgShuffleTime": 500, "avgMergeTime": 3,
                    "avgReduceTime": 40,
                },
            })
        };
        (200, found.to_string())
    })
}

/// A Spark history server with three runs of one application that ended at this time; of the last it says nonsense.
pub(super) fn spark_history_server(finished_ms: u64) -> Script {
    Arc::new(move |_, path, _| {
        let path = path.split('?').next().unwrap();
        let found = if path.ends_with("/applications") {
            let row = |id: u64| {
                let attempt = json!({
                    "attemptId": "1", "sparkUser": "ann", "completed": true, "endTimeEpoch": finished_ms + id,
                });
                json!({ "id": format!("application_1_{id:04}"), "name": "join", "attempts": [attempt] })
            };
            json!([row(7), row(8), row(9)])
        } else if path.ends_with("/stages") {
            json!([])
        } else if path.contains("_0009/") {
            json!([{ "id": 7 }])
        } else {
            let row = |id: u64| {
                json!({
                    "id": id.to_string(), "totalInputBytes": 5, "totalShuffleRead": 1_000_000,
                    "totalShuffleWrite": 1_000_000, "addTime": "2026-11-24T10:00:00.000GMT", "resourceProfileId": 0,
                })
            };
            json!([row(1), row(2)])
        };
        (200, found.to_string())
    })
}

fn dpid(switch: u64) -> String {
    format!("{switch:016x}")
}

fn port(switch: u64, port: u32) -> Value {
    json!({ "dpid": dpid(switch), "port_no": format!("{port:08x}") })
}

/// An event about a link of the controller's network.
pub(super) fn link_event(method: &str, spine: u64) -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": method,
        "params": [{ "src": port(1, spine as u32 - 16), "dst": port(spine, 1) }],
    })
    .to_string()
}

/// A Ryu controller with leaves 1 and 2, spines 17 and 18, and a host on each leaf. It keeps flow entries.
pub(super) fn ryu() -> Script {
    let tables: Mutex<BTreeMap<u64, Vec<Value>>> = Mutex::default();
    Arc::new(move |_, path, body| {
        let of = |prefix: &str| path.strip_prefix(prefix).and_then(|rest| rest.parse::<u64>().ok());
        let by_switch = |switch: u64, rows: Vec<Value>| json!({ switch.to_string(): rows });
        let ports = |switch: u64| 1..=if switch < 17 { 3 } else { 2 };
        let found = if path == "/v1.0/topology/switches" {
            [1, 2, 17, 18].map(|switch| json!({ "dpid": dpid(switch) })).to_vec().into()
        } else if path == "/v1.0/topology/links" {
            let ends = [1_u64, 2]
                .into_iter()
                .flat_map(|leaf| [17_u64, 18].map(|spine| (port(leaf, spine as u32 - 16), port(spine, leaf as u32))));
            ends.flat_map(|(a, b)| [json!({ "src": a, "dst": b }), json!({ "src": b, "dst": a })]).collect()
        } else if path == "/v1.0/topology/hosts" {
            [1_u64, 2]
                .map(|leaf| {
                    json!({
                        "mac": format!("02:00:00:00:00:0{leaf}"), "ipv4": [format!("10.0.0.{leaf}")],
                        "port": port(leaf, 3),
                    })
                })
                .to_vec()
                .into()
        } else if let Some(switch) = of("/stats/portdesc/") {
            let row = |port: u32| json!({ "port_no": port, "config": 0, "state": 0, "curr_speed": 10_000_000 });
            by_switch(switch, ports(switch).map(row).collect())
        } else if let Some(switch) = of("/stats/port/") {
            let row = |port: u32| {
                json!({
                    "port_no": port, "rx_bytes": 7, "tx_bytes": 9, "duration_sec": 5, "duration_nsec": 1,
                })
            };
            by_switch(switch, ports(switch).map(row).collect())
        } else if let Some(switch) = of("/stats/flow/") {
            by_switch(switch, tables.lock().unwrap().get(&switch).cloned().unwrap_or_default())
        } else {
            entry(&mut tables.lock().unwrap(), path, &serde_json::from_str(body).unwrap_or_default());
            json!({})
        };
        (200, found.to_string())
    })
}

/// Adds or removes a flow entry, in the form that the controller shows.
fn entry(tables: &mut BTreeMap<u64, Vec<Value>>, path: &str, wanted: &Value) {
    let table = tables.entry(wanted["dpid"].as_u64().unwrap_or(0)).or_default();
    let matches = wanted["match"].to_string().replace("eth_", "dl_");
    let matches: Value = serde_json::from_str(&matches).unwrap();
    table.retain(|known| known["match"] != matches || known["priority"] != wanted["priority"]);
    if path.ends_with("/add") {
        let outputs: Vec<String> = wanted["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|action| format!("OUTPUT:{}", action["port"].to_string().trim_matches('"')))
            .collect();
        table.push(json!({
            "table_id": 0, "cookie": wanted["cookie"], "priority": wanted["priority"], "match": matches,
            "actions": outputs,
        }));
    }
}

#[test]
fn hands_are_shaken_as_the_standard_has_it() {
    let accept = base64(&sha1(b"dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
