//! A path: its files, and where their blocks lie.

use super::ask::{QueryFailure, Servers};
use super::web_hdfs::{BlockSeen, ReplicaSeen, block_locations, file_block_locations, file_blocks, list_status};
use super::web_hdfs::{listing, located_blocks};
use crate::hadoop::options::NameNodeOptions;
use hintd_client::wire::v1;
use hintd_model::cluster::NodeStatics;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Blocks that one answer is to hold: 1 to 2 MB of it.
const PAGE_BLOCKS: u64 = 1_000;
/// Directories below directories that are gone into: tables are partitioned three or four deep.
const DEPTH_MAX: usize = 16;
/// Hosts whose racks are taken off the answers about one path.
const HOSTS_MAX: usize = 20_000;

/// What lies at a path.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its files, in the spelling of the request.
    pub(super) files: Vec<v1::Dataset>,
    /// Something below it could not be read, or is gone by now.
    pub(super) in_part: bool,
    /// HDFS's rack of each host that holds a replica, by YARN's name of it, or HDFS's where YARN does not know it.
    pub(super) racks: BTreeMap<String, String>,
}

#[derive(Debug)]
struct File {
    path: String,
    length: u64,
    block_size: u64,
}

/// Splits what stands before a path on HDFS; `None`: it is on no HDFS.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let Some((scheme, rest)) = path.split_once("://") else { return Some(("", path)) };
    if !["hdfs", "webhdfs", "swebhdfs"].contains(&scheme) {
        return None;
    }
    let start = path.len() - rest.len();
    let at = rest.find('/').map_or(path.len(), |at| start + at);
    let path = path.split_at(at);
    Some(if path.1.is_empty() { (path.0, "/") } else { path })
}

