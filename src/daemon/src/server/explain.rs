//! Why a decision came out as it did, and what it comes to when it is made again.

use super::convert;
use crate::runtime::{Daemon, UnpackPermit};
use hintd_client::wire::v1;
use hintd_client::wire::v1::outcome::Outcome;
use hintd_engine::records::{PolicyComparison, Record, ReplayResult};
use hintd_engine::{Answer, Decision, Explained, ExplainedLease, Hint, Proof, Refusal};
use hintd_model::solve::nearest;
use hintd_model::units::{DecisionId, LeaseId};
use hintd_policy::Policy;
use prost::Message as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::Response;

/// A replay under another policy ends its search after so long: an operator waits for it.
const SEARCH_MAX: Duration = Duration::from_secs(20);

/// Other hosts that are named for a group's containers.
const ALTERNATIVES: usize = 3;

/// The id of a decision, as callers spell it.
pub(super) fn decision_id(text: &str) -> Result<DecisionId, Refusal> {
    let invalid = |error: hintd_model::units::IdError| Refusal::Invalid {
        field: "decision_id".to_owned(),
        message: error.to_string(),
    };
    text.parse().map_err(invalid)
}

/// A decision that is remembered for repeats of its request, or recorded; a refusal that is recorded. For who shows that
/// it is the attempt's. The response holds the permit of what was unpacked until it is encoded.
pub(super) async fn explain(
    daemon: &Daemon,
    decision: &str,
    proof: &Proof,
) -> Result<Response<v1::ExplainResponse>, Refusal> {
    let decision = decision_id(decision)?;
    let record = daemon.record(decision).await;
    let (explained, permit) = match daemon.explain(decision).await {
        Ok(found) => found,
        Err(Refusal::Unknown { .. }) => {
            let record = record.clone().map_err(|refusal| not_remembered(daemon, refusal))?;
            match record.answered() {
                Ok(answer) => (from_record(answer), daemon.explanation_permit().await?),
                Err(refusal) => {
                    // It gave no token: the attempt has one where another request of it was answered.
                    daemon.may_tell(record.request().attempt, proof.clone()).await?;
                    let age_ms = daemon.clock().now().since(record.at()).as_millis();
                    return Ok(Response::new(v1::ExplainResponse { age_ms, ..refused(&record, refusal) }));
                }
            }
        }
        Err(refusal) => return Err(refusal),
    };
    explained.answer.may_be_seen_by(proof, daemon.settings().engine.legacy_clients)?;
    let (performance, permit) = performance(daemon, record.as_ref().ok(), permit).await?;
    let decision = &explained.answer.decision;
    let undelivered = match &record {
        Ok(record) => record.undelivered(),
        Err(_) => daemon.undelivered(decision.id),
    };
    let followed = daemon.followed(vec![decision.id]).await?.pop().flatten().map(convert::followed);
    let moves = daemon.moves_told(decision.attempt).await?.iter().map(convert::proposed_move).collect();
    let mut response = Response::new(v1::ExplainResponse {
        decision: Some(convert::hint_set(decision)),
        application_id: decision.attempt.application.to_string(),
        attempt: decision.attempt.attempt,
        queue: decision.queue.to_string(),
        decided_at_ms: decision.at.as_millis(),
        leases: convert::lease_states(&explained.leases),
        refused: None,
        recorded: record.is_ok(),
        late: undelivered.map(|why| why.as_str().to_owned()).unwrap_or_default(),
        asked_for: record.as_ref().map(|record| asked_for(record)).unwrap_or_default(),
        guard_margin: record.as_ref().ok().and_then(|record| record.guard_margin()),
        resource_manager_asked: daemon.servers().setup().seen().is_some(),
        params_toml: record.map(|record| record.policy().1.params_toml()).unwrap_or_default(),
        outcome: explained.outcome.as_ref().map(|outcome| convert::outcome(outcome, &daemon.generation().snapshot)),
        input_homes: convert::homed_groups(daemon.homed_groups(decision.attempt)),
        performance,
        moves,
        baseline_places: decision.baseline_places.as_deref().map(convert::baseline_places),
        age_ms: daemon.clock().now().since(decision.at).as_millis(),
        followed,
    });
    response.extensions_mut().insert(permit);
    Ok(response)
}

