//! `hintctl nodes`: nodes as the daemon knows them, those of some names or states, and all of one.
//!
//! # Code map
//! - `one`: one node with its room, its leases and its links.

mod one;

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::filter::near;
use super::output::{self, Output};
use super::printable::one_line;
use super::sorting::{Column, SortArgs};
use super::view::{ViewArgs, not_empty};
use clap::Args;
use clap::builder::PossibleValuesParser;
use hintd_client::AdminClient;
use hintd_client::wire::{v1, yarn};
use hintd_model::cluster::NodeState;
use hintd_model::solve::nearest;
use one::{Beside, node_text};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tonic::{Response, Status};

/// Which nodes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl nodes\n  hintctl nodes r3n07                     this node: its state, room, leases and links\n  \
    hintctl nodes rack7 --limit 20          all nodes with it in their names\n  hintctl nodes --state lost,unhealthy\n  \
    hintctl nodes --sort -used\n  hintctl --json nodes --state decommissioning | jq -r '.nodes[].host'\n\n\
    States are YARN's, and STALE (not heard for model.stale_after; no hints go there) and UNREGISTERED (blocks or containers name\n\
    it, and it has not registered). Exit code 2: a HOST is no node's name, nor in one, and the list is not watched."
)]
pub struct NodesArgs {
    /// Only nodes of these names; a name that is no node's stands for all that contain it. One node is described where its whole
    /// name is the only one given, without -o
    #[arg(value_name = "HOST", value_parser = not_empty, conflicts_with = "host")]
    names: Vec<String>,
    /// Only hosts whose names contain this, in a table
    #[arg(long, value_parser = not_empty)]
    host: Option<String>,
    /// Only nodes in these states, with commas between
    #[arg(long, value_name = "STATE", value_delimiter = ',', ignore_case = true, value_parser = states())]
    state: Vec<String>,
    /// Show at most LIMIT, by name or as sorted; 0: all
    #[arg(long, default_value_t = 0)]
    limit: u32,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(NodeState::ALL.map(NodeState::as_str))
}

/// `hintctl nodes`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or no node has such a name.
pub fn nodes(args: &NodesArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let order = args.sort.of(NODE_COLUMNS, args.limit)?;
    let beside = RefCell::new(None);
    let ask = async |mut admin: AdminClient| {
        let mut found = args.found(&mut admin, order.asks()).await?;
        let described = args.described(&found, output);
        let more = match described {
            Some(node) => Some(Beside::of(&mut admin, &node.host).await),
            None => None,
        };
        beside.replace(more);
        // Those that are left are all that was asked for.
        if order.asks() > 0 {
            found.nodes.truncate(order.asks() as usize);
        }
        order.answer(Ok(Response::new(found)), |found| (&mut found.nodes, found.total.into()))
    };
    let text = |answer: &v1::NodesResponse, wide| match (answer.nodes.as_slice(), &*beside.borrow()) {
        ([only], Some(beside)) => node_text(only, beside),
        _ => nodes_text(answer, wide || order.is_wide(&NODE_HEADER)),
    };
    args.view.show(daemon, output, ask, text).map(drop)
}

impl NodesArgs {
    /// The nodes that are meant, by name, and how many they are. `most`: how many the daemon need send, 0: all.
    async fn found(&self, admin: &mut AdminClient, most: u32) -> Result<v1::NodesResponse, Failure> {
        let part = match self.names.as_slice() {
            [only] => only,
            [] => self.host.as_deref().unwrap_or_default(),
            _ => "",
        };
        let is_all = self.names.is_empty() && self.state.is_empty();
        let mut found = all(admin, part, if is_all { most } else { 0 }).await?;
        if let Some(name) = self.missing(&found.nodes) {
            return Err(no_node(name, &all(admin, "", 0).await?));
        }
        if !is_all {
            self.narrow(&mut found.nodes);
            found.total = u32::try_from(found.nodes.len()).unwrap_or(u32::MAX);
        }
        Ok(found)
    }

    /// A name that is no node's, nor in one; a list that is watched waits for it.
    fn missing(&self, nodes: &[v1::NodeView]) -> Option<&str> {
        let is_one = |name: &str| nodes.iter().any(|node| node.host.contains(name));
        let mut wanted = self.names.iter().chain(&self.host).map(String::as_str);
        wanted.find(|name| !self.view.is_watched() && !is_one(name))
    }

