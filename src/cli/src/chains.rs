//! `hintctl chains`: middleboxes and chains in force, and which chains can't be met, by which cut.

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use clap::{Args, Subcommand};
use hintd::config::Config;
use hintd::server::convert::unmet_view;
use hintd_client::wire::v1;
use hintd_model::network::chains::{BoxLoads, Chains, ChainsDocument, unmet};
use hintd_model::network::{Network, NetworkDocument};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What is asked of chains.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  hintctl chains\n  \
    hintctl --json chains | jq '.boxes[] | select(.state != \"up\")'"
)]
pub struct ChainsArgs {
    #[command(subcommand)]
    command: Option<ChainsCommand>,
}

#[derive(Debug, Subcommand)]
enum ChainsCommand {
    /// Which declared chains can't be met, by which cut; exit code 1 if there are any
    Check(CheckArgs),
}

/// Where chains and network come from; nothing given: the running daemon.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl chains check\n  \
    hintctl chains check --chains chains.toml --network net.json\n  \
    hintctl chains check --config /etc/hintd/hintd.toml --network net.json\n\n\
    Exit code 0: every chain can be met from every host; 1: some can't,\n    \
    or the daemon knows no network; 2: the declaration itself is wrong.")]
pub struct CheckArgs {
    /// Chains of a configuration's [chains]
    #[arg(long, value_name = "FILE", conflicts_with = "chains")]
    config: Option<PathBuf>,
    /// Chains of a file of their own (docs/formats.md)
    #[arg(long, value_name = "FILE")]
    chains: Option<PathBuf>,
    /// The network that boxes hang in; without one only the declaration is checked
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
}

/// `hintctl chains`.
///
/// # Errors
/// [`Failure`] where no daemon answers, a file is wrong, or a chain can't be met.
pub fn run(args: &ChainsArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    match &args.command {
        None => list(daemon, output),
        Some(ChainsCommand::Check(check)) => run_check(check, daemon, output),
    }
}

fn ask(daemon: &DaemonArgs) -> Result<v1::ChainsResponse, Failure> {
    block_on(async { Ok(daemon.admin().await?.chains(v1::ChainsRequest {}).await?.into_inner()) })
}

fn list(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = ask(daemon)?;
    output.result(&document(&answer), || text(&answer))
}

fn run_check(args: &CheckArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let declared = match (&args.config, &args.chains) {
        (Some(config), _) => Some((config, of_config(config)?)),
        (None, Some(file)) => Some((file, files::read::<ChainsDocument>(file)?)),
        (None, None) => None,
    };
    let asked = declared.is_none();
    let (chains, found, network) = match declared {
        Some((file, document)) => offline(file, &document, args.network.as_deref())?,
        None if args.network.is_some() => {
            let message = "--network goes with --chains or --config: the running daemon has a network of its own";
            return Err(Failure::Input(message.to_owned()));
        }
        None => {
            let answer = ask(daemon)?;
            (answer.chains.len(), answer.unmet, answer.network_known)
        }
    };
    let document = json!({
        "chains": chains, "network_known": network,
        "unmet": found.iter().map(unmet_document).collect::<Vec<_>>(),
    });
    output.result(&document, || verdict(chains, network, &found))?;
    if found.is_empty() && !network && chains > 0 && asked {
        let message = format!("the daemon knows no network: nobody can say whether its {chains} chains can be met");
        return Err(Failure::work(message));
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut names: Vec<&str> = found.iter().map(|unmet| unmet.chain.as_str()).collect();
    names.dedup();
    Err(Failure::work(format!("{} of {chains} chains can't be met: {}", names.len(), names.join(", "))))
}

fn of_config(file: &Path) -> Result<ChainsDocument, Failure> {
    let config = Config::load(file).map_err(|error| Failure::Input(error.to_string()))?;
    Ok(ChainsDocument::clone(&config.options.settings.engine.chains))
}

fn offline(
    file: &Path,
    document: &ChainsDocument,
    network: Option<&Path>,
) -> Result<(usize, Vec<v1::UnmetView>, bool), Failure> {
    let network = network.map(read_network).transpose()?;
    let chains = Chains::new(document, network.as_ref()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
        Failure::Input(lines.join("\n"))
    })?;
    let found = network.as_ref().map(|network| unmet(&chains, network, &BoxLoads::new(&chains))).unwrap_or_default();
    Ok((chains.chains().len(), found.iter().map(unmet_view).collect(), network.is_some()))
}

