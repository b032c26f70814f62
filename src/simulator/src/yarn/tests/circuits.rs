//! Whole runs with an optical switch.

use super::super::fabric::testing::with_circuits;
use super::gathering::{timed, wait_until};
use super::toy::CONTAINER;
use super::*;
use crate::report::CircuitReport;
use crate::settings::{Scripted, ScriptedEvent};
use hintd_model::network::OpticalSection;
use hintd_model::units::{Micros, Timestamp};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk};
use proptest::prelude::*;
use std::sync::Arc;

/// Uplinks of 100 Mbit/s, circuits of 1 Gbit/s.
pub(super) fn hybrid(
    racks: usize,
    nodes: usize,
    containers: u32,
    change: impl FnOnce(&mut OpticalSection),
) -> SimCluster {
    let mut snapshot = with_circuits(racks, nodes, change);
    Arc::make_mut(&mut snapshot.statics).total.fill(CONTAINER.times(containers.into()));
    let (containers, speeds) = (vec![containers; snapshot.nodes()], Vec::new());
    SimCluster { containers, speeds, snapshot, container: CONTAINER }
}

fn circuits(report: &RunReport) -> CircuitReport {
    report.circuits.expect("there is an optical switch")
}

#[test]
fn heavy_jobs_are_done_sooner_by_circuits_than_by_packets() {
    let jobs: Vec<_> = (0..3).map(|at| job(at, at as f64, 600 * MIB, 400 * MIB, 0)).collect();
    let lit = report(&hybrid(3, 2, 4, |_| ()), &SimSettings::default(), &jobs);
    let mut dark = hybrid(3, 2, 4, |_| ());
    let mut network = dark.snapshot.topology.network.as_deref().cloned().unwrap();
    network.set_optical(None);
    let statics = &dark.snapshot.statics;
    dark.snapshot.topology = Arc::new(hintd_model::cluster::Topology::new(Some(Arc::new(network)), statics));
    let dark = report(&dark, &SimSettings::default(), &jobs);
    assert_eq!((dark.circuits, dark.shuffle_bytes), (None, lit.shuffle_bytes));
    let used = circuits(&lit);
    assert!(used.share > 0.4 && used.bytes <= lit.cross_rack_bytes + 1_000, "{used:?} of {}", lit.cross_rack_bytes);
    assert!(used.changes > 0 && lit.mean_jct_s < 0.8 * dark.mean_jct_s, "{} and {}", lit.mean_jct_s, dark.mean_jct_s);
}

#[test]
fn what_the_script_says_of_ports_has_to_be_of_ports() {
    let at = Micros::from_secs(1);
    let run = |cluster: &SimCluster, link: &str| {
        let script = vec![ScriptedEvent { at, what: Scripted::PortStuck(link.into()) }];
        let settings = SimSettings { script, ..SimSettings::default() };
        with(cluster, &still(), &settings, &fifo(), &mixed(4), true)
    };
    let hybrid = hybrid(2, 2, 2, |_| ());
    assert!(run(&hybrid, "edge-01--optical").is_ok());
    for (cluster, link) in [(&hybrid, "edge-01--core-1"), (&cluster(2, 2, 2, 1_000_000_000), "edge-01--optical")] {
        assert_eq!(
            run(cluster, link).unwrap_err().to_string(),
            format!("script: the network has no optical port \"{link}\" whose circuits are chosen")
        );
    }
}

/// Ports and nodes that fail, stick and come back.
fn a_script() -> impl Strategy<Value = Vec<ScriptedEvent>> {
    let event = (0_u64..90_000, 0_u8..6, 1_u32..4, 1_u32..7).prop_map(|(at_ms, kind, rack, node)| {
        let port = || format!("edge-0{rack}--optical").as_str().into();
        let host = || format!("host-000{node}").as_str().into();
        let what = match kind {
            0 => Scripted::LinkDown(port()),
            1 => Scripted::LinkUp(port()),
            2 => Scripted::PortStuck(port()),
            3 => Scripted::PortLoose(port()),
            4 => Scripted::NodeDown(host()),
            _ => Scripted::NodeUp(host()),
        };
        ScriptedEvent { at: Micros(at_ms * 1_000), what }
    });
    prop::collection::vec(event, 0..10).prop_map(|mut script| {
        // All nodes are back in the end, so that every job can end.
        let back = (1..7).map(|node| Scripted::NodeUp(format!("host-000{node}").as_str().into()));
        script.extend(back.map(|what| ScriptedEvent { at: Micros::from_secs(200), what }));
        script
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_job_ends_once_whatever_ports_and_nodes_do(
        script in a_script(),
        elephant in 1_u64..20_000_000,
        interval_ms in prop_oneof![Just(100_u64), Just(1_000), Just(3_000)],
    ) {
        let cluster = hybrid(3, 2, 2, |section| {
            section.elephant_bytes = Some(Bytes(elephant));
            section.interval_ms = interval_ms;
        });
        let settings = SimSettings { script, ..SimSettings::default() };
        let run = |skip| {
            let report = with(&cluster, &JobModel::default(), &settings, &fifo(), &mixed(16), skip).unwrap();
            RunReport { events: 0, offers: 0, ..report }
        };
        let report = run(true);
        prop_assert_eq!((report.jobs, report.unfinished), (16, 0));
        prop_assert!(circuits(&report).share <= 1.0);
        prop_assert_eq!(&report, &run(true), "the same bytes twice");
        prop_assert_eq!(&report, &run(false), "no report skipped");
    }

    #[test]
    fn every_job_ends_though_shuffles_gather_while_ports_and_nodes_fail(script in a_script()) {
        let cluster = hybrid(3, 2, 2, |section| section.elephant_bytes = Some(Bytes(20_000_000)));
        // By the threshold, when no more can come, and after 20 s whatever is gathered.
        let gathers = timed(Some(|ask: &ShuffleAsk, _: Timestamp| {
            let whole = ask.maps_done && ask.reduces_placed;
            match whole || ask.gathered >= Bytes(20_000_000) {
                true => ShuffleAdvice::Start,
                false => wait_until(ask.since.plus(Micros::from_secs(20))),
            }
        }));
        let settings = SimSettings { script, ..SimSettings::default() };
        let run = || with(&cluster, &JobModel::default(), &settings, &gathers, &mixed(16), true).unwrap();
        let report = run();
        prop_assert_eq!((report.jobs, report.unfinished), (16, 0));
        prop_assert_eq!(&report, &run(), "the same bytes twice");
    }
}
