//! `hintctl network import --lldp`: hosts under the switches that LLDP says they hang on.

mod neighbors;

use super::super::failure::Failure;
use super::super::files;
use super::super::output::{self, Output};
use clap::Args;
use hintd_model::network::racks::{HostRow, RACKS_FORMAT, RacksDocument, RateEntry, Spellings, SwitchRow, parse_rate};
use hintd_model::units::BitsPerSec;
use neighbors::{Neighbor, neighbors};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What to make a network of.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Outputs of `lldpcli -f json show neighbors details`, each called HOST.json; or folders of them
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    lldp: Vec<PathBuf>,
    /// Rate of hosts' links whose switch does not say its port's speed
    #[arg(long, value_name = "RATE", value_parser = rate)]
    nic: Option<BitsPerSec>,
    /// Rate of all links up from each switch together; not given: nothing limits them
    #[arg(long, value_name = "RATE", value_parser = rate)]
    uplink: Option<BitsPerSec>,
    /// The interface by which hosts are on the network; not given: the fastest that a switch is heard on
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Leave out hosts whose output names no switch, and say which
    #[arg(long)]
    partial: bool,
    /// Where to write the network file, .toml or .json
    #[arg(short, long)]
    output: PathBuf,
}

fn rate(text: &str) -> Result<BitsPerSec, String> {
    parse_rate(text)
}

/// A host and the port that it hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Placed {
    host: String,
    interface: String,
    switch: String,
    port: String,
    bits_per_s: u64,
    /// Other switches that are heard: the host hangs on them as well.
    others: Vec<String>,
    /// Why it is not in the file, as --partial has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

/// Why a host has no place.
#[derive(Debug)]
enum Trouble {
    /// Its output says of no switch: it may be left out.
    Unheard(String),
    /// Anything else.
    Wrong(String),
}

/// Makes and writes the file.
pub(super) fn run(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let files = sources(&args.lldp)?;
    let named: Vec<_> = files.iter().map(|file| (file, host_of(file))).collect();
    let (mut placed, mut left_out, mut wrong) = (Vec::<Placed>::new(), Vec::new(), Vec::new());
    let mut spellings = Spellings::default();
    for (file, host) in &named {
        let found = host
            .as_deref()
            .ok_or_else(|| Trouble::Wrong("the file's name does not say which host it is of".to_owned()));
        let found = found.and_then(|host| match spellings.other(host) {
            Some(other) => Err(Trouble::Wrong(format!("host \"{host}\" is \"{other}\", which has a file already"))),
            None if placed.iter().any(|known| known.host == host) => {
                Err(Trouble::Wrong(format!("host \"{host}\" has a file already")))
            }
            None => place(file, host, args),
        });
        match found {
            Ok(host) => placed.push(host),
            Err(Trouble::Unheard(why)) if args.partial => left_out.push(nowhere(host.as_deref(), why)),
            Err(Trouble::Unheard(why)) => {
                wrong.push(format!("{}: {why}; --partial leaves such hosts out", file.display()));
            }
            Err(Trouble::Wrong(why)) => wrong.push(format!("{}: {why}", file.display())),
        }
    }
    left_out.extend(switches(&mut placed, args.partial, &mut wrong));
    if wrong.is_empty() && placed.is_empty() {
        wrong.push("no host's output names a switch".to_owned());
    }
    if !wrong.is_empty() {
        return Err(Failure::Input(wrong.join("\n")));
    }
    placed.sort_by(|a, b| a.host.cmp(&b.host));
    files::write(&args.output, &document(&placed, args.uplink))?;
    let hosts = placed.len();
    placed.extend(left_out);
    output.result(&placed, || text(&placed, hosts, args))
}

/// Outputs of switches themselves: their neighbors are other switches, and a switch is no host.
fn switches(placed: &mut Vec<Placed>, partial: bool, wrong: &mut Vec<String>) -> Vec<Placed> {
    let heard: BTreeSet<String> = placed.iter().map(|host| host.switch.clone()).collect();
    let (switches, hosts): (Vec<_>, Vec<_>) = placed.drain(..).partition(|host| heard.contains(&host.host));
    *placed = hosts;
    let why = |name: &str| format!("\"{name}\" is a switch that others hear, and no host");
    if !partial {
        let refused = switches.iter().map(|host| why(&host.host) + ": take its file away, or --partial leaves it out");
        wrong.extend(refused);
    }
    switches.iter().map(|host| nowhere(Some(&host.host), why(&host.host))).collect()
}

