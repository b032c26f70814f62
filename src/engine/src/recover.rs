//! An engine from the rows of its journal.

use super::answer::Answer;
use super::answers::Answers;
use super::attempts::{self, Attempts, read_key};
use super::decision::RememberedRequest;
use super::effects::Effects;
use super::engine::Engine;
use super::history::{History, JobHistory};
use super::ids::Ids;
use super::journal::{KeyPart, Op, Table, key_parts, text_key};
use super::lease::{Lease, LeaseRow};
use super::ledger::Ledger;
use super::plans::{Plans, RunTracker};
use super::proof::Secrets;
use super::results::{RecoverError, RecoveredCounts, Rows};
use super::settings::EngineSettings;
use super::worth::book::Worth;
use hintd_model::cluster::{Model, SizeRules};
use hintd_model::units::{AttemptId, LeaseId, RequestId, Timestamp};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// Where the journal keeps the second of the last start.
const START_KEY: &str = "engine_start";

impl Engine {
    /// An engine from the rows of its journal; none of them: an empty one. Leases whose time has passed are dropped.
    ///
    /// # Errors
    /// [`RecoverError`] for a row that can't be read.
    pub fn new(
        settings: EngineSettings,
        rules: SizeRules,
        rows: Rows,
        now: Timestamp,
    ) -> Result<(Self, RecoveredCounts), RecoverError> {
        let chains = Arc::clone(&settings.chains);
        let mut engine = Self::empty(EngineSettings { chains: Arc::default(), ..settings }, rules, now);
        engine.begin_with(chains, now).map_err(|error| RecoverError {
            table: "configuration",
            key: "chains".to_owned(),
            message: error.to_string(),
        })?;
        let counts = engine.recovery(now).recover(&rows)?;
        engine.begin(now);
        Ok((engine, counts))
    }
}

/// Reads rows of the journal back. Writes what the journal keeps (leases, answers, attempts, history, plans, runs, completion times), the ids
/// that go on from there, and the model's names for hosts; nothing follows from any of it yet.
pub(crate) struct Recovery<'e> {
    pub(crate) model: &'e mut Model,
    pub(crate) ids: &'e mut Ids,
    pub(crate) ledger: &'e mut Ledger,
    pub(crate) answers: &'e mut Answers,
    pub(crate) attempts: &'e mut Attempts,
    pub(crate) history: &'e mut History,
    pub(crate) plans: &'e mut Plans,
    pub(crate) run_tracker: &'e mut RunTracker,
    pub(crate) worth: &'e mut Worth,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) effects: &'e mut Effects,
    pub(crate) counts: RecoveredCounts,
    pub(crate) now: Timestamp,
}

/// Key and value.
type Row = (Vec<u8>, Vec<u8>);