fn asked_for(record: &Record) -> Vec<v1::AskedGroup> {
    let groups = record.request().groups.iter();
    groups.map(|group| v1::AskedGroup { group: group.name.to_string(), count: group.count }).collect()
}

/// How well a recorded decision's containers were predicted to perform. Compiling its problem takes a moment on a large
/// cluster, so one at a time does.
async fn performance(
    daemon: &Daemon,
    record: Option<&Arc<Record>>,
    permit: UnpackPermit,
) -> Result<(Option<v1::PredictedPerformance>, UnpackPermit), Refusal> {
    let predicts =
        |record: &&Arc<Record>| record.policy().1.as_place().is_some_and(|place| place.as_predict().is_some());
    let Some(record) = record.filter(predicts).cloned() else { return Ok((None, permit)) };
    let generation = daemon.generation();
    let predict = move || record.predict(Some(&generation.snapshot), ALTERNATIVES).map(convert::performance);
    permit.unpack(predict).await
}

/// Of a decision that is in neither place.
fn not_remembered(daemon: &Daemon, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::NotRecorded { decision, kept } if daemon.had(decision) => {
            Refusal::NotRecorded { decision, kept: format!("{kept}; nor is an answer of this id remembered") }
        }
        other => other,
    }
}

/// What is left of an answer that only records remember: its leases have long ended.
fn from_record(answer: &Arc<Answer>) -> Explained {
    let hints = answer.decision.hints.iter();
    let ended = |hint: &Hint| {
        let of = |&id: &LeaseId| ExplainedLease { id, host: hint.host.clone(), state: "ended" };
        hint.leases.iter().map(of).collect::<Vec<_>>()
    };
    let leases = hints.flat_map(ended).collect();
    Explained { answer: Arc::clone(answer), leases, outcome: None }
}

fn refused(record: &Record, refusal: &Refusal) -> v1::ExplainResponse {
    let (request, (policy, params)) = (record.request(), record.policy());
    let decision = v1::HintSet {
        decision_id: record.decision().to_string(),
        request_id: request.id.to_string(),
        policy: policy.to_string(),
        ..v1::HintSet::default()
    };
    v1::ExplainResponse {
        decision: Some(decision),
        application_id: request.attempt.application.to_string(),
        attempt: request.attempt.attempt,
        queue: request.queue.to_string(),
        decided_at_ms: record.at().as_millis(),
        leases: Vec::new(),
        refused: Some(convert::refused(refusal, Some(record.decision()))),
        recorded: true,
        // Where no policy was chosen there are none.
        params_toml: if policy.is_empty() { String::new() } else { params.params_toml() },
        asked_for: asked_for(record),
        ..v1::ExplainResponse::default()
    }
}

/// The work of making a recorded decision again, by `policy` as well where one is named. For a thread that serves no sockets;
/// it ends its searches once who asked is gone.
///
/// # Errors
/// [`Refusal::Invalid`] for what is no decision's id, or that of a request that was refused for its deadline,
/// [`Refusal::Unknown`] for a policy, [`Refusal::NotRecorded`].
pub(super) async fn replay_of(
    daemon: &Daemon,
    decision: &str,
    policy: String,
) -> Result<impl FnOnce(&mut dyn FnMut() -> bool) -> Result<v1::ReplayResponse, Refusal> + Send + 'static, Refusal> {
    let (daemon, settings) = (daemon.clone(), daemon.settings());
    let decision = decision_id(decision)?;
    if !policy.is_empty() && !settings.policies.built.contains_key(&*policy) {
        let near = nearest(&policy, settings.policies.built.keys().copied()).map(str::to_owned);
        return Err(Refusal::Unknown { what: "policy", name: policy, nearest: near });
    }
    let record = daemon.record(decision).await?;
    if let Some(why) = record.why_not_again() {
        let message = format!("{why}: there is nothing to make again; `hintctl explain` shows it");
        return Err(Refusal::Invalid { field: "decision_id".to_owned(), message });
    }
    Ok(move |gone: &mut dyn FnMut() -> bool| {
        let other = settings.policies.built.get(&*policy);
        other.into_iter().for_each(|policy| policy.prepare()); // this thread is for what takes long
        replay(&daemon, &record, other.map(|other| (&*policy, other)), gone)
    })
}

