//! What operators ask a running daemon: status, reload, snapshot, calibrate.

use super::adherence;
use super::connect::{DaemonArgs, GATHERED_BYTES, block_on, gather};
use super::failure::Failure;
use super::holdout;
use super::links::named_down;
use super::new_file::ReplaceArg;
use super::output::{self, Output};
use super::plan::kept;
use super::printable::one_line;
use super::readiness;
use super::servers;
use super::view::ViewArgs;
use clap::Args;
use hintd::findings::cluster::restart_keys;
use hintd::findings::hints::refused_since_start;
use hintd_client::wire::v1;
use serde_json::json;
use std::cell::RefCell;
use std::path::PathBuf;

/// Where the snapshot goes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl snapshot -o now.json\n  hintctl place --cluster now.json \
    --request job.json --policy container\n\nThe file is a cluster file: any live situation can be taken home and \
    tried offline.")]
pub struct SnapshotArgs {
    /// The file, .json
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    replace: ReplaceArg,
    /// Give up beyond BYTES
    #[arg(long, value_name = "BYTES", default_value_t = GATHERED_BYTES)]
    max_bytes: u64,
}

/// An application, for weights that suit it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl calibrate --input-mb 20000 --exchanged-mb 5000 --containers 48")]
pub struct CalibrateArgs {
    /// Input that the application reads, MB
    #[arg(long)]
    input_mb: u64,
    /// What its containers send each other, MB
    #[arg(long)]
    exchanged_mb: u64,
    /// How many containers it has
    #[arg(long)]
    containers: u32,
}

/// What counts as well.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl status\n  hintctl --json status | jq .counters\n\n\
    Exit code 0: ready, there is a node to hint at and the journal can be written; 1: it is not, or no daemon answers.")]
pub struct StatusArgs {
    /// Exit code 0 whenever the daemon answers, ready or not
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    view: ViewArgs,
}

/// `hintctl status`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it is not ready, unless only that it is live was asked.
pub fn status(args: &StatusArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let log_level = RefCell::new(None);
    let for_scripts = args.view.is_for_scripts(output);
    let ask = async |mut admin: hintd_client::AdminClient| {
        // Of a process whose logs are not the daemon's, or of version 0.1.0, none is known. Scripts have the status alone.
        if !for_scripts {
            let level = admin.log_level(v1::LogLevelRequest::default()).await.ok();
            log_level.replace(level.map(|level| one_line(&level.into_inner().level).into_owned()));
        }
        admin.status(v1::StatusRequest {}).await.map_err(Failure::from)
    };
    let text = |status: &_, wide| status_text(status, log_level.borrow().as_deref(), wide);
    let status = args.view.show(daemon, output, ask, text)?;
    match status.ready || args.live {
        true => Ok(()),
        false => Err(Failure::work(format!("not ready: {}", one_line(&status.not_ready_reason)))),
    }
}

/// `hintctl reload`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or the file does not pass: then nothing changed.
pub fn reload(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = daemon.ask(async |mut admin| admin.reload(v1::ReloadRequest {}).await)?;
    output.sorted_answer(&answer, |answer| {
        let mut lines = vec![format!("configuration {} is in force", answer.config_generation)];
        if answer.changed.is_empty() {
            lines.push("nothing changed".to_owned());
        }
        lines.extend(answer.changed.iter().map(|key| format!("changed: {key}")));
        lines.extend(answer.reverted.iter().map(|key| format!("again as it is in force: {key}")));
        lines.extend(answer.needs_restart.iter().map(|key| format!("needs a restart, left as it was: {key}")));
        lines.extend(answer.notices.iter().map(|notice| format!("WARNING: {notice}")));
        lines.join("\n")
    })
}

/// `hintctl snapshot -o FILE`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or the file can't be written.
pub fn snapshot(args: &SnapshotArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    if args.output.extension().is_none_or(|extension| extension != "json") {
        return Err(Failure::in_file(&args.output, "the name must end in .json: a snapshot is written as it comes"));
    }
    args.replace.check(&args.output)?;
    let json = block_on(async {
        let chunks = daemon.operator().await?.snapshot(v1::SnapshotRequest {}).await?.into_inner();
        gather(chunks, args.max_bytes, |chunk| chunk.json).await
    })?;
    let text = String::from_utf8(json).map_err(|error| Failure::Work(error.into()))?;
    // A snapshot that was cut on the way must not look like a smaller cluster.
    serde_json::from_str::<serde::de::IgnoredAny>(&text)
        .map_err(|error| Failure::work(format!("the snapshot came broken: {error}")))?;
    args.replace.write(&args.output, &text)?;
    let document = json!({ "file": args.output, "bytes": text.len() });
    output.result(&document, || format!("{}: {}", args.output.display(), output::bytes(text.len() as f64)))
}

