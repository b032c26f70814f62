//! Application attempts: what each is held by, and the requests remembered for placing lost tasks anew.

use super::decision::RememberedRequest;
use super::journal::{KeyBuilder, KeyPart, Op, Table, key_parts, row_value};
use super::proof::{Proof, Secrets, Token};
use super::records::memory_size;
use super::refusal::Refusal;
use super::remembered_bytes::{OwnBytes, RememberedBytes};
use super::settings::EngineSettings;
use hintd_model::units::{AttemptId, ContainerId, Micros, RequestId, SchedulerKey, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Allocations remembered by attempt, so that an event told twice counts once.
const ALLOCATIONS_MAX: usize = 65_536;

/// Attempts known.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    known: BTreeMap<AttemptId, Attempt>,
    /// Oldest activity first.
    by_age: BTreeSet<(Timestamp, AttemptId)>,
    remembered: RememberedBytes,
}

/// One attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) secrets: Secrets,
    /// The journal has the secrets.
    written: bool,
    /// Oldest first.
    pub(crate) requests: VecDeque<RememberedRequest>,
    /// What these take.
    bytes: OwnBytes,
    /// Containers whose allocation was told.
    allocated: BTreeSet<ContainerId>,
    /// Containers that a node named before their allocation was told, and that no lease waited for on that node.
    astray: BTreeSet<ContainerId>,
    /// Containers whose tasks were placed anew: once is enough, even if their node comes back and is lost again.
    replaced: BTreeSet<ContainerId>,
    /// Ids of requests that place tasks anew, answered or not.
    replacements: BTreeSet<RequestId>,
    /// When it last showed that it is not over.
    touched: Timestamp,
    /// When it asked first; `None`: before the daemon's start.
    first: Option<Timestamp>,
    asked: Asked,
}

/// When an attempt last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) at: Timestamp,
    /// It was before the daemon's start, and nothing is kept that says when: `at` is the start.
    pub(crate) before: bool,
}

impl Attempts {
    pub(crate) fn get(&self, attempt: AttemptId) -> Option<&Attempt> {
        self.known.get(&attempt)
    }

    pub(crate) fn get_mut(&mut self, attempt: AttemptId) -> Option<&mut Attempt> {
        self.known.get_mut(&attempt)
    }

    /// What the attempt is held by; `drawn` becomes it if it is not known.
    pub(crate) fn admit(&mut self, attempt: AttemptId, drawn: Secrets, now: Timestamp) -> Secrets {
        self.alive(attempt, now);
        if let Some(known) = self.known.get_mut(&attempt) {
            known.asked = Asked { at: now, before: false };
            return known.secrets.clone();
        }
        let new = Attempt {
            secrets: drawn.clone(),
            written: false,
            requests: VecDeque::new(),
            bytes: self.remembered.share(),
            allocated: BTreeSet::new(),
            astray: BTreeSet::new(),
            replaced: BTreeSet::new(),
            replacements: BTreeSet::new(),
            touched: now,
            first: Some(now),
            asked: Asked { at: now, before: false },
        };
        self.known.insert(attempt, new);
        self.by_age.insert((now, attempt));
        drawn
    }

    /// An attempt showed that it is not over.
    pub(crate) fn alive(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(known) = self.known.get_mut(&attempt) else { return };
        self.by_age.remove(&(known.touched, attempt));
        known.touched = now;
        self.by_age.insert((now, attempt));
    }

    /// Attempts that showed nothing for longer than `silence`, the longest silent first, `most` of them; those that `holds`
    /// is true of are left out.
    pub(crate) fn silent(
        &self,
        (silence, most): (Micros, usize),
        holds: impl Fn(AttemptId) -> bool,
        now: Timestamp,
    ) -> Vec<AttemptId> {
        let silent = self.by_age.iter().take_while(|(touched, _)| now.since(*touched) > silence);
        silent.map(|&(_, attempt)| attempt).filter(|&attempt| !holds(attempt)).take(most).collect()
    }

