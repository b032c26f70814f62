//! The emulated cluster's network, as the real daemon is told of it: what jobs carry over links, and whose it is.

use crate::world::World;
use hintd_cli::emulate::hdfs::{BLOCK, Namespace};
use hintd_cli::emulate::shared::Behavior;
use hintd_cli::emulate::{Cluster, ClusterShape, Emulation, Workload};
use hintd_client::wire::v1;
use hintd_model::units::{BitsPerSec, Bytes, Micros};
use hintd_simulator::SwimJob;
use std::time::{Duration, Instant};

/// Longer than a job of these takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

async fn emulate(world: &World, jobs: &[SwimJob]) -> Emulation {
    let host_bits_per_s = BitsPerSec(1_000_000_000);
    let cluster =
        Cluster::build(ClusterShape { nodes: 20, racks: 5, host_bits_per_s, ..ClusterShape::default() }).unwrap();
    let mut namespace = Namespace::new(1);
    let workload = Workload::new(jobs, &cluster, &mut namespace, Duration::from_secs(2), 0.3).unwrap();
    // On a machine that halts for a second an answer takes one.
    let behaviour = Behavior { foreign_per_s: 2.0, limit: PATIENCE, deadline_ms: 30_000, ..Behavior::default() };
    let started = Emulation::start(world.client.clone(), cluster, workload, namespace, behaviour, Vec::new(), 1);
    started.await.unwrap().0
}

/// The greater of a link's measured loads, of its capacity.
fn measured(link: &v1::LinkView) -> f64 {
    let load = link.a_to_b_bits_per_s.max(link.b_to_a_bits_per_s) as f64;
    if link.load_source() == v1::LoadSource::Measured { load / link.bits_per_s as f64 } else { 0.0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_carry_what_a_job_shuffles_and_say_whose_it_is() {
    let world = World::start().await;
    let sort = SwimJob {
        name: "sort".into(),
        submit: Micros::ZERO,
        input: Bytes(8 * BLOCK.0),
        shuffle: Bytes(1_000_000_000),
        output: Bytes(1_000_000),
        input_path: None,
    };
    let emulation = emulate(&world, &[sort]).await;
    // Others take 30 % of an uplink at most, and none of a node's link.
    let began = Instant::now();
    let (mut uplink, mut access) = (None, None);
    while uplink.is_none() || access.is_none() {
        assert!(began.elapsed() < PATIENCE, "{uplink:?} {access:?}");
        let links = world.admin.clone().links(v1::LinksRequest::default()).await.unwrap().into_inner().links;
        for link in links.into_iter().filter(|link| measured(link) > 0.6) {
            let user = link.users.first().map(|user| user.application_id.clone());
            match (user, link.id.contains("core")) {
                (Some(user), true) => uplink = Some(user),
                (Some(user), false) => access = Some(user),
                (None, _) => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!([uplink, access].map(Option::unwrap), ["application_1_0001", "application_1_0001"]);
    let tally = emulation.finish().await.unwrap();
    assert_eq!((tally.jobs_ended, &tally.violations[..]), (1, &[][..]));
    assert!(tally.between_switches > Bytes(100_000_000), "{:?}", tally.between_switches);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_whose_hints_are_kept_back_run_all_the_same() {
    let world = World::with(&[("policy", "default = \"joint\""), ("placer", "guard = true")]).await;
    // Of these neither input nor traffic is known.
    let job = |at: u64| SwimJob {
        name: format!("job{at}").into(),
        submit: Micros::from_secs(at),
        input: Bytes::ZERO,
        shuffle: Bytes::ZERO,
        output: Bytes(1_000_000),
        input_path: None,
    };
    let tally = emulate(&world, &[job(0), job(1)]).await.finish().await.unwrap();
    assert_eq!((tally.hinted, tally.refused, tally.jobs_ended, tally.tasks_ended), (0, 0, 2, 4), "{tally:?}");
    assert_eq!(tally.violations, Vec::<String>::new());
}
