//! Decisions to the wire.

use super::resource::ask_to_wire;
use hintd_client::wire::v1;
use hintd_engine::decision::{
    AgeOf, Blocked, ChainPath, ExclusionNamed, HintRoute, Lack, LearnedFrom, NearMiss, Pending,
};
use hintd_engine::{BaselinePlace, BaselinePlaces, CostLink, CostLinks};
use hintd_engine::{Decision, ExplainedLease, Hint, Mode, Refusal, RoundNote, TermValues, TermsOfWhole};
use hintd_model::units::{Calendar, DecisionId, Timestamp};
use hintd_policy::Ended;

/// The whole answer.
#[must_use]
pub fn hint_set(decision: &Decision) -> v1::HintSet {
    let groups = decision.group_names();
    v1::HintSet {
        // A what-if is remembered nowhere: there is nothing to ask for by an id.
        decision_id: if decision.id.number == 0 { String::new() } else { decision.id.to_string() },
        request_id: decision.request.to_string(),
        snapshot_version: decision.snapshot.0,
        policy: decision.policy.to_string(),
        mode: wire_mode(decision.mode).into(),
        hints: decision.hints.iter().map(|of| hint(of, groups.index(&of.group))).collect(),
        groups: groups.names().map(ToString::to_string).collect(),
        asks: decision.asks.iter().map(ask_to_wire).collect(),
        terms: Some(terms(&decision.terms)),
        baseline: decision.baseline.as_ref().map(terms),
        expected_gain: decision.expected_gain,
        terms_of_whole: decision
            .terms_of_whole
            .map(|TermsOfWhole { containers, earlier }| v1::TermsOfWhole { containers, earlier }),
        round: decision.round.map(|RoundNote { requests, cost, cost_in_turn }| v1::RoundNote {
            requests,
            cost,
            cost_in_turn,
        }),
        ended: ended(decision.ended).into(),
        gap: decision.gap,
        steps: decision.steps,
        exclusions: decision.exclusions.iter().map(exclusion).collect(),
        ages: decision.ages.iter().map(age).collect(),
        degraded: decision.degraded.clone(),
        without_room: decision.without_room,
        next_wave: decision.next_wave,
        elapsed_ms: decision.elapsed.as_secs_f64() * 1e3,
        seed: decision.seed,
        conflicts: decision.conflicts,
        routes: decision.routes.iter().map(route).collect(),
        pending: decision.pending.iter().map(pending).collect(),
        blocked: decision.blocked.iter().map(blocked).collect(),
        plan: decision.plan.as_ref().map(super::plan_note),
        history: history(decision),
        withheld: decision.withheld.map(|withheld| v1::Withheld {
            reason: withheld.reason.as_str().to_owned(),
            hinted_s: withheld.hinted_s,
            default_s: withheld.default_s,
        }),
        links: cost_links(&decision.terms),
        baseline_links: decision.baseline.as_ref().and_then(cost_links),
        unguarded: decision.unguarded.map(|why| why.as_str().to_owned()).unwrap_or_default(),
        unguarded_why: decision.unguarded.map(|why| why.in_words().to_owned()).unwrap_or_default(),
    }
}

/// What stood in for edges that a request does not name, in words; empty where it names some.
fn history(decision: &Decision) -> String {
    const LITTLE: &str = "ApplicationMaster's host and togetherness only";
    let named = decision.mode == Mode::Off || !decision.degraded.iter().any(|token| token.ends_with("_edges"));
    let Some(LearnedFrom { key, runs, last, edges, sources }) = &decision.learnt else {
        if decision.degraded.iter().any(|token| token == "edges_assumed") {
            return "no history: maps that have come are taken to send alike".to_owned();
        }
        return if named { String::new() } else { format!("no history: {LITTLE}") };
    };
    let plural = if *runs == 1 { "run" } else { "runs" };
    let from = format!("edges from {runs} earlier {plural} of {key}, last at {}", utc(*last));
    match (edges, sources) {
        (0, _) => format!("{from}; nothing that sends has come: {LITTLE}"),
        (_, 0) => from,
        (_, sources) => format!("{from}; {sources} containers that send have come"),
    }
}

