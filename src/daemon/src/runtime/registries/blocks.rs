//! Datasets, their blocks and where replicas lie, as HDFS tells it.
//!
//! The last word counts: a DataNode's full report replaces what was known of it, an incremental one amends it,
//! and a dataset that names a block's hosts replaces that block's replicas.

use super::RegistryLimits;
use super::refusal::{ItemRefusal, Reason};
use super::total::{Total, bytes_of_names};
use hintd_model::cluster::{Change, NamedBlock, NamedDataset};
use hintd_model::units::{Bytes, HostName};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

/// Datasets and replicas behind one lock, which is held for no longer than the blocks that are kept take.
#[derive(Debug)]
pub(super) struct Blocks {
    tables: RwLock<Tables>,
    wanted: watch::Sender<u64>,
}

/// What a block report did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) dropped: u64,
    pub(super) changed: bool,
}

/// A DataNode's row.
type Row = u32;

#[derive(Debug, Default)]
struct Tables {
    datasets: BTreeMap<Arc<str>, Vec<(u64, Bytes)>>,
    blocks: HashMap<u64, Block>,
    datanodes: Vec<DataNode>,
    rows: HashMap<HostName, Row>,
    /// Entries of all datasets.
    entries: usize,
    /// Replicas of all blocks.
    replicas: usize,
    /// Grows when a block becomes interesting.
    epoch: u64,
    dirty: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct Block {
    paths: SmallVec<[Arc<str>; 1]>,
    replicas: SmallVec<[Row; 3]>,
}

#[derive(Debug)]
struct DataNode {
    name: HostName,
    blocks: HashSet<u64>,
    /// It spoke itself, not only through a dataset's hosts.
    reports: bool,
    full_wanted: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { tables: RwLock::default(), wanted: watch::Sender::new(0) }
    }
}

impl Blocks {
    /// `total`: what all names take, nodes' among them.
    pub(super) fn put(
        &self,
        dataset: &NamedDataset,
        limits: &RegistryLimits,
        total: &Total,
    ) -> Result<(), ItemRefusal> {
        let mut tables = self.write();
        let new_names = tables.check_room(dataset, limits)?;
        total.change(0, new_names, limits.feed_names_bytes, "feed_names_bytes")?;
        if tables.put(dataset) {
            self.wanted.send_modify(|epoch| *epoch += 1);
        }
        Ok(())
    }

    pub(super) fn remove(&self, path: &str, total: &Total) -> Result<(), ItemRefusal> {
        let mut tables = self.write();
        let Some((path, blocks)) = tables.datasets.remove_entry(path) else {
            return Err(ItemRefusal::new(Reason::UnknownPath, format!("path \"{path}\" is not registered")));
        };
        tables.entries -= blocks.len();
        total.gone(bytes_of_names(std::iter::once(&*path)));
        for (id, _) in blocks {
            tables.unlink(id, &path);
        }
        tables.dirty.insert(path);
        Ok(())
    }

    pub(super) fn full_report(
        &self,
        datanode: &HostName,
        ids: &[u64],
        limits: &RegistryLimits,
        total: &Total,
    ) -> Result<Reported, ItemRefusal> {
        // Most ids are of no interest; sorting them out must not stop other streams.
        let (mut kept, epoch) = {
            let tables = self.read();
            (tables.interesting(ids), tables.epoch)
        };
        let mut tables = self.write();
        if tables.epoch != epoch {
            kept = tables.interesting(ids);
        }
        let new_names = tables.check_datanodes(std::iter::once(datanode), limits)?;
        let has = tables.node(datanode).map_or(0, |node| node.blocks.len());
        tables.check_replicas(has, kept.len(), limits)?;
        total.change(0, new_names, limits.feed_names_bytes, "feed_names_bytes")?;
        let row = tables.row(datanode);
        let node = &mut tables.datanodes[row as usize];
        (node.reports, node.full_wanted) = (true, false);
        let left: Vec<u64> = node.blocks.difference(&kept).copied().collect();
        let came: Vec<u64> = kept.difference(&node.blocks).copied().collect();
        let changed = !left.is_empty() || !came.is_empty();
        left.into_iter().for_each(|id| tables.set_replica(row, id, false));
        came.into_iter().for_each(|id| tables.set_replica(row, id, true));
        Ok(Reported { dropped: (ids.len() - kept.len()) as u64, changed })
    }

