//! Reaching a running daemon: gRPC for applications and feeds, a Unix socket for operators.

use super::failure::Failure;
use crate::wire::v1::admin_client::AdminClient;
use clap::Args;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// Where the daemon listens unless told otherwise: the shipped configuration's values.
pub const ADDRESS: &str = "127.0.0.1:8470";
/// Its admin socket.
pub const ADMIN_SOCKET: &str = "/run/hintd/admin.sock";

/// A loopback connection either stands at once or never.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Snapshots come in pieces below this; answers of 100,000 hints stay below it too.
const MESSAGE_BYTES: usize = 64 << 20;

/// Where the daemon is.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The daemon's gRPC address [default: 127.0.0.1:8470, or HINTD_ADDRESS]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// The daemon's admin socket [default: /run/hintd/admin.sock, or HINTD_ADMIN_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    pub admin_socket: Option<PathBuf>,
}

impl DaemonArgs {
    /// A channel to the gRPC address.
    ///
    /// # Errors
    /// [`Failure`] where nobody listens.
    pub async fn channel(&self) -> Result<Channel, Failure> {
        let address = match &self.address {
            Some(address) => address.clone(),
            None => std::env::var("HINTD_ADDRESS").unwrap_or_else(|_| ADDRESS.to_owned()),
        };
        channel(&address).await
    }

    /// A client of the admin socket.
    ///
    /// # Errors
    /// [`Failure`] where nobody listens.
    pub async fn admin(&self) -> Result<AdminClient<Channel>, Failure> {
        let socket = match &self.admin_socket {
            Some(socket) => socket.clone(),
            None => std::env::var_os("HINTD_ADMIN_SOCKET").map_or_else(|| PathBuf::from(ADMIN_SOCKET), PathBuf::from),
        };
        admin(socket).await
    }
}

/// A channel to a gRPC address.
///
/// # Errors
/// [`Failure`] where nobody listens, or it is no address.
pub async fn channel(address: &str) -> Result<Channel, Failure> {
    let bare = address.strip_prefix("http://").unwrap_or(address);
    let endpoint = Endpoint::from_shared(format!("http://{bare}"))
        .map_err(|error| Failure::Input(format!("\"{address}\" is no address as in {ADDRESS}: {error}")))?;
    endpoint.connect_timeout(CONNECT_PATIENCE).tcp_nodelay(true).connect().await.map_err(|error| {
        let why = root_cause(&error);
        Failure::work(format!("no daemon at {bare} ({why}); --address or HINTD_ADDRESS name another"))
    })
}

/// A client of an admin socket.
///
/// # Errors
/// [`Failure`] where nobody listens.
pub async fn admin(socket: PathBuf) -> Result<AdminClient<Channel>, Failure> {
    let name = socket.display().to_string();
    let connect = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    // The URI is for the protocol only: the connector knows where to go.
    let endpoint = Endpoint::from_static("http://admin.socket").connect_timeout(CONNECT_PATIENCE);
    let channel = endpoint.connect_with_connector(connect).await.map_err(|error| {
        let why = root_cause(&error);
        Failure::work(format!("no daemon at {name} ({why}); --admin-socket or HINTD_ADMIN_SOCKET name another"))
    })?;
    Ok(AdminClient::new(channel).max_decoding_message_size(MESSAGE_BYTES))
}

/// Runs a command that talks over the network.
///
/// # Errors
/// The command's, or that of a machine that gives no threads.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::Work(error.into()))?.block_on(async {
        tokio::select! {
            result = work => result,
            // What the work holds (a demo's folder and daemon) is dropped, and so taken away.
            _ = tokio::signal::ctrl_c() => Err(Failure::work("interrupted".to_owned())),
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
