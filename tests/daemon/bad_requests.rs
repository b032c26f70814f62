//! What bad requests get: the right code, a message that names the value, and nothing leased.

use crate::world::{SOON, World, first_said, hello, refusal, request, resource};
use hintd_client::FeedSender;
use hintd_client::wire::{v1, yarn};
use prost::Message as _;
use std::time::Duration;
use tonic::Code;
use tonic::transport::Endpoint;

type Change = fn(&mut v1::RequestHintsRequest);

/// The answer to each change of a well-formed request on a cluster of two nodes of 8 GB.
async fn each_is_refused(cases: &[(Code, &str, Change)]) {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    for (code, said, change) in cases {
        let mut wire = request("r", 1, 1, 1_024);
        change(&mut wire);
        let (found, message) = world.refused(wire).await;
        assert_eq!(found, *code, "{message}");
        assert!(message.contains(said), "\"{message}\" lacks \"{said}\"");
    }
    // The daemon is none the worse for it.
    world.hints(request("good", 1, 1, 1_024)).await;
}

fn group(wire: &mut v1::RequestHintsRequest) -> &mut v1::TaskGroup {
    &mut wire.groups[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_malformed_ids_are_refused() {
    each_is_refused(&[
        (Code::InvalidArgument, "request_id", |r| r.request_id.clear()),
        (Code::InvalidArgument, "\"job_7\"", |r| r.application_id = "job_7".into()),
        (Code::InvalidArgument, "attempt", |r| r.attempt = 0),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zero_negative_and_overflowing_resources_and_counts_are_refused() {
    each_is_refused(&[
        (Code::InvalidArgument, "0 containers", |r| group(r).count = 0),
        (Code::InvalidArgument, "4294967295 containers", |r| group(r).count = u32::MAX),
        (Code::InvalidArgument, "groups[0].resource.memory", |r| group(r).resource = Some(resource(0, 1))),
        (Code::InvalidArgument, "-1024 is negative", |r| group(r).resource = Some(resource(-1_024, 1))),
        (Code::InvalidArgument, "-7 is negative", |r| group(r).resource = Some(resource(1_024, -7))),
        (Code::InvalidArgument, "9223372036854775807", |r| group(r).resource = Some(resource(i64::MAX, 1))),
        (Code::InvalidArgument, "overflows", |r| {
            let gpus = yarn::ResourceInformationProto {
                key: "yarn.io/gpu".into(),
                value: Some(i64::MAX),
                units: Some("P".into()),
                ..Default::default()
            };
            group(r).resource.as_mut().unwrap().resource_value_map = vec![gpus];
        }),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_refused_with_the_nearest_known_one() {
    each_is_refused(&[
        (Code::NotFound, "policy \"spred\" is unknown; did you mean \"spread\"", |r| r.policy = "spred".into()),
        (Code::NotFound, "\"r9n9\"", |r| {
            let constraints = v1::Constraints { avoid_hosts: vec!["r9n9".into()], ..Default::default() };
            r.constraints = Some(constraints);
        }),
        (Code::NotFound, "\"/rack9\"", |r| {
            let constraints = v1::Constraints { avoid_racks: vec!["/rack9".into()], ..Default::default() };
            r.constraints = Some(constraints);
        }),
        (Code::NotFound, "\"gpu\"", |r| group(r).node_label_expression = "gpu".into()),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_input_path_is_refused_once_datasets_are_known_and_degrades_before() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut wire = request("before", 1, 1, 1_024);
    wire.input_paths = vec!["/data/none".into()];
    let answer = world.hints(wire.clone()).await;
    assert!(answer.hints.unwrap().degraded.contains(&"no_blocks".to_owned()));
    let mut datasets: FeedSender<v1::DatasetItem> = world.client.feed(hello()).await.unwrap();
    let block = v1::DatasetBlock { block_id: 1, bytes: 7, hosts: vec![] };
    let put = v1::dataset_item::Item::Put(v1::Dataset { path: "/data/nine".into(), blocks: vec![block] });
    datasets.send(v1::DatasetItem { number: 0, item: Some(put) }).await.unwrap();
    assert!(datasets.await_acknowledged().await.unwrap().refused.is_empty());
    world.until("the dataset is known", |status| status.datasets == 1).await;
    wire.request_id = "after".into();
    let (code, message) = world.refused(wire.clone()).await;
    assert_eq!(code, Code::NotFound);
    assert!(message.contains("path \"/data/none\"") && message.contains("\"/data/nine\""), "{message}");
    wire.input_paths = vec!["/data/nine".into()];
    world.hints(wire).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_queue_is_refused_where_the_configuration_names_all() {
    let world = World::with(&[("queues.etl", "mode = \"on\""), ("queues.\"*\"", "")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut wire = request("r", 1, 1, 1_024);
    wire.queue = "etk".into();
    let (code, message) = world.refused(wire.clone()).await;
    assert_eq!(code, Code::NotFound);
    assert!(message.contains("queue \"etk\"") && message.contains("\"etl\""), "{message}");
    wire.queue = "etl".into();
    world.hints(wire).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_larger_than_any_node_is_refused_with_the_largest_that_fits() {
    each_is_refused(&[(Code::InvalidArgument, "8192", |r| group(r).resource = Some(resource(16_384, 1)))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_larger_than_the_empty_cluster_is_refused_with_the_largest_that_fits() {
    each_is_refused(&[(Code::InvalidArgument, "16", |r| {
        group(r).count = 17; // two nodes hold eight each
        r.gang = v1::Gang::All.into();
    })])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_cluster_without_room_is_resource_exhausted() {
    let world = World::start().await;
    let _feed = world.cluster(1, 1, 2_048).await;
    world.hints(request("first", 1, 2, 1_024)).await;
    let mut wire = request("second", 2, 1, 1_024);
    wire.when_full = v1::WhenFull::Fail.into();
    let found = refusal(world.client.request_hints(wire, SOON).await);
    assert_eq!(found.0, Code::ResourceExhausted, "{}", found.1);
    assert_eq!(world.status().await.leases, 2);
    let advised = world.hints(request("third", 2, 1, 1_024)).await.hints.unwrap();
    assert_eq!((advised.without_room, advised.hints[0].lease_ids.len()), (1, 0), "advice is no lease");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_model_is_a_failed_precondition_that_names_the_feed() {
    let world = World::start().await;
    let (code, message) = world.refused(request("r", 1, 1, 1_024)).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("heartbeats"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_with_another_body_already_exists() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let first = world.hints(request("r", 1, 1, 1_024)).await;
    let again = world.hints(request("r", 1, 1, 1_024)).await;
    assert!(again.is_repeat && first_said(&again) == first, "the same body, the same answer: {again:?}");
    let found = refusal(world.client.request_hints(request("r", 1, 2, 1_024), SOON).await);
    assert_eq!(found.0, Code::AlreadyExists);
    assert!(found.1.contains("\"r\""), "{}", found.1);
    assert_eq!(world.status().await.leases, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_no_permission_and_an_unknown_decision_is_not_found() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    world.hints(request("r", 1, 1, 1_024)).await;
    let release = |application: &str| v1::ReleaseRequest {
        application_id: application.to_owned(),
        attempt: 1,
        token: "guess".into(),
        lease_ids: vec![],
        nonce: Vec::new(),
    };
    let found = refusal(world.client.release(release("application_1_0001")).await);
    assert_eq!(found.0, Code::PermissionDenied, "{}", found.1);
    let found = refusal(world.client.release(release("what")).await);
    assert_eq!(found.0, Code::InvalidArgument, "{}", found.1);
    let start = v1::FollowStart {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: "guess".into(),
        resume_after: 0,
        nonce: Vec::new(),
    };
    let found = refusal(world.client.follow(start).await.map(|_| ()));
    assert_eq!(found.0, Code::PermissionDenied, "{}", found.1);
    assert_eq!(refusal(world.client.explain("0000000000000000").await).0, Code::NotFound);
    let found = refusal(world.client.explain("what").await);
    assert_eq!(found.0, Code::InvalidArgument, "{}", found.1);
    assert_eq!(world.status().await.leases, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_that_is_none_is_refused_by_name_and_counted() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let channel = Endpoint::from_shared(format!("http://{}", world.running().grpc)).unwrap().connect().await.unwrap();
    let mut raw = v1::placement_client::PlacementClient::new(channel);
    for (nth, header) in ["5", "+5S", "1.5S", "123456789S", "5s", "soon"].into_iter().enumerate() {
        let mut call = tonic::Request::new(request(&format!("r{nth}"), 1, 1, 1_024));
        call.metadata_mut().insert("grpc-timeout", header.parse().unwrap());
        let status = raw.request_hints(call).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{header}: {status:?}");
        assert!(status.message().contains("grpc-timeout") && status.message().contains(header), "{status:?}");
    }
    let mut call = tonic::Request::new(request("whole", 1, 1, 1_024));
    call.metadata_mut().insert("grpc-timeout", "20S".parse().unwrap());
    raw.request_hints(call).await.expect("a sound one is taken");
    let mut release = tonic::Request::new(v1::ReleaseRequest::default());
    release.metadata_mut().insert("grpc-timeout", "5".parse().unwrap());
    let status = raw.release(release).await.unwrap_err();
    assert!(status.message().contains("grpc-timeout"), "calls that name no deadline of their own as well: {status:?}");
    let counted = world.status().await.counters.get("requests_refused").copied().unwrap_or(0);
    assert!(counted >= 6, "each refusal is counted: {counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_has_passed_is_said_so_whatever_cut_it() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let channel = Endpoint::from_shared(format!("http://{}", world.running().grpc)).unwrap().connect().await.unwrap();
    let mut raw = v1::placement_client::PlacementClient::new(channel);
    let mut call = tonic::Request::new(request("r", 1, 1, 1_024));
    call.metadata_mut().insert("grpc-timeout", "1n".parse().unwrap());
    let status = raw.request_hints(call).await.unwrap_err();
    let cut = status.code() == Code::Cancelled && status.message().contains("Timeout expired");
    assert!(status.code() == Code::DeadlineExceeded || cut, "{status:?}");
}

/// Sends bytes as they are where a message should stand.
#[derive(Debug, Clone, Default)]
struct Bytes;

impl tonic::codec::Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl tonic::codec::Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), tonic::Status> {
        bytes_put(out, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn decode(&mut self, _: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<Vec<u8>>, tonic::Status> {
        Ok(Some(Vec::new()))
    }
}

fn bytes_put(out: &mut tonic::codec::EncodeBuf<'_>, bytes: &[u8]) {
    use prost::bytes::BufMut as _;
    out.put_slice(bytes);
}

/// The status of a call whose message is these bytes.
async fn raw_call(world: &World, method: &'static str, bytes: Vec<u8>) -> tonic::Status {
    let channel = Endpoint::from_shared(format!("http://{}", world.running().grpc)).unwrap().connect().await.unwrap();
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(method);
    let streamed = method.contains("/hintd.v1.Feed/");
    let request = tonic::Request::new(bytes);
    if streamed {
        let items = request.map(|bytes| tokio_stream::iter([bytes]));
        let mut acks = match grpc.streaming(items, path, Bytes).await {
            Ok(acks) => acks.into_inner(),
            Err(status) => return status,
        };
        loop {
            match tokio::time::timeout(SOON, acks.message()).await.unwrap() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended in order"),
                Err(status) => return status,
            }
        }
    }
    grpc.unary(request, path, Bytes).await.expect_err("no message stood there")
}

const HINTS: &str = "/hintd.v1.Placement/RequestHints";
const HEARTBEATS: &str = "/hintd.v1.Feed/Heartbeats";

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_message_are_an_invalid_argument() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let whole = request("r", 1, 1, 1_024).encode_to_vec();
    for (what, bytes) in [
        ("garbage", vec![0xFF; 64]),
        ("truncated", whole[..whole.len() - 3].to_vec()),
        ("not UTF-8", vec![10, 1, 0xFF]),
    ] {
        let status = raw_call(&world, HINTS, bytes).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status:?}");
        assert!(status.message().contains("malformed"), "{what}: {status:?}");
    }
    let status = raw_call(&world, HEARTBEATS, vec![0xFF; 64]).await;
    assert_eq!(status.code(), Code::InvalidArgument, "in a stream: {status:?}");
    assert_eq!(world.status().await.leases, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_message_is_an_invalid_argument_and_not_a_full_cluster() {
    let world = World::with(&[("limits", "message_bytes = 65536")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut wire = request("r", 1, 1, 1_024);
    wire.input_paths = vec!["/x".repeat(60_000)];
    for method in [HINTS, HEARTBEATS] {
        let status = raw_call(&world, method, wire.encode_to_vec()).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{method}: {status:?}");
        assert!(status.message().contains("65536"), "the limit is told: {status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_its_field_in_the_metadata_as_well() {
    let world = World::start().await;
    let mut wire = request("r", 1, 1, 1_024);
    wire.groups[0].count = 0;
    match world.client.request_hints(wire, Duration::from_secs(1)).await {
        Err(hintd_client::ClientError::Refused { field, .. }) => {
            assert_eq!(field.as_deref(), Some("groups[0].count"));
        }
        other => panic!("{other:?}"),
    }
}
