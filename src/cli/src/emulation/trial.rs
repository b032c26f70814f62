//! Whether a daemon is one to try things on: it serves no real cluster, and nobody else emulates one on it.

use super::super::connect::DaemonArgs;
use super::super::failure::Failure;
use crate::emulate::Cluster;
use crate::emulate::controller::WATCHER;
use hintd::findings::some;
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use std::time::{Duration, Instant};

/// Nodes that say nothing for so long are nobody's: NodeManagers report once a second, emulated ones more often.
const LOOKED_FOR: Duration = Duration::from_millis(1_500);

/// That the daemon serves nobody else, as far as it says: emulated nodes would be hinted at beside others'.
///
/// # Errors
/// [`Failure::Input`] with what shows that it does, or why that is not known.
pub(super) async fn check(daemon: &DaemonArgs, cluster: &Cluster) -> Result<(), Failure> {
    let mut admin = daemon.operator().await.map_err(|why| unseen(&why))?;
    let status = admin.status(v1::StatusRequest {}).await.map_err(refused)?.into_inner();
    let network = admin.network(v1::NetworkRequest {}).await.map_err(refused)?.into_inner();
    let looked = Instant::now();
    let nodes = nodes(&mut admin).await?;
    let own = |host: &str| cluster.machines.iter().any(|machine| machine.host.as_str() == host);
    let foreign: Vec<String> = nodes.iter().map(|node| node.host.clone()).filter(|host| !own(host)).collect();
    let mut found = somebody_elses(&status, &network, &foreign);
    // All its nodes have names of ours: those that an earlier run left behind say nothing any more.
    if found.is_none() && !nodes.is_empty() {
        tokio::time::sleep(LOOKED_FOR).await;
        let since = looked.elapsed();
        found = reporting(&self::nodes(&mut admin).await?, since);
    }
    match found {
        None => Ok(()),
        Some(what) => Err(Failure::Input(format!(
            "this daemon is not one to try things on: {what}; it is told nothing (--force feeds it all the same)"
        ))),
    }
}

fn unseen(why: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!(
        "whether the daemon serves a real cluster is not known, and it is told nothing: {why}; --force feeds it"
    ))
}

fn refused(status: tonic::Status) -> Failure {
    unseen(&status.message().to_owned())
}

async fn nodes(admin: &mut AdminClient) -> Result<Vec<v1::NodeView>, Failure> {
    Ok(admin.nodes(v1::NodesRequest::default()).await.map_err(refused)?.into_inner().nodes)
}

/// What shows that a daemon serves a real cluster, or another emulated one.
fn somebody_elses(status: &v1::StatusResponse, network: &v1::NetworkResponse, foreign: &[String]) -> Option<String> {
    if let Some(server) = status.servers.first() {
        return Some(format!("it asks {} {}", server.source, server.address));
    }
    if network.source == "file" {
        return Some("it has a network file".to_owned());
    }
    if status.watchers.iter().any(|watcher| watcher.name == WATCHER && watcher.attached) {
        return Some("another hintctl emulate feeds it now".to_owned());
    }
    let nodes = if foreign.len() == 1 { "node" } else { "nodes" };
    (!foreign.is_empty()).then(|| {
        format!("it knows {} {nodes} that the emulated cluster does not have: {}", foreign.len(), some(foreign))
    })
}

/// Nodes that were heard within the time since the first look.
fn reporting(nodes: &[v1::NodeView], since: Duration) -> Option<String> {
    let heard = |node: &&v1::NodeView| node.age_ms.is_some_and(|age| Duration::from_millis(age) < since);
    let heard: Vec<String> = nodes.iter().filter(heard).map(|node| node.host.clone()).collect();
    let (nodes, it) = if heard.len() == 1 { ("node", "reports") } else { ("nodes", "report") };
    (!heard.is_empty()).then(|| {
        format!("{} {nodes} that the emulated cluster would have {it} to it already: {}", heard.len(), some(&heard))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_somebody_else_is_told_by_what_it_asks_knows_and_hears() {
        let (status, network) = (v1::StatusResponse::default(), v1::NetworkResponse::default());
        assert_eq!(somebody_elses(&status, &network, &[]), None);
        let foreign = somebody_elses(&status, &network, &["dn1".to_owned(), "dn2".to_owned()]);
        assert_eq!(foreign.as_deref(), Some("it knows 2 nodes that the emulated cluster does not have: dn1, dn2"));
        let file = v1::NetworkResponse { source: "file".into(), ..v1::NetworkResponse::default() };
        assert_eq!(somebody_elses(&status, &file, &[]).as_deref(), Some("it has a network file"));
        let server = v1::ServerView {
            source: "resource_manager".into(),
            address: "http://rm:8088".into(),
            ..Default::default()
        };
        let asks = v1::StatusResponse { servers: vec![server], ..status.clone() };
        assert_eq!(somebody_elses(&asks, &network, &[]).as_deref(), Some("it asks resource_manager http://rm:8088"));
        let watcher = |attached| v1::WatcherView { name: WATCHER.to_owned(), attached, ..Default::default() };
        let watched = |attached| v1::StatusResponse { watchers: vec![watcher(attached)], ..status.clone() };
        let said = somebody_elses(&watched(true), &network, &[]);
        assert_eq!(said.as_deref(), Some("another hintctl emulate feeds it now"));
        assert_eq!(somebody_elses(&watched(false), &network, &[]), None, "it has ended");
    }

    #[test]
    fn nodes_that_an_earlier_run_left_behind_are_told_from_those_that_report() {
        let node = |host: &str, age_ms| v1::NodeView { host: host.to_owned(), age_ms, ..Default::default() };
        let since = Duration::from_millis(1_500);
        assert_eq!(reporting(&[node("a", Some(1_500)), node("b", None)], since), None);
        let said = reporting(&[node("a", Some(1_499)), node("b", Some(9_000))], since).unwrap();
        assert_eq!(said, "1 node that the emulated cluster would have reports to it already: a");
    }
}
