//! Installs routes: rules of the daemon become entries of switches, are read back, and then acknowledged.
//!
//! Ryu answers 200 to whatever is well-formed and sends it on unasked whether the switch takes it, so an entry counts
//! only when the switch shows it. Planned changes are confirmed hop by hop, from the egress; after a failure all hops are
//! sent at once, egress first, and confirmed together.

use super::forwarding;
use super::graph::Graph;
use super::model::{Dpid, EntryFound, Match, Output};
use super::options::RyuOptions;
use super::ryu::{self, BadAnswer};
use super::table::{COOKIE_MASK, Command, InstalledEntries, Layer, Table, Translated, translate};
use super::watch::View;
use crate::rest_client::{Rest, RestError, backoff};
use crate::runtime::Daemon;
use crate::runtime::watchers::{WatchCaller, Watching};
use crate::telemetry::sdn::{Asked, RuleResult, SdnMetrics};
use hintd_engine::{Phase, Proof, Refusal, RouteUpdate, RuleAction, WatchScope, WatchedPair};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The name under which routes are watched.
const WATCHER: &str = "sdn.ryu";
/// Changes of default forwarding sent before routes get their turn.
const CHUNK: usize = 4;
/// Tries of one update before it is left to the audit.
const TRIES: u32 = 3;
/// Between two readings of a table that does not show yet what it was told: doubled up to the longest.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LONGEST: Duration = Duration::from_millis(100);

/// One command, and the pair that fails with it.
struct Step {
    pair: WatchedPair,
    command: Command,
}

/// Owns what switches are to have.
pub(super) struct Installer {
    options: Arc<RyuOptions>,
    daemon: Daemon,
    metrics: SdnMetrics,
    rest: Rest,
    table: Table,
    view: watch::Receiver<Arc<View>>,
    /// Entries of routes as they were made, by switch and pair: a host's address may be another by the time they go.
    laid: BTreeMap<(Arc<str>, WatchedPair), (Dpid, Match)>,
    /// An update was left without: until all routes are sent again, none may be acknowledged, for an acknowledgement
    /// is of all updates before it too.
    behind: bool,
    /// Changes of default forwarding to be sent.
    base: VecDeque<Command>,
    /// Switches to be compared with the table.
    suspects: BTreeSet<Dpid>,
    /// Connected switches as of the last look.
    connected: BTreeSet<Dpid>,
    audited: Instant,
    started: Instant,
    /// The routes that an earlier life installed are known to be wanted or not.
    routes_known: bool,
    failures: u32,
    not_before: Instant,
}

