//! Details of statuses: the two of Google's that clients' libraries act on, which field and when to retry, and our
//! own, what blocks.
//!
//! Google's are written out by hand from google/rpc/{status,error_details}.proto: a dependency for three messages
//! would cost more than it says.

use crate::units::Micros;
use crate::wire::v1;
use prost::Message;
use tonic::{Code, Status};

#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<FieldViolation>,
}

#[derive(Clone, PartialEq, Message)]
struct FieldViolation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Duration>,
}

#[derive(Clone, PartialEq, Message)]
struct Duration {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// One detail of a status.
pub(super) struct Detail(Any);

/// `google.rpc.BadRequest` for one field.
pub(super) fn bad_request(message: &str, field: &str) -> Detail {
    let violation = FieldViolation { field: field.to_owned(), description: message.to_owned() };
    any("google.rpc.BadRequest", &BadRequest { field_violations: vec![violation] })
}

/// `google.rpc.RetryInfo`.
pub(super) fn retry_info(delay: Micros) -> Detail {
    let delay = Duration {
        seconds: i64::try_from(delay.0 / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(delay.0 % 1_000_000 * 1_000).expect("below a second of nanoseconds"),
    };
    any("google.rpc.RetryInfo", &RetryInfo { retry_delay: Some(delay) })
}

/// `hintd.v1.Refused`.
pub(super) fn refused(refused: &v1::Refused) -> Detail {
    any(REFUSED, refused)
}

/// What a status says of a refused request, where it does.
#[must_use]
pub fn refused_of(status: &Status) -> Option<v1::Refused> {
    let read = RpcStatus::decode(status.details()).ok()?;
    let detail = read.details.into_iter().find(|any| any.type_url.ends_with(REFUSED))?;
    v1::Refused::decode(detail.value.as_slice()).ok()
}

/// A status' details as they travel.
pub(super) fn pack(code: Code, message: &str, details: Vec<Detail>) -> Vec<u8> {
    let details = details.into_iter().map(|detail| detail.0).collect();
    RpcStatus { code: code as i32, message: message.to_owned(), details }.encode_to_vec()
}

const REFUSED: &str = "hintd.v1.Refused";

fn any(name: &str, detail: &impl Message) -> Detail {
    Detail(Any { type_url: format!("type.googleapis.com/{name}"), value: detail.encode_to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_delay_reads_back_with_its_parts() {
        let bytes = pack(Code::Unavailable, "busy", vec![retry_info(Micros(2_250_000))]);
        let status = RpcStatus::decode(bytes.as_slice()).unwrap();
        assert_eq!((status.code, status.message.as_str()), (14, "busy"));
        assert_eq!(status.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
        let info = RetryInfo::decode(status.details[0].value.as_slice()).unwrap();
        assert_eq!(info.retry_delay, Some(Duration { seconds: 2, nanos: 250_000_000 }));
    }
}
