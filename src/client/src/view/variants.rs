//! A decision made again, and rules of switches: messages that hold one of several things.

use crate::wire::v1;
use crate::wire::v1::outcome::Outcome;
use crate::wire::v1::rule_change::Action;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// A decision made again.
#[derive(Serialize)]
struct Replayed<'a> {
    decided_at_ms: u64,
    same: bool,
    differences: &'a [v1::Difference],
    params_toml: &'a str,
    recorded: Option<&'a v1::Outcome>,
    replayed: Option<&'a v1::Outcome>,
    #[serde(flatten)]
    alternative: Option<Alternative<'a>>,
}

/// What another policy makes of the same request.
#[derive(Serialize)]
struct Alternative<'a> {
    other: &'a v1::Outcome,
    other_params_toml: &'a str,
    recorded_cost: Option<&'a v1::Terms>,
    other_cost: Option<&'a v1::Terms>,
    objectives: &'a [v1::Rated],
}

impl Serialize for v1::ReplayResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let alternative = |other| Alternative {
            other,
            other_params_toml: &self.other_params_toml,
            recorded_cost: self.recorded_terms.as_ref(),
            other_cost: self.other_terms.as_ref(),
            objectives: &self.rated,
        };
        let replayed = Replayed {
            decided_at_ms: self.decided_at_ms,
            same: self.same,
            differences: &self.differences,
            params_toml: &self.params_toml,
            recorded: self.recorded.as_ref(),
            replayed: self.replayed.as_ref(),
            alternative: self.other.as_ref().map(alternative),
        };
        replayed.serialize(serializer)
    }
}

/// An answer stands by itself, a refusal under its own key.
impl Serialize for v1::Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.outcome {
            Some(Outcome::Hints(set)) => set.serialize(serializer),
            Some(Outcome::Refused(refused)) => {
                let mut object = serializer.serialize_struct("Outcome", 1)?;
                object.serialize_field("refused", refused)?;
                object.end()
            }
            None => serializer.serialize_none(),
        }
    }
}

/// What is not installed is removed.
impl Serialize for v1::RuleChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = self.pair.clone().unwrap_or_default();
        let mut object = serializer.serialize_struct("RuleChange", 3)?;
        object.serialize_field("switch", &self.switch)?;
        object.serialize_field("pair", &pair)?;
        match &self.action {
            Some(Action::Install(install)) => object.serialize_field("install", install)?,
            Some(Action::Remove(_)) | None => object.serialize_field("remove", &v1::RemoveRule {})?,
        }
        object.end()
    }
}
