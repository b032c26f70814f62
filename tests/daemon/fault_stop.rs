//! SIGTERM under load with streams open: it ends in time and in order, and nothing that was answered is lost.

use crate::load::{Account, Stop, joined};
use crate::program::{Program, write_config_with};
use crate::streams::follow_start;
use crate::world::{SOON, first_said, refusal, request};
use hintd_client::wire::v1;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tonic::Code;
use tonic::transport::Channel;
use v1::placement_client::PlacementClient;

/// Far more than an end in order takes on a busy machine.
const DRAIN: Duration = Duration::from_secs(30);

/// What calls that are under way at the end come to, by code: of a client that neither repeats nor waits.
async fn ask_without_patience(mut client: PlacementClient<Channel>, app: u32, codes: Arc<Mutex<HashMap<Code, u32>>>) {
    for n in 0.. {
        let answer = client.request_hints(request(&format!("t{app}n{n}"), 1_000 + app, 1, 1_024)).await;
        let code = match answer {
            Ok(_) => Code::Ok,
            Err(status) => status.code(),
        };
        *codes.lock().unwrap().entry(code).or_default() += 1;
        if code != Code::Ok {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_termination_under_load_drains_in_time_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[("listen", "drain = \"30s\"")]);
    let mut program = Program::start(folder.path(), port).await;
    let account = Account::default();
    let first = program.client.request_hints(request("f", 1, 1, 1_024), SOON).await.unwrap();
    let mut follow = program.client.follow(follow_start(&first, 0)).await.unwrap();
    let watch = v1::WatchRequest { watcher: "w".into(), flows: true, ..Default::default() };
    let mut watch = program.client.watch(watch).await.unwrap();
    let mut feed = program.register(0..1).await;
    let clients = account.load(&program.client, 8, 0, &Stop::default());
    let (codes, mut blunt) = (Arc::<Mutex<HashMap<Code, u32>>>::default(), Vec::new());
    for app in 0..8 {
        let client = PlacementClient::connect(format!("http://{}", program.address)).await.unwrap();
        blunt.push(tokio::spawn(ask_without_patience(client, app, Arc::clone(&codes))));
    }
    account.until_answered(16).await;
    let asked = Instant::now();
    while codes.lock().unwrap().get(&Code::Ok).is_none_or(|answered| *answered < 16) {
        assert!(asked.elapsed() < SOON, "nobody is answered: {:?}", codes.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = Instant::now();
    program.signal("-TERM");
    let status = program.ended(DRAIN + Duration::from_secs(2)).await;
    let took = began.elapsed();
    assert!(status.success() && took < DRAIN, "{status} after {took:?}: {}", program.log());
    let gone = |code| assert_eq!(code, Code::Unavailable, "streams say why they end");
    gone(refusal(follow.next().await.map(|_| ())).0);
    gone(feed_end(&mut feed).await);
    while let Some(update) = watch.message().await.transpose() {
        if let Err(status) = update {
            gone(status.code());
            break;
        }
    }
    joined(clients).await;
    joined(blunt).await;
    let codes = codes.lock().unwrap().clone();
    let known = |code: &Code| [Code::Ok, Code::Unavailable].contains(code);
    assert!(codes.keys().all(known) && codes[&Code::Ok] > 0, "answered, or told to come again: {codes:?}");
    drop(program);
    let program = Program::start(folder.path(), port).await;
    let answered = codes[&Code::Ok] as usize + account.leases() + 1;
    let held = program.status().await.leases as usize;
    assert!(held >= answered, "{held} leases are held of {answered} that were answered");
    let asked = account.asked().clone();
    for ((id, app), known) in asked {
        let Some(known) = known else { continue };
        let n: u32 = id.rsplit('n').next().unwrap().parse().unwrap();
        let again = program.client.request_hints(request(&id, app, 1 + n % 3, 1_024), SOON).await.unwrap();
        assert_eq!(first_said(&again), first_said(&known), "the answer of {id} is kept");
    }
    assert_eq!(program.status().await.leases as usize, held, "repeats lease nothing");
}

async fn feed_end(feed: &mut hintd_client::FeedSender<v1::HeartbeatItem>) -> Code {
    loop {
        if let Err(error) = feed.ack().await {
            return refusal::<()>(Err(error)).0;
        }
    }
}
