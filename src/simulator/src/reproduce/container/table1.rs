//! `container-table1`: sums of run times of `container` against YARN's default placement (Table I, Figures 7 and 8).

use super::workload::{DISK, GAP_S, ITERATIONS, Model, RATE, SLOTS, UNIT, WORKERS, Workload, dataset, testbed};
use crate::gangs::{GangApp, GangReport, GangRun, GangSettings, simulate};
use crate::reproduce::experiment::texts;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_policy::Place;
use hintd_policy::baselines::capacity::Capacity;
use hintd_policy::container::Container;
use std::error::Error;

const NAME: &str = "container-table1";

/// How full the cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Five applications: 60 of 64 containers.
    High,
    /// Three: 36.
    Mid,
}

impl Load {
    const ALL: [Self; 2] = [Self::High, Self::Mid];

    const fn name(self) -> &'static str {
        match self {
            Self::High => "high load",
            Self::Mid => "mid load",
        }
    }

    const fn apps(self) -> u64 {
        match self {
            Self::High => 5,
            Self::Mid => 3,
        }
    }
}

/// Table I, percent.
const fn paper(workload: Workload, load: Load) -> f64 {
    match (workload, load) {
        (Workload::KMeans, Load::High) => 39.0,
        (Workload::KMeans, Load::Mid) => 40.0,
        (Workload::ConnectedComponents, Load::High) => 67.0,
        (Workload::ConnectedComponents, Load::Mid) => 45.0,
    }
}

/// The experiment.
pub const TABLE1: Experiment = Experiment {
    name: NAME,
    paper: "001 (Renner), §V",
    figure: "Table I: sum of run times, container against YARN's default",
    settings,
    quick_s: 5,
    full_s: 5,
    rows: &rows_of,
};

fn settings(_: Scale) -> Vec<(String, String)> {
    let mb = |rate: f64| format!("{:.0} MB/s", rate / 1e6);
    let gb = |workload: Workload| workload.messages().as_f64() / 1e9;
    texts([
        ("cluster", format!("8 nodes in 4 racks, two core switches, 1 Gbit/s hosts, 200 Mbit/s for each of a rack's two uplinks; {SLOTS} containers of 1 vcore and {} MB each (§V); one disk of {} a node (SATA, §V; rate assumed)", UNIT.memory_mb(), mb(DISK.as_f64()))),
        ("load", format!("5 (high) or 3 (mid) applications, {GAP_S} s apart, each of an ApplicationMaster and {WORKERS} workers (§V); each a dataset of its own, three replicas of a block, one in a rack, two in another, drawn by seed")),
        ("placement", "the ApplicationMaster by YARN's default in both systems; workers by container with calibrated weights, or by capacity, whose asks name no hosts: Flink's ApplicationMaster asks for containers anywhere (§II: neither topology nor data are taken into account)".to_owned()),
        ("job model, all rows", format!("read the input, then {ITERATIONS} iterations (Flink's examples' number; §V says none), each of computing over the input at {} a container (the common job model's rate) and then sending its messages from all workers to all, uncombined; a phase begins when the one before has ended for all", mb(RATE))),
        ("messages of an iteration", format!("K-means: for each of 600 M points centre, coordinates, count, 28 bytes: {:.1} GB; Connected Components: for each of 1.468 G edges, both ways, vertex and component, 16 bytes: {:.1} GB; the same in every iteration", gb(Workload::KMeans), gb(Workload::ConnectedComponents))),
        ("reading", "a worker takes blocks one by one, those on its node first, else the first left, from its rack if a replica is there; readers share a node's disk".to_owned()),
        ("network", "max-min fair flows, one for each pair of workers, on one of the two equal paths by seed; what stays on a node takes no time".to_owned()),
        ("improvement", "1 - sum of run times under container / sum under YARN's default, from submission to end".to_owned()),
    ])
}

