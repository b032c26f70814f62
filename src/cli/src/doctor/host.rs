//! Checks of this machine: who listens at the socket, the configuration on disk, the process's bounds, the journal's disk.

use super::super::output;
use super::check::{Check, page};
use super::facts::{Answers, Facts, OnDisk, Standing};
use super::process;
use hintd::config::Config;
use std::path::Path;
use std::time::Duration;

/// A disk with less room than this will be full soon.
const ROOM_LOW: u64 = 1 << 30;
/// With less than this a single large transaction may not fit.
const ROOM_GONE: u64 = 64 << 20;
/// Descriptors that the daemon needs beside its connections.
const OWN_DESCRIPTORS: u64 = 128;

/// The socket, and whoever listens there.
pub(super) fn socket(facts: &Facts) -> Check {
    const NAME: &str = "admin_socket";
    let path = facts.socket.display();
    match (&facts.standing, &facts.answers) {
        (Standing::Socket { owner, mode }, Ok(_)) => {
            let user = process::user(*owner);
            let finding = format!("The daemon answers at {path}, which belongs to {user} and has mode {mode:04o}.");
            match mode & 0o066 {
                0 => Check::ok(NAME, page::DOCTOR, finding),
                _ => Check::warning(
                    NAME,
                    page::TRUST,
                    format!("{finding} Others than its owner may administer hintd."),
                    format!("chmod 0600 {path}, unless that is meant."),
                ),
            }
        }
        (_, Ok(_)) => Check::ok(NAME, page::DOCTOR, format!("The daemon answers at {path}.")),
        (standing, Err(why)) => {
            let (finding, advice) = unanswered(standing, &facts.socket, why);
            Check::problem(NAME, page::DOWN, finding, advice)
        }
    }
}

fn unanswered(standing: &Standing, path: &Path, why: &str) -> (String, String) {
    let path = path.display();
    match standing {
        Standing::Nothing => (
            format!("There is no socket at {path}: hintd does not run, or listens elsewhere."),
            "systemctl start hintd; if listen.admin_socket names another path, give it by --admin-socket.".to_owned(),
        ),
        Standing::Hidden => (
            format!("You may not look at {path}."),
            "Run this as root or as the user hintd (sudo -u hintd hintctl doctor).".to_owned(),
        ),
        Standing::Other => {
            (format!("{path} is not a socket."), "Give the daemon's socket by --admin-socket.".to_owned())
        }
        Standing::Unknown(error) => (format!("{path} can't be looked at: {error}."), "Repair the path.".to_owned()),
        Standing::Socket { owner, mode } if why.contains("Permission denied") => {
            let user = process::user(*owner);
            (
                format!("You may not open {path}: it belongs to {user} and has mode {mode:04o}."),
                format!("Run this as root or as {user} (sudo -u {user} hintctl doctor)."),
            )
        }
        Standing::Socket { .. } if why.contains("Connection refused") => (
            format!("Nobody listens at {path}: hintd ended without taking its socket away."),
            "systemctl status hintd says how it ended; start it again.".to_owned(),
        ),
        Standing::Socket { .. } => (
            format!("Something listens at {path} and does not answer as hintd does: {why}."),
            "systemctl status hintd; if it hangs, systemctl restart hintd keeps all leases.".to_owned(),
        ),
    }
}

/// The unit, where no daemon answers at the place that the unit has.
pub(super) fn unit(facts: &Facts) -> Check {
    const NAME: &str = "unit";
    if facts.socket != Path::new(super::super::connect::ADMIN_SOCKET) {
        return Check::not_checked(NAME, page::DOWN, "The socket is not that of the unit hintd.service.");
    }
    match process::unit() {
        Err(why) => Check::not_checked(NAME, page::DOWN, why),
        Ok(state) if state.contains("ActiveState=active") => Check::warning(
            NAME,
            page::DOWN,
            format!("systemd says that hintd.service runs ({state})."),
            "journalctl -u hintd says what it does.",
        ),
        Ok(state) => Check::problem(
            NAME,
            page::DOWN,
            format!("systemd says that hintd.service does not run ({state})."),
            "journalctl -u hintd says why; systemctl start hintd.",
        ),
    }
}

