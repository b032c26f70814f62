//! What a request is told of its paths, and when; what is asked behind its back.

use super::ask::{QueryFailure, Servers};
use super::path_cache::{Answer, PathCache, PathStatus};
use super::read::{Found, read, split};
use super::web_hdfs::{is_status, status};
use crate::feed::{FeedStream, datasets};
use crate::hadoop::options::NameNodeOptions;
use crate::rest_client::Trust;
use crate::runtime::Daemon;
use crate::runtime::HdfsRacks;
use crate::runtime::locate::{Located, Locating, Locator};
use crate::runtime::registries::FeedRegistries;
use crate::telemetry::hadoop::NameNodeMetrics;
use hintd_client::wire::v1;
use hintd_engine::Generation;
use hintd_model::cluster::dataset::{self, normal_name};
use hintd_model::cluster::{NodeStatics, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use v1::dataset_item::Item;

/// Paths that a note of each kind names; of more it gives the number.
const NAMED_MAX: usize = 3;
/// For so long after a request named it a path without an answer is asked for again.
const AWAITED: Duration = Duration::from_secs(120);

/// NameNodes that are asked for paths on demand.
#[derive(Clone)]
pub struct NameNodes(Arc<Inner>);

struct Inner {
    options: NameNodeOptions,
    servers: Arc<Servers>,
    registries: Arc<FeedRegistries>,
    metrics: NameNodeMetrics,
    stopping: CancellationToken,
    started: Instant,
    path_cache: Mutex<PathCache>,
    /// Grows with each path that was asked for.
    asked: watch::Sender<u64>,
    feed: Mutex<Feed>,
    /// How YARN names hosts, as the last request saw it.
    nodes: Mutex<Arc<NodeStatics>>,
    /// Hosts that were told of already: HDFS has them in another rack than YARN.
    racks: Mutex<BTreeSet<String>>,
    /// Where racks that HDFS names are noted.
    hdfs_racks: Arc<HdfsRacks>,
}

/// Datasets as `Feed.Datasets` takes them.
struct Feed {
    stream: FeedStream,
    number: u64,
}

impl NameNodes {
    /// Asks for nothing but whether somebody answers until a request names paths. To be called within a tokio runtime.
    #[must_use]
    pub fn start(options: NameNodeOptions, trust: Option<Trust>, daemon: &Daemon, metrics: NameNodeMetrics) -> Self {
        let hello = v1::FeedHello { source: "name-node".to_owned(), ..v1::FeedHello::default() };
        let mut feed = Feed { stream: FeedStream::new(Source::Blocks), number: 0 };
        let registries = Arc::clone(daemon.registries());
        feed.tell(&registries, Item::Hello(hello));
        let inner = Inner {
            servers: Arc::new(Servers::new(&options, trust, daemon.servers(), metrics.clone())),
            registries,
            metrics,
            stopping: daemon.stopping().clone(),
            started: Instant::now(),
            path_cache: Mutex::new(PathCache::new(options.path_cache)),
            asked: watch::Sender::new(0),
            feed: Mutex::new(feed),
            nodes: Mutex::new(Arc::clone(&daemon.generation().snapshot.statics)),
            racks: Mutex::default(),
            hdfs_racks: daemon.hdfs_racks(),
            options,
        };
        let name_nodes = Self(Arc::new(inner));
        let kept = name_nodes.clone();
        tokio::spawn(async move {
            let stopping = kept.0.stopping.clone();
            tokio::select! {
                () = stopping.cancelled() => {}
                () = kept.keep() => {}
            }
        });
        name_nodes
    }

    /// Asks whether somebody answers while nothing else is asked, and for what had no answer; forgets what is over.
    async fn keep(&self) {
        let inner = &self.0;
        loop {
            let idle = inner.servers.heard().is_none_or(|heard| heard.elapsed() >= inner.options.servers.poll);
            if idle && inner.servers.ask_idly(&status("/", &inner.options.servers.user), is_status).await.is_ok() {
                inner.registries.heard(Source::Blocks);
            }
            let mut gone = Vec::new();
            let again = {
                let mut path_cache = inner.path_cache();
                path_cache.expire(inner.now(), &mut gone);
                if inner.servers.are_silent() { Vec::new() } else { path_cache.ask_again(inner.now(), AWAITED) }
            };
            inner.forget(gone);
            inner.count();
            again.into_iter().for_each(|path| self.begin(path));
            let resting = inner.servers.resting();
            tokio::time::sleep(if resting.is_zero() { inner.options.servers.poll } else { resting }).await;
        }
    }

    /// Asks for a path, behind everybody's back.
    fn begin(&self, path: Arc<str>) {
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let nodes = Arc::clone(&lock(&inner.nodes));
            let stopping = inner.stopping.clone();
            let found = tokio::select! {
                () = stopping.cancelled() => return,
                found = read(&inner.servers, &inner.options, &nodes, &path) => found,
            };
            inner.answered(&path, found);
        });
    }

    /// Which of the paths, by their normal names, are being asked for, after those were begun that have to be.
    fn name(&self, paths: &[Arc<str>], generation: &Generation) -> Vec<Arc<str>> {
        let inner = &self.0;
        *lock(&inner.nodes) = Arc::clone(&generation.snapshot.statics);
        let (now, mut gone, mut begun) = (inner.now(), Vec::new(), Vec::new());
        let mut path_cache = inner.path_cache();
        for path in paths {
            if inner.is_fed(&path_cache, path, generation) || split(path).is_none() {
                continue;
            }
            if path_cache.name(path, now, &mut gone) {
                begun.push(Arc::clone(path));
            }
        }
        let asked = paths.iter().filter(|path| path_cache.is_asked(path)).cloned().collect();
        drop(path_cache);
        inner.forget(gone);
        inner.count();
        begun.into_iter().for_each(|path| self.begin(path));
        asked
    }

    async fn look(&self, paths: Vec<Arc<str>>, generation: Arc<Generation>, until: Instant) -> Located {
        let inner = &self.0;
        let mut changes = inner.asked.subscribe();
        let names: Vec<Arc<str>> = paths.iter().map(normal_name).collect();
        let awaited = self.name(&names, &generation);
        let all = |path_cache: &PathCache| awaited.iter().all(|path| !path_cache.is_asked(path));
        while !all(&inner.path_cache()) {
            match tokio::time::timeout_at(until, changes.changed()).await {
                Ok(Ok(())) => {}
                _ => break,
            }
        }
        let path_cache = inner.path_cache();
        let fresh = awaited.iter().filter(|path| !path_cache.is_asked(path)).flat_map(|path| path_cache.files(path));
        let fresh = fresh.cloned().collect();
        let notes = inner.notes(&path_cache, &paths, &generation);
        inner.metrics.located(if all(&path_cache) { "in_time" } else { "not_yet" });
        Located { notes, fresh }
    }
}

