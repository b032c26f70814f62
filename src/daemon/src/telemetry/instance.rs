//! Metrics of the process: what it is, what the system counts of it, how its last reload went, the disk of its journal; and
//! how much fits.

use super::labels::ReloadResult;
use super::metric::{Kind, Metric, metric};
use super::process;
use metrics::{Counter, Gauge, Unit};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const BUILD_INFO: &str = "hintd_build_info";
const RELOAD_SUCCESSFUL: &str = "hintd_config_last_reload_successful";
const RELOAD_TIME: &str = "hintd_config_last_reload_success_timestamp_seconds";
const RESTART_KEYS: &str = "hintd_config_restart_keys";
pub(super) const DOMAIN_SLOTS: &str = "hintd_domain_slots";
const JOURNAL_BYTES: &str = "hintd_store_file_bytes";
const DISK_FREE: &str = "hintd_store_disk_free_bytes";
const DISK_BYTES: &str = "hintd_store_disk_bytes";
// Names that Prometheus's own libraries give these: dashboards of processes know them.
const START_TIME: &str = "process_start_time_seconds";
const CPU: &str = "process_cpu_seconds_total";
const RESIDENT: &str = "process_resident_memory_bytes";
const OPEN_FILES: &str = "process_open_fds";
const OPEN_FILES_MAX: &str = "process_max_fds";

/// Their entries in the list of all.
pub(super) const ROWS: &[Metric] = &[
    metric(BUILD_INFO, Kind::Gauge, Unit::Count, "1, with the version as a label."),
    metric(RELOAD_SUCCESSFUL, Kind::Gauge, Unit::Count, "1 while the configuration on disk is not refused, else 0."),
    metric(
        RELOAD_TIME,
        Kind::Gauge,
        Unit::Seconds,
        "When the configuration was last read without a mistake, Unix time.",
    ),
    metric(
        RESTART_KEYS,
        Kind::Gauge,
        Unit::Count,
        "Keys of the configuration that differ on disk from those of the start and wait for a restart.",
    ),
    metric(
        DOMAIN_SLOTS,
        Kind::Gauge,
        Unit::Count,
        "Containers of YARN's smallest or largest size that fit in one rack.",
    ),
    metric(START_TIME, Kind::Gauge, Unit::Seconds, "When the process started, Unix time."),
    metric(CPU, Kind::Counter, Unit::Count, "CPU seconds that the process has used, whole ones."),
    metric(RESIDENT, Kind::Gauge, Unit::Bytes, "Resident memory of the process."),
    metric(OPEN_FILES, Kind::Gauge, Unit::Count, "File descriptors that the process has open."),
    metric(OPEN_FILES_MAX, Kind::Gauge, Unit::Count, "File descriptors that the process may have open."),
    metric(JOURNAL_BYTES, Kind::Gauge, Unit::Bytes, "Size of the journal's file."),
    metric(DISK_FREE, Kind::Gauge, Unit::Bytes, "Room that is left for hintd on the journal's disk."),
    metric(DISK_BYTES, Kind::Gauge, Unit::Bytes, "Size of the journal's disk."),
];

/// Records the process.
pub(super) struct InstanceMetrics {
    cpu: Counter,
    resident: Gauge,
    files: Gauge,
    files_max: Gauge,
    reload_successful: Gauge,
    reload_time: Gauge,
    restart_keys: Gauge,
    journal: OnceLock<JournalFile>,
}

/// The journal's file, and what is told of it and its disk.
struct JournalFile {
    path: PathBuf,
    bytes: Gauge,
    free: Gauge,
    disk: Gauge,
}

impl JournalFile {
    fn look(&self) {
        let Some([bytes, free, disk]) = file_and_disk(&self.path) else { return };
        self.bytes.set(bytes as f64);
        self.free.set(free as f64);
        self.disk.set(disk as f64);
    }
}

/// Bytes of a file, what is left on its disk for who is not root, and of all of the disk; `None`: it can't be told.
fn file_and_disk(path: &Path) -> Option<[u64; 3]> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(folder).ok()?;
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    Some([bytes, disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)])
}

