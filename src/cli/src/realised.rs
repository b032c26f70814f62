//! What a decision's hints were to gain and what came of that, in words. They are two quantities: what is expected is time, or whatever
//! the policy places by; what is realised is bytes, for of one job nobody can tell the time.

use super::output;
use hintd_client::wire::v1;

/// Where the time that hints save is told, for of one job nobody can tell it.
const TIME: &str = "whether the job ended sooner nobody can tell of one job: hintctl holdout list compares hinted jobs with held-out ones, where \
                    worth.holdout is set; hintctl doctor (gain) has the bytes of all decisions of a queue";

/// Costs that are compared, and their words.
const COSTS: [(&str, &str); 2] = [("cross_rack_bytes", "between racks"), ("remote_bytes", "of input from other hosts")];

/// Below one block of HDFS (128 MiB, `dfs.blocksize` as Hadoop ships it) a share says nothing: where a single task came to decides it.
/// The engine tells no share of less either (`engine/src/adherence/lately.rs`); a test holds both to the same.
const ENOUGH_BYTES: f64 = 134_217_728.0;

/// What `expected_gain` is a share of.
pub(super) fn objective(set: &v1::HintSet) -> String {
    match set.terms.as_ref().is_some_and(|terms| terms.parts.contains_key("busiest_link_s")) {
        true => "of the time until its busiest link is done".to_owned(),
        false => format!("of what {} places by", set.policy),
    }
}

/// Three lines; `None`: there are no hints that could gain anything, or none that YARN was told of.
pub(super) fn text(set: &v1::HintSet, outcome: Option<&v1::DecisionOutcome>) -> Option<String> {
    if set.hints.is_empty() || set.mode() != v1::Mode::On {
        return None;
    }
    let realised = match outcome {
        None => "realised gain not known: what became of its containers is not kept, or was never seen".to_owned(),
        Some(outcome) if !outcome.settled => {
            let awaited: u64 = outcome.hints.iter().map(|hint| hint.open).sum();
            let are = if awaited == 1 { "is" } else { "are" };
            let awaited = output::count(awaited, "container");
            format!("realised gain not known yet: {awaited} {are} awaited; it is worked out once all were seen")
        }
        Some(outcome) => realised(outcome),
    };
    Some(format!("{}\n{realised}\n{TIME}", expected(set)))
}

fn expected(set: &v1::HintSet) -> String {
    match set.expected_gain {
        None => "expected gain not known".to_owned(),
        Some(gain) => format!("expected gain: {} % {}", output::digits(gain * 100.0), objective(set)),
    }
}

fn realised(outcome: &v1::DecisionOutcome) -> String {
    let compared = COSTS.iter().filter_map(|(term, words)| {
        let found = outcome.terms.iter().find(|found| found.term == *term)?;
        Some(cost(found, words))
    });
    let compared: Vec<String> = compared.collect();
    match compared.as_slice() {
        [] => "realised gain not known: its bytes are not known, or not all of its containers were seen".to_owned(),
        compared => format!("realised gain, of bytes and not of time: {}", compared.join("; ")),
    }
}

