//! Reports for people: a table for the terminal, and docs/reproduction.md from the committed JSON.

use super::error::Scale;
use super::experiment::Experiment;
use super::report::{Entry, Report, Verdict};
use super::row::{Direction, Role, Row};
use comfy_table::{Table, presets};
use std::fmt::Write as _;

/// The experiments there are, for `reproduce --list`.
#[must_use]
pub fn list(all: &[Experiment]) -> String {
    if all.is_empty() {
        return "no experiment is available in this version\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["entry", "paper", "figure", "quick, s", "full, s"]);
    for experiment in all {
        table.add_row([
            experiment.name.to_owned(),
            experiment.paper.to_owned(),
            experiment.figure.to_owned(),
            experiment.expected_s(Scale::Quick).to_string(),
            experiment.expected_s(Scale::Full).to_string(),
        ]);
    }
    format!("{}\n", trimmed(&table))
}

/// One table for each entry, with its settings and verdict.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for entry in &report.entries {
        let Entry { entry: name, paper, figure, seeds, .. } = entry;
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(HEADER);
        for row in &entry.rows {
            table.add_row(cells(row));
        }
        let scale = report.scale;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name}: {paper}, {figure} ({scale}, {seeds} seeds)\n{}", trimmed(&table));
        for (setting, value) in &entry.settings {
            let _ = writeln!(out, "  {setting}: {value}");
        }
        let _ = writeln!(out, "  verdict: {}\n", word(entry.verdict));
    }
    out
}

/// docs/reproduction.md, from reports that were read back with [`Report::from_json`].
#[must_use]
pub fn markdown(reports: &[Report]) -> String {
    let mut out = String::from(
        "# The papers' figures, reproduced\n\n\
         Generated from the JSON in docs/reproduction/ by `hintctl reproduce`; verdicts are computed, see\n\
         [what they mean](#verdicts). Our value is the median over seeds; a row of which the paper prints no figure, with\n\
         \"-\" for it, decides nothing.\n",
    );
    for report in reports {
        for entry in &report.entries {
            section(&mut out, report, entry);
        }
    }
    out.push_str(
        "\n## Verdicts\n\n\
         - *reached*: the paper's order of systems, and at least its improvement.\n\
         - *explained*: a figure falls short, and one single stated assumption, changed in the same command, reaches it.\n\
         - *short*: neither.\n",
    );
    out
}

const HEADER: [&str; 9] = ["figure", "paper", "ours", "ratio", "min", "max", "unit", "wanted", "reached"];

fn section(out: &mut String, report: &Report, entry: &Entry) {
    let Entry { entry: name, paper, figure, seeds, .. } = entry;
    let _ = writeln!(out, "\n## {}: {}\n", escaped(name), word(entry.verdict));
    let _ = writeln!(out, "{}, {}; {} scale, {seeds} seeds.\n", escaped(paper), escaped(figure), report.scale);
    if let Some(command) = &report.command {
        let commit = report.commit.as_deref().unwrap_or("not stated");
        let _ = writeln!(out, "`{command}`, commit {commit}\n");
    }
    let _ = writeln!(out, "| {} |\n|{}", HEADER.join(" | "), "---|".repeat(HEADER.len()));
    for row in &entry.rows {
        let _ = writeln!(out, "| {} |", cells(row).map(|cell| escaped(&cell)).join(" | "));
    }
    if !entry.settings.is_empty() {
        out.push('\n');
    }
    for (setting, value) in &entry.settings {
        let _ = writeln!(out, "- {}: {}", escaped(setting), escaped(value));
    }
}

fn cells(row: &Row) -> [String; 9] {
    let name = match (&row.role, row.note.as_str()) {
        (Role::Beside, "") if row.paper_value.is_some() => format!("{} (beside)", row.name),
        (_, "") => row.name.clone(),
        (_, note) => format!("{}: {note}", row.name),
    };
    let wanted = row.direction.map(|direction| match direction {
        Direction::AtLeast => "at least",
        Direction::AtMost => "at most",
        Direction::Order => "order",
    });
    let reached = row.reached.map(|reached| if reached { "yes" } else { "no" });
    let or_dash = |known: Option<&str>| known.unwrap_or("-").to_owned();
    [
        name,
        or_dash(row.paper_value.map(figure).as_deref()),
        figure(row.our_value),
        or_dash(row.ratio().map(figure).as_deref()),
        figure(row.min),
        figure(row.max),
        row.unit.clone(),
        or_dash(wanted),
        or_dash(reached),
    ]
}

/// Four significant digits: more would claim more than five seeds show.
fn figure(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(3 - magnitude).unwrap_or(0).min(6);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reached => "reached",
        Verdict::Explained => "explained",
        Verdict::Short => "short",
    }
}

/// Keeps text from ending a Markdown table cell or line.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