/// Unix time, seconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl InstanceMetrics {
    /// Handles of a process that has just read its configuration.
    pub(super) fn new(
        gauge: impl Fn(&'static str, &[(&'static str, &str)]) -> Gauge,
        cpu: impl Fn(&'static str) -> Counter,
    ) -> Self {
        gauge(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION"))]).set(1.0);
        gauge(START_TIME, &[]).set(now());
        let [resident, files, files_max, reload_successful, reload_time, restart_keys] =
            [RESIDENT, OPEN_FILES, OPEN_FILES_MAX, RELOAD_SUCCESSFUL, RELOAD_TIME, RESTART_KEYS]
                .map(|name| gauge(name, &[]));
        let (cpu, journal) = (cpu(CPU), OnceLock::new());
        let this = Self { cpu, resident, files, files_max, reload_successful, reload_time, restart_keys, journal };
        this.restart_keys(0);
        this.reloaded(ReloadResult::Applied);
        this
    }

    /// Reads what the system counts; what it does not tell stays as it was.
    pub(super) fn look(&self) {
        let id = std::process::id();
        self.cpu.absolute(process::cpu_seconds(id).map_or(0, |seconds| seconds as u64));
        if let Some(bytes) = process::resident_bytes(id) {
            self.resident.set(bytes as f64);
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            self.files.set(open.count() as f64);
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        self.files_max.set(limit.current.map_or(f64::INFINITY, |most| most as f64));
        if let Some(journal) = self.journal.get() {
            journal.look();
        }
    }

    /// The journal is this file. Of a disk that can't be looked at nothing is exported: 0 would say that it is full.
    pub(super) fn journal_file(&self, path: &Path, gauge: impl Fn(&'static str) -> Gauge) {
        if file_and_disk(path).is_some() {
            let [bytes, free, disk] = [JOURNAL_BYTES, DISK_FREE, DISK_BYTES].map(gauge);
            let journal = self.journal.get_or_init(|| JournalFile { path: path.to_owned(), bytes, free, disk });
            journal.look();
        }
    }

    /// So many keys wait for a restart.
    pub(super) fn restart_keys(&self, keys: usize) {
        self.restart_keys.set(keys as f64);
    }

    /// A reload ended.
    pub(super) fn reloaded(&self, result: ReloadResult) {
        let refused = result == ReloadResult::Refused;
        self.reload_successful.set(if refused { 0.0 } else { 1.0 });
        if !refused {
            self.reload_time.set(now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::Metrics;
    use super::*;

    #[test]
    fn a_process_says_what_it_is_what_it_uses_and_how_its_last_reload_went() {
        let metrics = Metrics::new();
        metrics.domain_slots("minimum", 40);
        let value = |name: &str| {
            let page = metrics.render();
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
            line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse::<f64>().unwrap()
        };
        assert_eq!(value(&format!("{BUILD_INFO}{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
        assert_eq!(value(&format!("{DOMAIN_SLOTS}{{size=\"minimum\"}}")), 40.0);
        assert!(value(RESIDENT) > 100_000.0 && value(OPEN_FILES) >= 3.0 && value(OPEN_FILES_MAX) > value(OPEN_FILES));
        assert!(value(START_TIME) > 1.5e9 && value(CPU) >= 0.0);
        let read = value(RELOAD_TIME);
        metrics.reloaded(ReloadResult::Refused);
        assert_eq!((value(RELOAD_SUCCESSFUL), value(RELOAD_TIME)), (0.0, read));
        metrics.reloaded(ReloadResult::Unchanged);
        assert_eq!(value(RELOAD_SUCCESSFUL), 1.0);
    }

    #[test]
    fn the_journals_file_and_its_disk_are_told_and_of_one_that_is_nowhere_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.redb");
        std::fs::write(&path, [0_u8; 4_321]).unwrap();
        let metrics = Metrics::new();
        metrics.journal_file(&folder.path().join("nowhere/journal.redb"));
        assert!(!metrics.render().contains("\nhintd_store_disk_"), "a disk that is not known looks full");
        metrics.journal_file(&path);
        let value = |name: &str| {
            let page = metrics.render();
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
            line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse::<f64>().unwrap()
        };
        assert_eq!(value(JOURNAL_BYTES), 4_321.0);
        let (free, disk) = (value(DISK_FREE), value(DISK_BYTES));
        assert!(free > 0.0 && free <= disk, "{free} of {disk}");
        std::fs::write(&path, [0_u8; 5]).unwrap();
        assert_eq!(value(JOURNAL_BYTES), 5.0, "as it is at each look");
    }
}