/// `1.34 GB between racks, where YARN alone has 3 GB (55 % saved), 0 B as hinted`
fn cost(found: &v1::TermOutcome, words: &str) -> String {
    let [realised, hinted] = [found.realised, found.hinted].map(output::bytes);
    let by_yarn = match found.default_placement {
        None => "what YARN alone makes of it is not known".to_owned(),
        Some(default) if default < 1.0 && found.realised < 1.0 => "as by YARN alone".to_owned(),
        Some(default) if default.max(found.realised) < ENOUGH_BYTES => {
            format!("where YARN alone has {} (too few bytes to tell: less than a block)", output::bytes(default))
        }
        Some(default) if default < 1.0 => "where YARN alone has none".to_owned(),
        Some(default) if default < ENOUGH_BYTES => format!("where YARN alone has {}", output::bytes(default)),
        Some(default) => {
            let saved = (default - found.realised) / default;
            let share = match saved < 0.0 {
                true => format!("{} more", output::percent(-saved)),
                false => format!("{} saved", output::percent(saved)),
            };
            format!("where YARN alone has {} ({share})", output::bytes(default))
        }
    };
    format!("{realised} {words}, {by_yarn}, {hinted} as hinted")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> v1::HintSet {
        let terms = v1::Terms { parts: [("busiest_link_s".to_owned(), 1.0)].into(), ..v1::Terms::default() };
        v1::HintSet {
            policy: "joint".into(),
            mode: v1::Mode::On.into(),
            hints: vec![v1::Hint::default()],
            expected_gain: Some(0.733),
            terms: Some(terms),
            ..v1::HintSet::default()
        }
    }

    fn settled(terms: Vec<v1::TermOutcome>) -> v1::DecisionOutcome {
        v1::DecisionOutcome { settled: true, terms, ..v1::DecisionOutcome::default() }
    }

    fn term(term: &str, hinted: f64, realised: f64, default_placement: Option<f64>) -> v1::TermOutcome {
        v1::TermOutcome { term: term.into(), hinted, realised, default_placement }
    }

    #[test]
    fn what_was_gained_stands_beside_what_was_expected() {
        let terms = vec![
            term("cross_rack_bytes", 1e9, 1.5e9, Some(3e9)),
            term("remote_bytes", 0.0, 4e9, Some(2e9)),
            term("core_hops", 1.0, 2.0, Some(3.0)),
        ];
        let said = text(&set(), Some(&settled(terms))).unwrap();
        assert!(
            said.starts_with(
                "expected gain: 73.3 % of the time until its busiest link is done\nrealised gain, of bytes and not of time: 1.5 GB \
                 between racks, where YARN alone has 3 GB (50 % saved), 1 GB as hinted; 4 GB of input from other hosts, where YARN \
                 alone has 2 GB (100 % more), 0 B as hinted\nwhether the job ended sooner"
            ),
            "{said}"
        );
        let none = text(&set(), Some(&settled(vec![term("remote_bytes", 0.0, 5e9, Some(0.0))]))).unwrap();
        assert!(none.contains("5 GB of input from other hosts, where YARN alone has none, 0 B as hinted"), "{none}");
    }

    #[test]
    fn the_engine_calls_as_many_bytes_enough() {
        let engine = include_str!("../../engine/src/adherence/lately.rs");
        let mut lines = engine.lines().filter_map(|line| line.strip_prefix("const ENOUGH_BYTES: f64 = "));
        let value: f64 = lines.next().unwrap().trim_end_matches(';').replace('_', "").parse().unwrap();
        assert_eq!(value.to_bits(), ENOUGH_BYTES.to_bits());
    }

    #[test]
    fn of_less_than_a_block_no_share_is_said() {
        let said = |realised: f64, default: f64| {
            text(&set(), Some(&settled(vec![term("cross_rack_bytes", 0.0, realised, Some(default))]))).unwrap()
        };
        let few = said(67.0, 50.0);
        assert!(
            few.contains("67 B between racks, where YARN alone has 50 B (too few bytes to tell: less than a block)"),
            "{few}"
        );
        assert!(!few.contains("more,") && !few.contains("more)"), "{few}");
        assert!(said(134_217_727.0, 0.0).contains("too few bytes to tell"));
        let grew = said(2e9, 67.0);
        assert!(grew.contains("2 GB between racks, where YARN alone has 67 B, 0 B as hinted"), "{grew}");
        let enough = said(134_217_728.0, 134_217_728.0 * 2.0);
        assert!(enough.contains("(50 % saved)"), "{enough}");
    }

    #[test]
    fn a_gain_that_is_not_known_says_why_and_where_it_will_be() {
        let hint = v1::HintOutcome { open: 7, ..v1::HintOutcome::default() };
        let open = v1::DecisionOutcome { settled: false, hints: vec![hint], terms: vec![] };
        let said = |outcome: Option<&v1::DecisionOutcome>| text(&set(), outcome).unwrap();
        assert!(said(Some(&open)).contains("realised gain not known yet: 7 containers are awaited"));
        assert!(said(Some(&settled(vec![]))).contains("realised gain not known: its bytes are not known"));
        assert!(
            said(None).contains("what became of its containers is not kept") && said(None).contains("holdout list")
        );
        assert_eq!(text(&v1::HintSet { hints: vec![], ..set() }, None), None);
        assert_eq!(text(&v1::HintSet { mode: v1::Mode::Shadow.into(), ..set() }, None), None);
        let other = v1::HintSet { expected_gain: None, ..set() };
        assert!(text(&other, None).unwrap().starts_with("expected gain not known\nrealised gain not known: "));
        let by_cost = v1::HintSet { terms: None, ..set() };
        assert!(text(&by_cost, None).unwrap().starts_with("expected gain: 73.3 % of what joint places by\n"));
    }
}
