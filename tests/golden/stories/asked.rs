//! A daemon that polls a ResourceManager, a NameNode, a JobHistoryServer, a Spark history server, and an SDN controller.

use super::servers::{Server, history_server, link_event, name_node, resource_manager, ryu, spark_history_server};
use crate::notes::Notes;
use crate::programs::{Daemon, until};
use crate::world::{MUCH, hints, now_us, request, size};
use serde_json::json;
use std::sync::{Arc, Mutex};

pub(crate) fn hadoop_and_ryu_are_asked(notes: &Notes) {
    let over = Arc::new(Mutex::new(false));
    let manager = |state| Server::start(resource_manager(state, Arc::clone(&over)), vec![]);
    let (standby, active) = (manager("STANDBY"), manager("ACTIVE"));
    let names = Server::start(name_node(), vec![]);
    let history = Server::start(history_server(now_us() / 1_000 - 60_000), vec![]);
    let spark = Server::start(spark_history_server(now_us() / 1_000 - 60_000), vec![]);
    let events = ["event_link_delete", "event_link_add", "event_of_the_future"].map(|event| link_event(event, 17));
    let controller = Server::start(ryu(), events.to_vec());
    let dead = "http://127.0.0.1:1";
    let daemon = Daemon::start(&format!(
        "[resource_manager]\nurls = [\"{}\", \"{}\"]\npoll = \"100ms\"\napplications = \"100ms\"\nabsent_kept = \"0s\"
        [name_node]\nurls = [\"{dead}\", \"{}\"]\nwait = \"20s\"\npoll = \"100ms\"\nslow_peers = \"1s\"
        [history_server]\nurls = [\"{}\", \"{dead}\"]\npoll = \"1s\"
        [spark_history_server]\nurls = [\"{}\"]\npoll = \"1s\"
        [sdn.ryu]\nurl = \"{}\"\npoll = \"100ms\"\ncounters = \"100ms\"\nsettle = \"0s\"
        forward = true\nlink_bits_per_s = 1000000000
        [sdn.ryu.hosts]\n\"02:00:00:00:00:01\" = \"r0n0\"\n\"02:00:00:00:00:02\" = \"r1n0\"
        [yarn]\nminimum_memory_mb = 1024
        [queues.\"*\"]\nmode = \"on\"\nhold = true",
        standby.url, active.url, names.url, history.url, spark.url, controller.url
    ));
    daemon.until("both nodes", |status| status["nodes_usable"] == json!(2));
    daemon.until("the network", |status| status["links"] == json!(6));
    for number in [1, 2] {
        let wish = json!({ "application_id": format!("application_1_{number:04}"), "attempt": 1, "receivers": 1 });
        notes.ask(&daemon.grpc(), "/hintd.v1.Placement/ShuffleTurn", &wish);
    }
    until("ApplicationMasters were asked", || {
        let page = daemon.page("/metrics").1;
        let counted = |result| page.contains(&format!("hintd_shuffle_progress_polls_total{{result=\"{result}\"}}"));
        (counted("answered") && counted("refused")).then_some(())
    });
    let asked = json!({ "input_paths": ["/in"], "policy": "container" });
    hints(&daemon, notes, &request("one", 1, 2, 1_024, asked));
    hints(&daemon, notes, &request("two", 2, 1, 1_024, json!({ "input_paths": ["/none"] })));
    let group = |name: &str, rack: &str, priority: u32| {
        json!({
            "name": name, "count": 1, "resource": size(1_024, 1), "priority": priority,
            "constraints": { "avoid_racks": [rack] },
        })
    };
    let talk = json!({
        "groups": [group("a", "/rack1", 1), group("b", "/rack0", 2)],
        "edges": [{ "from": "a", "to": "b", "bytes": MUCH }],
    });
    hints(&daemon, notes, &request("talk", 3, 1, 1_024, talk));
    daemon.until("rules are in force", |status| status["watchers"][0]["acknowledged"].as_u64() >= Some(2));
    until("the history is read", || history.was_asked("/jobs/job_1_0003").then_some(()));
    until("one application is passed over", || {
        daemon.page("/metrics").1.contains("hintd_history_server_passed_over_total").then_some(())
    });
    daemon.until("the settings are compared", |status| status.get("notices").is_some());
    daemon.until("the processor is seen", |status| {
        status["resource_manager_setup"]["processor"]["version"] == json!("0.1.0")
    });
    notes.status(&daemon);
    until("the controller is heard", || {
        daemon.page("/metrics").1.contains("hintd_sdn_events_total{event=\"other\"}").then_some(())
    });
    until("a slow DataNode is told of", || {
        daemon.page("/metrics").1.contains("hintd_slow_peer_reports_total{result=\"taken\"}").then_some(())
    });
    until("it is shown", || {
        let slow = daemon.document(&["latency"]);
        (slow["slow_peers"][0]["slow"] == json!("r1n0")).then_some(())
    });
    notes.json("latency", &daemon.args(&["latency"]));
    notes.journal(&daemon);
    let unknown = request("squat", 4, 1, 1_024, json!({}));
    notes.refused("an attempt that is not listed", &daemon.grpc(), "/hintd.v1.Placement/RequestHints", &unknown);
    *over.lock().unwrap() = true;
    daemon.until("an application is over", |status| status["leases"] == json!(0) || status.get("leases").is_none());
    until("it is counted", || {
        daemon.page("/metrics").1.contains("hintd_resource_manager_applications_ended_total").then_some(())
    });
    notes.farewell(&daemon);
}
