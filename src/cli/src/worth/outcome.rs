//! The measure over the runs that are there: what `--json` prints, and what table, page and plot are made of.

use super::super::failure::Failure;
use super::super::simulate::{ClusterView, HoldView, ModelView, SettingsView, describe_counters, describe_hold};
use super::hinted_view::HintedView;
use super::matrix::{ClusterCase, Matrix, Runs};
use super::variants::Variant;
use super::without::{self, ChangeFigures};
use hintd_simulator::worth::{Answer, Asked, CellRuns, CellWorth, Counted, Overall, Row, Spread, chance_95};
use hintd_simulator::{FlowGrain, SimSettings};
use serde::Serialize;
use std::collections::BTreeMap;

/// The document.
#[derive(Debug, Serialize)]
pub(super) struct Outcome<'a> {
    format: &'static str,
    version: &'static str,
    /// Whether every run is there.
    pub(super) complete: bool,
    /// Runs that belong to it.
    pub(super) runs: usize,
    /// Of these, runs that are not there.
    pub(super) runs_missing: usize,
    clusters: Vec<PlaceView<'a>>,
    pub(super) job_model: ModelView,
    pub(super) loads: &'a [f64],
    pub(super) seeds: usize,
    /// Share of recurring jobs and how far earlier runs are off, where a lever knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    recurring: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_error: Option<f64>,
    /// In place of both, where the trace tells earlier runs: jobs at its beginning that were learnt from.
    #[serde(skip_serializing_if = "Option::is_none")]
    learn: Option<u64>,
    /// How receivers are held, where a lever holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<HoldView>,
    /// Parameters by policy, as its `[policies.NAME]` would give them.
    policies: BTreeMap<&'a str, &'a str>,
    pub(super) cells: Vec<CellView<'a>>,
    /// The cells that the means below are over.
    pub(super) counted: Counted,
    /// YARN alone under other phases, over all cells: what chance does.
    pub(super) other_phases: Overall,
    /// Between what the mean above lies by chance alone, in 95 of 100 cases.
    chance_95: Option<[f64; 2]>,
    /// What hints, over all cells.
    pub(super) overall: Vec<HintedView<'a, Overall>>,
    /// What each part of the fullest lever is worth; empty where none was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<HintedView<'a, ChangeFigures>>,
    /// What each lie costs; empty where earlier runs were told right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lies: Vec<HintedView<'a, ChangeFigures>>,
    #[serde(flatten)]
    pub(super) answer: Answer,
    /// What people are told of clusters, job model and settings.
    #[serde(skip)]
    pub(super) assumptions: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
struct PlaceView<'a> {
    #[serde(flatten)]
    cluster: ClusterView<'a>,
    settings: SettingsView,
}

/// One cell.
#[derive(Debug, Serialize)]
pub(super) struct CellView<'a> {
    pub(super) name: &'a str,
    trace: String,
    cluster: &'a str,
    pub(super) load: f64,
    pub(super) jobs: u64,
    /// Of them those of which the trace tells an earlier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<u64>,
    input_bytes: u64,
    shuffle_bytes: u64,
    pub(super) alone_mean_s: Option<Spread>,
    pub(super) network_cost: Option<Spread>,
    pub(super) other_phases: Option<Row>,
    chance_95: Option<[f64; 2]>,
    pub(super) no_network: Option<Row>,
    pub(super) hinted: Vec<HintedView<'a, Option<Row>>>,
}

/// A row of every cell, before its figures.
#[derive(Clone)]
struct Named<'a> {
    policy: &'a str,
    lever: &'static str,
    without: Option<&'static str>,
    lie: Option<&'static str>,
    name: String,
}

impl<'a> Named<'a> {
    fn with<T>(&self, figures: T) -> HintedView<'a, T> {
        let &Self { policy, lever, without, lie, .. } = self;
        HintedView { policy, lever, without, lie, name: self.name.clone(), figures }
    }
}