impl Locator for NameNodes {
    fn patience(&self) -> Duration {
        self.0.options.wait
    }

    fn locate(&self, paths: Vec<Arc<str>>, generation: Arc<Generation>, until: std::time::Instant) -> Locating<'_> {
        Box::pin(self.look(paths, generation, until.into()))
    }
}

impl Inner {
    /// A feed names the path, or everything below it that is known: then it is the feed's to say.
    fn is_fed(&self, path_cache: &PathCache, path: &Arc<str>, generation: &Generation) -> bool {
        if path_cache.knows(path) {
            return false;
        }
        let found = dataset::below(&generation.snapshot.datasets, path);
        !found.is_empty() && found.iter().all(|dataset| !path_cache.holds(&dataset.path))
    }

    /// What is missing of the paths, as the request has written them.
    fn notes(&self, path_cache: &PathCache, paths: &[Arc<str>], generation: &Generation) -> Vec<String> {
        let mut kinds: Vec<(&'static str, Vec<&str>)> = Vec::new();
        let mut note = |kind: &'static str, path| match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, of)) => of.push(path),
            None => kinds.push((kind, vec![path])),
        };
        let (now, mut oldest) = (self.now(), None);
        for path in paths {
            if split(path).is_none() {
                note("path_not_on_hdfs", path);
                continue;
            }
            let name = normal_name(path);
            match path_cache.said(&name, now) {
                PathStatus::NotYet if self.is_fed(path_cache, &name, generation) => {}
                PathStatus::NotYet => note("locations_not_known_yet", path),
                PathStatus::Missing => note("path_missing", path),
                PathStatus::Unreadable => note("path_unreadable", path),
                PathStatus::TooLarge => note("path_too_large", path),
                PathStatus::Found { old, empty, in_part } => {
                    oldest = oldest.max(old);
                    if empty {
                        note("path_empty", path);
                    }
                    if in_part {
                        note("path_read_in_part", path);
                    }
                }
            }
        }
        let mut notes: Vec<String> = kinds.into_iter().map(|(kind, of)| shown(kind, &of)).collect();
        notes.extend(oldest.map(|age| format!("locations_old: {} s", age.as_secs())));
        if self.servers.are_silent() {
            notes.push("name_node_silent".to_owned());
        }
        notes
    }

