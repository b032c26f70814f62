//! `hintctl latency import`: round trips of a file, told to the daemon as an agent would.

use super::items::{AT_ONCE, Item, LeftOut, items};
use super::rows::{Labels, Row, of_csv, of_prometheus};
use crate::connect::{DaemonArgs, block_on};
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use clap::{Args, ValueEnum};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bad lines that are named, and refusals.
const NAMED: usize = 20;

/// Which round trips.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl latency import pingmesh.csv\n  \
    curl -s http://prometheus:9090/api/v1/query --data-urlencode 'query=ping_rtt_mean_seconds' |\n    \
    hintctl latency import --prometheus --from-label instance --to-label target /dev/stdin\n\n\
    A CSV file has a header: from (or source, src), to (or destination, dst, target), rtt_us, rtt_ms or rtt_s; and where they are\n\
    there count, path (0 to 3) and time (seconds since 1970; else now). With --prometheus it is an answer of /api/v1/query or\n\
    query_range: hosts are labels, without a port behind them, values are seconds unless --unit says otherwise; NaN and Inf, which\n\
    say that there is no value, are left out. Hosts are named as YARN, or an alias, names them.\n\n\
    Round trips of one path are told as one, of the time of the newest. What is older than --max-age is left out beside newer ones\n\
    of its path; a path of which all are older is told by its newest alone, which the daemon refuses beyond model.max_age.latency.\n\
    Of one path the newest 256 lengths are told. What is left out is counted in the result.\n\n\
    Exit code 2 if a line is no measurement: each is named, and nothing is told. Exit code 1 if the daemon refuses some.")]
pub struct ImportArgs {
    /// The file; /dev/stdin: standard input
    file: PathBuf,
    /// Seconds that a round trip counts for, as the daemon's model.max_age.latency
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    max_age: u32,
    /// The file is an answer of Prometheus
    #[arg(long)]
    prometheus: bool,
    /// Prometheus's label with the host that measured
    #[arg(long, value_name = "LABEL", default_value = "instance", requires = "prometheus")]
    from_label: String,
    /// Prometheus's label with the host that was measured
    #[arg(long, value_name = "LABEL", default_value = "target", requires = "prometheus")]
    to_label: String,
    /// What Prometheus's values are
    #[arg(long, value_enum, default_value_t = Unit::S, requires = "prometheus")]
    unit: Unit,
}

/// Units of Prometheus's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

/// What was sent, and what of it the daemon refused.
#[derive(Serialize)]
struct Imported {
    round_trips: u64,
    paths: usize,
    /// Paths.
    refused: usize,
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    left_out: LeftOut,
}

/// A path that the daemon refused.
struct Refused {
    round_trips: u64,
    said: String,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with the lines that are no measurements; [`Failure::Work`] where no daemon answers, or it refuses some.
pub(super) fn run(args: &ImportArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let text = files::read_text(&args.file)?;
    let (rows, no_value) = read(args, &text)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let max_age = Duration::from_secs(args.max_age.into());
    let oldest_ms = u64::try_from(now.saturating_sub(max_age).as_millis()).unwrap_or(u64::MAX);
    let (items, left_out) = items(&rows, oldest_ms);
    let left_out = LeftOut { no_value, ..left_out };
    let refused = block_on(tell(daemon, &items, output))?;
    let round_trips = items.iter().fold(0, |sum: u64, item| sum.saturating_add(item.round_trips));
    let imported = Imported { round_trips, paths: items.len(), refused: refused.len(), left_out };
    output.sorted(&imported, || said(&imported, &refused, max_age))?;
    if refused.is_empty() {
        return Ok(());
    }
    let refused = refused.into_iter().map(|of| of.said).collect();
    Err(Failure::work(first(refused, "further paths are refused").join("\n")))
}

/// Rows of the file, and how many of Prometheus's values say that there is none.
fn read(args: &ImportArgs, text: &str) -> Result<(Vec<Row>, u64), Failure> {
    let unit_us = match args.unit {
        Unit::S => 1e6,
        Unit::Ms => 1e3,
        Unit::Us => 1.0,
    };
    let labels = Labels { from: &args.from_label, to: &args.to_label, unit_us };
    let rows = if args.prometheus { of_prometheus(text, &labels) } else { of_csv(text).map(|rows| (rows, 0)) };
    rows.map_err(|wrong| files::problems(&args.file, &first(wrong, "further lines are no measurements")))
}

/// For people: what was sent, what of it was taken, and what was left out.
fn said(imported: &Imported, refused: &[Refused], max_age: Duration) -> String {
    let Imported { round_trips, paths, left_out, .. } = imported;
    let of_refused = refused.iter().fold(0, |sum: u64, of| sum.saturating_add(of.round_trips));
    let mut lines = vec![format!(
        "{round_trips} round trips over {paths} paths sent; {} over {} taken, {of_refused} over {} refused",
        round_trips.saturating_sub(of_refused),
        paths - refused.len(),
        refused.len()
    )];
    let age = output::seconds(max_age.as_secs_f64());
    for (count, why) in [
        (left_out.older, format!("round trips older than {age} (--max-age)")),
        (left_out.beyond, "round trips beyond the newest 256 lengths of their path".to_owned()),
        (left_out.no_value, "values that are no number (NaN, Inf)".to_owned()),
    ] {
        lines.extend((count > 0).then(|| format!("left out: {count} {why}")));
    }
    lines.join("\n")
}

/// The first few, and how many more.
fn first(mut all: Vec<String>, more_are: &str) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    all.extend((more > 0).then(|| format!("{more} {more_are}")));
    all
}

