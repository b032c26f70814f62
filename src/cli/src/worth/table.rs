//! What people read: a table for each cell, one for all, and the sentence.

use super::super::output::{digits, pairs, table};
use super::hinted_view::HintedView;
use super::outcome::{CellView, Outcome};
use super::without::ChangeFigures;
use hintd_simulator::worth::{Overall, Row, Spread};

/// Heads of a cell's columns. Ratios are against YARN alone.
pub(super) const CELL: [&str; 11] = [
    "",
    "mean s",
    "x",
    "lowest - highest",
    "median x",
    "p95 x",
    "makespan x",
    "won back %",
    "cross-rack x",
    "slower %",
    "slowest x",
];
/// Heads of the table of all cells.
pub(super) const OVERALL: [&str; 8] = [
    "all cells",
    "mean x",
    "lowest - highest",
    "won back %",
    "worst cell x",
    "cross-rack x",
    "slower beyond chance %",
    "slowest x",
];

/// Heads of the table of parts, before a column for each cell.
const PART: [&str; 4] = ["left out", "times as long", "lowest - highest", "is worth %"];
/// Heads of the table of lies.
const LIE: [&str; 4] = ["told wrong", "times as long", "lowest - highest", "worst cell x"];

/// All of it.
pub(super) fn text(outcome: &Outcome<'_>) -> String {
    let mut parts = vec![pairs(&outcome.assumptions)];
    parts.extend(outcome.cells.iter().map(|cell| of_cell(cell, outcome.seeds)));
    let all = table(OVERALL, 1, overall(outcome));
    parts.push(format!("{}\n{all}", counted(outcome)));
    for (head, rows) in [left_out(outcome), lies(outcome)].into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let lines = rows.iter().map(|row| [&row[0], &row[1], &row[2], &row[3]].map(Clone::clone));
        parts.push(table([head[0].as_str(), &head[1], &head[2], &head[3]], 1, lines));
    }
    parts.push(outcome.answer.sentence.clone());
    parts.join("\n\n")
}

fn of_cell(cell: &CellView<'_>, seeds: usize) -> String {
    // Parts and lies are many, and have tables of their own.
    format!("{}: {}\n{}", cell.name, about(cell, seeds), table(CELL, 1, rows(cell, |hinted| hinted.is_whole())))
}

/// What a cell is, in words.
pub(super) fn about(cell: &CellView<'_>, seeds: usize) -> String {
    let cost = cell
        .network_cost
        .map_or_else(String::new, |cost| format!(", the network costs {} % of completion", percent(cost.median)));
    let many = if seeds == 1 { "1 seed".to_owned() } else { format!("medians of {seeds} seeds") };
    format!("{} jobs, {many}{cost}", cell.jobs)
}

/// Lines of a cell's table; `shown`: which of those that hint.
pub(super) fn rows<'a>(cell: &CellView<'a>, shown: impl Fn(&HintedView<'a, Option<Row>>) -> bool) -> Vec<[String; 11]> {
    let alone = cell.alone_mean_s.map_or_else(dash, |mean| digits(mean.median));
    let mut lines = vec![std::array::from_fn(|at| match at {
        0 => "YARN alone".to_owned(),
        1 => alone.clone(),
        2 => "1".to_owned(),
        _ => String::new(),
    })];
    lines.push(line("other phases", cell.other_phases.as_ref()));
    lines.push(line("no network", cell.no_network.as_ref()));
    let hinted = cell.hinted.iter().filter(|hinted| shown(hinted));
    lines.extend(hinted.map(|hinted| line(&hinted.name, hinted.figures.as_ref())));
    lines
}

fn line(name: &str, row: Option<&Row>) -> [String; 11] {
    let of = |value: fn(&Row) -> Spread| row.map_or_else(dash, |row| two(value(row).median));
    let known = |value: Option<Spread>| value.map(|spread| spread.median);
    [
        name.to_owned(),
        row.map_or_else(dash, |row| digits(row.mean_s.median)),
        of(|row| row.mean),
        row.map_or_else(dash, |row| range(&row.mean)),
        of(|row| row.median),
        of(|row| row.p95),
        of(|row| row.makespan),
        row.and_then(|row| known(row.won_back)).map_or_else(dash, percent),
        row.and_then(|row| known(row.cross_rack)).map_or_else(dash, two),
        row.map_or_else(dash, |row| percent(row.slower_share.median)),
        of(|row| row.slowest),
    ]
}

