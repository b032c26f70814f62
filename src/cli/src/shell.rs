//! Shell completions and man pages, made of the commands' own definitions; hidden, for packages.

use super::Cli;
use super::daemon::Arguments;
use super::failure::Failure;
use super::output::Output;
use clap::{CommandFactory as _, Subcommand, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What packagers call.
#[derive(Debug, Subcommand)]
pub enum ShellCommand {
    /// Completions for a shell, on standard output
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
        /// The program to complete
        #[arg(long = "for", value_name = "PROGRAM", default_value = "hintctl")]
        program: Program,
    },
    /// Man pages of both programs, one for each command
    #[command(hide = true)]
    Man {
        /// The directory they go to; it is made if it is not there
        directory: PathBuf,
    },
}

/// A program of this package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The command line
    Hintctl,
    /// The daemon
    Hintd,
}

/// `hintctl completions` and `hintctl man`.
///
/// # Errors
/// [`Failure`] where a page can't be written, or JSON was asked for: neither has any.
pub fn run(command: &ShellCommand, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return Err(Failure::Input("completions and man pages are no JSON: leave --json out".to_owned()));
    }
    match command {
        ShellCommand::Completions { shell, program } => {
            // Into memory first: clap_complete panics where its writer fails, as a closed pipe does.
            let script = completions(*shell, *program);
            std::io::stdout().write_all(&script).map_err(|error| Failure::work(format!("standard output: {error}")))
        }
        ShellCommand::Man { directory } => {
            std::fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
            pages(&built(Program::Hintd), "8", &super::pages::hintd(), directory)?;
            pages(&built(Program::Hintctl), "1", &super::pages::hintctl(), directory)?;
            let file = directory.join("hintd.toml.5");
            std::fs::write(&file, super::pages::configuration()).map_err(|error| cannot(&file, &error))
        }
    }
}

fn completions(shell: Shell, program: Program) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = definition(program);
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

fn definition(program: Program) -> clap::Command {
    let command = match program {
        Program::Hintctl => Cli::command(),
        Program::Hintd => Arguments::command(),
    };
    command.disable_help_subcommand(true)
}

/// A definition whose commands know the options that hold for all of them.
fn built(program: Program) -> clap::Command {
    let mut command = definition(program);
    command.build();
    command
}

/// One page for the command and one for each below it that is shown, each with `more` at its end; `git-log`'s way of naming them.
fn pages(command: &clap::Command, section: &str, more: &str, directory: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name.to_uppercase()).section(section);
    let file = directory.join(format!("{name}.{section}"));
    man.render(&mut page).map_err(|error| cannot(&file, &error))?;
    page.extend_from_slice(more.as_bytes());
    std::fs::write(&file, page).map_err(|error| cannot(&file, &error))?;
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| pages(sub, section, more, directory))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::work(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_shown_command_has_a_man_page_and_hidden_ones_have_none() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("made/here");
        run(&ShellCommand::Man { directory: below.clone() }, Output::new(false)).unwrap();
        let mut expected: Vec<_> =
            super::super::commands().iter().map(|path| format!("hintctl-{}.1", path.join("-"))).collect();
        expected.extend(["hintctl.1", "hintd.8", "hintd.toml.5"].map(str::to_owned));
        expected.sort();
        assert_eq!(file_names(&below), expected);
        let page = std::fs::read_to_string(below.join("hintctl-topology-build.1")).unwrap();
        assert!(page.contains("admin\\-socket"), "options of all commands stand on each page:\n{page}");
        for name in ["hintctl-topology-build.1", "hintd.8"] {
            let page = std::fs::read_to_string(below.join(name)).unwrap();
            let sections = ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"].map(|name| format!(".SH \"{name}\""));
            assert!(sections.iter().all(|section| page.contains(section)), "{name}:\n{page}");
        }
    }

    #[test]
    fn completions_of_each_shell_know_the_commands_and_options_of_both_programs() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completions(shell, Program::Hintctl)).unwrap();
            assert!(script.contains("whatif") && script.contains("admin-socket"), "{shell}");
            let script = String::from_utf8(completions(shell, Program::Hintd)).unwrap();
            assert!(script.contains("config") && script.contains("check"), "{shell}");
        }
    }

    #[test]
    fn json_is_refused_for_what_has_none() {
        let command = ShellCommand::Completions { shell: Shell::Bash, program: Program::Hintd };
        assert!(matches!(run(&command, Output::new(true)), Err(Failure::Input(_))));
    }
}
