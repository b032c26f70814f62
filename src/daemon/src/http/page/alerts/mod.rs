//! Prometheus's alerts of this daemon on the page: those that its own gauges tell are judged here, with the same rules; of
//! the others it is said that Prometheus judges them.
//!
//! # Code map
//! - `rules`: what deploy/ has, and the runbook; `expression`: the part of PromQL that is judged; `samples`: what is exported.

mod expression;
mod rules;
mod samples;

use expression::Expression;
use rules::{Rule, rules};
use samples::{Labels, Sample, samples};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Series of one rule that are watched and shown.
const SERIES_MAX: usize = 32;

/// Since when rules have been true. Time is an argument.
#[derive(Debug)]
pub(super) struct AlertBook {
    rules: Vec<(Rule, Expression)>,
    /// By rule: series that it is true of, since when, and their values.
    is_true: Vec<BTreeMap<Labels, Firing>>,
}

/// An alert that fires, for the head of the page.
#[derive(Debug, Serialize)]
pub(super) struct AlertBrief {
    name: String,
    severity: String,
}

#[derive(Debug, Clone, Copy)]
struct Firing {
    since_ms: u64,
    value: f64,
}

/// All rules, as they are now.
#[derive(Debug, Serialize)]
pub(super) struct AlertsDocument {
    at_ms: u64,
    rules: Vec<RuleView>,
}

#[derive(Debug, Serialize)]
struct RuleView {
    name: String,
    severity: String,
    expression: String,
    for_ms: u64,
    /// What is so while it fires, with the rule's templates in the place of figures.
    summary: String,
    description: String,
    runbook_url: String,
    runbook: String,
    /// here, in_part, by_prometheus
    judged: &'static str,
    /// firing, pending (true, and not for long enough), quiet; no_series: what it is about is not exported, for the daemon
    /// has nothing of the kind; unknown: see `judged`.
    state: &'static str,
    series: Vec<SeriesView>,
}

#[derive(Debug, Serialize)]
struct SeriesView {
    summary: String,
    true_for_ms: u64,
    firing: bool,
}

impl AlertBook {
    pub(super) fn new() -> Self {
        let with_expression = |rule: Rule| {
            let expression = rule.expression();
            (rule, expression)
        };
        let rules: Vec<_> = rules().into_iter().map(with_expression).collect();
        Self { is_true: vec![BTreeMap::new(); rules.len()], rules }
    }

    /// Looks at what is exported now.
    pub(super) fn look(&mut self, exported: &str, now_ms: u64) {
        let samples = samples(exported);
        self.take(&samples, now_ms);
    }

    fn take(&mut self, samples: &[Sample], now_ms: u64) {
        for ((_, expression), known) in self.rules.iter().zip(&mut self.is_true) {
            let judged = expression.judge(samples).into_iter().take(SERIES_MAX);
            *known = judged
                .map(|(labels, value)| {
                    let since_ms = known.get(&labels).map_or(now_ms, |firing| firing.since_ms);
                    (labels, Firing { since_ms, value })
                })
                .collect();
        }
    }

    /// Rules that have fired for what was seen last, the worst first.
    pub(super) fn firing(&self, now_ms: u64) -> Vec<AlertBrief> {
        let rules = self.rules.iter().zip(&self.is_true);
        let fires = |rule: &Rule, known: &BTreeMap<Labels, Firing>| {
            known.values().any(|firing| now_ms.saturating_sub(firing.since_ms) >= millis(rule.lasting))
        };
        let mut found: Vec<AlertBrief> = rules
            .filter(|((rule, _), known)| fires(rule, known))
            .map(|((rule, _), _)| AlertBrief { name: rule.name.clone(), severity: rule.severity.clone() })
            .collect();
        found.sort_by(|a, b| (&a.severity, &a.name).cmp(&(&b.severity, &b.name)));
        found
    }

    /// Looks, and says how all rules are.
    pub(super) fn document(&mut self, exported: &str, now_ms: u64) -> AlertsDocument {
        let samples = samples(exported);
        self.take(&samples, now_ms);
        let rules = self.rules.iter().zip(&self.is_true);
        let rules = rules.map(|((rule, expression), known)| view(rule, expression, known, (&*samples, now_ms)));
        AlertsDocument { at_ms: now_ms, rules: rules.collect() }
    }
}