    /// Leaves those that are meant.
    fn narrow(&self, nodes: &mut Vec<v1::NodeView>) {
        let known: BTreeSet<String> = nodes.iter().map(|node| node.host.clone()).collect();
        let named = |host: &str| {
            let is = |name: &String| if known.contains(name) { host == name } else { host.contains(name) };
            self.names.is_empty() || self.names.iter().any(is)
        };
        let in_state =
            |state: &str| self.state.is_empty() || self.state.iter().any(|of| of.eq_ignore_ascii_case(state));
        nodes.retain(|node| named(&node.host) && in_state(&node.state));
    }

    /// The node that is to be told of in full: one whose whole name was given, and no other, where no format was asked for.
    fn described<'a>(&self, found: &'a v1::NodesResponse, output: Output) -> Option<&'a v1::NodeView> {
        match (self.names.as_slice(), found.nodes.as_slice()) {
            ([name], [node]) if *name == node.host && self.view.is_default(output) => Some(node),
            _ => None,
        }
    }
}

async fn all(admin: &mut AdminClient, part: &str, limit: u32) -> Result<v1::NodesResponse, Status> {
    let request = v1::NodesRequest { host_contains: part.to_owned(), limit };
    Ok(admin.nodes(request).await?.into_inner())
}

/// No node has it in its name: with the one that may have been meant, or some that there are.
fn no_node(asked: &str, all: &v1::NodesResponse) -> Failure {
    let hosts: Vec<String> = all.nodes.iter().map(|node| one_line(&node.host).into_owned()).collect();
    let there = match nearest(asked, hosts.iter().map(String::as_str)) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => near("node", asked, &hosts),
    };
    Failure::Input(format!("no node is \"{}\", or has it in its name{there}", one_line(asked)))
}

const NODE_COLUMNS: &[Column<v1::NodeView>] = &[
    ("host", |node| (&*node.host).into()),
    ("rack", |node| (&*node.rack).into()),
    ("state", |node| (&*node.state).into()),
    ("class", |node| (&*node.machine_class).into()),
    ("labels", |node| (&*node.labels.join(" ")).into()),
    ("MB|memory", |node| memory(&node.total).into()),
    ("used", |node| memory(&node.used).into()),
    ("leased", |node| memory(&node.leased).into()),
    ("free", |node| free_memory(node).into()),
    ("vcores", |node| vcores(&node.total).into()),
    ("vcores-used", |node| vcores(&node.used).into()),
    ("vcores-leased", |node| vcores(&node.leased).into()),
    ("containers", |node| node.containers.into()),
    ("heard", |node| node.age_ms.into()),
];

const NODE_HEADER: [&str; 8] = ["host", "rack", "state", "MB", "used", "leased", "containers", "heard"];

fn memory(size: &Option<yarn::ResourceProto>) -> f64 {
    size.as_ref().map_or(0, yarn::ResourceProto::memory) as f64
}

fn free_memory(node: &v1::NodeView) -> f64 {
    memory(&node.total) - memory(&node.used) - memory(&node.leased)
}

fn vcores(size: &Option<yarn::ResourceProto>) -> Option<f64> {
    size.as_ref().map(|size| f64::from(size.virtual_cores()))
}

