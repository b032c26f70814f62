//! What a status of the daemon carries beside its code and message.

use crate::wire::v1;
use prost::Message as _;
use tonic::Status;

/// Metadata key of the refusal's stable token.
pub const REASON: &str = "hintd-reason";
/// Metadata key of the field that is wrong.
pub const FIELD: &str = "hintd-field";
/// Metadata key of the time after which a retry makes sense, milliseconds.
pub const RETRY_AFTER: &str = "retry-after-ms";
/// Metadata key of the id by which a refused request can be explained.
pub const DECISION: &str = "hintd-decision";
/// Message type of the detail that says why containers did not fit.
pub const REFUSED: &str = "hintd.v1.Refused";

/// Why a request was refused, if the status says so.
#[must_use]
pub fn refused_of(status: &Status) -> Option<v1::Refused> {
    let read = tonic_types::pb::Status::decode(status.details()).ok()?;
    let detail = read.details.into_iter().find(|any| any.type_url.ends_with(REFUSED))?;
    v1::Refused::decode(detail.value.as_slice()).ok()
}
