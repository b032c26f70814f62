//! Tests of the fabric: hand-computed cases, and the oracles of the modules below.

mod failures;
mod oracle;

use super::testing::snapshot;
use super::*;
use crate::sim::settings::FlowGrain;

pub(super) fn exact(grain: FlowGrain) -> SimSettings {
    SimSettings { grain, rate_tolerance: 0.0, ..SimSettings::default() }
}

/// All arrivals to come, with their moments.
pub(super) fn all(fabric: &mut Fabric) -> Vec<(f64, Arrived)> {
    let (mut all, mut arrived) = (Vec::new(), Vec::new());
    while let Some(at_s) = fabric.next_s() {
        fabric.advance(at_s, &mut arrived);
        all.extend(arrived.drain(..).map(|what| (at_s, what)));
    }
    all
}

const JOB: JobNo = JobNo(0);

#[test]
fn a_lone_reduce_fetches_at_its_share_of_the_nic() {
    let mut fabric = Fabric::new(&snapshot(2, 2), &exact(FlowGrain::Racks)).unwrap();
    // 50 Mbit/s a fetch: 62.5 MB take 10 s from the second's end on.
    fabric.job(JOB, 1, 1, Bytes(62_500_000));
    fabric.map_done(0.25, JOB, 0, NodeIdx(0), Bytes(62_500_000));
    fabric.maps_complete(0.25, JOB);
    fabric.reduce_begins(0.5, JOB, 0, NodeIdx(2));
    assert_eq!(fabric.next_s(), Some(1.0));
    assert_eq!(all(&mut fabric), [(11.0, Arrived::Shuffle { job: JOB, reduce: 0 })]);
    assert_eq!(fabric.bytes(), FabricBytes { cross_rack_shuffle: Bytes(62_500_000), ..FabricBytes::default() });
}
