//! Every command with its arguments, options, value names, defaults, and possible values. Read from the man pages,
//! which are generated from the command definitions and keep defaults apart from prose. Hidden commands have no page;
//! their `--help` output is read instead.

use crate::programs::{Files, finish, hintd, run, said};
use std::collections::BTreeSet;

/// Hidden commands, used when packages are built.
const HIDDEN: [&[&str]; 3] = [&["completions"], &["man"], &["bench", "serve-noop"]];

/// The lines of the list.
pub(crate) fn lines() -> Vec<String> {
    let files = Files::new();
    let made = run(&["man", &files.path("man")]);
    assert!(made.status.success(), "{:?}", said(&made));
    let files_of = std::fs::read_dir(files.path("man")).unwrap().map(|entry| entry.unwrap().path());
    // Section 5 is of files: no command, no synopsis.
    let of_commands = files_of.filter(|path| path.extension().is_none_or(|section| section != "5"));
    let mut pages: Vec<Page> = of_commands.map(|path| Page::read(&path)).collect();
    pages.sort_by(|a, b| a.command.cmp(&b.command));
    let global: BTreeSet<String> = {
        let root = pages.iter().find(|page| page.command == "hintctl").expect("a page of hintctl itself");
        root.entries.iter().filter(|entry| !entry.contains("--version")).cloned().collect()
    };
    let mut lines = Vec::new();
    for page in &pages {
        let Page { command, file, entries, .. } = page;
        lines.push(format!("{command} | man page {file}"));
        let below = command.starts_with("hintctl ");
        let own = entries.iter().filter(|entry| !below || !global.contains(*entry));
        lines.extend(own.map(|entry| format!("{command} | {entry}")));
        let lacking = global.iter().filter(|entry| below && !entries.contains(*entry));
        lines.extend(lacking.map(|entry| format!("{command} | without {entry}")));
        let usage = page.usage();
        assert!(!usage.is_empty(), "{command} says no usage");
        lines.extend(usage.into_iter().map(|usage| format!("{command} | usage {usage}")));
    }
    for hidden in HIDDEN {
        lines.extend(of_help(&run(&[hidden, &["--help"]].concat()), &format!("hintctl {} (hidden)", hidden.join(" "))));
    }
    lines
}

/// A parsed man page.
struct Page {
    file: String,
    command: String,
    entries: BTreeSet<String>,
}

impl Page {
    fn read(path: &std::path::Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let synopsis = text.split(".SH SYNOPSIS\n").nth(1).and_then(|rest| rest.lines().next()).expect("a synopsis");
        let command = plain(synopsis.split("\\fR").next().unwrap());
        let required: Vec<String> = between(synopsis, '<', '>').iter().map(|part| plain(part)).collect();
        let mut page =
            Self { file: path.file_name().unwrap().to_str().unwrap().to_owned(), command, entries: BTreeSet::new() };
        let mut entry: Option<String> = None;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            match line {
                ".TP" => {
                    page.entries.extend(entry.take());
                    let head = plain(lines.next().unwrap_or_default());
                    if head.starts_with(['-', '<', '[']) {
                        let name = head.split(' ').find(|word| word.starts_with("--")).unwrap_or(&head).to_owned();
                        let must = required.iter().any(|part| part.split('|').any(|option| option == name));
                        entry = Some(
                            head.replace(" [default: ", " | default ")
                                .replace("] ", " ")
                                .trim_end_matches(']')
                                .to_owned(),
                        );
                        if head.starts_with('[') {
                            entry = Some(head);
                        } else if must {
                            entry = entry.map(|entry| entry + " | required");
                        }
                    }
                }
                ".IP \\(bu 2" => {
                    let value = plain(lines.next().unwrap_or_default());
                    let value = value.split(':').next().unwrap_or_default().trim().to_owned();
                    entry = entry.map(|entry| with_value(entry, &value));
                }
                line if plain(line).starts_with("[possible values: ") => {
                    let said = plain(line);
                    entry = entry.map(|entry| entry + " | " + said.trim_matches(['[', ']']));
                }
                line if line.starts_with(".SH ") => page.entries.extend(entry.take()),
                _ => {}
            }
        }
        page.entries.extend(entry);
        page
    }

    /// The usage lines of `--help`: only they show which options exclude or require each other.
    fn usage(&self) -> Vec<String> {
        let path: Vec<&str> = self.command.split(' ').collect();
        let output =
            if path[0] == "hintd" { finish(hintd().arg("--help")) } else { run(&[&path[1..], &["--help"]].concat()) };
        usage(&said(&output).0)
    }
}

fn with_value(entry: String, value: &str) -> String {
    match entry.contains(" | one of ") {
        true => format!("{entry}, {value}"),
        false => format!("{entry} | one of {value}"),
    }
}

/// The line that begins with `Usage:` and the lines that continue it.
fn usage(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let lines = lines.take_while(|line| !line.is_empty());
    lines.map(|line| line.trim_start_matches("Usage:").trim().to_owned()).collect()
}

/// Usage, possible values, and defaults of a command without a man page.
fn of_help(output: &std::process::Output, command: &str) -> Vec<String> {
    let help = said(output).0;
    let mut lines: Vec<String> = usage(&help).into_iter().map(|usage| format!("{command} | usage {usage}")).collect();
    let mut of = String::new();
    for line in help.lines().map(str::trim) {
        let first = line.split(' ').next().unwrap_or_default();
        if first.starts_with("--") || first.starts_with('<') {
            of = line.to_owned();
        } else if let Some(said) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            lines.push(format!("{command} | {of} | {said}"));
        } else if let Some(value) = line.strip_prefix("- ").and_then(|rest| rest.split(':').next()) {
            lines.push(format!("{command} | {of} | may be {value}"));
        }
    }
    assert!(lines.len() > usage(&help).len() || !help.contains("possible values"), "{help}");
    lines
}

/// Every text between a pair of brackets.
fn between(text: &str, open: char, close: char) -> Vec<String> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close).map(|(inside, _)| inside.to_owned())).collect()
}

/// The line without troff markup.
fn plain(line: &str) -> String {
    let mut text = line.replace("\\*(Aq", "'").replace("\\-", "-");
    for mark in ["\\fB", "\\fI", "\\fR", "\\&"] {
        text = text.replace(mark, "");
    }
    text.replace("\\\\", "\\").trim().to_owned()
}
