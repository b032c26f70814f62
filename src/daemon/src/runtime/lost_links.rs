//! Links that went down: what they carried is looked up before the engine moves the routes, and then the log is told.

use super::registries::{FeedRegistries, LostLinks};
use hintd_engine::{Engine, Generation, carried_routes};
use hintd_model::cluster::Change;

/// Looks, and gives the changes of the network that the engine is to take next. `generation`: of before it takes them.
pub(super) fn look(registries: &FeedRegistries, generation: &Generation, engine: &Engine) -> Vec<Change> {
    let (LostLinks { links, lines }, changes) = registries.take_network();
    let groups: Vec<_> = links.iter().map(|link| vec![link.clone()]).collect();
    let groups: Vec<_> = groups.into_iter().chain(lines.iter().map(|line| line.lost().to_vec())).collect();
    let mut carried = vec![None; groups.len()];
    if let Some(network) = generation.snapshot.topology.network.as_deref().filter(|_| !groups.is_empty()) {
        let installed = engine.watchers().iter().any(|watcher| watcher.installs);
        carried = carried_routes(network, &generation.flows, &groups, installed);
    }
    let of_lines = carried.split_off(links.len());
    for (link, carried) in links.iter().zip(carried) {
        carried.into_iter().for_each(|carried| registries.carried(link, carried));
    }
    for (line, carried) in lines.iter().zip(of_lines) {
        line.write(carried.as_ref());
    }
    changes
}
