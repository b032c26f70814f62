//! What must hold, whatever happened: the invariants of docs/architecture.md against what the world knows by itself.

use super::book::{LeaseChanges, Row, Rows};
use super::naive::{Nodes, within};
use super::state::{Asked, Call, World};
use crate::journal::{Table, text_key};
use crate::{Answer, Counter, Decision, Engine, EngineCounts, Hint, Mode, Proposal};
use hintd_model::cluster::{Gang, NodeState};
use hintd_model::units::{LeaseId, RequestId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What a call that is refused may not change.
pub(super) type Fingerprint = (Vec<(LeaseId, Timestamp, bool)>, EngineCounts);

impl World {
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let leases = self.engine.leases().map(|lease| (lease.id, lease.expires, lease.confirmed.is_some()));
        (leases.collect(), self.engine.counts())
    }

    /// After every step.
    pub(super) fn check(&mut self) {
        self.check_ledger();
        self.check_nodes();
        self.check_answers();
        if self.steps.is_multiple_of(16) {
            self.check_replay();
        }
        if self.network.is_some() {
            self.check_routes();
            self.check_chains();
        }
    }

    /// The ledger is what the journal's operations make of it, and its overlay the sum of its leases.
    fn check_ledger(&self) {
        let snapshot = self.engine.current_snapshot();
        let told: BTreeMap<LeaseId, (String, u64, Timestamp, bool)> = self
            .engine
            .leases()
            .map(|lease| {
                let host = snapshot.host(lease.node).to_string();
                (lease.id, (host, lease.size.memory_mb(), lease.expires, lease.confirmed.is_some()))
            })
            .collect();
        let row = |(id, row): (&LeaseId, &Row)| (*id, (row.host.clone(), row.size.0, row.expires, row.confirmed));
        assert_eq!(told, self.book.live.iter().map(row).collect(), "the ledger is what is journalled");
        for node in snapshot.statics.indexes() {
            let host = snapshot.host(node).to_string();
            let leased = self.engine.leased().leased(node);
            let known = self.book.leased(&host);
            assert_eq!((leased.memory_mb(), leased.vcores()), known, "the overlay of {host}");
            let Some(told) = self.settled.all.get(&host).filter(|told| told.total != (0, 0)) else { continue };
            assert!(
                within(known, told.free(), &self.rules),
                "{host} has {:?} free, and {known:?} are promised",
                told.free()
            );
        }
        let back: Vec<_> = self.returned.iter().filter(|id| self.book.live.contains_key(id)).collect();
        assert!(back.is_empty(), "{back:?} were given back, and that was acknowledged");
    }

    /// The snapshot says of nodes what was told of them.
    fn check_nodes(&self) {
        let snapshot = self.engine.current_snapshot();
        for (host, told) in &self.settled.all {
            let node = snapshot.statics.find(host).unwrap_or_else(|| panic!("{host} is missing"));
            let known = &snapshot.occupied[node.at()];
            let total = &snapshot.statics.total[node.at()];
            let found = (
                snapshot.state[node.at()],
                (known.memory_mb(), known.vcores()),
                (total.memory_mb(), total.vcores()),
                snapshot.containers[node.at()] as usize,
                snapshot.statics.racks[snapshot.rack(node).at()].to_string(),
            );
            let expected = (told.state, told.occupied(), told.total, told.containers.len(), told.rack.clone());
            assert_eq!(found, expected, "{host}: state, occupied, total, containers, rack");
        }
        for node in snapshot.statics.indexes() {
            if !self.settled.all.contains_key(snapshot.host(node).as_str()) {
                assert!(snapshot.statics.total[node.at()].is_zero() && !snapshot.state[node.at()].usable());
            }
        }
    }

    /// Whether the journal, as far as it was meant, keeps this very answer.
    fn keeps(rows: &Rows, id: &RequestId, answer: &Answer) -> bool {
        let row = rows.get(&(Table::Answers, text_key(id.as_str())));
        row.is_some_and(|row| serde_json::from_slice::<Answer>(row).unwrap().decision.id == answer.decision.id)
    }

    /// What was sent is known as long as it is kept, and it is kept as long as a lease of it lives.
    fn check_answers(&mut self) {
        let rows = &self.book.rows;
        self.sent.retain(|id, answer| {
            let kept = Self::keeps(rows, id, answer);
            assert!(kept || answer.leases().all(|lease| !self.book.live.contains_key(&lease)), "{id} has leases");
            kept
        });
        for (id, answer) in &self.sent {
            match self.engine.answer(id, answer.digest) {
                Some(Ok(same)) => assert_eq!(same.decision, answer.decision),
                other => panic!("{id} was answered, and now it is {other:?}"),
            }
        }
    }

    /// The rows alone give the same ledger and answers.
    fn check_replay(&self) {
        let mut rows = crate::Rows::new();
        for ((table, key), value) in &self.book.rows {
            rows.entry(*table).or_default().push((key.clone(), value.clone()));
        }
        let (again, _) = Engine::new(self.settings.clone(), self.rules.clone(), rows, self.now).unwrap();
        let told = |engine: &Engine| -> Vec<_> {
            let live = engine.leases().filter(|lease| lease.expires > self.now);
            live.map(|lease| {
                (lease.id, engine.current_snapshot().host(lease.node).to_string(), lease.size, lease.confirmed)
            })
            .collect()
        };
        assert_eq!(told(&again), told(&self.engine), "the journal gives the ledger again");
    }

    /// What one call did to leases is what such a call may do.
    pub(super) fn check_turn(&self, call: Call, changes: &LeaseChanges, moved: bool) {
        let count = |counter| changes.count(counter);
        let may = |call_is: &[Call], counter: Counter| {
            assert!(count(counter) == 0 || call_is.contains(&call), "{call:?} has no reason for {counter:?}");
        };
        // An event settles where it names a node that was not there before.
        may(&[Call::Publish, Call::Tick, Call::Task], Counter::LeasesBound);
        may(&[Call::Publish, Call::Tick, Call::Task], Counter::LeasesWithdrawn);
        may(&[Call::Tick], Counter::LeasesExpired);
        may(&[Call::Undo], Counter::LeasesUndone);
        may(&[Call::Task, Call::Release, Call::Commit], Counter::LeasesReleased);
        may(&[Call::Publish, Call::Tick, Call::Commit, Call::Task], Counter::LeasesGranted);
        if call == Call::Tick {
            let late: Vec<_> = self.book.live.iter().filter(|(_, row)| row.expires <= self.now).collect();
            assert!(late.is_empty(), "{late:?} have had their time");
        }
        let expired = changes.ended.values().filter(|row| row.expires <= self.now).count() as u64;
        assert!(count(Counter::LeasesExpired) <= expired, "a lease expired before its time");
        if moved && matches!(call, Call::Publish | Call::Tick) {
            self.check_ends(call, changes);
        }
        for (host, row) in self.live_of(&changes.granted) {
            let node = self.settled.all.get(&host).unwrap_or_else(|| panic!("{row:?} is on a node nobody told of"));
            assert_eq!(node.state, NodeState::Running, "{row:?} is on a node that does not run");
            let leased = self.book.leased(&host);
            assert!(within(leased, node.free(), &self.rules), "{host} was granted {leased:?} of {:?}", node.free());
        }
    }

    /// Leases that a settling ended were used, pushed out, or lost with their node.
    fn check_ends(&self, call: Call, changes: &LeaseChanges) {
        let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
        for row in changes.ended.values().filter(|row| call != Call::Tick || row.expires > self.now) {
            *by_host.entry(&row.host).or_default() += 1;
        }
        for (host, ended) in by_host {
            let Some(node) = self.settled.all.get(host) else { continue }; // never told of: silence took it
            assert!(
                self.settled.touched.contains(host),
                "nothing was heard of {host}, and {ended} of its leases ended"
            );
            let appeared = self.settled.appeared.get(host).copied().unwrap_or(0);
            let mut held = self.book.leased(host);
            for row in changes.ended.values().filter(|row| row.host == host) {
                held = super::naive::sum(held, row.size);
            }
            let pushed = !within(held, node.free(), &self.rules);
            let reason = ended <= appeared || pushed || self.settled.left.contains(host);
            assert!(reason, "{ended} leases on {host} ended; {appeared} containers appeared and {held:?} had room");
        }
    }

    fn live_of(&self, leases: &BTreeSet<LeaseId>) -> Vec<(String, &Row)> {
        leases.iter().filter_map(|id| self.book.live.get(id)).map(|row| (row.host.clone(), row)).collect()
    }

    /// A proposal names only nodes that its generation's picture lets it name.
    pub(super) fn check_proposal(&self, asked: &Asked, proposal: &Proposal) {
        if let Some(picture) = self.pictures.get(&proposal.generation).filter(|_| asked.mode != Mode::Off) {
            self.check_hints(asked, &proposal.preview(), picture);
        }
    }

    /// `generation`: the one that it was placed on; `None`: it was decided at the commit.
    pub(super) fn check_answer(&self, asked: &Asked, answer: &Answer, generation: Option<u64>) {
        let (request, decision) = (&asked.request, &answer.decision);
        let settled = self.settled.as_ref();
        let picture = match generation {
            None => Some(settled),
            Some(number) => self.pictures.get(&number).map(|picture| &**picture),
        };
        if let Some(picture) = picture.filter(|_| asked.mode != Mode::Off) {
            self.check_hints(asked, decision, picture);
        }
        let leases = answer.leases().count() as u64;
        assert_eq!(answer.leases().collect::<BTreeSet<_>>().len() as u64, leases, "no lease is given twice");
        if asked.mode != Mode::On {
            assert_eq!(leases, 0, "{:?} leases nothing", asked.mode);
        }
        if request.gang == Gang::All {
            assert!(leases == 0 || leases == request.containers(), "{leases} of a gang of {}", request.containers());
        }
        assert_eq!(decision.attempt, request.attempt);
        assert_eq!(decision.request, request.id);
    }

    fn check_hints(&self, asked: &Asked, decision: &Decision, picture: &Nodes) {
        let request = &asked.request;
        let mut indexes: BTreeSet<(&str, u32)> = BTreeSet::new();
        for hint in &decision.hints {
            let group = request.groups.iter().find(|group| group.name == hint.group).unwrap();
            assert!(
                hint.count > 0 && hint.first_index + hint.count <= group.count,
                "{hint:?} of {} tasks",
                group.count
            );
            for index in hint.first_index..hint.first_index + hint.count {
                assert!(indexes.insert((&*group.name, index)), "task {index} of {} is hinted twice", group.name);
            }
            assert!(hint.leases.is_empty() || hint.leases.len() == hint.count as usize);
            let avoided = request.constraints.avoid_hosts.iter().chain(&group.constraints.avoid_hosts);
            let avoided: BTreeSet<&str> = avoided.map(|host| host.as_str()).collect();
            for host in std::iter::once(&hint.host).chain(&hint.fallbacks) {
                let node = picture.all.get(host.as_str()).unwrap_or_else(|| panic!("{host} is unknown"));
                assert_eq!(node.state, NodeState::Running, "{host} is hinted: {hint:?}");
                assert!(!avoided.contains(host.as_str()), "{host} is to be avoided");
                let labelled =
                    group.label.as_ref().map_or(node.labels.is_empty(), |label| node.labels.contains(&**label));
                assert!(labelled, "{host} has not the label of {}", group.name);
            }
        }
        self.check_bounds(asked, decision);
    }

    /// At the end, when all is over: the disk has what was meant, and nothing of anybody.
    pub(super) fn check_disk(&self) {
        assert_eq!(self.disk.rows, self.book.rows, "the disk has what was meant");
        let left: BTreeSet<Table> = self.disk.rows.keys().map(|(table, _)| *table).collect();
        let lasts = BTreeSet::from([Table::Meta, Table::History, Table::Runs]);
        assert!(left.is_subset(&lasts), "{left:?} has rows of what is over");
    }

    fn check_bounds(&self, asked: &Asked, decision: &Decision) {
        for group in asked.request.groups.iter().filter(|group| group.constraints.max_per_node > 0) {
            let mut on: BTreeMap<&str, u32> = BTreeMap::new();
            let placed = |hint: &&Hint| hint.group == group.name && hint.expected_wait.is_none();
            for hint in decision.hints.iter().filter(placed) {
                *on.entry(hint.host.as_str()).or_default() += hint.count;
            }
            let most = group.constraints.max_per_node;
            // Where there is no room a host may be named twice: for what is placed there, and for what waits there.
            assert!(on.values().all(|&count| count <= 2 * most), "{on:?} with {most} a node");
        }
    }

    /// After a crash: what was sent is there, what was given back is not, and nothing is there that was not written.
    /// `written`: all that was meant to be.
    pub(super) fn check_recovered(&self, lost: &BTreeMap<LeaseId, Row>, meant: &Rows, written: bool) {
        for (id, answer) in self.sent.iter().filter(|(id, answer)| Self::keeps(meant, id, answer)) {
            match self.engine.answer(id, answer.digest) {
                Some(Ok(same)) => assert_eq!(same.decision, answer.decision),
                // Leases whose time passed meanwhile keep no answer from being one too many.
                None if self.engine.counts().answers >= self.settings.answers_max => {}
                other => panic!("{id} was answered before the crash, and now it is {other:?}"),
            }
            for lease in answer.leases() {
                // That its container was allocated, which lets it last longer, may not have been written yet.
                let lasts = |row: &&Row| row.expires > self.now && (written || !row.confirmed);
                let held = lost.get(&lease).filter(lasts).is_some();
                assert!(!held || self.book.live.contains_key(&lease), "lease {lease} was promised, and is lost");
            }
        }
        for (id, row) in &self.book.live {
            assert!(row.expires > self.now, "{id} came back after its time");
            assert!(self.engine.explain_holds(*id), "{id} is of no answer");
        }
    }
}

impl Engine {
    /// Whether an answer that is kept names the lease.
    fn explain_holds(&self, id: LeaseId) -> bool {
        self.leases().filter(|lease| lease.id == id).all(|lease| self.explain(lease.decision).is_some())
    }
}
