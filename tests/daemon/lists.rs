//! Lists for operators: decisions, leases, applications; and the log level.

use crate::world::{World, request};
use hintd_client::wire::v1;
use std::process::{Command, Output};
use std::time::Duration;
use tonic::Code;

fn in_queue(id: &str, app: u32, count: u32, queue: &str) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest { queue: queue.to_owned(), ..request(id, app, count, 1_024) }
}

/// `hintctl` with the world's socket.
async fn hintctl(world: &World, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.arg("--admin-socket").arg(world.folder.path().join("admin.sock")).args(args);
    command
        .env_remove("HINTD_ADDRESS")
        .env_remove("HINTD_ADMIN_SOCKET")
        .env_remove("HINTD_TOKEN")
        .env_remove("COLUMNS");
    // Not on a thread that the daemon in this process may need.
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_leases_and_applications_are_listed_newest_first_and_by_application_queue_and_host() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let mut ids = Vec::new();
    for (id, app, count, queue) in [("r1", 1, 2, "etl"), ("r2", 2, 1, "ad"), ("r3", 1, 1, "etl")] {
        let answer = world.hints(in_queue(id, app, count, queue)).await;
        ids.push(answer.hints.unwrap().decision_id);
    }
    world.refused(request("r4", 3, 1, 65_537)).await;
    let mut admin = world.admin.clone();
    let all = admin.list_decisions(v1::ListDecisionsRequest::default()).await.unwrap().into_inner();
    let shown: Vec<_> = all.decisions.iter().map(|row| (&*row.request_id, &*row.outcome, row.hinted)).collect();
    let answered = [("r3", "hinted", 1), ("r2", "hinted", 1), ("r1", "hinted", 2)];
    assert_eq!(shown[shown.len() - 3..], answered, "{shown:?}");
    assert_eq!(all.total as usize, shown.len());
    let of = |application: &str, queue: &str, host: &str, limit| v1::ListDecisionsRequest {
        application_id: application.into(),
        queue: queue.into(),
        host: host.into(),
        limit,
        ..v1::ListDecisionsRequest::default()
    };
    for (asked, rows, total) in [
        (of("application_1_0001", "", "", 0), vec!["r3", "r1"], 2),
        (of("application_1_0001", "", "", 1), vec!["r3"], 2),
        (of("", "ad", "", 0), vec!["r2"], 1),
        (of("application_1_0001", "ad", "", 0), vec![], 0),
        (of("", "", "nowhere", 0), vec![], 0),
    ] {
        let found = admin.list_decisions(asked.clone()).await.unwrap().into_inner();
        let shown: Vec<_> = found.decisions.iter().map(|row| row.request_id.as_str()).collect();
        assert_eq!((shown, found.total), (rows, total), "{asked:?}");
    }
    let host = all.decisions.last().unwrap().hosts[0].clone();
    let found = admin.list_decisions(of("", "", &host, 0)).await.unwrap().into_inner();
    assert!(found.decisions.iter().all(|row| row.hosts.contains(&host)) && found.total > 0, "{found:?}");
    let wrong = admin.list_decisions(of("job_1", "", "", 0)).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    followed_refused_and_bounds(&world, &all).await;
    leases(&world, &ids).await;
    applications(&world, &ids).await;
    all_say_the_same_of_refusals(&world).await;
}

