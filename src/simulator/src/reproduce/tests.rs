//! The harness held by toy experiments: real ones would prove a paper, not the harness.

use super::*;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// Measures `base` + seed % 3, and `base` × 2 with the toy assumption changed.
#[derive(Clone, Copy)]
struct Toy {
    name: &'static str,
    base: f64,
    rows: fn(&Toy, Vec<f64>) -> Result<Vec<Row>, RowError>,
}

impl Toy {
    fn experiment(self) -> Experiment {
        let rows = move |_: &'static str, context: &RunContext<'_>| {
            let values = context.per_seed(|seed| Ok(self.base + (seed % 3) as f64))?;
            Ok((self.rows)(&self, values)?)
        };
        Experiment {
            name: self.name,
            paper: "000 (Toy)",
            figure: "Fig. 0: gain | order",
            settings: |scale| vec![("hosts".to_owned(), if scale == Scale::Quick { "8" } else { "600" }.to_owned())],
            quick_s: 1,
            full_s: 60,
            rows: Box::leak(Box::new(rows)), // a test's few bytes
        }
    }
}

fn gain(_: &Toy, values: Vec<f64>) -> Result<Vec<Row>, RowError> {
    Ok(vec![Row::at_least("gain", 20.0, "%", values)?])
}

fn gain_and_assumption(toy: &Toy, values: Vec<f64>) -> Result<Vec<Row>, RowError> {
    let doubled = values.iter().map(|value| value * 2.0).collect();
    let mut rows = gain(toy, values)?;
    rows.push(Row::assumption(&rows[0], "rate x 2", doubled)?);
    Ok(rows)
}

const GOOD: Toy = Toy { name: "toy-good", base: 20.0, rows: gain };
const WEAK: Toy = Toy { name: "toy-weak", base: 10.0, rows: gain };
const EXPLAINED: Toy = Toy { name: "toy-explained", base: 10.0, rows: gain_and_assumption };
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

fn run_with(toys: &[Experiment], scale: Scale, seeds: &[u64]) -> Result<Report, ReproduceError> {
    let threads = NonZeroUsize::new(2).unwrap();
    let toys: Vec<&Experiment> = toys.iter().collect();
    run(&toys, &RunContext { scale, seeds, threads, progress: &|_| {}, kept: None })
}

fn verdict_of(toy: &Toy) -> Verdict {
    run_with(&[toy.experiment()], Scale::Full, &SEEDS).unwrap().entries[0].verdict
}

#[test]
fn verdicts_are_computed_from_the_rows() {
    assert_eq!(verdict_of(&GOOD), Verdict::Reached);
    assert_eq!(verdict_of(&WEAK), Verdict::Short);
    assert_eq!(verdict_of(&EXPLAINED), Verdict::Explained);
    assert_eq!(verdict_of(&Toy { base: 5.0, ..EXPLAINED }), Verdict::Short, "the assumption does not reach it either");
    assert_eq!(verdict_of(&Toy { base: 20.0, ..EXPLAINED }), Verdict::Reached);
}

#[test]
fn two_shortfalls_need_one_and_the_same_assumption() {
    let toy = |rows| Toy { rows, ..WEAK };
    let apart = toy(|_, values| {
        let (a, b) = (Row::at_least("a", 20.0, "", values.clone())?, Row::at_most("b", 1.0, "", values)?);
        let x = Row::assumption(&a, "x", vec![30.0; 5])?;
        let y = Row::assumption(&b, "y", vec![0.5; 5])?;
        Ok(vec![a, b, x, y])
    });
    assert_eq!(verdict_of(&apart), Verdict::Short);
    let together = toy(|_, values| {
        let (a, b) = (Row::at_least("a", 20.0, "", values.clone())?, Row::at_most("b", 1.0, "", values)?);
        let x = Row::assumption(&a, "x", vec![30.0; 5])?;
        let y = Row::assumption(&b, "x", vec![0.5; 5])?;
        Ok(vec![a, b, x, y])
    });
    assert_eq!(verdict_of(&together), Verdict::Explained);
}

#[test]
fn rows_beside_decide_nothing() {
    let toy =
        Toy { rows: |_, values| Ok(vec![Row::at_least("gain at half rate", 99.0, "", values)?.beside()]), ..GOOD };
    let error = run_with(&[toy.experiment()], Scale::Quick, &SEEDS).unwrap_err();
    assert_eq!(error.to_string(), "toy-good: no row is a figure of the paper");
    let toy = Toy {
        rows: |toy, values| {
            let mut rows = gain(toy, values.clone())?;
            rows.push(Row::at_least("gain at half rate", 99.0, "", values)?.beside());
            Ok(rows)
        },
        ..GOOD
    };
    assert_eq!(verdict_of(&toy), Verdict::Reached);
}

