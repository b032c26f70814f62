//! Clients that mean harm: messages that claim much or never end, answers that nobody reads, forged lines, floods.

use crate::program::{NODE_MB, Program, command, say, write_config_with};
use crate::streams::follow_start;
use crate::world::{SOON, World, heartbeat, request};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use hintd_client::wire::v1;
use prost::Message as _;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::codegen::{Bytes, http};

const HINTS: &str = "/hintd.v1.Placement/RequestHints";
const EXPLAIN: &str = "/hintd.v1.Placement/Explain";
const HEARTBEATS: &str = "/hintd.v1.Feed/Heartbeats";
const MIB: u64 = 1 << 20;
/// Far more than a debug daemon on a busy machine takes to make some hundred large answers: what takes longer is broken.
const PATIENCE: Duration = Duration::from_secs(600);

/// One connection that speaks HTTP/2 and no more.
struct Raw(SendRequest<Bytes>);

/// A call on it that is not over.
struct RawCall {
    up: SendStream<Bytes>,
    answer: ResponseFuture,
}

impl Raw {
    /// Who reads nothing has a window of 0.
    async fn connect(address: &str, window: u32) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut builder = Builder::new();
        builder.initial_window_size(window);
        let (sender, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        Self(sender)
    }

    /// Begins a call and sends bytes of its body; `None`: the daemon has ended the connection.
    async fn begin(&mut self, method: &str, bytes: Vec<u8>, end: bool) -> Option<RawCall> {
        let mut sender = self.0.clone().ready().await.ok()?;
        let call = http::Request::post(format!("http://hintd{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (answer, mut up) = sender.send_request(call, false).ok()?;
        up.send_data(bytes.into(), end).ok()?;
        Some(RawCall { up, answer })
    }
}

/// Code and message with which a call ended.
async fn ended(answer: ResponseFuture) -> (String, String) {
    let response = tokio::time::timeout(SOON, answer).await.expect("it is answered").unwrap();
    let (head, mut body): (_, RecvStream) = response.into_parts();
    let mut fields = head.headers;
    if !fields.contains_key("grpc-status") {
        while let Some(data) = tokio::time::timeout(SOON, body.data()).await.unwrap() {
            drop(data.unwrap());
        }
        fields = body.trailers().await.unwrap().unwrap();
    }
    let field = |name: &str| fields.get(name).map_or_else(String::new, |value| value.to_str().unwrap().to_owned());
    (field("grpc-status"), field("grpc-message"))
}

/// The prefix of a message of so many bytes.
fn prefix(bytes: u32) -> Vec<u8> {
    [&[0][..], &bytes.to_be_bytes()].concat()
}

fn framed(message: &impl prost::Message) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    [prefix(u32::try_from(bytes.len()).unwrap()), bytes].concat()
}

/// Looks at memory until a time has passed; by how much it grew at most.
async fn grows(program: &Program, before: u64, lasts: Duration) -> u64 {
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < lasts {
        most = most.max(program.resident().saturating_sub(before));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    most
}

fn counter(status: &v1::StatusResponse, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_prefix_claims_takes_no_memory_and_what_never_ends_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("limits", "upload = \"2s\"")]);
    let program = Program::start(folder.path(), port).await;
    let answer = program.client.request_hints(request("first", 1, 1, 1_024), SOON).await.unwrap();
    let mut follow = program.client.follow(follow_start(&answer, 0)).await.unwrap();
    let before = program.resident();
    let mut calls = Vec::new();
    for _ in 0..4 {
        let mut raw = Raw::connect(&program.address, 1 << 20).await;
        for n in 0..250 {
            let method = if n % 2 == 0 { HINTS } else { HEARTBEATS };
            calls.push(raw.begin(method, prefix(16 << 20), false).await.unwrap());
        }
    }
    let grew = grows(&program, before, Duration::from_secs(1)).await;
    program.client.request_hints(request("between", 2, 1, 1_024), SOON).await.unwrap();
    let sent = calls.len() * 5;
    say(&format!("{} calls that claim 16 MiB each, {sent} bytes: memory grew by {} MiB", calls.len(), grew / MIB));
    assert!(grew < 64 * MIB, "{grew} bytes for {sent} that were sent");
    program.until("all were ended", |status| counter(status, "messages_refused_upload") >= 1_000).await;
    let (code, message) = ended(calls.swap_remove(0).answer).await;
    assert_eq!(code, (Code::InvalidArgument as i32).to_string(), "{message}");
    assert!(message.contains("limits.upload"), "{message}");
    // Streams that are silent between messages are nobody's concern.
    let still = tokio::time::timeout(Duration::from_millis(100), follow.next()).await;
    assert!(still.is_err(), "the Follow stream goes on: {still:?}");
    let again = program.client.request_hints(request("last", 3, 1, 1_024), SOON).await.unwrap();
    assert!(again.hints.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_sends_nothing_at_all_is_ended_as_well() {
    let world = World::with(&[("limits", "upload = \"200ms\"")]).await;
    let mut raw = Raw::connect(&world.running().grpc.to_string(), 1 << 20).await;
    let mut silent = raw.begin(HINTS, Vec::new(), false).await.unwrap();
    let half = raw.begin(EXPLAIN, framed(&v1::ExplainRequest::default()), false).await.unwrap();
    for answer in [silent.answer, half.answer] {
        let (code, message) = ended(answer).await;
        assert_eq!(code, (Code::InvalidArgument as i32).to_string(), "{message}");
    }
    drop(silent.up.send_data(Bytes::new(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_would_take_much_more_when_it_is_read_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[]);
    let program = Program::start(folder.path(), port).await;
    let before = program.resident();
    let groups = [0x42, 0].repeat(4 << 20); // eight MiB of task groups with nothing in them
    let mut raw = Raw::connect(&program.address, 1 << 20).await;
    let sent = [prefix(u32::try_from(groups.len()).unwrap()), groups].concat();
    let call = raw.begin(HINTS, sent, true).await.unwrap();
    let grew = grows(&program, before, Duration::from_secs(2)).await;
    say(&format!("8 MiB of empty groups: memory grew by {} MiB", grew / MIB));
    assert!(grew < 128 * MIB, "{grew} bytes");
    let (code, message) = ended(call.answer).await;
    assert_eq!(code, (Code::InvalidArgument as i32).to_string(), "{message}");
    assert!(message.contains("when%20they%20are%20read") || message.contains("when they are read"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_on_their_way_stay_within_their_bytes_and_leave_room_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("limits", "inbound_bytes = 8388608")]);
    let program = Program::start(folder.path(), port).await;
    let before = program.resident();
    let part = [prefix(4 << 20), vec![7; 200 * 1_024]].concat();
    let (mut raws, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let mut raw = Raw::connect(&program.address, 1 << 20).await;
        for _ in 0..100 {
            calls.extend(raw.begin(HINTS, part.clone(), false).await);
        }
        raws.push(raw);
    }
    let grew = grows(&program, before, Duration::from_secs(1)).await;
    let sent = (calls.len() * part.len()) as u64;
    say(&format!("{} MiB of messages that never end: memory grew by {} MiB", sent / MIB, grew / MIB));
    assert!(sent > 100 * MIB && grew < 64 * MIB, "{grew} bytes for {sent}");
    program.until("most were refused", |status| counter(status, "messages_refused_inbound") >= 500).await;
    // A message of several frames, of somebody else.
    let mut long = request("long", 1, 1, 1_024);
    long.input_paths = (0..3_000).map(|n| format!("/data/part-{n:05}")).collect();
    assert!(long.encoded_len() > 40_000);
    program.client.request_hints(long, SOON).await.expect("another connection has its share");
    drop(calls);
    drop(raws);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_stay_within_their_bytes_and_their_connection_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = [("limits", "outbound_bytes = 8388608"), ("limits", "unread = \"9s\""), ("records", "bytes = \"0\"")];
    let port = write_config_with(folder.path(), &limits);
    let program = Program::start(folder.path(), port).await;
    let many = u32::try_from(NODE_MB / 1_024).unwrap() * 8;
    let answer = program.client.request_hints(request("large", 1, many, 1_024), SOON).await.unwrap();
    let token = answer.token.clone();
    let decision_id = answer.hints.unwrap().decision_id;
    let explain = v1::ExplainRequest { decision_id: decision_id.clone(), token, ..Default::default() };
    let whole = program.client.explain(&decision_id).await.unwrap().encoded_len() as u64;
    let before = program.resident();
    let (mut raw, mut calls) = unread_calls(&program, &explain).await;
    let asked = calls.len() as u64 * whole;
    // Until enough answers were made and refused, however long that takes: a daemon that makes so few of them that their
    // connection is closed before is asked on another one.
    let (began, mut connections, mut grew) = (Instant::now(), 1, 0);
    let refused = loop {
        grew = program.resident().saturating_sub(before).max(grew);
        let status = program.status().await;
        let refused = counter(&status, "messages_refused_outbound");
        if refused > 100 && began.elapsed() > Duration::from_millis(1_500) {
            break refused;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{refused} were refused on {connections} connections: {:?}",
            status.counters
        );
        if counter(&status, "connections_unread") >= connections {
            (raw, calls) = unread_calls(&program, &explain).await;
            connections += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    say(&format!(
        "{} MiB of answers that nobody reads, on each of {connections} connections: {refused} were refused, memory grew by {} MiB",
        asked / MIB,
        grew / MIB
    ));
    assert!(asked > 60 * MIB && grew < 56 * MIB, "{grew} bytes for answers of {asked}");
    while counter(&program.status().await, "connections_unread") < connections {
        assert!(began.elapsed() < PATIENCE, "the connection is not closed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let gone = tokio::time::timeout(SOON, calls.pop().unwrap().answer).await.expect("it is told at once");
    drop(gone);
    assert!(raw.begin(EXPLAIN, framed(&explain), true).await.is_none(), "nothing goes on there");
    assert_eq!(counter(&program.status().await, "connections_unread"), connections);
    program.client.explain(&decision_id).await.expect("who reads is answered");
}

/// A connection that reads nothing, and many calls on it whose answers are large.
async fn unread_calls(program: &Program, explain: &v1::ExplainRequest) -> (Raw, Vec<RawCall>) {
    let mut raw = Raw::connect(&program.address, 0).await;
    let mut calls = Vec::new();
    for _ in 0..250 {
        calls.extend(raw.begin(EXPLAIN, framed(explain), true).await);
    }
    (raw, calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_request_makes_lines_of_its_own_in_the_log() {
    const FORGED: &str = "x\n2026-01-01T00:00:00Z ERROR forged \u{1b}[31m\u{202e}\u{2028}";
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("log", "level = \"debug\"")]);
    let program = Program::start(folder.path(), port).await;
    let changes: [fn(&mut v1::RequestHintsRequest); 8] = [
        |r| r.request_id = FORGED.into(),
        |r| r.application_id = FORGED.into(),
        |r| r.queue = FORGED.into(),
        |r| r.policy = FORGED.into(),
        |r| r.groups[0].name = FORGED.into(),
        |r| r.user = "ann\u{202e}".into(),
        |r| {
            let edge = v1::GroupEdge { from: FORGED.into(), to: "g".into(), ..Default::default() };
            r.edges = vec![edge];
        },
        |r| r.request_id = "\u{2028}\n".into(),
    ];
    for change in changes {
        let mut wire = request("r", 1, 1, 1_024);
        change(&mut wire);
        let (code, message) = crate::world::refusal(program.client.request_hints(wire, SOON).await);
        assert_eq!(code, Code::InvalidArgument, "{message}");
        assert!(!message.contains(['\n', '\u{1b}', '\u{202e}', '\u{2028}']), "{message:?}");
    }
    let pair = v1::HostPair { src: "r0n0".into(), dst: "r0n1".into(), class: String::new() };
    let watch = v1::WatchRequest { watcher: FORGED.into(), pairs: vec![pair], ..Default::default() };
    assert_eq!(crate::world::refusal(program.client.watch(watch).await.map(|_| ())).0, Code::InvalidArgument);
    let began = Instant::now();
    while !program.log().contains("refused: the request is not well-formed") && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await; // lines are written by a thread of their own
    }
    let log = program.log();
    assert!(log.contains("refused: the request is not well-formed"), "{log}");
    for line in log.lines() {
        let forged = line.starts_with("2026-01-01") || line.contains(['\u{1b}', '\u{202e}', '\u{2028}']);
        assert!(!forged, "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_application_pushes_out_nobody_elses_evidence_and_fills_no_log() {
    const FLOOD: u32 = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(
        folder.path(),
        &[
            ("records", "bytes = \"512KiB\""),
            ("limits", "answers = 200"),
            ("limits", "requests_per_s = 0"),
            ("limits", "log_lines_per_s = 2"), // so that a slow machine leaves lines out as well
            ("leases", "time_to_live = \"1s\""),
            ("log", "level = \"info\""),
        ],
    );
    let program = Program::start(folder.path(), port).await;
    let mut others = Vec::new();
    for app in 1..=5 {
        let answer = program.client.request_hints(request(&format!("other{app}"), app, 2, 1_024), SOON).await.unwrap();
        others.push(answer.hints.unwrap().decision_id);
    }
    tokio::time::sleep(Duration::from_millis(1_300)).await; // their leases have ended: nothing else keeps them
    let mut flood = tokio::task::JoinSet::new();
    for n in 0..FLOOD {
        let client = program.client.clone();
        flood
            .spawn(async move { client.request_hints_once(request(&format!("flood{n}"), 99, 1, 1_024)).await.is_ok() });
        if flood.len() >= 32 {
            flood.join_next().await;
        }
    }
    flood.join_all().await;
    // What is too many goes with the next answer: once none of them holds a lease, all but the last two hundred.
    program.until("its leases ended", |status| status.leases == 0).await;
    program.client.request_hints(request("flood-last", 99, 1, 1_024), SOON).await.unwrap();
    let wanted = u64::from(FLOOD) * 9 / 10;
    let status = program.until("its answers went", |status| counter(status, "answers_evicted") >= wanted).await;
    let evicted = counter(&status, "answers_evicted");
    say(&format!("{FLOOD} requests of one application: {evicted} answers went"));
    for decision in &others {
        program.client.explain(decision).await.expect("it is explained as before");
        let asked = v1::ReplayRequest { decision_id: decision.clone(), policy: String::new() };
        let again = program.admin.clone().replay(asked).await.expect("and made again").into_inner();
        assert!(again.same, "{:?}", again.differences);
    }
    let lines = program.log().lines().filter(|line| line.contains("application_1_0099")).count();
    assert!(lines < FLOOD as usize / 2, "{lines} lines");
    assert!(counter(&status, "request_lines_left_out") > 0, "{:?}", status.counters);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_says_that_it_is_one_and_what_became_of_its_leases() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let first = world.hints(request("r1", 1, 2, 1_024)).await;
    assert!(!first.is_repeat && first.leases.is_empty(), "{first:?}");
    let states =
        |answer: &v1::RequestHintsResponse| answer.leases.iter().map(|lease| lease.state.clone()).collect::<Vec<_>>();
    let again = world.hints(request("r1", 1, 2, 1_024)).await;
    assert_eq!((again.is_repeat, states(&again)), (true, vec!["held".to_owned(); 2]));
    assert_eq!(again.hints, first.hints, "the answer itself is as it was");
    let release = v1::ReleaseRequest {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: first.token.clone(),
        lease_ids: vec![again.leases[0].lease_id],
        ..Default::default()
    };
    world.client.release(release).await.unwrap();
    let after = world.hints(request("r1", 1, 2, 1_024)).await;
    assert_eq!(states(&after), ["released", "held"]);
    let hints = after.hints.unwrap();
    for hint in &hints.hints {
        assert_eq!(hints.groups[hint.group_index.unwrap() as usize], hint.group);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_a_long_name_and_many_hints_makes_no_long_journal() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("limits", "name_bytes = 4096")]);
    let mut program = Program::bare(&mut command(folder.path()), folder.path(), port).await;
    let _feed = program.register(0..120).await;
    let journal = || std::fs::metadata(folder.path().join("journal.redb")).unwrap().len();
    let mut wire = request("r1", 1, 120, 1_024);
    wire.groups[0].name = "g".repeat(4_000);
    wire.groups[0].constraints = Some(v1::Constraints { max_per_node: 1, ..Default::default() });
    let before = journal();
    let answer = program.client.request_hints(wire, SOON).await.unwrap();
    let token = answer.token.clone();
    let hints = answer.hints.unwrap();
    assert_eq!(hints.hints.len(), 120);
    // A restart reads what was written.
    program.signal("-TERM");
    assert!(program.ended(SOON).await.success());
    let program = Program::bare(&mut command(folder.path()), folder.path(), port).await;
    let asked = v1::ExplainRequest { decision_id: hints.decision_id.clone(), token, ..Default::default() };
    let explained = program.client.explain_with(asked).await.unwrap().decision.unwrap();
    assert_eq!(explained.hints, hints.hints);
    let grew = journal() - before;
    say(&format!("120 hints of a group whose name has 4,000 bytes: the journal grew by {grew} bytes"));
    assert!(grew < 1 << 20, "{grew} bytes, where the name 120 times over has 480,000 and its leases' rows as much");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_and_follows_and_reads_nothing_holds_little_and_may_come_back() {
    let world = World::with(&[("limits", "unread = \"500ms\""), ("limits", "follow_messages = 2")]).await;
    let mut feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 6, 2_048)).await;
    let mut raw = Raw::connect(&world.running().grpc.to_string(), 0).await;
    let start = v1::FollowRequest { start: Some(follow_start(&answer, 0)), events: Vec::new() };
    let _follow = raw.begin("/hintd.v1.Placement/Follow", framed(&start), false).await.unwrap();
    // Six messages for a follower that reads none of them: the outbox keeps two.
    for (id, used) in (2..8).zip([2_048, 4_096, 6_144, 8_192]) {
        let stranger = (format!("container_1_0099_01_{id:06}"), used);
        feed.send(heartbeat("r0n0", id, used, vec![stranger])).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    world.until("its leases there are withdrawn", |status| status.leases <= 4).await;
    let mut reader = world.client.follow(follow_start(&answer, 1)).await.unwrap();
    let next = tokio::time::timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert!(matches!(next.advice, Some(v1::follow_message::Advice::Gap(_) | v1::follow_message::Advice::Withdraw(_))));
    assert_eq!(world.counter("connections_unread").await, 0, "what is not to be sent yet keeps no connection busy");
    let pair = v1::HostPair { src: "r0n0".into(), dst: "r0n1".into(), class: String::new() };
    let watch = v1::WatchRequest { watcher: "w".into(), pairs: vec![pair], ..Default::default() };
    // A window of one byte: where it is 0, what is not ready at once is not even encoded.
    let mut raw = Raw::connect(&world.running().grpc.to_string(), 1).await;
    let _watch = raw.begin("/hintd.v1.Routes/Watch", framed(&watch), true).await.unwrap();
    world.until("the connection was closed", |status| counter(status, "connections_unread") == 1).await;
    let mut back = world.client.watch(watch).await.unwrap();
    let first = tokio::time::timeout(SOON, back.message()).await.unwrap().unwrap().unwrap();
    assert!(first.snapshot, "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_drips_is_closed_like_one_that_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("limits", "unread = \"2s\""), ("records", "bytes = \"0\"")]);
    let program = Program::start(folder.path(), port).await;
    let many = u32::try_from(NODE_MB / 1_024).unwrap() * 8;
    let answer = program.client.request_hints(request("large", 1, many, 1_024), SOON).await.unwrap();
    let decision_id = answer.hints.unwrap().decision_id;
    let explain = v1::ExplainRequest { decision_id: decision_id.clone(), token: answer.token, ..Default::default() };
    let whole = program.client.explain(&decision_id).await.unwrap().encoded_len();
    let mut raw = Raw::connect(&program.address, 1).await;
    let call = raw.begin(EXPLAIN, framed(&explain), true).await.unwrap();
    let response = tokio::time::timeout(SOON, call.answer).await.unwrap().unwrap();
    let (mut body, mut read) = (response.into_body(), 0);
    // A byte at a time, far more often than `limits.unread`, until the daemon has enough of it.
    let dripped = async {
        while let Some(Ok(data)) = body.data().await {
            read += data.len();
            let _ = body.flow_control().release_capacity(data.len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, dripped).await.expect("it does not go on for ever");
    say(&format!("{read} of {whole} bytes were read before the connection was closed"));
    assert!(read > 1 && read < 65_536 && whole > 200_000, "{read} of {whole}");
    let status = program.until("it is counted", |status| counter(status, "connections_unread") == 1).await;
    assert_eq!(counter(&status, "connections_unread"), 1);
    program.client.explain(&decision_id).await.expect("who reads is answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_kept_while_others_are_read_closes_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let limits =
        [("limits", "unread = \"3s\""), ("limits", "read_bytes_per_s = 1048576"), ("records", "bytes = \"0\"")];
    let port = write_config_with(folder.path(), &limits);
    let program = Program::start(folder.path(), port).await;
    let many = u32::try_from(NODE_MB / 1_024).unwrap() * 8;
    let answer = program.client.request_hints(request("large", 1, many, 1_024), SOON).await.unwrap();
    let decision_id = answer.hints.unwrap().decision_id;
    let explain = v1::ExplainRequest { decision_id: decision_id.clone(), token: answer.token, ..Default::default() };
    let mut raw = Raw::connect(&program.address, 1_024).await;
    let call = raw.begin(EXPLAIN, framed(&explain), true).await.unwrap();
    let kept = tokio::time::timeout(SOON, call.answer).await.unwrap().unwrap();
    // Its window is never opened; small answers go by it, far more often than `limits.unread`.
    let mut others = 0;
    let asked = async {
        while let Some(call) = raw.begin("/grpc.health.v1.Health/Check", prefix(0), true).await {
            let Ok(response) = call.answer.await else { break };
            let mut body = response.into_body();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
            }
            others += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, asked).await.expect("it does not go on for ever");
    drop(kept);
    say(&format!("{others} others were answered before the connection was closed"));
    let status = program.until("it is counted", |status| counter(status, "connections_slow") > 0).await;
    assert_eq!((counter(&status, "connections_slow"), counter(&status, "connections_unread")), (1, 0));
    assert!(others > 1, "{others}");
    program.client.explain(&decision_id).await.expect("who reads is answered");
}
