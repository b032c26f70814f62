//! What happens to the daemon: requests, commits, time, the disk, reloads, crashes, those who watch routes.

use super::disk::Reply;
use super::event::{Ask, Event, Pick};
use super::state::{Asked, Call, Pending, World, settings};
use crate::testing::{ask, attempt, request};
use crate::tests::flows::controller::{Controller, NAME, scope};
use crate::{
    CommitOutcome, Engine, Mode, Refusal, Rows, Token, WatchScope, is_chained, may_wait, propose, propose_waiting,
};
use hintd_model::cluster::{Constraints, EdgePattern, Gang, GroupEdge, HintRequest, NamedResource, WhenFull};
use hintd_model::units::{Bytes, GroupIdx, LeaseId, Micros, Timestamp};
use hintd_policy::{Policy, registry};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

impl World {
    pub(super) fn play(&mut self, event: &Event) {
        self.steps += 1;
        match event {
            Event::Deliver { .. } | Event::DeliverAll | Event::Lose { .. } | Event::Twice { .. } => {
                self.channels(event)
            }
            Event::Ask(ask) => self.ask(ask),
            Event::Repeat { which, other_body, looked_up } => self.repeat(*which, *other_body, *looked_up),
            Event::Reached { which, reached } => self.reached(*which, *reached),
            Event::PlaceDue => self.place_due(),
            Event::Commit { which, last } => self.commit(*which, *last),
            Event::Preview { which } => self.preview(*which),
            Event::Abandon { which } => {
                if !self.pending.is_empty() {
                    self.pending.remove(usize::from(*which) % self.pending.len());
                }
            }
            Event::Release { app, which, all, wrong_token } => self.release(*app, *which, *all, *wrong_token),
            Event::Publish => self.publish(),
            Event::Pass { ms } => self.pass(Micros::from_millis(*ms)),
            Event::Sync { batches } => self.sync(*batches),
            Event::DiskFails { kept } => {
                self.disk.fail(*kept);
                while let Some(left) = self.disk.failed() {
                    self.leave(left);
                }
            }
            Event::DiskBack => self.disk.mend(),
            Event::Reload { which } => {
                // Rules that are there stay there, however few there may be from now on.
                let rules_per_switch = self.settings.routes.rules_per_switch;
                self.settings = settings(*which);
                self.settings.routes.rules_per_switch = rules_per_switch;
                self.engine.reload(self.settings.clone(), self.now);
                self.silence();
                self.did(Call::Tick, None, Reply::Nobody);
            }
            Event::Redispatch { which } => self.redispatch(*which),
            Event::Crash { after_ms, clock_back_s } => {
                self.crash(Micros::from_millis(*after_ms), Micros::from_secs(*clock_back_s));
            }
            Event::Watch { resume } => self.watch(*resume),
            Event::Unwatch => {
                self.attached = false;
                self.engine.unwatch(NAME, self.now);
                self.did(Call::Other, None, Reply::Nobody);
            }
            Event::Acknowledge { behind, refuse } => self.acknowledge(*behind, *refuse),
            _ => self.outside(event),
        }
        self.check();
    }

    fn sync(&mut self, batches: usize) {
        for _ in 0..batches {
            let Some(left) = self.disk.sync() else { return };
            self.leave(left);
        }
    }

    fn pass(&mut self, span: Micros) {
        self.publish();
        self.now = self.now.plus(span);
        self.engine.tick(self.now);
        self.silence();
        self.did(Call::Tick, None, Reply::Nobody);
    }

    fn silence(&mut self) {
        self.nodes.silence(self.settings.stale_after, self.settings.lost_after, self.start, self.now);
    }

    fn ask(&mut self, ask: &Ask) {
        self.next += 1;
        let asked = Asked {
            request: Arc::new(self.request(ask)),
            policy: usize::from(ask.policy) % self.policies.len(),
            mode: ask.mode,
            follows: ask.follows,
            digest: 1,
        };
        self.asked.push(asked.clone());
        self.propose(asked, 0);
    }

    fn request(&self, wish: &Ask) -> HintRequest {
        let names: Vec<String> = (0..wish.groups.len()).map(|at| format!("g{at}")).collect();
        let groups: Vec<(&str, u32)> =
            names.iter().map(String::as_str).zip(wish.groups.iter().map(|group| group.0)).collect();
        let mut made = request(&format!("r{}", self.next), &groups);
        made.attempt = attempt(wish.app, wish.attempt);
        for (group, &(_, memory_mb, vcores)) in made.groups.iter_mut().zip(&wish.groups) {
            group.size = NamedResource { memory_mb, vcores, named: Vec::new() };
            group.label = wish.labelled.then(|| "gpu".into());
            group.constraints.max_per_node = wish.most_per_node;
        }
        if made.groups.len() == 2 {
            (made.groups[0].role, made.groups[1].role) = ("map".into(), "reduce".into());
        }
        if wish.mib > 0 {
            let to = GroupIdx(made.groups.len() as u32 - 1);
            made.edges =
                vec![GroupEdge { from: GroupIdx(0), to, pattern: EdgePattern::AllToAll, bytes: Bytes(wish.mib * MIB) }];
        }
        if let Some(host) = wish.avoid {
            made.constraints =
                Constraints { avoid_hosts: vec![self.host_name(host).as_str().into()], ..Constraints::default() };
        }
        if wish.reads {
            made.input_paths = vec![format!("/in/{}", self.next % 3).into()];
        }
        made.recurring_key = wish.recurring.then(|| format!("job{}", wish.app).into());
        made.gang = if wish.all { Gang::All } else { Gang::UpTo };
        made.when_full = if wish.fail_when_full { WhenFull::Fail } else { WhenFull::Advise };
        if wish.asks {
            made.asks = made.groups.iter().map(|group| ask(group.key, "*", group.count)).collect();
        }
        made
    }

