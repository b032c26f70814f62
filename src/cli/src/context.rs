//! `hintctl context`: several daemons by name, kept in a file of the user's, one of them current.

use super::connect::{ADDRESS, DaemonArgs};
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use clap::{Args, Subcommand};
use hintd::regular_file::{self, Readers};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// What is done with contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Contexts, the current one marked
    #[command(after_help = "Examples:\n  hintctl context list\n  hintctl --json context list | jq -r .current")]
    List,
    /// The current context's name
    #[command(after_help = "Example:\n  hintctl context current\n\nExit code 1: none is current.")]
    Current,
    /// Make a context the current one
    Use(UseArgs),
    /// Keep a daemon by a name: what --address, --admin-socket and --secret-file say
    Add(AddArgs),
    /// Give a context another name
    Rename(RenameArgs),
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
    than HINTD_CONTEXT and the current context. Where the environment, or an option, gives an address that is not the current\n\
    context's, commands that would ask that context's admin socket are refused, and so the other way round."
)]
pub struct AddArgs {
    /// Letters, digits, '.', '-' and '_'
    name: String,
    /// Replace one of that name
    #[arg(long)]
    force: bool,
}

/// Which one is renamed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl context rename lab lab-old\n\nIf it is the current one, it stays current.")]
pub struct RenameArgs {
    /// Its name
    name: String,
    /// Its name from now on: letters, digits, '.', '-' and '_'
    to: String,
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
    if let Some(name) = &daemon.context {
        return Err(Failure::Input(format!("--context {name}: `hintctl context` asks no daemon, leave it out")));
    }
    let file = own_file()?;
    let mut all = kept(&file)?;
    let said = match command {
        ContextCommand::List => return list(&file, &all, output),
        ContextCommand::Current => return current(&file, &all, output),
        ContextCommand::Use(args) => all.choose(&file, args.name.as_deref())?,
        ContextCommand::Add(args) => {
            let context = of_flags(daemon)?;
            if context.admin_socket.is_none() {
                output.progress(
                    "without --admin-socket operators' commands have nobody to ask in this context: they go over the admin \
                     socket of this machine, and for a daemon elsewhere through ssh",
                );
            }
            all.add(&args.name, context, args.force)?
        }
        ContextCommand::Rename(args) => all.rename(&file, &args.name, &args.to)?,
        ContextCommand::Remove(args) => all.remove(&file, &args.name)?,
    };
    write(&file, &all)?;
    output.sorted(&json!({ "file": file, "current": all.current }), || said)
}

/// What the flags name; a file by its whole path, for the next call may be made elsewhere.
fn of_flags(daemon: &DaemonArgs) -> Result<Context, Failure> {
    daemon.address.as_deref().map_or(Ok(()), check_address)?;
    let whole = |path: &PathBuf| std::path::absolute(path).map_err(|error| Failure::in_file(path, error));
    let context = Context {
        address: daemon.address.clone(),
        admin_socket: daemon.admin_socket.as_ref().map(whole).transpose()?,
        secret_file: daemon.secret_file.as_ref().map(whole).transpose()?,
    };
    match context.address.is_none() && context.admin_socket.is_none() {
        true => Err(Failure::Input("a context names a daemon: give --address, --admin-socket or both".to_owned())),
        false => Ok(context),
    }
}

/// HOST:PORT, as far as it can be seen without asking for it.
fn check_address(address: &str) -> Result<(), Failure> {
    let bare = address.strip_prefix("http://").unwrap_or(address);
    let host_and_port = bare.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
        let is_whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        is_host && is_whole && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    match host_and_port {
        true => Ok(()),
        false => {
            let shown = hintd::config::shown_url(address);
            Err(Failure::Input(format!("--address {shown:?} is no HOST:PORT, as in {ADDRESS}")))
        }
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
    let mut all = if name.is_some() { kept(&file) } else { read(&file) }?;
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

/// What is kept, of which the current one is there.
fn read(file: &Path) -> Result<Contexts, Failure> {
    let all = kept(file)?;
    match all.lost() {
        Some(current) => Err(Failure::in_file(
            file,
            format!("current: there is no context \"{current}\"{}: `hintctl context use` names another", all.named()),
        )),
        None => Ok(all),
    }
}

/// What is kept, also where the current one is not there: `hintctl context` mends that. Of a file that is not there nothing.
fn kept(file: &Path) -> Result<Contexts, Failure> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contexts::default()),
        _ => {}
    }
    parsed(file).map_err(|failure| {
        let file = file.display().to_string().replace('\'', r"'\''");
        Failure::Input(format!(
            "{failure}\nno `hintctl context` command can change such a file: mend it in an editor, or put it away, as in \
             `mv '{file}' '{file}.broken'`, and add contexts anew"
        ))
    })
}

fn parsed(file: &Path) -> Result<Contexts, Failure> {
    let text = files::read_text_within(file, FILE_MAX)?;
    let all: Contexts =
        hintd_model::cluster::document::Syntax::Toml.read(&text).map_err(|problem| Failure::in_file(file, problem))?;
    for name in all.contexts.keys() {
        check(name).map_err(|why| Failure::in_file(file, why))?;
    }
    Ok(all)
}

