//! Version 0.1.0 beside this one: its journal, its configuration, its clients, and its daemon by what it would read.

use crate::world::{config_text, connect};
use flate2::read::GzDecoder;
use hintd::config::Config;
use hintd::server::{Running, start};
use hintd::store::{Journal, OpenOptions};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use hintd_client::wire::v1::feed_client::FeedClient;
use hintd_client::wire::v1::placement_client::PlacementClient;
use hintd_engine::{Engine, EngineSettings};
use hintd_model::cluster::SizeRules;
use hintd_model::units::Timestamp;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorSet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tonic::Code;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/upgrade").join(name)
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(data(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// What was recorded of 0.1.0's calls.
struct Recorded(Value);

impl Recorded {
    fn read() -> Self {
        Self(serde_json::from_str(&std::fs::read_to_string(data("wire-0.1.0.json")).unwrap()).unwrap())
    }

    /// A message as it was on the wire; it is the same when it is sent anew.
    fn message<M: Message + Default>(&self, at: &[&str]) -> M {
        let found = at.iter().fold(&self.0, |value, key| match key.parse::<usize>() {
            Ok(index) => &value[index],
            Err(_) => &value[*key],
        });
        let hex = found.as_str().unwrap_or_else(|| panic!("{at:?}"));
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        let message = M::decode(&bytes[..]).unwrap();
        assert_eq!(message.encode_to_vec(), bytes, "{at:?}: every field of it is known here");
        message
    }

    /// A request and its answer.
    fn asked(&self, number: usize) -> (v1::RequestHintsRequest, v1::RequestHintsResponse) {
        let number = number.to_string();
        (self.message(&["requests", &number, "wire"]), self.message(&["requests", &number, "answer"]))
    }
}

/// This version's daemon on the journal of 0.1.0.
async fn upgraded(folder: &Path) -> Running {
    std::fs::write(folder.join("journal.redb"), unpacked("journal-0.1.0.redb.gz")).unwrap();
    let config = Config::from_text(&config_text(folder, 0, &[]), "test.toml").unwrap();
    start(&config.options, Metrics::new()).await.unwrap()
}

#[test]
fn the_journal_of_0_1_0_gives_its_leases_answers_attempts_and_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.redb");
    std::fs::write(&path, unpacked("journal-0.1.0.redb.gz")).unwrap();
    let (_journal, found) = Journal::open(&path, OpenOptions::default()).unwrap();
    let at: u64 = Recorded::read().0["at_ms"].as_str().unwrap().parse().unwrap();
    // Its leases ran for a day.
    let settings = EngineSettings { lease_ttl: hintd_model::units::Micros::from_secs(86_400), ..Default::default() };
    let now = Timestamp(at * 1_000);
    let (engine, counts) = Engine::new(settings, SizeRules::default(), found.rows, now).unwrap();
    assert_eq!((counts.leases, counts.expired, counts.answers, counts.attempts), (5, 0, 5, 2), "{counts:?}");
    assert_eq!(counts.history, 1);
    let held = engine.attempts_held();
    let held: Vec<_> = held.iter().map(|held| (held.attempt.to_string(), held.leases, held.legacy)).collect();
    let first = ("appattempt_1_0001_000001".to_owned(), 3, true);
    assert_eq!(held, [first, ("appattempt_1_0002_000002".to_owned(), 2, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_0_1_0_goes_on_at_this_daemon_with_what_it_was_given() {
    let (recorded, folder) = (Recorded::read(), tempfile::tempdir().unwrap());
    let running = upgraded(folder.path()).await;
    let address = format!("http://{}", running.grpc);
    let mut old = PlacementClient::connect(address.clone()).await.unwrap();
    // Repeats are answered as they were then.
    for number in [0, 1, 3, 5] {
        let (request, answer) = recorded.asked(number);
        let mut again = old.request_hints(request).await.unwrap().into_inner();
        // What has come since, which such a client passes over.
        assert!(std::mem::take(&mut again.is_repeat));
        again.leases.clear();
        let hints = again.hints.as_mut().unwrap();
        hints.groups.clear();
        hints.hints.iter_mut().for_each(|hint| hint.group_index = None);
        assert_eq!(again.encode_to_vec(), answer.encode_to_vec(), "request {number}");
    }
    let explained = old.explain(recorded.message::<v1::ExplainRequest>(&["explain"])).await.unwrap().into_inner();
    assert_eq!(explained.leases.len(), 3);
    let release: v1::ReleaseRequest = recorded.message(&["release"]);
    old.release(release.clone()).await.unwrap();
    let guess = v1::ReleaseRequest { token: "guess".into(), ..release };
    assert_eq!(old.release(guess).await.unwrap_err().code(), Code::PermissionDenied);
    let follow: v1::FollowRequest = recorded.message(&["follow"]);
    drop(old.follow(tokio_stream::iter([follow])).await.unwrap());
    // The attempt that a later one ended stays over.
    let (request, _) = recorded.asked(2);
    let late = v1::RequestHintsRequest { request_id: "late".into(), ..request };
    assert_eq!(old.request_hints(late).await.unwrap_err().code(), Code::FailedPrecondition, "no node is there");
    // It ends what is its own, as it did.
    let hello = v1::FeedHello { source: "old".into(), ..Default::default() };
    let hello = v1::EventItem { number: 1, item: Some(v1::event_item::Item::Hello(hello)) };
    let done: v1::EventItem = recorded.message(&["done"]);
    let mut feed = FeedClient::connect(address).await.unwrap();
    let mut acks = feed.events(tokio_stream::iter([hello, done])).await.unwrap().into_inner();
    while let Some(ack) = acks.message().await.unwrap() {
        assert!(ack.refused.is_empty(), "{ack:?}");
    }
    let mut admin = hintd_client::admin(&running.admin).await.unwrap();
    let held = admin.list_attempts(v1::ListAttemptsRequest::default()).await.unwrap().into_inner();
    assert_eq!((held.total, held.attempts[0].application_id.as_str()), (1, "application_1_0002"));
    // A client of this version shows a nonce, and is let in by the token that an old one was given.
    let (_, answer) = recorded.asked(3);
    let client = connect(&running.grpc.to_string()).await.unwrap();
    let release = v1::ReleaseRequest {
        application_id: "application_1_0002".into(),
        attempt: 2,
        token: answer.token,
        ..Default::default()
    };
    client.release(release).await.unwrap();
    running.shutdown().await.unwrap();
}

#[test]
fn the_configuration_of_0_1_0_is_taken_and_means_what_it_meant() {
    let text = std::fs::read_to_string(data("hintd-0.1.0.toml")).unwrap();
    let old = Config::from_text(&text, "hintd.toml").unwrap();
    let (empty, all) = (Config::from_text("", "hintd.toml").unwrap(), &old.options.settings);
    assert_eq!(all.engine, empty.options.settings.engine, "its defaults are today's");
    assert_eq!(all.limits, empty.options.settings.limits);
    assert!(all.engine.legacy_clients);
}

/// All messages by name, those inside others with their parents' names before them.
fn messages(set: &FileDescriptorSet) -> BTreeMap<String, &DescriptorProto> {
    fn walk<'s>(prefix: &str, message: &'s DescriptorProto, all: &mut BTreeMap<String, &'s DescriptorProto>) {
        let name = format!("{prefix}.{}", message.name());
        for nested in &message.nested_type {
            walk(&name, nested, all);
        }
        all.insert(name, message);
    }
    let mut all = BTreeMap::new();
    for file in &set.file {
        for message in &file.message_type {
            walk(file.package(), message, &mut all);
        }
    }
    all
}

/// What old and new call and mean by a number: then each side reads what the other sends, and skips what it does not know.
#[test]
fn every_call_and_field_of_0_1_0_is_here_under_its_number_name_and_type() {
    let old = FileDescriptorSet::decode(&unpacked("descriptors-0.1.0.bin.gz")[..]).unwrap();
    let new = FileDescriptorSet::decode(hintd_client::wire::DESCRIPTORS).unwrap();
    let (before, now) = (messages(&old), messages(&new));
    assert!(before.len() > 150, "{}", before.len());
    for (name, message) in &before {
        let same = now.get(name).unwrap_or_else(|| panic!("{name} is gone"));
        for field in &message.field {
            let found = same.field.iter().find(|found| found.number == field.number);
            let found = found.unwrap_or_else(|| panic!("{name}.{} is gone", field.name()));
            let kind = |field: &prost_types::FieldDescriptorProto| {
                (field.name().to_owned(), field.r#type, field.label, field.type_name.clone(), field.proto3_optional())
            };
            assert_eq!(kind(found), kind(field), "{name}");
        }
        for added in same.field.iter().filter(|field| message.field.iter().all(|old| old.number != field.number)) {
            let reserved = added.label() == prost_types::field_descriptor_proto::Label::Required;
            assert!(!reserved, "{name}.{}: an old client does not send it", added.name());
        }
    }
    let calls = |set: &FileDescriptorSet| -> Vec<(String, String, bool, bool)> {
        let services = set.file.iter().flat_map(|file| &file.service);
        let calls = services.flat_map(|service| service.method.iter().map(move |method| (service, method)));
        let call = |(service, method): (&prost_types::ServiceDescriptorProto, &prost_types::MethodDescriptorProto)| {
            let name = format!("{}.{}", service.name(), method.name());
            let types = format!("{} {}", method.input_type(), method.output_type());
            (name, types, method.client_streaming(), method.server_streaming())
        };
        calls.map(call).collect()
    };
    let now = calls(&new);
    for call in calls(&old) {
        assert!(now.contains(&call), "{call:?}");
    }
}