    /// Takes in what was found at a path.
    fn answered(&self, path: &str, found: Result<Found, QueryFailure>) {
        let mut gone = Vec::new();
        let answer = match found {
            Ok(found) => Some(self.register(found, &mut gone)),
            Err(QueryFailure::Missing) => Some(Answer::Missing),
            Err(QueryFailure::Unreadable) => Some(Answer::Unreadable),
            Err(QueryFailure::TooLarge) => Some(Answer::TooLarge),
            Err(QueryFailure::Nobody | QueryFailure::Unsupported) => None,
        };
        tracing::debug!(path, answered = answer.is_some(), "asked for a path");
        self.path_cache().answered(path, answer, self.now(), &mut gone);
        self.forget(gone);
        self.count();
        self.asked.send_modify(|number| *number += 1);
    }

    /// Datasets of what was found; where the registries have no room for all of them, there are none.
    fn register(&self, found: Found, gone: &mut Vec<Arc<str>>) -> Answer {
        let Found { files, in_part, racks } = found;
        self.warn_of(&racks);
        self.hdfs_racks.heard(racks);
        let mut names: Vec<Arc<str>> = Vec::with_capacity(files.len());
        let mut blocks = 0;
        let mut feed = lock(&self.feed);
        for file in files {
            let (name, more) = (Arc::from(file.path.as_str()), file.blocks.len());
            if !feed.tell(&self.registries, Item::Put(file)) {
                drop(feed);
                let path_cache = self.path_cache();
                gone.extend(names.into_iter().filter(|name| !path_cache.holds(name)));
                return Answer::TooLarge;
            }
            blocks += more;
            names.push(name);
        }
        Answer::Found { files: names, blocks, in_part }
    }

    fn warn_of(&self, racks: &BTreeMap<String, String>) {
        let nodes = Arc::clone(&lock(&self.nodes));
        for (host, hdfs) in racks {
            let Some(node) = nodes.find(host) else { continue };
            let yarn = &nodes.racks[nodes.rack[node.at()].at()];
            if yarn.as_str() == hdfs {
                continue;
            }
            let news = {
                let mut known = lock(&self.racks);
                known.len() < 1_000 && known.insert(host.clone())
            };
            if news {
                tracing::warn!(%host, %hdfs, %yarn, "HDFS and YARN have it in different racks: YARN's counts");
            }
        }
    }

    fn forget(&self, gone: Vec<Arc<str>>) {
        if gone.is_empty() {
            return;
        }
        let mut feed = lock(&self.feed);
        for path in gone {
            feed.tell(&self.registries, Item::RemovePath(path.to_string()));
        }
    }

    fn count(&self) {
        let counts = self.path_cache().counts();
        self.metrics.paths(counts);
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn path_cache(&self) -> MutexGuard<'_, PathCache> {
        lock(&self.path_cache)
    }
}

impl Feed {
    /// Whether it was taken.
    fn tell(&mut self, registries: &FeedRegistries, item: Item) -> bool {
        self.number += 1;
        let item = v1::DatasetItem { number: self.number, item: Some(item) };
        let taken = datasets::ingest(registries, &mut self.stream, item);
        if let Err(refusal) = &taken {
            tracing::warn!(reason = refusal.reason.as_str(), message = %refusal.message, "a path is not taken");
            self.stream.acknowledge(registries, "");
        }
        taken.is_ok()
    }
}

fn shown(kind: &str, paths: &[&str]) -> String {
    let named = paths[..paths.len().min(NAMED_MAX)].join(" ");
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => format!("{kind}: {named}"),
        more => format!("{kind}: {named} and {more} more"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
