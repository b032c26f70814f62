//! What man pages say beside the commands' own help: exit status, environment, files; and hintd.toml(5), which is the
//! shipped configuration, set as a page.

use std::fmt::Write as _;

/// A name and what it means.
type Row = (&'static str, &'static str);

const HINTCTL_EXIT: &[Row] = &[
    ("0", "Done."),
    (
        "1",
        "The work failed: no daemon answers, it refuses, a file cannot be written. Some commands say more in their help.",
    ),
    ("2", "Bad usage or bad input; the message names the option, file, line or field."),
];
const HINTCTL_ENVIRONMENT: &[Row] = &[
    ("HINTD_ADDRESS", "The daemon's gRPC address where --address is not given."),
    ("HINTD_CONTEXT", "The context where --context is not given, in place of the current one."),
    ("HINTD_ADMIN_SOCKET", "The daemon's admin socket where --admin-socket is not given."),
    ("HINTD_SECRET_FILE", "The file with what makes later calls the same client's where --secret-file is not given."),
    ("HINTD_TOKEN", "The attempt's token where --token is not given."),
    (
        "HINTCTL_PAGER",
        "What shows text that is longer than the terminal, in place of PAGER; empty or cat: nothing does.",
    ),
    ("PAGER", "The same, for all programs [default: less]."),
    ("LESS", "Options of less [default: FRX]; without R in it less shows colors as ESC[31m."),
    (
        "SUDO_UID, DOAS_USER, PKEXEC_UID",
        "If one is set: the pager is less, whatever program HINTCTL_PAGER and PAGER name, and less runs no other one (LESSSECURE=1, \
         as for root in any case).",
    ),
    (
        "NO_COLOR",
        "If set and not empty: no colors, unless --color always is given. There are none either where standard output is no terminal.",
    ),
    ("TERM", "dumb: no pager, and no colors unless --color always is given."),
    ("XDG_STATE_HOME", "Where hintctl/secret is kept [default: ~/.local/state]."),
    ("XDG_CONFIG_HOME", "Where hintd/contexts.toml is kept [default: ~/.config]."),
];
const HINTCTL_FILES: &[Row] = &[
    ("/run/hintd/admin.sock", "The admin socket: only its owner and root may open it."),
    ("$XDG_STATE_HOME/hintctl/secret", "What makes later calls the same client's."),
    ("$XDG_CONFIG_HOME/hintd/contexts.toml", "Contexts: daemons by name, and which is current."),
    ("/etc/hintd/hintd.toml", "The daemon's configuration, which doctor and bundle read."),
];
const HINTD_EXIT: &[Row] = &[
    ("0", "Stopped by SIGTERM or SIGINT; with --check: the configuration is sound."),
    ("1", "It could not start, or could not go on; the log says why."),
    ("2", "Bad usage or a wrong configuration; every problem is named with its line and key."),
];
const HINTD_ENVIRONMENT: &[Row] = &[
    ("RUST_BACKTRACE", "1: a panic is logged with its backtrace."),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "Authorities to trust for https:// where no ca_file is configured, in place of the system's.",
    ),
];
const HINTD_FILES: &[Row] = &[
    ("/etc/hintd/hintd.toml", "The configuration: hintd.toml(5)."),
    ("/var/lib/hintd/journal.redb", "The journal of leases and answers."),
    ("/run/hintd/admin.sock", "The admin socket."),
];

/// Text that is no request of roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}\n") } else { format!("{line}\n") })
        .collect()
}

/// A text between quotation marks.
fn title(text: &str) -> String {
    roff(text.trim()).trim_end().replace('"', "\"\"")
}

fn section(page: &mut String, title: &str, rows: &[Row]) {
    let _ = writeln!(page, ".SH \"{title}\""); // a String takes all
    for (name, meaning) in rows {
        let _ = write!(page, ".TP\n\\fB{}\\fR\n{}", roff(name).trim_end(), roff(meaning));
    }
}

/// What stands at the end of each page of `hintctl`.
pub(super) fn hintctl() -> String {
    let mut page = String::new();
    section(&mut page, "EXIT STATUS", HINTCTL_EXIT);
    section(&mut page, "ENVIRONMENT", HINTCTL_ENVIRONMENT);
    section(&mut page, "FILES", HINTCTL_FILES);
    page + ".SH \"SEE ALSO\"\nhintctl(1), hintd(8), hintd.toml(5)\n"
}

/// What stands at the end of the page of `hintd`.
pub(super) fn hintd() -> String {
    let mut page = String::new();
    section(&mut page, "EXIT STATUS", HINTD_EXIT);
    section(&mut page, "ENVIRONMENT", HINTD_ENVIRONMENT);
    section(&mut page, "FILES", HINTD_FILES);
    page + ".SH \"SEE ALSO\"\nhintctl(1), hintd.toml(5)\n"
}

/// The shipped configuration: every key with its default and what it does.
const SHIPPED: &str = include_str!("../../../config/hintd.toml");

/// hintd.toml(5). Comments above a section or key are its text; keys that stand under one comment share it.
pub(super) fn configuration() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH HINTD.TOML 5 \"\" \"hintd {version}\"\n.SH NAME\nhintd.toml \\- configuration of hintd(8)\n\
         .SH DESCRIPTION\nTOML. Sections and keys as shipped, with their defaults. Examples that are commented out are shown as such.\n"
    );
    let mut comment = String::new();
    for line in SHIPPED.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment += &roff(text.strip_prefix(' ').unwrap_or(text));
        } else if line.trim().is_empty() {
            paragraph(&mut page, &mut comment);
        } else if line.starts_with('[') {
            let (name, note) = line.split_once('#').unwrap_or((line, ""));
            let _ = write!(page, ".SH \"{}\"\n{}", title(name), roff(note.trim()));
            paragraph(&mut page, &mut comment);
        } else {
            let _ = writeln!(page, ".TP\n\\fB{}\\fR", roff(line).trim_end());
            page += &std::mem::take(&mut comment);
        }
    }
    paragraph(&mut page, &mut comment);
    page + ".SH \"SEE ALSO\"\nhintd(8), hintctl(1)\n"
}

/// Comments by themselves: line by line, for some are tables.
fn paragraph(page: &mut String, comment: &mut String) {
    if !comment.trim().is_empty() {
        let _ = write!(page, ".PP\n.nf\n{comment}.fi\n");
    }
    comment.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_page_has_every_section_and_key_of_the_shipped_file() {
        let page = configuration();
        for line in SHIPPED.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let name = line.split_once('#').map_or(line, |(name, _)| name);
            let shown = if line.starts_with('[') { title(name) } else { roff(line).trim_end().to_owned() };
            assert!(page.contains(&shown), "no {shown}");
        }
        assert!(page.contains("Without TLS only loopback is taken"), "comments are the keys' texts");
    }

    #[test]
    fn no_line_of_a_page_is_a_request_that_was_not_meant() {
        assert_eq!(roff(".x\n'y\na-b\\"), "\\&.x\n\\&'y\na\\-b\\e\n");
        let meant = [".SH", ".TP", ".TH", ".PP", ".nf", ".fi"];
        for line in (configuration() + &hintctl() + &hintd()).lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(meant.iter().any(|request| line.starts_with(request)), "{line}");
        }
    }
}
