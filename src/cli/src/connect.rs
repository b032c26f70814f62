//! Reaching a running daemon: gRPC for applications and feeds, a Unix socket for operators.

use super::context::{self, Context};
use super::failure::Failure;
use super::interrupt;
use clap::Args;
use hintd::config::shown_url;
use hintd_client::{AdminClient, Client, ClientError, ClientOptions};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Response, Status};

/// Where the daemon listens unless told otherwise: the shipped configuration's values.
pub const ADDRESS: &str = "127.0.0.1:8470";
/// Its admin socket.
pub const ADMIN_SOCKET: &str = "/run/hintd/admin.sock";

const ADDRESS_VARIABLE: &str = "HINTD_ADDRESS";
const ADMIN_SOCKET_VARIABLE: &str = "HINTD_ADMIN_SOCKET";

/// What help puts the options of every command under.
pub(super) const GLOBAL: &str = "Global options";

/// Where the daemon is.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The daemon that `hintctl context` keeps by this name [default: HINTD_CONTEXT, or the current one]
    #[arg(long, global = true, value_name = "NAME", help_heading = GLOBAL)]
    pub context: Option<String>,
    /// The daemon's gRPC address [default: 127.0.0.1:8470, or HINTD_ADDRESS]
    #[arg(long, global = true, value_name = "HOST:PORT", help_heading = GLOBAL)]
    pub address: Option<String>,
    /// The daemon's admin socket [default: /run/hintd/admin.sock, or HINTD_ADMIN_SOCKET]
    #[arg(long, global = true, value_name = "PATH", help_heading = GLOBAL)]
    pub admin_socket: Option<PathBuf>,
    /// What makes later calls the same client's [default: $XDG_STATE_HOME/hintctl/secret, or HINTD_SECRET_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub secret_file: Option<PathBuf>,
}

/// What is shown for an attempt that another client asked for.
#[derive(Clone, Args)]
pub struct TokenArgs {
    /// The attempt's token, asked as the application itself would; HINTD_TOKEN is seen by fewer than a command line
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl std::fmt::Debug for TokenArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenArgs(…)")
    }
}

impl TokenArgs {
    /// The token; empty: none is shown.
    pub(super) fn token(&self) -> String {
        self.token.clone().or_else(|| std::env::var("HINTD_TOKEN").ok()).unwrap_or_default()
    }
}

impl DaemonArgs {
    /// A client of the gRPC address.
    ///
    /// # Errors
    /// [`Failure`] where nobody listens.
    pub async fn client(&self) -> Result<Client, Failure> {
        let of = |context: &Context| context.secret_file.clone();
        let file = self.chosen(self.secret_file.clone(), "HINTD_SECRET_FILE", of, None)?;
        let setting = match (&self.secret_file, &file.context) {
            (Some(_), _) => "--secret-file".to_owned(),
            (None, Some(context)) => format!("secret_file of the context {context}"),
            (None, None) => "HINTD_SECRET_FILE".to_owned(),
        };
        let secret = Some(super::secret::secret(file.found.as_deref().map(|file| (file, &*setting)))?);
        client_with(&self.grpc_address()?, &ClientOptions { secret, ..ClientOptions::default() }).await
    }

    /// The gRPC address: as given, else the context's that was named, the environment's, the current context's, the default.
    ///
    /// # Errors
    /// [`Failure::Input`] for a context that is not there or has none, for a file of contexts that is none, and where the
    /// current context would give the address while an admin socket that is not that context's is given otherwise.
    pub fn grpc_address(&self) -> Result<String, Failure> {
        let other = Other {
            flag: "--admin-socket",
            variable: ADMIN_SOCKET_VARIABLE,
            given: self.admin_socket.as_deref().map(text),
            of: |context| context.admin_socket.as_deref().map(text),
        };
        let chosen = self.chosen(self.address.clone(), ADDRESS_VARIABLE, |of| of.address.clone(), Some(other))?;
        chosen.or_default(NO_ADDRESS, || ADDRESS.to_owned())
    }

