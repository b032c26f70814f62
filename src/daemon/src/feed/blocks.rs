//! `Feed.BlockReports`: which blocks lie on which DataNodes.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, ItemRefusal, convert};
use hintd_client::wire::v1;
use v1::block_report_item::Item;

/// Takes one item in. Ids of blocks that belong to no registered dataset are counted and dropped.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(
    registries: &FeedRegistries,
    stream: &mut FeedStream,
    item: v1::BlockReportItem,
) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Full(full) => {
            stream.greeted()?;
            let datanode = convert::host("datanode", &full.datanode)?;
            registries.full_report(&datanode, &full.block_ids)?;
            stream.note_datanode(&datanode);
            Ok(())
        }
        Item::Incremental(changes) => {
            stream.greeted()?;
            let datanode = convert::host("datanode", &changes.datanode)?;
            registries.incremental_report(&datanode, &changes.received, &changes.deleted)?;
            stream.note_datanode(&datanode);
            Ok(())
        }
    })
}
