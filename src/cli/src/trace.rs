//! `hintctl trace`: job traces for `hintctl simulate` and `hintctl demo`.

use super::failure::Failure;
use super::new_file::ReplaceArg;
use super::output::{self, Output};
use super::simulate::{TraceArgs, in_trace, skipped, unpacked};
use clap::{Args, Subcommand, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use hintd_model::units::Micros;
use hintd_simulator::{JobModel, TraceFacts, TraceJob, TraceShape, generate, write_json, write_swim};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What to do with a trace.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Draw a trace that looks like Facebook's of 2010
    #[command(after_help = "Examples:\n  hintctl trace generate --jobs 2000 --span-s 7200 -o jobs.tsv.gz\n  \
        hintctl trace generate --jobs 200 --format json --seed 7 -o jobs.jsonl\n\n\
        Sizes follow the quantiles of SWIM's FB-2010 sample. The same command writes the same bytes; a name that ends\n\
        in .gz is packed. FB-2010 itself has 24,442 jobs in 86,400 s.")]
    Generate(GenerateArgs),
    /// Read a trace through and say what is in it
    #[command(after_help = "Examples:\n  hintctl trace check FB-2010.tsv.gz\n  \
        hintctl --json trace check jobs.jsonl --skip-bad\n\n\
        Exit code 2 if a line is bad, and its number; with --skip-bad bad lines are counted.")]
    Check(CheckArgs),
}

/// What to draw.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    jobs: u32,
    /// Mean time from the first submission to the last, seconds [default: 3.5 for each job, as in FB-2010]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    span_s: Option<u64>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name input paths, a third of them read again by later jobs
    #[arg(long)]
    paths: bool,
    /// How it is written
    #[arg(long, value_enum, default_value_t = FormatArg::Swim)]
    format: FormatArg,
    /// The file; .gz: packed
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    replace: ReplaceArg,
}

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// SWIM's rows
    Swim,
    /// JSON lines
    Json,
}

/// What to read.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The trace: SWIM's rows or JSON lines, gzip or not
    file: PathBuf,
    #[command(flatten)]
    options: TraceArgs,
}

#[derive(Serialize)]
struct Checked<'a> {
    file: &'a Path,
    #[serde(flatten)]
    facts: &'a TraceFacts,
}

/// FB-2010 has 24,442 jobs in 86,400 s.
const GAP_MS: u64 = 3_535;

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for a trace that can't be read, [`Failure::Work`] for a file that can't be written.
pub fn run(command: &TraceCommand, output: Output) -> Result<(), Failure> {
    match command {
        TraceCommand::Generate(args) => {
            args.replace.write_with(&args.output, |file| write(args, BufWriter::new(file)))?;
            check(
                &args.output,
                TraceFacts::read(unpacked(&args.output)?, Default::default(), &JobModel::default()),
                output,
            )
        }
        TraceCommand::Check(args) => {
            let facts = TraceFacts::read(unpacked(&args.file)?, args.options.options(), &JobModel::default());
            check(&args.file, facts, output)
        }
    }
}

fn write(args: &GenerateArgs, mut file: impl Write) -> io::Result<()> {
    let span = args.span_s.map_or(Micros::from_millis(GAP_MS.saturating_mul(args.jobs.into())), Micros::from_secs);
    let jobs = generate(&TraceShape { jobs: args.jobs, span, paths: args.paths, seed: args.seed });
    let put = |out: &mut dyn Write| match args.format {
        FormatArg::Swim => write_swim(&jobs, out),
        FormatArg::Json => write_json(&jobs.iter().cloned().map(TraceJob::from).collect::<Vec<_>>(), out),
    };
    if args.output.extension().is_some_and(|end| end == "gz") {
        let mut packed = GzEncoder::new(file, Compression::default());
        put(&mut packed)?;
        packed.finish()?.flush()
    } else {
        put(&mut file)?;
        file.flush()
    }
}

fn check(file: &Path, facts: Result<TraceFacts, hintd_simulator::TraceError>, output: Output) -> Result<(), Failure> {
    let facts = facts.map_err(|error| in_trace(file, error))?;
    if let Some(warning) = skipped(file, &facts) {
        output.progress(&warning);
    }
    output.result(&Checked { file, facts: &facts }, || text(file, &facts))
}

fn text(file: &Path, facts: &TraceFacts) -> String {
    let amount = |bytes: u64| output::bytes(bytes as f64);
    output::pairs(&[
        ("trace", file.display().to_string()),
        ("format", facts.format.map_or("", |format| format.as_str()).to_owned()),
        ("jobs", facts.jobs.to_string()),
        ("submitted", format!("from {} s to {} s", facts.first_submit_s, facts.last_submit_s)),
        ("maps", format!("{} under the job model", facts.maps)),
        ("reduces", format!("{} under the job model", facts.reduces)),
        ("input", amount(facts.input_bytes)),
        ("shuffle", amount(facts.shuffle_bytes)),
        ("output", amount(facts.output_bytes)),
    ])
}
