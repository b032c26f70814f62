//! Traffic under chains of middleboxes: which pairs of nodes send under which chain, and their ways through its boxes.
//!
//! A pair's traffic under one chain is one flow, whichever jobs it serves: a class of its own beside the pair's other
//! traffic, for watchers tell classes apart by name. What it reserves of each box is its bytes over
//! [`ChainSettings::transfer`](super::settings::ChainSettings). Of links it reserves nothing: what shares a link is
//! reckoned without it.
//!
//! `sends`: which traffic that is; `fit`: whether a placement's would find its ways.

mod fit;
mod sends;

pub(crate) use fit::{Found, fit};
pub(crate) use sends::{Names, Sent, classes, plain, rate, sends};

use super::Flows;
use super::choose::RoutingContext;
use super::pairs::Difference;
use super::settings::RouteSettings;
use crate::effects::Counter;
use crate::refusal::Refusal;
use crate::routes::{Cause, ChangeBatch, Phase};
use hintd_model::cluster::{ChainPair, ChainedFlows, ChainedRoute, Snapshot};
use hintd_model::network::Network;
use hintd_model::network::chains::{self, ChainFlow, ChainRoutes, Chains, WaypointRoute};
use hintd_model::units::{AttemptId, BoxIdx, Bytes, LinkIdx, NodeIdx, VertexIdx};
use hintd_policy::Budget;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Flows under chains.
#[derive(Debug, Default)]
pub(super) struct Chained {
    /// Those of the routes.
    chains: Option<Arc<Chains>>,
    /// `None`: no chain is declared, or there is no network.
    routes: Option<ChainRoutes>,
    known: BTreeMap<ChainPair, ActiveChainedPair>,
    keys: BTreeMap<u64, ChainPair>,
    last: u64,
    pub(super) published: Arc<ChainedFlows>,
    /// Pairs whose ways watchers are to be told, by what they are told with.
    news: BTreeMap<ChangeBatch, BTreeSet<ChainPair>>,
    /// Pairs were published since somebody last looked who stands still.
    pub(super) published_more: bool,
    /// Pairs that stand still, as applications were told.
    pub(super) told: BTreeMap<(AttemptId, Arc<str>), u64>,
    /// Work that was done since the last tick, see [`WORK_IN_ONE_GO`].
    spent: u64,
    /// Why ways are still to be looked for.
    why: Option<Cause>,
    /// All work so far, and how much a test allows in one go.
    #[cfg(test)]
    tested: (u64, Option<u64>),
}

/// Work that searches for ways under chains may take between two ticks, in units of [`Work`](hintd_policy::Work) and steps of
/// path searches: some tenths of a second. What is left over waits for the next tick.
const WORK_IN_ONE_GO: u64 = 1 << 24;
/// Work that a look at a way that was found already comes to, at most.
const LOOK_WORK: u64 = 1 << 10;

#[derive(Debug, Clone, Copy, Default)]
struct ActiveChainedPair {
    number: u64,
    task_pairs: u64,
    bytes: u128,
    /// Jobs.
    users: u32,
}

impl ActiveChainedPair {
    fn bytes(&self) -> Bytes {
        Bytes(u64::try_from(self.bytes).unwrap_or(u64::MAX))
    }
}

/// What pairs send more or less.
type Differences = BTreeMap<ChainPair, Difference>;

fn differences(old: &BTreeMap<ChainPair, Sent>, new: &BTreeMap<ChainPair, Sent>) -> Differences {
    let mut changes = Differences::new();
    for (sent, sign) in [(old, -1_i32), (new, 1)] {
        for (key, sent) in sent {
            let change = changes.entry(key.clone()).or_default();
            change.task_pairs += i64::from(sign) * sent.task_pairs.cast_signed();
            change.bytes += i128::from(sign) * i128::from(sent.bytes);
            change.users += sign;
        }
    }
    changes
}