/// The configuration on disk, and whether it is in force.
pub(super) fn configuration(facts: &Facts) -> Check {
    const NAME: &str = "configuration";
    let file = facts.config_file.display();
    // One problem a line, which the daemon's strings have written out.
    let refused = facts.answers.as_ref().map_or_else(
        |_| String::new(),
        |answers| answers.status.config_refused.trim_end_matches("\\n").replace("\\n", "; "),
    );
    if !refused.is_empty() {
        return Check::problem(
            NAME,
            page::RELOAD,
            format!("What is on disk is refused, and what was read before stays in force: {refused}."),
            format!("Fix it before the next restart, which would fail: hintd --check --config {file}"),
        );
    }
    match (&facts.on_disk, &facts.answers) {
        (OnDisk::Sound(config), Ok(answers)) => in_force(config, answers, &facts.config_file),
        (OnDisk::Sound(_), Err(_)) => Check::ok(NAME, page::CONFIGURE, format!("{file} is sound.")),
        (OnDisk::Wrong(problems), Ok(_)) => Check::warning(
            NAME,
            page::RELOAD,
            format!("{file}, read from here, is wrong, and the daemon has not refused it (yet): {problems}."),
            format!("hintd --check --config {file}, in the daemon's working directory if paths in it are relative."),
        ),
        (OnDisk::Wrong(problems), Err(_)) => Check::problem(
            NAME,
            page::RELOAD,
            format!("hintd would not start with {file}: {problems}."),
            format!("hintd --check --config {file} names every line."),
        ),
        (OnDisk::Unread(why), Ok(_)) => Check::ok(
            NAME,
            page::CONFIGURE,
            format!("The daemon refuses nothing of its configuration; {file} can't be read from here ({why})."),
        ),
        (OnDisk::Unread(why), Err(_)) => {
            Check::not_checked(NAME, page::CONFIGURE, format!("{file} can't be read: {why}."))
        }
    }
}

fn in_force(config: &Config, answers: &Answers, file: &Path) -> Check {
    const NAME: &str = "configuration";
    let generation = answers.status.config_generation;
    let saved = config.options.settings.policies.default;
    let policy = answers.policies.as_ref().map_or(saved, |known| known.default_policy.as_str());
    let file_shown = file.display();
    if policy != saved {
        return Check::warning(
            NAME,
            page::CONFIGURE,
            format!("{file_shown} says policy.default = \"{saved}\", and \"{policy}\" is in force."),
            "hintctl reload",
        );
    }
    let started = Duration::from_millis(answers.status.uptime_ms);
    let saved_ago = std::fs::metadata(file).ok().and_then(|found| found.modified().ok()?.elapsed().ok());
    // What it was at the start is on no wire: only that it was saved since.
    let since = match saved_ago {
        Some(ago) if ago < started => {
            "; it was saved after the daemon started: keys marked (restart) may wait for a restart, hintctl reload names them"
        }
        _ => "",
    };
    Check::ok(NAME, page::CONFIGURE, format!("{file_shown} is sound and in force (generation {generation}){since}."))
}

/// Who can reach the daemon without proof.
pub(super) fn exposure(on_disk: &OnDisk) -> Check {
    const NAME: &str = "exposure";
    let OnDisk::Sound(config) = on_disk else {
        return Check::not_checked(NAME, page::TRUST, "The configuration can't be read from here, or is wrong.");
    };
    let listeners = [("listen.grpc", Some(config.options.listen.grpc)), ("listen.metrics", config.metrics)];
    let open: Vec<String> = listeners
        .iter()
        .filter_map(|(key, address)| address.filter(|address| !address.ip().is_loopback()).map(|at| (key, at)))
        .map(|(key, address)| format!("{key} {address}"))
        .collect();
    match open.is_empty() {
        true => Check::ok(
            NAME,
            page::TRUST,
            "Listeners are on loopback; every process of this machine is trusted, containers included.",
        ),
        false => Check::warning(
            NAME,
            page::TRUST,
            format!(
                "Listeners without TLS beyond loopback: {}. Every machine that can connect is trusted.",
                open.join(", ")
            ),
            "Keep others out by a firewall, or listen on loopback.",
        ),
    }
}

