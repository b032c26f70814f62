//! Links that fail: time from the feed's item to the last route update that it causes, over the daemon's own sockets.

mod fabric;
mod installed_routes;

use super::super::connect::{DaemonArgs, block_on};
use super::super::failure::Failure;
use super::super::output::{self, Output};
use clap::Args;
use fabric::Fabric;
use installed_routes::InstalledRoutes;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// The fabric, its flows, and what fails.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl bench reroute --target 127.0.0.1:8470 --hosts 1000 --flows 10000\n  \
    hintctl bench reroute --target 127.0.0.1:8470 --hosts 16 --flows 100 --failures 5 --rounds 2\n\n\
    Feeds a fat-tree and its hosts in place of whatever the daemon knew, asks for jobs until enough pairs of hosts\n\
    talk, and installs their routes: use a daemon that serves no cluster, and no other controller. Times are from\n\
    before an item is sent to after its last update was received, both sockets included.")]
pub struct RerouteArgs {
    /// The daemon's gRPC address
    #[arg(long)]
    target: Option<String>,
    /// Hosts of the fat-tree
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    hosts: u32,
    /// Pairs of hosts that talk
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: u32,
    /// Links that fail one after another, each mended before the next
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    failures: u32,
    /// Rounds in which many links fail at once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    rounds: u32,
    /// Share of the links in use that fail in such a round, percent
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=90))]
    percent: u32,
    /// Policy that places the jobs
    #[arg(long, default_value = "spread")]
    policy: String,
    /// Seed of what fails
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Times of one kind of event.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    events: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Routes that an event moved.
    moved_mean: f64,
    moved_max: usize,
    /// Updates that it took.
    updates_mean: f64,
}

#[derive(Serialize)]
struct Report {
    target: String,
    policy: String,
    hosts: usize,
    switches: usize,
    links: usize,
    /// Routes installed before the first failure.
    flows: usize,
    /// Links between switches that they use.
    links_in_use: usize,
    /// One link failed.
    one: Figures,
    /// It came back: until the first routes that return to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<Figures>,
    /// Many failed at once: until no route is left on any of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    many: Option<Figures>,
    /// Links that failed in each such round.
    many_links: usize,
}

/// One event's outcome.
struct Measured {
    took: Duration,
    moved: usize,
    updates: usize,
}

/// Longest wait for routes that must move.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for routes to return: they need not, if they are as well off where they are.
const RETURN: Duration = Duration::from_millis(500);
/// No update for so long: the daemon is done.
const QUIET: Duration = Duration::from_millis(30);
/// The same after many failed.
const QUIET_MANY: Duration = Duration::from_millis(500);

/// `hintctl bench reroute`.
///
/// # Errors
/// [`Failure`] where nobody answers, too few flows get routes, or a route stays on a dead link.
pub fn run(args: RerouteArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let daemon = DaemonArgs { address: args.target.clone().or_else(|| daemon.address.clone()), ..daemon.clone() };
    let report = block_on(async {
        let target = daemon.grpc_address()?;
        let client = daemon.client().await?;
        output.progress(&format!("{} hosts and {} flows go to {target}", args.hosts, args.flows));
        let mut fabric = Fabric::feed(&client, args.hosts).await?;
        let mut told = InstalledRoutes::watch(&client).await?;
        fabric.talk(&mut told, args.flows, &args.policy).await?;
        told.quiet(QUIET_MANY).await?;
        measure(&args, target, &mut fabric, &mut told, output).await
    })?;
    output.result(&report, || text(&report))
}

async fn measure(
    args: &RerouteArgs,
    target: String,
    fabric: &mut Fabric,
    told: &mut InstalledRoutes,
    output: Output,
) -> Result<Report, Failure> {
    let flows = told.routes();
    let mut links = fabric.between_switches(&told.links_in_use());
    links.shuffle(&mut ChaCha8Rng::seed_from_u64(args.seed));
    let many_links = (links.len() * args.percent as usize / 100).max(1);
    output.progress(&format!("{flows} routes over {} links between switches; links fail one by one", links.len()));
    let (mut one, mut back) = (Vec::new(), Vec::new());
    for link in links.iter().cycle().take(args.failures as usize) {
        if told.on(&BTreeSet::from([link.clone()])) == 0 {
            continue; // its routes found that they are better off elsewhere
        }
        let (failed, returned) = fail_one(link, fabric, told).await?;
        one.push(failed);
        back.extend(returned);
    }
    let mut many = Vec::new();
    for (round, failing) in links.chunks(many_links).cycle().take(args.rounds as usize).enumerate() {
        output.progress(&format!("round {}: {} links fail at once", round + 1, failing.len()));
        many.extend(fail_many(failing, fabric, told).await?);
    }
    Ok(Report {
        target,
        policy: args.policy.clone(),
        hosts: fabric.hosts(),
        switches: fabric.switches(),
        links: fabric.links(),
        flows,
        links_in_use: links.len(),
        one: figures(&one).ok_or_else(|| Failure::work("no link that failed had a route on it"))?,
        back: figures(&back),
        many: figures(&many),
        many_links,
    })
}