fn read_network(file: &Path) -> Result<Network, Failure> {
    let document: NetworkDocument = files::read(file)?;
    Network::from_document(&document).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
        Failure::Input(lines.join("\n"))
    })
}

fn verdict(chains: usize, network: bool, found: &[v1::UnmetView]) -> String {
    if found.is_empty() && !network {
        return format!("{chains} chains are declared as they should be; without a network nothing more can be said");
    }
    if found.is_empty() {
        return format!("all {chains} chains can be met from every host");
    }
    unmet_table(found)
}

fn unmet_table(found: &[v1::UnmetView]) -> String {
    let rows = found.iter().map(|unmet| {
        let v1::UnmetView { chain, r#type, hosts, example, message, .. } = unmet;
        [chain.clone(), r#type.clone(), hosts.to_string(), example.clone(), message.clone()]
    });
    output::table(["chain", "type", "hosts", "one of them", "why it can't be met"], 2, rows)
}

fn unmet_document(unmet: &v1::UnmetView) -> Value {
    json!({
        "chain": unmet.chain, "type": unmet.r#type, "hosts": unmet.hosts, "example": unmet.example,
        "reason": unmet.reason, "between": unmet.between, "message": unmet.message,
    })
}

fn document(answer: &v1::ChainsResponse) -> Value {
    let known = |known: &v1::BoxView| {
        json!({
            "name": known.name, "type": known.r#type, "at": known.at, "bits_per_s": known.bits_per_s,
            "used_bits_per_s": known.used_bits_per_s, "state": known.state,
        })
    };
    let chain = |chain: &v1::ChainView| {
        json!({
            "name": chain.name, "priority": chain.priority, "sequence": chain.sequence,
            "when_broken": chain.when_broken, "flows": chain.flows, "broken": chain.broken,
            "bypassing": chain.bypassing,
        })
    };
    json!({
        "declared_by": answer.declared_by, "network_known": answer.network_known,
        "boxes": answer.boxes.iter().map(known).collect::<Vec<_>>(),
        "chains": answer.chains.iter().map(chain).collect::<Vec<_>>(),
        "unmet": answer.unmet.iter().map(unmet_document).collect::<Vec<_>>(),
    })
}

fn text(answer: &v1::ChainsResponse) -> String {
    if answer.declared_by.is_empty() {
        return "no chains of middleboxes are declared, neither by [chains] of the configuration nor by a feed"
            .to_owned();
    }
    let boxes = answer.boxes.iter().map(|known| {
        let rate = |bits: u64| output::rate(bits as f64);
        let (used, all) = (rate(known.used_bits_per_s), rate(known.bits_per_s));
        [known.name.clone(), known.r#type.clone(), known.at.clone(), known.state.clone(), used, all]
    });
    let chains = answer.chains.iter().map(|chain| {
        [
            chain.name.clone(),
            chain.sequence.join(" → "),
            chain.when_broken.clone(),
            chain.priority.to_string(),
            chain.flows.to_string(),
            chain.bypassing.to_string(),
            chain.broken.to_string(),
        ]
    });
    let mut parts = vec![
        format!("declared by the {}", answer.declared_by),
        output::table(["box", "type", "at", "state", "reserved", "of"], 4, boxes),
        output::table(["chain", "passes", "fails", "priority", "flows", "past boxes", "without a way"], 3, chains),
    ];
    if !answer.network_known {
        parts.push("no network is known: requests under chains that fail closed are refused".to_owned());
    }
    if !answer.unmet.is_empty() {
        parts.push(unmet_table(&answer.unmet));
    }
    parts.join("\n\n")
}