/// Memory and descriptors of the process.
pub(super) fn process(facts: &Facts, answers: &Answers) -> Vec<Check> {
    let Some(pid) = facts.pid else {
        let why = "The daemon's process is not visible from here.";
        return vec![Check::not_checked("memory", page::SIZE, why), Check::not_checked("open_files", page::SIZE, why)];
    };
    let connections = match &facts.on_disk {
        OnDisk::Sound(config) => Some(config.options.listen.connections as u64),
        _ => None,
    };
    vec![memory(pid, answers.status.resident_bytes), open_files(pid, connections)]
}

fn memory(pid: u32, resident: u64) -> Check {
    const NAME: &str = "memory";
    let Some((bound, of)) = process::memory_bound(pid) else {
        return Check::not_checked(NAME, page::SIZE, "Nothing here says how much memory the daemon may have.");
    };
    let share = resident as f64 / bound.max(1) as f64;
    let finding = format!("{} resident of {} ({of}).", output::bytes(resident as f64), output::bytes(bound as f64));
    let advice = "Lower [limits], or raise MemoryMax of the unit (systemctl edit hintd).";
    match share {
        share if share > 0.95 => Check::problem(NAME, page::SIZE, finding, advice),
        share if share > 0.8 => Check::warning(NAME, page::SIZE, finding, advice),
        _ => Check::ok(NAME, page::SIZE, finding),
    }
}

fn open_files(pid: u32, connections: Option<u64>) -> Check {
    const NAME: &str = "open_files";
    let Some(limit) = process::open_files_limit(pid) else {
        return Check::not_checked(NAME, page::SIZE, "The limit of open files can't be read.");
    };
    let open = process::open_files(pid);
    let used = open.map_or_else(String::new, |open| format!("{open} open of "));
    let finding = format!("{used}at most {limit} open files.");
    let advice = "Raise LimitNOFILE of the unit, or lower limits.connections.";
    if open.is_some_and(|open| open * 10 > limit * 9) {
        return Check::problem(NAME, page::SIZE, finding, advice);
    }
    match connections.filter(|connections| connections + OWN_DESCRIPTORS > limit) {
        Some(connections) => Check::warning(
            NAME,
            page::SIZE,
            format!("{finding} limits.connections is {connections}: fewer are taken."),
            advice,
        ),
        None => Check::ok(NAME, page::SIZE, finding),
    }
}

/// The journal's disk, and what it keeps.
pub(super) fn journal(facts: &Facts) -> Check {
    const NAME: &str = "journal";
    let OnDisk::Sound(config) = &facts.on_disk else {
        return Check::not_checked(
            NAME,
            page::JOURNAL,
            "The configuration, which names it, can't be read from here, or is wrong.",
        );
    };
    let path = &facts.as_the_daemon_has_it(&config.options.store.path);
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let disk = match rustix::fs::statvfs(folder) {
        Ok(disk) => disk,
        Err(error) => return Check::not_checked(NAME, page::JOURNAL, format!("The disk of {shown}: {error}.")),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let size = std::fs::metadata(path).map_or_else(
        |error| format!("{shown} can't be looked at ({error})"),
        |found| format!("{shown} has {}", output::bytes(found.len() as f64)),
    );
    let engine = &config.options.settings.engine;
    let kept = output::seconds(engine.answers_keep.0 as f64 / 1e6);
    let finding = format!(
        "{size}, {} are free beside it; answers are kept for {kept} after their last lease, and {} runs of each recurring job.",
        output::bytes(free as f64),
        engine.history_samples
    );
    if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Check::problem(
            NAME,
            page::JOURNAL,
            format!("{finding} The disk is read-only."),
            "Remount it writable.",
        );
    }
    let advice = "Make room, or move store.path to another disk (restart).";
    match free {
        free if free < ROOM_GONE => Check::problem(NAME, page::JOURNAL, finding, advice),
        free if free < ROOM_LOW => Check::warning(NAME, page::JOURNAL, finding, advice),
        _ => Check::ok(NAME, page::JOURNAL, finding),
    }
}
