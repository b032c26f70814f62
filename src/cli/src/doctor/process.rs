//! What the system says of a process, a user and a unit (Linux's /proc and control groups).

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long systemctl may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than a list of users or a process's limits has.
const FILE_BYTES: u64 = 4 << 20;

fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A user's name, else the number.
pub(super) fn user(id: u32) -> String {
    let users = read("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("uid {id}"))
}

/// The configuration that a hintd was started with, by its command line; `None`: none is named there, or it is not visible.
pub(super) fn config_of_the_command(pid: u32) -> Option<String> {
    let words = read(format!("/proc/{pid}/cmdline"))?;
    config_named(words.split('\0'))
}

fn config_named<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<String> {
    let named = words.find_map(|word| match word.split_once('=') {
        Some(("--config", file)) => Some(Some(file)),
        None if word == "--config" => Some(None),
        _ => None,
    })?;
    named.or_else(|| words.next()).filter(|file| !file.is_empty()).map(str::to_owned)
}

/// The load average of the last minute, and how many cores there are for it.
pub(super) fn load() -> Option<(f64, usize)> {
    let load = read("/proc/loadavg")?.split_whitespace().next()?.parse().ok()?;
    Some((load, std::thread::available_parallelism().ok()?.get()))
}

/// The soft limit of open files.
pub(super) fn open_files_limit(pid: u32) -> Option<u64> {
    let limits = read(format!("/proc/{pid}/limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Open files; `None` where another user's may not be counted.
pub(super) fn open_files(pid: u32) -> Option<u64> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64)
}

/// Whether a process has the file of this path open; `None` where its open files are not visible.
pub(super) fn has_open(pid: u32, path: &Path) -> Option<bool> {
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    // Linux follows them to the open file, whatever its name is by now.
    let open: Vec<(u64, u64)> = descriptors.filter_map(|entry| file(&entry.ok()?.path())).collect();
    (!open.is_empty()).then(|| file(path).is_some_and(|file| open.contains(&file)))
}

/// Where a process listens for TCP; `None` where that is not visible, or it does nowhere.
pub(super) fn listeners(pid: u32) -> Option<Vec<SocketAddr>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    let mine: BTreeSet<u64> = descriptors.filter_map(|entry| inode(entry.ok()?)).collect();
    let tables = ["tcp", "tcp6"].map(|table| read(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines()).filter_map(listening);
    let found: BTreeSet<SocketAddr> = rows.filter(|(_, inode)| mine.contains(inode)).map(|(at, _)| at).collect();
    (!found.is_empty()).then(|| found.into_iter().collect())
}

/// Address and inode of a row of /proc/net/tcp whose socket listens.
fn listening(row: &str) -> Option<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = row.split_whitespace().collect();
    let (local, state, inode) = (*fields.get(1)?, *fields.get(3)?, *fields.get(9)?);
    let (ip, port) = local.split_once(':').filter(|_| state == LISTEN)?;
    // Each word of the address, which has the network's order, is written as this machine reads it.
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some((SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?), inode.parse().ok()?))
}

/// Memory that a process may have, and who says so: the least of its control groups, else the machine's.
pub(super) fn memory_bound(pid: u32) -> Option<(u64, String)> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
        Some(line.trim().parse::<u64>().ok()? * 1024)
    });
    let groups = read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let bounds = groups.lines().flat_map(group_bounds).min();
    match (bounds, machine) {
        (Some(bound), machine) if machine.is_none_or(|machine| bound < machine) => {
            Some((bound, "the bound of its control group".to_owned()))
        }
        (_, machine) => Some((machine?, "all of this machine's: no control group bounds it".to_owned())),
    }
}

/// Bounds of a control group and of all above it; `line` as in `0::/system.slice/hintd.service`.
fn group_bounds(line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(kinds), Some(path)) = (fields.next(), fields.next(), fields.next()) else { return Vec::new() };
    let (root, name) = match kinds {
        "" => (PathBuf::from("/sys/fs/cgroup"), "memory.max"),
        kinds if kinds.split(',').any(|kind| kind == "memory") => {
            (PathBuf::from("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    groups.filter_map(|group| read(root.join(group).join(name))?.trim().parse().ok()).collect()
}

/// What systemd says of hintd.service, or why it is not asked.
pub(super) fn unit() -> Result<String, String> {
    if !Path::new("/run/systemd/system").is_dir() {
        return Err("systemd does not run here.".to_owned());
    }
    let asked = ["show", "hintd.service", "--property=LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts"];
    let mut command = Command::new("systemctl");
    command.args(asked).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("systemctl can't be run: {error}."))?;
    let began = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill(); // it may have ended meanwhile
            let _ = child.wait();
            return Err(format!("systemctl does not answer within {} s.", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        out.take(FILE_BYTES).read_to_string(&mut said).map_err(|error| format!("systemctl: {error}."))?;
    }
    Ok(said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_this_process_listens_is_seen() {
        let pid = std::process::id();
        let open: Vec<_> =
            ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"].map(std::net::TcpListener::bind).into_iter().flatten().collect();
        let found = listeners(pid).unwrap();
        assert!(open.len() >= 2);
        for listener in &open {
            assert!(found.contains(&listener.local_addr().unwrap()), "{listener:?} is not among {found:?}");
        }
        assert_eq!(listeners(u32::MAX), None);
        assert_eq!(listening("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
        assert_eq!(listening("0: zz:1 0:0 0A 0 0 0 0 0 7"), None);
    }

    #[test]
    fn a_file_is_open_by_what_it_is_and_not_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved, other] = ["journal.redb", "moved", "other"].map(|name| folder.path().join(name));
        let file = fs::File::create(&path).unwrap();
        let has = |path: &Path| has_open(std::process::id(), path);
        assert_eq!(has(&path), Some(true));
        fs::rename(&path, &moved).unwrap();
        assert_eq!((has(&path), has(&moved)), (Some(false), Some(true)));
        fs::write(&other, "").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(has(&path), Some(false), "another file has its name");
        fs::remove_file(&moved).unwrap();
        assert_eq!((has(&moved), has_open(u32::MAX, &path)), (Some(false), None));
        drop(file);
    }

    #[test]
    fn the_configuration_is_the_one_that_the_command_line_names() {
        let named = |line: &str| config_named(line.split(' '));
        assert_eq!(named("hintd --config a.toml").as_deref(), Some("a.toml"));
        assert_eq!(named("/usr/sbin/hintd --check --config=/etc/b.toml").as_deref(), Some("/etc/b.toml"));
        assert_eq!([named("hintd"), named("hintd --config"), named("hintd --configure x")], [None, None, None]);
        assert_eq!(config_of_the_command(u32::MAX), None);
        assert!(load().is_some_and(|(load, cores)| load >= 0.0 && cores > 0));
    }

    #[test]
    fn this_process_has_limits_and_its_user_a_name() {
        let pid = std::process::id();
        assert!(open_files_limit(pid).is_some_and(|limit| limit > 0));
        assert!(open_files(pid).is_some_and(|open| open > 2));
        assert!(memory_bound(pid).is_some_and(|(bound, _)| bound > 1 << 20));
        assert_eq!((user(0).as_str(), user(4_000_000_001).as_str()), ("root", "uid 4000000001"));
        assert_eq!((open_files_limit(u32::MAX), group_bounds("nonsense")), (None, Vec::new()));
    }
}