    /// Computes a proposal on the generation of now; it waits for its commit.
    fn propose(&mut self, asked: Asked, conflicts: u32) {
        let generation = self.generation();
        let chosen = self.chosen(&asked);
        let chained = is_chained(&generation, &asked.request, &self.placer.chains);
        let found = if asked.follows && !chained && may_wait(&asked.request, &chosen) {
            propose_waiting(
                &generation,
                &asked.request,
                &chosen,
                &self.policies[asked.policy].1,
                &self.placer,
                self.now,
            )
        } else {
            propose(&generation, &asked.request, &chosen, &self.placer, self.now, &mut || false)
        };
        if let Ok(mut proposal) = found {
            (proposal.digest, proposal.conflicts) = (asked.digest, conflicts);
            self.check_proposal(&asked, &proposal);
            self.pending.push(Pending { asked, proposal });
        }
    }

    fn repeat(&mut self, which: Pick, other_body: bool, looked_up: bool) {
        if self.asked.is_empty() {
            return;
        }
        let mut asked = self.asked[usize::from(which) % self.asked.len()].clone();
        if other_body {
            asked.digest = 2;
        }
        let id = asked.request.id.clone();
        match (self.engine.answer(&id, asked.digest), self.sent.get(&id)) {
            (Some(Ok(answer)), Some(sent)) => assert_eq!(answer, *sent, "a repeat has the answer that was sent"),
            (Some(Err(Refusal::IdReused { .. })), _) => assert!(self.engine.answer(&id, 3 - asked.digest).is_some()),
            (Some(Err(other)), _) => panic!("{other}"),
            (None, Some(sent)) => panic!("the answer {} was sent, and is not known", sent.decision.id),
            (_, None) => {}
        }
        if !looked_up || self.engine.answer(&id, asked.digest).is_none() {
            self.propose(asked, 0);
        } else if let Some(Ok(answer)) = self.engine.answer(&id, asked.digest) {
            self.answer_when_durable(&answer);
        }
    }

    /// What is known of an answer says nothing of its leases.
    fn reached(&mut self, which: Pick, reached: bool) {
        let Some(answer) = self.sent.values().nth(usize::from(which) % self.sent.len().max(1)) else { return };
        let (decision, (leases, _)) = (answer.decision.id, self.fingerprint());
        self.engine.answer_reached(decision, reached, self.now);
        assert_eq!(self.fingerprint().0, leases, "it takes nothing and gives nothing back");
        self.did(Call::Other, None, Reply::Nobody);
    }

    fn answer_when_durable(&mut self, answer: &Arc<crate::Answer>) {
        if let Some(reply) = self.disk.after(answer.decision.id, Reply::Answer(Arc::clone(answer))) {
            self.reply(reply);
        }
    }

    fn place_due(&mut self) {
        let Some(request) = self.due.pop_front() else { return };
        let named = request.policy.clone().unwrap_or_else(|| "spread".into());
        let policy = self.policies.iter().position(|(name, _)| **name == *named).unwrap();
        self.propose(Asked { request, policy, mode: Mode::On, follows: false, digest: 0 }, 0);
    }

    fn commit(&mut self, which: Pick, last: bool) {
        if self.pending.is_empty() || !self.disk.healthy {
            return;
        }
        let Pending { asked, mut proposal } = self.pending.remove(usize::from(which) % self.pending.len());
        proposal.last_try = last;
        let (before, generation, waits) = (self.fingerprint(), proposal.generation, proposal.waits());
        self.next += 1;
        let token = Token(format!("secret-{}", self.next).into());
        match self.engine.commit(proposal, token, self.now) {
            CommitOutcome::Committed(answer) => {
                self.did(Call::Commit, Some(answer.decision.id), Reply::Answer(Arc::clone(&answer)));
                self.check_answer(&asked, &answer, if waits { None } else { Some(generation) });
            }
            CommitOutcome::Conflict { nodes } => {
                assert!(!nodes.is_empty() && !last);
                assert_eq!(self.fingerprint(), before, "a conflict takes nothing");
                let conflicts = 1;
                self.did(Call::Other, None, Reply::Nobody);
                self.publish();
                self.propose(asked, conflicts);
            }
            CommitOutcome::Answered(answer) => {
                assert_eq!(self.fingerprint(), before, "a repeat takes nothing");
                let answer = answer.unpack();
                assert_eq!(answer.digest, asked.digest);
                if let Some(sent) = self.sent.get(&asked.request.id) {
                    assert_eq!(answer, *sent, "a repeat has the answer that was sent");
                }
                self.answer_when_durable(&answer);
            }
            CommitOutcome::Refused(_) => {
                assert_eq!(self.fingerprint(), before, "a refusal takes nothing");
                self.did(Call::Other, None, Reply::Nobody);
            }
        }
    }

