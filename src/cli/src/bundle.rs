//! `hintctl bundle`: what somebody who helps wants to see of a daemon, in a folder, without secrets.

mod beside;
mod clean;

use super::connect::{DaemonArgs, block_on};
use super::doctor;
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line;
use clap::Args;
use clean::Secrets;
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use serde::Serialize;
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
    be secrets or that hintd does not have, and users and passwords in URLs, are left out, and so they are where another\n\
    document repeats them; names of hosts, users, queues, jobs and paths are in it: look before you send it. Beside them stand\n\
    metrics.txt, from the listener that the configuration names, and log.txt, the last 2,000 lines that systemd's journal has of\n\
    hintd. Without a daemon it has what can be had without one, and of a configuration that is refused the lines that can be\n\
    read. manifest.json says what is missing.\n\
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
    /// What the configuration has of them: no document repeats one.
    secrets: Secrets,
    /// The configuration could be read as TOML, sound or not.
    read: bool,
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
    let mut bundle = Bundle { folder, manifest, secrets: Secrets::default(), read: false };
    block_on(async {
        let (report, config) = doctor::report(daemon, args.config.as_deref()).await?;
        bundle.configuration(&config)?; // first: from it is known what no other document may say
        bundle.document("doctor", &report)?;
        bundle.beside(&config).await?;
        match daemon.admin().await {
            Ok(admin) => bundle.answers(&admin).await,
            Err(failure) => {
                bundle.manifest.missing.push(format!("what the daemon says: {failure}"));
                Ok(())
            }
        }
    })?;
    let manifest = &bundle.manifest;
    write(&folder.join("manifest.json"), &bundle.secrets.text(manifest)?)?;
    output.result(manifest, || {
        let mut lines: Vec<String> = manifest.missing.iter().map(|why| format!("missing: {}", one_line(why))).collect();
        lines.push(format!("{}: {} files; look at them before you send them", folder.display(), manifest.files.len()));
        lines.join("\n")
    })
}

impl Bundle<'_> {
    /// Metrics and log. What can't be had is noted.
    async fn beside(&mut self, config: &Path) -> Result<(), Failure> {
        let metrics = match beside::metrics_address(config) {
            Ok(at) => beside::metrics(at).await,
            Err(why) => Err(why),
        };
        // Secrets that it may repeat are known from the configuration alone.
        let log = match self.read {
            true => beside::log().await,
            false => Err("the configuration, whose secrets it may repeat, can't be read".to_owned()),
        };
        for (name, found) in [("metrics", metrics), ("log", log)] {
            match found {
                Ok(text) => self.file(&format!("{name}.txt"), &self.secrets.lines(&text))?,
                Err(why) => self.manifest.missing.push(format!("{name}: {why}")),
            }
        }
        Ok(())
    }

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
        let text = self.secrets.text(document)?;
        self.file(&format!("{name}.json"), &text)
    }

    fn configuration(&mut self, path: &Path) -> Result<(), Failure> {
        let missing = |why: String| format!("the configuration, {}: {why}", path.display());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.manifest.missing.push(missing(error.to_string()));
                return Ok(());
            }
        };
        let without = self.secrets.leave_out_of(&text);
        // Of what is no TOML not every secret is known.
        self.read = without.is_ok();
        let without = without.unwrap_or_else(|why| {
            self.manifest.missing.push(missing(format!("{why}: lines that may hold a secret are left out")));
            self.secrets.leave_out_of_lines(&text)
        });
        self.file("hintd.toml", &without)
    }

    fn file(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        write(&self.folder.join(name), text)?;
        self.manifest.files.push(name.to_owned());
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::work(format!("{}: {error}", path.display()))
}