/// Of `all`: how many hints were followed so far, which refusals are not among them, and bounds in time.
async fn followed_refused_and_bounds(world: &World, all: &v1::ListDecisionsResponse) {
    for row in all.decisions.iter().filter(|row| row.outcome == "hinted") {
        let followed = row.followed.clone().unwrap();
        assert_eq!((followed.hinted, followed.on_host, followed.awaited), (row.hinted, 0, row.hinted), "{row:?}");
    }
    let recorded = all.decisions.iter().filter(|row| row.outcome == "refused").count() as u64;
    let counted: u64 = all.refused.iter().map(|row| row.requests).sum();
    let status = world.admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(
        (counted, all.refused.iter().map(|row| row.recorded).sum()),
        (status.counters["requests_refused"], recorded)
    );
    assert!(counted > 0, "{all:?}");
    let total = async |from_ms, until_ms, refused_only| {
        let asked = v1::ListDecisionsRequest { from_ms, until_ms, refused_only, ..v1::ListDecisionsRequest::default() };
        world.admin.clone().list_decisions(asked).await.unwrap().into_inner().total
    };
    let newest = all.decisions[0].decided_at_ms;
    assert_eq!(total(1, newest + 1, false).await, all.total);
    assert_eq!((total(newest + 1, 0, false).await, total(0, 1, false).await), (0, 0));
    assert_eq!(total(0, 0, true).await, recorded);
}

/// `decisions`, `status` and `doctor` side by side: as many refused requests since the start, for the same reasons, of which as
/// many are recorded; one kind leaves no record.
async fn all_say_the_same_of_refusals(world: &World) {
    world.refused(v1::RequestHintsRequest { application_id: "job_1".to_owned(), ..request("r9", 9, 1, 1_024) }).await;
    world.refused(request("r10", 3, 1, 65_537)).await;
    let mut admin = world.admin.clone();
    let decisions = admin.list_decisions(v1::ListDecisionsRequest::default()).await.unwrap().into_inner();
    let only = v1::ListDecisionsRequest { refused_only: true, ..v1::ListDecisionsRequest::default() };
    let refused = admin.list_decisions(only).await.unwrap().into_inner();
    let status = admin.status(v1::StatusRequest {}).await.unwrap().into_inner();
    let sum = |of: fn(&v1::RefusedCount) -> u64| decisions.refused.iter().map(of).sum::<u64>();
    let (all, recorded) = (sum(|row| row.requests), sum(|row| row.recorded));
    assert!(all > recorded && recorded > 1, "{decisions:?}");
    assert_eq!(status.refused_by_reason, decisions.refused);
    assert_eq!((status.counters["requests_refused"], refused.total), (all, recorded));

    let sentence = hintd::findings::hints::refused_since_start(&decisions.refused);
    assert!(sentence.starts_with(&format!("{all} requests were refused since the start (")), "{sentence}");
    assert!(sentence.ends_with(&format!("; {recorded} of them are recorded")), "{sentence}");
    for args in [&["decisions"][..], &["decisions", "--refused"], &["status"]] {
        let text = said(&hintctl(world, args).await);
        assert!(text.contains(&sentence), "{args:?}: {text}");
    }
    let doctor = hintctl(world, &["doctor", "--json"]).await;
    let doctor: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let found = doctor["checks"].as_array().unwrap().iter();
    let found = found.filter(|check| ["requests", "refused"].contains(&check["name"].as_str().unwrap()));
    let found: String = found.map(|check| check["finding"].to_string()).collect();
    assert!(found.contains(&format!(", {all} refused")), "{found}");
    for row in &decisions.refused {
        assert!(found.contains(&format!("{} for {}", row.requests, row.reason)), "{row:?}: {found}");
    }
}

async fn leases(world: &World, decisions: &[String]) {
    let mut admin = world.admin.clone();
    let all = admin.list_leases(v1::ListLeasesRequest::default()).await.unwrap().into_inner();
    assert_eq!((all.total, all.leases.len()), (4, 4));
    assert!(all.leases.is_sorted_by(|a, b| a.lease_id > b.lease_id), "{all:?}");
    assert_eq!(all.leases[0].decision_id, decisions[2]);
    assert!(all.leases.iter().all(|row| row.state == "held" && row.expires_in_ms > 0 && !row.rack.is_empty()));
    let host = all.leases[0].host.clone();
    for (application, queue, host, total) in [
        ("application_1_0001", "", "", 3),
        ("", "ad", "", 1),
        ("", "", host.as_str(), all.leases.iter().filter(|row| row.host == host).count() as u64),
        ("application_1_0002", "etl", "", 0),
    ] {
        let asked = v1::ListLeasesRequest {
            application_id: application.into(),
            queue: queue.into(),
            host: host.into(),
            limit: 1,
        };
        let found = admin.list_leases(asked.clone()).await.unwrap().into_inner();
        assert_eq!((found.total, found.leases.len() as u64), (total, total.min(1)), "{asked:?}");
    }
}

