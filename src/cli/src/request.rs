//! `hintctl request` and `whatif request`: hints of a running daemon.

use super::answers;
use super::connect::{DaemonArgs, block_on};
use super::drain;
use super::failure::Failure;
use super::output::Output;
use super::place::read_request;
use super::printable::one_line_strings;
use clap::{Args, Subcommand};
use hintd::server::convert::{ask_to_wire, resource_to_wire};
use hintd_client::wire::v1;
use hintd_model::cluster::document::DEFAULT_ID;
use hintd_model::cluster::{Constraints, EdgePattern, Gang, HintRequest, WhenFull};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A request file.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl request --file job.json\n  \
    hintctl --json request --file job.toml --policy spread | jq '.hints[].host'\n\n\
    Real leases are taken and end at their time-to-live, and `hintctl release` gives them back; `hintctl whatif\n\
    request` asks without taking anything. Where neither --request-id nor the file has an id, each call asks something\n\
    new, under an id that is drawn. Asking again with the same id and body gives the same answer, as long as it is the\n\
    same user who asks: what makes it the same client is kept (--secret-file).")]
pub struct RequestArgs {
    /// The request, .json or .toml (docs/formats.md); -: standard input
    #[arg(long, short)]
    file: PathBuf,
    /// The request's id, instead of the file's or one that is drawn anew
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// The policy, instead of the request's or the daemon's choice
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Print the attempt's token as well, for programs that go on for it
    #[arg(long)]
    show_token: bool,
    /// Time to wait for the answer, all tries together, milliseconds; 0: 10 seconds
    #[arg(long, default_value_t = 0)]
    deadline_ms: u32,
}

/// What to try.
#[derive(Debug, Subcommand)]
pub enum WhatIfCommand {
    /// The hints that a request would get now; takes and remembers nothing
    #[command(after_help = "Example:\n  hintctl whatif request --file job.json --policy container")]
    Request(RequestArgs),
    /// What would move if links or switches were taken out; touches nothing
    Network(drain::DrainArgs),
}

/// For whoever sits before it: long enough for a restart of the daemon.
const PATIENCE: Duration = Duration::from_secs(10);

/// `hintctl request`.
///
/// # Errors
/// [`Failure`] where the file is wrong, no daemon answers, or it refuses.
pub fn request(args: &RequestArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let mut wire = args.read()?;
    if wire.request_id == DEFAULT_ID {
        wire.request_id = drawn_id();
    }
    let (set, token, repeat) = block_on(async {
        let patience = match wire.deadline_ms {
            0 => PATIENCE,
            deadline_ms => Duration::from_millis(deadline_ms.into()),
        };
        let answer = daemon.client().await?.request_hints(wire, patience).await;
        let answer = answer.map_err(|error| in_words_of_the_file(error.into()))?;
        let repeat = answer.is_repeat.then(|| one_line_strings(&answer).leases);
        let set = answer.hints.ok_or_else(|| Failure::work("the daemon's answer holds no hints"))?;
        Ok::<_, Failure>((set, answer.token, repeat))
    })?;
    let text = |set: &v1::HintSet| {
        let said = repeat.as_deref().map(answers::repeat_text);
        said.into_iter().chain([answers::text(set)]).collect::<Vec<_>>().join("\n")
    };
    let token = args.show_token.then_some(&*token);
    let shown = Answered::of(&set, token, repeat.as_deref());
    output.result(&shown, || {
        let text = text(&one_line_strings(&set));
        token.map_or_else(|| text.clone(), |token| format!("{text}\n\ntoken {token}"))
    })
}

/// An answer for programs.
#[derive(Serialize)]
struct Answered<'a> {
    #[serde(flatten)]
    set: &'a v1::HintSet,
    /// Where it is wanted, for those that go on for the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    /// The same request was answered before, and this is what was answered then.
    repeat: bool,
    /// Of a repeat: what has become of its leases.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_states: Option<&'a [v1::LeaseState]>,
    /// Of a repeat: none of its leases promises anything any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    leases_over: Option<bool>,
}

