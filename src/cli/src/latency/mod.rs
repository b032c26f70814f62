//! `hintctl latency`: round trips between racks, those of one host, and those that something else has measured.

mod import;
mod items;
mod rows;
mod slow_peers;

use crate::connect::DaemonArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use clap::{Args, Subcommand};
use hintd_client::wire::v1;
use std::collections::{BTreeMap, BTreeSet};

/// What to show.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  hintctl latency\n  hintctl latency --host node17\n  \
    hintctl --json latency | jq -r '.racks[] | select(.rtt_us > 500) | .a + \" \" + .b'\n\n\
    Round trips are measured by hintd-agent on the nodes. Between racks counts the quantile (latency.quantile) of one value\n\
    a host that measured, the median of its pairs: one slow host of ten does not make its rack slow. What is older than model.max_age.latency counts no more.\n\
    Below stand hosts that HDFS's DataNodes report as slow, if a NameNode is asked ([name_node]). What their packets take is no\n\
    round trip: it raises the latency of pairs that no agent has measured of late.")]
pub struct LatencyArgs {
    #[command(subcommand)]
    command: Option<LatencyCommand>,
    /// What this host measured, and what others measured to it
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// A row for each two racks, also where they are few
    #[arg(long, conflicts_with = "host")]
    list: bool,
    /// Show at most LIMIT rows; 0: all
    #[arg(long, default_value_t = 0)]
    limit: u32,
}

/// What else to do with round trips.
#[derive(Debug, Subcommand)]
pub enum LatencyCommand {
    /// Round trips of a file, such as Pingmesh's or an answer of Prometheus, told to the daemon
    Import(import::ImportArgs),
}

/// Racks whose matrix is legible.
const MATRIX_RACKS: usize = 12;

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it has no such host.
pub fn run(args: &LatencyArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    if let Some(LatencyCommand::Import(args)) = &args.command {
        return import::run(args, daemon, output);
    }
    if args.host.as_deref() == Some("") {
        return Err(Failure::Input("--host is empty".to_owned()));
    }
    let request = v1::LatencyRequest { host: args.host.clone().unwrap_or_default(), limit: args.limit };
    let answer = daemon.ask(async |mut admin| admin.latency(request).await)?;
    output.sorted_answer(&answer, |answer| {
        let measured = match &args.host {
            Some(host) => host_text(host, answer),
            None => racks_text(answer, args.list || args.limit > 0),
        };
        format!("{measured}\n{}", slow_peers::text(answer))
    })
}

fn rtt(us: u64) -> String {
    format!("{us} µs")
}

fn age(ms: u64) -> String {
    format!("{} ago", output::age(ms))
}

fn racks_text(answer: &v1::LatencyResponse, list: bool) -> String {
    let v1::LatencyResponse { racks, total, paths, agents, quantile, max_age_ms, .. } = answer;
    let sum = format!(
        "{agents} agents, {paths} paths between hosts; of each the {quantile} quantile of its last round trips, none older than {}",
        output::seconds(*max_age_ms as f64 / 1e3)
    );
    if racks.is_empty() {
        return format!("no round trips were measured of late\n{sum}");
    }
    let names: BTreeSet<&str> = racks.iter().flat_map(|row| [row.a.as_str(), row.b.as_str()]).collect();
    let table = if list || names.len() > MATRIX_RACKS {
        let rows = racks
            .iter()
            .map(|row| [row.a.clone(), row.b.clone(), rtt(row.rtt_us), rtt(row.median_us), age(row.age_ms)]);
        let table = output::table(["rack", "rack", "counts", "median", "measured"], 2, rows);
        format!("{table}\n{} of {total} pairs of racks", racks.len())
    } else {
        let known: BTreeMap<(&str, &str), &v1::RackLatency> =
            racks.iter().map(|row| ((row.a.as_str(), row.b.as_str()), row)).collect();
        let cell = |a: &str, b: &str| {
            let row = known.get(&if a <= b { (a, b) } else { (b, a) });
            row.map_or_else(|| "-".to_owned(), |row| format!("{} ({})", rtt(row.rtt_us), output::age(row.age_ms)))
        };
        let lines = names.iter().map(|a| {
            let cells = names.iter().map(|b| cell(a, b));
            std::iter::once((*a).to_owned()).chain(cells).collect::<Vec<_>>()
        });
        let header: Vec<&str> = std::iter::once("").chain(names.iter().copied()).collect();
        output::wide_table(&header, 1, lines)
    };
    format!("{table}\n{sum}")
}

fn host_text(host: &str, answer: &v1::LatencyResponse) -> String {
    if answer.hosts.is_empty() {
        return format!("nobody measured {host} of late, nor it anybody; {} agents", answer.agents);
    }
    let rows = answer.hosts.iter().map(|row| {
        let path = row.path.to_string();
        [
            row.from.clone(),
            row.to.clone(),
            row.to_rack.clone(),
            path,
            rtt(row.rtt_us),
            rtt(row.median_us),
            age(row.age_ms),
        ]
    });
    let table = output::table(["from", "to", "rack", "path", "counts", "median", "measured"], 3, rows);
    format!("{table}\n{} of {} paths", answer.hosts.len(), answer.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn racks() -> v1::LatencyResponse {
        let row = |a: &str, b: &str, rtt_us| v1::RackLatency {
            a: a.into(),
            b: b.into(),
            rtt_us,
            median_us: 40,
            age_ms: 2_000,
        };
        v1::LatencyResponse {
            racks: vec![row("/a", "/a", 50), row("/a", "/b", 300)],
            total: 2,
            paths: 9,
            agents: 4,
            quantile: 0.9,
            max_age_ms: 60_000,
            ..v1::LatencyResponse::default()
        }
    }

    #[test]
    fn few_racks_are_a_matrix_and_what_nobody_measured_is_left_open() {
        let said = racks_text(&racks(), false);
        for words in
            ["/a", "/b", "50 µs (2 s)", "300 µs (2 s)", "-", "4 agents, 9 paths", "0.9 quantile", "none older than"]
        {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        let said = racks_text(&racks(), true);
        assert!(said.contains("2 of 2 pairs of racks") && said.contains("40 µs"), "{said}");
        assert!(racks_text(&v1::LatencyResponse::default(), false).starts_with("no round trips were measured of late"));
    }

    #[test]
    fn a_hosts_paths_are_a_row_each() {
        let row = v1::HostLatency {
            from: "n1".into(),
            to: "n2".into(),
            to_rack: "/b".into(),
            rtt_us: 70,
            ..Default::default()
        };
        let answer = v1::LatencyResponse { hosts: vec![row], total: 5, ..v1::LatencyResponse::default() };
        let said = host_text("n1", &answer);
        assert!(said.contains("n1") && said.contains("70 µs") && said.contains("1 of 5 paths"), "{said}");
        assert!(host_text("n1", &v1::LatencyResponse::default()).starts_with("nobody measured n1 of late"));
    }
}
