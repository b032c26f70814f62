//! Checks of this machine: who listens at the socket, the configuration on disk, the process's bounds, the journal's disk.

use super::super::connect::ADMIN_SOCKET;
use super::super::output;
use super::facts::{Answers, Facts, OnDisk, Standing, Unanswered};
use super::process;
use hintd::config::Config;
use hintd::findings::cluster::{self, CONFIGURATION};
use hintd::findings::{Check, count, page};
use std::net::SocketAddr;
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
            let (finding, advice) = unanswered(standing, &facts.socket, why, facts.load);
            Check::problem(NAME, page::DOWN, finding, advice)
        }
    }
}

fn unanswered(
    standing: &Standing,
    path: &Path,
    Unanswered { late, why }: &Unanswered,
    load: Option<(f64, usize)>,
) -> (String, String) {
    let of_the_unit = path == Path::new(ADMIN_SOCKET);
    let path = path.display();
    // Of another daemon than the unit's systemd knows nothing.
    let advice = |unit: &str, other: &str| if of_the_unit { unit.to_owned() } else { other.to_owned() };
    match standing {
        Standing::Nothing => (
            format!("There is no socket at {path}: hintd does not run, or listens elsewhere."),
            format!(
                "{}; if listen.admin_socket names another path, give it by --admin-socket.",
                advice("systemctl start hintd", "Start the hintd that has it")
            ),
        ),
        Standing::Hidden => (format!("You may not look at {path}."), run_as("hintd")),
        Standing::Other => {
            (format!("{path} is not a socket."), "Give the daemon's socket by --admin-socket.".to_owned())
        }
        Standing::Unknown(error) => (format!("{path} can't be looked at: {error}."), "Repair the path.".to_owned()),
        Standing::Socket { owner, mode } if why.contains("Permission denied") => {
            let user = process::user(*owner);
            (format!("You may not open {path}: it belongs to {user} and has mode {mode:04o}."), run_as(&user))
        }
        Standing::Socket { .. } if why.contains("Connection refused") => (
            format!("Nobody listens at {path}: hintd ended without taking its socket away."),
            advice(
                "systemctl status hintd says how it ended; start it again.",
                "Its log says how it ended; start it again.",
            ),
        ),
        Standing::Socket { .. } if *late => (
            format!("Something listens at {path}, and {why}. {}", load_in_words(load)),
            format!(
                "See what the machine does (top) and what hintd says ({}), then ask again. Only if it does not answer while \
                 cores are free it hangs: then {}, which keeps all leases.",
                advice("journalctl -u hintd", "its log"),
                advice("systemctl restart hintd", "restart it")
            ),
        ),
        Standing::Socket { .. } => (
            format!("Something listens at {path} and does not answer as hintd does: {why}."),
            advice("systemctl status hintd and journalctl -u hintd say what runs there.", "See its log."),
        ),
    }
}

/// Whether a machine explains that nothing is answered in time.
fn load_in_words(load: Option<(f64, usize)>) -> String {
    match load {
        None => "Nothing here says how busy the machine is.".to_owned(),
        Some((load, cores)) => {
            let so = if load > cores as f64 { "it may only be slow" } else { "that is not why" };
            let cores = count(cores as u64, "core");
            format!("The load of the last minute is {} on {cores}: {so}.", output::digits(load))
        }
    }
}

fn run_as(user: &str) -> String {
    match user {
        "root" => "Run this as root (sudo hintctl doctor).".to_owned(),
        user => format!("Run this as root or as the user {user} (sudo -u {user} hintctl doctor)."),
    }
}

/// The unit, where no daemon answers at the place that the unit has.
pub(super) fn unit(facts: &Facts) -> Check {
    const NAME: &str = "unit";
    if facts.socket != Path::new(ADMIN_SOCKET) {
        return Check::not_checked(
            NAME,
            page::DOWN,
            "Only the socket of the unit hintd.service is looked up in systemd, and this is another one.",
        );
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
    const NAME: &str = CONFIGURATION;
    let file = facts.config_file.display();
    let refused = facts.answers.as_ref().ok().and_then(|answers| cluster::refused(&answers.status, &file.to_string()));
    if let Some(refused) = refused {
        return refused;
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
        (OnDisk::Unread(why), _) if facts.config_given => Check::problem(
            NAME,
            page::CONFIGURE,
            format!("{file}, which --config names, can't be read: {why}."),
            "Name the file that hintd was started with, or leave --config out: the daemon says which it is.",
        ),
        (OnDisk::Unread(why), Ok(answers)) => cluster::waits_for_restart(&answers.status).unwrap_or_else(|| {
            let finding =
                format!("The daemon refuses nothing of its configuration; {file} can't be read from here ({why}).");
            Check::ok(NAME, page::CONFIGURE, finding)
        }),
        (OnDisk::Unread(why), Err(_)) => {
            Check::not_checked(NAME, page::CONFIGURE, format!("{file} can't be read: {why}."))
        }
    }
}

fn in_force(config: &Config, answers: &Answers, file: &Path) -> Check {
    const NAME: &str = CONFIGURATION;
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
    if let Some(waits) = cluster::waits_for_restart(&answers.status) {
        return waits;
    }
    let started = Duration::from_millis(answers.status.uptime_ms);
    let saved_ago = std::fs::metadata(file).ok().and_then(|found| found.modified().ok()?.elapsed().ok());
    let since = match saved_ago {
        Some(ago) if ago < started => saved_since_the_start(&answers.status.version),
        _ => "",
    };
    Check::ok(NAME, page::CONFIGURE, format!("{file_shown} is sound and in force (generation {generation}){since}."))
}

/// What is said of a file that was saved since a daemon of this version started, which names no key that waits for a restart.
/// One of another version may be too old to name any.
fn saved_since_the_start(version: &str) -> &'static str {
    if version == env!("CARGO_PKG_VERSION") {
        "; it was saved after the daemon started, and of what the daemon has read since no key waits for a restart"
    } else {
        "; it was saved after the daemon started: keys marked (restart) may wait for a restart, hintctl reload names them"
    }
}

