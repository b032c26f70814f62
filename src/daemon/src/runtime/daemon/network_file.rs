//! The network of a file, kept in step with the file and with the nodes that are known.

use super::super::options::NetworkSource;
use super::Daemon;
use crate::notice::{Notice, NoticeKind};
use hintd_engine::Refusal;
use hintd_model::cluster::{NodeState, NodeStatics, Snapshot, Source};
use hintd_model::network::racks::{Difference, Expanded, KnownHosts, NetworkFile, Survey, differences, survey};
use hintd_model::network::{NetworkSummary, summary};
use hintd_model::units::NodeIdx;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two looks at the nodes: whoever comes meanwhile is put in his place together with others.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Problems named in one message.
const PROBLEMS_NAMED: usize = 20;
/// What operators are told it is about.
const MATTER: &str = "network";

/// What was made of the file last.
#[derive(Debug, Default)]
pub(in crate::runtime) struct FollowedNetwork {
    source: Option<Arc<NetworkSource>>,
    nodes: Option<Arc<NodeStatics>>,
    /// What the file says of nodes, beside the network; of the last time that it made one.
    said: Expanded,
    /// Why it makes none with the nodes of now.
    trouble: Option<String>,
    /// What the log has of `said` already.
    notices: Vec<Notice>,
}

/// The network in force, by rack, and where it and YARN differ.
#[derive(Debug)]
pub struct NetworkInForce {
    /// file, feed, none
    pub source: &'static str,
    /// The configured file.
    pub file: Option<PathBuf>,
    /// In numbers; `None`: there is no network.
    pub summary: Option<NetworkSummary>,
    /// Its racks.
    pub survey: Survey,
    /// Where YARN and the file, or the feed, differ; without the network.
    pub said: Expanded,
    /// Why the file, with the nodes of now, makes no network.
    pub trouble: Option<String>,
    /// Why what is on disk is refused while what was read before stays.
    pub refused: Option<String>,
}

