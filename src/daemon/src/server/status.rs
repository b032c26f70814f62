//! The one table from refusals to gRPC status codes.
//!
//! A status carries the refusal's token (`hintd-reason`), the field where there is one
//! (`hintd-field`, and `google.rpc.BadRequest`) and the time to wait (`retry-after-ms`, and
//! `google.rpc.RetryInfo`). Whatever lacks the token was not made here: tonic's codec made it, and
//! [`codec`](super::codec) turns it into what this table says.

use super::{convert, details};
use hintd_client::status::{DECISION, FIELD, REASON, RETRY_AFTER};
use hintd_engine::Refusal;
use hintd_model::text::Shown;
use hintd_model::units::{DecisionId, Micros};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// Token of a message that could not be read at all.
pub(super) const MALFORMED: &str = "malformed";

/// Status code of a refusal.
#[must_use]
pub const fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Invalid { .. } | Refusal::TooLarge { .. } => Code::InvalidArgument,
        Refusal::Unknown { .. } | Refusal::UnknownQueue { .. } | Refusal::NotRecorded { .. } => Code::NotFound,
        Refusal::MissingFeed { .. } | Refusal::Chain { .. } | Refusal::Plan { .. } => Code::FailedPrecondition,
        Refusal::Full { .. } => Code::ResourceExhausted,
        Refusal::IdReused { .. } => Code::AlreadyExists,
        Refusal::Unavailable { .. } => Code::Unavailable,
        Refusal::DeadlineExceeded(_) => Code::DeadlineExceeded,
        Refusal::BadToken { .. } | Refusal::NotHolder { .. } | Refusal::NotListed { .. } => Code::PermissionDenied,
        Refusal::NoToken { .. } => Code::Unauthenticated,
    }
}

/// The status that a refusal is answered with.
#[must_use]
pub fn status(refusal: &Refusal) -> Status {
    status_of(refusal, None)
}

/// The same, of a request that is recorded and can be explained by this id.
#[must_use]
pub fn status_of(refusal: &Refusal, decision: Option<DecisionId>) -> Status {
    let (code, reason) = (code(refusal), refusal.token());
    // It may quote what was refused for what it is.
    let message = fitting(Shown(refusal).to_string());
    let mut metadata = MetadataMap::new();
    metadata.insert(REASON, MetadataValue::from_static(reason));
    let mut details = Vec::new();
    match refusal {
        Refusal::Invalid { field, .. } | Refusal::TooLarge { field, .. } => {
            insert(&mut metadata, FIELD, field);
            details.push(details::bad_request(&message, field));
        }
        Refusal::Unavailable { retry_after, .. } => {
            insert(&mut metadata, RETRY_AFTER, &round_up_ms(*retry_after).to_string());
            details.push(details::retry_info(*retry_after));
        }
        _ => {}
    }
    if let Some(decision) = decision {
        insert(&mut metadata, DECISION, &decision.to_string());
    }
    if decision.is_some() || refusal.chain().is_some() || !refusal.blocked().is_empty() {
        let mut refused = convert::refused(refusal, decision);
        refused.blocked.truncate(BLOCKED_TOLD);
        details.push(details::refused(&refused));
    }
    let details = if details.is_empty() { Vec::new() } else { details::pack(code, &message, details) };
    let room = HEADER_BYTES.saturating_sub(message.bytes().map(header_bytes).sum());
    let details = if details.len() > DETAILS_BYTES || details.len() * 4 / 3 > room { Vec::new() } else { details };
    Status::with_details_and_metadata(code, message, details.into(), metadata)
}

/// Groups named in a status: it travels in headers, of which a client may take as little as 8 KB. Explain names all.
const BLOCKED_TOLD: usize = 4;
/// Details beyond this are left out; code, message, reason and the decision's id stay.
const DETAILS_BYTES: usize = 4_096;
/// Message and details together, as they travel: a client that takes 8 KB has room for the rest.
const HEADER_BYTES: usize = 7_000;
/// What of them a message may take.
const MESSAGE_BYTES: usize = 6_000;

