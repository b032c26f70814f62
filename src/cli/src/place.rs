//! `hintctl place`: one placement, offline, by the daemon's own code.

use super::failure::Failure;
use super::output::Output;
use super::{answers, files, policy};
use clap::Args;
use hintd::server::convert;
use hintd_engine::arrivals::ArrivedView;
use hintd_engine::generation::{HeldByAttempt, Releases};
use hintd_engine::history::HistoryView;
use hintd_engine::{Generation, Mode, PlacerSettings, Refusal, SelectedPolicy, propose};
use hintd_model::cluster::document::{ClusterDocument, RequestDocument};
use hintd_model::cluster::{HintRequest, Overlay, Snapshot};
use hintd_model::units::{Micros, Timestamp};
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::fallbacks::DEFAULT_FALLBACKS;
use hintd_policy::{Policy, registry};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What to place where.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl place --cluster cluster.json --request job.toml --policy container\n  \
    hintctl snapshot -o now.json && hintctl place --cluster now.json --request job.json\n  \
    hintctl --json place --cluster c.json --request r.json --policy spread --seed 7\n\n\
    File formats: docs/formats.md. The same files, policy, seed and steps give the same placement.")]
pub struct PlaceArgs {
    /// The cluster, .json or .toml; a snapshot of a daemon is one
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// The request, .json or .toml; -: standard input
    #[arg(long, value_name = "FILE")]
    request: PathBuf,
    /// The policy [default: the request's, else joint, as the daemon's]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Seed of the search [default: the request's, else 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Steps the search may take
    #[arg(long, default_value_t = DEFAULT_STEPS)]
    steps: u64,
    /// Next best hosts named beside each hint's
    #[arg(long, default_value_t = DEFAULT_FALLBACKS)]
    fallbacks: usize,
}

/// The default placement.
const BASELINE: &str = "capacity";
/// A fixed seed: the same command prints the same answer.
const DEFAULT_SEED: u64 = 1;

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for files and names that are wrong, or a request that no such cluster could answer;
/// [`Failure::Work`] where there is no room and the request would rather fail.
pub fn run(args: &PlaceArgs, output: Output) -> Result<(), Failure> {
    if let Some(name) = &args.policy {
        policy::check(name)?;
    }
    let cluster: ClusterDocument = files::read(&args.cluster)?;
    let now = now();
    let (snapshot, leases) = cluster.to_snapshot(now).map_err(|problems| files::problems(&args.cluster, &problems))?;
    let mut request = read_request(&args.request)?;
    let name = args.policy.clone().or_else(|| request.policy.as_deref().map(str::to_owned));
    let name = name.unwrap_or_else(|| registry::DEFAULT.to_owned());
    policy::check(&name).map_err(|failure| Failure::in_file(&args.request, format!("policy: {failure}")))?;
    request.seed = args.seed.or(request.seed).or(Some(DEFAULT_SEED));

    let generation = generation(snapshot, leases);
    let chosen = registry::with_defaults(&name).expect("checked above");
    chosen.prepare();
    let baseline = registry::with_defaults(BASELINE).expect("the registry has it");
    let settings = PlacerSettings { steps: args.steps, fallbacks: args.fallbacks, ..PlacerSettings::default() };
    let began = Instant::now();
    let mut decision = decide(&generation, request, &*chosen, &*baseline, &settings, now)
        .map_err(|refusal| refused(&args.request, &refusal))?;
    decision.elapsed = Micros(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    let mut set = convert::hint_set(&decision);
    set.decision_id.clear(); // nothing was remembered: there is nothing to explain
    output.answer(&set, answers::text)
}

/// Reads a request file.
///
/// # Errors
/// [`Failure::Input`] with every problem of the file.
pub fn read_request(path: &Path) -> Result<HintRequest, Failure> {
    let (document, path): (RequestDocument, &Path) = match path == Path::new("-") {
        true => (files::read_stdin()?, Path::new(files::STDIN)),
        false => (files::read(path)?, path),
    };
    document.to_request().map_err(|problems| files::problems(path, &problems))
}

fn decide(
    generation: &Generation,
    request: HintRequest,
    chosen: &dyn Policy,
    baseline: &dyn Policy,
    settings: &PlacerSettings,
    now: Timestamp,
) -> Result<hintd_engine::Decision, Refusal> {
    let chosen = SelectedPolicy { policy: chosen, baseline, mode: Mode::On, name: chosen.name() };
    // Steps bound the search, not time: the answer must not depend on the machine.
    let proposal = propose(generation, &Arc::new(request), &chosen, settings, now, &mut || false)?;
    Ok(proposal.preview())
}

fn generation(snapshot: Arc<Snapshot>, leases: Overlay) -> Generation {
    Generation {
        number: 0,
        snapshot,
        scans: Arc::default(),
        leases,
        held: HeldByAttempt::default(),
        arrived: ArrivedView::default(),
        history: HistoryView::default(),
        releases: Releases::default(),
        plan: None,
        stopped: Arc::default(),
        flows: Arc::default(),
    }
}

fn refused(request: &Path, refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::Full { .. } | Refusal::Unavailable { .. } | Refusal::DeadlineExceeded(_) => Failure::work(refusal),
        _ => Failure::in_file(request, refusal),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