impl Chained {
    /// Pairs under chains.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    fn tell(&mut self, key: ChainPair, phase: Phase, cause: &Cause) {
        self.news.entry(ChangeBatch { phase, cause: cause.clone() }).or_default().insert(key);
    }

    /// Notes what generations have of a pair.
    fn publish(&mut self, key: &ChainPair) {
        self.published_more = true;
        let route = self.known.get(key).map(|talking| {
            let found = self.routes.as_ref().and_then(|routes| routes.flow(talking.number));
            Arc::new(ChainedRoute {
                way: found.and_then(|(_, way)| way.cloned()),
                rate: found.map(|(flow, _)| flow.rate).unwrap_or_default(),
                task_pairs: talking.task_pairs,
                bytes: talking.bytes(),
            })
        });
        Arc::make_mut(&mut self.published).routes.set(key, route);
    }

    fn publish_loads(&mut self) {
        let loads = self.routes.as_ref().map(|routes| routes.loads().clone()).unwrap_or_default();
        let published = Arc::make_mut(&mut self.published);
        (published.loads, published.chains) = (loads, self.chains.clone());
    }

    /// Looks for the way of a pair, the one `wanted` where it can be taken.
    fn place(&mut self, key: &ChainPair, wanted: Option<WaypointRoute>, context: &ChainRoutingContext<'_>) {
        let (Some(routes), Some(talking)) = (&mut self.routes, self.known.get(key)) else { return };
        let vertex = |node: NodeIdx| context.snapshot.topology.vertex.get(node.at()).copied().flatten();
        let ends = vertex(key.pair.from).zip(vertex(key.pair.to));
        let (Some((from, to)), Some(chain)) = (ends, context.ways.chains.find_chain(&key.chain)) else {
            routes.remove(talking.number);
            return;
        };
        let flow = ChainFlow { from, to, chain, rate: rate(talking.bytes(), context.settings.chains.transfer) };
        routes.insert_on(&context.ways, talking.number, flow, wanted);
    }

    pub(super) fn way(&self, key: &ChainPair) -> Option<&WaypointRoute> {
        self.routes.as_ref()?.route(self.known.get(key)?.number)
    }

    /// Pairs of these numbers.
    fn keys_of(&self, numbers: impl IntoIterator<Item = u64>) -> Vec<ChainPair> {
        numbers.into_iter().filter_map(|number| self.keys.get(&number).cloned()).collect()
    }
}

/// What ways are looked for in.
struct ChainRoutingContext<'a> {
    snapshot: &'a Snapshot,
    settings: &'a RouteSettings,
    ways: chains::WaypointInputs<'a>,
}

impl Flows {
    /// Routes under chains as of now.
    pub(crate) fn chained(&self) -> &Arc<ChainedFlows> {
        &self.chained.published
    }

    /// Pairs under chains whose ways are news, by occasion: failures first.
    pub(crate) fn take_chained_news(&mut self) -> Vec<(ChangeBatch, Vec<ChainPair>)> {
        let mut news: Vec<_> = std::mem::take(&mut self.chained.news).into_iter().collect();
        news.sort_by_key(|(occasion, _)| occasion.phase != Phase::Failover);
        news.into_iter().map(|(occasion, keys)| (occasion, keys.into_iter().collect())).collect()
    }

    /// Whether all this would find its ways now.
    ///
    /// # Errors
    /// As [`fit`].
    pub(crate) fn fits(
        &mut self,
        sends: &BTreeMap<ChainPair, Sent>,
        wanted: &Found,
        (snapshot, settings): (&Snapshot, &RouteSettings),
    ) -> Result<(), Refusal> {
        let ways = RoutingContext::of(snapshot, settings, &mut self.table);
        let table = ways.as_ref().map(|ways| &*ways.paths);
        let host = |node| snapshot.host(node).clone();
        // What was found is looked at again, and looked for only where somebody else was faster.
        let mut spent = || ways.as_ref().is_some_and(RoutingContext::is_spent);
        let budget = Budget::with_work(0, self.chained.most() + LOOK_WORK * sends.len() as u64, &mut spent);
        let running = &self.chained.published;
        fit(&snapshot.topology, table, running, (sends, wanted), settings.chains.transfer, host, &budget).map(|_| ())
    }