/// Bytes that a byte of a message takes in a header: what is no letter or digit may be written by its number.
const fn header_bytes(byte: u8) -> usize {
    if byte.is_ascii_alphanumeric() { 1 } else { 3 }
}

/// A message, cut to what a header may hold.
fn fitting(mut message: String) -> String {
    let mut taken = 0;
    let within = |(_, letter): &(usize, char)| {
        let mut bytes = [0; 4];
        taken += letter.encode_utf8(&mut bytes).bytes().map(header_bytes).sum::<usize>();
        taken > MESSAGE_BYTES
    };
    if let Some((at, _)) = message.char_indices().find(within) {
        let left = message.len() - at;
        message.truncate(at);
        message.push_str(&format!("... and {left} bytes more"));
    }
    message
}

/// A status for bytes that are no message, or too many of them.
#[must_use]
pub(super) fn malformed(message: &str) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(REASON, MetadataValue::from_static(MALFORMED));
    Status::with_metadata(Code::InvalidArgument, format!("malformed message: {message}"), metadata)
}

fn insert(metadata: &mut MetadataMap, key: &'static str, value: &str) {
    // A field path holds group numbers and names of ours; what is not ASCII is told in the message only.
    if let Ok(value) = value.parse() {
        metadata.insert(key, value);
    }
}