/// What the means over all cells are over.
pub(super) fn counted(outcome: &Outcome<'_>) -> String {
    let (count, all) = (outcome.counted.cells.len(), outcome.cells.len());
    let share = percent(outcome.counted.network_costs);
    format!(
        "mean and won back over {count} of {all} cells, where the network costs {share} % or more, the rest over all"
    )
}

/// Lines of the table of all cells.
pub(super) fn overall(outcome: &Outcome<'_>) -> Vec<[String; 8]> {
    let hinted = outcome.overall.iter().map(|hinted| all(&hinted.name, &hinted.figures));
    std::iter::once(all("other phases", &outcome.other_phases)).chain(hinted).collect()
}

/// What each part is worth: heads and lines, with a column for each cell at the end.
pub(super) fn left_out(outcome: &Outcome<'_>) -> (Vec<String>, Vec<Vec<String>>) {
    let worth = |part: &Change<'_>| part.figures.times.map_or_else(dash, |times| percent(1.0 - 1.0 / times.median));
    changed(outcome, &outcome.parts, PART, worth)
}

/// The same of lies.
pub(super) fn lies(outcome: &Outcome<'_>) -> (Vec<String>, Vec<Vec<String>>) {
    let worst = |part: &Change<'_>| {
        let row =
            |row: &&HintedView<'_, Overall>| (row.policy, row.lever, row.lie) == (part.policy, part.lever, part.lie);
        outcome.overall.iter().find(row).and_then(|row| row.figures.worst_cell).map_or_else(dash, two)
    };
    changed(outcome, &outcome.lies, LIE, worst)
}

/// A part that was left out, or a lie.
type Change<'a> = HintedView<'a, ChangeFigures>;

/// Head and rows of a table of what was changed; `last`: what stands in the fourth column.
fn changed(
    outcome: &Outcome<'_>,
    parts: &[Change<'_>],
    head: [&str; 4],
    last: impl Fn(&Change<'_>) -> String,
) -> (Vec<String>, Vec<Vec<String>>) {
    let head = head.iter().map(|&head| head.to_owned()).chain(outcome.cells.iter().map(|cell| cell.name.to_owned()));
    let several = parts.iter().any(|part| part.policy != parts[0].policy);
    let rows = parts.iter().map(|part| {
        let name = match (part.without, part.lie) {
            (Some(part), _) => part.to_owned(),
            (None, lie) => format!("{}: {}", part.lever, lie.unwrap_or_default()),
        };
        let name = if several { format!("{}: {name}", part.policy) } else { name };
        let mut row = vec![
            name,
            part.figures.times.map_or_else(dash, |times| two(times.median)),
            part.figures.times.as_ref().map_or_else(dash, range),
            last(part),
        ];
        row.extend(part.figures.times_by_cell.iter().map(|times| times.map_or_else(dash, two)));
        row
    });
    (head.collect(), rows.collect())
}

fn all(name: &str, overall: &Overall) -> [String; 8] {
    [
        name.to_owned(),
        overall.mean.map_or_else(dash, |mean| two(mean.median)),
        overall.mean.as_ref().map_or_else(dash, range),
        overall.won_back.map_or_else(dash, percent),
        overall.worst_cell.map_or_else(dash, two),
        overall.cross_rack.map_or_else(dash, two),
        overall.slower_beyond_phases.map_or_else(dash, percent),
        overall.slowest.map_or_else(dash, two),
    ]
}

fn range(spread: &Spread) -> String {
    format!("{:.2} - {:.2}", spread.min, spread.max)
}

pub(super) fn two(ratio: f64) -> String {
    format!("{ratio:.2}")
}

pub(super) fn percent(share: f64) -> String {
    digits(100.0 * share)
}

fn dash() -> String {
    "-".to_owned()
}
