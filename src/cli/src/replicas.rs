//! `hintctl replicas`: where replicas of data that a planned or recurring job will read should go.

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use clap::Args;
use hintd_client::wire::v1;

/// What is to be written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl replicas /logs/2026/11/22\n  \
    hintctl replicas /logs/2026/11/22 --blocks 24\n  hintctl replicas /tmp/in --key daily-join --replication 2\n  \
    hintctl --json replicas /logs/2026/11/22 | jq -r '.blocks[0][].host // empty'\n\n\
    Advice: HDFS decides. docs/plans.md says how a writer uses it (favoured nodes).")]
pub struct ReplicasArgs {
    /// Path of the data in HDFS
    path: String,
    /// The recurring job that will read it [default: found by path]
    #[arg(long)]
    key: Option<String>,
    /// Blocks to advise for, each by itself
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    blocks: u32,
    /// Replicas of each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    replication: u32,
    /// Seed of random draws [default: the path's own]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers, or the plan has no such job.
pub fn run(args: &ReplicasArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let request = v1::ReplicasRequest {
        path: args.path.clone(),
        recurring_job_key: args.key.clone().unwrap_or_default(),
        replication: args.replication,
        blocks: args.blocks,
        seed: args.seed,
    };
    let found = block_on(async { Ok(daemon.client().await?.replicas(request).await?) })?;
    output.sorted_answer(&found, text)
}

/// Why, in words.
fn because(found: &v1::ReplicasResponse) -> String {
    match found.reason.as_str() {
        "planned" => format!("planned: {} of plan \"{}\" reads it", found.job, found.plan),
        "homes" => format!("home racks: {} reads it again, as its earlier runs did", found.reader),
        "classes" => "by classes of machines: one replica on scale-up machines, two on scale-out machines".to_owned(),
        "everywhere" => format!("as HDFS does by default: {} is as well off anywhere", found.reader),
        "no_earlier_run" => {
            format!("as HDFS does by default: no run of {} was told with bytes and times", found.reader)
        }
        "no_plan" => {
            "as HDFS does by default: no plan is in force, and no earlier run is known that read it".to_owned()
        }
        "not_planned" => format!("as HDFS does by default: no job of plan \"{}\" reads it", found.plan),
        "racks_gone" if found.reader.is_empty() => {
            "as HDFS does by default: of one class of machines no node is usable".to_owned()
        }
        "racks_gone" => {
            format!("as HDFS does by default: no rack that runs maps of {} has a usable node", found.reader)
        }
        "plan_expired" => format!("as HDFS does by default: plan \"{}\" has expired", found.plan),
        "policy_places_no_data" => "as HDFS does by default: the policy places no data".to_owned(),
        other => format!("as HDFS does by default: {other}"),
    }
}

fn text(found: &v1::ReplicasResponse) -> String {
    let mut lines = vec![because(found)];
    if !found.racks.is_empty() {
        let rows = found.racks.iter().map(|rack| [rack.rack.clone(), rack.hosts.join(" ")]);
        let racks = match found.reason.as_str() {
            "homes" => "home racks",
            "classes" => "racks",
            _ => "racks in plan order",
        };
        lines.push(format!("\n{}", output::table([racks, "usable hosts"], 2, rows)));
        let shown = |replica: &v1::ReplicaAdvice| match replica.rack.as_str() {
            "" => "HDFS's choice".to_owned(),
            rack => format!("{rack} {}", replica.host),
        };
        let rows = found.blocks.iter().enumerate().map(|(nth, block)| {
            let replicas: Vec<String> = block.replicas.iter().map(shown).collect();
            [nth.to_string(), replicas.join(", ")]
        });
        lines.push(format!("\n{}", output::table(["block", "replicas, first first"], 2, rows)));
    }
    lines.join("\n")
}