/// Whole milliseconds, never less than was said.
const fn round_up_ms(span: Micros) -> u64 {
    span.0.div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_engine::decision::{Blocked, Lack, NearMiss};
    use hintd_model::units::{ApplicationId, AttemptId};

    /// Every variant; the match makes a new one fail to compile until it stands here.
    fn every_refusal() -> Vec<(Refusal, Code)> {
        let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
        let all = vec![
            (Refusal::Invalid { field: "a".into(), message: "b".into() }, Code::InvalidArgument),
            (Refusal::TooLarge { field: "a".into(), message: "b".into(), blocked: vec![] }, Code::InvalidArgument),
            (Refusal::Unknown { what: "policy", name: "x".into(), nearest: None }, Code::NotFound),
            (Refusal::UnknownQueue { name: "x".into(), there: String::new() }, Code::NotFound),
            (Refusal::MissingFeed { feed: "heartbeats", message: "b".into() }, Code::FailedPrecondition),
            (Refusal::Full { group: "g".into(), wanted: 2, free: 1, blocked: vec![] }, Code::ResourceExhausted),
            (Refusal::Chain { chain: "c".into(), why: "b".into() }, Code::FailedPrecondition),
            (Refusal::Plan { name: "p".into(), why: "b".into() }, Code::FailedPrecondition),
            (Refusal::NotRecorded { decision: DecisionId::of(1), kept: "b".into() }, Code::NotFound),
            (Refusal::IdReused { id: "r".into() }, Code::AlreadyExists),
            (Refusal::Unavailable { message: "b".into(), retry_after: Micros(1_500) }, Code::Unavailable),
            (Refusal::DeadlineExceeded(Micros(5)), Code::DeadlineExceeded),
            (Refusal::BadToken { attempt }, Code::PermissionDenied),
            (Refusal::NotHolder { watcher: "w".into() }, Code::PermissionDenied),
            (Refusal::NotListed { attempt }, Code::PermissionDenied),
            (Refusal::NoToken { what: "a".into() }, Code::Unauthenticated),
        ];
        for (refusal, _) in &all {
            match refusal {
                Refusal::Invalid { .. }
                | Refusal::TooLarge { .. }
                | Refusal::Unknown { .. }
                | Refusal::UnknownQueue { .. }
                | Refusal::NotRecorded { .. }
                | Refusal::MissingFeed { .. }
                | Refusal::Chain { .. }
                | Refusal::Plan { .. }
                | Refusal::Full { .. }
                | Refusal::IdReused { .. }
                | Refusal::Unavailable { .. }
                | Refusal::DeadlineExceeded(_)
                | Refusal::BadToken { .. }
                | Refusal::NotHolder { .. }
                | Refusal::NotListed { .. }
                | Refusal::NoToken { .. } => {}
            }
        }
        all
    }

    #[test]
    fn every_refusal_has_the_code_that_the_architecture_gives_it() {
        for (refusal, code) in every_refusal() {
            let status = status(&refusal);
            assert_eq!(status.code(), code, "{refusal:?}");
            assert_eq!(status.message(), refusal.to_string());
            assert!(status.metadata().contains_key(REASON));
        }
    }

    #[test]
    fn what_blocks_and_the_id_to_explain_it_by_travel_typed_with_the_status() {
        let lack = Lack { constraint: "no_room".into(), resource: "memory-mb".into(), short: 512 };
        let nearest = vec![NearMiss { host: "worker-017".into(), lacks: vec![lack] }];
        let blocked =
            vec![Blocked { group: "g".into(), count: 1, constraint: "no_room".into(), bound: 0, nodes: 4, nearest }];
        let full = Refusal::Full { group: "g".into(), wanted: 2, free: 1, blocked };
        let status = status_of(&full, Some(DecisionId::of(26)));
        assert_eq!(status.metadata().get(DECISION).unwrap(), "000000000000001a");
        let refused = hintd_client::status::refused_of(&status).unwrap();
        assert_eq!((refused.reason.as_str(), refused.decision_id.as_str()), ("full", "000000000000001a"));
        let near = &refused.blocked[0].nearest[0];
        assert_eq!((near.host.as_str(), near.lacks[0].short), ("worker-017", 512));
        assert!(hintd_client::status::refused_of(&super::status(&Refusal::DeadlineExceeded(Micros(1)))).is_none());
    }

    #[test]
    fn a_long_message_fits_into_headers_whatever_it_quotes() {
        for letter in ["x", "\"", "ä", "大", "\n"] {
            let long = Refusal::Invalid { field: "a".into(), message: letter.repeat(100_000) };
            let status = status(&long);
            let bytes: usize = status.message().bytes().map(header_bytes).sum();
            assert!(bytes + status.details().len() * 4 / 3 < 8_000, "{letter}: {bytes}");
            assert!(status.message().contains("... and ") && status.message().ends_with(" bytes more"), "{letter}");
        }
    }

    #[test]
    fn refusals_of_requests_are_all_but_those_of_other_calls() {
        let all = every_refusal();
        let mut known: Vec<_> = all.iter().map(|(refusal, _)| refusal.token()).collect();
        known.sort_unstable();
        known.dedup();
        known.retain(|token| !["not_holder", "not_recorded"].contains(token));
        assert_eq!(known, Refusal::OF_REQUESTS);
    }

    #[test]
    fn only_a_full_cluster_is_resource_exhausted() {
        let exhausted: Vec<_> =
            every_refusal().into_iter().filter(|(refusal, _)| code(refusal) == Code::ResourceExhausted).collect();
        assert!(matches!(exhausted.as_slice(), [(Refusal::Full { .. }, _)]));
    }

    #[test]
    fn tokens_are_distinct_and_the_field_and_delay_are_told() {
        let all = every_refusal();
        let tokens: std::collections::BTreeSet<_> = all.iter().map(|(refusal, _)| refusal.token()).collect();
        // An unknown queue says more than other unknown names, and is `unknown` as they are.
        assert_eq!(Refusal::UnknownQueue { name: "x".into(), there: String::new() }.token(), "unknown");
        assert_eq!(tokens.len(), all.len() - 1);
        let invalid = status(&all[0].0);
        assert_eq!(invalid.metadata().get(FIELD).unwrap(), "a");
        assert!(!invalid.details().is_empty());
        let unavailable = all.iter().find(|(refusal, _)| matches!(refusal, Refusal::Unavailable { .. })).unwrap();
        let unavailable = status(&unavailable.0);
        assert_eq!(unavailable.metadata().get(RETRY_AFTER).unwrap(), "2", "rounded up, never early");
    }
}
