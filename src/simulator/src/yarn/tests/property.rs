//! Any small cluster, trace and script, under every policy that dispatches: the invariants hold to the end.

use super::*;
use crate::settings::{FlowGrain, Scripted, ScriptedEvent};
use hintd_model::units::{Micros, NodeIdx};
use hintd_policy::{adapt, registry};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct World {
    shape: (usize, usize, u32, u64),
    grain: FlowGrain,
    seed: u64,
    jobs: Vec<TraceJob>,
    /// Node, when it goes, how long it stays away, seconds.
    losses: Vec<(u32, u32, u32)>,
}

impl World {
    fn settings(&self, cluster: &SimCluster) -> SimSettings {
        let mut script = Vec::new();
        for &(node, from_s, for_s) in &self.losses {
            let host = cluster.snapshot.host(NodeIdx(node % cluster.snapshot.nodes() as u32)).clone();
            let at = |s: u32, what| ScriptedEvent { at: Micros::from_secs(s.into()), what };
            script.push(at(from_s, Scripted::NodeDown(host.clone())));
            script.push(at(from_s + for_s, Scripted::NodeUp(host)));
        }
        SimSettings { script, seed: self.seed, users: 3, grain: self.grain, ..SimSettings::default() }
    }
}

prop_compose! {
    fn a_job()(
        gap_s in 0..12_u32, input_mib in prop_oneof![Just(0), 1..40_u64, 100..900_u64], odd in 0..7_u64,
        shuffle_mib in prop_oneof![Just(0), 0..4_u64, 50..600_u64], output in 0..2_u64,
        reduces in prop_oneof![3 => Just(None), 1 => (0..6_u64).prop_map(Some)],
    ) -> (u32, TraceJob) {
        let shaped = job(0, 0.0, input_mib * MIB + odd, shuffle_mib * MIB + odd, output);
        (gap_s, TraceJob { reduces, ..shaped })
    }
}

prop_compose! {
    fn a_world()(
        shape in (2..4_usize, 1..4_usize, 1..4_u32, prop_oneof![Just(50_000_000), Just(1_000_000_000_u64)]),
        nodes_as_grain in any::<bool>(), seed in 0..1_000_u64,
        gaps in prop::collection::vec(a_job(), 1..10),
        losses in prop::collection::vec((0..9_u32, 1..90_u32, 1..60_u32), 0..4),
    ) -> World {
        let mut at_s = 0;
        let jobs = gaps.into_iter().enumerate().map(|(number, (gap_s, job))| {
            at_s += gap_s;
            TraceJob { name: format!("job{number}").into(), submit: Micros::from_secs(at_s.into()), ..job }
        });
        let grain = if nodes_as_grain { FlowGrain::Nodes } else { FlowGrain::Racks };
        World { shape, grain, seed, jobs: jobs.collect(), losses }
    }
}

fn run(world: &World, cluster: &SimCluster, dispatch: &dyn DynDispatch, skip: bool) -> RunReport {
    let settings = world.settings(cluster);
    let report = with(cluster, &JobModel::default(), &settings, dispatch, &world.jobs, skip).unwrap();
    assert_eq!((report.jobs, report.unfinished), (world.jobs.len() as u64, 0));
    RunReport { events: 0, offers: 0, ..report }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn every_job_ends_once_under_every_policy_whatever_fails(world in a_world()) {
        let (racks, nodes, containers, uplink) = world.shape;
        let cluster = cluster(racks, nodes, containers, uplink);
        run(&world, &cluster, &fifo(), true);
        for entry in registry::entries() {
            let policy = registry::with_defaults(entry.name).unwrap();
            if let Some(dispatch) = adapt::dispatcher_of(&*policy) {
                let report = run(&world, &cluster, &dispatch, true);
                prop_assert_eq!(&report, &run(&world, &cluster, &dispatch, true), "{}: the same bytes twice", entry.name);
                prop_assert_eq!(&report, &run(&world, &cluster, &dispatch, false), "{}: none skipped", entry.name);
            }
        }
    }
}
