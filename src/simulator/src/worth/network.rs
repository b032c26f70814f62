//! A cluster whose links never are the bottleneck.

use crate::yarn::SimCluster;
use hintd_model::network::maxmin::MOST_BITS_PER_S;
use hintd_model::units::BitsPerSec;
use std::sync::Arc;

/// So many times the capacity is never used up.
const FACTOR: u64 = 1_000;

/// The same cluster with every link a thousand times as fast; links without capacity, and those that are down, stay so.
/// One without a network stays as it is.
#[must_use]
pub fn without_bottlenecks(cluster: &SimCluster) -> SimCluster {
    let mut cluster = cluster.clone();
    let topology = Arc::make_mut(&mut cluster.snapshot.topology);
    if let Some(network) = &mut topology.network {
        let network = Arc::make_mut(network);
        let most = MOST_BITS_PER_S as u64;
        let faster: Vec<_> =
            network.links().map(|(at, link)| (at, link.capacity.0.saturating_mul(FACTOR).min(most))).collect();
        for (link, capacity) in faster {
            network.set_link(link, None, Some(BitsPerSec(capacity)));
        }
    }
    cluster
}
