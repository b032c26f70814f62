//! The wire's messages as JSON: the keys that `hintctl --json` publishes, for whoever else shows them.
//!
//! What is published implements [`Serialize`]. Most messages derive it, with a key for each field: build.rs lists them,
//! and the fields that are an exception. Here are the messages whose JSON has another shape, and the exceptions' values.
//!
//! Invariant: a message is all that its JSON needs, so that it can be shown wherever the message is at hand.

mod answer;
mod fields;
mod followed;
mod variants;

pub use answer::terms_by_name;
pub use followed::{Locality, locality};

pub(crate) use fields::{by_term, id, in_order, load_source_token, null_if_empty, or_default, phase_token, size};

use crate::wire::v1;
use serde::Serialize;
use serde_json::Value;

/// A document with its keys in alphabetical order, as all but answers and explanations are published.
///
/// # Errors
/// For what is no JSON: a map by something else than texts, or a value that refuses. No message of the wire is.
pub fn sorted(document: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(document)
}

/// Stable token.
#[must_use]
pub const fn mode(mode: v1::Mode) -> &'static str {
    match mode {
        v1::Mode::Unspecified => "unspecified",
        v1::Mode::Off => "off",
        v1::Mode::Shadow => "shadow",
        v1::Mode::On => "on",
    }
}

/// Stable token.
#[must_use]
pub const fn ended(ended: v1::Ended) -> &'static str {
    match ended {
        v1::Ended::Unspecified => "unspecified",
        v1::Ended::Complete => "complete",
        v1::Ended::Optimal => "optimal",
        v1::Ended::Budget => "budget",
        v1::Ended::Deadline => "deadline",
    }
}

/// Stable token.
#[must_use]
pub const fn phase(phase: v1::RoutePhase) -> &'static str {
    match phase {
        v1::RoutePhase::Unspecified => "unspecified",
        v1::RoutePhase::Initial => "initial",
        v1::RoutePhase::Make => "make",
        v1::RoutePhase::Break => "break",
        v1::RoutePhase::Failover => "failover",
        v1::RoutePhase::Resync => "resync",
    }
}

/// Stable token; `None`: there is no load to tell of.
#[must_use]
pub const fn load_source(source: v1::LoadSource) -> Option<&'static str> {
    match source {
        v1::LoadSource::Unspecified => None,
        v1::LoadSource::Measured => Some("measured"),
        v1::LoadSource::Modelled => Some("modelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_of_documents_are_in_alphabetical_order() {
        let lack = v1::Lack { constraint: "no_room".into(), resource: String::new(), short: 7 };
        let near = v1::NearMiss { host: "h1".into(), lacks: vec![lack] };
        let blocked = v1::Blocked { group: "map".into(), count: 1, nearest: vec![near], ..v1::Blocked::default() };
        let text = sorted(&blocked).unwrap().to_string();
        let expected = r#"{"bound":0,"constraint":"","count":1,"group":"map","nearest":[{"host":"h1","lacks":[{"constraint":"no_room","resource":"","short":7}]}],"nodes":0}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_not_there_is_null_empty_or_absent_as_it_is_published() {
        let none = sorted(&v1::ReplicasResponse::default()).unwrap();
        assert_eq!(none["plan"], Value::Null);
        let choice = v1::BlockAdvice { replicas: vec![v1::ReplicaAdvice::default()] };
        assert_eq!(json!(choice), json!([{}]), "HDFS's own choice has neither rack nor host");
        let circuit = json!(v1::Circuit::default());
        assert_eq!(circuit["demand"]["expected_bytes"], 0);
        let update = json!(v1::RouteUpdate { routes: vec![v1::Route::default()], ..v1::RouteUpdate::default() });
        assert!(update.get("circuits").is_none() && update["routes"][0].get("stops").is_none(), "{update}");
        assert_eq!(update["routes"][0]["pair"], json!({ "src": "", "dst": "", "class": "" }));
    }

    #[test]
    fn amounts_are_by_resource() {
        let gpu =
            crate::wire::yarn::ResourceInformationProto { key: "gpu".into(), value: Some(2), ..Default::default() };
        let total = crate::wire::yarn::ResourceProto {
            memory: Some(8_192),
            virtual_cores: Some(8),
            resource_value_map: vec![gpu],
        };
        let node = json!(v1::NodeView { total: Some(total), ..v1::NodeView::default() });
        assert_eq!(node["total"], json!({ "memory_mb": 8_192, "vcores": 8, "gpu": 2 }));
        assert_eq!(node["leased"], json!({ "memory_mb": 0, "vcores": 0 }));
    }
}