    /// A job sends something else under chains than before.
    pub(super) fn sends_chained(
        &mut self,
        (old, new): (&BTreeMap<ChainPair, Sent>, &BTreeMap<ChainPair, Sent>),
        wanted: &Found,
        cause: &Cause,
        at: (&Snapshot, &RouteSettings),
    ) {
        let changes = differences(old, new);
        if changes.is_empty() {
            return;
        }
        self.changed = true;
        let mut here = Vec::new();
        for (key, Difference { task_pairs, bytes, users }) in changes {
            let chained = &mut self.chained;
            let talking = chained.known.entry(key.clone()).or_insert_with(|| {
                chained.last += 1;
                chained.keys.insert(chained.last, key.clone());
                ActiveChainedPair { number: chained.last, ..ActiveChainedPair::default() }
            });
            talking.task_pairs = talking.task_pairs.saturating_add_signed(task_pairs);
            talking.bytes = talking.bytes.saturating_add_signed(bytes);
            talking.users = talking.users.saturating_add_signed(users);
            if talking.users > 0 {
                here.push(key);
                continue;
            }
            let number = talking.number;
            chained.known.remove(&key);
            chained.keys.remove(&number);
            if let Some(routes) = &mut chained.routes {
                routes.remove(number);
            }
            chained.publish(&key);
            chained.tell(key, Phase::Break, cause);
        }
        self.place_chained(&here, wanted, cause, at);
    }

    /// Finds ways for pairs that are new, or send another amount.
    fn place_chained(&mut self, keys: &[ChainPair], wanted: &Found, cause: &Cause, at: (&Snapshot, &RouteSettings)) {
        self.with_context(at, |chained, context, _| {
            for key in keys {
                let before = chained.way(key).cloned();
                chained.place(key, before.clone().or_else(|| wanted.get(key).cloned()), context);
                if before.as_ref() != chained.way(key) || before.is_none() {
                    chained.tell(key.clone(), Phase::Make, cause);
                }
            }
        });
        self.chained.remain(cause);
        keys.iter().for_each(|key| self.chained.publish(key));
        // Room that somebody left is another's.
        let found = self.with_context(at, |chained, context, _| chained.retry(context)).unwrap_or_default();
        self.chained_moved(&found, Phase::Make, cause);
        self.chained.publish_loads();
    }

    /// Work of all searches so far.
    #[cfg(test)]
    pub(crate) const fn chain_work(&self) -> u64 {
        self.chained.tested.0
    }

    /// Allows so much work between two ticks.
    #[cfg(test)]
    pub(crate) const fn bound_chain_work(&mut self, most: u64) {
        self.chained.tested.1 = Some(most);
    }

    /// Whether ways are still to be looked for.
    #[cfg(test)]
    pub(crate) const fn waits_for_ways(&self) -> bool {
        self.chained.why.is_some()
    }

    /// Goes on with ways that nobody has looked for yet, for lack of time.
    pub(super) fn tick_chained(&mut self, at: (&Snapshot, &RouteSettings)) {
        self.chained.spent = 0;
        let Some(cause) = self.chained.why.take() else { return };
        let found = self.with_context(at, |chained, context, _| {
            let found = chained.routes.as_mut().map(|routes| routes.go_on(&context.ways)).unwrap_or_default();
            chained.keys_of(found)
        });
        let found = found.unwrap_or_default();
        self.chained_moved(&found, Phase::Make, &cause);
        self.chained.remain(&cause);
        self.chained.publish_loads();
        self.changed |= !found.is_empty();
    }

