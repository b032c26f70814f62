//! Applications and scheduler settings from ResourceManagers that answer as real ones do (shapes of Hadoop 3.4.2).

use crate::hadoop_server::{Said, Server, asked, http, tls};
use crate::world::{SOON, World, request};
use hintd::hadoop::{ResourceManagerOptions, start};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use hintd_client::wire::v1::placement_client::PlacementClient;
use hintd_model::cluster::{Calculator, Resource, SizeRules};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::Code;

/// What a ResourceManager knows, by question.
#[derive(Clone, Copy)]
struct Knows {
    /// Rows of applications that are not over.
    live: &'static str,
    /// Of an application asked for by itself: state and final status; `None`: it knows none.
    one: Option<[&'static str; 2]>,
    containers: &'static str,
}

const NOTHING: Knows = Knows { live: "{}", one: None, containers: "null" };

fn manager(knows: Knows) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    move |question| {
        let ok = |body: &str| http("200 OK", body);
        let node = |host: &str| {
            format!(
                "{{\"id\":\"{host}:8041\",\"nodeHostName\":\"{host}\",\"rack\":\"/r\",\"state\":\"RUNNING\",\"usedMemoryMB\":0,\
                 \"availMemoryMB\":8192,\"usedVirtualCores\":0,\"availableVirtualCores\":8}}"
            )
        };
        match question.split(['?', '&']).next().unwrap() {
            "/ws/v1/cluster/info" => ok("{\"clusterInfo\":{\"id\":1,\"haState\":\"ACTIVE\"}}"),
            "/ws/v1/cluster/nodes" => ok(&format!("{{\"nodes\":{{\"node\":[{},{}]}}}}", node("w1"), node("w2"))),
            "/conf" => ok(
                "{\"properties\":[{\"key\":\"yarn.resourcemanager.scheduler.class\",\"value\":\"a.b.FifoScheduler\"},\
                 {\"key\":\"yarn.scheduler.minimum-allocation-mb\",\"value\":\"256\"},\
                 {\"key\":\"yarn.scheduler.maximum-allocation-mb\",\"value\":\"4096\"}]}",
            ),
            "/ws/v1/cluster/scheduler" => ok(
                "{\"scheduler\":{\"schedulerInfo\":{\"type\":\"fifoScheduler\",\"maximumAllocation\":{\"memory\":2048,\"vCores\":3}}}}",
            ),
            "/ws/v1/cluster/apps" => ok(&format!("{{\"apps\":{}}}", knows.live)),
            path if path.ends_with("/containers") => ok(knows.containers),
            "/ws/v1/cluster/apps/application_1_0001"
                if knows.one.is_none() && [FIRST, SECOND].contains(&knows.live) =>
            {
                ok(&knows.live.replace(['[', ']'], ""))
            }
            "/ws/v1/cluster/apps/application_1_0001" if knows.live == BOTH => ok(&FIRST.replace(['[', ']'], "")),
            "/ws/v1/cluster/apps/application_1_0002" if knows.live == BOTH => ok(&OTHER.replace(['[', ']'], "")),
            _ => match knows.one {
                None => http(
                    "404 Not Found",
                    "{\"RemoteException\":{\"exception\":\"NotFoundException\",\"message\":\"no\"}}",
                ),
                Some([state, status]) => ok(&format!(
                    "{{\"app\":{{\"id\":\"application_1_0001\",\"state\":\"{state}\",\"finalStatus\":\"{status}\"}}}}"
                )),
            },
        }
    }
}

/// Attempt 1 of application 1, or a later one.
const FIRST: &str = "{\"app\":[{\"id\":\"application_1_0001\",\"state\":\"RUNNING\",\"finalStatus\":\"UNDEFINED\",\
    \"amContainerLogs\":\"http://w1:8042/node/containerlogs/container_1_0001_01_000001/u\"}]}";
const SECOND: &str = "{\"app\":{\"id\":\"application_1_0001\",\"state\":\"ACCEPTED\",\
    \"amContainerLogs\":\"http://w1:8042/node/containerlogs/container_1_0001_02_000001/u\"}}";
/// Attempt 1 of application 2.
const OTHER: &str = "{\"app\":[{\"id\":\"application_1_0002\",\"state\":\"RUNNING\",\"amContainerLogs\":\
    \"http://w1:8042/node/containerlogs/container_1_0002_01_000001/u\"}]}";
/// Both of them.
const BOTH: &str = "{\"app\":[{\"id\":\"application_1_0001\",\"state\":\"RUNNING\",\"amContainerLogs\":\
    \"http://w1:8042/node/containerlogs/container_1_0001_01_000001/u\"},\
    {\"id\":\"application_1_0002\",\"state\":\"RUNNING\",\"amContainerLogs\":\
    \"http://w1:8042/node/containerlogs/container_1_0002_01_000001/u\"}]}";
