//! `hintctl context`: several daemons by name, kept in a file of the user's, one of them current.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What is done with contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Contexts, the current one marked
    #[command(after_help = "Examples:\n  hintctl context list\n  hintctl --json context list | jq -r .current")]
    List,
    /// Make a context the current one
    Use(UseArgs),
    /// Keep a daemon by a name: what --address, --admin-socket and --secret-file say
    Add(AddArgs),
    /// Forget a context
    Remove(RemoveArgs),
}

/// Which one is to be current.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl context use prod\n  hintctl context use --none")]
pub struct UseArgs {
    /// Its name
    #[arg(required_unless_present = "none", conflicts_with = "none")]
    name: Option<String>,
    /// None: commands go by the environment and the defaults again
    #[arg(long)]
    none: bool,
}

/// What is kept.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl context add prod --address hints.example.org:8470 --admin-socket /run/hintd/admin.sock\n  \
    hintctl context add lab --admin-socket /tmp/lab/admin.sock\n  hintctl --context lab status\n\n\
    An option of the command line counts more than a context, --context more than the environment, and the environment more\n\
    than HINTD_CONTEXT and the current context."
)]
pub struct AddArgs {
    /// Letters, digits, '.', '-' and '_'
    name: String,
    /// Replace one of that name
    #[arg(long)]
    force: bool,
}

/// Which one goes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl context remove lab")]
pub struct RemoveArgs {
    /// Its name
    name: String,
}

/// A daemon, as far as its context says where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// HOST:PORT of its gRPC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its admin socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_socket: Option<PathBuf>,
    /// The file with what makes later calls the same client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
}

/// All of a user's.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// Bytes of the file: thousands of contexts.
const FILE_MAX: u64 = 1 << 20;
/// Letters of a name.
const NAME_MAX: usize = 64;

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for a name that is not there, or is; for a file that is no such file. [`Failure::Work`] where it can't be
/// written.
pub fn run(command: &ContextCommand, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let file = own_file()?;
    let mut all = read(&file)?;
    let said = match command {
        ContextCommand::List => return list(&file, &all, output),
        ContextCommand::Use(args) => all.choose(&file, args.name.as_deref())?,
        ContextCommand::Add(args) => all.add(&args.name, of_flags(daemon)?, args.force)?,
        ContextCommand::Remove(args) => all.remove(&file, &args.name)?,
    };
    write(&file, &all)?;
    output.sorted(&json!({ "file": file, "current": all.current }), || said)
}

/// What the flags name; a file by its whole path, for the next call may be made elsewhere.
fn of_flags(daemon: &DaemonArgs) -> Result<Context, Failure> {
    let whole = |path: &PathBuf| std::path::absolute(path).map_err(|error| Failure::in_file(path, error));
    let context = Context {
        address: daemon.address.clone(),
        admin_socket: daemon.admin_socket.as_ref().map(whole).transpose()?,
        secret_file: daemon.secret_file.as_ref().map(whole).transpose()?,
    };
    match context == Context::default() {
        true => Err(Failure::Input("a context names a daemon: give --address, --admin-socket or both".to_owned())),
        false => Ok(context),
    }
}

/// The context that is meant: by its name, else the current one; `None`: there is none.
///
/// # Errors
/// [`Failure::Input`] for a name that is not there, and for a file that is no such file.
pub(super) fn meant(name: Option<&str>) -> Result<Option<(String, Context)>, Failure> {
    let file = match (own_file(), name) {
        (Ok(file), _) => file,
        // A user without a home directory has no contexts.
        (Err(_), None) => return Ok(None),
        (Err(failure), Some(_)) => return Err(failure),
    };
    let mut all = read(&file)?;
    let Some(name) = name.map(str::to_owned).or_else(|| all.current.clone()) else { return Ok(None) };
    all.known(&file, &name)?;
    Ok(all.contexts.remove(&name).map(|context| (name, context)))
}

fn own_file() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let none = || {
        Failure::Input("contexts are kept in the home directory: neither XDG_CONFIG_HOME nor HOME is set".to_owned())
    };
    Ok(folder.ok_or_else(none)?.join("hintd").join("contexts.toml"))
}

/// What is kept; of a file that is not there nothing.
fn read(file: &Path) -> Result<Contexts, Failure> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contexts::default()),
        _ => {}
    }
    let text = files::read_text_within(file, FILE_MAX)?;
    let all: Contexts =
        hintd_model::cluster::document::Syntax::Toml.read(&text).map_err(|problem| Failure::in_file(file, problem))?;
    for name in all.contexts.keys() {
        check(name).map_err(|why| Failure::in_file(file, why))?;
    }
    if let Some(current) = all.current.as_ref().filter(|current| !all.contexts.contains_key(*current)) {
        return Err(Failure::in_file(file, format!("current: there is no context \"{current}\"{}", all.named())));
    }
    Ok(all)
}