fn view(
    rule: &Rule,
    expression: &Expression,
    known: &BTreeMap<Labels, Firing>,
    (samples, now_ms): (&[Sample], u64),
) -> RuleView {
    let for_ms = millis(rule.lasting);
    let series: Vec<SeriesView> = known
        .iter()
        .map(|(labels, firing)| {
            let true_for_ms = now_ms.saturating_sub(firing.since_ms);
            let summary = filled(&rule.summary, labels, firing.value);
            SeriesView { summary, true_for_ms, firing: true_for_ms >= for_ms }
        })
        .collect();
    let judged = match expression.can_be_judged() {
        (true, _) => "here",
        (_, true) => "in_part",
        _ => "by_prometheus",
    };
    let state = match (series.iter().any(|one| one.firing), series.is_empty()) {
        (true, _) => "firing",
        (false, false) => "pending",
        _ if judged == "by_prometheus" => "unknown",
        _ if !expression.has_series(samples) => "no_series",
        _ => "quiet",
    };
    RuleView {
        name: rule.name.clone(),
        severity: rule.severity.clone(),
        expression: rule.text.clone(),
        for_ms,
        summary: here(&rule.summary),
        description: rule.description.clone(),
        runbook_url: rule.runbook_url.clone(),
        runbook: rule.runbook.clone(),
        judged,
        state,
        series,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A summary without the words that say which instance it is: it is this one.
fn here(summary: &str) -> String {
    summary.replace(" on {{ $labels.instance }}", "").replace(" of {{ $labels.instance }}", "")
}

/// A summary with what Prometheus's templates stand for.
fn filled(summary: &str, labels: &Labels, value: f64) -> String {
    let summary = here(summary);
    let mut rest = &*summary;
    let mut found = String::new();
    while let Some((before, after)) = rest.split_once("{{") {
        found.push_str(before);
        let Some((template, after)) = after.split_once("}}") else { return found };
        found.push_str(&stands_for(template.trim(), labels, value));
        rest = after;
    }
    found.push_str(rest);
    found
}

fn stands_for(template: &str, labels: &Labels, value: f64) -> String {
    if let Some(label) = template.strip_prefix("$labels.") {
        return labels.get(label).cloned().unwrap_or_default();
    }
    match template.split('|').nth(1).map(str::trim) {
        Some("humanizeDuration") if value.is_finite() => {
            let span = Duration::from_secs_f64(value.clamp(0.0, 1e12));
            if value < 1.0 { format!("{} ms", span.as_millis()) } else { format!("{} s", span.as_secs()) }
        }
        Some("humanizePercentage") => format!("{:.1} %", 100.0 * value),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const CUT: &str = "hintd_routes{state=\"cut\"} 3\nhintd_routes{state=\"broken\"} 0\nhintd_sdn_connected 1\n";

    fn at(book: &mut AlertBook, exported: &str, now_s: u64) -> Value {
        serde_json::to_value(book.document(exported, now_s * 1_000)).unwrap()
    }

    fn rule<'v>(document: &'v Value, name: &str) -> &'v Value {
        let rules = document["rules"].as_array().unwrap();
        rules.iter().find(|rule| rule["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn a_rule_that_is_true_waits_for_its_time_and_then_fires_and_is_quiet_again() {
        let mut book = AlertBook::new();
        let cut = at(&mut book, CUT, 100);
        assert_eq!(
            (&rule(&cut, "HintdPairsCut")["state"], &rule(&cut, "HintdChainsBroken")["state"]),
            (&json!("pending"), &json!("quiet"))
        );
        book.look(CUT, 150_000);
        assert_eq!(rule(&at(&mut book, CUT, 219), "HintdPairsCut")["state"], "pending", "two minutes it takes");
        assert!(book.firing(219_000).is_empty());
        let cut = at(&mut book, CUT, 220);
        assert_eq!(json!(book.firing(220_000)), json!([{ "name": "HintdPairsCut", "severity": "page" }]));
        let cut = rule(&cut, "HintdPairsCut");
        assert_eq!(
            (&cut["state"], &cut["severity"], &cut["judged"]),
            (&json!("firing"), &json!("page"), &json!("here"))
        );
        assert_eq!(cut["series"][0]["summary"], "hintd knows of pairs of hosts that should talk and have no path: 3");
        assert_eq!(cut["summary"], "hintd knows of pairs of hosts that should talk and have no path: {{ $value }}");
        assert!(cut["runbook"].as_str().unwrap().contains("hintctl links --down"));
        // A moment in which it is not true begins it anew.
        book.look("hintd_routes{state=\"cut\"} 0\n", 221_000);
        assert_eq!(rule(&at(&mut book, CUT, 222), "HintdPairsCut")["state"], "pending");
    }

    #[test]
    fn what_is_not_exported_is_not_judged_and_what_looks_back_is_prometheuss() {
        let mut book = AlertBook::new();
        let found = at(&mut book, CUT, 0);
        assert_eq!(rule(&found, "HintdControllerAway")["state"], "quiet");
        assert_eq!(rule(&found, "HintdNameNodeSilent")["state"], "no_series");
        let slow = rule(&found, "HintdSlow");
        assert_eq!((&slow["state"], &slow["judged"]), (&json!("unknown"), &json!("by_prometheus")));
        let away = at(&mut book, "hintd_sdn_connected 0\nhintd_store_healthy 0\n", 1);
        assert_eq!(rule(&away, "HintdControllerAway")["state"], "pending");
        let journal = rule(&away, "HintdJournalUnwritable");
        assert_eq!((&journal["state"], &journal["judged"]), (&json!("pending"), &json!("in_part")));
    }

    #[test]
    fn labels_and_values_stand_in_summaries_whatever_they_hold() {
        let labels = Labels::from([("queue".to_owned(), "{{ $value }}<b>".to_owned())]);
        let text = filled(
            "{{ $labels.queue }} of {{ $labels.instance }}: {{ $value | humanizePercentage }}, {{ $value }}",
            &labels,
            0.25,
        );
        assert_eq!(text, "{{ $value }}<b>: 25.0 %, 0.25");
        assert_eq!(filled("for {{ $value | humanizeDuration }}", &Labels::new(), 65.0), "for 65 s");
        assert_eq!(filled("{{ open", &Labels::new(), 1.0), "");
    }

    #[test]
    fn series_of_a_rule_are_bounded() {
        let many: String = (0..500).map(|at| format!("hintd_worth_ratio_low{{queue=\"q{at}\"}} 2\n")).collect();
        let found = at(&mut AlertBook::new(), &many, 0);
        assert_eq!(rule(&found, "HintdHintsHarm")["series"].as_array().unwrap().len(), SERIES_MAX);
    }
}
