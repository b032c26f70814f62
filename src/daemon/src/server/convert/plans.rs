//! Plans of recurring jobs, for operators, on answers, and for whoever writes data.

use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_engine::plans::recurrence_counts;
use hintd_engine::plans::replicas::{Replica, ReplicaPlan, ReplicaRequest};
use hintd_engine::prediction::{Errors, KeyForecast};
use hintd_engine::{PlanNote, PlanView};
use hintd_model::cluster::dataset::normal;
use hintd_model::units::{HostName, Micros, RackPath, Timestamp};
use hintd_policy::plan::Objective;

/// A kept plan.
#[must_use]
pub(in crate::server) fn plan_view(view: &PlanView, now: Timestamp) -> v1::PlanView {
    let (kept, plan) = (&view.kept, &view.kept.plan);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let state = match (view.in_force_since.is_some(), view.expired) {
        (true, _) => "active",
        (false, true) => "expired",
        (false, false) => "kept",
    };
    let objective = match plan.objective {
        Objective::Batch => "batch",
        Objective::Online => "online",
    };
    v1::PlanView {
        name: kept.name.to_string(),
        state: state.to_owned(),
        expired: view.expired,
        before: view.before,
        origin: kept.origin.to_string(),
        policy: plan.policy.to_string(),
        objective: objective.to_owned(),
        jobs: count(plan.jobs.len()),
        heavy: count(plan.jobs.iter().filter(|job| job.heavy).count()),
        racks: count(plan.racks.len()),
        made_ms: plan.made.as_millis(),
        from_ms: plan.from.as_millis(),
        until_ms: plan.until.as_millis(),
        kept_ms: kept.kept_at.as_millis(),
        active_since_ms: view.in_force_since.map(Timestamp::as_millis),
        age_ms: now.since(plan.made).as_millis(),
        left_ms: plan.until.since(now).as_millis(),
        makespan_s: plan.makespan().as_secs_f64(),
        mean_completion_s: plan.mean_completion().as_secs_f64(),
        prediction_error: plan.assumptions.prediction_error,
        warnings: kept.warnings.clone(),
        followed: view.followed.iter().map(followed).collect(),
    }
}

fn followed((policy, counts): &(std::sync::Arc<str>, hintd_policy::plan::PlanCounts)) -> v1::PlanFollowed {
    v1::PlanFollowed {
        policy: policy.to_string(),
        followed: counts.followed,
        missed: counts.missed,
        expected: counts.expected,
        unplanned: counts.unplanned,
        released: counts.released,
        deviating: counts.deviating,
    }
}

/// How hints stand to the plan in force.
#[must_use]
pub(super) fn plan_note(note: &PlanNote) -> v1::PlanNote {
    v1::PlanNote {
        plan: note.plan.to_string(),
        job: note.job.as_ref().map(ToString::to_string).unwrap_or_default(),
        as_planned: note.as_planned,
        elsewhere: note.elsewhere,
        deviations: note.deviations.iter().map(|deviation| deviation.as_str().to_owned()).collect(),
    }
}

/// HDFS's own bound (`dfs.replication.max`) is 512; nobody means more than this.
const REPLICATION_MAX: u32 = 64;
/// Blocks that one call asks for: a file of 1.2 TiB.
const BLOCKS_MAX: u32 = 10_000;
/// Bytes of a path; HDFS's bound is 8,000 letters.
const PATH_BYTES: usize = 32_000;
/// Bytes of a recurring job's key: names of jobs are shorter.
const KEY_BYTES: usize = 4_096;

