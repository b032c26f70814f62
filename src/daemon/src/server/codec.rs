//! Turns the codec's own statuses into those of the table.
//!
//! tonic answers bytes that are no message with `INTERNAL`, too many of them with `OUT_OF_RANGE` or
//! `RESOURCE_EXHAUSTED`; here all are the caller's fault, and `RESOURCE_EXHAUSTED` means cluster room.
//! Time-outs are not remapped: tonic's own sits outside every layer, so handlers answer before it.

use super::status::malformed;
use hintd_client::status::REASON;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::{Code, Status};

/// Turns the status of an answer that the codec made.
pub(super) fn remap(response: &mut Response<Body>) {
    if let Some(status) = Status::from_header_map(response.headers()).as_ref().and_then(remapped) {
        let headers = response.headers_mut();
        headers.remove("grpc-status-details-bin");
        // A status of ours is plain text and has no details: it always fits into headers.
        let _ = status.add_header(headers);
    }
}

/// The status of the table for one that the codec made; `None`: it may stay.
#[must_use]
pub(super) fn remapped(status: &Status) -> Option<Status> {
    let codec = matches!(status.code(), Code::Internal | Code::OutOfRange | Code::ResourceExhausted);
    // The one thing that the codec calls out of range is a message's length.
    let limit = if status.code() == Code::OutOfRange { " (limits.message_bytes)" } else { "" };
    (codec && !status.metadata().contains_key(REASON)).then(|| malformed(&format!("{}{limit}", status.message())))
}

/// What ended a stream of requests, in the table's terms.
#[must_use]
pub(super) fn of_stream(status: Status) -> Status {
    remapped(&status).unwrap_or(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_engine::Refusal;

    #[test]
    fn only_what_the_codec_says_is_remapped() {
        for status in [Status::internal("x"), Status::out_of_range("x"), Status::resource_exhausted("x")] {
            let found = remapped(&status).expect("the codec's");
            assert_eq!(found.code(), Code::InvalidArgument);
            assert!(found.message().starts_with("malformed message: x"));
            assert_eq!(found.message().contains("limits.message_bytes"), status.code() == Code::OutOfRange);
        }
        let ours =
            super::super::status::status(&Refusal::Full { group: "g".into(), wanted: 2, free: 1, blocked: vec![] });
        assert!(remapped(&ours).is_none(), "cluster room keeps its code");
        assert!(remapped(&Status::unimplemented("no such method")).is_none());
    }
}