    fn preview(&mut self, which: Pick) {
        let Some(pending) = self.pending.get(usize::from(which) % self.pending.len().max(1)) else { return };
        let before = self.fingerprint();
        if let Some(apart) = self.engine.detached_dispatcher(&pending.proposal, self.now).unwrap() {
            let _ = apart.preview(pending.proposal.clone());
        }
        assert_eq!(self.fingerprint(), before, "what-if takes nothing");
        assert!(self.engine.take_effects().is_empty(), "what-if writes nothing");
    }

    fn release(&mut self, app: u32, which: Pick, all: bool, wrong_token: bool) {
        let attempt = attempt(app, 1);
        let Some(known) = self.tokens.get(&attempt).cloned() else { return };
        let token = if wrong_token { Token("guessed".into()) } else { known };
        let live: Vec<LeaseId> = self.engine.leases().map(|lease| lease.id).collect();
        let mine: Vec<LeaseId> =
            self.engine.leases().filter(|lease| lease.attempt == attempt).map(|lease| lease.id).collect();
        let named: Vec<LeaseId> = match live.get(usize::from(which) % live.len().max(1)) {
            Some(&id) if !all => vec![id],
            _ if all => Vec::new(),
            _ => return,
        };
        let before = self.fingerprint();
        match self.engine.release(attempt, &crate::Proof::of_token(token), &named, self.now) {
            Err(_) => assert_eq!(self.fingerprint(), before, "a refused release changed something"),
            Ok(released) => {
                assert!(!wrong_token);
                let wanted: Vec<LeaseId> =
                    if all { mine } else { named.into_iter().filter(|id| mine.contains(id)).collect() };
                assert_eq!(released.released as usize, wanted.len());
                self.did(Call::Release, None, Reply::Released(wanted));
            }
        }
    }

    fn redispatch(&mut self, which: u8) {
        for (name, policy) in &mut self.policies {
            if policy.as_dispatch().is_some() {
                let table = if which.is_multiple_of(2) { String::new() } else { policy.params_toml() };
                let parsed = toml::de::DeTable::parse(&table).unwrap();
                let built: Arc<dyn Policy> = (registry::find(name).unwrap().build)(parsed).unwrap().into();
                *policy = built;
            }
        }
        let policies = self.policies.clone();
        let of = |name: &str| policies.iter().find(|(known, _)| *known == name).map(|(_, policy)| Arc::clone(policy));
        self.engine.redispatch(&of, self.now);
        self.did(Call::Other, None, Reply::Nobody);
    }

    /// The process dies, with all that was not on the disk; another begins with what was.
    fn crash(&mut self, after: Micros, back: Micros) {
        let written = self.disk.is_settled();
        self.disk.crash();
        self.now = Timestamp(self.now.plus(after).0 - back.0);
        let mut rows = Rows::new();
        for ((table, key), value) in &self.disk.rows {
            rows.entry(*table).or_default().push((key.clone(), value.clone()));
        }
        let lost = std::mem::take(&mut self.book.live);
        let meant = std::mem::take(&mut self.book.rows);
        (self.engine, _) = Engine::new(self.settings.clone(), self.rules.clone(), rows, self.now).unwrap();
        (self.start, self.version) = (self.now, self.engine.current_snapshot().version);
        (self.nodes, self.settled) = Default::default();
        self.pictures.clear();
        self.pending.clear();
        self.due.clear();
        self.replaced.clear();
        self.attached = false;
        self.book.restart(&self.disk.rows, &self.disk.leases);
        self.did(Call::Start, None, Reply::Nobody);
        self.check_recovered(&lost, &meant, written);
        self.tell_all();
    }

    fn watch(&mut self, resume: bool) {
        let knows = resume && self.controller.last > 0;
        if !knows {
            self.controller = Controller::default();
        }
        let wanted = WatchScope { resume_after: knows.then_some(self.controller.last), ..scope() };
        let first = self.engine.watch(NAME, wanted, self.now).unwrap();
        self.attached = true;
        for update in first {
            self.controller.apply(&update);
        }
        self.did(Call::Other, None, Reply::Nobody);
    }

    fn acknowledge(&mut self, behind: u64, refuse: bool) {
        let number = self.controller.last.saturating_sub(behind);
        if !self.attached || number <= self.controller.acknowledged {
            return;
        }
        let pairs = self.controller.routes.keys().take(usize::from(refuse));
        let refused = pairs.map(|pair| (pair.clone(), "no room".to_owned())).collect();
        if self.engine.acknowledge(NAME, number, refused, self.now).is_ok() {
            self.controller.acknowledged = number;
        }
        self.did(Call::Other, None, Reply::Nobody);
    }
}
