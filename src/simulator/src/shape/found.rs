//! Problems as they are found, one by one, and the bounds that several checks share.

use super::ClusterShape;
use hintd_model::cluster::document::{DocumentProblem, Place};
use hintd_model::units::BitsPerSec;
use std::fmt::Display;

/// Most containers of one node: more cores than a machine has.
pub const MOST_CONTAINERS_PER_NODE: u32 = 1_000;

/// Slowest and fastest links that can be meant: below 1 Mbit/s somebody wrote megabits for bits.
const LINKS: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000_000;

/// What was found so far.
#[derive(Default)]
pub(super) struct Found(pub(super) Vec<DocumentProblem>);

impl Found {
    pub(super) fn add(&mut self, field: &str, message: impl Display) {
        self.0.push(DocumentProblem { place: Place::Field(field.to_owned()), message: message.to_string() });
    }

    pub(super) fn count(&mut self, field: &str, value: usize, why: &str) {
        if value == 0 {
            self.add(field, format_args!("is 0: {why}"));
        }
    }

    pub(super) fn link(&mut self, field: &str, capacity: BitsPerSec) {
        let BitsPerSec(bits) = capacity;
        if bits == 0 {
            self.add(field, "is 0: nothing would ever arrive");
        } else if bits < *LINKS.start() {
            self.add(field, format_args!("is {bits}, below {} bit/s: is the unit right", LINKS.start()));
        } else if !LINKS.contains(&bits) {
            self.add(field, format_args!("is {bits}, above the most possible {} bit/s", LINKS.end()));
        }
    }

    pub(super) fn alike(&mut self, shape: &ClusterShape, network: &str) {
        let (nic, uplink) = (shape.nic_bits_per_s.0, shape.uplink_bits_per_s.0);
        if nic != uplink {
            let message = format_args!("is {uplink}, and nic_bits_per_s {nic}: all links of {network} are alike");
            self.add("uplink_bits_per_s", message);
        }
    }
}
