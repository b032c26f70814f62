//! `hintctl bundle`: what somebody who helps wants to see of a daemon, in a folder, without secrets.

use super::connect::{DaemonArgs, block_on};
use super::doctor;
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::printable_json;
use clap::Args;
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use serde::Serialize;
use serde_json::Value;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tonic::{Response, Status};

/// Where it goes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl bundle -o hintd-bundle && tar czf hintd-bundle.tgz hintd-bundle\n\n\
    What `doctor`, `status`, `nodes`, `links`, `racks`, `network show`, `policies`, `applications`, `decisions`, `leases`,\n\
    `holdout list`, `chains` and `circuits` say, as JSON, and the configuration without its comments. Values of keys that may\n\
    be secrets, and users and passwords in URLs, are left out; names of hosts, users, queues, jobs and paths are in it: look\n\
    before you send it. Logs are not in it: journalctl -u hintd. Without a daemon it has what can be had without one.\n\
    Exit code 0: the folder is written, whatever is missing in it.")]
pub struct BundleArgs {
    /// A new folder for it
    #[arg(short, long, value_name = "DIRECTORY")]
    output: PathBuf,
    /// The daemon's configuration [default: what the daemon says, else /etc/hintd/hintd.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Rows of lists that grow with the cluster's load.
const ROWS: u32 = 1_000;

/// What stands for a value that is left out.
const LEFT_OUT: &str = "(left out)";

/// What is in it.
#[derive(Debug, Default, Serialize)]
struct Manifest {
    hintctl: &'static str,
    files: Vec<String>,
    /// What could not be had, and why.
    missing: Vec<String>,
}

struct Bundle<'a> {
    folder: &'a Path,
    manifest: Manifest,
}

/// `hintctl bundle`.
///
/// # Errors
/// [`Failure::Input`] where the folder is there already, [`Failure::Work`] where it can't be written.
pub fn run(args: &BundleArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    daemon.for_operators()?;
    let folder = &args.output;
    std::fs::DirBuilder::new().mode(0o700).create(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::in_file(folder, "it is there already, and is not replaced"),
        _ => cannot(folder, &error),
    })?;
    let manifest = Manifest { hintctl: env!("CARGO_PKG_VERSION"), ..Manifest::default() };
    let mut bundle = Bundle { folder, manifest };
    block_on(async {
        let (report, config) = doctor::report(daemon, args.config.as_deref()).await?;
        bundle.document("doctor", &report)?;
        bundle.configuration(&config)?;
        match daemon.admin().await {
            Ok(admin) => bundle.answers(&admin).await,
            Err(failure) => {
                bundle.manifest.missing.push(format!("what the daemon says: {failure}"));
                Ok(())
            }
        }
    })?;
    let manifest = bundle.manifest;
    write(&folder.join("manifest.json"), &text(&manifest)?)?;
    output.result(&manifest, || {
        let mut lines: Vec<String> = manifest.missing.iter().map(|why| format!("missing: {why}")).collect();
        lines.push(format!("{}: {} files; look at them before you send them", folder.display(), manifest.files.len()));
        lines.join("\n")
    })
}

impl Bundle<'_> {
    async fn answers(&mut self, admin: &AdminClient) -> Result<(), Failure> {
        let a = || admin.clone();
        let rows = ROWS;
        self.answer("status", a().status(v1::StatusRequest {})).await?;
        self.answer("nodes", a().nodes(v1::NodesRequest::default())).await?;
        self.answer("links", a().links(v1::LinksRequest { users: 3, ..v1::LinksRequest::default() })).await?;
        self.answer("racks", a().racks(v1::RacksRequest { differences: true })).await?;
        self.answer("network", a().network(v1::NetworkRequest {})).await?;
        self.answer("policies", a().list_policies(v1::ListPoliciesRequest {})).await?;
        let asked = v1::ListApplicationsRequest { limit: rows, ..v1::ListApplicationsRequest::default() };
        self.answer("applications", a().list_applications(asked)).await?;
        let asked = v1::ListDecisionsRequest { limit: rows, ..v1::ListDecisionsRequest::default() };
        self.answer("decisions", a().list_decisions(asked)).await?;
        let asked = v1::ListLeasesRequest { limit: rows, ..v1::ListLeasesRequest::default() };
        self.answer("leases", a().list_leases(asked)).await?;
        self.answer("holdout", a().list_holdout(v1::ListHoldoutRequest { limit: rows, stopped_only: false })).await?;
        self.answer("chains", a().chains(v1::ChainsRequest {})).await?;
        self.answer("circuits", a().circuits(v1::CircuitsRequest {})).await?;
        self.answer("log-level", a().log_level(v1::LogLevelRequest::default())).await
    }

    /// One answer of the daemon. One that does not come is noted.
    async fn answer<M: Serialize>(
        &mut self,
        name: &str,
        answer: impl Future<Output = Result<Response<M>, Status>>,
    ) -> Result<(), Failure> {
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => self.document(name, &output::sorted(answer.get_ref())?),
            Ok(Err(status)) => {
                self.manifest.missing.push(format!("{name}: {}", Failure::from(status)));
                Ok(())
            }
            Err(_) => {
                self.manifest.missing.push(format!("{name}: no answer within {} s", PATIENCE.as_secs()));
                Ok(())
            }
        }
    }

    fn document(&mut self, name: &str, document: &impl Serialize) -> Result<(), Failure> {
        self.file(&format!("{name}.json"), &text(document)?)
    }

    fn configuration(&mut self, path: &Path) -> Result<(), Failure> {
        let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let without = read.and_then(|text| without_secrets(&text));
        match without {
            Ok(text) => self.file("hintd.toml", &text),
            Err(why) => {
                self.manifest.missing.push(format!("the configuration, {}: {why}", path.display()));
                Ok(())
            }
        }
    }

    fn file(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        write(&self.folder.join(name), text)?;
        self.manifest.files.push(name.to_owned());
        Ok(())
    }
}

