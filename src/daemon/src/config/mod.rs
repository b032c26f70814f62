//! Configuration: `config/hintd.toml` read, checked across keys, and then never checked again.
//!
//! Every problem of a file is reported in one run with file, line and key; a configuration that
//! does not pass changes nothing. Each default is named and reasoned in `parse.rs` and
//! repeated, commented, in `config/hintd.toml`, which a test holds against them.

mod chains;
mod hadoop;
mod latency;
mod limits;
mod network;
mod page;
mod parse;
mod plan;
mod reader;
mod rebalance;
mod records;
mod routes;
mod sdn;
mod tracing;
mod urls;
mod values;
mod worth;

pub use plan::{UPLINK_MIN, utc_offset};
pub use reader::{Problem, Problems};
pub use urls::{LEFT_OUT, shown as shown_url, without_secrets};

use crate::hadoop::{HistoryServerOptions, NameNodeOptions, ResourceManagerOptions};
use crate::regular_file::{self, CONFIG_BYTES};
use crate::runtime::options::{Options, ReloadHook, Reloaded};
use crate::runtime::page::PageOptions;
use crate::sdn::RyuOptions;
use crate::telemetry::logs::LogFormat;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A checked configuration.
#[derive(Clone)]
pub struct Config {
    /// What the daemon is started with.
    pub options: Options,
    /// Logs.
    pub log: Log,
    /// Prometheus, health; `None`: off.
    pub metrics: Option<SocketAddr>,
    /// The operator's page, on that listener; `None`: off.
    pub page: Option<PageOptions>,
    /// An SDN controller to watch and serve; `None`: feeds tell of the network, and watchers install routes.
    pub sdn: Option<RyuOptions>,
    /// ResourceManagers to ask for nodes; `None`: feeds tell of them.
    pub resource_manager: Option<ResourceManagerOptions>,
    /// NameNodes to ask for blocks of paths that requests name; `None`: feeds tell of datasets.
    pub name_node: Option<NameNodeOptions>,
    /// JobHistoryServers to learn from; `None`: none.
    pub history_server: Option<HistoryServerOptions>,
    /// Spark's history servers to learn from; `None`: none.
    pub spark_history_server: Option<HistoryServerOptions>,
    /// The network file; [`Self::load`] has read it into the settings.
    network: Option<network::Named>,
    /// Values as the file gives them, by dotted key, to say what a reload changed.
    keys: Vec<(String, String)>,
    /// Every key that was asked for.
    asked: Vec<String>,
}

/// Logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// As `tracing-subscriber`'s filters: `info`, `hintd=debug`.
    pub level: String,
    /// Text or JSON lines.
    pub format: LogFormat,
}

/// A configuration can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{path}: {source}")]
    Read {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file says wrong things.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

impl Config {
    /// Reads and checks a file, and the network file that it names.
    ///
    /// # Errors
    /// [`ConfigError`], with every problem of the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = regular_file::read_text(path, CONFIG_BYTES);
        let text = text.map_err(|source| ConfigError::Read { path: name.clone(), source })?;
        let mut config = Self::from_text(&text, &name)?;
        if let Some(network) = &config.network {
            let (source, mark) = network.load(&name).map_err(Problems)?;
            config.options.settings.network = Some(source);
            // Another content of the file is another value of its key.
            config.keys.push(("network.file".to_owned(), mark));
        }
        Ok(config)
    }

    /// The network file, where one is named.
    #[must_use]
    pub fn network_file(&self) -> Option<PathBuf> {
        self.network.as_ref().map(network::Named::path)
    }

    /// Checks a text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`Problems`]: all of them.
    pub fn from_text(text: &str, file: &str) -> Result<Self, Problems> {
        parse::config(text, file)
    }

    /// Keys that the file sets, and keys that it could set in the sections it has.
    #[must_use]
    pub fn keys_set(&self) -> (usize, usize) {
        (self.asked.iter().filter(|asked| self.keys.iter().any(|(key, _)| key == *asked)).count(), self.asked.len())
    }

    /// Keys whose values differ from `before`, and those among them that need a restart.
    #[must_use]
    pub fn changes(&self, before: &Self) -> (Vec<String>, Vec<String>) {
        let differ = |(key, value): &&(String, String), other: &[(String, String)]| {
            !other.iter().any(|(known, was)| known == key && was == value)
        };
        let added = self.keys.iter().filter(|pair| differ(pair, &before.keys));
        let removed = before.keys.iter().filter(|pair| differ(pair, &self.keys));
        let mut changed: Vec<String> = added.chain(removed).map(|(key, _)| key.clone()).collect();
        changed.sort_unstable();
        changed.dedup();
        let restart = changed.iter().filter(|key| parse::needs_restart(key)).cloned().collect();
        (changed, restart)
    }

    /// Reads `path` anew at each call and compares with what it read before: what a daemon reloads by. What needs a
    /// restart is told at each call, until the file is as it was at the start: whoever asks may not be the first whom
    /// the file's watcher left something to find.
    #[must_use]
    pub fn reload_hook(self, path: PathBuf) -> ReloadHook {
        let last = Arc::new(std::sync::Mutex::new(self.clone()));
        Arc::new(move |settings| {
            let fresh = Self::load(&path).map_err(|error| error.to_string())?;
            let before = last.lock().expect("no holder of the lock panics");
            let (changed, _) = fresh.changes(&before);
            let (_, needs_restart) = fresh.changes(&self);
            // What waits for a restart is not in force: nothing changes where the file takes it back.
            let is_back = |key: &String| parse::needs_restart(key) && !needs_restart.contains(key);
            let (reverted, changed) = changed.into_iter().partition(is_back);
            let mut next = fresh.options.settings.clone();
            next.generation = settings.generation + 1;
            let last = Arc::clone(&last);
            let taken = Arc::new(move || *last.lock().expect("no holder of the lock panics") = fresh.clone());
            Ok(Reloaded { settings: next, changed, needs_restart, reverted, taken })
        })
    }
}