/// Who can reach the daemon without proof: by what its process listens on, else by the file on disk. Listeners of the file
/// take a restart, so that both may differ.
pub(super) fn exposure(facts: &Facts) -> Check {
    let process = facts.pid.filter(|_| facts.answers.is_ok()).and_then(process::listeners);
    let file = match &facts.on_disk {
        OnDisk::Sound(config) => {
            let listeners = [("listen.grpc", Some(config.options.listen.grpc)), ("listen.metrics", config.metrics)];
            Some(listeners.into_iter().filter_map(|(key, address)| Some((key, address?))).collect::<Vec<_>>())
        }
        _ => None,
    };
    exposed(process.as_deref(), file.as_deref())
}

fn exposed(process: Option<&[SocketAddr]>, file: Option<&[(&str, SocketAddr)]>) -> Check {
    const NAME: &str = "exposure";
    const TRUSTED: &str = "every process of this machine is trusted, containers included";
    const ADVICE: &str = "Keep others out by a firewall, or listen on loopback (restart).";
    let beyond = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    let by_file = file.map(|listeners| {
        let open = listeners.iter().filter(|(_, address)| beyond(address));
        open.map(|(key, address)| format!("{key} {address}")).collect::<Vec<_>>().join(", ")
    });
    let by_process = process.map(|listeners| {
        let open = listeners.iter().filter(|address| beyond(address));
        open.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    });
    let warning = |finding: String| Check::warning(NAME, page::TRUST, finding, ADVICE);
    let ok = |finding: String| Check::ok(NAME, page::TRUST, finding);
    match (by_process.as_deref(), by_file.as_deref()) {
        (None, None) => Check::not_checked(
            NAME,
            page::TRUST,
            "Cannot see what the process listens on, and cannot read the configuration, or it is wrong.",
        ),
        (Some(""), Some("") | None) => ok(format!("The process listens on loopback only; {TRUSTED}.")),
        (None, Some("")) => ok(format!("Listeners are on loopback, by the file on disk; {TRUSTED}.")),
        (Some(""), Some(file)) => warning(format!(
            "The process listens on loopback only; after a restart, by the file on disk, without TLS beyond it: {file}."
        )),
        (None, Some(file)) => warning(format!(
            "Listeners without TLS beyond loopback, by the file on disk: {file}. Every machine that can connect is trusted."
        )),
        (Some(open), file) => {
            let file = match file {
                Some("") => " The file on disk has them on loopback, which takes a restart.",
                _ => "",
            };
            warning(format!(
                "The process listens without TLS beyond loopback: {open}. Every machine that can connect is trusted.{file}"
            ))
        }
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
    let config = match &facts.on_disk {
        OnDisk::Sound(config) => Some(config),
        _ => None,
    };
    // The daemon has open what it was started with, whatever is on disk now.
    let named = facts.answers.as_ref().map(|answers| answers.status.journal_file.as_str()).unwrap_or_default();
    let path = match (named, config) {
        ("", Some(config)) => config.options.store.path.as_path(),
        ("", None) => {
            let why = "The configuration, which names it, can't be read from here, or is wrong.";
            return Check::not_checked(NAME, page::JOURNAL, why);
        }
        (named, _) => Path::new(named),
    };
    let path = &facts.as_the_daemon_has_it(path);
    let shown = path.display();
    if facts.answers.is_ok() && is_gone(facts.pid, path) {
        return Check::problem(
            NAME,
            page::RECOVER,
            format!(
                "{shown} was moved, removed or replaced while hintd runs: its records, and those written from now on, are lost at the next restart."
            ),
            "If it was moved, stop hintd, move it back, start hintd: nothing is lost. Else restart hintd at a quiet time: it makes a new journal, or takes the one that lies there. To keep the history of recurring jobs, stop it, put a backup there, start it.",
        );
    }
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
    let kept = config.map_or_else(String::new, |config| {
        let engine = &config.options.settings.engine;
        let kept = output::seconds(engine.answers_keep.0 as f64 / 1e6);
        let runs = engine.history_samples;
        format!("; answers are kept for {kept} after their last lease, and {runs} runs of each recurring job")
    });
    let finding = format!("{size}, {} are free beside it{kept}.", output::bytes(free as f64));
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

/// Whether the daemon's open files are visible and none of them is the one of this path.
fn is_gone(pid: Option<u32>, path: &Path) -> bool {
    pid.and_then(|pid| process::has_open(pid, path)) == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd::findings::Verdict;

    #[test]
    fn that_no_key_waits_for_a_restart_is_said_only_of_a_daemon_that_would_name_it() {
        assert!(saved_since_the_start(env!("CARGO_PKG_VERSION")).ends_with("no key waits for a restart"));
        for other in ["0.0.9", ""] {
            assert!(saved_since_the_start(other).contains("may wait for a restart"), "{other}");
        }
    }

    #[test]
    fn what_the_process_listens_on_counts_before_the_file() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (near, far, near_6) = (at("127.0.0.1:1"), at("0.0.0.0:1"), at("[::ffff:127.0.0.1]:1"));
        let (warning, ok) = (Verdict::Warning, Verdict::Ok);
        for (process, file, verdict, words) in [
            (
                Some(far),
                Some(near),
                warning,
                "beyond loopback: 0.0.0.0:1. Every machine that can connect is trusted. The file on disk has",
            ),
            (Some(far), Some(far), warning, "The process listens without TLS"),
            (Some(far), None, warning, "The process listens without TLS"),
            (
                Some(near),
                Some(far),
                warning,
                "after a restart, by the file on disk, without TLS beyond it: listen.grpc 0.0.0.0:1",
            ),
            (Some(near_6), Some(near), ok, "The process listens on loopback only"),
            (None, Some(near), ok, "by the file on disk"),
            (None, Some(far), warning, "by the file on disk: listen.grpc 0.0.0.0:1"),
            (None, None, Verdict::NotChecked, "Cannot see what the process listens on"),
        ] {
            let file = file.map(|address| [("listen.grpc", address)]);
            let check = exposed(process.as_ref().map(std::slice::from_ref), file.as_ref().map(|rows| &rows[..]));
            assert!(check.verdict == verdict && check.finding.contains(words), "{process:?} {file:?}: {check:?}");
        }
    }

    #[test]
    fn a_journal_is_gone_only_where_the_daemons_open_files_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone.redb");
        assert!(!is_gone(None, &path) && !is_gone(Some(u32::MAX), &path), "no process is visible");
        let mine = Some(std::process::id());
        let file = std::fs::File::create(&path).unwrap();
        assert!(!is_gone(mine, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(is_gone(mine, &path));
        drop(file);
    }

    #[test]
    fn a_daemon_that_is_slow_is_looked_at_before_it_is_started_anew() {
        let late = Unanswered { late: true, why: "it does not answer within 10 s".to_owned() };
        let socket = Standing::Socket { owner: 0, mode: 0o600 };
        let (finding, advice) = unanswered(&socket, Path::new(ADMIN_SOCKET), &late, Some((17.25, 2)));
        assert!(finding.contains("The load of the last minute is 17.2 on 2 cores: it may only be slow."), "{finding}");
        let [look, restart] = ["ask again", "restart"].map(|words| advice.find(words).unwrap());
        assert!(look < restart, "{advice}");
        let (finding, _) = unanswered(&socket, Path::new(ADMIN_SOCKET), &late, Some((0.5, 1)));
        assert!(finding.contains("is 0.5 on 1 core: that is not why."), "{finding}");
    }

    #[test]
    fn advice_is_of_the_unit_only_at_its_socket_and_names_a_user_once() {
        let advice = |standing: Standing, path: &str, why: &str| {
            let unanswered_by = Unanswered { late: why.contains("within"), why: why.to_owned() };
            unanswered(&standing, Path::new(path), &unanswered_by, None).1
        };
        assert!(advice(Standing::Nothing, ADMIN_SOCKET, "").starts_with("systemctl start hintd; "));
        let socket = || Standing::Socket { owner: 0, mode: 0o600 };
        for why in ["Connection refused", "silence", "it does not answer within 10 s"] {
            assert!(advice(socket(), ADMIN_SOCKET, why).contains("systemctl"));
            assert!(!advice(socket(), "/tmp/x.sock", why).contains("systemctl"));
        }
        assert!(!advice(Standing::Nothing, "/tmp/x.sock", "").contains("systemctl"));
        assert_eq!(advice(socket(), "/tmp/x.sock", "Permission denied"), "Run this as root (sudo hintctl doctor).");
        assert!(advice(Standing::Hidden, "/tmp/x.sock", "").contains("as root or as the user hintd (sudo -u hintd"));
    }
}