/// Looks at the nodes until the daemon stops.
pub(in crate::runtime) async fn run(daemon: Daemon) {
    loop {
        tokio::select! {
            () = daemon.stopping().cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let daemon = daemon.clone();
        // Thousands of hosts take a while: not on a thread that serves sockets.
        let _ = tokio::task::spawn_blocking(move || daemon.follow_network()).await; // a panic is logged, the next look comes
    }
}

/// The hosts that have registered, and their names.
pub(in crate::runtime) fn known_hosts(snapshot: &Snapshot) -> KnownHosts {
    let statics = &snapshot.statics;
    let known = |node: NodeIdx| snapshot.state.get(node.at()).is_some_and(|state| *state != NodeState::Unregistered);
    let name = |node: NodeIdx| -> Arc<str> { statics.host[node.at()].as_str().into() };
    let rack = |node: NodeIdx| statics.racks[statics.rack[node.at()].at()].as_str().into();
    let aliases = statics.by_alias.iter().filter(|(_, node)| known(**node));
    KnownHosts {
        racks: statics.indexes().filter(|node| known(*node)).map(|node| (name(node), rack(node))).collect(),
        aliases: aliases.map(|(alias, node)| (alias.clone(), name(*node))).collect(),
    }
}

/// What is left out of a network, or is hardly meant: each of a few kinds.
fn notices(file: &Path, said: &Expanded) -> Vec<Notice> {
    let kinds = [
        (NoticeKind::NetworkHostsLeftOut, &said.hosts_left_out, "are called as a switch is, and have no place"),
        (NoticeKind::NetworkHostsTwice, &said.hosts_twice, "are named twice"),
        (
            NoticeKind::NetworkRacksOnRacks,
            &said.racks_on_racks,
            "hang on a rack's switch, for no switch of tier core is declared",
        ),
    ];
    let file = file.display();
    let line = |(kind, names, what): (NoticeKind, &Vec<String>, &str)| {
        let named = names.iter().take(PROBLEMS_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(PROBLEMS_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        Notice::new(kind, format!("{file}: {} {what}: {named}{more}", names.len()))
    };
    kinds.into_iter().filter(|(_, names, _)| !names.is_empty()).map(line).collect()
}

impl Daemon {
    /// Brings the network in step with the file in force and the nodes that are known.
    pub(in crate::runtime) fn follow_network(&self) {
        let mut followed = self.followed_network();
        let source = self.settings().network.clone();
        let Some(source) = source else {
            if followed.source.is_some() {
                *followed = FollowedNetwork::default();
                self.registries().own_network(false);
                self.registries().network(None);
                self.notice(MATTER, Vec::new());
            }
            return;
        };
        self.registries().own_network(true);
        // What stands in a file stays true: it is not too old as what a feed said a day ago.
        self.registries().heard(Source::Topology);
        let generation = self.generation();
        let nodes = &generation.snapshot.statics;
        let same_file = followed.source.as_ref().is_some_and(|known| Arc::ptr_eq(known, &source));
        if same_file && followed.nodes.as_ref().is_some_and(|known| Arc::ptr_eq(known, nodes)) {
            return;
        }
        followed.nodes = Some(Arc::clone(nodes));
        followed.source = Some(Arc::clone(&source));
        match self.expand(&source.file, &known_hosts(&generation.snapshot)) {
            Ok(mut said) => {
                self.registries().network_if_other(said.network.take().map(Arc::new));
                followed.trouble = None;
                let notices = notices(&source.path, &said);
                if notices != followed.notices {
                    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
                }
                self.notice(MATTER, notices.clone());
                (followed.said, followed.notices) = (said, notices);
            }
            Err(trouble) if followed.trouble.as_ref() == Some(&trouble) => {}
            Err(trouble) => {
                let file = source.path.display();
                tracing::error!(%file, trouble, "the network file makes no network with the nodes of now: the one before it stays");
                self.metrics().add("network_file_refused", 1);
                let words = format!("{file} makes no network with the nodes of now: {trouble}");
                self.notice(MATTER, vec![Notice::new(NoticeKind::NetworkRefused, words)]);
                followed.trouble = Some(trouble);
            }
        }
    }

    /// What a file makes of hosts, in bounds.
    fn expand(&self, file: &NetworkFile, known: &KnownHosts) -> Result<Expanded, String> {
        let expanded = file.expand(known).map_err(|problems| {
            let mut words: Vec<_> = problems.iter().take(PROBLEMS_NAMED).map(ToString::to_string).collect();
            if problems.len() > PROBLEMS_NAMED {
                words.push(format!("and {} more", problems.len() - PROBLEMS_NAMED));
            }
            words.join("; ")
        })?;
        let links = expanded.network.as_ref().map_or(0, |network| network.links().count());
        let most = self.registries().limits().links;
        if links > most {
            return Err(format!("{links} links: at most {most} (limits.links)"));
        }
        Ok(expanded)
    }

    /// Whether a file that is to be taken makes a network with the nodes of now.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with what it makes instead.
    pub(in crate::runtime) async fn check_network(&self, source: Option<Arc<NetworkSource>>) -> Result<(), Refusal> {
        let Some(source) = source else { return Ok(()) };
        let daemon = self.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let known = known_hosts(&daemon.generation().snapshot);
            daemon
                .expand(&source.file, &known)
                .map(|_| ())
                .map_err(|words| format!("{}: {words}", source.path.display()))
        });
        let checked = checked.await.unwrap_or_else(|_| Err("looking at it ended in a panic".to_owned()));
        checked.map_err(|message| Refusal::Invalid { field: "network.file".to_owned(), message })
    }

    /// The network in force. Takes a while where there are many hosts.
    #[must_use]
    pub fn network_in_force(&self) -> NetworkInForce {
        let generation = self.generation();
        let network = generation.snapshot.topology.network.as_deref();
        let seen = survey(network, &known_hosts(&generation.snapshot));
        let followed = self.followed_network();
        let file = self.settings().network.as_ref().map(|source| source.path.clone());
        let unknown = || seen.unknown_hosts.iter().map(ToString::to_string).collect();
        NetworkInForce {
            source: match (&file, network) {
                (Some(_), _) => "file",
                (None, Some(_)) => "feed",
                (None, None) => "none",
            },
            said: match file {
                Some(_) => followed.said.clone(),
                None => Expanded { unknown_hosts: unknown(), ..Expanded::default() },
            },
            trouble: followed.trouble.clone(),
            refused: self.config_refused().map(|refused| refused.to_string()),
            summary: network.map(summary),
            survey: seen,
            file,
        }
    }

    /// What a file would change, with the nodes of now.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with every problem of the file.
    pub fn diff_network(&self, text: &str, json: bool) -> Result<Vec<Difference>, Refusal> {
        let invalid = |message: String| Refusal::Invalid { field: "network".to_owned(), message };
        let read = if json { NetworkFile::read_json(text) } else { NetworkFile::read_toml(text) };
        let file = read.map_err(|problems| {
            let lines: Vec<_> = problems
                .iter()
                .map(|problem| {
                    problem.line.map_or_else(String::new, |line| format!("line {line}: ")) + &problem.to_string()
                })
                .collect();
            invalid(lines.join("\n"))
        })?;
        let generation = self.generation();
        let expanded = self.expand(&file, &known_hosts(&generation.snapshot)).map_err(invalid)?;
        Ok(differences(generation.snapshot.topology.network.as_deref(), expanded.network.as_ref()))
    }

    fn followed_network(&self) -> MutexGuard<'_, FollowedNetwork> {
        self.0.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