/// As in `2026-11-22T03:04:05Z`.
fn utc(at: Timestamp) -> String {
    let Calendar { year, month, day, hour, minute, second } = at.calendar(0);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A refusal; `decision`: the id by which it can be explained.
#[must_use]
pub fn refused(refusal: &Refusal, decision: Option<DecisionId>) -> v1::Refused {
    let field = match refusal {
        Refusal::Invalid { field, .. } | Refusal::TooLarge { field, .. } => field.clone(),
        _ => String::new(),
    };
    v1::Refused {
        reason: refusal.token().to_owned(),
        message: refusal.to_string(),
        field,
        blocked: refusal.blocked().iter().map(blocked).collect(),
        decision_id: decision.map(|decision| decision.to_string()).unwrap_or_default(),
        chain: refusal.chain().map(ToString::to_string).unwrap_or_default(),
    }
}

fn chain_path(path: &ChainPath) -> v1::ChainPath {
    v1::ChainPath {
        name: path.name.to_string(),
        stops: path.stops.iter().map(super::stop).collect(),
        rate_bits_per_s: path.rate.0,
        cost: path.cost,
        left_out: path.left_out.iter().map(ToString::to_string).collect(),
    }
}

fn blocked(blocked: &Blocked) -> v1::Blocked {
    let lack = |lack: &Lack| v1::Lack {
        constraint: lack.constraint.to_string(),
        resource: lack.resource.to_string(),
        short: lack.short,
    };
    let near =
        |near: &NearMiss| v1::NearMiss { host: near.host.to_string(), lacks: near.lacks.iter().map(lack).collect() };
    v1::Blocked {
        group: blocked.group.to_string(),
        count: blocked.count,
        constraint: blocked.constraint.to_string(),
        nodes: blocked.nodes,
        bound: blocked.bound,
        nearest: blocked.nearest.iter().map(near).collect(),
    }
}

/// Cost terms; what could not be computed stays absent.
#[must_use]
pub fn terms(values: &TermValues) -> v1::Terms {
    v1::Terms {
        remote_bytes: values.remote_bytes,
        cross_rack_bytes: values.cross_rack_bytes,
        core_hops: values.core_hops,
        worst_link_s: values.worst_link_s,
        balance: values.balance,
        objective: values.objective,
        parts: values.parts.clone(),
    }
}

/// The links that terms are of; `None`: none is used, or known.
fn cost_links(values: &TermValues) -> Option<v1::CostLinks> {
    let CostLinks { busiest, worst } = &values.links;
    let link = |link: &CostLink| v1::CostLink {
        links: link.links.iter().map(ToString::to_string).collect(),
        links_total: link.links_total,
        from: link.from.to_string(),
        to: link.to.to_string(),
        seconds: link.seconds,
    };
    let found = v1::CostLinks { busiest: busiest.as_ref().map(link), worst: worst.as_ref().map(link) };
    (!values.links.is_empty()).then_some(found)
}

/// Where YARN would put the containers by itself.
#[must_use]
pub fn baseline_places(found: &BaselinePlaces) -> v1::BaselinePlaces {
    let place = |place: &BaselinePlace| v1::BaselinePlace {
        group: place.group.to_string(),
        host: place.host.to_string(),
        rack: place.rack.to_string(),
        count: place.count,
    };
    v1::BaselinePlaces {
        places: found.places.iter().map(place).collect(),
        more_containers: found.more_containers,
        more_hosts: found.more_hosts,
    }
}

/// What a queue gets, on the wire.
#[must_use]
pub fn wire_mode(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Off => v1::Mode::Off,
        Mode::Shadow => v1::Mode::Shadow,
        Mode::On => v1::Mode::On,
    }
}

/// What became of leases.
#[must_use]
pub fn lease_states(leases: &[ExplainedLease]) -> Vec<v1::LeaseState> {
    let state = |lease: &ExplainedLease| v1::LeaseState {
        lease_id: lease.id.0,
        host: lease.host.to_string(),
        state: lease.state.to_owned(),
    };
    leases.iter().map(state).collect()
}

fn hint(hint: &Hint, group_index: u32) -> v1::Hint {
    v1::Hint {
        group_index: Some(group_index),
        group: hint.group.to_string(),
        host: hint.host.to_string(),
        count: hint.count,
        fallbacks: hint.fallbacks.iter().map(ToString::to_string).collect(),
        racks: hint.racks.iter().map(ToString::to_string).collect(),
        lease_ids: hint.leases.iter().map(|lease| lease.0).collect(),
        expires_at_ms: hint.expires.map(Timestamp::as_millis),
        expected_wait_ms: hint.expected_wait.map(hintd_model::units::Micros::as_millis),
        confidence: hint.confidence,
        first_index: hint.first_index,
    }
}

fn pending(pending: &Pending) -> v1::Pending {
    v1::Pending {
        group: pending.group.to_string(),
        count: pending.count,
        reason: pending.reason.to_string(),
        expected_wait_ms: pending.expected_wait.map(hintd_model::units::Micros::as_millis),
    }
}

fn route(route: &HintRoute) -> v1::HintRoute {
    v1::HintRoute {
        src: route.src.to_string(),
        dst: route.dst.to_string(),
        vertices: route.vertices.iter().map(ToString::to_string).collect(),
        links: route.links.iter().map(ToString::to_string).collect(),
        task_pairs: route.task_pairs,
        bytes: route.bytes.0,
        installed: route.installed,
        cut: route.cut.iter().map(ToString::to_string).collect(),
        chain: route.chain.as_ref().map(chain_path),
    }
}

fn ended(ended: Ended) -> v1::Ended {
    match ended {
        Ended::Complete => v1::Ended::Complete,
        Ended::Optimal => v1::Ended::Optimal,
        Ended::Budget => v1::Ended::Budget,
        Ended::Deadline => v1::Ended::Deadline,
    }
}

fn exclusion(exclusion: &ExclusionNamed) -> v1::Exclusion {
    v1::Exclusion {
        group: exclusion.group.to_string(),
        reason: exclusion.reason.as_str().to_owned(),
        count: exclusion.count,
        examples: exclusion.examples.iter().map(ToString::to_string).collect(),
    }
}

/// Age of one source.
pub(in crate::server) fn age(age: &AgeOf) -> v1::SourceAge {
    v1::SourceAge {
        source: age.source.as_str().to_owned(),
        age_ms: age.age.map(hintd_model::units::Micros::as_millis),
        stale: age.stale,
    }
}