impl<'a> Answered<'a> {
    fn of(set: &'a v1::HintSet, token: Option<&'a str>, repeat: Option<&'a [v1::LeaseState]>) -> Self {
        let leases_over = repeat.map(|leases| !leases.iter().any(|lease| answers::is_live(&lease.state)));
        Self { set, token, repeat: repeat.is_some(), lease_states: repeat, leases_over }
    }
}

/// `hintctl whatif`.
///
/// # Errors
/// As [`request`].
pub fn what_if(command: &WhatIfCommand, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let args = match command {
        WhatIfCommand::Request(args) => args,
        WhatIfCommand::Network(args) => return drain::what_if(args, daemon, output),
    };
    let wire = args.read()?;
    let set = daemon.ask(async |mut admin| admin.what_if(wire).await).map_err(in_words_of_the_file)?;
    output.answer(&set, answers::text)
}

/// A refusal with the keys of request files (docs/formats.md), which call a container's size otherwise than the messages do.
fn in_words_of_the_file(failure: Failure) -> Failure {
    let words = |said: &str| {
        said.replace("].resource.memory", "].size.memory_mb")
            .replace("].resource.virtual_cores", "].size.vcores")
            .replace("].resource.", "].size.")
            .replace("].resource:", "].size:")
            .replace("].resource)", "].size)")
    };
    match failure {
        Failure::Input(said) => Failure::Input(words(&said)),
        Failure::Work(error) => match format!("{error:#}") {
            said if said.contains("].resource") => Failure::work(words(&said)),
            _ => Failure::Work(error),
        },
    }
}

impl RequestArgs {
    fn read(&self) -> Result<v1::RequestHintsRequest, Failure> {
        let mut wire = to_wire(&read_request(&self.file)?);
        wire.deadline_ms = self.deadline_ms;
        if let Some(id) = &self.request_id {
            wire.request_id.clone_from(id);
        }
        if let Some(policy) = &self.policy {
            wire.policy.clone_from(policy);
        }
        Ok(wire)
    }
}

