//! Grain `racks` against grain `nodes`: how far they differ, and where.

use super::*;

/// The cluster of 40 (8 racks × 5 nodes), `per_node` reduces on each node that begin together, 160 maps' output spread
/// evenly over the nodes, all there from the start. Last and mean arrival, seconds.
fn shuffle(grain: FlowGrain, per_node: u32, bytes: u64, over_s: f64) -> (f64, f64) {
    let mut fabric = Fabric::new(&snapshot(8, 5), &exact(grain)).unwrap();
    let reduces = 40 * per_node;
    fabric.job(JOB, 160, u64::from(reduces), Bytes(bytes * u64::from(reduces)));
    (0..160).for_each(|map| {
        fabric.map_done(0.0, JOB, map, NodeIdx(map % 40), Bytes(bytes * u64::from(reduces) / 160));
    });
    fabric.maps_complete(0.0, JOB);
    (0..reduces).for_each(|reduce| {
        fabric.reduce_begins(0.5 + over_s * f64::from(reduce) / f64::from(reduces), JOB, reduce, NodeIdx(reduce % 40))
    });
    let arrivals = all(&mut fabric);
    assert_eq!(arrivals.len(), reduces as usize);
    let last = arrivals.iter().map(|arrival| arrival.0).fold(0.0, f64::max);
    (last, arrivals.iter().map(|arrival| arrival.0).sum::<f64>() / f64::from(reduces))
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    for (per_node, over_s) in [(4, 20.0), (4, 60.0), (6, 30.0)] {
        let [racks, nodes] =
            [FlowGrain::Racks, FlowGrain::Nodes].map(|grain| shuffle(grain, per_node, 1_600_000_000, over_s));
        eprintln!(
            "{per_node} {over_s} ideal {} a node: racks {racks:?} nodes {nodes:?} last {:.4} mean {:.4}",
            f64::from(per_node) * 56.0,
            racks.0 / nodes.0,
            racks.1 / nodes.1
        );
    }
}
