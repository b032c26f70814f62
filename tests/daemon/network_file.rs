//! A network file: read at the start, shown, changed, compared, refused, loaded, imported, and there after a restart.

use crate::program::{Program, command, write_config};
use crate::world::{SOON, hello, register};
use hintd_client::wire::v1;
use hintd_model::network::racks::NetworkFile;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const FIRST: &str = "format = \"hintd.racks/1\"\nnic = \"1Gbit\"\n[racks.\"/rack0\"]\nuplink = \"10Gbit\"\n\
    [racks.\"/rack9\"]\nuplink = \"10Gbit\"\nhosts = [\"nobody\"]\n";

/// A daemon's folder whose configuration names `network.toml` in it.
fn folder_with(network: &str) -> (tempfile::TempDir, u16) {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let file = folder.path().join("hintd.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let named = format!("[network]\nfile = {:?}\n", folder.path().join("network.toml"));
    std::fs::write(&file, text + &named).unwrap();
    std::fs::write(folder.path().join("network.toml"), network).unwrap();
    (folder, port)
}

fn hintctl(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.arg("--admin-socket").arg(folder.join("admin.sock")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn shown(folder: &Path) -> Value {
    let output = hintctl(folder, &["--json", "network", "show"]);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Shows the network until it is as wanted.
async fn until(folder: &Path, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let found = shown(folder);
        if wanted(&found) {
            return found;
        }
        assert!(began.elapsed() < SOON, "not in time: {what}; {found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The rate of the only link up of a rack's switch.
fn uplink(network: &Value, switch: &str) -> Value {
    let racks = network["racks"].as_array().unwrap();
    let rack = racks.iter().find(|rack| rack["switch"] == switch);
    rack.map_or(Value::Null, |rack| rack["uplinks"][0]["bits_per_s"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_file_is_in_force_from_start_to_restart() {
    let (folder, port) = folder_with(FIRST);
    let (at, file) = (folder.path(), folder.path().join("network.toml"));
    let program = Program::bare(&mut command(at), at, port).await;
    // Hosts that the file lists have their places before YARN knows any.
    until(at, "listed hosts are there", |found| found["hosts"] == 1).await;
    let mut feed = program.client.feed(hello()).await.unwrap();
    for (host, rack) in [("r0n0", "/rack0"), ("r0n1", "/rack0"), ("r1n0", "/rack1")] {
        feed.send(register(host, rack, 8_192)).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    let found = until(at, "hosts are under their racks", |found| found["hosts"] == 4).await;
    assert_eq!((&found["source"], uplink(&found, "/rack0")), (&json!("file"), json!(10_000_000_000_u64)));
    assert_eq!(uplink(&found, "/rack1"), Value::Null, "nothing limits what the file leaves out: {found}");
    assert_eq!((&found["racks_left_out"], &found["hosts_unknown"]), (&json!(["/rack1"]), &json!(["nobody"])));
    assert!(found["hosts_without_place"].as_array().is_none_or(Vec::is_empty), "{found}");
    let text = said(&hintctl(at, &["network", "show"]));
    assert!(text.contains("core 10 Gbit/s") && text.contains("core unlimited"), "{text}");

    // A feed is not asked.
    let mut told = program.client.feed::<v1::TopologyItem>(hello()).await.unwrap();
    let item = v1::topology_item::Item::RemoveLink("/rack0--core".to_owned());
    told.send(v1::TopologyItem { number: 0, item: Some(item) }).await.unwrap();
    let ack = told.await_acknowledged().await.unwrap();
    assert_eq!(ack.refused[0].reason, "not_owner", "{ack:?}");

    let diff = |path: &Path| hintctl(at, &["network", "diff", path.to_str().unwrap()]);
    assert_eq!(diff(&file).status.code(), Some(0), "{}", said(&diff(&file)));
    let other = at.join("other.toml");
    std::fs::write(&other, FIRST.replacen("10Gbit", "20Gbit", 1)).unwrap();
    let found = diff(&other);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    assert!(
        said(&found).contains("~ link /rack0--core: /rack0 - core 10Gbit -> /rack0 - core 20Gbit"),
        "{}",
        said(&found)
    );
    let wrong = at.join("wrong.toml");
    std::fs::write(&wrong, FIRST.replacen("10Gbit", "10GB", 1)).unwrap();
    let found = diff(&wrong);
    assert_eq!(found.status.code(), Some(2), "{}", said(&found));
    assert!(said(&found).contains("line 4: racks.\"/rack0\".uplink: \"10GB\""), "{}", said(&found));

    // A change is taken, a wrong one refused and counted.
    std::fs::copy(&other, &file).unwrap();
    until(at, "the change is in force", |found| uplink(found, "/rack0") == json!(20_000_000_000_u64)).await;
    std::fs::copy(&wrong, &file).unwrap();
    let refused = |status: &v1::StatusResponse| status.counters.get("reloads_refused") >= Some(&1);
    program.until("the wrong change is refused", refused).await;
    // Lines of the log are written by a thread of their own.
    let began = Instant::now();
    while !program.log().contains("network.toml:4: racks.") {
        assert!(began.elapsed() < SOON, "{}", program.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(uplink(&shown(at), "/rack0"), json!(20_000_000_000_u64), "the one before stays");
    let check = command(at).arg("--check").output().unwrap();
    assert_eq!(check.status.code(), Some(2), "{}", said(&check));

    // Loaded by hand: a wrong file changes nothing, a good one stays.
    let load = |path: &Path| hintctl(at, &["--json", "network", "load", path.to_str().unwrap()]);
    assert_eq!(load(&wrong).status.code(), Some(2));
    let third = at.join("third.toml");
    std::fs::write(&third, FIRST.replacen("10Gbit", "30Gbit", 1)).unwrap();
    let before = std::fs::read(&file).unwrap();
    let loaded = load(&third);
    assert!(loaded.status.success(), "{}", said(&loaded));
    let kept = at.join("network.previous.toml");
    assert_eq!(std::fs::read(&kept).unwrap(), before, "there is a way back");
    let told: Value = serde_json::from_slice(&loaded.stdout).unwrap();
    assert_eq!(told["previous"], json!(std::fs::canonicalize(&kept).unwrap()), "{told}");
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&third).unwrap());
    until(at, "it is in force", |found| uplink(found, "/rack0") == json!(30_000_000_000_u64)).await;

    // After a restart the file is read again.
    drop((feed, told, program));
    let program = Program::bare(&mut command(at), at, port).await;
    let mut feed = program.client.feed(hello()).await.unwrap();
    feed.send(register("r0n0", "/rack0", 8_192)).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    until(at, "it is there again", |found| uplink(found, "/rack0") == json!(30_000_000_000_u64)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_called_as_a_switch_takes_the_network_from_nobody_at_a_start_either() {
    let (folder, port) = folder_with("format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n");
    let at = folder.path();
    for _ in 0..2 {
        let program = Program::bare(&mut command(at), at, port).await;
        let mut feed = program.client.feed(hello()).await.unwrap();
        for (host, rack) in [("core", "/rack0"), ("n1", "/rack0"), ("n2", "/rack1")] {
            feed.send(register(host, rack, 8_192)).await.unwrap();
        }
        feed.await_acknowledged().await.unwrap();
        let found = until(at, "the others have their places", |found| found["hosts"] == 2).await;
        assert_eq!((&found["hosts_left_out"], &found["hosts_without_place"]), (&json!(["core"]), &json!(["core"])));
        let named =
            |status: &v1::StatusResponse| status.notices.iter().any(|notice| notice.ends_with("no place: core"));
        program.until("the status names it", named).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_is_said_until_it_is_back() {
    let (folder, port) = folder_with(FIRST);
    let (at, file) = (folder.path(), folder.path().join("network.toml"));
    let program = Program::bare(&mut command(at), at, port).await;
    until(at, "it is in force", |found| found["hosts"] == 1).await;
    assert_eq!(program.status().await.config_refused, "");
    std::fs::remove_file(&file).unwrap();
    let gone = |status: &v1::StatusResponse| status.config_refused.contains("No such file");
    let status = program.until("that it is gone", gone).await;
    assert!(status.notices.iter().any(|notice| notice.contains("the one before it stays")), "{:?}", status.notices);
    let found = shown(at);
    assert!(found["refused"].as_str().unwrap().contains("No such file") && found["hosts"] == 1, "{found}");
    assert!(said(&hintctl(at, &["network", "show"])).contains("what was read before stays"));
    // A reload by hand says it as well, and the log has it once as an error.
    assert_ne!(hintctl(at, &["reload"]).status.code(), Some(0));
    // By renaming: half a file would be refused, too.
    std::fs::write(at.join("new.toml"), FIRST).unwrap();
    std::fs::rename(at.join("new.toml"), &file).unwrap();
    program.until("that it is back", |status| status.config_refused.is_empty() && status.notices.is_empty()).await;
    program.until_logged("the configuration stays as it was").await;
    assert_eq!(program.log().matches("the configuration stays as it was").count(), 1, "{}", program.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn racks_are_compared_and_the_files_are_told() {
    let text = "format = \"hintd.racks/1\"\n[racks.\"/a\"]\nhosts = [\"n1\", \"db-*\"]\n[racks.\"*\"]\n";
    let (folder, port) = folder_with(text);
    let at = folder.path();
    let program = Program::bare(&mut command(at), at, port).await;
    let mut feed = program.client.feed(hello()).await.unwrap();
    for (host, rack) in [("n1", "/b"), ("n2", "/b")] {
        feed.send(register(host, rack, 8_192)).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    until(at, "hosts have places", |found| found["hosts"] == 2).await;
    let found = hintctl(at, &["--json", "racks", "--differences"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    let rows: Value = serde_json::from_slice(&found.stdout).unwrap();
    let row = json!({ "host": "n1", "yarn": "/b", "hdfs": "", "network": "/a", "differs": true });
    assert_eq!((&rows["hosts"], &rows["differing"]), (&json!([row]), &json!(1)));
    let hosts = ["n1", "db-7", "n2", "nobody"].map(str::to_owned).to_vec();
    let asked = v1::ResolveRacksRequest { hosts };
    let racks = program.client.resolve_racks(asked).await.unwrap().racks;
    assert_eq!(racks, ["/a", "/a", "", ""], "what YARN says is not said back to it");
    let many = v1::ResolveRacksRequest { hosts: vec!["n".to_owned(); 1_001] };
    assert!(program.client.resolve_racks(many).await.is_err());
    std::fs::write(at.join("network.toml"), "format = \"hintd.racks/1\"\n[racks.\"*\"]\n").unwrap();
    until(at, "the file puts nobody elsewhere", |found| found["racks"][0]["switch"] == "/b").await;
    assert_eq!(hintctl(at, &["racks"]).status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_thousands_of_mistakes_is_refused_in_words_that_arrive() {
    let (folder, port) = folder_with(FIRST);
    let at = folder.path();
    let _program = Program::bare(&mut command(at), at, port).await;
    let rows: String = (0..5_000).map(|row| format!("[racks.\"/r{row}\"]\nuplink = \"{row}GB\"\n")).collect();
    let wrong = at.join("wrong.toml");
    std::fs::write(&wrong, format!("format = \"hintd.racks/1\"\n{rows}")).unwrap();
    let found = hintctl(at, &["network", "diff", wrong.to_str().unwrap()]);
    assert_eq!(found.status.code(), Some(2), "{}", said(&found));
    assert!(
        said(&found).contains("racks.\"/r0\".uplink: \"0GB\"") && said(&found).contains("and 4950 more mistakes"),
        "{}",
        said(&found)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_changes_under_a_running_job_whose_leases_stay() {
    let (folder, port) = folder_with(FIRST);
    let (at, file) = (folder.path(), folder.path().join("network.toml"));
    let program = Program::start(at, port).await;
    until(at, "hosts are there", |found| found["hosts"].as_u64() > Some(30)).await;
    let request = crate::world::request("r1", 1, 8, 1_024);
    program.client.request_hints(request, SOON).await.unwrap();
    let leases = program.status().await.leases;
    assert!(leases > 0);
    // Half of what the file said is not there any more, and the hosts hang elsewhere.
    let other = "format = \"hintd.racks/1\"\n[racks.\"/a\"]\nuplink = \"1Gbit\"\nhosts = [\"r0n1*\", \"gone\"]\n";
    std::fs::write(&file, other).unwrap();
    let found = until(at, "the change is in force", |found| uplink(found, "/a") == json!(1_000_000_000_u64)).await;
    assert_eq!((&found["racks_left_out"], &found["hosts_unknown"]), (&json!(["/rack0"]), &json!(["gone"])));
    assert_eq!(program.status().await.leases, leases, "they were not promised by the network");
    // A file that is wrong at the start ends it, with file, line and value.
    drop(program);
    std::fs::write(&file, other.replace("1Gbit", "1GB")).unwrap();
    let output = command(at).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("network.toml:3: racks.\"/a\".uplink: \"1GB\""), "{}", said(&output));
}

#[test]
fn what_hosts_hear_by_lldp_is_made_a_network_file() {
    let folder = tempfile::tempdir().unwrap();
    let lldp = folder.path().join("lldp");
    std::fs::create_dir(&lldp).unwrap();
    let neighbor = |switch: &str, medium: Value| {
        let chassis = json!({ switch: { "id": { "type": "mac", "value": "00:00:00:00:00:02" } } });
        json!({ "chassis": chassis, "port": {
            "id": { "type": "ifname", "value": "Ethernet7" }, "auto-negotiation": { "current": medium },
        } })
    };
    let fast = json!("10GigBaseLR - R fiber over 1310 nm optics");
    let one = json!({ "lldp": { "interface": { "eth0": neighbor("tor-1", fast.clone()) } } });
    let two = json!({ "lldp": { "interface": [
        { "eth0": neighbor("tor-9", json!("1000BaseTFD")) }, { "eth1": neighbor("tor-2", fast) },
    ] } });
    let silent = json!({ "lldp": { "interface": { "eth0": neighbor("tor-1", json!("unknown")) } } });
    for (host, value) in [("n1", &one), ("n2", &two), ("n3", &silent)] {
        std::fs::write(lldp.join(format!("{host}.json")), value.to_string()).unwrap();
    }
    let (made, from) = (folder.path().join("network.toml"), lldp.to_str().unwrap().to_owned());
    let import = |further: &[&str]| {
        let args = ["--json", "network", "import", "--lldp", &from, "-o", made.to_str().unwrap()];
        hintctl(folder.path(), &[&args, further].concat())
    };
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("n3.json: port \"Ethernet7\" of \"tor-1\" says no speed: give --nic"),
        "{}",
        said(&refused)
    );
    let output = import(&["--nic", "25Gbit", "--uplink", "40Gbit"]);
    assert!(output.status.success(), "{}", said(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&rows[1]["switch"], &rows[1]["interface"]),
        (&json!("tor-2"), &json!("eth1")),
        "the faster one: {rows}"
    );
    assert_eq!(rows[1]["others"], json!(["tor-9"]));
    let text = std::fs::read_to_string(&made).unwrap();
    let again = import(&["--nic", "25Gbit", "--uplink", "99Gbit"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("network.toml: it is there already: --force replaces it"), "{}", said(&again));
    assert_eq!(std::fs::read_to_string(&made).unwrap(), text, "it is as it was");
    let forced = import(&["--nic", "25Gbit", "--uplink", "99Gbit", "--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(std::fs::read_to_string(&made).unwrap().contains("99Gbit"));
    let network = NetworkFile::read_toml(&text).unwrap().expand(&Default::default()).unwrap().network.unwrap();
    let rate = |link: &str| network.link_at(network.link(link).unwrap()).capacity.0;
    assert_eq!((rate("n2--tor-2"), rate("n3--tor-1")), (10_000_000_000, 25_000_000_000), "{text}");
    assert_eq!(rate("tor-1--core"), 40_000_000_000);
}

#[test]
fn hosts_that_hear_no_switch_are_left_out_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let lldp = folder.path().join("lldp");
    std::fs::create_dir(&lldp).unwrap();
    let hears = |switch: &str| {
        let chassis = json!({ switch: { "id": { "type": "mac", "value": "00:00:00:00:00:02" } } });
        let port = json!({ "id": { "type": "ifname", "value": "Ethernet7" } });
        json!({ "lldp": { "interface": { "eth0": { "chassis": chassis, "port": port } } } }).to_string()
    };
    let write = |host: &str, text: &str| std::fs::write(lldp.join(format!("{host}.json")), text).unwrap();
    for (host, text) in [("n1", hears("tor-1")), ("n2", hears("tor-2")), ("n3", json!({ "lldp": {} }).to_string())] {
        write(host, &text);
    }
    write("n4", "");
    // A switch's own output: its neighbor is a switch, too.
    write("tor-1", &hears("tor-2"));
    let (made, from) = (folder.path().join("network.toml"), lldp.to_str().unwrap().to_owned());
    let import = |further: &[&str]| {
        let args = ["network", "import", "--lldp", &from, "--nic", "10Gbit", "-o", made.to_str().unwrap()];
        hintctl(folder.path(), &[&args, further].concat())
    };
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2));
    for words in ["n3.json: no switch is heard; --partial", "n4.json: EOF", "\"tor-1\" is a switch that others hear"] {
        assert!(said(&refused).contains(words), "{words}: {}", said(&refused));
    }
    let output = import(&["--partial"]);
    assert!(output.status.success(), "{}", said(&output));
    for words in ["left out: n3: no switch is heard", "left out: n4: ", "left out: tor-1: ", "2 hosts, 3 left out"] {
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    }
    let text = std::fs::read_to_string(&made).unwrap();
    assert_eq!(NetworkFile::read_toml(&text).unwrap().expand(&Default::default()).unwrap().network.unwrap().hosts(), 2);
    write("n1.example.com", &hears("tor-1"));
    let twice = import(&["--partial", "--force"]);
    assert_eq!(twice.status.code(), Some(2), "{}", said(&twice));
    assert!(said(&twice).contains("\"n1\" is \"n1.example.com\", which has a file already"), "{}", said(&twice));
}

#[test]
fn an_import_that_hintd_would_refuse_is_not_written_and_guesses_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let lldp = folder.path().join("lldp");
    std::fs::create_dir(&lldp).unwrap();
    let write = |host: &str, switch: &str| {
        let chassis = json!({ switch: { "id": { "type": "mac", "value": "00:00:00:00:00:02" } } });
        let port = json!({ "id": { "type": "ifname", "value": "Ethernet7" } });
        let text = json!({ "lldp": { "interface": { "eth0": { "chassis": chassis, "port": port } } } }).to_string();
        std::fs::write(lldp.join(format!("{host}.json")), text).unwrap();
    };
    let from = lldp.to_str().unwrap().to_owned();
    let import = |made: &Path, further: &[&str]| {
        let args = ["network", "import", "--lldp", &from, "--nic", "10Gbit", "-o", made.to_str().unwrap()];
        hintctl(folder.path(), &[&args, further].concat())
    };
    for ending in ["toml", "json"] {
        let made = folder.path().join(format!("network.{ending}"));
        for name in ["*", "tor*", "a\u{1b}b"] {
            write("n1", name);
            let refused = import(&made, &["--partial"]);
            assert_eq!(refused.status.code(), Some(2), "{name:?}: {}", said(&refused));
            assert!(
                said(&refused).contains("not written, because hintd would refuse it"),
                "{name:?}: {}",
                said(&refused)
            );
            assert!(!made.exists(), "{name:?}");
        }
        write("n1", "core");
        write("n2", "core-1");
        std::fs::write(lldp.join("n3.json"), "").unwrap();
        let output = import(&made, &["--partial"]);
        assert!(output.status.success(), "{}", said(&output));
        let text = std::fs::read_to_string(&made).unwrap();
        for words in [
            "the switch \"core\" is called \"core-2\" in the file",
            "left out: n3: EOF",
            "count as 10Gbit, the most common rate of the others",
            "may be split in two",
            "no --uplink was given",
        ] {
            assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{words}: {}", said(&output));
            assert_eq!(
                text.contains(&format!("# {words}")) || text.contains(words),
                ending == "toml",
                "{words}: {text}"
            );
        }
        let read = if ending == "toml" { NetworkFile::read_toml(&text) } else { NetworkFile::read_json(&text) };
        let network = read.unwrap().expand(&Default::default()).unwrap().network.unwrap();
        assert!(network.link("n1--core-2").is_some() && network.link("core-2--core").is_some(), "{text}");
        std::fs::remove_file(&made).unwrap();
    }
}

#[test]
fn the_examples_of_the_page_are_networks() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/network.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let files: Vec<&str> = blocks.filter(|block| block.contains("format =")).collect();
    assert!(files.len() >= 3, "{} examples", files.len());
    for file in files {
        assert!(NetworkFile::read_toml(file).is_ok(), "{file}{:?}", NetworkFile::read_toml(file));
    }
}
