//! Wire to core and back: every shape check of what callers send, in one place.
//!
//! Invariant: what passes here is well-formed whatever the cluster looks like; names are resolved
//! later, against a snapshot. A refusal names the field by its path and the value that stood there.

mod adherence;
mod answer;
mod chains;
mod circuits;
mod digest;
mod field;
mod field_words;
mod input_homes;
mod latency;
mod network;
mod network_file;
mod performance;
mod plans;
mod request;
mod resource;
mod routes;
mod servers;
mod setup;
mod shuffle_turn;
mod training;
mod worth;

pub(super) use adherence::{adherence_view, followed, outcome};
pub(super) use answer::age;
pub use answer::{baseline_places, hint_set, lease_states, refused, terms, wire_mode};
pub use digest::digest;

pub use chains::unmet_view;
pub(super) use chains::{chains, stop};
pub(super) use circuits::{circuit_report, circuits_view, wanted_circuits};
pub(super) use input_homes::{homed_groups, input_homes, input_homes_question};
pub(super) use latency::latency;
pub(super) use network::{PathsNow, down_link, drain, link_view, network_what_if, watcher_view};
pub(super) use network_file::{network_difference, network_view, racks};
pub(super) use performance::{move_advice, performance, proposed_move};
pub use plans::plan_forecast;
use plans::plan_note;
pub(super) use plans::{make_ask, plan_view, replicas_ask, replicas_found};
pub(super) use request::{application, attempt_view};
pub use request::{attempt, request};
pub use resource::{ask_to_wire, resource_to_wire};
pub(super) use routes::{refused_routes, route_update, watch_scope, watcher};
pub(super) use servers::server;
pub(super) use setup::setup;
pub(super) use shuffle_turn::{shuffle_turn, shuffle_wish, turn_view};
pub(super) use training::{classes, training};
pub(super) use worth::compared_view;