#[test]
fn rows_without_a_figure_decide_nothing_and_show_a_dash() {
    fn links(toy: &Toy, values: Vec<f64>) -> Result<Vec<Row>, RowError> {
        let mut rows = gain(toy, values.clone())?;
        rows.push(Row::without_figure("links", "links", values)?);
        Ok(rows)
    }
    assert_eq!(verdict_of(&Toy { rows: links, ..GOOD }), Verdict::Reached);
    assert_eq!(verdict_of(&Toy { rows: links, ..WEAK }), Verdict::Short);
    let alone = Toy { rows: |_, values| Ok(vec![Row::without_figure("links", "links", values)?]), ..GOOD };
    let error = run_with(&[alone.experiment()], Scale::Quick, &SEEDS).unwrap_err();
    assert_eq!(error.to_string(), "toy-good: no row is a figure of the paper");

    let report = run_with(&[Toy { rows: links, ..GOOD }.experiment()], Scale::Full, &SEEDS).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let row = &json["entries"][0]["rows"][1];
    assert!(["paper_value", "reached", "direction"].iter().all(|key| row.get(key) == Some(&serde_json::Value::Null)));
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
    let page = render::markdown(&[report]);
    assert!(page.contains("\n| links | - | 21 | - | 20 | 22 | links | - | - |\n"), "{page}");
}

#[test]
fn full_scale_needs_five_seeds_and_every_row_all_of_them() {
    assert!(matches!(
        run_with(&[GOOD.experiment()], Scale::Full, &[1, 2, 3, 4]),
        Err(ReproduceError::Seeds { found: 4, .. })
    ));
    assert!(matches!(run_with(&[GOOD.experiment()], Scale::Quick, &[]), Err(ReproduceError::Seeds { found: 0, .. })));
    let toy = Toy { rows: |_, values| Ok(vec![Row::at_least("gain", 1.0, "", values[..1].to_vec())?]), ..GOOD };
    assert!(matches!(
        run_with(&[toy.experiment()], Scale::Full, &SEEDS),
        Err(ReproduceError::Values { found: 1, seeds: 5, .. })
    ));
}

#[test]
fn rows_that_hide_each_other_or_move_the_bar_are_refused() {
    let twice = Toy { rows: |toy, values| Ok([gain(toy, values.clone())?, gain(toy, values)?].concat()), ..GOOD };
    assert!(run_with(&[twice.experiment()], Scale::Quick, &SEEDS).unwrap_err().to_string().contains("two rows"));
    let lowered = Toy {
        rows: |toy, values| {
            let mut rows = gain_and_assumption(toy, values)?;
            rows[1].paper_value = Some(1.0);
            Ok(rows)
        },
        ..EXPLAINED
    };
    assert!(
        run_with(&[lowered.experiment()], Scale::Quick, &SEEDS).unwrap_err().to_string().contains("explains no figure")
    );
}

#[test]
fn the_json_has_the_keys_that_scripts_read_and_reads_back() {
    let report = run_with(&[EXPLAINED.experiment()], Scale::Full, &SEEDS).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["scale"], "full");
    let entry = &json["entries"][0];
    assert_eq!((&entry["entry"], &entry["paper"]), (&"toy-explained".into(), &"000 (Toy)".into()));
    assert_eq!((&entry["seeds"], &entry["verdict"]), (&5.into(), &"explained".into()));
    let row = &entry["rows"][0];
    assert_eq!((&row["name"], &row["unit"], &row["reached"]), (&"gain".into(), &"%".into(), &false.into()));
    assert_eq!((row["paper_value"].as_f64(), row["our_value"].as_f64()), (Some(20.0), Some(11.0)));
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
}

#[test]
fn a_report_edited_by_hand_is_refused() {
    let json = run_with(&[WEAK.experiment()], Scale::Full, &SEEDS).unwrap().to_json();
    let edited = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        Report::from_json(&json.replace(from, to)).expect_err(to)
    };
    assert!(matches!(edited("\"short\"", "\"reached\""), ReportError::Verdict { .. }));
    assert!(matches!(edited("\"reached\": false", "\"reached\": true"), ReportError::Row { .. }));
    assert!(matches!(edited("\"our_value\": 11.0", "\"our_value\": 21.0"), ReportError::Row { .. }));
    assert!(matches!(edited("\"seeds\": 5", "\"seeds\": 6"), ReportError::Rows(_)));
    assert!(matches!(edited("\"unit\"", "\"units\""), ReportError::Json(_)));
}

#[test]
fn every_honest_report_reads_back() {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 1e9
    };
    for seeds in [5, 6] {
        for _ in 0..500 {
            let values: Vec<f64> = (0..seeds).map(|_| next()).collect();
            let rows = vec![Row::at_least("gain", next(), "%", values).unwrap()];
            let verdict = if rows[0].reached == Some(true) { Verdict::Reached } else { Verdict::Short };
            let text = || String::from("toy");
            let entry = Entry { entry: text(), paper: text(), figure: text(), settings: vec![], seeds, rows, verdict };
            let report = Report { scale: Scale::Full, command: None, commit: None, entries: vec![entry] };
            Report::from_json(&report.to_json()).unwrap();
        }
    }
}