    /// Links, boxes, or both changed: flows on what failed get the best way there is, or none.
    pub(super) fn chained_follow(
        &mut self,
        links: &[LinkIdx],
        boxes: &[BoxIdx],
        cause: &Cause,
        at: (&Snapshot, &RouteSettings),
    ) {
        if self.chained.routes.is_none() {
            return;
        }
        // Declared anew in the same drain: flows have indexes of the chains before until all of them are matched again, and
        // that looks at the network of now.
        let now = &at.0.topology.chains;
        let same = |old: &Arc<Chains>| now.as_ref().is_some_and(|now| now.is_declared_as(old));
        if self.chained.chains.as_ref().is_some_and(|old| !same(old)) {
            return;
        }
        self.chained.chains.clone_from(now);
        let found = self.with_context(at, |chained, context, late| {
            let mut boxes = boxes.to_vec();
            boxes.extend(standing_on(context.ways.chains, context.ways.network, links));
            boxes.sort_unstable();
            boxes.dedup();
            let routes = chained.routes.as_mut()?;
            let mut changed = routes.on_change(&context.ways, links, &boxes).changed;
            // A table takes a while to follow the network: it is waited for only where it may have a way.
            let newer = (late && !routes.lacking().is_empty()).then(|| context.snapshot.topology.paths()).flatten();
            if let Some(table) = newer {
                changed.extend(routes.retry(&chains::WaypointInputs { table, ..context.ways }));
            }
            changed.sort_unstable();
            changed.dedup();
            Some(chained.keys_of(changed))
        });
        let changed = found.flatten().unwrap_or_default();
        let lost = changed.iter().filter(|key| self.chained.way(key).is_none()).count() as u64;
        self.count(Counter::ChainsBroken, lost);
        self.count(Counter::RoutesFailedOver, changed.len() as u64 - lost);
        self.chained_moved(&changed, Phase::Failover, cause);
        self.chained.remain(cause);
        self.chained.publish_loads();
        self.changed = true;
    }

    /// Middleboxes changed; none named: chains were declared anew.
    pub(crate) fn chains_changed(&mut self, boxes: &[BoxIdx], cause: &Cause, at: (&Snapshot, &RouteSettings)) {
        if boxes.is_empty() {
            self.chained_anew(true, cause, at);
        } else {
            self.chained_follow(&[], boxes, cause, at);
        }
    }

    /// Chains were declared anew, or the network is another one: what jobs send is matched again, and every pair gets a
    /// way. In the `same` network pairs keep the way that they have, where they may.
    pub(super) fn chained_anew(&mut self, same: bool, cause: &Cause, at: (&Snapshot, &RouteSettings)) {
        self.forget_routes_had();
        let topology = &at.0.topology;
        let before = if same { self.chained.translated(topology.chains.as_deref()) } else { Found::new() };
        let chains = topology.chains.clone().filter(|_| topology.network.is_some());
        self.chained.routes = None;
        self.chained.chains = chains;
        self.reclassify(cause, at);
        self.chained.routes = self.chained.chains.as_deref().map(ChainRoutes::new);
        let keys: Vec<ChainPair> = self.chained.known.keys().cloned().collect();
        let told: BTreeMap<ChainPair, bool> = keys
            .iter()
            .map(|key| (key.clone(), self.chained.published.routes.get(key).is_some_and(|route| route.way.is_some())))
            .collect();
        self.with_context(at, |chained, context, _| {
            // Those that have a way come first, so that nobody takes it from them.
            for key in keys.iter().filter(|key| before.contains_key(key)) {
                chained.place(key, before.get(key).cloned(), context);
            }
            for key in keys.iter().filter(|key| !before.contains_key(key)) {
                chained.place(key, None, context);
            }
        });
        let mut lost = 0;
        for key in &keys {
            let way = self.chained.way(key);
            lost += u64::from(told[key] && way.is_none());
            if !same || way != before.get(key) {
                self.chained.tell(key.clone(), Phase::Failover, cause);
            }
            self.chained.publish(key);
        }
        self.count(Counter::ChainsBroken, lost);
        self.chained.remain(cause);
        self.chained.publish_loads();
        self.changed = true;
    }

    /// Matches what jobs send with the chains of now.
    fn reclassify(&mut self, cause: &Cause, at: (&Snapshot, &RouteSettings)) {
        let chains = at.0.topology.chains.as_deref();
        let port = at.1.chains.port;
        let other = self.jobs.iter().filter_map(|(&decision, job)| {
            let classes = classes(chains, job.of.as_deref()?, &job.edges, port);
            (classes != job.classes).then_some((decision, classes))
        });
        for (decision, classes) in other.collect::<Vec<_>>() {
            let Some(job) = self.jobs.get_mut(&decision) else { continue };
            job.classes = classes;
            let sends = job.reckon();
            self.sends(decision, sends, super::registry::Wanted::NONE, cause, at);
        }
    }