    /// Whether who shows `proof` may ask for hints of an attempt.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`]; [`Refusal::Invalid`] for an attempt that is over, or whose number is
    /// too far from those that are known.
    pub(crate) fn may_ask(&self, attempt: AttemptId, proof: &Proof, settings: &EngineSettings) -> Result<(), Refusal> {
        let legacy = settings.legacy_clients;
        if let Some(known) = self.known.get(&attempt) {
            return known.secrets.held().check(attempt, proof, legacy);
        }
        let newest = self.newest(attempt);
        if let Some((newer, _)) = newest.filter(|(newest, known)| *newest > attempt && known.secrets.supersedes) {
            let message = format!("{attempt} is over: {newer} has asked since");
            return Err(Refusal::Invalid { field: "attempt".into(), message });
        }
        let Proof::Shown(shown) = proof else { return Ok(()) };
        if shown.nonce.is_none() && !legacy {
            return Err(Refusal::NoToken { what: attempt.to_string() });
        }
        let (last, most) = (newest.map_or(0, |(newest, _)| newest.attempt), settings.attempt_jump);
        if !shown.listed && attempt.attempt > last.saturating_add(most) {
            let message =
                format!("{attempt} is more than {most} above the last known attempt, {last} (limits.attempt_jump)");
            return Err(Refusal::Invalid { field: "attempt".into(), message });
        }
        Ok(())
    }

    /// What an attempt that may ask is to be held by, if it is new. One that nobody vouches for does not end those before
    /// it: a stranger could claim to be the next.
    pub(crate) fn secrets_of(&self, attempt: AttemptId, token: Token, proof: &Proof) -> Secrets {
        let supersedes = match proof {
            Proof::Trusted => true,
            Proof::Shown(shown) if shown.listed => true,
            Proof::Shown(_) => {
                let earlier = self.earlier(attempt).pop().and_then(|earlier| self.known.get(&earlier));
                earlier.is_some_and(|earlier| proof.opens(earlier.secrets.held()))
            }
        };
        Secrets { token, nonce: proof.nonce(), supersedes }
    }

    pub(crate) fn remove(&mut self, attempt: AttemptId) -> Option<Attempt> {
        let known = self.known.remove(&attempt)?;
        self.by_age.remove(&(known.touched, attempt));
        Some(known)
    }

    /// Attempts of the same application with a smaller number, ascending.
    pub(crate) fn earlier(&self, attempt: AttemptId) -> Vec<AttemptId> {
        let first = AttemptId { attempt: 0, ..attempt };
        self.known.range(first..attempt).map(|(&earlier, _)| earlier).collect()
    }

    /// The application's newest attempt.
    fn newest(&self, attempt: AttemptId) -> Option<(AttemptId, &Attempt)> {
        let (first, last) = (AttemptId { attempt: 0, ..attempt }, AttemptId { attempt: u32::MAX, ..attempt });
        self.known.range(first..=last).next_back().map(|(&newest, known)| (newest, known))
    }

    /// Whether another attempt of the application is held by its token alone.
    pub(crate) fn has_legacy(&self, attempt: AttemptId) -> bool {
        let (first, last) = (AttemptId { attempt: 0, ..attempt }, AttemptId { attempt: u32::MAX, ..attempt });
        self.known.range(first..=last).any(|(&other, known)| other != attempt && known.secrets.nonce.is_none())
    }

    /// Attempts to forget so that at most `most` stay: the longest silent ones that `holds` says nothing of.
    pub(crate) fn too_many(&self, most: usize, holds: impl Fn(AttemptId) -> bool) -> Vec<AttemptId> {
        let surplus = self.known.len().saturating_sub(most);
        let idle = self.by_age.iter().map(|&(_, attempt)| attempt).filter(|&attempt| !holds(attempt));
        idle.take(surplus).collect()
    }

    /// Every one that is known, ascending.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = AttemptId> + '_ {
        self.known.keys().copied()
    }

    /// The same, with what is known of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (AttemptId, &Attempt)> {
        self.known.iter().map(|(&attempt, known)| (attempt, known))
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

impl Attempt {
    /// Notes that the journal gets the secrets; false: it has them.
    pub(crate) fn write(&mut self) -> bool {
        !std::mem::replace(&mut self.written, true)
    }

