//! `hintctl config`: the daemon's configuration, made from what a cluster already says.

mod draft;
mod from_hadoop;
mod properties;
#[cfg(test)]
mod tests;

use super::failure::Failure;
use super::files;
use super::new_file::ReplaceArg;
use super::output::Output;
use clap::{Args, Subcommand};
use draft::Draft;
use properties::Properties;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to do with a configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// A configuration for hintd from Hadoop's own
    #[command(
        name = "from-hadoop",
        after_help = "Examples:\n  hintctl config from-hadoop /etc/hadoop/conf\n  \
        hintctl config from-hadoop /etc/hadoop/conf -o /etc/hintd/hintd.toml --force    # instead of the packaged file\n  \
        HADOOP_CONF_DIR=/etc/hadoop/conf hintctl config from-hadoop\n\n\
        Reads core-site.xml, hdfs-site.xml, yarn-site.xml, mapred-site.xml and capacity-scheduler.xml where they are there, and\n\
        spark-defaults.conf for where Spark's history server is, and writes what hintd needs of them: addresses of ResourceManagers, NameNodes and\n\
        history servers, and YARN's sizes. Each line names the property that it comes\n\
        from. What needs a look, such as delays that defeat hints, is said on standard error and in comments at its top. Nobody is asked over the network. The result is checked\n\
        as the daemon would; all that it does not say has hintd's defaults."
    )]
    FromHadoop(FromHadoopArgs),
}

/// Where Hadoop's own commands look.
const HADOOP_CONF_DIR: &str = "HADOOP_CONF_DIR";

/// Which cluster.
#[derive(Debug, Args)]
pub struct FromHadoopArgs {
    /// Hadoop's configuration, as /etc/hadoop/conf; may be left out where HADOOP_CONF_DIR names it
    folder: Option<PathBuf>,
    /// A new file for the result [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceArg,
}

#[derive(serde::Serialize)]
struct Made<'a> {
    toml: &'a str,
    notes: &'a [String],
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with the file, and its line where it is no such file; [`Failure::Work`] where the result can't be written.
pub fn run(command: &ConfigCommand, output: Output) -> Result<(), Failure> {
    let ConfigCommand::FromHadoop(args) = command;
    let folder = folder(args.folder.as_deref(), std::env::var_os(HADOOP_CONF_DIR))?;
    if args.folder.is_none() {
        output.progress(&format!("{} is read, which {HADOOP_CONF_DIR} names", folder.display()));
    }
    let properties = Properties::read(&folder)?;
    let draft = from_hadoop::draft(&properties);
    let text = draft.text(&folder);
    sound(&folder, &properties, &draft, &text, |note| output.progress(note))?;
    match &args.output {
        Some(file) => {
            args.replace.write(file, &text)?;
            output.result(&made(&text, &draft), || format!("{} is written", file.display()))
        }
        None => output.file(&made(&text, &draft), &text),
    }
}

/// The folder that is given, else the environment's.
fn folder(given: Option<&Path>, environment: Option<OsString>) -> Result<PathBuf, Failure> {
    let named = environment.filter(|named| !named.is_empty()).map(PathBuf::from);
    let missing = || {
        Failure::Input(format!(
            "give the folder of Hadoop's configuration, as /etc/hadoop/conf: {HADOOP_CONF_DIR} names none"
        ))
    };
    given.map(Path::to_owned).or(named).ok_or_else(missing)
}

fn made<'a>(toml: &'a str, draft: &'a Draft) -> Made<'a> {
    Made { toml, notes: &draft.notes }
}

/// Names all that is wrong with the files and what comes of them. What needs a look is told only where all files could be read:
/// a property of a broken file seems not to be set.
fn sound(
    folder: &Path,
    properties: &Properties,
    draft: &Draft,
    text: &str,
    tell: impl FnMut(&String),
) -> Result<(), Failure> {
    let mut lines = properties.problems.clone();
    lines.extend(draft.problems.iter().map(|problem| format!("{}: {problem}", folder.display())));
    if properties.problems.is_empty() {
        draft.notes.iter().for_each(tell);
    }
    match check(folder, draft, text, lines.is_empty()) {
        Ok(()) if lines.is_empty() => Ok(()),
        Ok(()) => Err(Failure::Input(lines.join("\n"))),
        Err(refused) if lines.is_empty() => Err(refused),
        Err(refused) => Err(Failure::Input(format!("{}\n{refused}", lines.join("\n")))),
    }
}

/// As the daemon would. There is no file yet: what is wrong is said of the property that the line comes from, with its file.
/// `complete`: all values could be read.
fn check(folder: &Path, draft: &Draft, text: &str, complete: bool) -> Result<(), Failure> {
    let of = |problem: &hintd::config::Problem| match draft.because(text, problem.line) {
        Some(property) => format!("{property}: hintd would refuse {}: {}", problem.key, problem.message),
        None => format!("hintd would refuse {}: {}", problem.key, problem.message),
    };
    // Where a size can't be read hintd's default stands in, and what is said of its fellows is no finding.
    let follows = |problem: &&hintd::config::Problem| !complete && problem.key.starts_with("yarn.");
    let Err(problems) = hintd::config::Config::from_text(text, "hintd.toml") else { return Ok(()) };
    let found: Vec<String> = problems.0.iter().filter(|problem| !follows(problem)).map(of).collect();
    if found.is_empty() { Ok(()) } else { Err(files::problems(folder, &found)) }
}
