//! Predicted performance on the wire, and moves that it is a reason for.

use hintd_client::wire::v1;
use hintd_engine::MoveNote;
use hintd_engine::records::{PredictedGroup, PredictedPerformance, PredictedPlace};
use hintd_model::network::latency::slow_peers::Slowdown;

/// What a decision's containers were predicted to perform like.
pub(in crate::server) fn performance(found: PredictedPerformance) -> v1::PredictedPerformance {
    let PredictedPerformance { curve, root, root_group, groups } = found;
    v1::PredictedPerformance {
        curve,
        root_host: root.to_string(),
        root_group: root_group.map_or_else(String::new, |group| group.to_string()),
        groups: groups.into_iter().map(group).collect(),
    }
}

fn group(found: PredictedGroup) -> v1::PredictedGroup {
    let PredictedGroup { group, placed, alternatives } = found;
    let places = |places: Vec<PredictedPlace>| places.into_iter().map(place).collect();
    v1::PredictedGroup { group: group.to_string(), placed: places(placed), alternatives: places(alternatives) }
}

fn place(found: PredictedPlace) -> v1::PredictedPlace {
    let PredictedPlace { host, count, performance, rtt, basis, age, slowdown } = found;
    v1::PredictedPlace {
        host: host.to_string(),
        count,
        performance,
        rtt_us: rtt.0,
        basis: basis.to_owned(),
        age_ms: age.map(|age| age.as_millis()),
        slowdown: (slowdown > Slowdown::NONE).then(|| slowdown.factor()),
    }
}

/// A move as its application is told.
pub(in crate::server) fn move_advice(note: &MoveNote) -> v1::MoveAdvice {
    v1::MoveAdvice {
        container_id: note.container.to_string(),
        to_host: note.to.to_string(),
        gain: note.gain,
        chain: note.chain.to_string(),
        performance: note.performance.map(|predicted| predicted.now),
        to_performance: note.performance.map(|predicted| predicted.then),
        ran_ms: note.performance.map(|predicted| predicted.ran.as_millis()),
    }
}

/// The same for who asks afterwards.
pub(in crate::server) fn proposed_move(note: &MoveNote) -> v1::ProposedMove {
    let (from_host, told_at_ms) = (note.from.to_string(), note.at.as_millis());
    v1::ProposedMove { advice: Some(move_advice(note)), from_host, told_at_ms, followed: note.followed }
}