    /// Remembers a request; returns those that had to go for it, itself among them where there is no room for it alone.
    pub(crate) fn remember(&mut self, request: RememberedRequest, settings: &EngineSettings) -> Vec<RequestId> {
        self.forget_request(&request.id);
        self.bytes.add(memory_size::request(&request));
        self.requests.push_back(request);
        let mut gone = Vec::new();
        while self.requests.len() > settings.requests_per_attempt.max(1)
            || !self.bytes.fits(settings.requests_bytes_max)
        {
            let Some(oldest) = self.requests.pop_front() else { break };
            self.bytes.remove(memory_size::request(&oldest));
            gone.push(oldest.id.clone());
        }
        gone
    }

    /// Forgets a request.
    pub(crate) fn forget_request(&mut self, id: &RequestId) {
        for gone in self.requests.iter().filter(|known| known.id == *id) {
            self.bytes.remove(memory_size::request(gone));
        }
        self.requests.retain(|known| known.id != *id);
    }

    /// The newest remembered request with a group of this key, and the group's position in it.
    pub(crate) fn request_of(&self, key: SchedulerKey) -> Option<(&RememberedRequest, usize)> {
        self.requests.iter().rev().find_map(|request| {
            let group = request.groups.iter().position(|group| group.key == key)?;
            Some((request, group))
        })
    }

    /// A remembered request by its id, or by that of what was launched of it later.
    pub(crate) fn request(&self, id: &RequestId) -> Option<&RememberedRequest> {
        let find = |id: &str| self.requests.iter().find(|request| request.id.as_str() == id);
        find(id.as_str()).or_else(|| find(super::dispatching::asked(id)))
    }

    /// The recurring-job key of its newest request that has one.
    pub(crate) fn recurring_key(&self) -> Option<&Arc<str>> {
        self.requests.iter().rev().find_map(|request| request.recurring_key.as_ref())
    }

    /// When it asked first; `None`: before the daemon's start.
    pub(crate) const fn first_asked(&self) -> Option<Timestamp> {
        self.first
    }

    /// When it last asked.
    pub(crate) const fn asked(&self) -> Asked {
        self.asked
    }

    /// It is of before the daemon's start; `decided`: its last answer, as far as one is kept.
    pub(crate) fn asked_before(&mut self, decided: Option<Timestamp>) {
        self.first = None;
        self.asked = Asked { at: decided.unwrap_or(self.asked.at), before: decided.is_none() };
    }

    /// Notes an allocation; false: it was told before.
    pub(crate) fn allocated(&mut self, container: ContainerId) -> bool {
        note(&mut self.allocated, container)
    }

    /// Notes a container that a node named and no lease waited for there.
    pub(crate) fn appeared_astray(&mut self, container: ContainerId) {
        if !self.allocated.contains(&container) {
            note(&mut self.astray, container);
        }
    }

    /// Whether it was noted so; from now on it is not.
    pub(crate) fn was_astray(&mut self, container: ContainerId) -> bool {
        self.astray.remove(&container)
    }

    /// Notes that a container's task is placed anew; false: it was before.
    pub(crate) fn replaced(&mut self, container: ContainerId) -> bool {
        self.replaced.insert(container)
    }

    /// Notes the id of a request that places tasks anew.
    pub(crate) fn replaces_by(&mut self, id: RequestId) {
        self.replacements.insert(id);
    }

    /// Whether an id was given to a request that places tasks anew.
    pub(crate) fn has_replacement(&self, id: &RequestId) -> bool {
        self.replacements.contains(id)
    }
}

/// Most rows of attempts have no more bytes.
const ROW_BYTES: usize = 512;

/// Rows of attempts: the attempt alone is its secrets, attempt and request id a remembered request.
pub(crate) fn put_secrets(attempt: AttemptId, secrets: &Secrets) -> Op {
    Op::put(Table::Attempts, attempt_key(attempt).build(), row_value(secrets, ROW_BYTES))
}

pub(crate) fn put_request(request: &RememberedRequest) -> Op {
    let key = attempt_key(request.attempt).text(request.id.as_str()).build();
    Op::put(Table::Attempts, key, row_value(&**request, ROW_BYTES))
}

