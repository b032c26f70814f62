//! Starting, answering, restarting, stopping.

use crate::world::{World, leased, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_leases_that_status_counts() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 3, 2_048)).await;
    let leases: usize = leased(&answer).values().map(Vec::len).sum();
    assert_eq!(leases, 3, "{answer:?}");
    assert_eq!(world.status().await.leases, 3);
    assert!(!answer.token.is_empty());
}
