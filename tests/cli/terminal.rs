//! `top` and `--watch` on a terminal: it is left as it was found, however they end.

use super::{Files, assert_refused, started, text_of};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A pseudo-terminal.
struct Terminal {
    controller: File,
    /// The programs' side.
    user: File,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new() -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let path = ptsname(&controller, Vec::new()).unwrap();
        // Not the terminal of this test's own session.
        let user = rustix::fs::open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let controller = File::from(controller);
        let (mut reader, said) = (controller.try_clone().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
        let all = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                all.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { controller, user: File::from(user), said }
    }

    fn run(&self, args: &[&str]) -> Child {
        self.run_with(&[], args)
    }

    /// Without a pager, unless `environment` names one.
    fn run_with(&self, environment: &[(&str, &str)], args: &[&str]) -> Child {
        let side = || Stdio::from(self.user.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
        command
            .args(args)
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .env_remove("HINTCTL_PAGER")
            .env_remove("SUDO_UID")
            .env_remove("DOAS_USER")
            .env_remove("PKEXEC_UID")
            .env("PAGER", "cat")
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .envs(environment.iter().copied());
        command.stdin(side()).stdout(side()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn modes(&self) -> LocalModes {
        tcgetattr(&self.user).unwrap().local_modes
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until the screen was entered and left so often.
    fn seen(&self, entered: usize, left: usize) {
        until("the screen is entered and left", || {
            let said = self.said();
            (said.matches(ENTER).count(), said.matches(LEAVE).count()) == (entered, left)
        });
    }
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn is_stopped(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

/// A daemon without nodes, while `look` looks at it; the argument names its socket.
fn with_daemon(look: impl FnOnce(&str)) {
    let files = Files::new();
    let (runtime, running, socket) = started(&files, "");
    look(&socket);
    runtime.block_on(running.shutdown()).unwrap();
}

#[test]
fn whatever_ends_or_stops_top_and_watch_the_terminal_is_as_it_was() {
    with_daemon(|socket| {
        for command in [&["top", "--every", "0.1"][..], &["nodes", "--watch", "0.1"]] {
            let args = [&["--admin-socket", socket], command].concat();
            for (last, code, said) in
                [(Signal::INT, 0, ""), (Signal::TERM, 1, "ended by SIGTERM"), (Signal::HUP, 1, "ended by SIGHUP")]
            {
                let terminal = Terminal::new();
                let before = terminal.modes();
                assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
                let child = terminal.run(&args);
                terminal.seen(1, 0);
                until("keys come at once", || !terminal.modes().contains(LocalModes::ICANON));
                signal(&child, Signal::TSTP);
                until("it is stopped", || is_stopped(&child));
                assert_eq!(terminal.modes(), before, "{args:?}: stopped");
                until("the screen is left", || terminal.said().ends_with(LEAVE));
                signal(&child, Signal::CONT);
                terminal.seen(2, 1);
                until("keys come at once again", || !terminal.modes().contains(LocalModes::ICANON));
                signal(&child, last);
                let (ended_with, told) = ended(child);
                assert_eq!((ended_with, told.contains(said)), (Some(code), true), "{args:?}: {told}");
                assert_eq!(terminal.modes(), before, "{args:?}: {said}");
                terminal.seen(2, 2);
            }
        }
    });
}

/// A socket that passes everything on to another until it is told to hold all back. Then it
/// still reads, so that no connection is closed: a daemon that hangs closes none.
fn held_back(to: &str, hold: &Arc<AtomicBool>) -> (Files, String) {
    let files = Files::new();
    let path = text_of(&files.path("between.sock"));
    let (listener, to) = (UnixListener::bind(&path).unwrap(), to.to_owned());
    let hold = Arc::clone(hold);
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (caller, daemon) = (caller.unwrap(), UnixStream::connect(&to).unwrap());
            let ways = [(caller.try_clone(), daemon.try_clone()), (Ok(daemon), Ok(caller))];
            for (from, to) in ways {
                let (mut from, mut to, hold) = (from.unwrap(), to.unwrap(), Arc::clone(&hold));
                std::thread::spawn(move || {
                    let mut piece = [0; 4_096];
                    while let Ok(count @ 1..) = from.read(&mut piece) {
                        if !hold.load(Ordering::Acquire) && to.write_all(&piece[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (files, path)
}

#[test]
fn keys_and_signals_are_heard_while_a_daemon_that_hangs_is_waited_for() {
    with_daemon(|socket| {
        for (command, by, code) in
            [("top", None, 0), ("top", Some(Signal::INT), 0), ("nodes", None, 0), ("nodes", Some(Signal::TERM), 1)]
        {
            let hold = Arc::new(AtomicBool::new(false));
            let (_files, between) = held_back(socket, &hold);
            let mut terminal = Terminal::new();
            let every = if command == "top" { "--every" } else { "--watch" };
            let child = terminal.run(&["--admin-socket", &between, command, every, "0.1"]);
            until("it is shown", || terminal.said().contains("q quits") || terminal.said().contains("quit"));
            hold.store(true, Ordering::Release);
            until("it is waited for", || terminal.said().contains("the daemon does not answer (q or Ctrl-C quits)"));
            match by {
                None => terminal.controller.write_all(b"q").unwrap(),
                Some(kind) => signal(&child, kind),
            }
            let (ended_with, told) = ended(child);
            assert_eq!(ended_with, Some(code), "{command} by {by:?}: {told}");
            until("the screen is left", || terminal.said().ends_with(LEAVE));
            let patient = terminal.said().contains("does not answer within");
            assert!(!patient, "{command}: it waited to the end: {:?}", terminal.said());
        }
    });
}

#[test]
fn q_ends_it_and_what_wants_a_look_is_in_color_unless_no_color_says_otherwise() {
    with_daemon(|socket| {
        let mut terminal = Terminal::new();
        let child = terminal.run(&["--admin-socket", socket, "status", "--live", "--watch"]);
        until("it is shown", || terminal.said().contains("\x1b[31mNOT READY\x1b[0m"));
        terminal.controller.write_all(b"q").unwrap();
        assert_eq!(ended(child).0, Some(0));
        until("the screen is left", || terminal.said().ends_with(LEAVE));
        let plain = Terminal::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
        command
            .args(["--admin-socket", socket, "--no-pager", "status", "--live"])
            .env("NO_COLOR", "1")
            .env("TERM", "xterm");
        let status = command.stdout(Stdio::from(plain.user.try_clone().unwrap())).status().unwrap();
        assert!(status.success());
        until("it is printed", || plain.said().contains("NOT READY"));
        assert!(!plain.said().contains('\x1b'), "{:?}", plain.said());
        assert_refused(&["--admin-socket", socket, "status", "--watch"], &["there is no terminal"]);
    });
}

/// Marks the lines that went through it.
const PAGER: (&str, &str) = ("HINTCTL_PAGER", "sed 's/^/paged: /'; echo all of it");
const PAGED: &str = "paged: ";

#[test]
fn what_is_longer_than_the_terminal_is_paged_and_nothing_else_is() {
    with_daemon(|socket| {
        let socket = ["--admin-socket", socket];
        let shown = |environment: &[(&str, &str)], args: &[&str], last: &str| {
            let terminal = Terminal::new();
            let child = terminal.run_with(environment, &[&socket[..], args].concat());
            let (code, told) = ended(child);
            assert_eq!(code, Some(0), "{args:?}: {told}");
            until("it is printed", || terminal.said().contains(last));
            terminal.said().replace("\r\n", "\n")
        };
        let status = &["status", "--live"][..];
        let paged = shown(&[PAGER], status, "all of it");
        let lines: Vec<&str> = paged.lines().collect();
        assert!(lines.len() > 24 && lines[..lines.len() - 1].iter().all(|line| line.starts_with(PAGED)), "{paged}");
        assert!(paged.contains("\x1b[31mNOT READY\x1b[0m"), "colors are kept: {paged:?}");
        let help = shown(&[PAGER], &["links", "--help"], "all of it");
        assert!(help.contains("paged: Links: capacity"), "{help}");
        // As it was: nobody wants one, it is not there, and what is short, or for a script.
        let as_it_is = shown(&[("HINTCTL_PAGER", "cat")], status, "counter");
        assert_eq!(paged.matches("NOT READY").count(), as_it_is.matches("NOT READY").count());
        for (environment, args, last) in [
            (&[PAGER][..], &["status", "--live", "--no-pager"][..], "counter"),
            (&[("HINTCTL_PAGER", ""), ("PAGER", PAGER.1)], status, "counter"),
            (&[("HINTCTL_PAGER", "hintctl-no-such-pager")], status, "counter"),
            (&[PAGER, ("TERM", "dumb")], status, "counter"),
            (&[PAGER], &["nodes"], "0 of 0 nodes"),
            (&[PAGER], &["status", "--live", "-o", "json"], "\n}"),
            (&[PAGER], &["status", "--live", "-o", "yaml"], "watchers: "),
            (&[PAGER], &["links", "--help", "--no-pager"], "--watch"),
        ] {
            let said = shown(environment, args, last);
            assert!(!said.contains(PAGED), "{environment:?} {args:?}: {said}");
        }
        let general = shown(&[("PAGER", PAGER.1)], status, "all of it");
        assert!(general.contains(PAGED), "{general}");
        let mut piped = Command::new(env!("CARGO_BIN_EXE_hintctl"));
        let piped = piped.args(socket).args(status).env("TERM", "xterm").envs([PAGER]).output().unwrap();
        assert!(!String::from_utf8(piped.stdout).unwrap().contains(PAGED), "a pipe is read by programs");
    });
}

#[test]
fn a_pager_that_quits_early_leaves_the_exit_code_to_the_command() {
    with_daemon(|socket| {
        let terminal = Terminal::new();
        let child = terminal.run_with(&[("HINTCTL_PAGER", "head -1")], &["--admin-socket", socket, "status"]);
        let (code, told) = ended(child);
        assert!(code == Some(1) && told.contains("not ready: "), "{code:?}: {told}");
        until("its first line is shown", || terminal.said().contains('\n'));
        assert_eq!(terminal.said().lines().count(), 1, "{:?}", terminal.said());
    });
}

#[test]
fn with_another_users_rights_the_pager_is_less_and_runs_no_other_program() {
    with_daemon(|socket| {
        let files = Files::new();
        let less = files.path("less");
        // It says with which environment it was called.
        std::os::unix::fs::symlink("/usr/bin/env", &less).unwrap();
        let path = format!("{}:{}", text_of(less.parent().unwrap()), std::env::var("PATH").unwrap());
        let status = ["--admin-socket", socket, "status", "--live"];
        let with = |environment: &[(&str, &str)], last: &str| {
            let terminal = Terminal::new();
            let environment = [&[("PATH", &*path), ("LESSSECURE", "")], environment].concat();
            assert_eq!(ended(terminal.run_with(&environment, &status)).0, Some(0), "{environment:?}");
            until("it is shown", || terminal.said().contains(last));
            terminal.said()
        };
        for raised in [("SUDO_UID", "1000"), ("DOAS_USER", "ann"), ("PKEXEC_UID", "1000")] {
            for pager in [PAGER, ("PAGER", PAGER.1)] {
                let said = with(&[raised, pager], "LESSSECURE=1");
                assert!(!said.lines().any(|line| line.starts_with(PAGED)), "{raised:?} {pager:?}: {said}");
            }
            let none = with(&[raised, ("HINTCTL_PAGER", "cat")], "counter");
            assert!(!none.contains("LESSSECURE"), "{none}");
        }
    });
}

#[test]
fn ctrl_c_is_the_pagers_while_it_shows_something() {
    with_daemon(|socket| {
        for command in [&["status", "--live"][..], &["links", "--help"]] {
            let files = Files::new();
            let go_on = text_of(&files.path("go-on"));
            let pager = format!("echo reading; while [ ! -e '{go_on}' ]; do sleep 0.02; done; cat; echo all of it");
            let terminal = Terminal::new();
            let args = [&["--admin-socket", socket], command].concat();
            let child = terminal.run_with(&[("HINTCTL_PAGER", &pager)], &args);
            until("it is read", || terminal.said().contains("reading"));
            signal(&child, Signal::INT);
            std::fs::write(&go_on, "").unwrap();
            assert_eq!(ended(child).0, Some(0), "{command:?}");
            until("it is shown to its end", || terminal.said().contains("all of it"));
        }
    });
}

#[test]
fn colors_are_where_the_command_line_wants_them() {
    with_daemon(|socket| {
        let help = |color: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
            String::from_utf8(command.args(["links", "--help", "--color", color]).output().unwrap().stdout).unwrap()
        };
        assert!(help("always").contains("\x1b[") && !help("never").contains('\x1b'), "help reads it, too");
        let terminal = Terminal::new();
        assert_eq!(ended(terminal.run(&["--color=never", "links", "--help", "--no-pager"])).0, Some(0));
        until("help is printed", || terminal.said().contains("--watch"));
        assert!(!terminal.said().contains('\x1b'), "{:?}", terminal.said());
        let status = ["--admin-socket", socket, "status", "--live"];
        let said = |environment: &[(&str, &str)], color: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
            let command = command.args(status).args(["--color", color]).envs(environment.iter().copied());
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert!(said(&[("NO_COLOR", "1")], "always").contains("\x1b[31mNOT READY\x1b[0m"), "in a pipe, too");
        assert!(!said(&[("TERM", "xterm")], "auto").contains('\x1b'));
        let terminal = Terminal::new();
        let child = terminal.run(&[&status[..], &["--color", "never"]].concat());
        assert_eq!(ended(child).0, Some(0));
        until("it is printed", || terminal.said().contains("counter"));
        assert!(!terminal.said().contains('\x1b'), "{:?}", terminal.said());
    });
}

#[test]
fn what_is_printed_fits_the_terminal_and_in_a_pipe_what_columns_says() {
    with_daemon(|socket| {
        let call = |columns: Option<&str>, args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
            command.args(["--admin-socket", socket]).args(args).env_remove("COLUMNS");
            command.envs(columns.map(|columns| ("COLUMNS", columns)));
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        for args in [&["doctor", "--all"][..], &["status", "--live"], &["links"], &["top", "--once", "--every", "0.1"]]
        {
            let (whole, narrow) = (call(None, args), call(Some("80"), args));
            assert!(widest(&narrow) <= 80, "{args:?}: {narrow}");
            assert!(!whole.contains('…') && !whole.contains("left off: "), "{args:?}: {whole}");
        }
        assert!(widest(&call(None, &["doctor", "--all"])) > 100);
        let few = call(None, &["doctor"]);
        assert!(!few.contains("\nok ") && few.contains("--all shows them"), "{few}");
        // A terminal that does not say how wide it is has 80 columns.
        let terminal = Terminal::new();
        assert_eq!(terminal.run(&["--admin-socket", socket, "doctor"]).wait().unwrap().code(), Some(1));
        until("it is printed", || terminal.said().trim_end().ends_with("them)"));
        let said = terminal.said().replace("\x1b[31m", "").replace("\x1b[33m", "").replace("\x1b[0m", "");
        assert!(widest(&said.replace('\r', "")) <= 80, "{said}");
    });
}