async fn applications(world: &World, decisions: &[String]) {
    let mut admin = world.admin.clone();
    let all = admin.list_applications(v1::ListApplicationsRequest::default()).await.unwrap().into_inner();
    let of = |row: &v1::ApplicationView| {
        let last = row.last_decision.clone().unwrap_or_default().decision_id;
        (row.application_id.clone(), row.queue.clone(), row.leases, row.requests, last)
    };
    let named = |id: &str, queue: &str, leases, requests, last: &String| {
        (id.to_owned(), queue.to_owned(), leases, requests, last.clone())
    };
    let refused = &all.applications[0];
    let shown = (&*refused.application_id, &*refused.refused, refused.refused_requests, refused.requests);
    assert_eq!(shown, ("application_1_0003", "invalid", 1, 0), "it asked last, and for nothing but that");
    assert_eq!(of(&all.applications[1]), named("application_1_0001", "etl", 3, 2, &decisions[2]));
    assert_eq!(of(&all.applications[2]), named("application_1_0002", "ad", 1, 1, &decisions[1]));
    let asked = v1::ListApplicationsRequest { queue: "ad".into(), ..v1::ListApplicationsRequest::default() };
    assert_eq!(admin.list_applications(asked).await.unwrap().into_inner().total, 1);
    let asked = v1::ListApplicationsRequest { host: "nowhere".into(), ..v1::ListApplicationsRequest::default() };
    assert_eq!(admin.list_applications(asked).await.unwrap().into_inner().total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hintctl_shows_them_in_every_format_and_explains_an_application() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(in_queue("r1", 1, 2, "etl")).await;
    let id = answer.hints.unwrap().decision_id;
    for (command, word) in [("decisions", id.as_str()), ("leases", "r1"), ("applications", "application_1_0001")] {
        for format in ["table", "wide", "json", "yaml"] {
            let output = hintctl(&world, &[command, "-o", format]).await;
            let text = said(&output);
            assert!(
                output.status.success() && (text.contains(word) || command == "leases"),
                "{command} {format}: {text}"
            );
            assert!(!text.contains('\x1b'), "{command} {format}: no terminal, no colors: {text}");
        }
    }
    let leases = hintctl(&world, &["leases", "--json"]).await;
    let leases: serde_json::Value = serde_json::from_slice(&leases.stdout).unwrap();
    assert!(leases["leases"][0]["lease_id"].is_string(), "{leases}");
    let yaml = said(&hintctl(&world, &["decisions", "-o", "yaml"]).await);
    assert!(yaml.starts_with("decisions:\n  - age_ms: ") && yaml.contains("    outcome: \"hinted\"\n"), "{yaml}");
    let explained = said(&hintctl(&world, &["explain", "application_1_0001"]).await);
    assert!(
        explained.contains("1 of 1 decisions")
            && explained
                .contains("the newest:\nin short: 0 of 2 hinted containers came to their host, 2 are awaited still")
            && explained.contains("\n\napplication_1_0001, attempt 1, queue etl\ndecided 20")
            && explained.contains("\nasked for 2 containers: 2 ")
            && explained.contains("\n2 containers are hinted: 1 on r0n1, 1 on r1n1")
            && explained.contains("\n\ndetails\nwhat became of it (watched still)"),
        "{explained}"
    );
    let decisions = hintctl(&world, &["decisions", "--json"]).await;
    let decisions: serde_json::Value = serde_json::from_slice(&decisions.stdout).unwrap();
    let id = decisions["decisions"][0]["decision_id"].as_str().unwrap();
    let begin = hintctl(&world, &["explain", &id[..20]]).await;
    assert!(begin.status.success() && said(&begin).contains(id), "{}", said(&begin));
    for (args, words) in [
        (&["explain", "foo"][..], "\"foo\" is no id: a decision's has 32 hexadecimal digits"),
        (&["explain", ""], "the id is empty: "),
        (&["explain", "ffff"], "no recorded decision's id begins with ffff; records go back"),
        (&["replay", "foo"], "\"foo\" is no id: "),
    ] {
        let wrong = hintctl(&world, args).await;
        assert!(wrong.status.code() == Some(2) && said(&wrong).contains(words), "{args:?}: {}", said(&wrong));
    }
    let empty = hintctl(&world, &["decisions", "--application", "application_1_0001", "--refused"]).await;
    let noted = String::from_utf8_lossy(&empty.stderr).into_owned();
    let nothing = "no decision is recorded for --application application_1_0001 --refused";
    assert!(empty.status.success() && noted.contains(nothing), "{noted}");
    known_nowhere(&world).await;
    let nobody = hintctl(&world, &["explain", "application_1_0009"]).await;
    assert_eq!(nobody.status.code(), Some(2), "{}", said(&nobody));
    assert!(
        said(&nobody).contains("no decision of application_1_0009 is recorded; records go back"),
        "{}",
        said(&nobody)
    );
    for id in ["appattempt_1_0001_000009", "appattempt_1_0001_000001"] {
        let of_attempt = hintctl(&world, &["explain", id]).await;
        let known = id.ends_with('1');
        assert_eq!(of_attempt.status.code(), Some(if known { 0 } else { 2 }), "{}", said(&of_attempt));
        let not_there = "no attempt 9 of application_1_0001 is known: known is attempt 1; ";
        assert!(known != said(&of_attempt).contains(not_there), "{}", said(&of_attempt));
    }
    for (args, words) in [
        (&["decisions", "--application", "job_1"][..], "job_1"),
        (&["nodes", "--json", "-o", "wide"], "--json and -o name different formats"),
        (&["leases", "--watch", "--json"], "--watch shows tables"),
    ] {
        let output = hintctl(&world, args).await;
        assert!(output.status.code() == Some(2) && said(&output).contains(words), "{args:?}: {}", said(&output));
    }
}

/// Lists that are narrowed by what is known nowhere: people are told so, and scripts read that there is nothing.
async fn known_nowhere(world: &World) {
    for list in ["decisions", "leases", "applications"] {
        for (narrowed, words) in [
            (["--application", "application_1_0009"], "application application_1_0009 is not known: it never asked"),
            (["--host", "r9n9"], "--host r9n9: no node has it in its name; there are: r0n0, r0n1, "),
        ] {
            for format in ["table", "wide"] {
                let args = [&[list, "-o", format], &narrowed[..]].concat();
                let unknown = hintctl(world, &args).await;
                let noted = String::from_utf8_lossy(&unknown.stderr).into_owned();
                assert!(unknown.status.code() == Some(2) && noted.contains(words), "{args:?}: {noted}");
                assert!(unknown.stdout.is_empty() && !noted.contains("the daemon answers"), "{args:?}: {unknown:?}");
            }
            for format in [&["-o", "json"][..], &["-o", "yaml"], &["--json"]] {
                let args = [&[list], format, &narrowed[..]].concat();
                let nothing = hintctl(world, &args).await;
                let noted = String::from_utf8_lossy(&nothing.stderr).into_owned();
                let narrowed_by = format!(" for {}", narrowed.join(" "));
                assert!(nothing.status.success() && noted.contains(&narrowed_by), "{args:?}: {noted}");
                assert!(!nothing.stdout.is_empty(), "{args:?}");
                if !format.contains(&"yaml") {
                    let document: serde_json::Value = serde_json::from_slice(&nothing.stdout).unwrap();
                    assert!(document[list].as_array().is_none_or(Vec::is_empty), "{args:?}: {document}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_whatever_it_asks_is_listed_with_why() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let mut wrong = in_queue("r1", 7, 2, "etl");
    wrong.groups[0].count = 0;
    for _ in 0..3 {
        let refused = world.client.request_hints(wrong.clone(), Duration::from_secs(10)).await.unwrap_err();
        let words = refused.to_string();
        assert!(words.contains("number of containers: 0 containers") && words.contains("(groups[0].count)"), "{words}");
    }
    let asked = v1::ListApplicationsRequest::default();
    let found = world.admin.clone().list_applications(asked).await.unwrap().into_inner().applications;
    let shown: Vec<_> =
        found.iter().map(|row| (&*row.application_id, &*row.refused, row.refused_requests, row.leases)).collect();
    assert_eq!(shown, [("application_1_0007", "invalid", 3, 0)]);
    let explained = hintctl(&world, &["explain", "application_1_0007"]).await;
    assert!(said(&explained).contains("3 of its requests were refused (invalid)"), "{}", said(&explained));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_has_what_the_daemon_says_and_replaces_nothing() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(in_queue("r1", 1, 1, "etl")).await;
    let config = world.folder.path().join("hintd.toml");
    std::fs::write(&config, "# hunter1\n[sdn.ryu]\nurl = \"http://ann:hunter2@ctl:8080/?token=hunter3&a=b#hunter4\"\n")
        .unwrap();
    let bundle = world.folder.path().join("bundle");
    let [folder, config] = [&bundle, &config].map(|path| path.to_str().unwrap().to_owned());
    let args = ["bundle", "-o", &folder, "--config", &config];
    let output = hintctl(&world, &args).await;
    assert!(output.status.success(), "{}", said(&output));
    let mut all = String::new();
    for name in ["manifest", "doctor", "status", "nodes", "links", "decisions", "leases", "applications"] {
        let text = std::fs::read_to_string(bundle.join(format!("{name}.json"))).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        all += &text;
    }
    all += &std::fs::read_to_string(bundle.join("hintd.toml")).unwrap();
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(bundle.join("manifest.json")).unwrap()).unwrap();
    let has = |list: &str, text: &str| {
        manifest[list].as_array().unwrap().iter().any(|item| item.as_str().unwrap().starts_with(text))
    };
    // Whether this machine has a journal, or another daemon where the configuration says, is its own affair.
    for name in ["metrics", "log"] {
        let [file, why] = [format!("{name}.txt"), format!("{name}: ")];
        assert!(has("files", &file) != has("missing", &why), "{manifest}");
        all += &std::fs::read_to_string(bundle.join(&file)).unwrap_or_default();
    }
    assert!(
        all.contains("r0n0") && all.contains("(left out)@ctl:8080/?token=(left out)&a=(left out)#(left out)"),
        "{all}"
    );
    assert!(!all.contains("hunter") && !all.contains(&answer.token), "no secrets: {all}");
    let again = hintctl(&world, &args).await;
    assert!(again.status.code() == Some(2) && said(&again).contains("it is there already"), "{}", said(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_has_what_can_be_had_of_a_configuration_that_is_refused() {
    let world = World::start().await;
    let config = world.folder.path().join("hintd.toml");
    // Nobody listens there, whatever this machine runs.
    let text =
        "[listen]\nmetrics = \"127.0.0.1:1\"\n[sdn.ryu]\npassword = hunter1\nurl = \"http://ann:hunter2@ctl:8080\"\n";
    std::fs::write(&config, text).unwrap();
    let bundle = world.folder.path().join("bundle");
    let [folder, config] = [&bundle, &config].map(|path| path.to_str().unwrap().to_owned());
    let output = hintctl(&world, &["bundle", "-o", &folder, "--config", &config]).await;
    assert!(output.status.success(), "{}", said(&output));
    let read = |name: &str| std::fs::read_to_string(bundle.join(name)).unwrap();
    let (kept, manifest) = (read("hintd.toml"), read("manifest.json"));
    assert!(kept.contains("url = \"http://(left out)@ctl:8080\"") && !kept.contains("hunter"), "{kept}");
    assert!(manifest.contains("it is no TOML (line 4): lines that may hold a secret are left out"), "{manifest}");
    assert!(manifest.contains("metrics: 127.0.0.1:1: "), "the line that names them is found: {manifest}");
    assert!(manifest.contains("log: the configuration, whose secrets it may repeat"), "not all are known: {manifest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_level_of_a_process_whose_logs_are_not_the_daemons_is_not_told() {
    let world = World::start().await;
    let status = world.admin.clone().log_level(v1::LogLevelRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let text = said(&hintctl(&world, &["status", "--live"]).await);
    let line = text.lines().find(|line| line.starts_with("log level")).unwrap();
    assert!(line.ends_with(" not known"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_sorted_by_what_a_column_holds_in_tables_and_for_scripts() {
    let world = World::start().await;
    let _feed = world.cluster(3, 4, 65_536).await;
    for (id, app, count) in [("r1", 1, 9), ("r2", 2, 10), ("r3", 3, 1)] {
        world.hints(in_queue(id, app, count, "etl")).await;
    }
    let ids = async |args: &[&str], list: &str, key: &str| {
        let output = hintctl(&world, &[&["--json"], args].concat()).await;
        assert!(output.status.success(), "{}", said(&output));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = found[list].as_array().unwrap().iter().map(|row| row[key].to_string().replace('"', ""));
        rows.collect::<Vec<_>>().join(" ")
    };
    let decisions = async |sort: &str| ids(&["decisions", "--sort", sort], "decisions", "request_id").await;
    assert_eq!(decisions("hinted").await, "r3 r1 r2", "9 before 10");
    assert_eq!(decisions("-hinted").await, "r2 r1 r3");
    assert_eq!(decisions("application").await, "r1 r2 r3");
    let most = ["decisions", "--sort", "-hinted", "--limit", "1"];
    assert_eq!(ids(&most, "decisions", "request_id").await, "r2", "the greatest of all, and not of the newest one");
    assert_eq!(ids(&["nodes", "--sort", "-host", "--limit", "2"], "nodes", "host").await, "r2n3 r2n2");
    assert_eq!(ids(&["applications", "--sort", "-leases"], "applications", "leases").await, "10 9 1");
    assert_eq!(ids(&["nodes", "r2n3", "r0"], "nodes", "host").await, "r0n0 r0n1 r0n2 r0n3 r2n3");
    assert_eq!(ids(&["nodes", "r0n1", "--state", "running,lost"], "nodes", "host").await, "r0n1");
    assert_eq!(ids(&["nodes", "--state", "lost"], "nodes", "host").await, "");
    let one = said(&hintctl(&world, &["nodes", "r0n1"]).await);
    let words = one.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("node r0n1, RUNNING, heard ") && words.contains(" memory, MB 65536 "), "{one}");
    let table = said(&hintctl(&world, &["nodes", "r0n1", "-o", "table"]).await);
    assert!(table.starts_with("host ") && table.contains("1 of 1 nodes"), "a table was asked for: {table}");
    let unknown = hintctl(&world, &["nodes", "r0n1", "r9n9"]).await;
    assert!(unknown.status.code() == Some(2) && unknown.stdout.is_empty(), "{}", said(&unknown));
    assert!(said(&unknown).contains("hintctl: no node is \"r9n9\", or has it in its name; "), "{}", said(&unknown));
    let nodes = ids(&["nodes", "--sort", "-host"], "nodes", "host").await;
    assert!(nodes.starts_with("r2n3 r2n2 ") && nodes.ends_with(" r0n0"), "{nodes}");
    let leased = ids(&["leases", "--sort", "lease"], "leases", "lease_id").await;
    let numbers: Vec<u64> = leased.split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(numbers.len() == 20 && numbers.is_sorted(), "{numbers:?}");
    let table = said(&hintctl(&world, &["attempts", "--sort", "leases"]).await);
    let order: Vec<_> = ["_0003", "_0001", "_0002"].iter().map(|app| table.find(app).unwrap()).collect();
    assert!(order.is_sorted(), "{table}");
    for (command, column, words) in
        [("links", "loda", ["did you mean load?", "a-to-b"]), ("nodes", "-x", ["no column \"x\"", "containers"])]
    {
        let output = hintctl(&world, &[command, "--sort", column]).await;
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(words.iter().all(|word| said(&output).contains(word)), "{}", said(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asked_in_a_queue_that_is_off_or_unknown_is_found_and_told_why() {
    let off = [("queues.dark", "mode = \"off\""), ("queues.etl", "mode = \"on\""), ("queues.\"*\"", "")];
    let world = World::with(&off).await;
    let _feed = world.cluster(1, 2, 65_536).await;
    world.hints(in_queue("r1", 1, 2, "etl")).await;
    // A busy queue that is off takes no place of the others.
    for number in 0..50 {
        world.hints(in_queue(&format!("d{number}"), 2, 1, "dark")).await;
    }
    let (_, message) = world.refused(in_queue("u1", 3, 1, "default")).await;
    assert!(message.ends_with("queue \"default\" is unknown; the configuration has: dark, etl"), "{message}");
    let (_, message) = world.refused(in_queue("u2", 3, 1, "dork")).await;
    assert!(message.ends_with("did you mean \"dark\"?"), "{message}");
    let mut admin = world.admin.clone();
    let mut of = async |application: &str, queue: &str| {
        let (application_id, queue) = (application.to_owned(), queue.to_owned());
        let asked = v1::ListDecisionsRequest { application_id, queue, limit: 1, ..v1::ListDecisionsRequest::default() };
        let found = admin.list_decisions(asked).await.unwrap().into_inner();
        let row = found.decisions.into_iter().next().unwrap();
        (row.outcome, row.reason, found.total, row.decision_id)
    };
    let (outcome, reason, total, dark) = of("", "dark").await;
    assert_eq!((&*outcome, &*reason, total), ("off", "", 50));
    let (outcome, reason, total, unknown) = of("application_1_0003", "").await;
    assert_eq!((&*outcome, &*reason, total), ("refused", "unknown", 2));
    assert_eq!(of("application_1_0001", "").await.0, "hinted");
    let table = said(&hintctl(&world, &["applications"]).await);
    assert!(table.lines().any(|line| line.contains("_0002") && line.contains(" off ")), "{table}");
    for (id, words) in [
        ("application_1_0002", "No hints: the queue is off."),
        ("appattempt_1_0003_000001", "queue \"dork\" is unknown"),
        (&*unknown, "refused (unknown)"),
    ] {
        let explained = said(&hintctl(&world, &["explain", id]).await);
        assert!(explained.contains(words), "{id}: {explained}");
    }
    let again = said(&hintctl(&world, &["replay", &dark]).await);
    assert!(again.contains("the queue is off") && again.contains("same bytes"), "{again}");
    let again = hintctl(&world, &["replay", &unknown]).await;
    assert!(
        !again.status.success() && said(&again).contains("not refused for what a search found"),
        "{}",
        said(&again)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_places_no_request_by_itself_is_said_to_be_one() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 65_536).await;
    let mut asked = in_queue("r1", 1, 2, "etl");
    asked.follows = true;
    let id = world.hints(asked).await.hints.unwrap().decision_id;
    let beside = said(&hintctl(&world, &["replay", &id, "--policy", "fair"]).await);
    assert!(beside.contains("same bytes") && beside.contains("fair places no request by itself"), "{beside}");
}
