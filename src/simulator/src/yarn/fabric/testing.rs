//! Small clusters for the tests of the simulated YARN.

use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::network::OpticalSection;
use hintd_model::network::build::{HybridSpec, OPTICAL_SWITCH, TreeSpec, hybrid, tree};
use hintd_model::units::{BitsPerSec, Bytes};
use hintd_policy::sample::cluster;

const MBIT: u64 = 1_000_000;

/// Racks with an uplink of 1 Gbit/s and NICs of 250 Mbit/s, as in 004 §3.3; hosts `host-0001`, ….
pub(in crate::yarn) fn snapshot(racks: usize, hosts_per_rack: usize) -> Snapshot {
    let spec = TreeSpec {
        racks,
        hosts_per_rack,
        cores: 1,
        host_bits_per_s: BitsPerSec(250 * MBIT),
        uplink_bits_per_s: BitsPerSec(1_000 * MBIT),
        ..TreeSpec::default()
    };
    cluster(&tree(&spec).expect("a sane tree"), Resource::ZERO, Bytes(1)).snapshot
}

/// Racks with uplinks of 100 Mbit/s, NICs of 10 Gbit/s and circuits of 1 Gbit/s: an elephant is of 11.25 MB or more.
pub(in crate::yarn) fn with_circuits(
    racks: usize,
    hosts_per_rack: usize,
    change: impl FnOnce(&mut OpticalSection),
) -> Snapshot {
    let tree = TreeSpec {
        racks,
        hosts_per_rack,
        cores: 1,
        host_bits_per_s: BitsPerSec(10_000 * MBIT),
        uplink_bits_per_s: BitsPerSec(100 * MBIT),
        ..TreeSpec::default()
    };
    let spec = HybridSpec { tree, optical_bits_per_s: BitsPerSec(1_000 * MBIT) };
    let mut built = hybrid(&spec).expect("a sane hybrid");
    let mut section = OpticalSection::of(OPTICAL_SWITCH);
    change(&mut section);
    built.network.set_optical(Some(section));
    cluster(&built, Resource::ZERO, Bytes(1)).snapshot
}