impl<'a> Outcome<'a> {
    /// Of these runs.
    ///
    /// # Errors
    /// [`Failure::Work`] if runs of a cell had not the same jobs, or none.
    pub(super) fn of(matrix: &'a Matrix, runs: &Runs) -> Result<Self, Failure> {
        let worth = (0..matrix.cells.len()).map(|cell| of_cell(matrix, runs, cell));
        let worth: Vec<CellWorth> = worth.collect::<Result<_, _>>()?;
        let counted = Counted::of(&worth);
        let hinted = hinted(matrix);
        let overall = hinted
            .iter()
            .enumerate()
            .map(|(at, named)| named.with(Overall::of(&worth, &counted, |cell| cell.hinted[at].as_ref())));
        let overall: Vec<_> = overall.collect();
        let (parts, lies) = without::parts(&overall, &worth).into_iter().partition(|part| part.lie.is_none());
        let other_phases = Overall::of(&worth, &counted, |cell| cell.phases.as_ref());
        let answer = answer(matrix, runs, &worth);
        let learn = matrix.learn();
        let drawn = matrix.history().filter(|_| learn.is_none());
        let (all, missing) = runs.counts();
        Ok(Self {
            format: "hintd.worth/1",
            version: env!("CARGO_PKG_VERSION"),
            complete: missing == 0,
            runs: all,
            runs_missing: missing,
            clusters: matrix.places.iter().map(PlaceView::of).collect(),
            job_model: ModelView::of(&matrix.model),
            loads: &matrix.loads,
            seeds: matrix.seeds.len(),
            recurring: drawn.map(|(share, _)| share),
            history_error: drawn.map(|(_, error)| error),
            learn,
            hold: matrix.hold().as_ref().map(HoldView::of),
            policies: matrix.policies.iter().map(|policy| (policy.name, policy.params.as_str())).collect(),
            cells: worth.into_iter().enumerate().map(|(at, cell)| CellView::of(matrix, at, cell, &hinted)).collect(),
            counted,
            chance_95: chance_95(&other_phases.mean_by_seed.iter().flatten().copied().collect::<Vec<_>>()),
            other_phases,
            overall,
            parts,
            lies,
            answer,
            assumptions: assumptions(matrix),
        })
    }
}

/// Policy and lever of each hinting variant, what is left out, and all of it in words.
fn hinted(matrix: &Matrix) -> Vec<Named<'_>> {
    let named = |variant: &Variant| {
        let (policy, lever, without, lie) = match *variant {
            Variant::Hinted(policy, lever) => (policy, matrix.levers[lever], None, None),
            Variant::Without(policy, part) => (Some(policy), matrix.fullest(), Some(matrix.parts[part].name), None),
            Variant::Lied(policy, lever, lie) => {
                (Some(policy), matrix.levers[lever], None, Some(matrix.lies[lie].name))
            }
            Variant::Alone | Variant::Phases | Variant::Free => return None,
        };
        let (policy, name) = (matrix.policy_name(policy), matrix.variant_name(*variant));
        Some(Named { policy, lever: lever.name, without, lie, name })
    };
    matrix.variants.iter().filter_map(named).collect()
}

fn of_cell(matrix: &Matrix, runs: &Runs, cell: usize) -> Result<CellWorth, Failure> {
    let mut of = CellRuns::default();
    for (at, variant) in matrix.variants.iter().enumerate() {
        let by_seed = runs.of(cell, at);
        match variant {
            Variant::Alone => of.alone = by_seed,
            Variant::Phases => of.phases = by_seed,
            Variant::Free => of.free = by_seed,
            Variant::Hinted(..) | Variant::Without(..) | Variant::Lied(..) => of.hinted.push(by_seed),
        }
    }
    CellWorth::of(&of).map_err(|error| Failure::work(format!("{}: {error}", matrix.cells[cell].name)))
}

