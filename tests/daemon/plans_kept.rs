//! What the daemon says of the plan in force, and what becomes of a change of plans that the disk does not take.

use crate::fault_store::Disk;
use crate::plans::{activate, named, now_us, plan, refused, roll_back, run, states, submit};
use crate::program::{Program, command, free_port, rewrite_config, write_config, write_config_with};
use crate::world::{SOON, World};
use hintd_client::AdminClient;
use hintd_client::wire::v1::{ActivatePlanRequest, ListPoliciesRequest, ReloadRequest, RemovePlanRequest};
use serde_json::json;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tonic::Code;

/// Lines of the log that say this.
fn said(program: &Program, words: &str) -> Vec<String> {
    program.log().lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

/// The same, once there are any: lines are written by a thread of their own.
async fn told(program: &Program, words: &str) -> Vec<String> {
    let began = Instant::now();
    while said(program, words).is_empty() && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    said(program, words)
}

#[tokio::test(flavor = "multi_thread")]
async fn status_names_the_plan_in_force_and_who_follows_it() {
    let mut world = World::start().await;
    let feed = world.cluster(2, 2, 4_096).await;
    assert_eq!(world.status().await.plan, None);
    submit(&world.admin, "monday", &plan(&[("daily", "/rack1", 4)]).to_string()).await.unwrap();
    assert_eq!(world.status().await.plan, None, "what is kept is not in force");
    activate(&world.admin, "monday", false).await.unwrap();
    world.hints(run(1, "daily", 4)).await;
    let view = world.status().await.plan.expect("one is in force");
    assert_eq!((view.name.as_str(), view.state.as_str(), view.expired), ("monday", "active", false));
    assert!((1..=86_400_000).contains(&view.left_ms), "{}", view.left_ms);
    let by = &view.followed[0];
    assert_eq!((by.policy.as_str(), by.followed, by.expected), ("jobpacker", 1, 0));
    drop(feed);
    world.restart().await;
    assert_eq!(world.status().await.plan.expect("after a restart").name, "monday");
    roll_back(&world.admin, false).await.unwrap();
    assert_eq!(world.status().await.plan, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_each_change_of_the_plan_in_force_once() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("log", "level = \"info\"")]);
    let program = Program::start(folder.path(), port).await;
    let mut short = plan(&[("daily", "/rack0", 4)]);
    short["until"] = json!(now_us() + 6_000_000);
    submit(&program.admin, "short", &short.to_string()).await.unwrap();
    assert_eq!(told(&program, "a plan was kept plan=short origin=\"operator\"").await.len(), 1);
    activate(&program.admin, "short", false).await.unwrap();
    activate(&program.admin, "short", false).await.unwrap();
    assert_eq!(told(&program, "a plan is in force plan=short").await.len(), 1, "the second time nothing changed");
    program.until("it has expired", |status| status.plan.as_ref().is_some_and(|plan| plan.expired)).await;
    told(&program, "has expired").await;
    tokio::time::sleep(Duration::from_millis(2_500)).await; // it is looked at once a second
    assert_eq!(said(&program, "plan=short ago_s=").len(), 1, "{}", program.log());
    drop(program);
    let program = Program::start(folder.path(), port).await;
    assert_eq!(
        told(&program, "a plan is in force plan=short expired=true left_s=0").await.len(),
        1,
        "{}",
        program.log()
    );
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(said(&program, "plan=short ago_s=").len(), 1, "its end was told before the restart");
    roll_back(&program.admin, false).await.unwrap();
    assert_eq!(told(&program, "the plan in force was rolled back from=short to=none").await.len(), 1);
    // Next week's plan under its name has an end of its own.
    program.admin.clone().remove_plan(RemovePlanRequest { name: "short".to_owned() }).await.unwrap();
    short["until"] = json!(now_us() + 5_000_000);
    submit(&program.admin, "short", &short.to_string()).await.unwrap();
    activate(&program.admin, "short", false).await.unwrap();
    let began = Instant::now();
    while said(&program, "plan=short ago_s=").len() < 2 {
        assert!(began.elapsed() < SOON, "{}", program.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Tries until the disk takes it.
async fn activated(admin: &AdminClient, name: &str) {
    let began = Instant::now();
    while let Err(status) = activate(admin, name, true).await {
        assert!(status.code() == Code::Unavailable && began.elapsed() < SOON, "{status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_disk_does_not_take_is_not_in_force_now_nor_later() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let disk = Disk::new(folder.path());
    let program = disk.program(folder.path(), port).await;
    for (name, tasks) in [("monday", 4), ("tuesday", 5)] {
        submit(&program.admin, name, &plan(&[("daily", "/rack0", tasks)]).to_string()).await.unwrap();
    }
    activate(&program.admin, "monday", false).await.unwrap();
    let before = named(&[("monday", "active"), ("tuesday", "kept")]);
    let ready = |wanted: bool| program.until("the disk", move |status| status.ready == wanted);
    for round in 0..4 {
        disk.be("fail 5");
        let wednesday = plan(&[("daily", "/rack0", 6)]).to_string();
        let status = match round {
            0 => activate(&program.admin, "tuesday", true).await.unwrap_err(),
            1 => roll_back(&program.admin, false).await.unwrap_err(),
            2 => submit(&program.admin, "wednesday", &wednesday).await.unwrap_err(),
            _ => {
                let name = "tuesday".to_owned();
                program.admin.clone().remove_plan(RemovePlanRequest { name }).await.unwrap_err()
            }
        };
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!(states(&program.admin).await, before, "round {round}");
        ready(false).await;
        refused(activate(&program.admin, "tuesday", true).await, Code::Unavailable, "journal");
        // What an operator can do meanwhile: whoever follows the plan gets another policy.
        let policy = ["spread", "capacity"][round % 2];
        rewrite_config(folder.path(), port, &[("policy", &format!("default = {policy:?}"))]);
        program.admin.clone().reload(ReloadRequest {}).await.unwrap();
        let listed = program.admin.clone().list_policies(ListPoliciesRequest {}).await.unwrap().into_inner();
        assert_eq!(listed.default_policy, policy);
        disk.be("ok");
        ready(true).await;
        assert_eq!(states(&program.admin).await, before, "round {round}, when the disk is back");
    }
    // What was refused is not written when the disk is back, either.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(program);
    let program = Program::start(folder.path(), port).await;
    assert_eq!(states(&program.admin).await, before);
    activated(&program.admin, "tuesday").await;
    assert_eq!(states(&program.admin).await, named(&[("monday", "kept"), ("tuesday", "active")]));
}

/// A daemon that keeps two plans, on a disk that has become slow since.
async fn slow_disk() -> (tempfile::TempDir, Disk, Program) {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let disk = Disk::new(folder.path());
    let program = disk.program(folder.path(), port).await;
    for (name, tasks) in [("monday", 4), ("tuesday", 5)] {
        submit(&program.admin, name, &plan(&[("daily", "/rack0", tasks)]).to_string()).await.unwrap();
    }
    disk.be("slow 4000");
    (folder, disk, program)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_plans_is_in_force_when_it_is_durable_and_the_next_waits_for_it() {
    let (_folder, disk, program) = slow_disk().await;
    let (first, second) = (program.admin.clone(), program.admin.clone());
    let first = tokio::spawn(async move { activate(&first, "monday", false).await });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let second = tokio::spawn(async move { activate(&second, "tuesday", false).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        states(&program.admin).await,
        named(&[("monday", "kept"), ("tuesday", "kept")]),
        "nothing is durable yet"
    );
    disk.be("ok");
    assert_eq!(first.await.unwrap().unwrap().state, "active");
    refused(second.await.unwrap(), Code::FailedPrecondition, "plan \"monday\" is in force");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_plans_whose_caller_has_gone_while_it_waited_is_not_made() {
    let (_folder, disk, program) = slow_disk().await;
    let admin = program.admin.clone();
    let first = tokio::spawn(async move { activate(&admin, "monday", false).await });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut second = tonic::Request::new(ActivatePlanRequest { name: "tuesday".to_owned(), replace: true });
    second.set_timeout(Duration::from_millis(300));
    let status = program.admin.clone().activate_plan(second).await.unwrap_err();
    assert!(matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded), "{status:?}");
    disk.be("ok");
    assert_eq!(first.await.unwrap().unwrap().state, "active");
    // It would be taken up as the first is durable, before any later call.
    submit(&program.admin, "later", &plan(&[("daily", "/rack0", 6)]).to_string()).await.unwrap();
    assert_eq!(states(&program.admin).await, named(&[("later", "kept"), ("monday", "active"), ("tuesday", "kept")]));
}

/// The page of metrics, the first there is: its socket is bound after those that a start waits for.
fn page(port: u16) -> String {
    use std::io::{Read as _, Write as _};
    let began = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(began.elapsed() < SOON, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_the_plan_in_force_right_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = free_port();
    let port = write_config_with(folder.path(), &[("listen", &format!("metrics = \"127.0.0.1:{metrics}\""))]);
    let program = Program::start(folder.path(), port).await;
    submit(&program.admin, "p", &plan(&[("daily", "/rack0", 4)]).to_string()).await.unwrap();
    activate(&program.admin, "p", false).await.unwrap();
    drop(program);
    let _program = Program::bare(&mut command(folder.path()), folder.path(), port).await;
    let text = page(metrics);
    assert!(text.contains("\nhintd_plan_in_force 1\n"), "{text}");
    assert!(text.contains("hintd_plan_followed{what=\"followed\"} 0"), "{text}");
}