/// Makes a decision again; with `other`, under that policy as well. Takes as long as the searches do, unless who asked is `gone`.
fn replay(
    daemon: &Daemon,
    record: &Record,
    other: Option<(&str, &Arc<dyn Policy>)>,
    gone: &mut dyn FnMut() -> bool,
) -> Result<v1::ReplayResponse, Refusal> {
    let generation = daemon.generation();
    let live = Some(&*generation.snapshot);
    let id = record.decision();
    let ReplayResult { outcome: made, same, differences } = record.replay_until(live, gone);
    let recorded = outcome(record.answered().map(|answer| &answer.decision), id);
    let replayed = outcome(made.as_ref(), id);
    let difference = |found: hintd_engine::records::Difference| v1::Difference {
        field: found.field,
        then: found.then,
        now: found.now,
    };
    let mut response = v1::ReplayResponse {
        // What is compared is what goes over the wire, too.
        same: same && recorded.encode_to_vec() == replayed.encode_to_vec(),
        recorded: Some(recorded),
        replayed: Some(replayed),
        differences: differences.into_iter().map(difference).collect(),
        decided_at_ms: record.at().as_millis(),
        params_toml: record.policy().1.params_toml(),
        ..v1::ReplayResponse::default()
    };
    if let Some((name, policy)) = other {
        let until = Instant::now() + SEARCH_MAX;
        let PolicyComparison { other, terms, rated } =
            record.compare_with(name, policy, live, &mut || gone() || Instant::now() >= until)?;
        response.other = Some(outcome(other.as_ref(), id));
        response.other_params_toml = policy.params_toml();
        if let Some([recorded, other]) = terms {
            (response.recorded_terms, response.other_terms) =
                (Some(convert::terms(&recorded)), Some(convert::terms(&other)));
        }
        let rate = |rated: hintd_engine::records::ObjectiveComparison| v1::Rated {
            policy: rated.policy.to_string(),
            recorded: rated.recorded,
            other: rated.other,
            gain: rated.gain,
        };
        response.rated = rated.into_iter().map(rate).collect();
    }
    Ok(response)
}

fn outcome(made: Result<&Decision, &Refusal>, id: DecisionId) -> v1::Outcome {
    let outcome = match made {
        Ok(decision) => Outcome::Hints(convert::hint_set(decision)),
        Err(refusal) => Outcome::Refused(convert::refused(refusal, Some(id))),
    };
    v1::Outcome { outcome: Some(outcome) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::RequestOptions;
    use crate::runtime::tests::{running, shuffle};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_that_was_refused_for_its_deadline_is_listed_and_explained_and_not_made_again() {
        let (_folder, running) = running().await;
        let daemon = &running.daemon;
        let (decision, now) = (daemon.next_decision(), Instant::now());
        let request = shuffle(1, false).into();
        let refused = daemon.request(request, 1, decision, now, RequestOptions::default()).await.unwrap_err();
        assert!(refused.recorded, "{refused:?}");
        let listed = super::super::listing::decisions(daemon, v1::ListDecisionsRequest::default()).await.unwrap()();
        let shown: Vec<_> =
            listed.decisions.iter().map(|row| (&*row.decision_id, &*row.outcome, &*row.reason)).collect();
        let id = decision.to_string();
        assert_eq!(shown, [(&*id, "refused", "deadline")]);
        let of_another = v1::ListDecisionsRequest { attempt: 9, ..v1::ListDecisionsRequest::default() };
        let of_another = super::super::listing::decisions(daemon, of_another).await.unwrap()();
        assert_eq!((of_another.decisions.len(), of_another.total), (0, 0), "it is of another attempt");
        let asked = v1::ListApplicationsRequest::default();
        let applications = super::super::listing::applications(daemon, asked).await.unwrap()().applications;
        let shown: Vec<_> =
            applications.iter().map(|row| (&*row.refused, row.refused_requests, row.requests)).collect();
        assert_eq!(shown, [("deadline", 1, 0)], "no attempt of it is held, for nothing of it was answered");
        let explained = explain(daemon, &id, &Proof::Trusted).await.unwrap().into_inner();
        assert_eq!((explained.recorded, &*explained.refused.unwrap().reason), (true, "deadline"));
        let Err(replayed) = replay_of(daemon, &id, String::new()).await else {
            panic!("there is nothing to make again")
        };
        assert!(replayed.to_string().contains("passed before there was an answer"), "{replayed}");
        running.shutdown().await.unwrap();
    }
}
