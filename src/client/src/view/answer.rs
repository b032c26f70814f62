//! Answers and explanations: a container a hint, cost terms by name.

use super::{ended, in_order, mode};
use crate::wire::v1;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// One answer, as `place`, `request`, `whatif request` and `explain` print it, in this order.
#[derive(Serialize)]
struct Answer<'a> {
    /// Empty for what was computed offline.
    #[serde(skip_serializing_if = "str::is_empty")]
    decision_id: &'a str,
    request_id: &'a str,
    policy: &'a str,
    mode: &'static str,
    snapshot_version: u64,
    hints: Vec<ContainerHint<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<&'a v1::Withheld>,
    cost: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a v1::Terms>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    links: Option<&'a v1::CostLinks>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    baseline_links: Option<&'a v1::CostLinks>,
    expected_gain: Option<f64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unguarded: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    unguarded_why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    terms_of_whole: Option<&'a v1::TermsOfWhole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<&'a v1::RoundNote>,
    ended: &'static str,
    gap: Option<f64>,
    steps: u64,
    /// In text as ids are: it has 64 bits, of which many readers of JSON keep 53.
    seed: String,
    exclusions: &'a [v1::Exclusion],
    #[serde(serialize_with = "in_order")]
    blocked: &'a [v1::Blocked],
    degraded: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    plan: Option<&'a v1::PlanNote>,
    without_room: u32,
    next_wave: u32,
    routes: &'a [v1::HintRoute],
    elapsed_ms: f64,
}

/// Where one container should go.
#[derive(Serialize)]
struct ContainerHint<'a> {
    /// `<group>-<index>`
    task: String,
    group: &'a str,
    host: &'a str,
    fallbacks: &'a [String],
    racks: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_wait_ms: Option<u64>,
    confidence: f64,
}

/// Who asked for a decision, when, and under which settings.
#[derive(Serialize)]
struct Asked<'a> {
    application_id: &'a str,
    attempt: u32,
    queue: &'a str,
    decided_at_ms: u64,
    age_ms: u64,
    recorded: bool,
    params_toml: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    asked_for: &'a [v1::AskedGroup],
}

/// A decision that can be explained, in this order.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    asked: Asked<'a>,
    /// Of an answer that nobody has: why.
    #[serde(skip_serializing_if = "str::is_empty")]
    late: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    guard_margin: Option<f64>,
    leases: &'a [v1::LeaseState],
    ages: &'a [v1::SourceAge],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    outcome: Option<&'a v1::DecisionOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    followed: Option<&'a v1::Followed>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    input_homes: &'a [v1::HomedGroup],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    performance: Option<&'a v1::PredictedPerformance>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "in_order")]
    moves: &'a [v1::ProposedMove],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_order")]
    baseline_places: Option<&'a v1::BaselinePlaces>,
    #[serde(flatten)]
    answer: &'a v1::HintSet,
}

/// A request that was refused.
#[derive(Serialize)]
struct ExplainedRefusal<'a> {
    #[serde(flatten)]
    asked: Asked<'a>,
    decision_id: &'a str,
    request_id: &'a str,
    policy: &'a str,
    refused: &'a v1::Refused,
}

impl<'a> From<&'a v1::HintSet> for Answer<'a> {
    fn from(set: &'a v1::HintSet) -> Self {
        Self {
            decision_id: &set.decision_id,
            request_id: &set.request_id,
            policy: &set.policy,
            mode: mode(set.mode()),
            snapshot_version: set.snapshot_version,
            hints: set.hints.iter().flat_map(containers).collect(),
            withheld: set.withheld.as_ref(),
            cost: set.terms.as_ref().map(terms_by_name).unwrap_or_default(),
            baseline: set.baseline.as_ref(),
            links: set.links.as_ref(),
            baseline_links: set.baseline_links.as_ref(),
            expected_gain: set.expected_gain,
            unguarded: &set.unguarded,
            unguarded_why: &set.unguarded_why,
            terms_of_whole: set.terms_of_whole.as_ref(),
            round: set.round.as_ref(),
            ended: ended(set.ended()),
            gap: set.gap,
            steps: set.steps,
            seed: set.seed.to_string(),
            exclusions: &set.exclusions,
            blocked: &set.blocked,
            degraded: &set.degraded,
            plan: set.plan.as_ref(),
            without_room: set.without_room,
            next_wave: set.next_wave,
            routes: &set.routes,
            elapsed_ms: set.elapsed_ms,
        }
    }
}

