//! Text that is longer than the terminal goes through a pager, as git's does: HINTCTL_PAGER, else PAGER, else `less`, which ends by
//! itself where all of it has room, keeps colors, and leaves on the screen what it showed.

use super::width;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use tokio::signal::unix::{SignalKind, signal};

const OWN_VARIABLE: &str = "HINTCTL_PAGER";
const VARIABLE: &str = "PAGER";
const DEFAULT: &str = "less";
/// What pagers are told where their users tell them nothing.
const SETTINGS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];
/// Who runs a program with another user's rights leaves one of these.
const RAISED: [&str; 3] = ["SUDO_UID", "DOAS_USER", "PKEXEC_UID"];
/// The shell's words for a program that it can't run, and for one that it does not find.
const NOT_RUN: [i32; 2] = [126, 127];

/// Shows a text page by page, if standard output is a terminal on which it has no room; whether it did. `plain`: the same without
/// colors.
pub(super) fn shows(plain: &str, painted: &str) -> bool {
    let knows_keys = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if !knows_keys || !io::stdout().is_terminal() || !is_longer(plain, width::of_terminal()) {
        return false;
    }
    let of = |name| std::env::var_os(name).map(OsString::into_string).and_then(Result::ok);
    chosen(of(OWN_VARIABLE), of(VARIABLE), is_raised()).is_some_and(|pager| run(&pager, painted))
}

/// The first that is set; `None`: none is wanted, as `cat` or nothing in a variable says. With raised rights a variable says only
/// that: whoever may run hintctl so, and nothing else, would get any program run.
fn chosen(own: Option<String>, general: Option<String>, is_raised: bool) -> Option<String> {
    let pager = own.or(general).unwrap_or_else(|| DEFAULT.to_owned());
    let wanted = Some(pager.trim().to_owned()).filter(|pager| !pager.is_empty() && pager != "cat");
    wanted.map(|pager| if is_raised { DEFAULT.to_owned() } else { pager })
}

/// Whether it runs with rights that its user has for this program, and perhaps for no other.
fn is_raised() -> bool {
    RAISED.iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether a text leaves no line of the terminal for the prompt below it.
fn is_longer(text: &str, (height, width): (usize, usize)) -> bool {
    let rows = |line: &str| line.chars().count().div_ceil(width.max(1)).max(1);
    text.lines().map(rows).sum::<usize>() >= height
}

/// Whether the pager was run. Ctrl-C is its own meanwhile: whoever stops a search in it wants to go on reading.
fn run(pager: &str, text: &str) -> bool {
    let shown = || show(pager, text).is_ok_and(|status| !NOT_RUN.iter().any(|code| status.code() == Some(*code)));
    if tokio::runtime::Handle::try_current().is_ok() {
        let _heard = signal(SignalKind::interrupt());
        return shown();
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return false };
    let _inside = runtime.enter();
    let _heard = signal(SignalKind::interrupt());
    shown()
}

fn show(pager: &str, text: &str) -> io::Result<ExitStatus> {
    let mut command = command(pager);
    command.envs(SETTINGS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
    if is_raised() || rustix::process::geteuid().is_root() {
        command.env("LESSSECURE", "1"); // less then runs no other program and writes no file
    }
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(pipe, "{text}{end}"); // who has seen enough closes it
    }
    child.wait()
}

/// A program by its name, or, where more than that is said, whatever the shell makes of it.
fn command(pager: &str) -> Command {
    let is_name = pager.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+".contains(letter));
    if is_name {
        return Command::new(pager);
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", pager]);
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_variable_counts_first_and_nothing_or_cat_in_one_says_none() {
        let of = |own: Option<&str>, general: Option<&str>| {
            chosen(own.map(str::to_owned), general.map(str::to_owned), false)
        };
        assert_eq!(of(None, None).as_deref(), Some("less"));
        assert_eq!(of(None, Some("more -s")).as_deref(), Some("more -s"));
        assert_eq!(of(Some("less -S"), Some("more")).as_deref(), Some("less -S"));
        assert_eq!(
            [of(Some("cat"), Some("more")), of(Some(""), Some("more")), of(None, Some(" "))],
            [None, None, None]
        );
    }

    #[test]
    fn with_raised_rights_a_variable_chooses_no_program() {
        let of = |own: Option<&str>| chosen(own.map(str::to_owned), Some("sh".to_owned()), true);
        assert_eq!([of(None).as_deref(), of(Some("sh -c sh")).as_deref()], [Some("less"); 2]);
        assert_eq!([of(Some("")), of(Some("cat"))], [None, None]);
    }

    #[test]
    fn a_text_is_longer_where_it_leaves_no_line_for_the_prompt() {
        let lines = |count: usize| "x\n".repeat(count);
        assert!(!is_longer(&lines(23), (24, 80)) && is_longer(&lines(24), (24, 80)));
        let broken = format!("{}\n{}", "x".repeat(161), lines(20));
        assert!(!is_longer(&broken, (24, 81)) && is_longer(&format!("{broken}\n"), (24, 80)));
    }

    #[test]
    fn a_pager_that_is_not_there_has_shown_nothing() {
        assert!(!run("hintctl-no-such-pager", "text") && !run("hintctl-no-such-pager -x 2>/dev/null", "text"));
        assert!(run("cat >/dev/null", "text") && run("true", &"text".repeat(100_000)));
    }
}