impl Installer {
    pub(super) fn new(
        options: Arc<RyuOptions>,
        daemon: Daemon,
        metrics: SdnMetrics,
        view: watch::Receiver<Arc<View>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            rest: Rest::new(options.authority.clone(), options.timeout, options.answer_bytes),
            table: Table::new(options.marks),
            routes_known: !options.install, // then none is wanted, ever
            options,
            daemon,
            metrics,
            view,
            laid: BTreeMap::new(),
            behind: false,
            base: VecDeque::new(),
            suspects: BTreeSet::new(),
            connected: BTreeSet::new(),
            audited: now,
            started: now,
            failures: 0,
            not_before: now,
        }
    }

    /// Installs for ever. Ends with the daemon.
    pub(super) async fn run(mut self) {
        if self.view.wait_for(|view| view.known).await.is_err() {
            return;
        }
        self.look_at_view();
        let mut watching = None;
        let mut tries = 0;
        loop {
            if watching.is_none() && self.options.install {
                match self.watch().await {
                    Ok(new) => (watching, tries) = (Some(new), 0),
                    Err(refusal) => {
                        tries += 1;
                        tracing::warn!(%refusal, "routes can't be watched");
                    }
                }
            }
            let again = match watching {
                Some(_) => Duration::MAX,
                None => backoff(tries.max(1), self.options.backoff, rand::random()),
            };
            self.turn(&mut watching, again).await;
            if self.daemon.stopping().is_cancelled() {
                return;
            }
        }
    }

    /// Waits for one thing to do, updates of routes first, and does it.
    async fn turn(&mut self, watching: &mut Option<Watching>, again: Duration) {
        let work = (!self.base.is_empty() || !self.suspects.is_empty()).then_some(self.not_before);
        let audit = self.audited + self.options.audit;
        let next = work.unwrap_or(audit).min(audit);
        let again = Instant::now().checked_add(again);
        let stopping = self.daemon.stopping().clone();
        tokio::select! {
            biased;
            () = stopping.cancelled() => {}
            update = async {
                match watching.as_mut() {
                    Some(watching) => watching.updates.recv().await,
                    None => std::future::pending().await,
                }
            } => match update {
                Some(update) => self.update(&update).await,
                None => {
                    let why = watching.as_ref().and_then(|watching| watching.ended.get().cloned()).unwrap_or_default();
                    tracing::warn!(why, "routes are not told any more; they are watched anew");
                    *watching = None;
                }
            },
            changed = self.view.changed() => {
                if changed.is_ok() {
                    self.look_at_view();
                } else {
                    // The watcher ended: so does the daemon.
                    stopping.cancelled().await;
                }
            }
            () = tokio::time::sleep_until(next) => self.repair().await,
            () = sleep_until(again), if watching.is_none() => {}
        }
    }

    /// Notes what the network's change means for default forwarding and for switches that came back.
    fn look_at_view(&mut self) {
        let view = Arc::clone(&self.view.borrow_and_update());
        let connected: BTreeSet<Dpid> = view.graph.switches.values().filter(|at| at.up).map(|at| at.dpid).collect();
        self.suspects.extend(connected.difference(&self.connected));
        self.connected = connected;
        if !self.options.forward {
            return;
        }
        let old: Vec<(Dpid, Match)> = self.table.of_layer(Layer::Base).collect();
        let mut wanted: Vec<(&(Dpid, Match), &BTreeSet<Output>)> = view.base.iter().collect();
        wanted.sort_by_key(|((switch, matches), _)| (forwarding::distance(&view.far, *switch, matches), *switch));
        for (&(switch, matches), outputs) in wanted {
            if self.table.outputs(switch, Layer::Base, matches) != Some(outputs) {
                self.base.push_back(self.table.want(switch, Layer::Base, matches, outputs.clone()));
            }
        }
        for (switch, matches) in old {
            if !view.base.contains_key(&(switch, matches)) {
                self.base.push_back(self.table.drop(switch, Layer::Base, matches));
            }
        }
    }

    /// Applies an update and acknowledges it; one that the controller did not take at all is left without.
    async fn update(&mut self, update: &RouteUpdate) {
        let number = update.number;
        let began = Instant::now();
        let view = Arc::clone(&self.view.borrow());
        tracing::debug!(number, cause = update.cause, rules = update.rules.len(), "routes are told");
        if update.snapshot {
            self.table.forget_routes();
            self.laid.clear();
            self.behind = false;
            self.suspects.extend(&self.connected);
            self.routes_known = true;
        }
        let (waves, mut refused) = self.plan(update, &view.graph);
        for wave in &waves {
            for attempt in 1.. {
                match self.wave(wave, update.snapshot, &mut refused).await {
                    Ok(()) => break,
                    Err(error) if attempt < TRIES => {
                        tracing::warn!(number, %error, attempt, "rules were not taken");
                        tokio::time::sleep(backoff(attempt, self.options.timeout / 4, rand::random())).await;
                    }
                    Err(error) => {
                        tracing::warn!(number, %error, "an update stays without acknowledgement; rules follow later");
                        self.suspects.extend(waves.iter().flatten().map(|step| step.command.switch()));
                        self.behind = true;
                        return;
                    }
                }
            }
        }
        for (pair, reason) in &refused {
            tracing::warn!(src = %pair.src, dst = %pair.dst, reason, "a route can't be installed");
            self.forget(pair).await;
        }
        tracing::info!(
            number,
            cause = update.cause,
            phase = update.phase.as_str(),
            rules = update.rules.len(),
            refused = refused.len(),
            took_ms = began.elapsed().as_millis(),
            "routes are installed"
        );
        if self.behind {
            tracing::warn!(number, "an earlier update is without, so this one is not acknowledged either");
            return;
        }
        if let Err(refusal) = self.acknowledge(number, refused.into_iter().collect()).await {
            tracing::warn!(number, %refusal, "an acknowledgement is not taken");
        }
    }

    /// Rules as commands, in waves that are confirmed one after another.
    fn plan(&mut self, update: &RouteUpdate, graph: &Graph) -> (Vec<Vec<Step>>, BTreeMap<WatchedPair, String>) {
        let (mut waves, mut refused) = (Vec::<Vec<Step>>::new(), BTreeMap::new());
        let mut hops = BTreeMap::<&WatchedPair, usize>::new();
        for rule in &update.rules {
            let key = (Arc::clone(&rule.switch), rule.pair.clone());
            let old = self.laid.get(&key).copied();
            let mut commands = Vec::new();
            match translate(rule, graph) {
                Ok(Translated { switch, matches, port: Some(port) }) => {
                    let outputs = BTreeSet::from([Output::Port(port)]);
                    commands.push(self.table.want(switch, Layer::Route, matches, outputs));
                    self.laid.insert(key, (switch, matches));
                    let other = old.filter(|&old| old != (switch, matches));
                    commands.extend(other.map(|(switch, matches)| self.table.drop(switch, Layer::Route, matches)));
                }
                found if rule.action == RuleAction::Remove => {
                    self.laid.remove(&key);
                    // What is not there need not go.
                    let at = old.or_else(|| found.ok().map(|at| (at.switch, at.matches)));
                    commands.extend(at.map(|(switch, matches)| self.table.drop(switch, Layer::Route, matches)));
                }
                Ok(_) => {} // an install has a port
                Err(error) => {
                    refused.insert(rule.pair.clone(), error.to_string());
                }
            }
            if commands.is_empty() {
                continue;
            }
            let hop = hops.entry(&rule.pair).or_default();
            let wave = if update.phase == Phase::Make { *hop } else { 0 };
            *hop += 1;
            waves.resize_with(waves.len().max(wave + 1), Vec::new);
            waves[wave].extend(commands.into_iter().map(|command| Step { pair: rule.pair.clone(), command }));
        }
        (waves, refused)
    }

    /// Sends a wave and waits until switches show it. What single switches refuse is noted for its pairs.
    /// `all`: it is all that there is to be, so most of it may be there; only what is not is sent. Else a snapshot
    /// would take as long as the first, and be overdue as often.
    async fn wave(
        &mut self,
        steps: &[Step],
        all: bool,
        refused: &mut BTreeMap<WatchedPair, String>,
    ) -> Result<(), RestError<BadAnswer>> {
        let mut send: Vec<&Step> = steps.iter().filter(|step| !refused.contains_key(&step.pair)).collect();
        if all {
            self.unshown(&mut send).await?;
        }
        for step in send {
            if refused.contains_key(&step.pair) && matches!(step.command, Command::Add(..)) {
                continue;
            }
            match self.send(&step.command).await {
                Ok(()) => {}
                Err(error @ RestError::Status { .. }) => {
                    if matches!(step.command, Command::Add(..)) {
                        refused.insert(step.pair.clone(), error.to_string());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let (mut open, mut pause) = (steps.iter().collect::<Vec<_>>(), LOOK_FIRST);
        let deadline = Instant::now() + self.options.confirm;
        loop {
            open.retain(|step| !refused.contains_key(&step.pair) || matches!(step.command, Command::Remove { .. }));
            self.unshown(&mut open).await?;
            if open.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LONGEST);
        }
        self.metrics.rules(RuleResult::Unconfirmed, open.len() as u64);
        for step in open {
            let switch = step.command.switch();
            if matches!(step.command, Command::Remove { .. }) {
                // The pair's route is none the worse for it.
                self.suspects.insert(switch);
                continue;
            }
            let seconds = self.options.confirm.as_secs_f64();
            refused
                .entry(step.pair.clone())
                .or_insert_with(|| format!("switch {switch} does not show the entry after {seconds} s"));
        }
        Ok(())
    }

    /// Leaves of `steps` those that switches do not show yet.
    async fn unshown(&mut self, steps: &mut Vec<&Step>) -> Result<(), RestError<BadAnswer>> {
        let mut tables = BTreeMap::new();
        for switch in steps.iter().map(|step| step.command.switch()).collect::<BTreeSet<_>>() {
            match self.read(switch).await {
                Ok(found) => _ = tables.insert(switch, Some(InstalledEntries::new(found))),
                // A switch that is away has no table to be looked at.
                Err(RestError::Status { .. }) => _ = tables.insert(switch, None),
                Err(error) => return Err(error),
            }
        }
        steps.retain(|step| match &tables[&step.command.switch()] {
            Some(shown) => !shown.has(&step.command),
            None => matches!(step.command, Command::Add(..)),
        });
        Ok(())
    }

    /// A pair that is refused has no entries: half a path is none. What can't be removed now is left to the audit.
    async fn forget(&mut self, pair: &WatchedPair) {
        let all: Vec<_> = self.laid.extract_if(.., |(_, of), _| of == pair).map(|(_, at)| at).collect();
        for (switch, matches) in all {
            let command = self.table.drop(switch, Layer::Route, matches);
            if self.send(&command).await.is_err() {
                tracing::debug!(%switch, src = %pair.src, dst = %pair.dst, "an entry of a refused route may be left");
            }
            self.suspects.insert(switch);
        }
    }

    /// Sends some of what waits, or compares a switch with what it should hold.
    async fn repair(&mut self) {
        if self.audited.elapsed() >= self.options.audit {
            self.audited = Instant::now();
            self.suspects.extend(&self.connected);
        }
        tracing::debug!(changes = self.base.len(), suspects = self.suspects.len(), "switches are looked after");
        let done = if self.base.is_empty() { self.audit_one().await } else { self.send_base().await };
        match done {
            Ok(()) => (self.failures, self.not_before) = (0, Instant::now()),
            Err(error) => {
                self.failures += 1;
                self.not_before = Instant::now() + backoff(self.failures, self.options.backoff, rand::random());
                tracing::warn!(%error, "switches can't be looked after");
            }
        }
    }

    async fn send_base(&mut self) -> Result<(), RestError<BadAnswer>> {
        for _ in 0..CHUNK {
            let Some(command) = self.base.front().cloned() else { break };
            match self.send(&command).await {
                Ok(()) | Err(RestError::Status { .. }) => {}
                Err(error) => return Err(error),
            }
            self.base.pop_front();
            self.suspects.insert(command.switch());
        }
        Ok(())
    }

    async fn audit_one(&mut self) -> Result<(), RestError<BadAnswer>> {
        let Some(&switch) = self.suspects.first() else { return Ok(()) };
        let found = match self.read(switch).await {
            Err(RestError::Status { .. }) => {
                self.suspects.remove(&switch);
                return Ok(());
            }
            found => found?,
        };
        let settled = self.routes_known && self.started.elapsed() >= self.options.orphans;
        for command in self.table.differences(switch, &found) {
            let result = match command {
                Command::Add(..) => RuleResult::Mended,
                Command::Remove { .. } if settled => RuleResult::Orphan,
                Command::Remove { .. } => continue,
            };
            self.send(&command).await?;
            self.metrics.rules(result, 1);
        }
        self.suspects.remove(&switch);
        Ok(())
    }

    async fn send(&mut self, command: &Command) -> Result<(), RestError<BadAnswer>> {
        let (path, body, result) = match command {
            Command::Add(switch, entry) => ("/stats/flowentry/add", ryu::add(*switch, entry), RuleResult::Added),
            Command::Remove { switch, priority, matches } => {
                ("/stats/flowentry/delete_strict", ryu::remove(*switch, *priority, matches), RuleResult::Removed)
            }
        };
        let sent = self.rest.post(path, &body, |_| Ok(())).await;
        self.metrics.asked(Asked::Rules, sent.as_ref().err().map(RestError::reason));
        if sent.is_ok() {
            self.metrics.rules(result, 1);
        }
        sent
    }

    async fn read(&mut self, switch: Dpid) -> Result<Vec<EntryFound>, RestError<BadAnswer>> {
        let wanted = ryu::entries_wanted(self.options.marks.cookie & COOKIE_MASK, COOKIE_MASK);
        let found =
            self.rest.post(&format!("/stats/flow/{}", switch.0), &wanted, |body| ryu::entries(switch, body)).await;
        self.metrics.asked(Asked::Rules, found.as_ref().err().map(RestError::reason));
        found
    }

    async fn watch(&self) -> Result<Watching, Refusal> {
        let scope = WatchScope { pairs: Vec::new(), flows: true, installs: true, circuits: false, resume_after: None };
        let most = self.daemon.settings().watch;
        let caller = WatchCaller { watcher: WATCHER.into(), proof: Proof::Trusted, peer: None };
        self.daemon.watch(caller, scope, most).await
    }

    async fn acknowledge(&self, number: u64, refused: Vec<(WatchedPair, String)>) -> Result<u64, Refusal> {
        self.daemon.acknowledge(WATCHER.into(), Proof::Trusted, number, refused).await
    }
}

async fn sleep_until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
