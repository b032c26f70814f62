//! What the bench's controller was told: the routes there are, link by link, and when updates came.

use super::super::super::failure::Failure;
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The name that it watches under.
const WATCHER: &str = "bench-reroute";
/// Updates that may wait to be looked at.
const WAITING: usize = 4_096;

type Pair = (String, String);

/// Routes as told so far.
#[derive(Debug)]
pub(super) struct InstalledRoutes {
    updates: mpsc::Receiver<Result<(Instant, v1::RouteUpdate), ClientError>>,
    routes: HashMap<Pair, Vec<String>>,
    by_link: BTreeMap<String, BTreeSet<Pair>>,
}

impl InstalledRoutes {
    /// Watches flows as the one that installs, and acknowledges whatever comes.
    pub(super) async fn watch(client: &Client) -> Result<Self, Failure> {
        let client = client.clone();
        let request = v1::WatchRequest {
            watcher: WATCHER.to_owned(),
            flows: true,
            installs: true,
            ..v1::WatchRequest::default()
        };
        let mut stream = client.watch(request).await?;
        let (sender, updates) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            loop {
                let next = match stream.message().await {
                    Ok(Some(update)) => Ok((Instant::now(), update)),
                    Ok(None) => Err(ClientError::Ended),
                    Err(status) => Err(status.into()),
                };
                let number = next.as_ref().map_or(0, |(_, update)| update.number);
                let ended = next.is_err();
                if sender.send(next).await.is_err() || ended {
                    return;
                }
                if let Err(error) = client.acknowledge(WATCHER, number, Vec::new()).await {
                    let _ = sender.send(Err(error)).await; // nobody may be listening any more
                    return;
                }
            }
        });
        Ok(Self { updates, routes: HashMap::new(), by_link: BTreeMap::new() })
    }

    /// Takes the next update; when it came, or `None` if none did until `deadline`.
    pub(super) async fn next(&mut self, deadline: Instant) -> Result<Option<Instant>, Failure> {
        match tokio::time::timeout_at(deadline, self.updates.recv()).await {
            Err(_) => Ok(None),
            Ok(None) => Err(Failure::work("the watch ended")),
            Ok(Some(Err(error))) => Err(error.into()),
            Ok(Some(Ok((at, update)))) => {
                self.apply(update);
                Ok(Some(at))
            }
        }
    }

    /// Takes updates until none came for so long.
    pub(super) async fn quiet(&mut self, span: Duration) -> Result<(), Failure> {
        while self.next(Instant::now() + span).await?.is_some() {}
        Ok(())
    }

    /// Pairs with a route.
    pub(super) fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Routes that have one of the links.
    pub(super) fn on(&self, links: &BTreeSet<String>) -> usize {
        let mut pairs = BTreeSet::new();
        pairs.extend(links.iter().filter_map(|link| self.by_link.get(link)).flatten());
        pairs.len()
    }

    /// Links that some route has.
    pub(super) fn links_in_use(&self) -> Vec<String> {
        self.by_link.keys().cloned().collect()
    }

    fn apply(&mut self, update: v1::RouteUpdate) {
        if update.snapshot {
            self.routes.clear();
            self.by_link.clear();
        }
        for pair in update.removed {
            self.set((pair.src, pair.dst), Vec::new());
        }
        for route in update.routes {
            let pair = route.pair.unwrap_or_default();
            self.set((pair.src, pair.dst), route.links);
        }
    }

    fn set(&mut self, pair: Pair, links: Vec<String>) {
        for link in self.routes.remove(&pair).into_iter().flatten() {
            if let Some(pairs) = self.by_link.get_mut(&link) {
                pairs.remove(&pair);
                if pairs.is_empty() {
                    self.by_link.remove(&link);
                }
            }
        }
        if links.is_empty() {
            return;
        }
        for link in &links {
            self.by_link.entry(link.clone()).or_default().insert(pair.clone());
        }
        self.routes.insert(pair, links);
    }
}