pub(crate) fn delete_request(attempt: AttemptId, request: &RequestId) -> Op {
    Op::delete(Table::Attempts, attempt_key(attempt).text(request.as_str()).build())
}

pub(crate) fn delete_attempt(id: AttemptId, attempt: &Attempt) -> Vec<Op> {
    let requests = attempt.requests.iter().map(|request| delete_request(id, &request.id));
    requests.chain([Op::delete(Table::Attempts, attempt_key(id).build())]).collect()
}

/// What a row's key names: the attempt, and the request unless it is the secrets' row.
pub(crate) fn read_key(key: &[u8]) -> Option<(AttemptId, Option<RequestId>)> {
    let mut parts = key_parts(key)?.into_iter();
    let (Some(KeyPart::Text(attempt)), request, None) = (parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    let request = match request {
        None => None,
        Some(KeyPart::Text(id)) => Some(id.into()),
        Some(KeyPart::Number(_)) => return None,
    };
    Some((attempt.parse().ok()?, request))
}

fn attempt_key(attempt: AttemptId) -> KeyBuilder {
    KeyBuilder::new().text(&attempt.to_string())
}

fn note(containers: &mut BTreeSet<ContainerId>, container: ContainerId) -> bool {
    if containers.len() >= ALLOCATIONS_MAX {
        containers.pop_first(); // YARN counts containers upwards: the first is the oldest
    }
    containers.insert(container)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::ApplicationId;

    #[test]
    fn of_too_many_requests_the_oldest_is_forgotten() {
        let id = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
        let mut attempts = Attempts::default();
        attempts.admit(id, Secrets::of_token(Token("t".into())), Timestamp(1));
        let attempt = attempts.get_mut(id).unwrap();
        let settings = EngineSettings { requests_per_attempt: 2, ..EngineSettings::default() };
        let mut remember =
            |name: &str| attempt.remember(Arc::new(crate::testing::request(name, &[("g", 1)])), &settings);
        assert_eq!((remember("r1"), remember("r2")), (vec![], vec![]), "exactly two");
        assert_eq!(remember("r2"), [], "the same again");
        assert_eq!(remember("r3"), [RequestId::from("r1")]);
        assert_eq!(attempt.requests.len(), 2);
    }

    #[test]
    fn large_requests_of_one_attempt_leave_room_for_those_of_others() {
        let id = |sequence| AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence }, attempt: 1 };
        let mut attempts = Attempts::default();
        for sequence in [1, 2] {
            attempts.admit(id(sequence), Secrets::of_token(Token("t".into())), Timestamp(1));
        }
        let large = |name: &str| {
            let input_paths = vec!["/in".repeat(10_000).into()];
            Arc::new(hintd_model::cluster::HintRequest { input_paths, ..crate::testing::request(name, &[("g", 1)]) })
        };
        let each = memory_size::request(&large("r0"));
        assert!(each > 30_000, "{each}");
        let settings = EngineSettings { requests_bytes_max: 6 * each, ..EngineSettings::default() };
        let first = attempts.get_mut(id(1)).unwrap();
        let gone: Vec<_> = (0..10).flat_map(|n| first.remember(large(&format!("r{n}")), &settings)).collect();
        assert_eq!((first.requests.len(), gone.len()), (3, 7), "half of it, and the oldest go");
        assert_eq!(first.requests[0].id, "r7".into());
        let second = attempts.get_mut(id(2)).unwrap();
        for n in 0..2 {
            second.remember(large(&format!("r{n}")), &settings);
        }
        assert_eq!(second.requests.len(), 1, "half of what is left");
        assert_eq!(
            second.remember(large("r9"), &EngineSettings { requests_bytes_max: each, ..settings.clone() }).len(),
            2
        );
        assert!(second.requests.is_empty(), "where there is no room for one, it is not remembered");
        attempts.remove(id(1));
        let second = attempts.get_mut(id(2)).unwrap();
        for n in 0..3 {
            assert_eq!(
                second.remember(large(&format!("r{n}")), &settings),
                [],
                "those of an attempt that is over make room"
            );
        }
    }
}