/// Tells them; what was refused, with where it stood. Between two parts is a second, for the hosts that have more to tell.
async fn tell(daemon: &DaemonArgs, items: &[Item], output: Output) -> Result<Vec<Refused>, Failure> {
    let hello = v1::FeedHello { source: "hintctl latency import".to_owned(), ..v1::FeedHello::default() };
    let mut feed: FeedSender<v1::LatencyItem> = daemon.client().await?.feed(hello).await?;
    let (mut refused, mut sent) = (Vec::new(), 0);
    for part in items.chunk_by(|a, b| a.turn / AT_ONCE == b.turn / AT_ONCE) {
        let began = tokio::time::Instant::now();
        refused.extend(tell_part(&mut feed, part).await?);
        sent += part.len();
        if sent < items.len() {
            output.progress(&format!("{sent} of {} paths sent, {} refused", items.len(), refused.len()));
            tokio::time::sleep_until(began + Duration::from_secs(1)).await;
        }
    }
    Ok(refused)
}

/// Sends a part, and waits until all of it was looked at.
async fn tell_part(feed: &mut FeedSender<v1::LatencyItem>, part: &[Item]) -> Result<Vec<Refused>, Failure> {
    let mut by_number = BTreeMap::new();
    for of in part {
        let item = Some(v1::latency_item::Item::Histogram(of.histogram.clone()));
        by_number.insert(feed.send(v1::LatencyItem { number: 0, item }).await?, of);
    }
    let ack = feed.await_acknowledged().await?;
    let refused = |refused: &v1::ItemRefusal| {
        let item = by_number.get(&refused.number);
        let at = item.map_or("an item", |item| &*item.at);
        let said = format!("{at}: {} ({})", refused.message, refused.reason);
        Refused { round_trips: item.map_or(0, |item| item.round_trips), said }
    };
    Ok(ack.refused.iter().map(refused).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_tells_what_was_sent_taken_refused_and_left_out() {
        let refused = [Refused { round_trips: 3, said: "line 3: unknown".to_owned() }];
        let left_out = LeftOut { older: 300, beyond: 44, no_value: 2 };
        let imported = Imported { round_trips: 10, paths: 4, refused: 1, left_out };
        let text = said(&imported, &refused, Duration::from_secs(60));
        let expected = [
            "10 round trips over 4 paths sent; 7 over 3 taken, 3 over 1 refused",
            "left out: 300 round trips older than 60 s (--max-age)",
            "left out: 44 round trips beyond the newest 256 lengths of their path",
            "left out: 2 values that are no number (NaN, Inf)",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let counts = serde_json::json!({ "older": 300, "beyond": 44, "no_value": 2 });
        assert_eq!(serde_json::json!(imported)["left_out"], counts);
        let nothing = Imported { left_out: LeftOut::default(), ..imported };
        assert_eq!(serde_json::json!(nothing), serde_json::json!({ "round_trips": 10, "paths": 4, "refused": 1 }));
    }
}