/// An id that nobody has: a random UUID (RFC 9562, version 4).
fn drawn_id() -> String {
    let bits = rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A request as the wire carries it.
fn to_wire(request: &HintRequest) -> v1::RequestHintsRequest {
    let texts = |texts: &[std::sync::Arc<str>]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let group = |group: &hintd_model::cluster::TaskGroup| v1::TaskGroup {
        name: group.name.to_string(),
        role: group.role.to_string(),
        count: group.count,
        whole: group.whole,
        resource: Some(resource_to_wire(&group.size)),
        priority: group.key.priority,
        allocation_request_id: Some(group.key.allocation_request_id),
        node_label_expression: group.label.as_deref().unwrap_or_default().to_owned(),
        input_paths: texts(&group.input_paths),
        constraints: Some(constraints(&group.constraints)),
    };
    let edge = |edge: &hintd_model::cluster::GroupEdge| v1::GroupEdge {
        from: request.groups[edge.from.at()].name.to_string(),
        to: request.groups[edge.to.at()].name.to_string(),
        pattern: match edge.pattern {
            EdgePattern::AllToAll => v1::EdgePattern::AllToAll.into(),
            EdgePattern::OneToOne => v1::EdgePattern::OneToOne.into(),
        },
        bytes: edge.bytes.0,
    };
    v1::RequestHintsRequest {
        request_id: request.id.to_string(),
        application_id: request.attempt.application.to_string(),
        attempt: request.attempt.attempt,
        queue: request.queue.to_string(),
        user: request.user.to_string(),
        framework: request.framework.to_string(),
        asks: request.asks.iter().map(ask_to_wire).collect(),
        groups: request.groups.iter().map(group).collect(),
        edges: request.edges.iter().map(edge).collect(),
        input_paths: texts(&request.input_paths),
        recurring_job_key: request.recurring_key.as_deref().unwrap_or_default().to_owned(),
        constraints: Some(constraints(&request.constraints)),
        policy: request.policy.as_deref().unwrap_or_default().to_owned(),
        deadline_ms: 0,
        seed: request.seed,
        gang: match request.gang {
            Gang::All => v1::Gang::All.into(),
            Gang::UpTo => v1::Gang::UpTo.into(),
        },
        when_full: match request.when_full {
            WhenFull::Advise => v1::WhenFull::Advise.into(),
            WhenFull::Fail => v1::WhenFull::Fail.into(),
        },
        am_host: request.am_host.as_ref().map(ToString::to_string).unwrap_or_default(),
        follows: false,
        token: String::new(),
        nonce: Vec::new(),
    }
}

fn constraints(constraints: &Constraints) -> v1::Constraints {
    v1::Constraints {
        spread: constraints.spread,
        together: constraints.together,
        max_per_node: constraints.max_per_node,
        max_per_rack: constraints.max_per_rack,
        avoid_hosts: constraints.avoid_hosts.iter().map(ToString::to_string).collect(),
        avoid_racks: constraints.avoid_racks.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd::server::convert;
    use hintd_model::cluster::document::{RequestDocument, Syntax};

    const FILE: &str = r#"
format = "hintd.request/1"
id = "r1"
application_id = "application_1700000000000_0007"
queue = "etl"
policy = "spread"
seed = 9
gang = "all"
when_full = "fail"
input_paths = ["/in"]

[[groups]]
name = "map"
role = "map"
count = 4
size = { memory_mb = 1024, vcores = 1 }
constraints = { spread = true, avoid_hosts = ["h9"] }

[[groups]]
name = "reduce"
count = 1
label = "gpu"
size = { memory_mb = 2048, vcores = 1 }

[[edges]]
from = "map"
to = "reduce"
bytes = 5000
"#;

    #[test]
    fn the_documented_storm_topology_reaches_the_daemon_with_its_cycle() {
        const DOCS: &str = include_str!("../../../docs/formats.md");
        let (_, section) = DOCS.split_once("as a Storm topology").unwrap();
        let text = section.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
        let document: RequestDocument = Syntax::Toml.read(text).unwrap();
        let wire = to_wire(&document.to_request().unwrap());
        let edges: Vec<_> = wire.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
        assert!(edges.contains(&("bolt", "acker")) && edges.contains(&("acker", "bolt")), "{edges:?}");
        convert::request(&wire, &hintd::runtime::RequestLimits::default()).unwrap();
    }

    #[test]
    fn ids_that_are_drawn_are_uuids_and_no_two_alike() {
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|_| drawn_id()).collect();
        assert_eq!(ids.len(), 1_000);
        for id in ids {
            let parts: Vec<&str> = id.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
            assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{id}");
        }
    }

    #[test]
    fn a_refusal_names_keys_as_request_files_do() {
        let said = |failure: Failure| in_words_of_the_file(failure).to_string();
        for (wire, file) in [
            ("groups[0].resource.memory: 0 MB", "groups[0].size.memory_mb: 0 MB"),
            ("groups[1].resource.virtual_cores: -1", "groups[1].size.vcores: -1"),
            ("groups[1].resource.vcores: 99", "groups[1].size.vcores: 99"),
            ("groups[0].resource: no node", "groups[0].size: no node"),
            ("size is missing (groups[0].resource)", "size is missing (groups[0].size)"),
            ("0 MB are asked for (groups[0].resource.memory)", "0 MB are asked for (groups[0].size.memory_mb)"),
            ("groups[0].count: 0", "groups[0].count: 0"),
        ] {
            assert_eq!(said(Failure::Input(wire.to_owned())), file);
            assert_eq!(said(Failure::work(wire)), file);
        }
    }

    #[test]
    fn a_request_file_reaches_the_daemon_as_it_was_written() {
        let document: RequestDocument = Syntax::Toml.read(FILE).unwrap();
        let request = document.to_request().unwrap();
        let heard = convert::request(&to_wire(&request), &hintd::runtime::RequestLimits::default()).unwrap();
        assert_eq!(heard, request);
    }
}