    /// The first of: what the command line says, the context that it names, the environment, the context that is current.
    /// Who names a context on the command line means it, whatever the environment says.
    fn chosen<T: From<String>>(
        &self,
        flag: Option<T>,
        variable: &str,
        of: impl Fn(&Context) -> Option<T>,
        other: Option<Other>,
    ) -> Result<Chosen<T>, Failure> {
        if flag.is_some() {
            return Ok(Chosen { found: flag, context: None });
        }
        if self.context.is_none()
            && let Some(value) = environment(variable)?
        {
            return Ok(Chosen { found: Some(value.into()), context: None });
        }
        let named = match &self.context {
            Some(name) => Some(name.clone()),
            None => environment("HINTD_CONTEXT")?,
        };
        let context = context::meant(named.as_deref())?;
        if let (Some((name, context)), Some(other), None) = (&context, other, &self.context) {
            other.same_daemon(name, context)?;
        }
        Ok(Chosen {
            found: context.as_ref().and_then(|(_, context)| of(context)),
            context: context.map(|(name, _)| name),
        })
    }

    /// A client of the admin socket.
    ///
    /// # Errors
    /// [`Failure`] where nobody listens.
    pub async fn admin(&self) -> Result<AdminClient, Failure> {
        let given = self.admin_socket.as_ref().map(|socket| format!(" --admin-socket {}", socket.display()));
        let given = given.unwrap_or_default();
        let nobody = |failure| Failure::work(format!("{failure}; `hintctl doctor{given}` says what is wrong"));
        admin(self.socket()?).await.map_err(nobody)
    }

    /// The admin socket: as given, else as [`Self::grpc_address`].
    ///
    /// # Errors
    /// As [`Self::grpc_address`].
    pub fn socket(&self) -> Result<PathBuf, Failure> {
        let of = |context: &Context| context.admin_socket.clone();
        let other = Other {
            flag: "--address",
            variable: ADDRESS_VARIABLE,
            given: self.address.clone(),
            of: |context| context.address.clone(),
        };
        let chosen = self.chosen(self.admin_socket.clone(), ADMIN_SOCKET_VARIABLE, of, Some(other))?;
        let without = format!(
            "{NO_SOCKET} {ON_ITS_MACHINE}. Run it on the daemon's machine (ssh); where that is this one, name the socket by \
             --admin-socket, or add the context again with it"
        );
        chosen.or_default(&without, || PathBuf::from(ADMIN_SOCKET))
    }

    /// The same for a command that has no use for a gRPC address: whoever names one means another daemon than the one
    /// that would answer.
    ///
    /// # Errors
    /// [`Failure::Input`] where `--address` stands without `--admin-socket`; as [`Self::admin`].
    pub async fn operator(&self) -> Result<AdminClient, Failure> {
        self.for_operators()?;
        self.admin().await
    }

    /// See [`Self::operator`].
    ///
    /// # Errors
    /// [`Failure::Input`] where `--address` stands without `--admin-socket`.
    pub fn for_operators(&self) -> Result<(), Failure> {
        match (&self.address, &self.admin_socket) {
            (Some(address), None) => Err(Failure::Input(format!(
                "--address {}: this command asks the daemon {ON_ITS_MACHINE}. On the daemon's machine (ssh) leave --address out, or \
                 name the socket by --admin-socket",
                shown_url(address)
            ))),
            _ => Ok(()),
        }
    }

    /// One question over the admin socket.
    ///
    /// # Errors
    /// As [`Self::operator`], or the daemon refuses.
    pub fn ask<T>(&self, call: impl AsyncFnOnce(AdminClient) -> Result<Response<T>, Status>) -> Result<T, Failure> {
        block_on(async { Ok(call(self.operator().await?).await?.into_inner()) })
    }
}

/// Of address and socket the one that is not asked for.
struct Other {
    flag: &'static str,
    variable: &'static str,
    /// What the flag says.
    given: Option<String>,
    of: fn(&Context) -> Option<String>,
}

