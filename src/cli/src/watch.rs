//! `hintctl watch`: route updates as they come, and acknowledgements where rules are watched.

use super::answers;
use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line_strings;
use clap::Args;
use hintd_client::view;
use hintd_client::wire::v1;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_stream::StreamExt as _;

/// What to watch.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl watch --flows\n  hintctl watch --pair node-01-1:node-02-1\n  \
    hintctl --json watch --flows --count 1 | jq '.routes | length'\n  \
    hintctl watch --flows --installs --acknowledge       stands in for a controller: it installs nothing\n\n\
    With --json each update is a document of its own, one a line.")]
pub struct WatchArgs {
    /// Every installed route of running applications
    #[arg(long)]
    flows: bool,
    /// Circuits that the optical switch should have
    #[arg(long)]
    circuits: bool,
    /// A pair of hosts, as SRC:DST
    #[arg(long, value_name = "SRC:DST", value_parser = pair)]
    pair: Vec<v1::HostPair>,
    /// Get rules as well, as the one watcher that installs them
    #[arg(long)]
    installs: bool,
    /// Acknowledge every update as it comes
    #[arg(long)]
    acknowledge: bool,
    /// Name of the watcher
    #[arg(long, default_value = "hintctl")]
    name: String,
    /// Send what came after this number
    #[arg(long, value_name = "NUMBER", requires = "instance")]
    resume_after: Option<u64>,
    /// Id of the daemon instance that numbered it
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// End after COUNT updates; 0: never
    #[arg(long, default_value_t = 0)]
    count: u64,
    /// End SECONDS after the first update, or after the start where the watch is resumed; 0: never
    #[arg(long, default_value_t = 0)]
    seconds: u64,
}

/// How long the first update may take at least where `--seconds` is given: it comes at once from a daemon that is well.
const FIRST_WITHIN: Duration = Duration::from_secs(10);

/// Routes and rules shown of one update.
const SHOWN: usize = 20;

fn pair(text: &str) -> Result<v1::HostPair, String> {
    match text.split_once(':') {
        Some((src, dst)) if !src.is_empty() && !dst.is_empty() => {
            Ok(v1::HostPair { src: src.to_owned(), dst: dst.to_owned(), class: String::new() })
        }
        _ => Err("two hosts are wanted, as SRC:DST".to_owned()),
    }
}

/// `hintctl watch`.
///
/// # Errors
/// [`Failure`] where no daemon answers, it refuses the watch, or ends it.
pub fn run(args: WatchArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    if args.pair.is_empty() && !args.flows && !args.circuits {
        let message = "nothing is to be watched: give --flows, --circuits or --pair SRC:DST, or several of them";
        return Err(Failure::Input(message.to_owned()));
    }
    block_on(watch(&args, daemon, output))
}

async fn watch(args: &WatchArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let client = daemon.client().await?;
    let request = v1::WatchRequest {
        watcher: args.name.clone(),
        pairs: args.pair.clone(),
        flows: args.flows,
        installs: args.installs,
        circuits: args.circuits,
        resume_after: args.resume_after,
        instance_id: args.instance.clone().unwrap_or_default(),
        nonce: Vec::new(),
    };
    let mut updates = client.watch(request).await?;
    let limit = (args.seconds > 0).then(|| Duration::from_secs(args.seconds));
    // Who resumes hears nothing until something changes; all others hear at once how things stand.
    let mut until = limit.map(|limit| Instant::now() + args.resume_after.map_or(limit.max(FIRST_WITHIN), |_| limit));
    let mut seen = 0;
    loop {
        let next = match until {
            None => updates.next().await,
            Some(until) => match timeout_at(until, updates.next()).await {
                Ok(next) => next,
                Err(_) if seen > 0 || args.resume_after.is_some() => return Ok(()),
                Err(_) => return Err(Failure::work("the daemon sent no update in time")),
            },
        };
        let update = next.ok_or_else(|| Failure::work("the daemon ended the watch"))??;
        if seen == 0 && args.resume_after.is_none() {
            until = limit.map(|limit| Instant::now() + limit);
        }
        if output.is_json() {
            output.row(&output::sorted(&update)?)?;
        } else {
            output.line(&text(&one_line_strings(&update)))?;
        }
        if args.acknowledge {
            let outstanding = client.acknowledge(&args.name, update.number, Vec::new()).await?;
            if outstanding > 0 {
                output.progress(&format!("{outstanding} updates are outstanding"));
            }
        }
        if seen == 0 && !output.is_json() {
            without_way(&args.pair, &update).into_iter().for_each(|line| output.progress(&line));
        }
        seen += 1;
        if seen == args.count {
            return Ok(());
        }
    }
}

/// What is waited for where the first update has no way for a pair: nothing else may come for as long as there is none.
fn without_way(pairs: &[v1::HostPair], first: &v1::RouteUpdate) -> Vec<String> {
    let has_way = |pair: &&v1::HostPair| {
        let of = |route: &&v1::Route| {
            route.pair.as_ref().is_some_and(|found| (&found.src, &found.dst) == (&pair.src, &pair.dst))
        };
        first.routes.iter().find(of).is_some_and(|route| !route.vertices.is_empty())
    };
    let without = pairs.iter().filter(|pair| !has_way(pair));
    without
        .map(|pair| {
            format!(
                "{} to {}: no way is known, for no network is, or it does not have both hosts, or they are cut off; waiting \
                 until there is one (Ctrl-C or --seconds ends it)",
                pair.src, pair.dst
            )
        })
        .collect()
}

