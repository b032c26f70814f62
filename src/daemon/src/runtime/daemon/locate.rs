//! Where a request's input lies, asked of whoever can say, within a part of the request's own time.

use super::Daemon;
use hintd_engine::Generation;
use hintd_model::cluster::HintRequest;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of the time that a request has left, so much goes for its paths at most.
const SHARE: u32 = 2; // a half
/// Time between two looks whether the engine has taken in what was learnt.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What is known of a request's paths.
#[derive(Debug, Clone, Default)]
pub struct Located {
    /// What a hint's `degraded` says of them: a stable word, then the path.
    pub notes: Vec<String>,
    /// Datasets that were registered while the request waited.
    pub fresh: Vec<Arc<str>>,
}

/// What [`Locator::locate`] gives.
pub type Locating<'a> = Pin<Box<dyn Future<Output = Located> + Send + 'a>>;

/// Who can say where the blocks of a path lie, and leaves that in the registries.
pub trait Locator: Send + Sync + 'static {
    /// How long a request waits for it at most.
    fn patience(&self) -> Duration;

    /// Asks for the paths whose blocks are not known or known too long, and waits for that until a moment at most: what
    /// comes later is there for the next request.
    fn locate(&self, paths: Vec<Arc<str>>, generation: Arc<Generation>, until: Instant) -> Locating<'_>;
}

impl Daemon {
    /// Lets requests be told where their input lies. The first one set stays.
    pub fn set_locator(&self, locator: Arc<dyn Locator>) {
        let _ = self.0.locator.set(locator);
    }

    /// What a hint for this request says of its paths; `None`: nobody is asked, feeds tell of datasets.
    pub(in crate::runtime) async fn locate(&self, request: &HintRequest, deadline: Instant) -> Option<Arc<[String]>> {
        let locator = self.0.locator.get()?;
        let generation = self.generation();
        let paths = paths(request, &generation);
        if paths.is_empty() {
            return Some(Arc::default());
        }
        let now = Instant::now();
        let until = now + locator.patience().min(deadline.saturating_duration_since(now) / SHARE);
        let Located { mut notes, fresh } = locator.locate(paths, generation, until).await;
        if !self.took_in(&fresh, until).await {
            notes.push("locations_not_known_yet".to_owned());
        }
        Some(notes.into())
    }

    /// Waits until requests see the datasets.
    async fn took_in(&self, fresh: &[Arc<str>], until: Instant) -> bool {
        let seen = |daemon: &Self| {
            let datasets = &daemon.generation().snapshot.datasets;
            fresh.iter().all(|path| datasets.contains_key(path))
        };
        while !seen(self) {
            if Instant::now() >= until {
                return false;
            }
            self.hurry();
            tokio::time::sleep(LOOK_EVERY).await;
        }
        true
    }
}

/// The paths that a request reads, each once: its own and its groups', else those of its recurring job.
fn paths(request: &HintRequest, generation: &Generation) -> Vec<Arc<str>> {
    let own = request.input_paths.iter().chain(request.groups.iter().flat_map(|group| &group.input_paths));
    let mut paths: Vec<Arc<str>> = own.cloned().collect();
    if paths.is_empty()
        && let Some(job) = request.recurring_key.as_ref().and_then(|key| generation.history.get(key))
    {
        let groups = request.groups.iter().filter_map(|group| job.groups.get(&group.name));
        paths = job.input_paths.iter().chain(groups.flat_map(|group| &group.input_paths)).cloned().collect();
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