#[test]
fn seeds_run_in_parallel_and_answer_in_their_order() {
    let context = |threads| RunContext {
        scale: Scale::Quick,
        seeds: &SEEDS,
        threads: NonZeroUsize::new(threads).unwrap(),
        progress: &|_| {},
        kept: None,
    };
    for threads in [1, 3, 64] {
        assert_eq!(context(threads).per_seed(|seed| Ok(seed * 10)).unwrap(), [10, 20, 30, 40, 50]);
    }
    let failed = context(3).per_seed(|seed| match seed {
        2 | 4 => Err(ReproduceError::Rows { entry: seed.to_string(), problem: String::new() }),
        _ => Ok(seed),
    });
    assert!(matches!(failed, Err(ReproduceError::Rows { entry, .. }) if entry == "2"), "the first seed that failed");
}

#[test]
fn the_expected_time_is_said_before_a_run() {
    let said = Mutex::new(Vec::new());
    let progress = |line: &str| said.lock().unwrap().push(line.to_owned());
    let threads = NonZeroUsize::MIN;
    run(
        &[&GOOD.experiment()],
        &RunContext { scale: Scale::Full, seeds: &SEEDS, threads, progress: &progress, kept: None },
    )
    .unwrap();
    assert_eq!(*said.lock().unwrap(), ["toy-good: full, about 60 s"]);
}

#[test]
fn experiments_are_chosen_by_name_and_unknown_ones_named() {
    let all = [GOOD.experiment(), WEAK.experiment()];
    let names = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        select(&all, &wanted).map(|chosen| chosen.iter().map(|toy| toy.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).unwrap(), ["toy-good", "toy-weak"]);
    assert_eq!(names(&["toy-weak", "toy-weak"]).unwrap(), ["toy-weak"]);
    let error = names(&["nas"]).unwrap_err().to_string();
    assert_eq!(error, "no experiment is called \"nas\"; there are: toy-good, toy-weak");
    let error = names(&["toy-gold"]).unwrap_err().to_string();
    assert_eq!(error, "no experiment is called \"toy-gold\"; did you mean \"toy-good\"?");
    assert!(matches!(select(&[], &["nas".to_owned()]), Err(ReproduceError::Unknown { .. })));
}

#[test]
fn people_get_a_list_a_table_and_a_page() {
    assert_eq!(render::list(&[]), "no experiment is available in this version\n");
    assert!(render::list(&[GOOD.experiment()]).contains("toy-good"));

    let mut report = run_with(&[EXPLAINED.experiment()], Scale::Full, &SEEDS).unwrap();
    let text = render::text(&report);
    for expected in ["toy-explained: 000 (Toy), Fig. 0", "at least", "hosts: 600", "verdict: explained"] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    report.command = Some("hintctl reproduce toy-explained --scale full".to_owned());
    report.commit = Some("abc1234".to_owned());
    let page = render::markdown(&[Report::from_json(&report.to_json()).unwrap()]);
    for expected in [
        "\n## toy-explained: explained\n",
        "000 (Toy), Fig. 0: gain \\| order; full scale, 5 seeds.",
        "`hintctl reproduce toy-explained --scale full`, commit abc1234",
        "\n| gain | 20 | 11 | 0.55 | 10 | 12 | % | at least | no |\n",
        "\n| gain [rate x 2] | 20 | 22 | 1.1 | 20 | 24 | % | at least | yes |\n",
        "\n- hosts: 600\n",
    ] {
        assert!(page.contains(expected), "{expected} in\n{page}");
    }
}

#[test]
fn registered_experiments_have_names_of_their_own() {
    let names: Vec<_> = experiments().iter().map(|experiment| experiment.name).collect();
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn the_page_of_the_docs_is_generated_from_the_kept_reports() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("reproduction.md")).unwrap();
    let reports = kept(&docs).unwrap();
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.scale == Scale::Full && report.command.is_some()));
    assert_eq!(page, render::markdown(&reports));
}

#[test]
fn samples_are_not_kept_and_full_results_make_a_page() {
    let docs = tempfile::tempdir().unwrap();
    let seeds = [1, 2, 3, 4, 5];
    assert!(keep(docs.path(), &run_with(&[WEAK.experiment()], Scale::Quick, &seeds).unwrap()).is_err());
    let full = run_with(&[cross_layer::FAILURE], Scale::Full, &seeds).unwrap();
    let report = Report { command: Some("by hand".to_owned()), ..full };
    keep(docs.path(), &report).unwrap();
    assert_eq!(kept(docs.path()).unwrap(), [report]);
    let page = std::fs::read_to_string(docs.path().join("reproduction.md")).unwrap();
    assert!(page.contains("cross-layer-failure"));
    std::fs::write(docs.path().join("reproduction/cross-layer-failure.json"), "{}").unwrap();
    assert!(kept(docs.path()).is_err(), "what is not a report makes no page");
}