fn text(update: &v1::RouteUpdate) -> String {
    let phase = view::phase(update.phase());
    // What names nothing (topology: all of it came anew) has no subject.
    let why = [&*update.cause, &*update.subject].into_iter().filter(|word| !word.is_empty() && *word != phase);
    let why: String = why.map(|word| format!(" {word}")).collect();
    let mut lines = vec![format!(
        "{} {phase}{why}: {} routes{}, {} removed, {} rules, {} untouched",
        update.number,
        update.routes.len(),
        if update.snapshot { " (complete)" } else { "" },
        update.removed.len(),
        update.rules.len(),
        update.untouched,
    )];
    let ends = |pair: &Option<v1::HostPair>| {
        pair.as_ref().map_or_else(String::new, |p| {
            let class = if p.class.is_empty() { String::new() } else { format!(" ({})", p.class) };
            format!("{} → {}{class}", p.src, p.dst)
        })
    };
    lines.extend(update.routes.iter().take(SHOWN).map(|route| {
        let how = if route.vertices.is_empty() {
            "has no path".to_owned()
        } else {
            format!("via {}", answers::via(&route.vertices))
        };
        let boxes: Vec<&str> = route.stops.iter().map(|stop| stop.r#box.as_str()).collect();
        let how = if boxes.is_empty() { how } else { format!("{how}, through {}", boxes.join(", ")) };
        format!("  {} {how}", ends(&route.pair))
    }));
    lines.extend(more(update.routes.len(), "routes"));
    lines.extend(update.rules.iter().take(SHOWN).map(|rule| match &rule.action {
        Some(v1::rule_change::Action::Install(install)) => {
            format!("  {}: {} out over {} to {}", rule.switch, ends(&rule.pair), install.link, install.next)
        }
        _ => format!("  {}: {} removed", rule.switch, ends(&rule.pair)),
    }));
    lines.extend(more(update.rules.len(), "rules"));
    if let Some(wanted) = &update.circuits {
        lines.extend(circuit_lines(wanted));
    }
    lines.join("\n")
}

fn circuit_lines(wanted: &v1::WantedCircuits) -> Vec<String> {
    let (version, cause) = (wanted.version, &wanted.cause);
    let (circuits, unserved) = (wanted.circuits.len(), wanted.unserved_pairs);
    let mut lines =
        vec![format!("  circuits {version} by {cause}: {circuits} wanted, {unserved} pairs of racks without")];
    lines.extend(wanted.circuits.iter().take(SHOWN).map(|circuit| {
        let demand = circuit.demand.clone().unwrap_or_default();
        let expected = output::bytes(demand.expected_bytes as f64);
        format!("  {} → {}: {} to {}, {expected}", circuit.input, circuit.output, demand.from_rack, demand.to_rack)
    }));
    lines.extend(more(circuits, "circuits"));
    lines
}

fn more(all: usize, what: &str) -> Option<String> {
    (all > SHOWN).then(|| format!("  and {} more {what}", all - SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use v1::rule_change::Action;

    /// That of docs/formats.md.
    fn update() -> v1::RouteUpdate {
        let pair = || pair("worker-1:worker-2").ok();
        let names = |names: &str| names.split(' ').map(str::to_owned).collect();
        let install = |switch: &str, link: &str, next: &str| v1::RuleChange {
            switch: switch.into(),
            pair: pair(),
            action: Some(Action::Install(v1::InstallRule { link: link.into(), next: next.into() })),
        };
        let remove =
            v1::RuleChange { switch: "core-1".into(), pair: pair(), action: Some(Action::Remove(v1::RemoveRule {})) };
        v1::RouteUpdate {
            number: 7,
            routes: vec![v1::Route {
                pair: pair(),
                vertices: names("worker-1 tor-1 core-2 tor-2 worker-2"),
                links: names("h1 u3 u4 h2"),
                stops: vec![],
            }],
            cause: "link_down".into(),
            subject: "u1".into(),
            untouched: 41,
            instance_id: "1e478d644a9faf5b".into(),
            rules: vec![install("core-2", "u4", "tor-2"), install("tor-1", "u3", "core-2"), remove],
            phase: v1::RoutePhase::Failover.into(),
            ..v1::RouteUpdate::default()
        }
    }

    #[test]
    fn the_documented_update_is_what_is_printed() {
        const DOCS: &str = include_str!("../../../docs/formats.md");
        let (_, section) = DOCS.split_once("\n## Route updates\n").unwrap();
        let text = section.split("```").nth(1).unwrap().strip_prefix("json\n").unwrap();
        assert_eq!(output::sorted(&update()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_pair_without_a_way_is_named_and_one_with_a_way_is_not() {
        let asked = [pair("worker-1:worker-2").unwrap(), pair("a:b").unwrap()];
        let said = without_way(&asked, &update());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("a to b: no way is known"), "{said:?}");
        let mut cut = update();
        cut.routes[0].vertices.clear();
        assert_eq!(without_way(&asked[..1], &cut).len(), 1);
    }

    #[test]
    fn people_read_the_way_and_what_each_switch_does() {
        let text = text(&update());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "7 failover link_down u1: 1 routes, 0 removed, 3 rules, 41 untouched");
        assert_eq!(lines[1], "  worker-1 → worker-2 via tor-1 core-2 tor-2");
        assert_eq!(lines[2], "  core-2: worker-1 → worker-2 out over u4 to tor-2");
        assert_eq!(lines[4], "  core-1: worker-1 → worker-2 removed");
        assert!(pair("a").is_err() && pair(":b").is_err());
        let whole = v1::RouteUpdate { cause: "topology".into(), subject: String::new(), ..update() };
        assert!(super::text(&whole).starts_with("7 failover topology: 1 routes"), "{}", super::text(&whole));
    }
}
