//! What hints are worth on a small trace that is drawn for it: the end of `hintctl demo`.

use super::super::failure::Failure;
use super::super::output::{Output, digits, table};
use super::super::simulate::threads;
use super::matrix::Matrix;
use super::outcome::{CellView, Outcome};
use super::{WorthArgs, table as tables};
use clap::Parser;
use hintd_model::units::Micros;
use hintd_simulator::worth::Row;
use hintd_simulator::{TraceShape, generate, write_swim};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// Seconds between two submissions, in the mean: jobs meet on the network.
const GAP_MS: u64 = 1_200;
/// Of the bytes that the generated trace has.
const LOAD: &str = "0.3";
const SEEDS: &str = "3";
const CLUSTER: &str = "nas-40";

/// What was measured, with units in the names.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Glance {
    /// Its name and size.
    cluster: String,
    jobs: u64,
    seeds: usize,
    /// Mean completion under YARN alone, seconds.
    alone_mean_s: f64,
    /// The share of it that the network costs.
    network_cost: f64,
    rows: Vec<GlanceRow>,
}

/// One way to run the same jobs.
#[derive(Debug, Clone, Serialize)]
struct GlanceRow {
    name: String,
    /// Mean completion, seconds.
    mean_s: f64,
    /// The same by that of YARN alone: median, smallest and largest over the seeds.
    ratio: [f64; 3],
    /// Share of what the network costs that was won back.
    #[serde(skip_serializing_if = "Option::is_none")]
    won_back: Option<f64>,
}

/// The command line that it stands for.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: WorthArgs,
}

impl Glance {
    /// Draws so many jobs into a file in `folder`, which has to be there, and runs them as `hintctl worth` does.
    ///
    /// # Errors
    /// [`Failure::Work`] for a file that can't be written, a run that breaks, or one that was interrupted.
    pub(crate) fn of(jobs: u32, seed: u64, folder: &Path, output: Output) -> Result<Self, Failure> {
        let trace = folder.join("generated.tsv");
        draw(jobs, seed, &trace).map_err(|error| Failure::work(format!("{}: {error}", trace.display())))?;
        let words = ["--cluster", CLUSTER, "--loads", LOAD, "--seeds", SEEDS, "--policy", "joint"];
        let line = ["worth", "--levers", "where,when,data-when", "--trace"].map(std::ffi::OsString::from);
        let line = line.into_iter().chain([trace.into_os_string()]).chain(words.map(std::ffi::OsString::from));
        let args = Line::try_parse_from(line).map_err(|error| Failure::Work(error.into()))?.args;
        let matrix = Matrix::read(&args, output)?;
        let runs = matrix.run(None, None, threads(None), output)?;
        if runs.interrupted {
            return Err(Failure::work("interrupted"));
        }
        let outcome = Outcome::of(&matrix, &runs)?;
        let cell = outcome.cells.first().ok_or_else(|| Failure::work("no cell was run"))?;
        let cluster = outcome.assumptions.iter().find(|(name, _)| *name == "cluster").map_or(CLUSTER, |(_, text)| text);
        Self::new(cell, cluster.to_owned(), outcome.seeds)
    }

    fn new(cell: &CellView<'_>, cluster: String, seeds: usize) -> Result<Self, Failure> {
        let (Some(alone), Some(cost)) = (cell.alone_mean_s, cell.network_cost) else {
            return Err(Failure::work("no job ended under YARN alone"));
        };
        let named = |name: &str, row: Option<&Row>| row.map(|row| GlanceRow::new(name.to_owned(), row));
        let hinted = cell.hinted.iter().filter(|view| view.policy == "joint");
        let hinted = hinted.filter_map(|view| named(&view.name, view.figures.as_ref()));
        let chance = named("YARN alone, other phases of heartbeats", cell.other_phases.as_ref());
        let free = named("YARN alone, without a network's limits", cell.no_network.as_ref());
        Ok(Self {
            cluster,
            jobs: cell.jobs,
            seeds,
            alone_mean_s: alone.median,
            network_cost: cost.median,
            rows: chance.into_iter().chain(hinted).chain(free).collect(),
        })
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let Self { jobs, seeds, cluster, .. } = self;
        let cost = tables::percent(self.network_cost);
        let alone = ["YARN alone".to_owned(), digits(self.alone_mean_s), "1".to_owned(), String::new()];
        let rows = self.rows.iter().map(|row| {
            let [median, least, most] = row.ratio;
            [
                row.name.clone(),
                digits(row.mean_s),
                format!("{median:.2} ({least:.2} to {most:.2})"),
                row.won_back.map_or_else(String::new, tables::percent),
            ]
        });
        format!(
            "What hints are worth where the network is busy: {jobs} jobs of another generated trace, simulated as deployed\n\
             ({cluster}; medians of {seeds} seeds; the network costs {cost} % of completion).\n{}\n\
             `hintctl worth --trace T --cluster C` says it of a trace and a cluster of your own.",
            table(["", "mean completion, s", "/ YARN alone", "won back %"], 1, std::iter::once(alone).chain(rows))
        )
    }
}

impl GlanceRow {
    fn new(name: String, row: &Row) -> Self {
        let ratio = [row.mean.median, row.mean.min, row.mean.max];
        Self { name, mean_s: row.mean_s.median, ratio, won_back: row.won_back.map(|spread| spread.median) }
    }
}

fn draw(jobs: u32, seed: u64, path: &Path) -> std::io::Result<()> {
    let span = Micros::from_millis(GAP_MS * u64::from(jobs));
    let mut file = BufWriter::new(File::create(path)?);
    write_swim(&generate(&TraceShape { jobs, span, paths: false, seed }), &mut file)?;
    file.flush()
}