fn answer(matrix: &Matrix, runs: &Runs, cells: &[CellWorth]) -> Answer {
    let names: Vec<String> = matrix.cells.iter().map(|cell| cell.name.clone()).collect();
    // What leaves parts out, or lies, is for tables of its own; it comes last.
    let hinted = matrix.variants.iter().filter(|variant| matches!(variant, Variant::Hinted(..)));
    let variants: Vec<String> = hinted.map(|&variant| matrix.variant_name(variant)).collect();
    let (runs, missing) = runs.counts();
    let jobs = matrix.cells.iter().map(|cell| cell.trace.facts.jobs).min().unwrap_or(0);
    let seeds = matrix.seeds.len();
    Asked { cells, names: &names, variants: &variants, jobs, seeds, runs, missing }.answer()
}

/// Clusters, job model and settings in words.
fn assumptions(matrix: &Matrix) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for place in &matrix.places {
        let (cluster, settings) = (&place.cluster, &place.settings);
        let statics = &cluster.cluster.snapshot.statics;
        let (racks, nodes, containers) = (statics.racks.len(), statics.len(), cluster.containers());
        let grain = match settings.grain {
            FlowGrain::Racks => "racks",
            FlowGrain::Nodes => "nodes",
        };
        lines.push(("cluster", format!("{}: {racks} racks, {nodes} nodes, {containers} containers", cluster.name)));
        let SimSettings { heartbeat, users, replicas, fetches, master_delay, rack_delay, .. } = settings;
        let (heartbeat, master) = (heartbeat.as_secs_f64(), master_delay.as_secs_f64());
        lines.push((
            "settings",
            format!(
                "heartbeat {heartbeat} s, first ask after {master} s, rack delay {rack_delay}, {users} users, {replicas} \
                 replicas, {fetches} fetches a reduce, traffic by {grain}{}",
                describe_counters(settings)
            ),
        ));
    }
    if let Some(hold) = matrix.hold() {
        lines.push(("hold", describe_hold(&hold)));
    }
    if let Some((share, error)) = matrix.history() {
        let known = match matrix.learn() {
            Some(learn) => learnt(matrix, learn),
            None => {
                format!("{share} of the jobs recur; an earlier run is known but for factors of 1/{error} to {error}")
            }
        };
        lines.push(("history", known));
    }
    let model: Vec<String> = matrix.model.describe().iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.push(("job model", model.join("; ")));
    lines
}

/// How much the jobs before those that are run tell of them; the same at each load.
fn learnt(matrix: &Matrix, learn: u64) -> String {
    let mut told: Vec<String> = Vec::new();
    for cell in &matrix.cells {
        let (facts, name) = (&cell.trace.facts, cell.trace.path.file_name().unwrap_or_default().to_string_lossy());
        let of = format!("of {} jobs of {name} {} have one", facts.jobs, facts.known);
        if !told.contains(&of) {
            told.push(of);
        }
    }
    format!(
        "the {learn} jobs before those that are run: the last that read a path is the earlier run of jobs that read it; {}",
        told.join(", ")
    )
}

impl<'a> PlaceView<'a> {
    fn of(place: &'a ClusterCase) -> Self {
        Self { cluster: ClusterView::of(&place.cluster), settings: SettingsView::of(&place.settings, true) }
    }
}

impl<'a> CellView<'a> {
    fn of(matrix: &'a Matrix, at: usize, worth: CellWorth, hinted: &[Named<'a>]) -> Self {
        let cell = &matrix.cells[at];
        let facts = &cell.trace.facts;
        let rows = hinted.iter().zip(worth.hinted);
        Self {
            name: &cell.name,
            trace: cell.trace.path.display().to_string(),
            cluster: &matrix.places[cell.place].cluster.name,
            load: cell.load,
            jobs: facts.jobs,
            known: cell.trace.options.learn.map(|_| facts.known),
            input_bytes: facts.input_bytes,
            shuffle_bytes: facts.shuffle_bytes,
            alone_mean_s: worth.alone_mean_s,
            network_cost: worth.network_cost,
            other_phases: worth.phases,
            chance_95: worth.chance_95,
            no_network: worth.free,
            hinted: rows.map(|(named, figures)| named.with(figures)).collect(),
        }
    }
}
