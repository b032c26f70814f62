//! `hintctl network import --lldp`: hosts under the switches that LLDP says they hang on.

mod neighbors;

use super::super::failure::Failure;
use super::super::files;
use super::super::new_file::ReplaceArg;
use super::super::output::{self, Output};
use super::super::printable::one_line;
use clap::Args;
use hintd::regular_file;
use hintd_model::cluster::document::Syntax;
use hintd_model::network::racks::{
    CORE, HostRow, NetworkFile, RACKS_FORMAT, RacksDocument, RateEntry, Spellings, SwitchRow, parse_rate, show_rate,
};
use hintd_model::units::BitsPerSec;
use neighbors::{Neighbor, neighbors};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Bytes of one output of lldpcli: one of a host has some kilobytes, 3 a neighbor.
const LLDP_BYTES: u64 = 4 << 20;

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
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    replace: ReplaceArg,
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
    args.replace.check(&args.output)?;
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
    let mut notes = renamed(&mut placed);
    notes.extend(left_out_notes(&left_out, usual(&placed)));
    if args.uplink.is_none() {
        notes.push("no --uplink was given: nothing limits the switches' links up until the file says so".to_owned());
    }
    args.replace.write(&args.output, &checked(&args.output, &document(&placed, args.uplink), &notes)?)?;
    notes.iter().for_each(|note| output.progress(note));
    let hosts = placed.len();
    placed.extend(left_out);
    output.result(&placed, || text(&placed, hosts, args))
}

/// `core` is the name of the switch that joins all racks: a switch that hosts hang on gets another one. What was renamed, in words.
fn renamed(placed: &mut [Placed]) -> Vec<String> {
    if placed.iter().all(|host| host.switch != CORE) {
        return Vec::new();
    }
    let taken: BTreeSet<&str> = placed.iter().flat_map(|host| [host.host.as_str(), host.switch.as_str()]).collect();
    let free = (1..).map(|number| format!("{CORE}-{number}")).find(|name| !taken.contains(name.as_str()));
    let name = free.unwrap_or_default(); // numbers do not end
    placed.iter_mut().filter(|host| host.switch == CORE).for_each(|host| name.clone_into(&mut host.switch));
    vec![format!(
        "the switch \"{CORE}\" is called \"{name}\" in the file, because \"{CORE}\" is hintd's name for the switch that joins all racks"
    )]
}

/// What it means that hosts are left out.
fn left_out_notes(left_out: &[Placed], usual: Option<u64>) -> Vec<String> {
    let why = |host: &Placed| {
        let (host, why) = (one_line(&host.host), host.left_out.as_deref().unwrap_or_default());
        format!("left out: {host}: {}", one_line(why))
    };
    let mut notes: Vec<String> = left_out.iter().map(why).collect();
    if let Some(usual) = usual.filter(|_| !left_out.is_empty()) {
        notes.push(format!(
            "the links of hosts that are left out count as {}, the most common rate of the others, unless a row in [hosts] says otherwise",
            show_rate(BitsPerSec(usual))
        ));
        notes.push(
            "hosts that are left out hang on a switch of their YARN rack's own, not on the switch of their neighbors: a rack may be \
             split in two until [hosts] names their switch"
                .to_owned(),
        );
    }
    notes
}

/// The file's text, read as hintd would: what it would refuse is not written. JSON has no comments.
fn checked(path: &Path, document: &RacksDocument, notes: &[String]) -> Result<String, Failure> {
    let text = files::text_for(path, document)?;
    let comments: String = notes.iter().map(|note| format!("# {}\n", one_line(note))).collect();
    let (text, read) = match files::syntax(path)? {
        Syntax::Toml => (comments.clone() + &text, NetworkFile::read_toml(&(comments + &text))),
        Syntax::Json => (text.clone(), NetworkFile::read_json(&text)),
    };
    read.map(|_| text).map_err(|problems| {
        let words: Vec<_> = problems.iter().map(|problem| format!("  {}", one_line(&problem.to_string()))).collect();
        let advice = "give the switch or host another name, or leave its file out";
        Failure::in_file(path, format!("not written, because hintd would refuse it ({advice}):\n{}", words.join("\n")))
    })
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
    let text = regular_file::read_text(file, LLDP_BYTES).map_err(|error| Trouble::Wrong(error.to_string()))?;
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

/// The most common rate of hosts' links; of several the highest.
fn usual(placed: &[Placed]) -> Option<u64> {
    let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
    for host in placed {
        *rates.entry(host.bits_per_s).or_default() += 1;
    }
    rates.into_iter().max_by_key(|(rate, count)| (*count, *rate)).map(|(rate, _)| rate)
}

/// The shortest file that says it: the most common rate of hosts' links is that of all.
fn document(placed: &[Placed], uplink: Option<BitsPerSec>) -> RacksDocument {
    let usual = usual(placed);
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
    let table = output::table(["host", "interface", "switch", "port", "not used", "rate"], 5, rows);
    format!("{table}\n{}: {hosts} hosts, {} left out", args.output.display(), left_out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("fifo.json")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", at("zero.json")).unwrap();
        std::fs::write(at("large.json"), vec![b' '; LLDP_BYTES as usize + 1]).unwrap();
        let args = ImportArgs {
            lldp: vec![folder.path().to_owned()],
            nic: None,
            uplink: None,
            interface: None,
            partial: true,
            output: at("network.toml"),
            replace: ReplaceArg::default(),
        };
        let said = run(&args, Output::new(false)).unwrap_err().to_string();
        for words in
            ["fifo.json: it is a FIFO", "zero.json: it is a device", "large.json: it has more than 4194304 bytes"]
        {
            assert!(said.contains(words), "{said}");
        }
        assert!(!at("network.toml").exists());
    }
}
