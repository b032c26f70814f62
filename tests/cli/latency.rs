//! `hintctl latency import`: what a file says counts in a running daemon as an agent's word does.

use super::{Daemon, Files, hintctl, stderr, stdout};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Daemon {
    fn import(&self, args: &[&str]) -> Value {
        self.document(&[&["latency", "import"], args].concat())
    }

    /// Exit code, standard output and error of an import that is not taken as a whole.
    fn import_fails(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let of = ["--address", &self.address, "--admin-socket", &self.socket, "--json", "latency", "import"];
        let output = hintctl(&[&of, args].concat());
        (output.status.code(), stdout(&output), stderr(&output))
    }

    /// What this host measured, once it is so many paths: what is acknowledged is published a moment later.
    fn measured_by(&self, host: &str, paths: usize) -> Vec<(String, u64)> {
        let began = Instant::now();
        loop {
            let answer = self.document(&["latency", "--host", host]);
            let rows = answer["hosts"].as_array().unwrap().iter().filter(|row| row["from"] == host);
            let found: Vec<_> = rows.map(|row| (text(&row["to"]), row["rtt_us"].as_u64().unwrap())).collect();
            if found.len() == paths {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{paths} paths of {host}: {answer}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn round_trips_of_pingmesh_and_prometheus_count_in_a_running_daemon() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    assert_eq!(daemon.document(&["latency"])["racks"], json!([]), "nothing was measured");
    let csv = "source,destination,rtt_ms,count\nnode-01-1,node-02-1,0.3,9\nnode-01-1,node-02-1,0.3,7\nnode-01-1,node-03-1,0.5,16\n";
    let told = daemon.import(&[&files.write("pingmesh.csv", csv)]);
    assert_eq!(told, json!({ "round_trips": 32, "paths": 2, "refused": 0 }));
    assert_eq!(daemon.measured_by("node-01-1", 2), [("node-02-1".to_owned(), 300), ("node-03-1".to_owned(), 500)]);

    let series = |from: &str, to: &str, value: &str| json!({ "metric": { "host": from, "peer": to }, "value": [now_s(), value] });
    let result = [series("node-01-2:9100", "node-02-2:9100", "0.7"), series("node-01-2:9100", "node-04-1", "0.9")];
    let answer = json!({ "status": "success", "data": { "resultType": "vector", "result": result } }).to_string();
    let file = files.write("prometheus.json", &answer);
    let labels = ["--prometheus", "--from-label", "host", "--to-label", "peer", "--unit", "ms"];
    let told = daemon.import(&[&labels[..], &[&file]].concat());
    assert_eq!(told, json!({ "round_trips": 2, "paths": 2, "refused": 0 }));
    assert_eq!(daemon.measured_by("node-01-2", 2), [("node-02-2".to_owned(), 700), ("node-04-1".to_owned(), 900)]);
    assert_ne!(daemon.document(&["latency"])["racks"], json!([]), "racks have them from their hosts");
}

#[test]
fn what_the_daemon_refuses_of_a_file_is_named_by_its_line_and_the_rest_counts() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let old = now_s() - 86_400;
    let csv = format!(
        "from,to,rtt_us,time\nnode-01-1,node-02-1,300,{}\nnode-01-1,elsewhere,300,{0}\nnode-01-1,node-03-1,300,{old}\n",
        now_s()
    );
    let (code, out, err) = daemon.import_fails(&[&files.write("some.csv", &csv)]);
    assert_eq!(code, Some(1), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told, json!({ "round_trips": 3, "paths": 3, "refused": 2 }));
    assert!(err.contains("line 3: ") && err.contains("elsewhere"), "{err}");
    assert!(err.contains("line 4: ") && !err.contains("line 2: "), "{err}");
    assert_eq!(daemon.measured_by("node-01-1", 1), [("node-02-1".to_owned(), 300)]);

    // Of a file with a line that is no measurement nothing is told.
    let file = files.write("bad.csv", "from,to,rtt_us\nnode-04-2,node-02-1,300\nnode-04-2,node-03-1,-5\n");
    let (code, out, err) = daemon.import_fails(&[&file]);
    assert_eq!((code, &*out), (Some(2), ""), "{err}");
    assert!(err.contains("line 3: ") && err.contains("-5"), "{err}");
    // What was told before this one is published with it, or was.
    daemon.import(&[&files.write("good.csv", "from,to,rtt_us\nnode-04-1,node-02-1,400\n")]);
    assert_eq!(daemon.measured_by("node-04-1", 1), [("node-02-1".to_owned(), 400)]);
    assert_eq!(daemon.measured_by("node-04-2", 0), []);
    assert_eq!(daemon.document(&["latency"])["paths"], 2);
}