impl Other {
    /// Whoever gives one that is not the current context's means another daemon than that context's, which would answer those
    /// commands that ask by the one that was not given.
    fn same_daemon(self, name: &str, context: &Context) -> Result<(), Failure> {
        let given = match self.given {
            Some(value) => Some((self.flag, value)),
            None => environment(self.variable)?.map(|value| (self.variable, value)),
        };
        match given {
            Some((by, value)) if (self.of)(context).as_ref() != Some(&value) => Err(Failure::Input(format!(
                "{by} is {value}, which context {name} does not say, and this command would ask the daemon of that context: \
                 say which one by --context, or leave {by} out"
            ))),
            _ => Ok(()),
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A variable's value; `None`: it is not set, or to nothing.
fn environment(variable: &str) -> Result<Option<String>, Failure> {
    match std::env::var(variable) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Failure::Input(format!("{variable}: {error}"))),
    }
}

/// Where something is, and the context that was asked for it.
struct Chosen<T> {
    found: Option<T>,
    context: Option<String>,
}

impl<T> Chosen<T> {
    /// The default where no context is meant. One that does not say where the daemon is means another daemon than the one that
    /// would answer at the default; `without`: what there is to do then.
    fn or_default(self, without: &str, default: impl FnOnce() -> T) -> Result<T, Failure> {
        match (self.found, self.context) {
            (Some(found), _) => Ok(found),
            (None, None) => Ok(default()),
            (None, Some(context)) => Err(Failure::Input(format!("context {context} {without}"))),
        }
    }
}

/// Why nobody is asked over the network what only operators may ask.
const ON_ITS_MACHINE: &str = "over its admin socket, on the same machine only: hintd has no administration over the network, for it \
                              has neither TLS nor identities there";
/// Of a context without an admin socket.
const NO_SOCKET: &str = "has no admin socket, and this command asks the daemon";
/// Of a context without an address.
const NO_ADDRESS: &str = "has no address, and this command asks the daemon over gRPC: name it by --address, or add the context again \
                          with it";

/// Bytes of a document that a daemon sends in pieces, unless a command says otherwise: a snapshot of 10,000 nodes with
/// their blocks has some tens of megabytes.
pub const GATHERED_BYTES: u64 = 1 << 30;

/// All of a document that comes in pieces.
///
/// # Errors
/// [`Failure`] where it breaks off, or has more than `most` bytes: a server that never ends is not waited for.
pub async fn gather<M>(
    mut pieces: impl Stream<Item = Result<M, Status>> + Unpin,
    most: u64,
    mut bytes: impl FnMut(M) -> Vec<u8>,
) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = bytes(piece?);
        if (all.len() + piece.len()) as u64 > most {
            return Err(Failure::work(format!("the daemon sends more than {most} bytes: it was left at that")));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

/// A client of a gRPC address.
///
/// # Errors
/// [`Failure`] where nobody listens, or it is no address.
pub async fn client(address: &str) -> Result<Client, Failure> {
    client_with(address, &ClientOptions::default()).await
}

async fn client_with(address: &str, options: &ClientOptions) -> Result<Client, Failure> {
    Client::connect_with(address, options).await.map_err(|error| match error {
        ClientError::Address { source, .. } => {
            Failure::Input(format!("\"{}\" is no address as in {ADDRESS}: {source}", shown_url(address)))
        }
        error => nobody(&error, "--address or HINTD_ADDRESS name another"),
    })
}

/// A client of an admin socket.
///
/// # Errors
/// [`Failure`] where nobody listens.
pub async fn admin(socket: PathBuf) -> Result<AdminClient, Failure> {
    let client = hintd_client::admin(&socket).await;
    client.map_err(|error| nobody(&error, "--admin-socket or HINTD_ADMIN_SOCKET name another"))
}

fn nobody(error: &ClientError, else_where: &str) -> Failure {
    let why = root_cause(error);
    Failure::work(format!("{error} ({why}); {else_where}"))
}

/// Runs a command that talks over the network.
///
/// # Errors
/// The command's, or that of a machine that gives no threads.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut done = None;
    drive(Box::pin(async { done = Some(work.await) }))?;
    done.expect("work that was driven to its end has a result")
}

/// One kind of future for all commands: the runtime's own code is compiled once, not for each of them.
fn drive(work: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::Work(error.into()))?.block_on(async {
        tokio::select! {
            biased;
            () = work => Ok(()),
            // What the work holds (a demo's folder and daemon) is dropped, and so taken away.
            heard = interrupt::unheard() => heard.and_then(|()| Err(Failure::work("interrupted".to_owned()))),
        }
    })
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