impl Recovery<'_> {
    fn recover(mut self, rows: &Rows) -> Result<RecoveredCounts, RecoverError> {
        let of = |table| rows.get(&table).map(Vec::as_slice).unwrap_or_default();
        self.begin_ids(of(Table::Meta))?;
        self.recover_leases(of(Table::Leases))?;
        self.recover_answers(of(Table::Answers))?;
        self.recover_attempts(of(Table::Attempts))?;
        for (key, value) in of(Table::History) {
            let parts = key_parts(key);
            let Some([KeyPart::Text(job)]) = parts.as_deref() else {
                return Err(unreadable(Table::History, key, "the key is not a text"));
            };
            self.history.restore(job.as_str().into(), json::<JobHistory>(Table::History, key, value)?);
            self.counts.history += 1;
        }
        for (key, value) in of(Table::Plans) {
            self.plans.restore(key, value).map_err(|error| unreadable(Table::Plans, key, error))?;
        }
        self.counts.plans = self.plans.len();
        for (key, value) in of(Table::Runs) {
            self.run_tracker.restore(key, value).map_err(|error| unreadable(Table::Runs, key, error))?;
        }
        for (key, value) in of(Table::Worth) {
            self.worth.restore(key, value).map_err(|error| unreadable(Table::Worth, key, error))?;
        }
        self.recover_runs();
        Ok(self.counts)
    }

    /// Ids are the second of the start above a counter, so that those of one process never meet another's. Of
    /// two starts within a second, or under a clock that went back, the later takes a second of its own.
    fn begin_ids(&mut self, rows: &[Row]) -> Result<(), RecoverError> {
        let key = text_key(START_KEY);
        let last = rows.iter().find(|(known, _)| *known == key);
        let last = last.map(|(_, value)| json::<u32>(Table::Meta, &key, value)).transpose()?;
        let second = u32::try_from(self.now.as_millis() / 1_000).unwrap_or(u32::MAX);
        let start = last.map_or(second, |last| second.max(last.saturating_add(1)));
        self.ids.begin(start);
        self.effects.journal.push(Op::put(Table::Meta, key, start.to_string()));
        Ok(())
    }

    /// Runs that were under way began with the first answer of their attempt that is still kept.
    fn recover_runs(&mut self) {
        for (attempt, known) in self.attempts.iter().filter(|(_, known)| known.recurring_key().is_some()) {
            let decided = known.requests.iter().filter_map(|request| self.answers.decided(&request.id)).min();
            if let Some(at) = decided {
                self.run_tracker.resumed(attempt, at);
            }
        }
    }

    fn recover_leases(&mut self, rows: &[Row]) -> Result<(), RecoverError> {
        for (key, value) in rows {
            let Some(&[KeyPart::Number(id)]) = key_parts(key).as_deref() else {
                return Err(unreadable(Table::Leases, key, "the key is not a number"));
            };
            let mut row: LeaseRow = json(Table::Leases, key, value)?;
            self.ids.gave_lease(LeaseId(id));
            if row.expires <= self.now {
                self.effects.journal.push(Lease::delete(LeaseId(id)));
                self.counts.expired += 1;
                continue;
            }
            let size = self.model.intern_resource(&row.size).map_err(|error| unreadable(Table::Leases, key, error))?;
            let node = self.model.intern_host(&row.host);
            let host = row.host.clone();
            // Under a clock that went back, what was promised for seconds would hold for as long as it went back.
            let latest = self.now.plus(self.settings.lasts(row.confirmed.is_some()));
            let late = row.expires > latest;
            row.expires = row.expires.min(latest);
            let lease = row.into_lease(LeaseId(id), node, size);
            if late {
                self.effects.journal.push(lease.put(&host, self.model.kinds()));
            }
            self.ledger.insert(lease);
            self.counts.leases += 1;
        }
        Ok(())
    }

    fn recover_answers(&mut self, rows: &[Row]) -> Result<(), RecoverError> {
        let mut live: BTreeMap<RequestId, BTreeSet<LeaseId>> = BTreeMap::new();
        for lease in self.ledger.iter() {
            live.entry(lease.request.clone()).or_default().insert(lease.id);
        }
        for (key, value) in rows {
            let answer: Answer = json(Table::Answers, key, value)?;
            self.ids.gave_decision(answer.decision.id);
            answer.leases().for_each(|lease| self.ids.gave_lease(lease));
            let live = live.remove(&answer.decision.request).unwrap_or_default();
            // When the last lease ended is not written: kept for the whole time from now, retries of a daemon's
            // restart included.
            self.answers.insert((&answer, &answer.row()), live, self.now, self.settings.answers_keep);
            self.counts.answers += 1;
        }
        Ok(())
    }

    fn recover_attempts(&mut self, rows: &[Row]) -> Result<(), RecoverError> {
        let mut requests: BTreeMap<AttemptId, Vec<(Timestamp, RememberedRequest)>> = BTreeMap::new();
        for (key, value) in rows {
            let (attempt, request) =
                read_key(key).ok_or_else(|| unreadable(Table::Attempts, key, "the key is not an attempt's"))?;
            match request {
                None => {
                    self.attempts.admit(attempt, json::<Secrets>(Table::Attempts, key, value)?, self.now);
                    let known = self.attempts.get_mut(attempt).expect("it was just admitted");
                    known.write();
                    known.asked_before(None);
                    self.counts.attempts += 1;
                }
                Some(id) => {
                    let mut request: RememberedRequest = json(Table::Attempts, key, value)?;
                    if !request.asks.is_empty() {
                        request = Arc::new(request.without_asks());
                    }
                    // Rows come by id; what counts is the order of the answers, as far as these are kept.
                    let decided = self.answers.decided(&id).unwrap_or_default();
                    requests.entry(attempt).or_default().push((decided, request));
                }
            }
        }
        for (attempt, mut requests) in requests {
            requests.sort_by_key(|(decided, _)| *decided);
            let last = requests.last().map(|(decided, _)| *decided).filter(|decided| *decided > Timestamp::default());
            if let (Some(known), Some(last)) = (self.attempts.get_mut(attempt), last) {
                known.asked_before(Some(last));
            }
            for (_, request) in requests {
                // What finds no place would come again with every start.
                let gone = match self.attempts.get_mut(attempt) {
                    Some(known) => known.remember(request, self.settings),
                    None => vec![request.id.clone()],
                };
                let rows = gone.iter().map(|id| attempts::delete_request(attempt, id));
                self.effects.journal.extend(rows);
            }
        }
        Ok(())
    }
}

fn json<T: DeserializeOwned>(table: Table, key: &[u8], value: &[u8]) -> Result<T, RecoverError> {
    serde_json::from_slice(value).map_err(|error| unreadable(table, key, error))
}

fn unreadable(table: Table, key: &[u8], message: impl std::fmt::Display) -> RecoverError {
    let mut hex = String::new();
    for byte in key {
        write!(hex, "{byte:02x}").expect("a text takes what is written to it");
    }
    RecoverError { table: table.name(), key: hex, message: message.to_string() }
}
