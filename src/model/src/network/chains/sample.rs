//! Boxes on generated networks, as 002 §6 and its Figure 6 draw them, and chains drawn for flows.

use super::document::BoxEntry;
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::BitsPerSec;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// The types of 002 §6: load balancer, firewall, intrusion prevention.
pub const TYPES: [&str; 3] = ["LB", "FW", "IPS"];

/// Boxes of the three types on a generated network, each of `capacity`.
///
/// Figure 6 draws firewalls at the core and load balancers and intrusion prevention at the aggregation layer of a
/// fat-tree: so here every core switch has a firewall, and aggregation switches have a load balancer and an IPS in turn
/// (both, where there is only one such switch). The paper does not draw other networks; what is done there:
/// - a tree of two levels, and whatever has no aggregation layer: edge switches stand for it;
/// - VL2: intermediate switches are the core;
/// - BCube, all of whose switches are of one tier and whose servers forward: switches of the highest level have
///   firewalls, those of level 0 (its racks) the two others in turn.
#[must_use]
pub fn figure6(network: &Network, capacity: BitsPerSec) -> Vec<BoxEntry> {
    let named = |tier: Tier| -> Vec<String> {
        let of_tier = network.vertices().filter(|(_, vertex)| vertex.tier() == Some(tier));
        of_tier.map(|(_, vertex)| vertex.name.to_string()).collect()
    };
    let (edges, aggregations, cores) = (named(Tier::Edge), named(Tier::Aggregation), named(Tier::Core));
    let level =
        |name: &String| name.strip_prefix("level-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    let highest = cores.iter().filter_map(level).max();
    let (top, below): (Vec<String>, Vec<String>) = match highest {
        Some(highest) => {
            let of = |wanted: u32| cores.iter().filter(|name| level(name) == Some(wanted)).cloned().collect();
            (of(highest), of(0))
        }
        None => (cores, if aggregations.is_empty() { edges } else { aggregations }),
    };
    let entry = |kind: &str, at: &String| BoxEntry {
        name: format!("{}-{at}", kind.to_lowercase()),
        kind: kind.to_owned(),
        at: at.clone(),
        bits_per_s: i64::try_from(capacity.0).unwrap_or(i64::MAX),
        up: true,
    };
    let mut boxes: Vec<BoxEntry> = top.iter().map(|at| entry("FW", at)).collect();
    let alone = below.len() == 1;
    for (nth, at) in below.iter().enumerate() {
        if alone || nth % 2 == 0 {
            boxes.push(entry("LB", at));
        }
        if alone || nth % 2 == 1 {
            boxes.push(entry("IPS", at));
        }
    }
    boxes
}

/// `count` sequences of one to three of the [`TYPES`], each length as likely as the others, types without repetition in
/// random order (002 §8.2: "All the traffic flows are configured to traverse 1-3 networking devices").
#[must_use]
pub fn sequences(count: usize, seed: u64) -> Vec<Vec<String>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || {
        let mut types = TYPES;
        types.shuffle(&mut random);
        let len = random.random_range(1..=types.len());
        types[..len].iter().map(|kind| (*kind).to_owned()).collect()
    };
    (0..count).map(|_| draw()).collect()
}
