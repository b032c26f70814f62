//! Shuffles held back.

use super::*;

const MB: u64 = 1_000_000;

/// Two racks of two nodes; output in both, a reduce on the first node of the second rack, all maps done but one.
fn held(grain: FlowGrain) -> Fabric {
    let mut fabric = Fabric::new(&snapshot(2, 2), &exact(grain)).unwrap();
    fabric.hold_shuffles();
    fabric.job(JOB, 3, 1, Bytes(90 * MB));
    fabric.map_done(0.25, JOB, 0, NodeIdx(0), Bytes(30 * MB));
    fabric.map_done(0.25, JOB, 1, NodeIdx(3), Bytes(30 * MB));
    fabric.reduce_begins(0.5, JOB, 0, NodeIdx(2));
    fabric
}

#[test]
fn only_what_stays_in_its_rack_moves_before_somebody_says_start() {
    for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
        let mut fabric = held(grain);
        assert_eq!(fabric.held_shuffles(), [], "{grain:?}: the batch has not begun");
        fabric.advance(100.0, &mut Vec::new());
        let moved = FabricBytes { rack_local_shuffle: Bytes(30 * MB), ..FabricBytes::default() };
        assert_eq!((fabric.bytes(), fabric.next_s()), (moved, None), "{grain:?}");
        let (from, to) = (RackIdx(0), RackIdx(1));
        assert_eq!(fabric.held_shuffles(), [Gathered { job: JOB, from, to, bytes: Bytes(30 * MB) }], "{grain:?}");
    }
}

#[test]
fn a_start_is_for_what_is_gathered_and_later_output_is_held_back_again() {
    for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
        let mut fabric = held(grain);
        fabric.advance(100.0, &mut Vec::new());
        let (from, to) = (RackIdx(0), RackIdx(1));
        fabric.start_shuffle(100.0, JOB, to, from);
        assert_eq!(fabric.next_s(), None, "nothing goes that way");
        fabric.start_shuffle(100.0, JOB, from, to);
        assert_eq!(fabric.held_shuffles(), []);
        fabric.map_done(101.0, JOB, 2, NodeIdx(1), Bytes(30 * MB));
        fabric.maps_complete(101.0, JOB);
        fabric.advance(200.0, &mut Vec::new());
        assert_eq!(fabric.bytes().cross_rack_shuffle, Bytes(30 * MB));
        if grain == FlowGrain::Racks {
            // Another node's output, in grain nodes another source: its own wait.
            assert_eq!(fabric.held_shuffles(), [Gathered { job: JOB, from, to, bytes: Bytes(30 * MB) }]);
        }
        fabric.start_shuffle(300.0, JOB, from, to);
        let arrived: Vec<Arrived> = all(&mut fabric).into_iter().map(|(_, what)| what).collect();
        assert_eq!(arrived, [Arrived::Shuffle { job: JOB, reduce: 0 }], "{grain:?}");
        assert_eq!(fabric.bytes().cross_rack_shuffle, Bytes(60 * MB));
    }
}

#[test]
fn what_is_held_back_is_what_the_racks_reduces_would_fetch() {
    let mut fabric = Fabric::new(&snapshot(3, 2), &exact(FlowGrain::Racks)).unwrap();
    fabric.hold_shuffles();
    fabric.job(JOB, 4, 4, Bytes(400 * MB));
    // Three of four reduces, two of them in one rack; a quarter of the shuffle each.
    for (reduce, node) in [(0, 2), (1, 3), (2, 4)] {
        fabric.reduce_begins(0.5, JOB, reduce, NodeIdx(node));
    }
    fabric.map_done(0.75, JOB, 0, NodeIdx(0), Bytes(100 * MB));
    fabric.map_done(0.75, JOB, 1, NodeIdx(2), Bytes(100 * MB));
    fabric.advance(1.0, &mut Vec::new());
    let pairs: Vec<(u32, u32, u64)> =
        fabric.held_shuffles().iter().map(|held| (held.from.0, held.to.0, held.bytes.0 / MB)).collect();
    assert_eq!(pairs, [(0, 1, 50), (0, 2, 25), (1, 2, 25)]);
}
