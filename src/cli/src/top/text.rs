//! A frame as lines of text.

use super::super::links::{load_from, marked_load, named_down};
use super::super::lists::asked;
use super::super::output::{self, digits};
use super::super::width;
use super::Sort;
use super::frame::{ApplicationRow, Frame, LinkRow, QueueRow};
use hintd_client::wire::v1;
use std::ops::Range;

/// Letters of a bar.
const BAR: usize = 10;

/// A table with its title; each row is one line.
pub(super) struct Pane<'a> {
    pub(super) title: &'static str,
    /// Rows that there are, also those that the frame does not have.
    pub(super) total: usize,
    pub(super) by: String,
    rows: Rows<'a>,
}

/// What a table is of.
enum Rows<'a> {
    Links(&'a [LinkRow]),
    Applications(&'a [ApplicationRow]),
    Queues(&'a [QueueRow]),
}

impl Pane<'_> {
    /// Rows that the frame has.
    pub(super) const fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Links(rows) => rows.len(),
            Rows::Applications(rows) => rows.len(),
            Rows::Queues(rows) => rows.len(),
        }
    }

    pub(super) const fn has_header(&self) -> bool {
        self.total > 0
    }

    /// The header, where there is one, and these rows: nothing else is laid out, however many rows there are. A table that is wider
    /// than the terminal has fewer columns, those that say most.
    pub(super) fn lines(&self, shown: Range<usize>, width: usize) -> Vec<String> {
        let table = match &self.rows {
            Rows::Links(rows) => links_table(&rows[shown], width),
            Rows::Applications(rows) => applications_table(&rows[shown], width),
            Rows::Queues(rows) => queues_table(&rows[shown], width),
        };
        table.lines().skip(usize::from(!self.has_header())).map(str::to_owned).collect()
    }
}

/// Lines without ends; what the daemon calls things stands in one line each.
pub(super) fn lines(frame: &Frame, width: usize) -> Vec<String> {
    let mut lines = head(frame, width);
    for pane in panes(frame) {
        let (Pane { title, total, by, .. }, rows) = (&pane, pane.row_count());
        lines.push(String::new());
        lines.extend(output::wrapped(&format!("{title}: {rows} of {total}, {by}"), width));
        lines.extend(pane.lines(0..rows, width));
    }
    lines
}

/// How the daemon stands, and which links are down.
pub(super) fn head(frame: &Frame, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = standing(frame).iter().flat_map(|line| output::wrapped(line, width)).collect();
    if frame.links_down > 0 {
        let links = output::count(frame.links_down.into(), "link");
        let down = format!("{links} DOWN{}", named_down(&frame.down, frame.links_down));
        lines.extend(output::wrapped(&down, width));
    }
    lines
}

/// Links, applications, and whether hints were followed, where anything is known of it.
pub(super) fn panes(frame: &Frame) -> Vec<Pane<'_>> {
    let pane = |title, total: u32, by, rows| Pane { title, total: total as usize, by, rows };
    let by_links = format!("by {}", links_by(frame.sort));
    let by_applications = format!("by {}", applications_by(frame.sort));
    let followed = "containers of settled decisions, since the start".to_owned();
    let mut panes = vec![
        pane("links", frame.links_total, by_links, Rows::Links(&frame.links)),
        pane("applications", frame.applications_total, by_applications, Rows::Applications(&frame.applications)),
    ];
    if !frame.queues.is_empty() {
        panes.push(pane("were hints followed", frame.queues.len() as u32, followed, Rows::Queues(&frame.queues)));
    }
    panes
}

fn links_table(links: &[LinkRow], width: usize) -> String {
    let header = ["link", "from a to b", "", "from b to a", "", "capacity", "load from", "largest user"];
    let whole = || output::table(header, 8, links.iter().map(link));
    let narrow = |called: usize| {
        let row = |row: &LinkRow| {
            [row.id.clone(), row.load.clone(), output::rate(row.bits_per_s as f64), row.whose[called].clone()]
        };
        output::table(["link", "load", "capacity", "whose load"], 4, links.iter().map(row))
    };
    first_that_fits(width, &[&whole, &|| narrow(0), &|| narrow(1), &|| narrow(2)])
}

fn applications_table(applications: &[ApplicationRow], width: usize) -> String {
    let header =
        ["application", "busiest link", "its load", "sends there", "leases", "attempt", "requests", "new", "asked"];
    let whole = || output::table(header, 2, applications.iter().map(application));
    let narrow = || {
        let rows = applications.iter().map(application);
        let rows = rows.map(|[id, link, load, sends, leases, ..]| [id, link, load, sends, leases]);
        output::table(["application", "busiest link", "its load", "sends there", "leases"], 2, rows)
    };
    let narrower = || {
        let rows = applications.iter().map(application).map(|[id, link, load, sends, ..]| [id, link, load, sends]);
        output::table(["application", "busiest link", "its load", "sends there"], 2, rows)
    };
    first_that_fits(width, &[&whole, &narrow, &narrower])
}

