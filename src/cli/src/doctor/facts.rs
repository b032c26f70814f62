//! What the doctor looks at: the admin socket and who listens there, what the daemon answers, and its files on this machine.

use super::super::connect::DaemonArgs;
use super::super::failure::Failure;
use super::super::printable::{one_line, one_line_strings};
use super::process;
use hintd::config::{Config, ConfigError};
use hintd_client::wire::v1;
use prost::{Message, Name};
use std::future::Future;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tonic::{Response, Status};

/// How long one answer is waited for: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Decisions that are looked at, the newest: of some nothing is known yet, or they have no hints.
const LATEST: u32 = 1_000;

/// What stands at the admin socket's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    Nothing,
    /// Its folder may not be entered.
    Hidden,
    /// Something else than a socket.
    Other,
    Socket {
        owner: u32,
        mode: u32,
    },
    /// It can't be looked at, and why.
    Unknown(String),
}

/// The configuration as it lies on disk.
pub(super) enum OnDisk {
    Sound(Box<Config>),
    /// Every problem, a line each.
    Wrong(String),
    /// Why it is not read.
    Unread(String),
}

/// What the daemon answers.
pub(super) struct Answers {
    pub(super) status: v1::StatusResponse,
    pub(super) network: Result<v1::NetworkResponse, String>,
    pub(super) racks: Result<v1::RacksResponse, String>,
    pub(super) policies: Result<v1::ListPoliciesResponse, String>,
    /// Links that carry nothing.
    pub(super) down: Result<v1::LinksResponse, String>,
    /// The newest decisions.
    pub(super) latest: Result<v1::ListDecisionsResponse, String>,
}

/// See the module.
pub(super) struct Facts {
    pub(super) socket: PathBuf,
    pub(super) standing: Standing,
    /// The process that listens, where this machine's process ids are its own.
    pub(super) pid: Option<u32>,
    /// Or why nobody answers.
    pub(super) answers: Result<Box<Answers>, Unanswered>,
    pub(super) config_file: PathBuf,
    /// It was named on the command line.
    pub(super) config_given: bool,
    pub(super) on_disk: OnDisk,
    /// What this machine has to do, where nobody answers: the load average of a minute, and its cores.
    pub(super) load: Option<(f64, usize)>,
}

/// Looks at everything once.
pub(super) async fn facts(daemon: &DaemonArgs, config: Option<&Path>) -> Result<Facts, Failure> {
    daemon.for_operators()?;
    let socket = daemon.socket()?;
    let standing = standing(&socket);
    let pid = listener(&socket).await;
    let (answers, named) = match answers_or_again(&socket).await {
        Ok((answers, named)) => (Ok(Box::new(answers)), Some(named)),
        // A process that is too slow to answer still shows what it was started with.
        Err(why) => (Err(why), pid.and_then(process::config_of_the_command)),
    };
    let load = if answers.is_err() { process::load() } else { None };
    let (config_given, config_file) = (config.is_some(), config_file(config, named, pid));
    let on_disk = on_disk(&config_file);
    Ok(Facts { socket, standing, pid, answers, config_file, config_given, on_disk, load })
}

fn standing(socket: &Path) -> Standing {
    match std::fs::metadata(socket) {
        Ok(found) if found.file_type().is_socket() => {
            Standing::Socket { owner: found.uid(), mode: found.mode() & 0o777 }
        }
        Ok(_) => Standing::Other,
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Standing::Nothing,
            ErrorKind::PermissionDenied => Standing::Hidden,
            _ => Standing::Unknown(error.to_string()),
        },
    }
}

/// The process that listens on a socket.
async fn listener(socket: &Path) -> Option<u32> {
    let stream = tokio::time::timeout(PATIENCE, tokio::net::UnixStream::connect(socket)).await.ok()?.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok().filter(|pid| *pid > 0)
}

/// Why there are no answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// None came in time, so that it may only be slow.
    pub(super) late: bool,
    /// In words.
    pub(super) why: String,
}

impl Unanswered {
    fn late() -> Self {
        Self { late: true, why: format!("it does not answer within {} s", PATIENCE.as_secs()) }
    }

    fn refused(failure: &Failure) -> Self {
        Self { late: false, why: one_line(&failure.to_string()).into_owned() }
    }
}

/// As [`answers`]; once more where none came in time, for a machine with much to do is slow.
async fn answers_or_again(socket: &Path) -> Result<(Answers, String), Unanswered> {
    match answers(socket).await {
        Err(first) if first.late => answers(socket)
            .await
            .map_err(|again| Unanswered { why: format!("{}; asked again, {}", first.why, again.why), ..again }),
        answered => answered,
    }
}

/// All answers, and the configuration file as the daemon spells it.
async fn answers(socket: &Path) -> Result<(Answers, String), Unanswered> {
    let client = tokio::time::timeout(PATIENCE, super::super::connect::admin(socket.to_owned())).await;
    let admin = client.map_err(|_| Unanswered::late())?.map_err(|failure| Unanswered::refused(&failure))?;
    let status = tokio::time::timeout(PATIENCE, admin.clone().status(v1::StatusRequest {})).await;
    let status = status.map_err(|_| Unanswered::late())?;
    let status = status.map_err(|status| Unanswered::refused(&Failure::from(status)))?.into_inner();
    let down = v1::LinksRequest { down_only: true, users: 1, ..v1::LinksRequest::default() };
    let latest = v1::ListDecisionsRequest { limit: LATEST, ..v1::ListDecisionsRequest::default() };
    let answers = Answers {
        status: one_line_strings(&status),
        network: within(admin.clone().network(v1::NetworkRequest {})).await,
        racks: within(admin.clone().racks(v1::RacksRequest { differences: true })).await,
        down: within(admin.clone().links(down)).await,
        latest: within(admin.clone().list_decisions(latest)).await,
        policies: within(admin.clone().list_policies(v1::ListPoliciesRequest {})).await,
    };
    Ok((answers, status.config_file))
}

async fn within<T: Message + Name + Default>(
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, call).await {
        Err(_) => Err(format!("the daemon does not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(status)) => Err(one_line(&Failure::from(status).to_string()).into_owned()),
        Ok(Ok(answer)) => Ok(one_line_strings(&answer.into_inner())),
    }
}

/// As given, else as the daemon says, from its folder, else the shipped one.
fn config_file(given: Option<&Path>, named: Option<String>, pid: Option<u32>) -> PathBuf {
    match (given, named.filter(|name| !name.is_empty())) {
        (Some(given), _) => given.to_owned(),
        (None, None) => PathBuf::from(super::CONFIG_FILE),
        (None, Some(name)) => folder(pid).join(name),
    }
}

/// Where the daemon runs; empty where that is not visible.
fn folder(pid: Option<u32>) -> PathBuf {
    pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok()).unwrap_or_default()
}

impl Facts {
    /// A path that the daemon's configuration names: from the daemon's folder where it is relative.
    pub(super) fn as_the_daemon_has_it(&self, path: &Path) -> PathBuf {
        folder(self.pid).join(path)
    }
}

fn on_disk(file: &Path) -> OnDisk {
    match Config::load(file) {
        Ok(config) => OnDisk::Sound(Box::new(config)),
        Err(ConfigError::Read { source, .. }) => OnDisk::Unread(source.to_string()),
        Err(ConfigError::Wrong(problems)) => OnDisk::Wrong(problems.to_string().trim_end().replace('\n', "; ")),
    }
}