fn containers(hint: &v1::Hint) -> impl Iterator<Item = ContainerHint<'_>> {
    (0..hint.count).map(|at| ContainerHint {
        task: format!("{}-{}", hint.group, hint.first_index + at),
        group: &hint.group,
        host: &hint.host,
        fallbacks: &hint.fallbacks,
        racks: &hint.racks,
        lease_id: hint.lease_ids.get(at as usize).map(u64::to_string),
        expected_wait_ms: hint.expected_wait_ms,
        confidence: hint.confidence,
    })
}

/// Cost terms by name; those that could not be computed are left out.
#[must_use]
pub fn terms_by_name(terms: &v1::Terms) -> BTreeMap<String, f64> {
    let common = [
        ("remote_bytes", terms.remote_bytes),
        ("cross_rack_bytes", terms.cross_rack_bytes),
        ("core_hops", terms.core_hops),
        ("worst_link_s", terms.worst_link_s),
        ("balance", terms.balance),
        ("objective", terms.objective),
    ];
    let common = common.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    common.chain(terms.parts.iter().map(|(name, value)| (format!("part.{name}"), *value))).collect()
}

impl Serialize for v1::Terms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        terms_by_name(self).serialize(serializer)
    }
}

impl Serialize for v1::HintSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Answer::from(self).serialize(serializer)
    }
}

impl Serialize for v1::ExplainResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let none = v1::HintSet::default();
        let answer = self.decision.as_ref().unwrap_or(&none);
        let asked = Asked {
            application_id: &self.application_id,
            attempt: self.attempt,
            queue: &self.queue,
            decided_at_ms: self.decided_at_ms,
            age_ms: self.age_ms,
            recorded: self.recorded,
            params_toml: &self.params_toml,
            asked_for: &self.asked_for,
        };
        if let Some(refused) = &self.refused {
            let v1::HintSet { decision_id, request_id, policy, .. } = answer;
            return in_order(&ExplainedRefusal { asked, decision_id, request_id, policy, refused }, serializer);
        }
        let (leases, ages, input_homes) = (&self.leases, &answer.ages, &self.input_homes);
        let (outcome, performance, moves) = (self.outcome.as_ref(), self.performance.as_ref(), &self.moves);
        let baseline_places = self.baseline_places.as_ref();
        let followed = self.followed.as_ref();
        Explained {
            asked,
            late: &self.late,
            guard_margin: self.guard_margin,
            leases,
            ages,
            outcome,
            followed,
            input_homes,
            performance,
            moves,
            baseline_places,
            answer,
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_container_is_a_hint_of_its_own_with_its_own_lease() {
        let hint = v1::Hint {
            group: "map".into(),
            host: "h1".into(),
            count: 3,
            first_index: 5,
            lease_ids: vec![7, 8],
            ..v1::Hint::default()
        };
        let set = v1::HintSet { hints: vec![hint], ..v1::HintSet::default() };
        let answer = Answer::from(&set);
        let tasks: Vec<_> = answer.hints.iter().map(|hint| (hint.task.as_str(), hint.lease_id.as_deref())).collect();
        assert_eq!(tasks, [("map-5", Some("7")), ("map-6", Some("8")), ("map-7", None)]);
    }

    #[test]
    fn a_term_that_could_not_be_computed_is_absent_and_never_zero() {
        let set = v1::Terms { remote_bytes: Some(0.0), ..v1::Terms::default() };
        assert_eq!(json!(set), json!({ "remote_bytes": 0.0 }));
    }

    #[test]
    fn an_answers_own_keys_stand_as_they_are_declared_and_those_of_its_parts_are_sorted() {
        let note = v1::PlanNote { plan: "monday".into(), ..v1::PlanNote::default() };
        let set = v1::HintSet { decision_id: "d1".into(), plan: Some(note), ..v1::HintSet::default() };
        let text = serde_json::to_string(&set).unwrap();
        assert!(text.starts_with(r#"{"decision_id":"d1","request_id":"","policy":"","mode":"unspecified","#), "{text}");
        assert!(
            text.contains(r#""plan":{"as_planned":0,"deviations":[],"elsewhere":0,"job":null,"plan":"monday"}"#),
            "{text}"
        );
    }
}
