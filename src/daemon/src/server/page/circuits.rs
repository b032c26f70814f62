//! Optical circuits and service chains on the operator's page.

use crate::runtime::Daemon;
use crate::server::convert;
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use serde::Serialize;

/// Circuits, of either kind, and ports shown.
const PORTS_MAX: usize = 2_000;
/// Boxes, chains, and what can't be met shown.
const ROWS_MAX: usize = 500;

/// What an optical switch connects and should, and how traffic passes middleboxes. Lists are cut; totals are not.
#[derive(Debug, Serialize)]
pub struct PageCircuits {
    circuits: v1::CircuitsResponse,
    ports_total: usize,
    chains: v1::ChainsResponse,
    boxes_total: usize,
    chains_total: usize,
    unmet_total: usize,
}

/// See [`PageCircuits`].
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_circuits(daemon: &Daemon) -> Result<PageCircuits, Refusal> {
    let view = daemon.circuits().await?;
    let (generation, now) = (daemon.generation(), daemon.clock().now());
    let owned = !daemon.settings().engine.chains.is_empty();
    let work = move || {
        let mut circuits = convert::circuits_view(view.as_ref(), now);
        let mut chains = convert::chains(&generation, owned);
        let found = PageCircuits {
            ports_total: circuits.ports.len(),
            boxes_total: chains.boxes.len(),
            chains_total: chains.chains.len(),
            unmet_total: chains.unmet.len(),
            circuits: v1::CircuitsResponse::default(),
            chains: v1::ChainsResponse::default(),
        };
        // A port that does not work is what somebody looks for.
        circuits.ports.sort_by_key(|port| port.state == "works");
        circuits.ports.truncate(PORTS_MAX);
        if let Some(wanted) = &mut circuits.wanted {
            wanted.circuits.truncate(PORTS_MAX);
            wanted.unserved.truncate(ROWS_MAX);
        }
        circuits.reported.iter_mut().for_each(|reported| reported.set.truncate(PORTS_MAX));
        chains.boxes.truncate(ROWS_MAX);
        chains.chains.truncate(ROWS_MAX);
        chains.unmet.truncate(ROWS_MAX);
        PageCircuits { circuits, chains, ..found }
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| super::ended())
}
