//! Small clusters for the tests of the simulated YARN.

use crate::cluster::{Resource, Snapshot};
use crate::network::build::{TreeSpec, tree};
use crate::policy::sample::cluster;
use crate::units::{BitsPerSec, Bytes};

const MBIT: u64 = 1_000_000;

/// Racks with an uplink of 1 Gbit/s and NICs of 250 Mbit/s, as in 004 §3.3; hosts `host-0001`, ….
pub(in crate::sim::yarn) fn snapshot(racks: usize, hosts_per_rack: usize) -> Snapshot {
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