/// What runs of [`FIRST`]: its ApplicationMaster, and one more.
const CONTAINERS: &str = "{\"container\":[{\"containerId\":\"container_1_0001_01_000001\",\"assignedNodeId\":\"w1:8041\",\
    \"elapsedTime\":\"9000\",\"containerState\":\"RUNNING\"},{\"containerId\":\"container_1_0001_01_000002\",\
    \"assignedNodeId\":\"w2:8041\",\"elapsedTime\":\"9000\",\"containerState\":\"RUNNING\"}]}";

fn options(server: &Server) -> ResourceManagerOptions {
    ResourceManagerOptions {
        servers: asked([server], "hintd", Duration::from_millis(50)),
        unheard_kept: Duration::from_secs(3_600),
        absent_kept: Duration::from_millis(600),
        applications: Some(Duration::from_millis(50)),
        stated: None,
    }
}

/// A daemon with two leases of application 1.
async fn leased(server: &Server) -> World {
    leased_by(options(server)).await
}

async fn leased_by(options: ResourceManagerOptions) -> World {
    let world = World::start().await;
    start(options, &world.running().daemon, &Metrics::new()).unwrap();
    world.until("both nodes", |status| status.nodes_usable == 2).await;
    world.hints(request("one", 1, 2, 1_024)).await;
    assert_eq!(world.status().await.leases, 2);
    world
}

async fn keeps_leases(world: &World, what: &str) {
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.status().await.leases, 2, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_makes_no_sense_keeps_no_other_application_from_its_end() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    let odd = "{\"app\":[{\"id\":\"application_1_0009\"},{\"id\":\"application_1_0008\",\"state\":\"RUNNING\"}]}";
    server.says(manager(Knows { live: odd, one: Some(["FINISHED", "SUCCEEDED"]), ..NOTHING }));
    let status = world.until("application 1 is over", |status| status.leases == 0).await;
    assert!(status.counters.get("application_rows_left_out").is_some_and(|rows| *rows > 0), "{:?}", status.counters);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_too_large_is_asked_for_in_part_and_ends_what_is_over() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let mut options = options(&server);
    options.servers.answer_bytes = 65_536;
    let world = leased_by(options).await;
    let others = manager(Knows { one: Some(["FINISHED", "SUCCEEDED"]), ..NOTHING });
    server.says(move |question: &str| {
        match question.starts_with("/ws/v1/cluster/apps?") && !question.contains("&limit=") {
            true => http("200 OK", &" ".repeat(65_537)),
            false => others(question),
        }
    });
    world.until("application 1 is over", |status| status.leases == 0).await;
    assert!(server.asked().iter().any(|question| question.contains("&limit=16")), "{:?}", server.asked());
}