/// What is to be written.
pub(in crate::server) fn replicas_ask(wire: &v1::ReplicasRequest) -> Result<ReplicaRequest, Refusal> {
    let invalid = |field: &str, message: String| Err(Refusal::Invalid { field: field.to_owned(), message });
    let v1::ReplicasRequest { path, recurring_job_key, replication, blocks, seed } = wire;
    if path.trim().is_empty() || path.len() > PATH_BYTES {
        return invalid("path", format!("{} bytes, not from 1 to {PATH_BYTES}", path.len()));
    }
    if recurring_job_key.len() > KEY_BYTES {
        return invalid("recurring_job_key", format!("{} bytes, more than {KEY_BYTES}", recurring_job_key.len()));
    }
    if *replication > REPLICATION_MAX {
        return invalid("replication", format!("{replication} is more than {REPLICATION_MAX}"));
    }
    if *blocks > BLOCKS_MAX {
        return invalid("blocks", format!("{blocks} is more than {BLOCKS_MAX}"));
    }
    let replication = if *replication == 0 { 3 } else { *replication };
    Ok(ReplicaRequest {
        path: normal(path).into(),
        reader: (!recurring_job_key.is_empty()).then(|| recurring_job_key.as_str().into()),
        replication: u8::try_from(replication).expect("it is at most 64"),
        blocks: (*blocks).max(1),
        seed: *seed,
    })
}

/// A rack, and nodes of it.
pub(super) fn rack_hosts((rack, hosts): &(RackPath, Vec<HostName>)) -> v1::RackHosts {
    v1::RackHosts { rack: rack.to_string(), hosts: hosts.iter().map(ToString::to_string).collect() }
}

/// Where it should go.
#[must_use]
pub(in crate::server) fn replicas_found(found: &ReplicaPlan) -> v1::ReplicasResponse {
    let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or_default().to_owned();
    let replica = |replica: &Replica| match &replica.place {
        Some((rack, host)) => v1::ReplicaAdvice { rack: rack.to_string(), host: host.to_string() },
        None => v1::ReplicaAdvice::default(),
    };
    let block = |block: &Vec<Replica>| v1::BlockAdvice { replicas: block.iter().map(replica).collect() };
    v1::ReplicasResponse {
        blocks: found.blocks.iter().map(block).collect(),
        racks: found.racks.iter().map(rack_hosts).collect(),
        plan: name(&found.plan),
        reader: name(&found.reader),
        job: found.job.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: found.reason.as_str().to_owned(),
    }
}

/// Horizon and objective, where they are given.
pub(in crate::server) fn make_ask(wire: &v1::MakePlanRequest) -> Result<(Option<Micros>, Option<Objective>), Refusal> {
    let invalid = |field: &str, message: String| Err(Refusal::Invalid { field: field.to_owned(), message });
    let objective = match wire.objective.as_str() {
        "" => None,
        "batch" => Some(Objective::Batch),
        "online" => Some(Objective::Online),
        other => return invalid("objective", format!("\"{other}\" is neither batch nor online")),
    };
    if wire.horizon_ms > HORIZON_MAX_MS {
        return invalid("horizon_ms", format!("{} is more than {HORIZON_MAX_MS}, 31 days", wire.horizon_ms));
    }
    Ok(((wire.horizon_ms > 0).then(|| Micros::from_millis(wire.horizon_ms)), objective))
}

/// As the configuration's.
const HORIZON_MAX_MS: u64 = 31 * 86_400_000;

/// Keys that an answer names.
const KEYS_MAX: usize = 1_000;

/// What a plan rests on: keys of which runs are known, and how far predictions of earlier runs were off.
#[must_use]
pub fn plan_forecast(keys: &[KeyForecast], errors: &Errors) -> v1::PlanForecast {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let [recurring, too_few, unsteady] = recurrence_counts(keys).map(count);
    let mut keys: Vec<&KeyForecast> = keys.iter().collect();
    keys.sort_by(|a, b| b.errors.mean.total_cmp(&a.errors.mean).then_with(|| a.key.cmp(&b.key)));
    let key = |found: &KeyForecast| v1::KeyForecast {
        key: found.key.to_string(),
        runs: count(found.runs),
        standing: found.status.as_str().to_owned(),
        predicted_runs: count(found.errors.runs),
        mean_error: found.errors.mean,
        median_error: found.errors.median,
    };
    v1::PlanForecast {
        recurring,
        too_few,
        unsteady,
        predicted_runs: count(errors.runs),
        mean_error: errors.mean,
        median_error: errors.median,
        keys: keys.into_iter().take(KEYS_MAX).map(key).collect(),
    }
}
