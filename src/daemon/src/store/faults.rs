//! A disk in memory that fills up, fails and loses power on request, for tests.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use redb::{Builder, StorageBackend};

use super::StoreError;
use super::journal::{Journal, Recovered, initialise};

/// Sectors are written whole or not at all.
const SECTOR: usize = 512;

/// The disk; clones share it, as two opens of one file would.
#[derive(Debug, Clone, Default)]
pub(super) struct FaultyDisk(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    /// What a read sees.
    bytes: Vec<u8>,
    /// What survives a power cut for certain.
    durable: Vec<u8>,
    /// Sectors written since the last sync, which a power cut may keep or lose.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// Writes and syncs left before every further one fails; None: healthy.
    fails_after: Option<u64>,
    /// A failing sync may have synced all the same.
    sync_lies: bool,
}

impl FaultyDisk {
    /// An empty journal on a new disk.
    pub(super) fn with_journal() -> (Self, Journal) {
        let disk = Self::default();
        initialise(&Builder::new().create_with_backend(disk.clone()).unwrap()).unwrap();
        let (journal, _) = disk.open().unwrap();
        (disk, journal)
    }

    pub(super) fn open(&self) -> Result<(Journal, Recovered), StoreError> {
        let disk = self.clone();
        let opener = move || {
            let opened = Builder::new().create_with_backend(disk.clone());
            opened.map_err(|e| StoreError::from_redb(Path::new("faulty"), e.into()))
        };
        Journal::open_with(Path::new("faulty"), Box::new(opener))
    }

    /// From now on, `writes` more writes or syncs succeed and then none.
    pub(super) fn fail_after(&self, writes: u64) {
        self.disk().fails_after = Some(writes);
    }

    /// Like [`Self::fail_after`], but a failing sync does its work before it fails.
    pub(super) fn fail_after_with_lying_sync(&self, writes: u64) {
        let mut disk = self.disk();
        disk.fails_after = Some(writes);
        disk.sync_lies = true;
    }

    pub(super) fn heal(&self) {
        let mut disk = self.disk();
        disk.fails_after = None;
        disk.sync_lies = false;
    }

    /// The disk after a power cut at this moment: of what was not synced, any sectors may be there.
    pub(super) fn after_power_cut(&self, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = self.disk();
        let mut bytes = disk.durable.clone();
        for (offset, sector) in &disk.unsynced {
            if rng.random_bool(0.5) {
                overwrite(&mut bytes, *offset, sector);
            }
        }
        Self(Arc::new(Mutex::new(Disk { durable: bytes.clone(), bytes, ..Disk::default() })))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }
}

impl Disk {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.fails_after {
            Some(0) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn sync(&mut self) {
        self.durable = self.bytes.clone();
        self.unsynced.clear();
    }
}

fn overwrite(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(data);
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        let disk = self.disk();
        let from = disk.bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.spend()?;
        disk.bytes.resize(len as usize, 0);
        // File systems journal the length; only contents are at stake here.
        disk.durable.resize(len as usize, 0);
        disk.unsynced.retain(|(offset, sector)| offset + sector.len() <= len as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.disk();
        if let Err(error) = disk.spend() {
            if disk.sync_lies {
                disk.sync();
            }
            return Err(error);
        }
        disk.sync();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        disk.spend()?;
        overwrite(&mut disk.bytes, offset as usize, data);
        for (index, sector) in data.chunks(SECTOR).enumerate() {
            disk.unsynced.push((offset as usize + index * SECTOR, sector.to_vec()));
        }
        Ok(())
    }
}