/// Nor does one at which it breaks off, or for which it takes too long.
#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_it_refuses_to_tell_of_keeps_no_other_from_its_end() {
    for (what, said) in [
        ("500", http("500 Internal Server Error", "")),
        ("403", http("403 Forbidden", "")),
        ("nonsense", http("200 OK", "{\"app\":7}")),
        ("broken", Said(String::new(), Duration::ZERO)),
        ("late", Said(http("200 OK", "{}").0, Duration::from_secs(3))),
    ] {
        let server = Server::start(manager(Knows { live: BOTH, ..NOTHING })).await;
        let world = leased(&server).await;
        world.hints(request("other", 2, 1, 1_024)).await;
        assert_eq!(world.status().await.leases, 3);
        let ended = "{\"app\":{\"id\":\"application_1_0002\",\"state\":\"FINISHED\",\"finalStatus\":\"SUCCEEDED\"}}";
        let others = manager(NOTHING);
        server.says(move |path| match path {
            path if path.contains("/application_1_0001") => said.clone(),
            path if path.contains("/application_1_0002") => http("200 OK", ended),
            path => others(path),
        });
        world.until("application 2 is over", |status| status.leases == 2).await;
        keeps_leases(&world, what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_at_which_it_breaks_off_keeps_no_lease_of_others_from_being_confirmed() {
    let server = Server::start(manager(Knows { live: BOTH, ..NOTHING })).await;
    let world = leased(&server).await;
    world.hints(request("other", 2, 1, 1_024)).await;
    let broken = |others: Knows| {
        let others = manager(others);
        move |path: &str| match path.contains("/application_1_0002") {
            true => Said(String::new(), Duration::ZERO),
            false => others(path),
        }
    };
    server.says(broken(Knows { live: FIRST, ..NOTHING }));
    let asked = || server.asked().iter().filter(|path| path.contains("/application_1_0002?")).count();
    let (before, began) = (asked(), Instant::now());
    while asked() < before + 2 {
        assert!(began.elapsed() < SOON, "it is asked for by itself, turn by turn");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.says(broken(Knows { live: FIRST, containers: CONTAINERS, ..NOTHING }));
    let followed = |status: &v1::StatusResponse| status.counters.get("hints_followed") == Some(&1);
    world.until("a lease of application 1 is met", followed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_at_which_it_breaks_off_slows_down_no_turn() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let mut patient = options(&server);
    patient.servers.backoff = Duration::from_secs(3_600);
    let _world = leased_by(patient).await;
    let others = manager(NOTHING);
    server.says(move |path| match path.contains("/application_1_0001?") {
        true => Said(String::new(), Duration::ZERO),
        false => others(path),
    });
    // As many turns one after the other, each with a longer wait than the one before, would take minutes.
    let asked = || server.asked().iter().filter(|path| path.contains("/application_1_0001?")).count();
    let (before, began) = (asked(), Instant::now());
    while asked() < before + 12 {
        assert!(began.elapsed() < SOON, "it is asked for in every turn: {}", asked() - before);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_do_not_come_keep_no_application_from_its_end() {
    for (what, said) in [
        ("/conf", Said(http("200 OK", "{}").0, Duration::from_secs(3))),
        ("/ws/v1/cluster/scheduler", Said(String::new(), Duration::ZERO)),
    ] {
        let but_settings = |knows: Knows| {
            let (knows, said) = (manager(knows), said.clone());
            move |path: &str| if path.starts_with(what) { said.clone() } else { knows(path) }
        };
        let server = Server::start(but_settings(Knows { live: FIRST, ..NOTHING })).await;
        let world = leased(&server).await;
        server.says(but_settings(Knows { one: Some(["FINISHED", "SUCCEEDED"]), ..NOTHING }));
        world.until("it is over", |status| status.leases == 0).await;
        let status = world.until("it is said", |status| !status.notices.is_empty()).await;
        assert!(status.notices[0].contains(what), "{:?}", status.notices);
        server.says(manager(NOTHING));
        world.until("they are read", |status| status.notices.is_empty()).await;
    }
}

/// As of a web interface that keeps `/conf` for admins.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_manager_that_keeps_its_settings_to_itself_tells_of_applications_all_the_same() {
    let but_conf = |knows: Knows| {
        let knows = manager(knows);
        move |path: &str| match path.starts_with("/conf") {
            true => http("403 Forbidden", "no admin"),
            false => knows(path),
        }
    };
    let server = Server::start(but_conf(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    server.says(but_conf(Knows { one: Some(["FINISHED", "SUCCEEDED"]), ..NOTHING }));
    world.until("it is over", |status| status.leases == 0).await;
    let status = world.until("it is said", |status| !status.notices.is_empty()).await;
    assert!(status.notices[0].contains("403"), "{:?}", status.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_attempts_that_are_listed_get_tokens() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    // Nobody squats on an application that is to come, or on the next attempt of one that runs.
    let next = v1::RequestHintsRequest { attempt: 2, ..request("next", 1, 1, 1_024) };
    for ask in [request("r", 2, 1, 1_024), next.clone()] {
        let (code, message) = world.refused(ask).await;
        assert_eq!(code, Code::PermissionDenied, "{message}");
        assert!(message.contains("does not list"), "{message}");
    }
    world.hints(request("two", 1, 1, 1_024)).await;
    // It failed, and its next attempt runs: of another client, which the ResourceManager vouches for.
    server.says(manager(Knows { live: SECOND, ..NOTHING }));
    world.until("attempt 1 is over", |status| status.leases == 0).await;
    let stranger = hintd_client::Client::connect(&world.running().grpc.to_string()).await.unwrap();
    let soon = SOON;
    let asked = Instant::now();
    while stranger.request_hints(next.clone(), soon).await.is_err() {
        assert!(asked.elapsed() < soon, "it is listed by now");
    }
    assert_eq!(world.status().await.leases, 1);
    // Who knows it already is let in while nobody can be asked; others are told when to come back.
    server.says(|_| http("503 Service Unavailable", "it starts"));
    world.until("nobody leads", |status| status.degraded.contains(&"resource_manager_silent".to_owned())).await;
    let again = v1::RequestHintsRequest { request_id: "again".into(), ..next };
    stranger.request_hints(again, soon).await.unwrap();
    let mut raw = PlacementClient::connect(format!("http://{}", world.running().grpc)).await.unwrap();
    let status = raw.request_hints(request("r3", 3, 1, 1_024)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.metadata().contains_key("retry-after-ms"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_end_when_the_application_is_over_and_not_before() {
    for over in [["FINISHED", "SUCCEEDED"], ["FAILED", "FAILED"], ["KILLED", "KILLED"]] {
        let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
        let world = leased(&server).await;
        keeps_leases(&world, "it runs").await;
        // It is not in the list, and says for itself that it runs: it came after the list was made.
        server.says(manager(Knows { one: Some(["RUNNING", "UNDEFINED"]), ..NOTHING }));
        keeps_leases(&world, "it says that it runs").await;
        server.says(manager(Knows { one: Some(over), ..NOTHING }));
        world.until(over[0], |status| status.leases == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_an_attempt_end_when_the_application_has_another() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    server.says(manager(Knows { live: SECOND, ..NOTHING }));
    world.until("attempt 2 runs", |status| status.leases == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_nobody_knows_is_over_after_its_time() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased_by(ResourceManagerOptions { absent_kept: Duration::from_secs(3), ..options(&server) }).await;
    server.says(manager(NOTHING));
    keeps_leases(&world, "a ResourceManager that has just started may still learn of it").await;
    world.until("it is over", |status| status.leases == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_end_nothing() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    for body in ["<html>", "{\"apps\":", "{\"apps\":7}", "{}"] {
        server.says(move |question| match question {
            path if path.contains("/apps") => http("200 OK", body),
            _ => manager(NOTHING)(question),
        });
        keeps_leases(&world, body).await;
    }
    server.says(|question| match question {
        path if path.contains("/apps/") => http("404 Not Found", "<html>a proxy's page</html>"),
        _ => manager(NOTHING)(question),
    });
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(world.status().await.leases, 2, "a page is no word on the application");
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_that_run_confirm_their_leases_without_any_feed() {
    let server = Server::start(manager(Knows { live: FIRST, ..NOTHING })).await;
    let world = leased(&server).await;
    assert_eq!(world.counter("hints_followed").await, 0);
    server.says(manager(Knows { live: FIRST, containers: CONTAINERS, ..NOTHING }));
    let followed = |status: &v1::StatusResponse| status.counters.get("hints_followed") == Some(&1);
    world.until("one lease is met, and the master's container is nobody's", followed).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.counter("hints_followed").await, 1, "told of again it counts once");
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_the_schedulers_unless_the_configuration_states_them() {
    let server = Server::start(manager(NOTHING)).await;
    let world = World::start().await;
    start(options(&server), &world.running().daemon, &Metrics::new()).unwrap();
    let wanted = SizeRules {
        calculator: Calculator::Default,
        minimum: Resource::new(256, 1),
        increment: Resource::new(256, 1),
        maximum: Resource::new(2_048, 3),
    };
    let taken = || world.running().daemon.generation().snapshot.rules.clone();
    world.until("they are taken", |_| *taken() == wanted).await;
    assert!(world.status().await.notices.is_empty());

    let stating = World::start().await;
    let before: Arc<SizeRules> = stating.running().daemon.generation().snapshot.rules.clone();
    let stated = Some(SizeRules { minimum: Resource::new(512, 1), ..wanted.clone() });
    start(ResourceManagerOptions { stated, ..options(&server) }, &stating.running().daemon, &Metrics::new()).unwrap();
    let status = stating.until("it is said", |status| !status.notices.is_empty()).await;
    assert_eq!(status.notices, ["yarn.minimum_memory_mb is 512, and the ResourceManager's is 256"]);
    assert_eq!(stating.running().daemon.generation().snapshot.rules, before, "what is stated counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_over_tls_as_well() {
    let server = Server::with_tls(manager(NOTHING)).await;
    let world = World::start().await;
    let mut options = options(&server);
    options.servers.ca_file = Some(tls("ca.pem"));
    start(options, &world.running().daemon, &Metrics::new()).unwrap();
    world.until("both nodes", |status| status.nodes_usable == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_notices_that_applications_are_not_told_until_they_are() {
    let knows = manager(NOTHING);
    let server = Server::start(move |question| match question.starts_with("/conf") {
        true => http("403 Forbidden", "no admin"),
        false => knows(question),
    })
    .await;
    let world = World::start().await;
    start(options(&server), &world.running().daemon, &Metrics::new()).unwrap();
    let status = world.until("it is said", |status| !status.notices.is_empty()).await;
    assert!(status.notices[0].contains("which applications are over"), "{:?}", status.notices);
    assert!(status.notices[0].contains("403"), "{:?}", status.notices);
    assert!(!status.degraded.contains(&"resource_manager_silent".to_owned()), "nodes are told");
    server.says(manager(NOTHING));
    world.until("it is over", |status| status.notices.is_empty()).await;
}