    fn chained_moved(&mut self, keys: &[ChainPair], phase: Phase, cause: &Cause) {
        for key in keys {
            self.chained.publish(key);
            self.chained.tell(key.clone(), phase, cause);
        }
    }

    /// Runs with ways of the moment, unless there is no network or no chain; whether the table of paths is an earlier
    /// version's is told.
    fn with_context<T>(
        &mut self,
        (snapshot, settings): (&Snapshot, &RouteSettings),
        run: impl FnOnce(&mut Chained, &ChainRoutingContext<'_>, bool) -> T,
    ) -> Option<T> {
        // The path table is not made for nothing.
        let chains = self.chained.chains.clone().filter(|_| !self.chained.known.is_empty())?;
        self.chained.routes.as_ref()?;
        let ways = RoutingContext::of(snapshot, settings, &mut self.table)?;
        let network = snapshot.topology.network.as_deref()?;
        let left = self.chained.most().saturating_sub(self.chained.spent);
        let mut spent = || ways.steps_taken() > left;
        let budget = Budget::with_work(0, left, &mut spent);
        let found = chains::WaypointInputs { network, table: &ways.paths, chains: &chains, work: Some(&budget) };
        let done = run(&mut self.chained, &ChainRoutingContext { snapshot, settings, ways: found }, ways.late);
        self.chained.note_work(budget.worked().saturating_add(ways.steps_taken()));
        Some(done)
    }
}

impl Chained {
    /// Work that is allowed between two ticks.
    fn most(&self) -> u64 {
        #[cfg(test)]
        if let Some(most) = self.tested.1 {
            return most;
        }
        WORK_IN_ONE_GO
    }

    fn note_work(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
        #[cfg(test)]
        {
            self.tested.0 += work;
        }
    }

    /// Notes why ways are still to be looked for, where some are.
    fn remain(&mut self, cause: &Cause) {
        if self.routes.as_ref().is_some_and(ChainRoutes::is_due) {
            self.why.get_or_insert_with(|| cause.clone());
        }
    }

    fn retry(&mut self, context: &ChainRoutingContext<'_>) -> Vec<ChainPair> {
        let Some(routes) = self.routes.as_mut().filter(|routes| !routes.lacking().is_empty()) else {
            return Vec::new();
        };
        let found = routes.retry(&context.ways);
        self.keys_of(found)
    }

    /// Ways of now, their boxes as another declaration numbers them; those of which it has no such box at that switch
    /// are left out.
    fn translated(&self, next: Option<&Chains>) -> Found {
        let (Some(old), Some(next)) = (self.chains.as_deref(), next) else { return Found::new() };
        let other = |index: &BoxIdx| {
            let known = &old.boxes()[index.at()];
            next.find_box(&known.name).ok().filter(|found| next.boxes()[found.at()].at == known.at)
        };
        let translate = |key: &ChainPair| {
            let way = self.way(key)?;
            let boxes = way.boxes.iter().map(other).collect::<Option<_>>()?;
            Some((key.clone(), WaypointRoute { boxes, ..way.clone() }))
        };
        self.known.keys().filter_map(translate).collect()
    }
}

/// Boxes that hang on an end of one of the links: on a switch that may have changed its state.
fn standing_on(chains: &Chains, network: &Network, links: &[LinkIdx]) -> Vec<BoxIdx> {
    let ends: BTreeSet<VertexIdx> =
        links.iter().map(|&link| network.link_at(link)).flat_map(|link| [link.a, link.b]).collect();
    let on = |at: &usize| chains.boxes()[*at].at.is_some_and(|at| ends.contains(&at));
    (0..chains.boxes().len()).filter(on).map(BoxIdx::new).collect()
}
