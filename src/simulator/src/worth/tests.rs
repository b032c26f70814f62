//! The measure on small made-up runs.

use super::*;

/// A run of jobs that took so long.
fn run(jobs_s: &[f64]) -> RunFigures {
    let mean_s = jobs_s.iter().sum::<f64>() / jobs_s.len() as f64;
    let most = jobs_s.iter().copied().fold(0.0, f64::max);
    RunFigures {
        mean_s,
        median_s: jobs_s[jobs_s.len() / 2],
        p95_s: most,
        makespan_s: 2.0 * most,
        cross_rack_bytes: (mean_s * 1e9) as u64,
        never_fit: 0,
        hints: None,
        wall_s: 0.0,
        jobs_s: jobs_s.to_vec(),
    }
}

/// A cell of three seeds whose completions are ten times as long from seed to seed: a pair of two seeds shows.
fn cell(ratios: &[[f64; 3]], free: f64, phases: [f64; 3]) -> CellWorth {
    let alone: Vec<RunFigures> = [10.0, 100.0, 1_000.0].map(|s| run(&[s, s, s])).into();
    let times = |ratios: [f64; 3]| -> Vec<RunFigures> {
        alone
            .iter()
            .zip(ratios)
            .map(|(run, ratio)| self::run(&run.jobs_s.iter().map(|s| s * ratio).collect::<Vec<_>>()))
            .collect()
    };
    let hinted: Vec<Vec<RunFigures>> = ratios.iter().map(|&ratios| times(ratios)).collect();
    let (free, phases) = (times([free; 3]), times(phases));
    let refs = CellRuns {
        alone: alone.iter().map(Some).collect(),
        phases: phases.iter().map(Some).collect(),
        free: free.iter().map(Some).collect(),
        hinted: hinted.iter().map(|runs| runs.iter().map(Some).collect()).collect(),
    };
    CellWorth::of(&refs).unwrap()
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} where {expected} is expected");
}

fn answer(cells: &[CellWorth], jobs: u64) -> Answer {
    let names: Vec<String> = (0..cells.len()).map(|at| format!("cell {at}")).collect();
    let variants: Vec<String> = (0..cells[0].hinted.len()).map(|at| format!("policy {at}")).collect();
    let asked = Asked { cells, names: &names, variants: &variants, jobs, seeds: 3, runs: 12, missing: 0 };
    asked.answer()
}

#[test]
fn a_pair_is_compared_job_by_job() {
    let alone = run(&[10.0, 100.0, 20.0, 2.0]);
    // Job 0 by more than both bounds; job 1 by 4 s, but 4 %; job 2 faster; job 3 by 45 %, but 0.9 s.
    let own = run(&[15.0, 104.0, 1.0, 2.9]);
    let pair = Pair::of(&own, &alone, Some(&run(&[5.0, 50.0, 10.0, 1.0]))).unwrap();
    near(pair.slower_share, 0.25);
    near(pair.slowest, 1.5);
    near(pair.mean, 122.9 / 132.0);
    near(pair.won_back.unwrap(), (132.0 - 122.9) / 66.0);
    let same = Pair::of(&alone, &alone, None).unwrap();
    assert_eq!((same.slower_share, same.slowest, same.won_back), (0.0, 1.0, None));
    assert_eq!(Pair::of(&run(&[1.0]), &alone, None), Err(PairError::Jobs { own: 1, its: 4 }));
}

#[test]
fn won_back_is_the_share_of_what_the_network_costs() {
    let pair = |own: f64, free: f64| Pair::of(&run(&[own]), &run(&[100.0]), Some(&run(&[free]))).unwrap().won_back;
    near(pair(75.0, 50.0).unwrap(), 0.5);
    near(pair(100.0, 50.0).unwrap(), 0.0);
    near(pair(50.0, 50.0).unwrap(), 1.0);
    near(pair(150.0, 50.0).unwrap(), -1.0);
    assert_eq!(pair(90.0, 100.0), None, "a network that costs nothing");
}

