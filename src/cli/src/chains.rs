//! `hintctl chains`: middleboxes and chains in force, and which chains can't be met, by which cut.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use super::printable::{one_line, one_line_strings};
use clap::{Args, Subcommand};
use hintd::config::Config;
use hintd::server::convert::unmet_view;
use hintd_client::wire::v1;
use hintd_model::network::chains::{BoxLoads, Chains, ChainsDocument, unmet};
use hintd_model::network::{Network, NetworkDocument};
use serde::Serialize;
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

/// Declared chains, held against a network.
#[derive(Serialize)]
struct Checked {
    /// How many are declared.
    chains: usize,
    /// Without a network nothing can be said of them.
    network_known: bool,
    /// Those that some hosts can't pass.
    unmet: Vec<v1::UnmetView>,
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
    daemon.ask(async |mut admin| admin.chains(v1::ChainsRequest {}).await)
}

fn list(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = ask(daemon)?;
    output.sorted_answer(&answer, text)
}

fn run_check(args: &CheckArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let declared = match (&args.config, &args.chains) {
        (Some(config), _) => Some((config, of_config(config)?)),
        (None, Some(file)) => Some((file, files::read::<ChainsDocument>(file)?)),
        (None, None) => None,
    };
    let asked = declared.is_none();
    let checked = match declared {
        Some((file, document)) => offline(file, &document, args.network.as_deref())?,
        None if args.network.is_some() => {
            let message = "--network goes with --chains or --config: the running daemon has a network of its own";
            return Err(Failure::Input(message.to_owned()));
        }
        None => {
            let answer = ask(daemon)?;
            let answer = if output.is_json() { answer } else { one_line_strings(&answer) };
            Checked { chains: answer.chains.len(), network_known: answer.network_known, unmet: answer.unmet }
        }
    };
    output.sorted(&checked, || verdict(&checked))?;
    let Checked { chains, network_known, unmet } = &checked;
    if unmet.is_empty() && !network_known && *chains > 0 && asked {
        let message = format!("the daemon knows no network: nobody can say whether its {chains} chains can be met");
        return Err(Failure::work(message));
    }
    if unmet.is_empty() {
        return Ok(());
    }
    let mut names: Vec<_> = unmet.iter().map(|unmet| one_line(&unmet.chain)).collect();
    names.dedup();
    Err(Failure::work(format!("{} of {chains} chains can't be met: {}", names.len(), names.join(", "))))
}

fn of_config(file: &Path) -> Result<ChainsDocument, Failure> {
    let config = Config::load(file).map_err(|error| Failure::Input(error.to_string()))?;
    Ok(ChainsDocument::clone(&config.options.settings.engine.chains))
}

fn offline(file: &Path, document: &ChainsDocument, network: Option<&Path>) -> Result<Checked, Failure> {
    let network = network.map(read_network).transpose()?;
    let chains = Chains::new(document, network.as_ref()).map_err(|problems| files::problems(file, &problems))?;
    let found = network.as_ref().map(|network| unmet(&chains, network, &BoxLoads::new(&chains))).unwrap_or_default();
    let unmet = found.iter().map(unmet_view).collect();
    Ok(Checked { chains: chains.chains().len(), network_known: network.is_some(), unmet })
}

fn read_network(file: &Path) -> Result<Network, Failure> {
    let document: NetworkDocument = files::read(file)?;
    Network::from_document(&document).map_err(|problems| files::problems(file, &problems))
}

fn verdict(checked: &Checked) -> String {
    let Checked { chains, network_known, unmet } = checked;
    if unmet.is_empty() && !network_known {
        return format!("{chains} chains are declared as they should be; without a network nothing more can be said");
    }
    if unmet.is_empty() {
        return format!("all {chains} chains can be met from every host");
    }
    unmet_table(unmet)
}

fn unmet_table(found: &[v1::UnmetView]) -> String {
    let rows = found.iter().map(|unmet| {
        let v1::UnmetView { chain, r#type, hosts, example, message, .. } = unmet;
        [chain.clone(), r#type.clone(), hosts.to_string(), example.clone(), message.clone()]
    });
    output::table(["chain", "type", "hosts", "one of them", "why it can't be met"], 2, rows)
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