/// A document without users and passwords of URLs: what is wrong with a configuration is told with the value.
fn text(document: &impl Serialize) -> Result<String, Failure> {
    let mut document = output::sorted(document)?;
    strings(&mut document, &mut |text| *text = without_users(text));
    let text = serde_json::to_string_pretty(&document).map_err(|error| Failure::Work(error.into()))?;
    Ok(printable_json(&text).into_owned() + "\n")
}

fn strings(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| strings(field, change)),
        _ => {}
    }
}

/// A text whose URLs name no user: `http://ann:secret@host/` as `http://(left out)@host/`.
fn without_users(text: &str) -> String {
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("://") {
        clean += before;
        clean += "://";
        let end = after.find(|letter: char| letter.is_whitespace() || "/\"'\\<>".contains(letter));
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                clean += LEFT_OUT;
                &after[at..]
            }
            None => after,
        };
    }
    clean + rest
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::work(format!("{}: {error}", path.display()))
}

/// A configuration without comments, without values of keys that may be secrets, and without users and passwords in URLs.
/// What is no TOML could have a secret anywhere: it is left out, and only the place of the mistake is said.
fn without_secrets(text: &str) -> Result<String, String> {
    let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("it is no TOML (line {line}), and left out")
    })?;
    table.iter_mut().for_each(|(key, value)| leave_out(key, value));
    toml::to_string(&table).map_err(|error| error.to_string())
}

fn leave_out(key: &str, value: &mut toml::Value) {
    const SECRET: [&str; 8] =
        ["password", "passwd", "secret", "token", "credential", "keytab", "authorization", "cookie"];
    match value {
        toml::Value::String(text) => {
            let key = key.to_ascii_lowercase();
            let secret = SECRET.iter().any(|secret| key.contains(secret)) && !text.is_empty();
            *text = if secret { LEFT_OUT.to_owned() } else { without_users(text) };
        }
        toml::Value::Array(values) => values.iter_mut().for_each(|value| leave_out(key, value)),
        toml::Value::Table(table) => table.iter_mut().for_each(|(key, value)| leave_out(key, value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_goes_without_comments_secrets_and_users_of_urls() {
        let text = "# hunter1\n[sdn.ryu]\nurl = \"http://ann:hunter2@ctl:8080/v1\"\npassword = \"hunter3\" # hunter4\n\
            [tokens]\nlegacy_clients = true\n[name_node]\nurls = [\"https://bob:hunter5@nn\"]\nSecretKey = \"hunter6\"\n";
        let without = without_secrets(text).unwrap();
        assert!(!without.contains("hunter") && !without.contains("ann:"), "{without}");
        assert!(
            without.contains("http://(left out)@ctl:8080/v1") && without.contains("https://(left out)@nn"),
            "{without}"
        );
        assert!(without.contains("legacy_clients = true"), "{without}");
    }

    #[test]
    fn urls_name_no_users_wherever_they_stand() {
        let text = "f:3: \"http://ann:p@ss@ctl:8080\" is wrong; see http://docs/a@b and x://y@z";
        let clean = "f:3: \"http://(left out)@ctl:8080\" is wrong; see http://docs/a@b and x://(left out)@z";
        assert_eq!(without_users(text), clean);
    }

    #[test]
    fn of_a_file_that_is_no_toml_only_the_line_is_told() {
        let why = without_secrets("[a]\npassword = hunter2\n").unwrap_err();
        assert!(why.contains("line 2") && !why.contains("hunter2"), "{why}");
    }
}