/// `hintctl calibrate`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or the application makes no sense.
pub fn calibrate(args: &CalibrateArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    const MB: u64 = 1_000_000;
    let megabytes = |flag: &str, megabytes: u64| {
        megabytes.checked_mul(MB).ok_or_else(|| Failure::Input(format!("{flag}: {megabytes} MB is beyond any cluster")))
    };
    let request = v1::CalibrateRequest {
        input_bytes: megabytes("--input-mb", args.input_mb)?,
        exchanged_bytes: megabytes("--exchanged-mb", args.exchanged_mb)?,
        containers: args.containers,
    };
    let answer = daemon.ask(async |mut admin| admin.calibrate(request).await)?;
    output.sorted_answer(&answer, |answer| {
        let mut lines = vec![output::pairs(&[
            ("togetherness", output::digits(answer.togetherness)),
            ("locality", output::digits(answer.locality)),
            ("balance", output::digits(answer.balance)),
        ])];
        lines.extend(answer.because.iter().map(|line| format!("  {line}")));
        lines.join("\n")
    })
}

fn status_text(status: &v1::StatusResponse, log_level: Option<&str>, wide: bool) -> String {
    let ready = readiness::named(status);
    let ms = output::age;
    let mut lines = vec![output::pairs(&[
        ("hintd", format!("{}, {ready}, up {}", status.version, ms(status.uptime_ms))),
        (
            "process",
            format!(
                "{} of CPU, {} resident",
                output::seconds(status.process_cpu_s),
                output::bytes(status.resident_bytes as f64)
            ),
        ),
        ("instance", status.instance_id.clone()),
        ("configuration", configuration_text(status)),
        ("log level", log_level.unwrap_or("not known").to_owned()),
        ("snapshot", format!("version {}, {} old", status.snapshot_version, ms(status.snapshot_age_ms))),
        (
            "nodes",
            format!(
                "{} of {} usable, in {}",
                status.nodes_usable,
                status.nodes,
                output::count(status.racks.into(), "rack")
            ),
        ),
        (
            "data",
            format!("{}, {}", output::count(status.datasets.into(), "dataset"), output::count(status.blocks, "block")),
        ),
        (
            "links",
            format!("{}, {} down{}", status.links, status.links_down, named_down(&status.down, status.links_down)),
        ),
        ("flows", flows_text(&status.flows.unwrap_or_default(), &status.watchers)),
        (
            "applications",
            format!(
                "{} asked for hints and {} not over, with {}; nodes report containers of {}",
                output::count(status.attempts, "attempt"),
                if status.attempts == 1 { "is" } else { "are" },
                output::count(status.leases, "lease"),
                output::count(status.applications.into(), "application")
            ),
        ),
        ("dispatch", dispatch_text(status)),
        ("plan", kept::in_force(status.plan.as_ref())),
    ])];
    lines.push(format!("\n{}", sources_table(status)));
    let asked = servers::text(&status.servers);
    if !asked.is_empty() {
        lines.push(format!("\n{asked}"));
    }
    if !status.watchers.is_empty() {
        lines.push(format!("\n{}", watchers_table(&status.watchers)));
    }
    let followed = adherence::text(&status.adherence, status.decisions_watched);
    if !followed.is_empty() {
        lines.push(format!("\n{followed}"));
    }
    let groups = adherence::groups_text(&status.adherence_last_hour);
    if !groups.is_empty() {
        lines.push(format!("\n{groups}"));
    }
    let worth = holdout::text(status);
    if !worth.is_empty() {
        lines.push(format!("\n{worth}"));
    }
    let refused = refused_text(status);
    if !refused.is_empty() {
        lines.push(format!("\n{refused}"));
    }
    lines.push(format!("\n{}", counters_table(status, wide)));
    if status.unknown_names_total > 0 {
        let names = status.unknown_names.join(" ");
        lines.push(format!("\n{} names that no node claims: {names}", status.unknown_names_total));
    }
    lines.extend(status.notices.iter().map(|notice| format!("\nNOTICE: {notice}")));
    lines.join("\n")
}

