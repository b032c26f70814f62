//! A frame as lines of text.

use super::super::links::{load_from, marked_load, named_down};
use super::super::lists::asked;
use super::super::output::{self, digits};
use super::Sort;
use super::frame::{ApplicationRow, Frame, LinkRow, QueueRow};
use hintd_client::wire::v1;

/// Letters of a bar.
const BAR: usize = 10;

/// Lines without ends; what the daemon calls things stands in one line each. A table that is wider than the terminal has its
/// first columns only, so that what says most is not cut.
pub(super) fn lines(frame: &Frame, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = head(frame).iter().flat_map(|line| output::wrapped(line, width)).collect();
    if frame.links_down > 0 {
        let s = if frame.links_down == 1 { "" } else { "s" };
        let down = format!("{} link{s} DOWN{}", frame.links_down, named_down(&frame.down, frame.links_down));
        lines.extend(output::wrapped(&down, width));
    }
    lines.push(String::new());
    lines.push(format!("links: {} of {}, by {}", frame.links.len(), frame.links_total, links_by(frame.sort)));
    if !frame.links.is_empty() {
        let header = ["link", "from a to b", "", "from b to a", "", "capacity", "load from", "largest user"];
        let whole = output::table(header, 8, frame.links.iter().map(link));
        let narrow = || output::table(["link", "load", "largest user"], 3, frame.links.iter().map(narrow_link));
        table(&mut lines, whole, narrow, width);
    }
    lines.push(String::new());
    let (shown, all) = (frame.applications.len(), frame.applications_total);
    lines
        .extend(output::wrapped(&format!("applications: {shown} of {all}, by {}", applications_by(frame.sort)), width));
    if !frame.applications.is_empty() {
        let header =
            ["application", "busiest link", "its load", "sends there", "attempt", "leases", "requests", "new", "asked"];
        let whole = output::table(header, 2, frame.applications.iter().map(application));
        let narrow = || {
            let rows = frame.applications.iter().map(application);
            let rows = rows.map(|[id, link, load, sends, ..]| [id, link, load, sends]);
            output::table(["application", "busiest link", "load", "sends"], 2, rows)
        };
        table(&mut lines, whole, narrow, width);
    }
    if !frame.queues.is_empty() {
        lines.push(String::new());
        lines.push("were hints followed? containers of decisions that are settled, since the start".to_owned());
        let header = ["policy", "queue", "mode", "decisions", "containers", "on host", "in rack", "elsewhere", "never"];
        let whole = output::table(header, 3, frame.queues.iter().map(queue));
        let narrow = || {
            let rows = frame.queues.iter().map(queue);
            let rows = rows.map(|[_, queue, mode, _, containers, on_host, in_rack, elsewhere, _]| {
                [queue, mode, containers, on_host, in_rack, elsewhere]
            });
            output::table(["queue", "mode", "containers", "on host", "in rack", "elsewhere"], 2, rows)
        };
        table(&mut lines, whole, narrow, width);
    }
    lines
}

fn head(frame: &Frame) -> Vec<String> {
    let state = match (frame.ready, frame.degraded.as_slice()) {
        (false, _) => format!("NOT READY: {}", frame.not_ready_reason),
        (true, []) => "ready".to_owned(),
        (true, without) => format!("ready, DEGRADED: {}", without.join(" ")),
    };
    let Frame { version, nodes, nodes_usable, racks, rates, .. } = frame;
    vec![
        format!("hintd {version}, {state}, up {}", output::seconds(frame.uptime_ms as f64 / 1e3)),
        format!(
            "nodes {nodes_usable} of {nodes} usable in {racks} racks; memory {}; CPU {} %",
            output::bytes(frame.resident_bytes as f64),
            digits(frame.cpu_cores * 100.0)
        ),
        format!(
            "requests/s {} answered, {} refused; containers/s {} hinted, {} withheld; {} tasks wait; {} leases; {} decisions watched",
            digits(rates.answered),
            digits(rates.refused),
            digits(rates.hinted),
            digits(rates.withheld),
            frame.waiting_tasks,
            frame.leases,
            frame.decisions_watched
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
        Sort::Load => "the load of the busiest link that they send over, then what they send there",
        Sort::Rate => "requests since the last look",
        Sort::Leases => "leases",
        Sort::Name => "name",
    }
}

fn table(lines: &mut Vec<String>, whole: String, narrow: impl FnOnce() -> String, width: usize) {
    let fits = whole.lines().all(|line| line.chars().count() <= width);
    let shown = if fits { whole } else { narrow() };
    lines.extend(shown.lines().map(str::to_owned));
}

/// `####...... 41 %`
fn bar(share: f64) -> String {
    let full = ((share * BAR as f64).round().clamp(0.0, BAR as f64)) as usize;
    format!("{}{} {} %", "#".repeat(full), ".".repeat(BAR - full), digits(share * 100.0))
}

/// The busier way's share, who sends most, at which rate as it is modelled, and how much is nobody's.
fn narrow_link(row: &LinkRow) -> [String; 3] {
    let [name, .., user] = link(row);
    let is_modelled = row.load_from == v1::LoadSource::Modelled && row.share > 0.0;
    let load = format!("{}{} %", if is_modelled { "~" } else { "" }, digits(row.share * 100.0));
    let unknown = row.unknown.as_ref().map(|rates| format!("unknown {rates} (files, or others)"));
    let user = match (&row.top_user, unknown) {
        (Some(user), _) => {
            let rate = row.top_user_a_to_b_bits_per_s.max(row.top_user_b_to_a_bits_per_s).unwrap_or(0);
            format!("{user} {}", marked_load(v1::LoadSource::Modelled, rate))
        }
        (None, Some(unknown)) => unknown,
        (None, None) => user,
    };
    [name, if row.up { load } else { "-".to_owned() }, user]
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
    let percent = |share: f64| format!("{mark}{} %", digits(share * 100.0));
    [
        row.application_id.clone(),
        row.busiest_link.clone().unwrap_or_else(|| "-".to_owned()),
        row.busiest_share.map_or_else(|| "-".to_owned(), percent),
        row.busiest_bits_per_s.map_or_else(|| "-".to_owned(), |rate| marked_load(v1::LoadSource::Modelled, rate)),
        row.attempt.to_string(),
        row.leases.to_string(),
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
