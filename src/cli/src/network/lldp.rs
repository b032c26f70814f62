//! `hintctl network import --lldp`: hosts under the switches that LLDP says they hang on.

mod neighbors;

use super::super::failure::Failure;
use super::super::files;
use super::super::output::{self, Output};
use clap::Args;
use hintd_model::network::racks::{HostRow, RACKS_FORMAT, RacksDocument, RateEntry, SwitchRow, parse_rate};
use hintd_model::units::BitsPerSec;
use neighbors::{Neighbor, neighbors};
use serde::Serialize;
use std::collections::BTreeMap;
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
}

/// Makes and writes the file.
pub(super) fn run(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let files = sources(&args.lldp)?;
    let (mut placed, mut wrong) = (Vec::<Placed>::new(), Vec::new());
    for file in &files {
        match place(file, args) {
            Ok(host) if placed.iter().any(|known| known.host == host.host) => {
                wrong.push(format!("{}: host \"{}\" has a file already", file.display(), host.host));
            }
            Ok(host) => placed.push(host),
            Err(message) => wrong.push(format!("{}: {message}", file.display())),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Input(wrong.join("\n")));
    }
    placed.sort_by(|a, b| a.host.cmp(&b.host));
    files::write(&args.output, &document(&placed, args.uplink))?;
    output.result(&placed, || text(&placed, args))
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

fn place(file: &Path, args: &ImportArgs) -> Result<Placed, String> {
    let host = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty());
    let host = host.ok_or("the file's name does not say which host it is of")?.to_owned();
    let text = files::read_text(file).map_err(|failure| failure.to_string())?;
    let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut found = neighbors(&value)?;
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
        return Err(format!("no switch is heard{on}{only}"));
    };
    let Neighbor { interface, switch, port, rate, .. } = first;
    let rate = rate.or(args.nic).ok_or_else(|| format!("port \"{port}\" of \"{switch}\" says no speed: give --nic"))?;
    let mut others: Vec<_> = found.into_iter().map(|other| other.switch).filter(|other| *other != switch).collect();
    others.sort_unstable();
    others.dedup();
    Ok(Placed { host, interface, switch, port, bits_per_s: rate.0, others })
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

fn text(placed: &[Placed], args: &ImportArgs) -> String {
    let rows = placed.iter().map(|host| {
        let Placed { host, interface, switch, port, bits_per_s, others } = host;
        let others = if others.is_empty() { "-".to_owned() } else { others.join(" ") };
        [host.clone(), interface.clone(), switch.clone(), port.clone(), others, output::rate(*bits_per_s as f64)]
    });
    let mut lines = vec![output::table(["host", "interface", "switch", "port", "left out", "rate"], 5, rows)];
    if args.uplink.is_none() {
        lines.push("no --uplink is given: nothing limits the switches' links up until the file says so".to_owned());
    }
    lines.push(format!("{}: {} hosts", args.output.display(), placed.len()));
    lines.join("\n")
}