    pub(super) fn incremental_report(
        &self,
        datanode: &HostName,
        (received, deleted): (&[u64], &[u64]),
        limits: &RegistryLimits,
        total: &Total,
    ) -> Result<Reported, ItemRefusal> {
        let mut tables = self.write();
        let new_names = tables.check_datanodes(std::iter::once(datanode), limits)?;
        let came = tables.new_replicas(datanode, received);
        tables.check_replicas(0, came, limits)?;
        total.change(0, new_names, limits.feed_names_bytes, "feed_names_bytes")?;
        let row = tables.row(datanode);
        let node = &mut tables.datanodes[row as usize];
        // Changes alone do not tell what was there before.
        if !std::mem::replace(&mut node.reports, true) {
            node.full_wanted = true;
            self.wanted.send_modify(|epoch| *epoch += 1);
        }
        let mut report = Reported { dropped: 0, changed: false };
        for (ids, here) in [(received, true), (deleted, false)] {
            for &id in ids {
                if !tables.blocks.contains_key(&id) {
                    report.dropped += 1;
                } else if tables.datanodes[row as usize].blocks.contains(&id) != here {
                    tables.set_replica(row, id, here);
                    report.changed = true;
                }
            }
        }
        Ok(report)
    }

    pub(super) fn wants_full_report(&self, datanode: &HostName) -> bool {
        let tables = self.read();
        tables.rows.get(datanode).is_some_and(|&row| tables.datanodes[row as usize].full_wanted)
    }