/// Writes the whole file, for its owner alone; who reads meanwhile reads the one before.
fn write(file: &Path, all: &Contexts) -> Result<(), Failure> {
    let text = files::text_for(file, all)?;
    let failed = |error: std::io::Error| Failure::work(format!("{}: {error}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let draft = file.with_extension(std::process::id().to_string());
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut made| std::io::Write::write_all(&mut made, text.as_bytes()))
        .and_then(|()| std::fs::rename(&draft, file));
    written.map_err(|error| {
        drop(std::fs::remove_file(&draft)); // it may never have been made
        failed(error)
    })
}

/// Names are words of a command line and keys of a file.
fn check(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-') {
        return Ok(());
    }
    Err(format!("{name:?} is no name of a context: 1 to {NAME_MAX} letters, digits, '.', '-' and '_', no '-' first"))
}

impl Contexts {
    fn known(&self, file: &Path, name: &str) -> Result<(), Failure> {
        match self.contexts.contains_key(name) {
            true => Ok(()),
            false => Err(Failure::Input(format!("there is no context {name:?} in {}{}", file.display(), self.named()))),
        }
    }

    /// Which there are, to be said after what there is not.
    fn named(&self) -> String {
        let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
        if names.is_empty() { "; it has none".to_owned() } else { format!("; it has {}", names.join(", ")) }
    }

    fn choose(&mut self, file: &Path, name: Option<&str>) -> Result<String, Failure> {
        if let Some(name) = name {
            self.known(file, name)?;
        }
        self.current = name.map(str::to_owned);
        Ok(name.map_or("no context is current".to_owned(), |name| format!("context {name} is current")))
    }

    fn add(&mut self, name: &str, context: Context, force: bool) -> Result<String, Failure> {
        check(name).map_err(Failure::Input)?;
        if self.contexts.contains_key(name) && !force {
            return Err(Failure::Input(format!("there is a context {name} already: --force replaces it")));
        }
        self.contexts.insert(name.to_owned(), context);
        Ok(format!("context {name} is kept"))
    }

    fn remove(&mut self, file: &Path, name: &str) -> Result<String, Failure> {
        self.known(file, name)?;
        self.contexts.remove(name);
        let was_current = self.current.take_if(|current| *current == *name).is_some();
        Ok(format!("context {name} is forgotten{}", if was_current { "; none is current now" } else { "" }))
    }
}

fn list(file: &Path, all: &Contexts, output: Output) -> Result<(), Failure> {
    let document = |(name, context): (&String, &Context)| {
        json!({
            "name": name, "current": all.current.as_ref() == Some(name), "address": context.address,
            "admin_socket": context.admin_socket, "secret_file": context.secret_file,
        })
    };
    let contexts: Vec<_> = all.contexts.iter().map(document).collect();
    output.sorted(&json!({ "file": file, "current": all.current, "contexts": contexts }), || {
        if all.contexts.is_empty() {
            return format!("no context is kept in {}", file.display());
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
        let row = |(name, context): (&String, &Context)| {
            let mark = if all.current.as_ref() == Some(name) { "*" } else { "" };
            let address = context.address.clone().unwrap_or_else(|| "-".to_owned());
            [mark.to_owned(), name.clone(), address, path(&context.admin_socket), path(&context.secret_file)]
        };
        output::table(["", "context", "address", "admin socket", "secret file"], 5, all.contexts.iter().map(row))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        std::fs::write(&file, text).unwrap();
        let failure = read(&file).unwrap_err();
        assert!(matches!(failure, Failure::Input(_)), "{failure}");
        failure.to_string().replace(&*folder.path().to_string_lossy(), "")
    }

    #[test]
    fn what_is_wrong_in_the_file_is_said_with_its_line() {
        for (text, parts) in [
            ("current = \"a\"\n[contexts.a]\nadress = \"x\"\n", ["/contexts.toml", "line 3", "adress"]),
            ("[contexts.a]\naddress = 7\n", ["/contexts.toml", "line 2", "integer"]),
            ("[contexts.a\n", ["/contexts.toml", "line 1", ""]),
            ("contexts = 1\n", ["/contexts.toml", "line 1", "integer"]),
            ("current = \"b\"\n[contexts.a]\n", ["/contexts.toml", "no context \"b\"", "it has a"]),
            ("[contexts.\"a b\"]\n", ["/contexts.toml", "\"a b\"", "1 to 64 letters"]),
        ] {
            let said = refused(text);
            assert!(parts.iter().all(|part| said.contains(part)), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_file_is_written_whole_for_its_owner_alone_and_read_back() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/hintd/contexts.toml");
        assert_eq!(read(&file).unwrap(), Contexts::default());
        let mut all = Contexts::default();
        let context = Context { address: Some("h:1".to_owned()), ..Context::default() };
        all.add("prod", context.clone(), false).unwrap();
        all.choose(&file, Some("prod")).unwrap();
        write(&file, &all).unwrap();
        assert_eq!(read(&file).unwrap(), all);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no draft is left");
        assert!(all.add("prod", context, false).unwrap_err().to_string().contains("--force"));
        assert!(all.remove(&file, "prod").unwrap().contains("none is current now"));
        assert_eq!(all, Contexts::default());
        for name in ["", "-a", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(all.add(name, Context::default(), false).is_err(), "{name}");
        }
    }
}