fn queues_table(queues: &[QueueRow], width: usize) -> String {
    let header = ["policy", "queue", "mode", "decisions", "containers", "on host", "in rack", "elsewhere", "never"];
    let whole = || output::table(header, 3, queues.iter().map(queue));
    let narrow = || {
        let rows = queues.iter().map(queue);
        let rows = rows.map(|[_, queue, mode, _, containers, on_host, in_rack, elsewhere, _]| {
            [queue, mode, containers, on_host, in_rack, elsewhere]
        });
        output::table(["queue", "mode", "containers", "on host", "in rack", "elsewhere"], 2, rows)
    };
    first_that_fits(width, &[&whole, &narrow])
}

/// Of several tables the first that has room; of the last one what has room, each row in its line.
fn first_that_fits(width: usize, tables: &[&dyn Fn() -> String]) -> String {
    let mut last = String::new();
    for table in tables {
        (last, _) = width::within(width::ANY, table);
        if last.lines().all(|line| line.chars().count() <= width) {
            return last;
        }
    }
    let lines = last.lines().map(|line| match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn standing(frame: &Frame) -> [String; 4] {
    let Frame { version, nodes, nodes_usable, racks, rates, .. } = frame;
    [
        format!("hintd {version}, {}, up {}", frame.standing, output::age(frame.uptime_ms)),
        format!(
            "nodes {nodes_usable} of {nodes} usable in {}; memory {}; CPU {} %",
            output::count(u64::from(*racks), "rack"),
            output::bytes(frame.resident_bytes as f64),
            digits(frame.cpu_cores * 100.0)
        ),
        format!(
            "requests/s {} answered, {} refused; containers/s {} hinted, {} withheld",
            digits(rates.answered),
            digits(rates.refused),
            digits(rates.hinted),
            digits(rates.withheld),
        ),
        format!(
            "{} waiting; {}; {} watched",
            output::count(frame.waiting_tasks, "task"),
            output::count(frame.leases, "lease"),
            output::count(frame.decisions_watched, "decision")
        ),
    ]
}

const fn links_by(sort: Sort) -> &'static str {
    match sort {
        Sort::Load | Sort::Leases => "load, measured first",
        Sort::Rate => "rate, measured first",
        Sort::Name => "name",
    }
}

const fn applications_by(sort: Sort) -> &'static str {
    match sort {
        Sort::Load => "their busiest link's load, then by rate",
        Sort::Rate => "requests since the last look",
        Sort::Leases => "leases",
        Sort::Name => "name",
    }
}

/// `####...... 41 %`
fn bar(share: f64) -> String {
    let full = ((share * BAR as f64).round().clamp(0.0, BAR as f64)) as usize;
    format!("{}{} {} %", "#".repeat(full), ".".repeat(BAR - full), digits(share * 100.0))
}

fn link(row: &LinkRow) -> [String; 8] {
    let share = |rate: u64| bar(rate as f64 / row.bits_per_s.max(1) as f64);
    let since = row.down_ms.map_or_else(String::new, |ms| format!(" {}", output::age(ms)));
    let name = if row.up { row.id.clone() } else { format!("{} DOWN{since}", row.id) };
    [
        name,
        share(row.a_to_b_bits_per_s),
        marked_load(row.load_from, row.a_to_b_bits_per_s),
        share(row.b_to_a_bits_per_s),
        marked_load(row.load_from, row.b_to_a_bits_per_s),
        output::rate(row.bits_per_s as f64),
        load_from(row.load_from, row.load_age_ms),
        row.top.clone(),
    ]
}

fn application(row: &ApplicationRow) -> [String; 9] {
    let mark = if row.busiest_measured == Some(false) { "~" } else { "" };
    let way = match row.busiest_way {
        Some("a_to_b") => " a>b",
        Some(_) => " b>a",
        None => "",
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        row.application_id.clone(),
        or_none(row.busiest_link.clone()),
        or_none(row.busiest_share.map(|share| format!("{mark}{}{way}", output::percent(share)))),
        or_none(row.busiest_bits_per_s.map(|rate| marked_load(v1::LoadSource::Modelled, rate))),
        row.leases.to_string(),
        row.attempt.to_string(),
        row.requests.to_string(),
        row.new_requests.to_string(),
        asked(row.asked_ms, row.asked_before_start),
    ]
}

fn queue(row: &QueueRow) -> [String; 9] {
    let share = |part: u64| match row.hinted {
        0 => "-".to_owned(),
        all => format!("{} %", digits(part as f64 * 100.0 / all as f64)),
    };
    [
        row.policy.clone(),
        row.queue.clone(),
        row.mode.to_owned(),
        row.decisions.to_string(),
        row.hinted.to_string(),
        share(row.on_host),
        share(row.in_rack),
        share(row.elsewhere),
        share(row.never),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_in_their_width() {
        assert_eq!([bar(0.0), bar(0.41), bar(3.0)], [".......... 0 %", "####...... 41 %", "########## 300 %"]);
    }
}
