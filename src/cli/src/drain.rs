//! `hintctl whatif network`: what would move if links and switches were taken out.

use super::answers;
use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use clap::{ArgGroup, Args};
use hintd_client::wire::v1;

/// What is taken out.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "Examples:\n  hintctl whatif network --drain-link edge-0-core-1\n  \
    hintctl whatif network --drain-switch core-1 --drain-switch core-2\n  \
    hintctl --json whatif network --drain-switch core-1 | jq '.applications[] | select(.utility_after < .utility_before)'\n\n\
    Nothing is touched and nothing remembered. Utility is the sum of the rates that the sinks of all running\n\
    dataflows get (docs/policies.md, cross_layer); loads are modelled.")]
pub struct DrainArgs {
    /// A link to take out; may be given again
    #[arg(long, value_name = "ID", group = "what")]
    drain_link: Vec<String>,
    /// A switch to take out, with all its links; may be given again
    #[arg(long, value_name = "NAME", group = "what")]
    drain_switch: Vec<String>,
    /// Rows of each table; 0: all
    #[arg(long, default_value_t = 20)]
    rows: usize,
}

/// `hintctl whatif network`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it has no such link or switch.
pub fn what_if(args: &DrainArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let request =
        v1::WhatIfNetworkRequest { drain_links: args.drain_link.clone(), drain_switches: args.drain_switch.clone() };
    let answer = daemon.ask(async |mut admin| admin.what_if_network(request).await)?;
    output.sorted_answer(&answer, |answer| text(answer, if args.rows == 0 { usize::MAX } else { args.rows }))
}

fn text(answer: &v1::WhatIfNetworkResponse, rows: usize) -> String {
    let moved = answer.routes.len();
    let cut = answer.routes.iter().filter(|route| route.new_vertices.is_empty()).count();
    let gain = answer.utility_after - answer.utility_before;
    let share = if answer.utility_before > 0.0 {
        format!(" ({}{} %)", if gain > 0.0 { "+" } else { "" }, output::digits(gain * 100.0 / answer.utility_before))
    } else {
        String::new()
    };
    let mut parts: Vec<String> = cut_off(answer, cut, rows).into_iter().collect();
    parts.push(output::pairs(&[
        ("routes", format!("{} would move, {cut} would be cut, {} stay", moved - cut, answer.untouched)),
        (
            "utility",
            format!("{} now, {} then{share}", output::rate(answer.utility_before), output::rate(answer.utility_after)),
        ),
    ]));
    parts.extend(fewer_links(answer, cut));
    if moved > 0 {
        parts.push(routes_table(&answer.routes, rows));
    }
    if !answer.links.is_empty() {
        parts.push(links_table(&answer.links, rows));
    }
    if !answer.applications.is_empty() {
        parts.push(applications_table(&answer.applications, rows));
    }
    parts.join("\n\n")
}

/// Why utility falls where nobody loses a path; `None`: it does not, or somebody does.
fn fewer_links(answer: &v1::WhatIfNetworkResponse, cut: usize) -> Option<String> {
    let falls = answer.utility_after < 0.99 * answer.utility_before;
    (cut == 0 && falls).then(|| {
        "no route is cut: utility (the sum of the rates that the sinks of running dataflows get) falls because the same flows \
         share fewer links, those that fill up are in the table of links"
            .to_owned()
    })
}

/// What matters most, said first: pairs that would have no path, and whose they are. `None`: nothing would be cut off.
fn cut_off(answer: &v1::WhatIfNetworkResponse, cut: usize, rows: usize) -> Option<String> {
    if cut == 0 && answer.cut_off_hosts.is_empty() {
        return None;
    }
    let pairs =
        if cut == 1 { "1 pair of hosts that talks".to_owned() } else { format!("{cut} pairs of hosts that talk") };
    let first =
        if cut == 0 { "hosts, none of which talks now".to_owned() } else { format!("{pairs} would have no path") };
    let mut lines = vec![format!("THIS CUTS OFF: {first}")];
    if !answer.cut_off_hosts.is_empty() {
        lines.push(format!("hosts cut off from most others: {}", shortened(&answer.cut_off_hosts, rows)));
    }
    let hit = answer.applications.iter().filter(|application| application.routes_cut > 0);
    let hit: Vec<String> =
        hit.map(|application| format!("{} ({})", application.application_id, application.routes_cut)).collect();
    if !hit.is_empty() {
        lines.push(format!("applications, with their pairs that would have no path: {}", shortened(&hit, rows)));
    }
    Some(lines.join("\n"))
}

