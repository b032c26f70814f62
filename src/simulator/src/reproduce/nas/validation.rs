//! `simulator-validation`: flows with known completion times, and Tables 6.1 and 6.2.

use super::systems::{System, World, run};
use super::world;
use crate::flows_file::{FlowsDocument, FlowsResult};
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use crate::{JobModel, RunReport};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

const NAME: &str = "simulator-validation";
/// The instances of `flowsim`.
const FLOWS: [&str; 3] = ["p1_fattree", "p2_tree", "p3_jellyfish"];
/// How far a completion time may lie from the known one, relative.
const TOLERANCE: f64 = 1e-9;

/// The experiment.
pub const VALIDATION: Experiment = Experiment {
    name: NAME,
    paper: "004 (Li), chapter 6",
    figure: "Tables 6.1 and 6.2: nas against the baselines on 40 nodes; flows with known completion times",
    settings,
    quick_s: 30,
    full_s: 30,
    rows: &rows_of,
};

fn settings(_: Scale) -> Vec<(String, String)> {
    let mut rows = vec![
        (
            "cluster".to_owned(),
            "40 nodes in 8 racks, 16 containers each, NICs and rack uplinks 1 Gbit/s (§6.2)".to_owned(),
        ),
        (
            "trace".to_owned(),
            format!(
                "200 jobs drawn by seed with Figure 3.2's shares from: {}; gaps exponential, mean 14 s (§3.3.1)",
                world::day().source
            ),
        ),
        (
            "flows".to_owned(),
            flows_folder().map_or_else(|why| format!("SKIPPED: {why}"), |_| "data/flowsim, three networks".to_owned()),
        ),
    ];
    rows.extend(JobModel::default().describe());
    rows
}

/// Both scales are the paper's.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    if let Ok(folder) = flows_folder() {
        let worst = worst_flow(&folder).map_err(failed)?;
        rows.push(Row::at_most(
            "flows: largest error of a completion time",
            TOLERANCE,
            "relative",
            vec![worst; context.seeds.len()],
        )?);
    }
    let of = |policy, value: fn(&RunReport) -> f64| {
        context.per_seed(|seed| {
            run(NAME, System::new(policy, "", World::Validation), seed, context.kept).map(|report| value(&report))
        })
    };
    let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>();
    let throughput: fn(&RunReport) -> f64 = |report| report.throughput_jobs_per_hour;
    let completion: fn(&RunReport) -> f64 = |report| report.mean_jct_s;
    let nas = (of("nas", throughput)?, of("nas", completion)?);
    for (policy, more, less, real) in [
        ("fair", 1.58, 0.62, (1.63, 0.57)),
        ("delay", 1.39, 0.69, (1.47, 0.64)),
        ("shufflewatcher", 1.27, 0.71, (1.30, 0.68)),
    ] {
        let row =
            Row::at_least(&format!("throughput, nas ÷ {policy}"), more, "×", ratio(&nas.0, &of(policy, throughput)?))?;
        rows.push(Row { note: format!("real cluster {}", real.0), ..row });
        let row = Row::at_most(
            &format!("mean completion, nas ÷ {policy}"),
            less,
            "×",
            ratio(&nas.1, &of(policy, completion)?),
        )?;
        rows.push(Row { note: format!("real cluster {}", real.1), ..row });
    }
    Ok(rows)
}

fn failed(why: String) -> ReproduceError {
    ReproduceError::Failed { entry: NAME.to_owned(), source: why.into() }
}

fn flows_folder() -> Result<PathBuf, String> {
    let data = std::env::var_os("HINTD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = data.join("flowsim");
    if folder.is_dir() { Ok(folder) } else { Err(format!("no {} (HINTD_DATA names another place)", folder.display())) }
}

/// The largest relative error of a completion time over all instances.
fn worst_flow(folder: &Path) -> Result<f64, String> {
    let mut worst = 0.0_f64;
    for name in FLOWS {
        let document: FlowsDocument = read(&folder.join(format!("{name}.json")))?;
        let expected: FlowsResult = read(&folder.join(format!("{name}.expected.json")))?;
        let found = document.run().map_err(|problems| format!("{name}: {problems:?}"))?;
        for (ours, theirs) in found.completions.iter().zip(&expected.completions) {
            if ours.id != theirs.id {
                return Err(format!("{name}: flow {} stands where {} is expected", ours.id, theirs.id));
            }
            worst = worst.max((ours.completion_s / theirs.completion_s - 1.0).abs());
        }
    }
    Ok(worst)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
