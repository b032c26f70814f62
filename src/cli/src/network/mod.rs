//! `hintctl network`: the network in force, and files that say what it is.

mod lldp;
mod show;

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use super::printable::{one_line, one_line_strings};
use clap::{Args, Subcommand};
use hintd::regular_file::{self, NETWORK_BYTES, Readers};
use hintd_client::wire::v1;
use hintd_model::cluster::document::Syntax;
use hintd_model::network::racks::{FileProblem, NetworkFile};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to do with the network.
#[derive(Debug, Subcommand)]
pub enum NetworkCommand {
    /// The network in force: racks, rates, hosts without a place
    #[command(
        after_help = "Examples:\n  hintctl network show\n  hintctl --json network show | jq '.hosts_without_place'"
    )]
    Show,
    /// What a network file would change
    #[command(
        after_help = "Example:\n  hintctl network diff network.toml\n\nThe file is compared with what is in force, with the \
        nodes of now; what is up or down does not count.\nExit code 0: the same; 1: it differs; 2: the file is wrong, or no \
        daemon answers."
    )]
    Diff(FileArgs),
    /// Check a network file, put it where the configuration says, and reload
    #[command(
        after_help = "Example:\n  hintctl network load network.toml\n\nThe file that [network] file names is replaced, \
        whole or not at all, and survives restarts. The former\none is kept beside it: network.toml as network.previous.toml. A file that is wrong changes nothing. To be run on the daemon's machine, \
        by a user who may write there."
    )]
    Load(FileArgs),
    /// Make a network file of what switches tell hosts by LLDP
    #[command(
        after_help = "Examples:\n  for host in $(cat hosts); do ssh $host lldpcli -f json show neighbors details > lldp/$host.json; done\n  \
        hintctl network import --lldp lldp --uplink 40Gbit -o network.toml\n\nA file is of the host that it is called after. \
        The rate of a host's link is what the switch's port says its speed\nis. LLDP of hosts says nothing of links \
        between switches: --uplink is what each switch has upwards."
    )]
    Import(lldp::ImportArgs),
}

/// Mistakes of a file that are named.
const MISTAKES_SHOWN: usize = 100;

/// Which file.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The file, .toml or .json
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for files that are wrong, and where no daemon answers; of `diff` also where the file differs.
pub fn run(command: &NetworkCommand, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    match command {
        NetworkCommand::Show => show::run(daemon, output),
        NetworkCommand::Diff(args) => diff(&args.file, daemon, output),
        NetworkCommand::Load(args) => load(&args.file, daemon, output),
        NetworkCommand::Import(args) => lldp::run(args, output),
    }
}

/// Asks what a file would change.
async fn ask(file: &Path, daemon: &DaemonArgs) -> Result<(String, v1::DiffNetworkResponse), Failure> {
    let syntax = Syntax::of_file(&file.to_string_lossy());
    let syntax = syntax.ok_or_else(|| Failure::in_file(file, "the name must end in .toml or .json"))?;
    let text = files::read_text_within(file, NETWORK_BYTES)?;
    let request = v1::DiffNetworkRequest { text: text.clone().into_bytes(), json: syntax == Syntax::Json };
    let answer = daemon.operator().await?.diff_network(request).await;
    let answer = answer.map_err(|status| match status.code() {
        tonic::Code::InvalidArgument => {
            mistakes(file, syntax, &text).unwrap_or_else(|| Failure::in_file(file, Failure::from(status)))
        }
        _ => Failure::from(status),
    })?;
    Ok((text, answer.into_inner()))
}

/// What is wrong with a file that the daemon refuses, a line each: its answer has all in one. `None`: what is wrong shows only
/// beside the nodes that it knows, or only to its version.
fn mistakes(file: &Path, syntax: Syntax, text: &str) -> Option<Failure> {
    let read = match syntax {
        Syntax::Toml => NetworkFile::read_toml(text),
        Syntax::Json => NetworkFile::read_json(text),
    };
    let shown = |problem: &FileProblem| {
        let line = problem.line.map_or_else(String::new, |line| format!("line {line}: "));
        line + &one_line(&problem.to_string())
    };
    let found = read.err()?;
    let mut problems = found.iter().take(MISTAKES_SHOWN).map(shown).collect::<Vec<_>>();
    if found.len() > MISTAKES_SHOWN {
        problems.push(format!("{} mistakes more", found.len() - MISTAKES_SHOWN));
    }
    Some(files::problems(file, &problems))
}

/// Every failure is bad input here: 1 is for a file that differs, as `diff` has it.
fn diff(file: &Path, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let trouble = |failure: Failure| Failure::Input(failure.to_string());
    let (_, answer) = block_on(ask(file, daemon)).map_err(trouble)?;
    output.file(&answer, &differences(&one_line_strings(&answer))).map_err(trouble)?;
    match answer.differences.len() {
        0 => Ok(()),
        count => Err(Failure::work(format!("{}: {count} differences from the network in force", file.display()))),
    }
}