#[test]
fn seeds_are_paired_with_their_own_run_alone() {
    let cell = cell(&[[0.5, 0.8, 0.9]], 0.4, [1.0, 1.01, 0.99]);
    let row = cell.hinted[0].as_ref().unwrap();
    for (ratio, expected) in row.mean_by_seed.iter().zip([0.5, 0.8, 0.9]) {
        near(ratio.unwrap(), expected);
    }
    near(row.mean.median, 0.8);
    near(row.mean.min, 0.5);
    near(row.mean.max, 0.9);
    near(row.won_back.unwrap().median, 0.2 / 0.6);
    near(cell.network_cost.unwrap().median, 0.6);
    near(cell.phases.as_ref().unwrap().slower_share.max, 0.0);
}

#[test]
fn chance_is_as_wide_as_runs_that_differ_in_nothing_else() {
    assert_eq!(chance_95(&[]), None);
    assert_eq!(chance_95(&[1.0; 5]), Some([1.0, 1.0]));
    // Five seeds, each a tenth off in logarithms: 2.571 x 1.2533 x 0.1 / the root of 5.
    let ratios = [0.1_f64, -0.1, 0.1, -0.1, 0.1].map(f64::exp);
    let [low, high] = chance_95(&ratios).unwrap();
    near(high.ln(), 2.571 * 1.2533 * 0.1 / 5.0_f64.sqrt());
    near(low * high, 1.0);
}

#[test]
fn where_the_network_costs_little_nothing_is_won_back() {
    let cell = cell(&[[0.9; 3]], 0.96, [1.0; 3]);
    assert_eq!(cell.hinted[0].as_ref().unwrap().won_back, None);
    let given = answer(&[cell], 100);
    assert_eq!(given.verdict, Verdict::NothingToWin);
    assert!(given.sentence.contains("less than 5 %") && given.sentence.contains("4 % at most"), "{}", given.sentence);
}

#[test]
fn a_missing_run_leaves_its_pair_out() {
    let (alone, own) = (run(&[10.0]), run(&[5.0]));
    let runs = CellRuns {
        alone: vec![Some(&alone), Some(&alone), None],
        phases: vec![None; 3],
        free: vec![None; 3],
        hinted: vec![vec![Some(&own), None, Some(&own)]],
    };
    let cell = CellWorth::of(&runs).unwrap();
    let row = cell.hinted[0].as_ref().unwrap();
    assert_eq!(row.mean_by_seed, [Some(0.5), None, None]);
    assert_eq!((cell.network_cost, cell.phases.is_none(), row.slower_beyond_phases), (None, true, None));
}

#[test]
fn the_geometric_mean_is_over_costly_cells_and_the_worst_cell_over_all() {
    let cells = [cell(&[[0.5; 3]], 0.4, [1.0; 3]), cell(&[[0.98; 3]], 0.7, [1.0; 3]), cell(&[[1.5; 3]], 0.9, [1.0; 3])];
    let counted = Counted::of(&cells);
    assert_eq!(counted.cells, [0, 1]);
    let overall = Overall::of(&cells, &counted, |cell| cell.hinted[0].as_ref());
    near(overall.mean.unwrap().median, 0.7);
    assert_eq!(overall.worst_cell_at, Some(2));
    near(overall.worst_cell.unwrap(), 1.5);
    near(overall.slowest.unwrap(), 1.5);
    near(overall.slower_beyond_phases.unwrap(), 1.0);
    let given = answer(&cells, 100);
    assert_eq!((given.verdict, given.best), (Verdict::Worth, Some(0)));
    for words in ["0.70 (0.70 to 0.70)", "more than 20 % (2 of 3 cells)", "slower elsewhere: 1.50 in cell 2", "3 seeds"]
    {
        assert!(given.sentence.contains(words), "{words}: {}", given.sentence);
    }
}

