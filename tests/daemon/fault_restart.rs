//! A restart in the middle of feeding: another instance id, everything sent again, and no hints from half a model.

use crate::program::{NODES, Program, command, write_config};
use crate::world::{SOON, first_said, heartbeat, hello, leased, refusal, register, request};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_half_sent_feeds_asks_for_everything_again_and_keeps_leases_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let instance = program.status().await.instance_id;
    let before = program.client.request_hints(request("r1", 1, 20, 1_024), SOON).await.unwrap();
    let mut half: FeedSender<v1::HeartbeatItem> = program.client.feed(hello()).await.unwrap();
    for node in 0..NODES / 2 {
        half.send(heartbeat(&format!("r0n{node}"), 1, 0, vec![])).await.unwrap();
    }
    drop(program); // SIGKILL, the feed half sent
    // Acknowledgements that came before it are there all the same.
    let end = async { while half.ack().await.is_ok() {} };
    tokio::time::timeout(SOON, end).await.expect("its source sees the stream end");

    let program = Program::bare(&mut command(folder.path()), folder.path(), port).await;
    let status = program.status().await;
    assert_ne!(status.instance_id, instance);
    assert_eq!((status.nodes_usable, status.leases), (0, 20), "leases are held before any node is back");
    let found = refusal(program.client.request_hints(request("r2", 2, 1, 1_024), SOON).await);
    assert_eq!(found.0, Code::FailedPrecondition, "nothing is answered out of nothing");
    assert!(found.1.contains("heartbeats") || found.1.contains("node"), "{}", found.1);
    let again = program.client.request_hints(request("r1", 1, 20, 1_024), SOON).await.unwrap();
    assert_eq!(first_said(&again), before, "what was answered needs no feed");

    // A source that goes on where it was is told of the new instance, and which nodes are to register.
    let mut feed: FeedSender<v1::HeartbeatItem> = program.client.feed(hello()).await.unwrap();
    for node in NODES / 2..NODES {
        feed.send(heartbeat(&format!("r0n{node}"), 2, 0, vec![])).await.unwrap();
    }
    let ack = feed.await_acknowledged().await.unwrap();
    assert_eq!((ack.instance_id.as_str(), ack.resync.len() as u32), (status.instance_id.as_str(), NODES / 2));
    assert!(ack.refused.iter().all(|refused| refused.reason == "unknown_node"));

    // Half of the cluster: hints name only what is back.
    for node in 0..NODES / 2 {
        feed.send(register(&format!("r0n{node}"), "/rack0", 4_096)).await.unwrap();
    }
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    program.until("half is there", |status| status.nodes_usable == NODES / 2).await;
    let answer = program.client.request_hints(request("r3", 3, 40, 1_024), SOON).await.unwrap();
    for host in leased(&answer).keys() {
        assert!(host.trim_start_matches("r0n").parse::<u32>().unwrap() < NODES / 2, "{host} is not back");
    }
    let nodes = program.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
    for node in nodes.iter().filter(|node| node.total.as_ref().is_some_and(|total| total.memory() > 0)) {
        let (leased, total) = (node.leased.as_ref().unwrap().memory(), node.total.as_ref().unwrap().memory());
        assert!(leased <= total, "{}: {leased} of {total} MB, with what was leased before", node.host);
    }
}
