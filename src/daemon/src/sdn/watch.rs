//! Watches the controller: polls and events become the inventory, and its changes items of the daemon's feeds.

use super::counters::Counters;
use super::forwarding::{self, Rules};
use super::graph::Graph;
use super::inventory::{Inventory, Poll, Settings};
use super::model::{Dpid, Event, Mac, PortCount};
use super::options::RyuOptions;
use super::ryu::{self, BadAnswer};
use crate::feed::{FeedStream, link_stats, topology};
use crate::rest_advice::server_failure;
use crate::rest_client::{Rest, RestError, backoff};
use crate::runtime::Daemon;
use crate::runtime::servers::Group;
use crate::telemetry::sdn::{Asked, SdnMetrics};
use hintd_client::wire::v1;
use hintd_model::cluster::Source;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long new things wait for others.
const GATHER: Duration = Duration::from_millis(100);

/// The network as rules are made for it.
#[derive(Debug, Default)]
pub(super) struct View {
    /// In names.
    pub(super) graph: Graph,
    /// Rules of default forwarding, where the operator wants them.
    pub(super) base: Rules,
    /// Hops from switches to destinations.
    pub(super) far: BTreeMap<(Dpid, Mac), u32>,
    /// A poll was taken in.
    pub(super) known: bool,
}

/// What reaches the inventory.
pub(super) enum ControllerEvent {
    /// An event.
    Event(Event),
    /// Events are not heard any more.
    Deaf,
    /// A poll, and when it was begun.
    Polled(Box<Poll>, Instant),
    /// Counters of some switches.
    Counted(Vec<(Dpid, Vec<PortCount>)>),
    /// The controller gave no usable answer.
    Trouble,
}

/// Owns the inventory.
pub(super) struct Watcher {
    options: Arc<RyuOptions>,
    daemon: Daemon,
    metrics: SdnMetrics,
    inventory: Inventory,
    counters: Counters,
    /// What the daemon was told.
    told: Option<Graph>,
    known: bool,
    /// When new things are told: they come in swarms, and each of them changes the whole network.
    growth: Option<Instant>,
    view: watch::Sender<Arc<View>>,
    topology: FeedStream,
    loads: FeedStream,
    started: Instant,
    numbers: [u64; 2],
}

impl Watcher {
    pub(super) fn new(
        options: Arc<RyuOptions>,
        daemon: Daemon,
        metrics: SdnMetrics,
        view: watch::Sender<Arc<View>>,
    ) -> Self {
        let settings = Settings { debounce: options.debounce, settle: options.settle };
        let mut watcher = Self {
            options,
            daemon,
            metrics,
            inventory: Inventory::new(settings),
            counters: Counters::default(),
            told: None,
            known: false,
            growth: None,
            view,
            topology: FeedStream::new(Source::Topology),
            loads: FeedStream::new(Source::LinkStats),
            started: Instant::now(),
            numbers: [0; 2],
        };
        let hello = || v1::FeedHello { source: "sdn.ryu".to_owned(), ..v1::FeedHello::default() };
        watcher.tell(v1::topology_item::Item::Hello(hello()));
        watcher.tell_load(v1::link_stats_item::Item::Hello(hello()));
        watcher
    }