#[test]
fn the_answer_says_where_there_is_none() {
    let good = cell(&[[0.8; 3], [0.7; 3]], 0.5, [1.0; 3]);
    let given = answer(std::slice::from_ref(&good), 100);
    assert_eq!((given.verdict, given.best), (Verdict::Worth, Some(1)));
    let short = answer(std::slice::from_ref(&good), 29);
    assert_eq!(short.verdict, Verdict::CannotTell);
    assert!(short.sentence.contains("29 jobs") && short.sentence.contains("0.70 to 0.70"), "{}", short.sentence);
    let harm = answer(&[cell(&[[1.3; 3], [1.0; 3]], 0.99, [1.0; 3])], 100);
    assert!(harm.sentence.ends_with("Slower than YARN alone: policy 0 (1.30 in cell 0)."), "{}", harm.sentence);
    let by_chance = answer(&[cell(&[[0.97; 3]], 0.5, [0.96, 1.0, 1.01])], 100);
    assert_eq!(by_chance.verdict, Verdict::NoGain);
    assert!(by_chance.sentence.contains("0.96 to 1.01"), "{}", by_chance.sentence);
    let scattered = answer(&[cell(&[[0.7, 0.9, 1.1]], 0.5, [1.0; 3])], 100);
    assert_eq!(scattered.verdict, Verdict::CannotTell);
    assert!(scattered.sentence.contains("0.70 to 1.10"), "{}", scattered.sentence);
    let asked = Asked {
        cells: &[good],
        names: &[],
        variants: &["a".into(), "b".into()],
        jobs: 99,
        seeds: 3,
        runs: 12,
        missing: 5,
    };
    assert_eq!(asked.answer().sentence, "No answer yet: 7 of 12 runs are there.");
}

#[test]
fn links_are_faster_and_nothing_else_changes() {
    let cluster = crate::shape::Shipped::find("nas-40").unwrap().shape().unwrap().to_cluster().unwrap();
    let free = without_bottlenecks(&cluster);
    let [slow, fast] = [&cluster, &free].map(|cluster| cluster.snapshot.topology.network.as_ref().unwrap());
    assert!(
        slow.links().zip(fast.links()).all(|((_, a), (_, b))| b.capacity.0 == 1_000 * a.capacity.0 && a.name == b.name)
    );
    assert_eq!((cluster.containers, cluster.container), (free.containers, free.container));
}

/// YARN alone with eight jobs, all its phases drawn by `phases`.
fn simulated(phases: Option<u64>) -> Vec<f64> {
    let cluster = crate::shape::Shipped::find("nas-40").unwrap().shape().unwrap().to_cluster().unwrap();
    let jobs = "abcdefgh".chars().enumerate().map(|(at, name)| {
        let (input, bytes) = (hintd_model::units::Bytes(700 << 20), hintd_model::units::Bytes(300 << 20));
        let (submit, none) = (hintd_model::units::Micros::from_secs(3 * at as u64), None);
        let (name, shuffle, output, maps, reduces) = (name.to_string().into(), bytes, bytes, None, None);
        let (input_path, user, map_time, reduce_time) = (None, None, none, none);
        Ok(crate::TraceJob {
            name,
            submit,
            input,
            shuffle,
            output,
            input_path,
            blocks: None,
            user,
            maps,
            reduces,
            map_time,
            reduce_time,
            earlier: crate::Earlier::Untold,
        })
    });
    let settings = crate::SimSettings { seed: 7, phase_seed: phases, ..crate::SimSettings::default() };
    let drawn_by = crate::SimSettings { seed: settings.seed_of_phases(), ..settings.clone() };
    let deployed = crate::deployed::Deployed::new(&cluster, None, &drawn_by);
    let run = crate::yarn::SimRun {
        cluster: &cluster,
        model: &crate::JobModel::default(),
        settings: &settings,
        policy: "capacity",
        dispatch: &deployed,
        places: None,
    };
    let mut on = |_: crate::yarn::Progress| std::ops::ControlFlow::Continue(());
    crate::yarn::simulate(&run, &mut { jobs }, &mut on).unwrap().jct_s
}

#[test]
fn phases_have_a_seed_of_their_own_where_one_is_given() {
    let usual = simulated(None);
    assert_eq!(usual, simulated(Some(7)), "the seed of all else");
    assert_ne!(usual, simulated(Some(8)));
}