fn configuration_text(status: &v1::StatusResponse) -> String {
    let waits = restart_keys(status).map_or_else(String::new, |waits| format!("; {waits}"));
    format!("{} (generation {}){waits}", status.config_file, status.config_generation)
}

/// What was counted; with `wide` also what never happened, such as items of feeds that this cluster does not have.
fn counters_table(status: &v1::StatusResponse, wide: bool) -> String {
    let counted = status.counters.iter().filter(|(_, count)| wide || **count > 0);
    let rows: Vec<_> = counted.map(|(name, count)| [name.clone(), count.to_string()]).collect();
    let zero = status.counters.len() - rows.len();
    let table = output::table(["counter", "since start"], 1, rows);
    match zero {
        0 => table,
        1 => format!("{table}\n1 other counter is 0 (-o wide)"),
        zero => format!("{table}\n{zero} other counters are 0 (-o wide)"),
    }
}

/// When each source was heard.
fn sources_table(status: &v1::StatusResponse) -> String {
    let rows = status.ages.iter().map(|age| {
        let heard = age.age_ms.map_or_else(|| "-".to_owned(), output::age);
        let state = match (age.stale, age.source.as_str()) {
            _ if age.age_ms.is_none() => "never received",
            (true, _) => "too old",
            // Whoever tells of blocks was heard, and told of none.
            (false, "blocks") if status.blocks == 0 => "fresh, no block known",
            (false, _) => "fresh",
        };
        [age.source.clone(), state.to_owned(), heard]
    });
    output::table(["source", "", "heard"], 2, rows)
}

/// How many requests were refused, and who was most. Empty: nobody was.
fn refused_text(status: &v1::StatusResponse) -> String {
    let rows = status.refused.iter().map(|client| {
        let v1::RefusedClient { kind, name, reason, requests, since_ms } = client;
        let last = format!("{} ago", output::age(*since_ms));
        [format!("{kind} {name}"), reason.clone(), requests.to_string(), last]
    });
    let all = refused_since_start(&status.refused_by_reason);
    if status.refused.is_empty() {
        return all;
    }
    let all = if all.is_empty() { all } else { all + "\n" };
    let table = output::table(["refused most", "reason", "requests", "last"], 2, rows);
    format!(
        "{all}{table}\na request counts for its peer and for its application, a few of each since the start; \
         `hintctl decisions --refused` lists those that are recorded, and says why the others are not"
    )
}

fn dispatch_text(status: &v1::StatusResponse) -> String {
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let [offers, launches, not_yet, late] =
        ["dispatch_offers", "dispatch_launches", "dispatch_not_yet", "dispatch_late"].map(counter);
    let waiting = status.waiting_tasks;
    format!(
        "{} waiting; {launches} launched of {offers} offers, {not_yet} told to wait, {late} waited too long",
        output::count(waiting, "task")
    )
}

fn flows_text(flows: &v1::FlowCounts, watchers: &[v1::WatcherView]) -> String {
    let installs = watchers.iter().any(|watcher| watcher.installs && watcher.attached);
    let nobody = if flows.installed > 0 && !installs { "; no controller is there to install them" } else { "" };
    format!(
        "of {}: {} with a route, {} by default forwarding, {} cut off{nobody}",
        output::count(flows.jobs, "job"),
        output::count(flows.installed, "host pair"),
        flows.default_forwarding,
        flows.cut
    )
}

fn watchers_table(watchers: &[v1::WatcherView]) -> String {
    let rows = watchers.iter().map(|watcher| {
        let first = watcher
            .refused
            .first()
            .map_or_else(String::new, |refused| format!(": {} to {}, {}", refused.src, refused.dst, refused.reason));
        [
            watcher.name.clone(),
            if watcher.installs { "installs" } else { "listens" }.to_owned(),
            hintd::findings::cluster::watcher_state(watcher),
            format!("{}{first}", watcher.refused_total),
            watcher.routes.to_string(),
            watcher.sent.to_string(),
            if watcher.installs { watcher.acknowledged.to_string() } else { "-".to_owned() },
            output::age(watcher.since_ms),
        ]
    });
    output::table(["watcher", "", "state", "refused", "routes", "sent", "acknowledged", "watches for"], 4, rows)
}
