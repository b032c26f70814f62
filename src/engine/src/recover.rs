//! An engine from the rows of its journal.

use super::answers::{Answer, Answers};
use super::arrivals::Arrivals;
use super::attempts::{self, Attempts, Token, read_key};
use super::decision::RememberedRequest;
use super::effects::Effects;
use super::engine::{Engine, RecoverError, RecoveredCounts, Rows};
use super::flows::Flows;
use super::generation::Generation;
use super::history::{History, JobHistory};
use super::journal::{KeyPart, Op, Table, key_parts, text_key};
use super::lease::{Lease, LeaseRow};
use super::ledger::Ledger;
use super::plans::RunBook;
use super::rebalance::Rebalancing;
use super::release::Expected;
use super::routes::Watchers;
use super::settings::EngineSettings;
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
        let of = |table| rows.get(&table).map(Vec::as_slice).unwrap_or_default();
        let chains = Arc::clone(&settings.chains);
        let mut engine = Self::empty(EngineSettings { chains: Arc::default(), ..settings }, rules, now);
        engine.declare(&chains, now).map_err(|error| RecoverError {
            table: "configuration",
            key: "chains".to_owned(),
            message: error.to_string(),
        })?;
        engine.settings.chains = chains;
        engine.begin_ids(of(Table::Meta), now)?;
        let mut counts = RecoveredCounts::default();
        engine.recover_leases(of(Table::Leases), &mut counts, now)?;
        engine.recover_answers(of(Table::Answers), &mut counts, now)?;
        engine.recover_attempts(of(Table::Attempts), &mut counts, now)?;
        for (key, value) in of(Table::History) {
            let parts = key_parts(key);
            let Some([KeyPart::Text(job)]) = parts.as_deref() else {
                return Err(unreadable(Table::History, key, "the key is not a text"));
            };
            engine.history.restore(job.as_str().into(), json::<JobHistory>(Table::History, key, value)?);
            counts.history += 1;
        }
        for (key, value) in of(Table::Plans) {
            engine.plans.restore(key, value).map_err(|error| unreadable(Table::Plans, key, error))?;
        }
        counts.plans = engine.plans.len();
        for (key, value) in of(Table::Runs) {
            engine.run_book.restore(key, value).map_err(|error| unreadable(Table::Runs, key, error))?;
        }
        engine.recover_runs();
        engine.tell_plan(now);
        engine.recover_flows();
        engine.keep_bounds(now);
        engine.settle(now);
        engine.publish(now);
        Ok((engine, counts))
    }

    fn empty(settings: EngineSettings, rules: SizeRules, now: Timestamp) -> Self {
        let mut model = Model::new(rules);
        let snapshot = model.publish(now);
        let generation = Generation {
            number: 0,
            snapshot: Arc::clone(&snapshot),
            leases: Default::default(),
            held: Default::default(),
            arrived: Default::default(),
            history: Default::default(),
            releases: Default::default(),
            plan: None,
            flows: Default::default(),
        };
        Self {
            settings,
            start: now,
            model,
            snapshot,
            pending: Vec::new(),
            ledger: Ledger::default(),
            answers: Answers::default(),
            attempts: Attempts::default(),
            history: History::default(),
            arrivals: Arrivals::default(),
            expected: Expected::default(),
            routes: Watchers::default(),
            flows: Flows::default(),
            circuits: Default::default(),
            dispatching: Default::default(),
            plans: Default::default(),
            run_book: RunBook::default(),
            planned_racks: Default::default(),
            plans_looked_at: now,
            adherence: Default::default(),
            rebalancing: Rebalancing::new(now),
            flows_looked_at: now,
            reported: Vec::new(),
            naming: Vec::new(),
            effects: Effects::default(),
            next_decision: 1,
            next_lease: 1,
            generation: Arc::new(generation),
            changed: true,
            history_written: now,
        }
    }

    /// Ids are the second of the start above a counter, so that those of one process never meet another's. Of
    /// two starts within a second, or under a clock that went back, the later takes a second of its own.
    fn begin_ids(&mut self, rows: &[(Vec<u8>, Vec<u8>)], now: Timestamp) -> Result<(), RecoverError> {
        let key = text_key(START_KEY);
        let last = rows.iter().find(|(known, _)| *known == key);
        let last = last.map(|(_, value)| json::<u32>(Table::Meta, &key, value)).transpose()?;
        let second = u32::try_from(now.as_millis() / 1_000).unwrap_or(u32::MAX);
        let start = last.map_or(second, |last| second.max(last.saturating_add(1)));
        self.next_decision = u64::from(start) << 32 | 1;
        self.next_lease = self.next_decision;
        self.effects.journal.push(Op::put(Table::Meta, key, start.to_string()));
        Ok(())
    }

    /// Runs that were under way began with the first answer of their attempt that is still kept.
    fn recover_runs(&mut self) {
        for (attempt, known) in self.attempts.iter().filter(|(_, known)| known.recurring_key().is_some()) {
            let decided = known.requests.iter().filter_map(|request| self.answers.decided(&request.id)).min();
            if let Some(at) = decided {
                self.run_book.resumed(attempt, at);
            }
        }
    }

    fn recover_leases(
        &mut self,
        rows: &[(Vec<u8>, Vec<u8>)],
        counts: &mut RecoveredCounts,
        now: Timestamp,
    ) -> Result<(), RecoverError> {
        for (key, value) in rows {
            let Some(&[KeyPart::Number(id)]) = key_parts(key).as_deref() else {
                return Err(unreadable(Table::Leases, key, "the key is not a number"));
            };
            let mut row: LeaseRow = json(Table::Leases, key, value)?;
            self.next_lease = self.next_lease.max(id.saturating_add(1));
            if row.expires <= now {
                self.effects.journal.push(Lease::delete(LeaseId(id)));
                counts.expired += 1;
                continue;
            }
            let size = self.model.intern_resource(&row.size).map_err(|error| unreadable(Table::Leases, key, error))?;
            let node = self.model.intern_host(&row.host);
            let host = row.host.clone();
            // Under a clock that went back, what was promised for seconds would hold for as long as it went back.
            let latest = now.plus(self.settings.lasts(row.confirmed.is_some()));
            let late = row.expires > latest;
            row.expires = row.expires.min(latest);
            let lease = row.into_lease(LeaseId(id), node, size);
            if late {
                self.effects.journal.push(lease.put(&host, self.model.kinds()));
            }
            self.ledger.insert(lease);
            counts.leases += 1;
        }
        Ok(())
    }

    fn recover_answers(
        &mut self,
        rows: &[(Vec<u8>, Vec<u8>)],
        counts: &mut RecoveredCounts,
        now: Timestamp,
    ) -> Result<(), RecoverError> {
        let mut live: BTreeMap<RequestId, BTreeSet<LeaseId>> = BTreeMap::new();
        for lease in self.ledger.iter() {
            live.entry(lease.request.clone()).or_default().insert(lease.id);
        }
        for (key, value) in rows {
            let answer: Answer = json(Table::Answers, key, value)?;
            self.next_decision = self.next_decision.max(answer.decision.id.0.saturating_add(1));
            self.next_lease = answer.leases().map(|lease| lease.0.saturating_add(1)).fold(self.next_lease, u64::max);
            let live = live.remove(&answer.decision.request).unwrap_or_default();
            // When the last lease ended is not written: kept for the whole time from now, retries of a daemon's
            // restart included.
            self.answers.insert(&answer, live, now, self.settings.answers_keep);
            counts.answers += 1;
        }
        Ok(())
    }

    fn recover_attempts(
        &mut self,
        rows: &[(Vec<u8>, Vec<u8>)],
        counts: &mut RecoveredCounts,
        now: Timestamp,
    ) -> Result<(), RecoverError> {
        let mut requests: BTreeMap<AttemptId, Vec<(Timestamp, RememberedRequest)>> = BTreeMap::new();
        for (key, value) in rows {
            let (attempt, request) =
                read_key(key).ok_or_else(|| unreadable(Table::Attempts, key, "the key is not an attempt's"))?;
            match request {
                None => {
                    self.attempts.token(attempt, json::<Token>(Table::Attempts, key, value)?, now);
                    self.attempts.get_mut(attempt).expect("its token was just set").write();
                    counts.attempts += 1;
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
            for (_, request) in requests {
                // What finds no place would come again with every start.
                let gone = match self.attempts.get_mut(attempt) {
                    Some(known) => known.remember(request, self.settings.requests_per_attempt),
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