fn differences(answer: &v1::DiffNetworkResponse) -> String {
    if answer.differences.is_empty() {
        return "the same".to_owned();
    }
    let lines = answer.differences.iter().map(|row| {
        let v1::NetworkDifference { what, name, before, after } = row;
        match (before.as_str(), after.as_str()) {
            ("", after) => format!("+ {what} {name}: {after}"),
            (before, "") => format!("- {what} {name}: {before}"),
            (before, after) => format!("~ {what} {name}: {before} -> {after}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn load(file: &Path, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let (target, former, count, reloaded) = block_on(async {
        let (text, answer) = ask(file, daemon).await?;
        let target = target(file, &answer.file)?;
        let former = keep(&target, &text)?;
        if former != Former::Same {
            regular_file::replace(&target, text.as_bytes(), Readers::Of(&target))
                .map_err(|error| Failure::work(format!("{}: {error}", shown(&target))))?;
        }
        let reloaded = daemon.operator().await?.reload(v1::ReloadRequest {}).await;
        let reloaded = reloaded.map_err(|status| {
            let back = former.kept().map(|kept| format!("; the former one is {}", shown(kept))).unwrap_or_default();
            Failure::work(format!(
                "{} is in its place and not in force: {}{back}",
                shown(&target),
                Failure::from(status)
            ))
        })?;
        Ok((target, former, answer.differences.len(), reloaded.into_inner()))
    })?;
    let generation = reloaded.config_generation;
    let document =
        json!({ "file": target, "previous": former.kept(), "differences": count, "config_generation": generation });
    output.result(&document, || {
        let former = match &former {
            Former::Kept(kept) => format!("the former one is {}", shown(kept)),
            Former::Same => "it is the same to the byte: nothing was replaced".to_owned(),
            Former::None => "there was no other before".to_owned(),
        };
        format!("{}: in force, {count} differences from before; {former}", shown(&target))
    })
}

/// The file that was in the place of another before.
#[derive(Debug, PartialEq, Eq)]
enum Former {
    /// There was none.
    None,
    /// It says the same to the byte.
    Same,
    /// It is kept here.
    Kept(PathBuf),
}

impl Former {
    fn kept(&self) -> Option<&Path> {
        match self {
            Self::Kept(kept) => Some(kept),
            Self::None | Self::Same => None,
        }
    }
}

/// Keeps the configured file beside itself before another takes its place: `network.toml` as `network.previous.toml`. A file
/// that says the same already is not replaced, and what was kept before it stays.
fn keep(target: &Path, text: &str) -> Result<Former, Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::work(format!("{}: {error}", shown(path)));
    // A FIFO would be waited for.
    if let Ok(found) = std::fs::metadata(target)
        && !found.is_file()
    {
        return Err(Failure::in_file(target, "what [network] file names is no regular file, and is not replaced"));
    }
    let former = match std::fs::read(target) {
        Ok(former) if former == text.as_bytes() => return Ok(Former::Same),
        Ok(former) => former,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Former::None),
        Err(error) => return Err(failed(target, error)),
    };
    let ending = target.extension().unwrap_or_default().to_string_lossy();
    let kept = target.with_extension(format!("previous.{ending}"));
    regular_file::replace(&kept, &former, Readers::Of(target)).map_err(|error| failed(&kept, error))?;
    Ok(Former::Kept(kept))
}

/// The configured file, which has to be written as the new one is.
fn target(file: &Path, configured: &str) -> Result<PathBuf, Failure> {
    if configured.is_empty() {
        return Err(Failure::work("the configuration names no network file: set [network] file, and reload"));
    }
    let (theirs, mine) = (Path::new(configured).extension(), file.extension());
    if theirs != mine {
        return Err(Failure::in_file(
            file,
            format!("[network] file is {}, which ends otherwise", one_line(configured)),
        ));
    }
    Ok(std::fs::canonicalize(configured).unwrap_or_else(|_| PathBuf::from(configured)))
}

/// The daemon named it.
fn shown(target: &Path) -> String {
    one_line(&target.display().to_string()).into_owned()
}

/// A rate, or that nothing limits it.
fn rate(bits_per_s: Option<u64>) -> String {
    bits_per_s.map_or_else(|| "unlimited".to_owned(), |bits| output::rate(bits as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_replaced_is_kept_beside_it_and_the_same_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("network.toml");
        assert_eq!(keep(&file, "a").unwrap(), Former::None);
        std::fs::write(&file, "a").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let kept = folder.path().join("network.previous.toml");
        assert_eq!(keep(&file, "b").unwrap(), Former::Kept(kept.clone()));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "a");
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
        std::fs::write(&file, "b").unwrap();
        assert_eq!(keep(&file, "b").unwrap(), Former::Same);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "a", "the way back stays");
        assert!(keep(folder.path(), "b").unwrap_err().to_string().contains("no regular file"));
    }

    #[test]
    fn mistakes_stand_a_line_each_and_none_speaks_to_the_terminal() {
        let file = Path::new("n.toml");
        let text =
            "format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10GB\"\n[hosts.\"a\\u001bb\"]\nswitch = \"s\"\n";
        let said = mistakes(file, Syntax::Toml, text).unwrap().to_string();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 3 && lines.iter().all(|line| line.starts_with("n.toml: line ")), "{said}");
        assert!(said.contains("is no name") && !said.contains('\u{1b}'), "{said}");
        assert!(
            mistakes(file, Syntax::Toml, "format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n").is_none()
        );
    }

    #[test]
    fn a_file_of_more_than_hintd_reads_is_refused_with_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("network.toml");
        std::fs::write(&file, "#".repeat(9_000_000)).unwrap();
        let said = files::read_text_within(&file, NETWORK_BYTES).unwrap_err().to_string();
        assert!(said.ends_with("it has more than 8388608 bytes (8 MiB)"), "{said}");
    }

    #[test]
    fn differences_read_as_those_of_diff() {
        let row = |before: &str, after: &str| v1::NetworkDifference {
            what: "link".to_owned(),
            name: "l".to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        };
        let said = |rows| differences(&v1::DiffNetworkResponse { differences: rows, file: String::new() });
        assert_eq!(said(vec![row("", "x"), row("y", ""), row("x", "y")]), "+ link l: x\n- link l: y\n~ link l: x -> y");
        assert_eq!(said(vec![]), "the same");
    }
}