fn nodes_text(answer: &v1::NodesResponse, wide: bool) -> String {
    let of = |size: &Option<yarn::ResourceProto>| size.clone().unwrap_or_default();
    let row = |node: &v1::NodeView| {
        [
            node.host.clone(),
            node.rack.clone(),
            node.state.clone(),
            of(&node.total).memory().to_string(),
            of(&node.used).memory().to_string(),
            of(&node.leased).memory().to_string(),
            node.containers.to_string(),
            node.age_ms.map_or_else(|| "-".to_owned(), output::age),
        ]
    };
    let table = if wide {
        let rows = answer.nodes.iter().map(|node| {
            let [host, rack, state, total, used, leased, containers, heard] = row(node);
            let cores = |size| of(size).virtual_cores().to_string();
            let [cores, cores_used, cores_leased] = [&node.total, &node.used, &node.leased].map(cores);
            let (class, labels) = (node.machine_class.clone(), node.labels.join(" "));
            let free = free_memory(node).to_string();
            [
                host,
                rack,
                state,
                class,
                labels,
                total,
                used,
                leased,
                free,
                cores,
                cores_used,
                cores_leased,
                containers,
                heard,
            ]
        });
        let [host, rack, state, total, used, leased, containers, heard] = NODE_HEADER;
        let cores = ["vcores", "vcores used", "vcores leased"];
        let [cores, cores_used, cores_leased] = cores;
        let header = [
            host,
            rack,
            state,
            "class",
            "labels",
            total,
            used,
            leased,
            "free",
            cores,
            cores_used,
            cores_leased,
            containers,
            heard,
        ];
        output::table(header, 5, rows)
    } else {
        output::table(NODE_HEADER, 3, answer.nodes.iter().map(row))
    };
    format!("{table}\n{} of {} nodes", answer.nodes.len(), answer.total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn args(given: &[&str]) -> Result<NodesArgs, clap::Error> {
        let command = NodesArgs::augment_args(Command::new("nodes").no_binary_name(true));
        NodesArgs::from_arg_matches(&command.try_get_matches_from(given)?)
    }

    fn node(host: &str, state: &str) -> v1::NodeView {
        v1::NodeView { host: host.into(), state: state.into(), ..v1::NodeView::default() }
    }

    fn narrowed(given: &[&str]) -> Vec<String> {
        let mut nodes = [("n1", "RUNNING"), ("n10", "LOST"), ("n2", "DECOMMISSIONING")]
            .map(|(host, state)| node(host, state))
            .to_vec();
        args(given).unwrap().narrow(&mut nodes);
        nodes.into_iter().map(|node| node.host).collect()
    }

    #[test]
    fn a_whole_name_is_that_nodes_alone_and_a_part_of_one_all_that_have_it() {
        assert_eq!(narrowed(&["n1"]), ["n1"]);
        assert_eq!(narrowed(&["n"]), ["n1", "n10", "n2"]);
        assert_eq!(narrowed(&["n2", "n1"]), ["n1", "n2"]);
        assert_eq!(narrowed(&["--state", "lost,Decommissioning"]), ["n10", "n2"]);
        assert_eq!(narrowed(&["n", "--state", "RUNNING"]), ["n1"]);
        let said = args(&["--state", "gone"]).unwrap_err().to_string();
        assert!(said.contains("'gone'") && NodeState::ALL.iter().all(|state| said.contains(state.as_str())), "{said}");
        let found = |hosts: &[&str]| {
            let nodes: Vec<v1::NodeView> = hosts.iter().map(|host| node(host, "RUNNING")).collect();
            v1::NodesResponse { total: nodes.len() as u32, nodes }
        };
        let as_text = Output::new(false);
        let described =
            |given: &[&str], hosts: &[&str]| args(given).unwrap().described(&found(hosts), as_text).is_some();
        assert!(described(&["n1"], &["n1"]));
        for format in ["table", "wide", "json", "yaml"] {
            assert!(!described(&["n1", "-o", format], &["n1"]), "{format} is what was asked for");
        }
        assert!(args(&["n1"]).unwrap().described(&found(&["n1"]), Output::new(true)).is_none(), "--json");
        assert!(!described(&["n"], &["n1"]) && !described(&["--host", "n1"], &["n1"]) && !described(&[], &["n1"]));
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_the_one_that_was_meant_or_some_that_there_are() {
        let nodes: Vec<v1::NodeView> = (1..=8).map(|at| node(&format!("rack1-node{at}"), "RUNNING")).collect();
        let all = v1::NodesResponse { total: 8, nodes };
        let said = |asked: &str| no_node(asked, &all).to_string();
        assert_eq!(
            said("rack1-nod2"),
            "no node is \"rack1-nod2\", or has it in its name; did you mean \"rack1-node2\"?"
        );
        let others = said("zebra");
        assert!(
            others.contains("; there are: rack1-node1, ") && others.ends_with(" and 3 more (hintctl nodes)"),
            "{others}"
        );
        assert!(no_node("x", &v1::NodesResponse::default()).to_string().ends_with("; no node is known"));
    }

    #[test]
    fn a_node_that_is_not_there_yet_can_be_watched() {
        let missing = |given: &[&str]| args(given).unwrap().missing(&[node("n1", "RUNNING")]).map(str::to_owned);
        assert_eq!([missing(&["n1", "n9"]).as_deref(), missing(&["--host", "n9"]).as_deref()], [Some("n9"); 2]);
        assert_eq!(
            [missing(&["n"]), missing(&["n9", "--watch"]), missing(&["--host", "n9", "--watch"])],
            [None, None, None]
        );
    }
}