/// One link fails, and is mended once its routes have moved.
async fn fail_one(
    link: &str,
    fabric: &mut Fabric,
    told: &mut InstalledRoutes,
) -> Result<(Measured, Option<Measured>), Failure> {
    let dead = BTreeSet::from([link.to_owned()]);
    let before = told.on(&dead);
    let began = Instant::now();
    fabric.link(link, false).await?;
    let failed = until_left(&dead, began, before, told).await?;
    told.quiet(QUIET).await?;
    let began = Instant::now();
    fabric.link(link, true).await?;
    let mut returned = None;
    let deadline = began + RETURN;
    let mut updates = 0;
    while let Some(at) = told.next(deadline).await? {
        updates += 1;
        let moved = told.on(&dead);
        if moved > 0 {
            returned = Some(Measured { took: at.duration_since(began), moved, updates });
            break;
        }
    }
    told.quiet(QUIET).await?;
    Ok((failed, returned))
}

/// Links fail at once, and are mended once their routes have moved; `None` if there were none.
async fn fail_many(
    links: &[String],
    fabric: &mut Fabric,
    told: &mut InstalledRoutes,
) -> Result<Option<Measured>, Failure> {
    let dead: BTreeSet<String> = links.iter().cloned().collect();
    let before = told.on(&dead);
    let began = Instant::now();
    for link in links {
        fabric.link(link, false).await?;
    }
    let failed = if before > 0 { Some(until_left(&dead, began, before, told).await?) } else { None };
    told.quiet(QUIET_MANY).await?;
    for link in links {
        fabric.link(link, true).await?;
    }
    told.quiet(QUIET_MANY).await?;
    Ok(failed)
}

/// Waits until no route has any of the links.
async fn until_left(
    dead: &BTreeSet<String>,
    began: Instant,
    moved: usize,
    told: &mut InstalledRoutes,
) -> Result<Measured, Failure> {
    let mut updates = 0;
    let deadline = began + PATIENCE;
    loop {
        let Some(at) = told.next(deadline).await? else {
            let left = told.on(dead);
            return Err(Failure::work(format!("{left} of {moved} routes stay on dead links after {PATIENCE:?}")));
        };
        updates += 1;
        if told.on(dead) == 0 {
            return Ok(Measured { took: at.duration_since(began), moved, updates });
        }
    }
}

fn figures(measured: &[Measured]) -> Option<Figures> {
    let mut times: Vec<f64> = measured.iter().map(|event| event.took.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1];
    let mean = |of: fn(&Measured) -> usize| measured.iter().map(of).sum::<usize>() as f64 / measured.len() as f64;
    (!times.is_empty()).then(|| Figures {
        events: times.len(),
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        max_ms: quantile(1.0),
        moved_mean: mean(|event| event.moved),
        moved_max: measured.iter().map(|event| event.moved).max().unwrap_or(0),
        updates_mean: mean(|event| event.updates),
    })
}

fn text(report: &Report) -> String {
    let many = format!("{} links fail at once", report.many_links);
    let rows = [
        ("one link fails", Some(&report.one)),
        ("it comes back", report.back.as_ref()),
        (many.as_str(), report.many.as_ref()),
    ];
    let rows = rows.into_iter().filter_map(|(what, figures)| figures.map(|figures| (what, figures)));
    let rows = rows.map(|(what, figures)| {
        [
            what.to_owned(),
            figures.events.to_string(),
            output::digits(figures.p50_ms),
            output::digits(figures.p99_ms),
            output::digits(figures.max_ms),
            output::digits(figures.moved_mean),
            figures.moved_max.to_string(),
            output::digits(figures.updates_mean),
        ]
    });
    let header =
        ["from feed item to last update", "events", "p50 ms", "p99 ms", "max ms", "routes moved", "most", "updates"];
    format!(
        "{} routes of {} hosts, over {} of {} links, placed by {}\n\n{}",
        report.flows,
        report.hosts,
        report.links_in_use,
        report.links,
        report.policy,
        output::table(header, 1, rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_measured() {
        let measured: Vec<Measured> =
            (1..=100).map(|ms| Measured { took: Duration::from_millis(ms), moved: 2, updates: 1 }).collect();
        let found = figures(&measured).unwrap();
        assert!((found.p50_ms - 50.0).abs() < 1e-9 && (found.p99_ms - 99.0).abs() < 1e-9, "{found:?}");
        assert!((found.max_ms - 100.0).abs() < 1e-9 && (found.moved_mean - 2.0).abs() < 1e-9);
        assert!(figures(&[]).is_none());
    }
}