fn routes_table(routes: &[v1::RouteForecast], rows: usize) -> String {
    let via = |vertices: &[String]| if vertices.is_empty() { "no path".to_owned() } else { answers::via(vertices) };
    let shown = routes.iter().take(rows).map(|route| {
        let then = if route.cut.is_empty() {
            via(&route.new_vertices)
        } else {
            format!("cut off by {}", shortened(&route.cut, 4))
        };
        [route.src.clone(), route.dst.clone(), via(&route.old_vertices), then]
    });
    with_rest(output::table(["from", "to", "now via", "then via"], 4, shown), routes.len(), rows, "routes")
}

fn links_table(links: &[v1::LinkForecast], rows: usize) -> String {
    let shown = links.iter().take(rows).map(|link| {
        [
            link.id.clone(),
            output::rate(link.bits_per_s as f64),
            output::rate(link.a_to_b_before),
            output::rate(link.a_to_b_after),
            output::rate(link.b_to_a_before),
            output::rate(link.b_to_a_after),
        ]
    });
    let header = ["link", "capacity", "a to b now", "then", "b to a now", "then"];
    with_rest(output::table(header, 1, shown), links.len(), rows, "links")
}

fn applications_table(applications: &[v1::ApplicationForecast], rows: usize) -> String {
    let shown = applications.iter().take(rows).map(|application| {
        [
            application.application_id.clone(),
            application.routes_moved.to_string(),
            output::rate(application.utility_before),
            output::rate(application.utility_after),
        ]
    });
    let header = ["application", "routes that move", "utility now", "then"];
    with_rest(output::table(header, 1, shown), applications.len(), rows, "applications")
}

fn with_rest(table: String, all: usize, shown: usize, what: &str) -> String {
    match all.saturating_sub(shown) {
        0 => table,
        more => format!("{table}\nand {more} more {what}; --rows 0 shows all"),
    }
}

/// The first few, and how many more.
fn shortened(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(" ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        drain: DrainArgs,
    }

    #[test]
    fn one_of_both_kinds_is_needed_and_the_usage_says_so() {
        use clap::Parser as _;
        let why = Line::try_parse_from(["network", "--rows", "3"]).err().unwrap().to_string();
        assert_eq!(why.matches("<--drain-link <ID>|--drain-switch <NAME>>").count(), 2, "needed, and usage: {why}");
        let line = Line::try_parse_from(["network", "--drain-link", "a", "--drain-link", "b", "--drain-switch", "s"]);
        let drain = line.ok().unwrap().drain;
        assert_eq!((drain.drain_link.len(), drain.drain_switch.len()), (2, 1));
    }

    #[test]
    fn a_pair_that_would_be_cut_is_shown_with_what_cuts_it() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let moved = v1::RouteForecast {
            src: "a".into(),
            dst: "b".into(),
            old_vertices: names(&["a", "s1", "c1", "s2", "b"]),
            new_vertices: names(&["a", "s1", "c2", "s2", "b"]),
            ..v1::RouteForecast::default()
        };
        let cut = v1::RouteForecast { new_vertices: vec![], cut: names(&["c1"]), dst: "d".into(), ..moved.clone() };
        let answer = v1::WhatIfNetworkResponse {
            routes: vec![moved, cut],
            untouched: 9,
            utility_before: 2e9,
            utility_after: 1e9,
            cut_off_hosts: names(&["d"]),
            applications: vec![v1::ApplicationForecast {
                application_id: "application_1_0001".into(),
                routes_moved: 2,
                routes_cut: 1,
                ..v1::ApplicationForecast::default()
            }],
            ..v1::WhatIfNetworkResponse::default()
        };
        let text = text(&answer, 20);
        assert!(
            text.starts_with(
                "THIS CUTS OFF: 1 pair of hosts that talks would have no path\nhosts cut off from most others: d\n\
             applications, with their pairs that would have no path: application_1_0001 (1)\n\n"
            ),
            "{text}"
        );
        let harmless = v1::WhatIfNetworkResponse { routes: vec![], cut_off_hosts: vec![], ..answer.clone() };
        assert!(super::text(&harmless, 20).starts_with("routes"), "nothing is cut");
        for part in
            ["1 would move, 1 would be cut, 9 stay", "2 Gbit/s now, 1 Gbit/s then (-50 %)", "s1 c2 s2", "cut off by c1"]
        {
            assert!(text.contains(part), "no \"{part}\" in\n{text}");
        }
        assert!(super::text(&answer, 1).contains("and 1 more routes"));
    }
}