/// A host that is left out.
fn nowhere(host: Option<&str>, why: String) -> Placed {
    let (host, none) = (host.unwrap_or_default().to_owned(), String::new);
    let (interface, switch, port) = (none(), none(), none());
    Placed { host, interface, switch, port, bits_per_s: 0, others: Vec::new(), left_out: Some(why) }
}

/// The host that a file is called after.
fn host_of(file: &Path) -> Option<String> {
    file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty()).map(str::to_owned)
}

/// The files, folders replaced by what is in them.
fn sources(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::in_file(path, error))?;
        let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut found: Vec<_> =
            entries.filter(|entry| entry.extension().is_some_and(|ending| ending == "json")).collect();
        if found.is_empty() {
            return Err(Failure::in_file(path, "no file in it ends in .json"));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn place(file: &Path, host: &str, args: &ImportArgs) -> Result<Placed, Trouble> {
    let text = files::read_text(file).map_err(|failure| Trouble::Wrong(failure.to_string()))?;
    // A host that could not be asked leaves an empty file, or what ssh said.
    let value = serde_json::from_str(&text).map_err(|error| Trouble::Unheard(error.to_string()))?;
    let mut found = neighbors(&value).map_err(Trouble::Unheard)?;
    if let Some(wanted) = &args.interface {
        found.retain(|neighbor| neighbor.interface == *wanted);
    }
    let heard: Vec<_> = found.iter().map(|neighbor| neighbor.switch.clone()).collect();
    found.retain(|neighbor| neighbor.forwards != Some(false));
    // The fastest; of equals the first by name.
    found.sort_by(|a, b| (b.rate, &a.interface).cmp(&(a.rate, &b.interface)));
    let Some(first) = found.first().cloned() else {
        let only = if heard.is_empty() {
            String::new()
        } else {
            format!(": only {}, which forward nothing", heard.join(", "))
        };
        let on = args.interface.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
        return Err(Trouble::Unheard(format!("no switch is heard{on}{only}")));
    };
    let Neighbor { interface, switch, port, rate, .. } = first;
    let rate = rate
        .or(args.nic)
        .ok_or_else(|| Trouble::Wrong(format!("port \"{port}\" of \"{switch}\" says no speed: give --nic")))?;
    let mut others: Vec<_> = found.into_iter().map(|other| other.switch).filter(|other| *other != switch).collect();
    others.sort_unstable();
    others.dedup();
    Ok(Placed { host: host.to_owned(), interface, switch, port, bits_per_s: rate.0, others, left_out: None })
}

/// The shortest file that says it: the most frequent rate of hosts' links is that of all.
fn document(placed: &[Placed], uplink: Option<BitsPerSec>) -> RacksDocument {
    let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
    for host in placed {
        *rates.entry(host.bits_per_s).or_default() += 1;
    }
    let usual = rates.into_iter().max_by_key(|(rate, count)| (*count, *rate)).map(|(rate, _)| rate);
    let entry = |bits: u64| RateEntry::of(BitsPerSec(bits));
    let host = |host: &Placed| {
        let nic = (Some(host.bits_per_s) != usual).then(|| entry(host.bits_per_s));
        (host.host.clone(), HostRow { nic, switch: Some(host.switch.clone()), rack: None })
    };
    let switch =
        |host: &Placed| (host.switch.clone(), SwitchRow { uplink: uplink.map(RateEntry::of), ..SwitchRow::default() });
    RacksDocument {
        format: RACKS_FORMAT.to_owned(),
        nic: usual.map(entry),
        racks: BTreeMap::new(),
        switches: placed.iter().map(switch).collect(),
        hosts: placed.iter().map(host).collect(),
        links: Vec::new(),
    }
}

/// `hosts`: how many of the rows are in the file.
fn text(rows: &[Placed], hosts: usize, args: &ImportArgs) -> String {
    let (placed, left_out) = rows.split_at(hosts);
    let rows = placed.iter().map(|host| {
        let Placed { host, interface, switch, port, bits_per_s, others, .. } = host;
        let others = if others.is_empty() { "-".to_owned() } else { others.join(" ") };
        [host.clone(), interface.clone(), switch.clone(), port.clone(), others, output::rate(*bits_per_s as f64)]
    });
    let mut lines = vec![output::table(["host", "interface", "switch", "port", "not used", "rate"], 5, rows)];
    if args.uplink.is_none() {
        lines.push("no --uplink is given: nothing limits the switches' links up until the file says so".to_owned());
    }
    let why = |host: &Placed| format!("left out: {}: {}", host.host, host.left_out.as_deref().unwrap_or_default());
    lines.extend(left_out.iter().map(why));
    lines.push(format!("{}: {hosts} hosts, {} left out", args.output.display(), left_out.len()));
    lines.join("\n")
}
