//! Names of a shape's hosts.

use hintd_model::network::build::HostPlace;

/// `rack03-node11`.
pub(super) fn host_name(place: HostPlace) -> String {
    format!("rack{:02}-node{:02}", place.rack, place.in_rack)
}