/// Whether Hadoop's own input formats leave a file or directory out.
fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// Reads all of a path, which has its normal name.
///
/// # Errors
/// Why nothing is known of it, [`QueryFailure::TooLarge`] for more files or blocks than are taken.
pub(super) async fn read(
    servers: &Arc<Servers>,
    options: &NameNodeOptions,
    nodes: &Arc<NodeStatics>,
    path: &str,
) -> Result<Found, QueryFailure> {
    let (prefix, bare) = split(path).ok_or(QueryFailure::Missing)?;
    let mut found = Found::default();
    let files = walk(servers, options, bare, &mut found.in_part).await?;
    let mut waiting = files.into_iter();
    let mut reading = JoinSet::new();
    let mut blocks = 0;
    loop {
        while reading.len() < options.parallel
            && let Some(file) = waiting.next()
        {
            let (servers, nodes, user) = (Arc::clone(servers), Arc::clone(nodes), options.servers.user.clone());
            reading.spawn(async move { (blocks_of(&servers, &file, &user).await, file, nodes) });
        }
        let Some(done) = reading.join_next().await else { break };
        let (seen, file, nodes) = done.map_err(|_| QueryFailure::Nobody)?;
        match seen {
            Ok(seen) => {
                blocks += seen.len();
                if blocks > options.blocks_per_path {
                    return Err(QueryFailure::TooLarge);
                }
                let blocks = seen.into_iter().map(|seen| block(seen, &file, &nodes, &mut found.racks)).collect();
                found.files.push(v1::Dataset { path: format!("{prefix}{}", file.path), blocks });
            }
            // It may have been written anew, or taken away, since it was listed.
            Err(QueryFailure::Missing | QueryFailure::Unreadable) if file.path != bare => found.in_part = true,
            Err(unanswered) => return Err(unanswered),
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The files of a path: itself, or those below it that Hadoop's own input formats would read.
async fn walk(
    servers: &Servers,
    options: &NameNodeOptions,
    path: &str,
    in_part: &mut bool,
) -> Result<Vec<File>, QueryFailure> {
    let (mut files, mut blocks) = (Vec::new(), 0_u64);
    let mut directories = VecDeque::from([(path.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((directory, depth)) = directories.pop_front() {
        let rows = match servers.ask(&list_status(&directory, &options.servers.user), listing).await {
            Ok(rows) => rows,
            Err(QueryFailure::Missing | QueryFailure::Unreadable) if depth > 0 => {
                *in_part = true;
                continue;
            }
            Err(unanswered) => return Err(unanswered),
        };
        seen += rows.len();
        if seen > options.files_per_path {
            return Err(QueryFailure::TooLarge);
        }
        for row in rows {
            if is_hidden(&row.name) {
                continue;
            }
            let own = if directory == "/" { "" } else { directory.as_str() };
            let path = if row.name.is_empty() { directory.clone() } else { format!("{own}/{}", row.name) };
            if !row.directory {
                blocks += row.length.div_ceil(row.block_size.max(1)).max(1);
                files.push(File { path, length: row.length, block_size: row.block_size });
            } else if depth < DEPTH_MAX {
                directories.push_back((path, depth + 1));
            } else {
                *in_part = true;
            }
        }
        if blocks > options.blocks_per_path as u64 {
            return Err(QueryFailure::TooLarge);
        }
    }
    Ok(files)
}

/// A file's blocks, in pages: one answer holds no more than can be read in time.
async fn blocks_of(servers: &Servers, file: &File, user: &str) -> Result<Vec<BlockSeen>, QueryFailure> {
    let page = file.block_size.saturating_mul(PAGE_BLOCKS);
    let page = if page == 0 { u64::MAX >> 1 } else { page };
    let mut blocks: Vec<BlockSeen> = Vec::new();
    let mut begins = 0;
    while begins < file.length {
        let length = page.min(file.length - begins);
        let asked = servers.ask(&block_locations(&file.path, begins, length, user), located_blocks).await;
        let seen = match asked {
            // As of HttpFS before it knew what the NameNode always knew.
            Err(QueryFailure::Unsupported) => {
                servers.ask(&file_block_locations(&file.path, begins, length, user), file_blocks).await
            }
            asked => asked,
        };
        let seen = seen.map_err(|why| if why == QueryFailure::Unsupported { QueryFailure::Nobody } else { why })?;
        // The block at a page's end may be the first of the next page as well.
        let after = blocks.last().map_or(0, |block| block.offset.saturating_add(block.length));
        blocks.extend(seen.into_iter().filter(|block| block.offset >= after && block.length > 0));
        begins = begins.saturating_add(page);
    }
    let mut known = HashSet::with_capacity(blocks.len());
    blocks.retain(|block| block.id.is_none_or(|id| known.insert(id)));
    Ok(blocks)
}

fn block(seen: BlockSeen, file: &File, nodes: &NodeStatics, racks: &mut BTreeMap<String, String>) -> v1::DatasetBlock {
    let id = seen.id.unwrap_or_else(|| made_up(&file.path, seen.offset));
    let mut hosts: Vec<String> = seen.replicas.into_iter().map(|replica| host(replica, nodes, racks)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    v1::DatasetBlock { block_id: id, bytes: seen.length, hosts }
}

/// The name of a replica's host that YARN knows, be it the DataNode's name, its first part, or its address. What YARN
/// does not know stays as the DataNode has it: the node may register later.
fn host(replica: ReplicaSeen, nodes: &NodeStatics, racks: &mut BTreeMap<String, String>) -> String {
    let ReplicaSeen { host, address, rack } = replica;
    let first = if host.parse::<std::net::IpAddr>().is_ok() { "" } else { host.split('.').next().unwrap_or_default() };
    let found = [host.as_str(), first, &address].into_iter().find_map(|name| nodes.find(name));
    let name = found.map_or(host, |node| nodes.host[node.at()].to_string());
    if !rack.is_empty() && !racks.contains_key(&name) && racks.len() < HOSTS_MAX {
        racks.insert(name.clone(), rack);
    }
    name
}

/// An id for a block whose own was not said: far above those that HDFS gives, which count up from 2^30, and below
/// those of erasure-coded groups, which are negative.
fn made_up(path: &str, offset: u64) -> u64 {
    let bytes = path.bytes().chain(offset.to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash >> 2) | 1 << 62
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_stands_behind_the_name_of_its_hdfs() {
        assert_eq!(split("/in/a"), Some(("", "/in/a")));
        assert_eq!(split("hdfs://ns1/in/a"), Some(("hdfs://ns1", "/in/a")));
        assert_eq!(split("hdfs:///in"), Some(("hdfs://", "/in")));
        assert_eq!(split("webhdfs://nn:9870"), Some(("webhdfs://nn:9870", "/")));
        assert_eq!(split("s3a://bucket/in"), None);
    }

    #[test]
    fn made_up_ids_meet_none_of_hdfs() {
        let ids: std::collections::BTreeSet<u64> = (0..1_000).map(|block| made_up("/in/a", block << 27)).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|&id| (1 << 62..1 << 63).contains(&id)));
        assert_ne!(made_up("/in/a", 0), made_up("/in/b", 0));
    }
}
