//! `Feed.LinkStats`: measured load of links.

use super::stream::empty_item;
use super::topology::link_name;
use super::{FeedRegistries, FeedStream, ItemRefusal};
use hintd_client::wire::v1;
use hintd_model::cluster::LinkLoad;
use hintd_model::units::BitsPerSec;
use v1::link_stats_item::Item;

/// Takes one item in. A load above the link's capacity is taken: counters jitter.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(
    registries: &FeedRegistries,
    stream: &mut FeedStream,
    item: v1::LinkStatsItem,
) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Load(load) => {
            stream.greeted()?;
            let measured = LinkLoad::steady(BitsPerSec(load.a_to_b_bits_per_s), BitsPerSec(load.b_to_a_bits_per_s));
            registries.link_load(link_name(&load.id)?, measured)
        }
    })
}
