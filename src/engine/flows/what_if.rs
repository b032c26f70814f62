//! What would change if links or switches were taken out of service: asked before anyone touches the network.

use super::settings::RouteSettings;
use crate::engine::decision::Refusal;
use crate::engine::generation::Generation;
use crate::engine::routes::{NamedRoute, WatchedPair};
use crate::units::{ApplicationId, BitsPerSec, HostName, LinkName};
use std::sync::Arc;

/// What is to be taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drain {
    /// Links.
    pub links: Vec<LinkName>,
    /// Switches, with all their links.
    pub switches: Vec<Arc<str>>,
}

/// What would come of it. Utilities are in bits/s, as 000's Algorithm 1 sums them over the sinks of all jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkWhatIf {
    /// Routes that would be others, by pair.
    pub routes: Vec<RouteForecast>,
    /// Pairs whose route would stay.
    pub untouched: u64,
    /// Links whose load would be another, by position in the network.
    pub links: Vec<LinkForecast>,
    /// Utility of now.
    pub utility_before: f64,
    /// Utility then.
    pub utility_after: f64,
    /// Applications with routes that would be others, or whose utility would.
    pub applications: Vec<ApplicationForecast>,
    /// Hosts that no other would reach any more, and that some can be reached from now.
    pub cut_off_hosts: Vec<HostName>,
}

/// One pair's route, now and then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteForecast {
    /// Whose.
    pub pair: WatchedPair,
    /// Now.
    pub old: NamedRoute,
    /// Then; empty: no path would be left, see `cut`.
    pub new: NamedRoute,
    /// What bounds the part of the network that the sender would still reach; empty where there is a path.
    pub cut: Vec<Arc<str>>,
}

/// One link's modelled load, now and then.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkForecast {
    /// Which.
    pub link: LinkName,
    /// bits/s now, from its first end to its second and back.
    pub before: [f64; 2],
    /// bits/s then.
    pub after: [f64; 2],
    /// Each direction's.
    pub capacity: BitsPerSec,
}

/// One application, now and then.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationForecast {
    /// Which.
    pub application: ApplicationId,
    /// Routes of its that would be others.
    pub routes_moved: u64,
    /// Its sinks' rate now, bits/s.
    pub utility_before: f64,
    /// Then.
    pub utility_after: f64,
}

/// What taking `drain` out of service would change. Reads one generation and changes nothing.
///
/// # Errors
/// [`Refusal::Unknown`] for a link or switch that the network does not name; [`Refusal::MissingFeed`] without a
/// network.
pub fn what_if_network(
    generation: &Generation,
    drain: &Drain,
    settings: &RouteSettings,
) -> Result<NetworkWhatIf, Refusal> {
    let _ = (generation, drain, settings);
    let message = "what-if of networks is not there yet".to_owned();
    Err(Refusal::MissingFeed { feed: "topology", message })
}
