//! The alerting rules that deploy/prometheus/alerts.yml has, and the runbook of each in docs/operations.md.

use super::expression::{Expression, read};
use crate::telemetry::metrics::{Kind, all};
use std::time::Duration;

const RULES: &str = include_str!("../../../../../../deploy/prometheus/alerts.yml");
const RUNBOOK: &str = include_str!("../../../../../../docs/operations.md");

/// One rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    pub(super) name: String,
    /// As Prometheus reads it.
    pub(super) text: String,
    /// It fires once it has been true for so long.
    pub(super) lasting: Duration,
    /// page, ticket
    pub(super) severity: String,
    /// With templates of Prometheus.
    pub(super) summary: String,
    pub(super) description: String,
    /// As the rule names it.
    pub(super) runbook_url: String,
    /// The section itself, as it is written.
    pub(super) runbook: String,
}

impl Rule {
    pub(super) fn expression(&self) -> Expression {
        let is_gauge = |name: &str| all().any(|metric| metric.name == name && metric.kind == Kind::Gauge);
        read(&self.text, is_gauge)
    }
}

/// Every rule, in the file's order.
pub(super) fn rules() -> Vec<Rule> {
    read_rules(RULES)
}

/// Rules of a file as ours is written: a key a line, texts in quotes or folded below `>-`.
fn read_rules(text: &str) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::new();
    let mut folding = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("- alert:") {
            let name = name.trim().to_owned();
            let runbook = section(RUNBOOK, &name).unwrap_or_default();
            found.push(Rule { name, runbook, ..Rule::default() });
            folding = false;
            continue;
        }
        let Some(rule) = found.last_mut() else { continue };
        let Some((key, value)) = key(line) else {
            if folding && !line.is_empty() {
                rule.text = format!("{} {line}", rule.text).trim_start().to_owned();
            }
            continue;
        };
        folding = false;
        match key {
            "expr" if value == ">-" => folding = true,
            "expr" => rule.text = value.to_owned(),
            "for" => rule.lasting = span(value),
            "labels" => rule.severity = value.trim_matches(['{', '}', ' ']).replace("severity: ", ""),
            "summary" => rule.summary = unquoted(value),
            "description" => rule.description = unquoted(value),
            "runbook_url" => rule.runbook_url = unquoted(value),
            _ => {}
        }
    }
    found
}

/// A line that has one of a rule's keys; the rest is folded text.
fn key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    const KEYS: [&str; 7] = ["expr", "for", "labels", "annotations", "summary", "description", "runbook_url"];
    KEYS.contains(&key).then(|| (key, value.trim()))
}

fn unquoted(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

/// Of seconds, minutes or hours; nothing else stands there.
fn span(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "h" => 3_600,
        "m" => 60,
        _ => 1,
    };
    Duration::from_secs(number.parse::<u64>().unwrap_or(0) * seconds)
}

/// What stands below a heading of the third level.
fn section(page: &str, heading: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("\n### {heading}\n"))?;
    let ends = ["\n## ", "\n### "].into_iter().filter_map(|next| rest.find(next)).min();
    Some(rest[..ends.unwrap_or(rest.len())].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_file_is_read_whole_and_has_its_runbook() {
        let rules = rules();
        assert_eq!(rules.len(), RULES.matches("- alert:").count());
        assert!(rules.len() > 20, "{}", rules.len());
        for rule in &rules {
            let Rule { name, text, severity, summary, description, runbook_url, runbook, .. } = rule;
            assert!(name.starts_with("Hintd") && !text.is_empty() && !text.contains(">-"), "{rule:?}");
            assert!(["page", "ticket"].contains(&severity.as_str()), "{rule:?}");
            assert!(!summary.is_empty() && !description.is_empty() && !summary.contains('"'), "{rule:?}");
            assert!(runbook_url.ends_with(&format!("operations.md#{}", name.to_lowercase())), "{rule:?}");
            assert!(runbook.len() > 60, "{rule:?}: docs/operations.md has no section of this name");
            assert!(!runbook.contains("\n#"), "{rule:?}");
        }
        let lasting = |name: &str| rules.iter().find(|rule| rule.name == name).unwrap().lasting.as_secs();
        assert_eq!((lasting("HintdDown"), lasting("HintdNoHeartbeats"), lasting("HintdHintsHarm")), (60, 30, 1_800));
        assert_eq!((lasting("HintdReloadRefused"), lasting("HintdRestartPending")), (0, 86_400));
    }

    #[test]
    fn those_that_gauges_tell_are_judged_here_and_only_those() {
        let rules = rules();
        let of = |wanted: (bool, bool)| {
            let found = rules.iter().filter(|rule| rule.expression().can_be_judged() == wanted);
            found.map(|rule| rule.name.trim_start_matches("Hintd")).collect::<Vec<_>>()
        };
        let here = [
            "OpenFiles",
            "PlacerStuck",
            "NoHeartbeats",
            "FeedStopped",
            "ResourceManagerSilent",
            "SettingsDisagree",
            "NameNodeSilent",
            "HistoryServerSilent",
            "NodesSilent",
            "HintsHarm",
            "HintsHarmMuch",
            "PlanExpired",
            "ReloadRefused",
            "RestartPending",
            "ControllerAway",
            "WatcherSilent",
            "LinkDown",
            "PairsCut",
            "ChainsBroken",
            "ChainsBypassed",
            "MiddleboxDown",
        ];
        assert_eq!(of((true, true)), here);
        assert_eq!(of((false, true)), ["JournalUnwritable", "JournalDiskFills"]);
        assert!(of((false, false)).contains(&"Down") && of((false, false)).contains(&"ModelStuck"));
    }
}