    pub(super) fn wanted(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    pub(super) fn drain(&self) -> Vec<Change> {
        if self.read().dirty.is_empty() {
            return Vec::new();
        }
        let mut tables = self.write();
        let dirty = std::mem::take(&mut tables.dirty);
        dirty.into_iter().map(|path| tables.change(path)).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// What its new names take.
    fn check_room(&self, dataset: &NamedDataset, limits: &RegistryLimits) -> Result<usize, ItemRefusal> {
        let path = &dataset.path;
        let known = self.datasets.get(path);
        if known.is_none() && self.datasets.len() >= limits.datasets {
            let message = format!("path \"{path}\" is one too many: at most {} (limits.datasets)", limits.datasets);
            return Err(ItemRefusal::new(Reason::TooMany, message));
        }
        let entries = self.entries - known.map_or(0, Vec::len) + dataset.blocks.len();
        if entries > limits.blocks {
            let message =
                format!("path \"{path}\" would make {entries} blocks: at most {} (limits.blocks)", limits.blocks);
            return Err(ItemRefusal::new(Reason::TooMany, message));
        }
        // Blocks whose hosts it does not name keep what they have.
        let named = || dataset.blocks.iter().filter(|block| !block.hosts.is_empty());
        let distinct: HashSet<u64> = named().map(|block| block.id).collect();
        let has = distinct.iter().filter_map(|id| self.blocks.get(id)).map(|block| block.replicas.len()).sum();
        self.check_replicas(has, named().map(|block| block.hosts.len()).sum(), limits)?;
        let datanodes = self.check_datanodes(dataset.blocks.iter().flat_map(|block| &block.hosts), limits)?;
        let new = known.is_none().then_some(&**path);
        Ok(datanodes + bytes_of_names(new.into_iter()))
    }

    /// Whether `now` replicas have room where `before` of them are there.
    fn check_replicas(&self, before: usize, now: usize, limits: &RegistryLimits) -> Result<(), ItemRefusal> {
        let (all, most) = ((self.replicas - before).saturating_add(now), limits.replicas);
        if now > before && all > most {
            let message = format!("it would make {all} replicas: at most {most} (limits.replicas)");
            return Err(ItemRefusal::new(Reason::TooMany, message));
        }
        Ok(())
    }

    /// Of blocks that a DataNode received, how many are of interest and new there.
    fn new_replicas(&self, datanode: &HostName, received: &[u64]) -> usize {
        let there = |id| self.node(datanode).is_some_and(|node| node.blocks.contains(id));
        received.iter().filter(|id| self.blocks.contains_key(id) && !there(id)).count()
    }

    fn node(&self, name: &HostName) -> Option<&DataNode> {
        self.rows.get(name).map(|&row| &self.datanodes[row as usize])
    }

    /// Datasets and reports may spell a host differently, so twice as many names as nodes have room. What the new ones take.
    fn check_datanodes<'a>(
        &self,
        names: impl Iterator<Item = &'a HostName>,
        limits: &RegistryLimits,
    ) -> Result<usize, ItemRefusal> {
        let most = limits.nodes.saturating_mul(2);
        let mut new = BTreeSet::new();
        for name in names.filter(|name| !self.rows.contains_key(*name)) {
            new.insert(name);
            if self.datanodes.len() + new.len() > most {
                let message = format!("DataNode \"{name}\" is one too many: at most {most}, twice limits.nodes");
                return Err(ItemRefusal::new(Reason::TooMany, message));
            }
        }
        Ok(bytes_of_names(new.into_iter().map(HostName::as_str)))
    }

    /// Says whether full reports are wanted now.
    fn put(&mut self, dataset: &NamedDataset) -> bool {
        let path = &dataset.path;
        let old = self.datasets.remove(path).unwrap_or_default();
        self.entries -= old.len();
        self.entries += dataset.blocks.len();
        let mut lacking = false;
        for block in &dataset.blocks {
            let rows: BTreeSet<Row> = block.hosts.iter().map(|host| self.row(host)).collect();
            let known = self.blocks.entry(block.id).or_default();
            if !known.paths.contains(path) {
                known.paths.push(Arc::clone(path));
            }
            if rows.is_empty() {
                lacking |= known.replicas.is_empty();
                continue;
            }
            let left: Vec<Row> = known.replicas.iter().filter(|row| !rows.contains(row)).copied().collect();
            left.into_iter().for_each(|row| self.set_replica(row, block.id, false));
            rows.into_iter().for_each(|row| self.set_replica(row, block.id, true));
        }
        let kept: HashSet<u64> = dataset.blocks.iter().map(|block| block.id).collect();
        for (id, _) in old.into_iter().filter(|(id, _)| !kept.contains(id)) {
            self.unlink(id, path);
        }
        let blocks = dataset.blocks.iter().map(|block| (block.id, block.bytes)).collect();
        self.datasets.insert(Arc::clone(path), blocks);
        self.dirty.insert(Arc::clone(path));
        self.epoch += 1;
        if lacking {
            self.datanodes.iter_mut().filter(|node| node.reports).for_each(|node| node.full_wanted = true);
        }
        lacking
    }

    /// The path has the block no more; without a path, the block is of no interest.
    fn unlink(&mut self, id: u64, path: &Arc<str>) {
        let Some(block) = self.blocks.get_mut(&id) else { return };
        block.paths.retain(|known| known != path);
        if block.paths.is_empty() {
            let replicas = self.blocks.remove(&id).map(|block| block.replicas).unwrap_or_default();
            self.replicas -= replicas.len();
            for row in replicas {
                self.datanodes[row as usize].blocks.remove(&id);
            }
        }
    }

    fn set_replica(&mut self, row: Row, id: u64, here: bool) {
        let Some(block) = self.blocks.get_mut(&id) else { return };
        let blocks = &mut self.datanodes[row as usize].blocks;
        let changed = if here { blocks.insert(id) } else { blocks.remove(&id) };
        if !changed {
            return;
        }
        if here {
            block.replicas.push(row);
            self.replicas += 1;
        } else {
            block.replicas.retain(|known| *known != row);
            self.replicas -= 1;
        }
        self.dirty.extend(block.paths.iter().cloned());
    }

    fn interesting(&self, ids: &[u64]) -> HashSet<u64> {
        ids.iter().filter(|id| self.blocks.contains_key(id)).copied().collect()
    }

    fn row(&mut self, name: &HostName) -> Row {
        if let Some(&row) = self.rows.get(name) {
            return row;
        }
        let row = self.datanodes.len() as Row;
        let node = DataNode { name: name.clone(), blocks: HashSet::new(), reports: false, full_wanted: false };
        self.datanodes.push(node);
        self.rows.insert(name.clone(), row);
        row
    }

    fn change(&self, path: Arc<str>) -> Change {
        let Some(entries) = self.datasets.get(&path) else { return Change::DatasetRemoved(path) };
        let blocks = entries.iter().map(|&(id, bytes)| {
            let replicas = self.blocks.get(&id).map_or(&[][..], |block| &block.replicas);
            let hosts = replicas.iter().map(|&row| self.datanodes[row as usize].name.clone());
            NamedBlock { id, bytes, hosts: hosts.collect() }
        });
        Change::Dataset(Arc::new(NamedDataset { blocks: blocks.collect(), path }))
    }
}