    /// Takes news in until nobody sends any.
    pub(super) async fn run(mut self, mut news: mpsc::Receiver<ControllerEvent>) {
        loop {
            let due = self.inventory.due().map(|due| self.started + due).into_iter().chain(self.growth).min();
            let wait = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                one = news.recv() => match one {
                    Some(one) => self.handle(one),
                    None => return,
                },
                () = wait => {
                    let now = self.now();
                    let grown = self.growth.is_some_and(|due| Instant::now() >= due);
                    if self.inventory.tick(now) || grown {
                        self.publish(grown);
                    }
                }
            }
        }
    }

    fn handle(&mut self, news: ControllerEvent) {
        let now = self.now();
        match news {
            ControllerEvent::Event(event) => {
                tracing::debug!(?event, "the controller says");
                if self.inventory.event(&event, now) && self.known {
                    self.publish(false);
                }
            }
            // Polls will notice what events would have told.
            ControllerEvent::Deaf | ControllerEvent::Trouble => self.inventory.trouble(now),
            ControllerEvent::Polled(poll, begun) => {
                let begun = begun.saturating_duration_since(self.started);
                match self.inventory.poll(&poll, begun, now) {
                    Ok(()) => {
                        self.metrics.asked(Asked::Topology, None);
                        self.metrics.connected(true);
                        self.known = true;
                        self.publish(true);
                        self.daemon.registries().heard(Source::Topology);
                    }
                    Err(error) => {
                        self.metrics.asked(Asked::Topology, Some("empty"));
                        self.inventory.trouble(now);
                        tracing::warn!(%error, "the last known network stays");
                    }
                }
            }
            ControllerEvent::Counted(counts) => {
                for (switch, counts) in counts {
                    self.counters.add(switch, &counts);
                }
                for load in self.told.as_ref().map(|graph| self.counters.loads(graph)).unwrap_or_default() {
                    self.tell_load(v1::link_stats_item::Item::Load(load));
                }
            }
        }
    }

    /// Tells the daemon what changed, and installers the network as it is now. New things wait a little for others,
    /// unless they are `due`.
    fn publish(&mut self, due: bool) {
        let (graph, twice) = Graph::new(&self.inventory, &self.options.names, self.options.capacities);
        if !twice.is_empty() {
            tracing::warn!(names = ?twice, "two things have one name: only the first is known");
        }
        let changes = graph.changes_since(self.told.as_ref());
        if !due && matches!(changes.first(), Some(v1::topology_item::Item::Full(_))) {
            self.growth.get_or_insert_with(|| Instant::now() + GATHER);
            return;
        }
        self.growth = None;
        // Routes over what is new or back may come before the last item was told: installers must know it by then. What
        // is lost they need not know, and nobody is to wait for default forwarding to be worked out.
        let lost = changes.iter().all(is_loss);
        if !lost {
            self.show(&graph);
        }
        let mut taken = true;
        for item in changes {
            match &item {
                v1::topology_item::Item::Full(full) => tracing::info!(
                    switches = full.switches.len(),
                    hosts = full.hosts.len(),
                    links = full.links.len(),
                    one_way = self.inventory.one_way(),
                    "the network as the controller knows it"
                ),
                other => tracing::info!(change = ?other, "the network changed"),
            }
            taken &= self.tell(item);
        }
        if lost {
            self.show(&graph);
        }
        // What was refused (islands, while links are still being found) is told as a whole the next time.
        self.told = taken.then_some(graph);
    }

    /// Gives installers the network as it is now.
    fn show(&self, graph: &Graph) {
        let (base, far) = match self.options.forward {
            true => forwarding::rules(graph, &self.inventory, self.now()),
            false => Default::default(),
        };
        let view = View { graph: graph.clone(), base, far, known: true };
        self.view.send_if_modified(|last| {
            let same = last.known && last.graph == view.graph && last.base == view.base;
            if !same {
                *last = Arc::new(view);
            }
            !same
        });
    }

    /// Whether the item was taken.
    fn tell(&mut self, item: v1::topology_item::Item) -> bool {
        self.numbers[0] += 1;
        let item = v1::TopologyItem { number: self.numbers[0], item: Some(item) };
        let taken = topology::ingest(self.daemon.registries(), &mut self.topology, item);
        if let Err(refusal) = &taken {
            tracing::warn!(reason = refusal.reason.as_str(), message = %refusal.message, "the network is refused");
        }
        self.daemon.hurry();
        // Nobody waits for these; taking them keeps the stream small.
        drop(self.topology.acknowledge(self.daemon.registries(), ""));
        taken.is_ok()
    }

    fn tell_load(&mut self, item: v1::link_stats_item::Item) {
        self.numbers[1] += 1;
        let item = v1::LinkStatsItem { number: self.numbers[1], item: Some(item) };
        if let Err(refusal) = link_stats::ingest(self.daemon.registries(), &mut self.loads, item) {
            tracing::debug!(reason = refusal.reason.as_str(), message = %refusal.message, "a load is refused");
        }
        drop(self.loads.acknowledge(self.daemon.registries(), ""));
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Whether an item says only that something is gone.
const fn is_loss(item: &v1::topology_item::Item) -> bool {
    match item {
        v1::topology_item::Item::Link(link) => matches!(link.up, Some(false)),
        v1::topology_item::Item::Switch(switch) => !switch.up,
        _ => false,
    }
}

/// Polls for ever: the topology, and counters where they are due.
pub(super) async fn poll(
    (options, controller): (Arc<RyuOptions>, Group),
    metrics: SdnMetrics,
    news: mpsc::Sender<ControllerEvent>,
) {
    let mut rest = Rest::new(options.authority.clone(), options.timeout, options.answer_bytes);
    let (mut failures, mut counted) = (0_u32, None::<Instant>);
    loop {
        let begun = Instant::now();
        let answer = match look(&mut rest).await {
            Ok(poll) => {
                let switches: Vec<Dpid> = poll.switches.iter().copied().collect();
                if news.send(ControllerEvent::Polled(Box::new(poll), begun)).await.is_err() {
                    return;
                }
                if counted.is_none_or(|last| last.elapsed() >= options.counters) {
                    counted = Some(Instant::now());
                    let counts = count(&mut rest, &switches).await;
                    metrics.asked(Asked::Counters, counts.as_ref().err().map(RestError::reason));
                    match counts {
                        Ok(counts) => news.send(ControllerEvent::Counted(counts)).await.map_err(|_| None),
                        Err(error) => Err(Some(error)),
                    }
                } else {
                    Ok(())
                }
            }
            Err(error) => {
                metrics.asked(Asked::Topology, Some(error.reason()));
                Err(Some(error))
            }
        };
        let wait = match answer {
            Ok(()) => {
                failures = 0;
                let _ = controller.answered(0); // the watcher logs what the network is
                options.poll.saturating_sub(begun.elapsed())
            }
            Err(None) => return,
            Err(Some(error)) => {
                failures += 1;
                metrics.connected(false);
                controller.troubled(0, server_failure(&error));
                let _ = controller.nobody(); // each failure is logged below
                tracing::warn!(controller = %options.authority, %error, failures, "the last known network stays");
                if news.send(ControllerEvent::Trouble).await.is_err() {
                    return;
                }
                backoff(failures, options.backoff, rand::random())
            }
        };
        tokio::time::sleep(wait).await;
    }
}

async fn look(rest: &mut Rest) -> Result<Poll, RestError<BadAnswer>> {
    let mut poll = Poll {
        switches: rest.get("/v1.0/topology/switches", ryu::switches).await?,
        links: rest.get("/v1.0/topology/links", ryu::links).await?,
        hosts: rest.get("/v1.0/topology/hosts", ryu::hosts).await?,
        ports: BTreeMap::new(),
    };
    for &switch in &poll.switches {
        match rest.get(&format!("/stats/portdesc/{}", switch.0), |body| ryu::ports(switch, body)).await {
            Ok(ports) => _ = poll.ports.insert(switch, ports),
            Err(error) if of_one_switch(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(poll)
}

async fn count(rest: &mut Rest, switches: &[Dpid]) -> Result<Vec<(Dpid, Vec<PortCount>)>, RestError<BadAnswer>> {
    let mut counts = Vec::with_capacity(switches.len());
    for &switch in switches {
        match rest.get(&format!("/stats/port/{}", switch.0), |body| ryu::counts(switch, body)).await {
            Ok(found) => counts.push((switch, found)),
            Err(error) if of_one_switch(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

/// Whether it is one switch that does not answer: it may have left between two questions.
const fn of_one_switch(error: &RestError<BadAnswer>) -> bool {
    matches!(error, RestError::Status { .. } | RestError::Nonsense { source: BadAnswer::OtherSwitch(_), .. })
}