/// Writes the whole file, for its owner alone; who reads meanwhile reads the one before. A link stays one: what it leads to is
/// written.
fn write(file: &Path, all: &Contexts) -> Result<(), Failure> {
    let text = files::text_for(file, all)?;
    let failed = |error: std::io::Error| Failure::work(format!("{}: {error}", file.display()));
    let file = &match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_symlink() => behind(file).map_err(failed)?,
        _ => file.to_owned(),
    };
    if let Some(folder) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    regular_file::replace(file, text.as_bytes(), Readers::Owner).map_err(failed)
}

/// The file that a link leads to, which need not be there yet.
fn behind(link: &Path) -> std::io::Result<PathBuf> {
    match std::fs::canonicalize(link) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let target = std::fs::read_link(link)?;
            Ok(link.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)))
        }
        found => found,
    }
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
    /// The current one, where there is none of that name: the file was edited.
    fn lost(&self) -> Option<&str> {
        self.current.as_deref().filter(|current| !self.contexts.contains_key(*current))
    }

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

    fn rename(&mut self, file: &Path, name: &str, to: &str) -> Result<String, Failure> {
        self.known(file, name)?;
        check(to).map_err(Failure::Input)?;
        if self.contexts.contains_key(to) {
            return Err(Failure::Input(format!("there is a context {to} already")));
        }
        if let Some(context) = self.contexts.remove(name) {
            self.contexts.insert(to.to_owned(), context);
        }
        if let Some(current) = self.current.as_mut().filter(|current| *current == name) {
            to.clone_into(current);
        }
        Ok(format!("context {name} is {to} now"))
    }

    fn remove(&mut self, file: &Path, name: &str) -> Result<String, Failure> {
        if self.lost() != Some(name) {
            self.known(file, name)?;
        }
        self.contexts.remove(name);
        let was_current = self.current.take_if(|current| *current == *name).is_some();
        Ok(format!("context {name} is forgotten{}", if was_current { "; none is current now" } else { "" }))
    }
}

fn current(file: &Path, all: &Contexts, output: Output) -> Result<(), Failure> {
    match (&all.current, all.lost()) {
        (_, Some(lost)) => Err(Failure::in_file(file, format!("current: there is no context \"{lost}\""))),
        (Some(name), None) => output.sorted(&json!({ "file": file, "current": name }), || name.clone()),
        (None, None) => Err(Failure::work("no context is current: commands go by the environment and the defaults")),
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
    if let Some(current) = all.lost() {
        output.progress(&format!("{}: current: there is no context \"{current}\"", file.display()));
    }
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
    fn an_address_is_a_host_and_a_port() {
        for address in ["h:1", "h.example.org:8470", "[::1]:8470", "http://10.0.0.1:65535"] {
            assert!(check_address(address).is_ok(), "{address}");
        }
        for address in ["", "h", "h:", ":1", "h:0", "h:65536", "::1:8470", "https://h:1", "h:1/x", "a b:1"] {
            let said = check_address(address).unwrap_err().to_string();
            assert!(said.contains(&format!("{address:?} is no HOST:PORT")), "{said}");
        }
    }

    #[test]
    fn a_file_behind_a_link_is_written_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [link, own] = ["hintd/contexts.toml", "dotfiles.toml"].map(|name| folder.path().join(name));
        std::fs::create_dir(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../dotfiles.toml", &link).unwrap();
        let mut all = Contexts::default();
        for name in ["a", "b"] {
            all.add(name, Context { address: Some("h:1".to_owned()), ..Context::default() }, false).unwrap();
            write(&link, &all).unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(
                (read(&own).unwrap(), read(&link).unwrap().contexts.len()),
                (read(&link).unwrap(), all.contexts.len())
            );
        }
        assert_eq!(std::fs::read_dir(link.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_file_that_no_command_can_read_says_how_to_go_on_and_that_way_works() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        std::fs::write(&file, "current = \"a\"\nthis is no TOML\n").unwrap();
        let said = kept(&file).unwrap_err().to_string();
        let name = file.display();
        assert!(said.contains(&format!("{name}: line 2")), "{said}");
        assert!(said.contains("mend it in an editor"), "{said}");
        let command = said.split('`').find(|part| part.starts_with("mv ")).unwrap();
        assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
        let mut all = kept(&file).unwrap();
        all.add("a", Context { address: Some("h:1".to_owned()), ..Context::default() }, false).unwrap();
        write(&file, &all).unwrap();
        assert_eq!(kept(&file).unwrap().contexts.len(), 1);
        let before = std::fs::read_to_string(folder.path().join("contexts.toml.broken")).unwrap();
        assert!(before.contains("this is no TOML"), "what it said is kept");
    }

    type Mend = fn(&mut Contexts, &Path) -> Result<String, Failure>;

    #[test]
    fn a_current_context_that_is_not_there_can_be_mended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        std::fs::write(&file, "current = \"gone\"\n[contexts.a]\naddress = \"h:1\"\n").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("`hintctl context use`"), "commands go nowhere by it");
        let mended: [Mend; 3] = [
            |all, file| all.choose(file, Some("a")),
            |all, file| all.choose(file, None),
            |all, file| all.remove(file, "gone"),
        ];
        for (mend, current) in mended.into_iter().zip([Some("a"), None, None]) {
            let mut all = kept(&file).unwrap();
            mend(&mut all, &file).unwrap();
            assert_eq!((all.current.as_deref(), all.lost(), all.contexts.len()), (current, None, 1));
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
