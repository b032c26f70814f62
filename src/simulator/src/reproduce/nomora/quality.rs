//! `nomora-quality`: performance of jobs under random placement, load spreading and `nomora` (Figure 5).

use super::run::{Outcome, System, run};
use super::workload::described;
use crate::reproduce::experiment::texts;
use crate::reproduce::hit::systems::failed;
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};

const NAME: &str = "nomora-quality";

/// The experiment.
pub const QUALITY: Experiment = Experiment {
    name: NAME,
    paper: "003 (Popescu and Moore), §6.1",
    figure: "Figure 5: average application performance (area under 1 − CDF) by policy",
    settings,
    quick_s: 30,
    full_s: 3_600,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    texts(described(scale))
}

/// As the paper names them, and what is beyond it.
const SYSTEMS: [(&str, System); 9] = [
    ("random", System::RANDOM),
    ("spread", System::SPREAD),
    ("nomora (105, 110)", System::nomora(105, 110)),
    ("nomora (110, 115)", System::nomora(110, 115)),
    ("nomora (105, 110), preemption, β = time run", System::nomora(105, 110).with_moves(1.0)),
    ("nomora (105, 110), preemption, β = 0", System::nomora(105, 110).with_moves(0.0)),
    ("nomora (1000, 1000), root and workers together", System::nomora(1_000, 1_000).together()),
    ("preemption, β = time run, moved tasks begin anew", System::nomora(105, 110).with_moves(1.0).anew()),
    ("preemption, β = 0, moved tasks begin anew", System::nomora(105, 110).with_moves(0.0).anew()),
];

const RANDOM: usize = 0;
const SPREAD: usize = 1;
const NOMORA: usize = 2;
const WIDER: usize = 3;
const BETA: usize = 4;
const FREE: usize = 5;
const TOGETHER: usize = 6;
const BETA_ANEW: usize = 7;
const FREE_ANEW: usize = 8;

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut runs: Vec<Vec<Outcome>> = Vec::new();
    for (name, system) in SYSTEMS {
        (context.progress)(&format!("{NAME}: {name}"));
        runs.push(context.per_seed(|seed| run(system, context.scale, seed).map_err(|error| failed(NAME, error)))?);
    }
    let values = |at: usize, value: fn(&Outcome) -> f64| runs[at].iter().map(value).collect::<Vec<f64>>();
    let area = |at: usize| values(at, Outcome::area);
    let gain = |at: usize, over: usize| area(at).iter().zip(area(over)).map(|(a, b)| a - b).collect::<Vec<f64>>();
    let order =
        [("free migration", area(FREE)), ("nomora", area(NOMORA)), ("random", area(RANDOM)), ("spread", area(SPREAD))];
    let mut rows = vec![
        Row::at_least("nomora (105, 110): area above random's", 13.0, "points", gain(NOMORA, RANDOM))?,
        Row::at_least("nomora (105, 110): area above spread's", 13.4, "points", gain(NOMORA, SPREAD))?,
        Row::at_least("free migration: area above random's", 42.4, "points", gain(FREE, RANDOM))?,
        // The paper's 0.4 points between random and spread are within its own noise: neither looks at latency.
        Row::order("order of areas, random", Better::Higher, &[order[0].clone(), order[1].clone(), order[2].clone()])?,
        Row::order("order of areas, spread", Better::Higher, &[order[0].clone(), order[1].clone(), order[3].clone()])?,
        // Beyond the paper, whose roots go anywhere.
        Row::at_least("root and workers together: area", 60.2, "%", area(TOGETHER))?.beside(),
    ];
    let paper = [47.2, 46.8, 60.2, 51.85, 59.0, 89.6];
    for ((at, (name, _)), paper) in SYSTEMS.iter().enumerate().zip(paper) {
        rows.push(Row::at_least(&format!("{name}: area"), paper, "%", area(at))?.beside());
    }
    // What the paper's moves would come to if they were not free.
    for at in [BETA_ANEW, FREE_ANEW] {
        let name = SYSTEMS[at].0;
        rows.push(Row::without_figure(&format!("{name}: area less what was lost"), "%", area(at))?);
        rows.push(Row::without_figure(&format!("{name}: tasks' time lost"), "%", values(at, |run| run.lost))?);
    }
    for at in [NOMORA, WIDER, BETA, FREE, TOGETHER] {
        let name = SYSTEMS[at].0;
        rows.push(Row::without_figure(&format!("{name}: mean wait"), "s", values(at, |run| run.waited_s))?);
    }
    rows.push(Row::at_most("β = time run: tasks moved a round", 0.022, "%", values(BETA, |run| run.moved))?.beside());
    rows.push(Row::at_most("β = 0: tasks moved a round", 7.1, "%", values(FREE, |run| run.moved))?.beside());
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::run::run_for;
    use super::*;

    /// Short enough for a test: the cluster fills, and what runs may move four times.
    const SPAN_S: u64 = 1_200;

    #[test]
    fn policies_keep_the_papers_order_on_the_same_jobs() {
        let area = |at: usize| {
            let found = run_for(SYSTEMS[at].1, Scale::Quick, 1, SPAN_S).unwrap();
            println!("{}: {:.1} %, {found:?}", SYSTEMS[at].0, found.area());
            found.area()
        };
        let [random, spread, nomora, free, together] = [RANDOM, SPREAD, NOMORA, FREE, TOGETHER].map(area);
        assert!(free > nomora && together > nomora, "{free} {together} {nomora}");
        assert!(nomora > random + 10.0 && nomora > spread + 10.0, "{nomora} {random} {spread}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let of = |system| {
            let twice = || run_for(system, Scale::Quick, 2, 600).unwrap();
            assert_eq!(twice(), twice());
            twice()
        };
        let (still, moves) = (of(System::nomora(105, 110)), of(System::nomora(105, 110).with_moves(0.0)));
        assert_eq!(still.moved, 0.0);
        assert!(moves.moved > 0.0 && still.performance.len() == moves.performance.len());
    }

    #[test]
    fn a_move_costs_what_the_task_has_done_where_it_begins_anew() {
        let [free, paid, rarely] = [FREE, FREE_ANEW, BETA_ANEW].map(|at| {
            let found = run_for(SYSTEMS[at].1, Scale::Quick, 1, SPAN_S).unwrap();
            println!("{}: {:.1} %, lost {:.2} %", SYSTEMS[at].0, found.area(), found.lost);
            found
        });
        assert!(free.lost == 0.0 && free.moved > 0.0);
        assert!(paid.lost > 1.0 && paid.area() < free.area(), "{} {} {}", paid.lost, paid.area(), free.area());
        // Who counts what a task has run moves few, and young ones.
        assert!(rarely.lost < paid.lost, "{} {}", rarely.lost, paid.lost);
    }
}
