//! `Feed.Datasets`: paths, their blocks, and replicas where the source knows them.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, ItemRefusal, Reason, convert};
use crate::runtime::registries::bounded;
use hintd_client::wire::v1;
use hintd_model::cluster::dataset::normal;
use hintd_model::cluster::{NamedBlock, NamedDataset};
use hintd_model::units::Bytes;
use std::collections::HashSet;
use v1::dataset_item::Item;

/// The longest path's bytes that are believed: sums over all paths stay far from overflow.
const BYTES_MAX: u64 = 1 << 56;

/// Takes one item in.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(registries: &FeedRegistries, stream: &mut FeedStream, item: v1::DatasetItem) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Put(put) => {
            stream.greeted()?;
            for block in &put.blocks {
                let what = format_args!("replicas of block {}", block.block_id);
                bounded(what, block.hosts.len(), registries.limits().replicas_per_block, "replicas_per_block")?;
            }
            registries.dataset(&dataset(&put)?)
        }
        Item::RemovePath(path) => {
            stream.greeted()?;
            registries.remove_dataset(&normal(&path))
        }
    })
}

/// A dataset off the wire.
///
/// # Errors
/// [`Reason::Malformed`] names, [`Reason::Duplicate`] blocks, [`Reason::TooLarge`].
pub fn dataset(wire: &v1::Dataset) -> Result<NamedDataset, ItemRefusal> {
    let path = convert::path("path", &wire.path)?;
    let mut seen = HashSet::with_capacity(wire.blocks.len());
    let mut total = 0_u64;
    let mut blocks = Vec::with_capacity(wire.blocks.len());
    for block in &wire.blocks {
        let id = block.block_id;
        if !seen.insert(id) {
            return Err(ItemRefusal::new(Reason::Duplicate, format!("\"{}\" names block {id} twice", wire.path)));
        }
        total = total.saturating_add(block.bytes);
        if total > BYTES_MAX {
            return Err(ItemRefusal::new(
                Reason::TooLarge,
                format!("\"{}\" has more than {BYTES_MAX} bytes", wire.path),
            ));
        }
        let hosts = block.hosts.iter().map(|host| convert::host("hosts", host)).collect::<Result<_, _>>()?;
        blocks.push(NamedBlock { id, bytes: Bytes(block.bytes), hosts });
    }
    Ok(NamedDataset { path, blocks })
}
