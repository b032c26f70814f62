//! Details of statuses: the two of Google's that clients' libraries act on, which field and when to retry, and our
//! own, why containers did not fit.

use hintd_client::status::REFUSED;
use hintd_client::wire::v1;
use hintd_model::units::Micros;
use prost::Message;
use prost_types::{Any, Duration};
use tonic::Code;
use tonic_types::pb::{BadRequest, RetryInfo, Status, bad_request::FieldViolation};

/// `google.rpc.BadRequest` for one field.
pub(super) fn bad_request(message: &str, field: &str) -> Any {
    let violation =
        FieldViolation { field: field.to_owned(), description: message.to_owned(), ..FieldViolation::default() };
    any("google.rpc.BadRequest", &BadRequest { field_violations: vec![violation] })
}

/// `google.rpc.RetryInfo`.
pub(super) fn retry_info(delay: Micros) -> Any {
    let delay = Duration {
        seconds: i64::try_from(delay.0 / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(delay.0 % 1_000_000 * 1_000).expect("below a second of nanoseconds"),
    };
    any("google.rpc.RetryInfo", &RetryInfo { retry_delay: Some(delay) })
}

/// `hintd.v1.Refused`.
pub(super) fn refused(refused: &v1::Refused) -> Any {
    any(REFUSED, refused)
}

/// The details as they travel.
pub(super) fn pack(code: Code, message: &str, details: Vec<Any>) -> Vec<u8> {
    Status { code: code as i32, message: message.to_owned(), details }.encode_to_vec()
}

fn any(name: &str, detail: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: detail.encode_to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_delay_reads_back_with_its_parts() {
        let bytes = pack(Code::Unavailable, "busy", vec![retry_info(Micros(2_250_000))]);
        let status = Status::decode(bytes.as_slice()).unwrap();
        assert_eq!((status.code, status.message.as_str()), (14, "busy"));
        assert_eq!(status.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
        let info = RetryInfo::decode(status.details[0].value.as_slice()).unwrap();
        assert_eq!(info.retry_delay, Some(Duration { seconds: 2, nanos: 250_000_000 }));
    }
}