/// Both scales are the paper's: it is small.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    let mut beside = Vec::new();
    for (workload, load) in Workload::ALL.into_iter().flat_map(|workload| Load::ALL.map(|load| (workload, load))) {
        let title = format!("{}, {}", workload.name(), load.name());
        (context.progress)(&format!("{NAME}: {title}"));
        let measure = |model: Model| context.per_seed(|seed| measured(workload, load, &model, seed));
        let base = measure(Model::default())?;
        let values = |value: fn(&Measured) -> f64, of: &[Measured]| of.iter().map(value).collect::<Vec<f64>>();
        rows.push(Row::at_least(&title, paper(workload, load), "%", values(Measured::improvement, &base))?);
        let mut note = |what: &str, unit: &str, values| -> Result<(), ReproduceError> {
            beside.push(Row::without_figure(&format!("{title}: {what}"), unit, values)?);
            Ok(())
        };
        note("sum of run times, YARN's default", "s", values(|one| one.capacity.sum_s, &base))?;
        note("sum of run times, container", "s", values(|one| one.container.sum_s, &base))?;
        note("bytes between racks, YARN's default", "GB", values(|one| one.capacity.cross_rack / 1e9, &base))?;
        note("bytes between racks, container", "GB", values(|one| one.container.cross_rack / 1e9, &base))?;
        let named = "improvement over capacity whose asks name the blocks' hosts";
        note(named, "%", values(|one| one.container.improves(&one.named), &base))?;
        for (what, model) in variations(workload) {
            let other = measure(model)?;
            note(&format!("improvement, {what}"), "%", values(Measured::improvement, &other))?;
        }
    }
    rows.extend(beside);
    Ok(rows)
}

/// What else the model could be.
fn variations(workload: Workload) -> Vec<(&'static str, Model)> {
    let base = Model::default();
    let mut all = vec![
        ("half the compute rate", Model { rate: RATE / 2.0, ..base }),
        ("double the compute rate", Model { rate: RATE * 2.0, ..base }),
        ("work and messages halve with each iteration", Model { decay: 0.5, ..base }),
    ];
    if workload == Workload::KMeans {
        all.push(("messages combined to five centres before they are sent", Model { combine: true, ..base }));
    }
    all
}

/// One seed's sums.
struct Measured {
    container: Sums,
    capacity: Sums,
    /// YARN's default where asks name hosts, as MapReduce's do.
    named: Sums,
}

struct Sums {
    sum_s: f64,
    cross_rack: f64,
}

impl Sums {
    fn of(report: &GangReport) -> Self {
        let cross_rack = report.apps.iter().map(|app| app.cross_rack.as_f64() + app.cross_rack_read.as_f64()).sum();
        Self { sum_s: report.apps.iter().map(|app| app.completion_s()).sum(), cross_rack }
    }

    /// Percent of the other's run times that are saved.
    fn improves(&self, other: &Self) -> f64 {
        (1.0 - self.sum_s / other.sum_s) * 100.0
    }
}

impl Measured {
    fn improvement(&self) -> f64 {
        self.container.improves(&self.capacity)
    }
}

fn measured(workload: Workload, load: Load, model: &Model, seed: u64) -> Result<Measured, ReproduceError> {
    let all = || -> Result<Measured, Box<dyn Error + Send + Sync>> {
        let sample = testbed()?;
        let app = |number| model.app(workload, number, dataset(&sample, workload, 1_000 * seed + number));
        let apps: Vec<GangApp> = (0..load.apps()).map(app).collect();
        let run = |placer: &dyn Place, tell_inputs| -> Result<Sums, Box<dyn Error + Send + Sync>> {
            let settings = GangSettings { seed, tell_inputs, ..GangSettings::default() };
            Ok(Sums::of(&simulate(&GangRun { cluster: &sample.snapshot, placer, settings }, &apps)?))
        };
        Ok(Measured {
            container: run(&Container::default(), true)?,
            capacity: run(&Capacity::default(), false)?,
            named: run(&Capacity::default(), true)?,
        })
    };
    all().map_err(|source| ReproduceError::Failed { entry: NAME.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_applications_in_racks_of_their_own_exchange_nothing_between_racks() {
        let one = measured(Workload::ConnectedComponents, Load::Mid, &Model::default(), 3).unwrap();
        // What is left is input: half the blocks have no replica in a given rack.
        let input = 3.0 * Workload::ConnectedComponents.input().as_f64();
        assert!(one.container.cross_rack < 0.7 * input, "{}", one.container.cross_rack);
        assert!(one.capacity.cross_rack > 0.7 * 3.0 * 10.0 * Workload::ConnectedComponents.messages().as_f64());
        assert!(one.improvement() > 0.0);
    }

    #[test]
    fn without_messages_placement_gains_nothing() {
        let model = Model { combine: true, ..Model::default() };
        let one = measured(Workload::KMeans, Load::High, &model, 1).unwrap();
        assert!(one.improvement().abs() < 10.0, "{}", one.improvement());
    }

    #[test]
    fn the_order_of_seeds_and_runs_says_nothing() {
        let sums = |seed| {
            let one = measured(Workload::KMeans, Load::Mid, &Model::default(), seed).unwrap();
            (one.container.sum_s, one.capacity.sum_s, one.named.sum_s)
        };
        let first = sums(1);
        assert_ne!(sums(2), first);
        assert_eq!(sums(1), first);
    }
}
