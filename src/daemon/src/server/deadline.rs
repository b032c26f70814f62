//! Until when a call must be answered.

use super::status::status;
use crate::runtime::Daemon;
use crate::runtime::options::Placer;
use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::time::Duration;
use tonic::Status;
use tonic::metadata::MetadataMap;

/// The header of the transport's own time-out.
const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Share of a caller's own time-out that is left for the way back.
const WAY_BACK: u32 = 20; // a twentieth
/// And never less than this.
const WAY_BACK_MIN: Duration = Duration::from_millis(1);

/// Runs a call that names no deadline of its own: as long as the transport's time-out leaves, and never
/// longer than `placer.deadline_max`. What it asked of the engine may happen all the same.
pub(super) async fn in_time<T>(
    daemon: &Daemon,
    metadata: &MetadataMap,
    call: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Status> {
    let left = bounded(Duration::MAX, metadata, &daemon.settings().placer).map_err(|refusal| status(&refusal))?;
    match tokio::time::timeout(left, call).await {
        Ok(answer) => answer.map_err(|refusal| status(&refusal)),
        Err(_) => Err(exceeded(left)),
    }
}

/// The status of a call that took longer than `limit`.
pub(super) fn exceeded(limit: Duration) -> Status {
    status(&Refusal::DeadlineExceeded(Micros(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))))
}

/// Time until the answer must leave: what the body says, what the transport's own time-out leaves
/// (less the way back, or tonic would cut the call first), and never more than the configured bound.
///
/// # Errors
/// [`Refusal::Invalid`] for a transport's time-out of nothing, and for one that is none: tonic itself would go on without.
pub(super) fn time_left(deadline_ms: u32, metadata: &MetadataMap, placer: &Placer) -> Result<Duration, Refusal> {
    let asked = match deadline_ms {
        0 => placer.deadline_default,
        ms => Duration::from_millis(ms.into()),
    };
    bounded(asked, metadata, placer)
}

fn bounded(asked: Duration, metadata: &MetadataMap, placer: &Placer) -> Result<Duration, Refusal> {
    let transport = metadata.get(GRPC_TIMEOUT).map(|value| {
        let known = value.to_str().ok().and_then(grpc_timeout);
        known.ok_or_else(|| {
            let message =
                format!("{value:?} is no time-out of gRPC's: at most eight digits and one of H, M, S, m, u, n");
            Refusal::Invalid { field: GRPC_TIMEOUT.to_owned(), message }
        })
    });
    let transport = transport.transpose()?;
    if transport.is_some_and(|whole| whole.is_zero()) {
        let message = "a time-out of 0 leaves no time for an answer; without one it is placer.deadline_default";
        return Err(Refusal::Invalid { field: GRPC_TIMEOUT.to_owned(), message: message.to_owned() });
    }
    // Of the shortest, half is left: it is late in any case, but not before it was begun.
    let transport = transport.map(|whole| whole.saturating_sub((whole / WAY_BACK).max(WAY_BACK_MIN).min(whole / 2)));
    Ok(asked.min(placer.deadline_max).min(transport.unwrap_or(Duration::MAX)))
}

/// gRPC's time-out header: at most eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| plain)?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_all_time_limits_counts() {
        let placer = Placer {
            steps: 1,
            deadline_default: Duration::from_secs(1),
            deadline_max: Duration::from_secs(30),
            retries: 1,
            fallbacks: 1,
            guard: None,
            baseline: false,
            round: None,
        };
        let left = |ms, header: &str| {
            let mut metadata = MetadataMap::new();
            if !header.is_empty() {
                metadata.insert("grpc-timeout", header.parse().unwrap());
            }
            time_left(ms, &metadata, &placer)
        };
        let none = left(500, "0m").unwrap_err().to_string();
        assert!(none.starts_with("grpc-timeout: a time-out of 0 leaves no time"), "{none}");
        for none in ["5", "S", "+5S", "-5S", "1.5S", "5 S", "5s", "123456789S", "5Sm", "٥S"] {
            let message = left(50, none).unwrap_err().to_string();
            assert!(message.starts_with("grpc-timeout: ") && message.contains("is no time-out of gRPC's"), "{message}");
        }
        let left = |ms, header: &str| left(ms, header).unwrap();
        assert_eq!(left(500, "1m"), Duration::from_micros(500), "never nothing");
        assert_eq!(left(0, ""), Duration::from_secs(1));
        assert_eq!(left(90_000, ""), Duration::from_secs(30));
        assert_eq!(left(500, "100m"), Duration::from_millis(95), "less the way back");
        assert_eq!(left(50, "1S"), Duration::from_millis(50));
        assert_eq!(left(50, "99999999H"), Duration::from_millis(50));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_call_that_the_engine_does_not_answer_ends_at_its_deadline() {
        use crate::runtime::tests::{running, stall};
        use crate::server::{admin::AdminService, placement::PlacementService, routes::RoutesService};
        use hintd_client::wire::v1;
        use hintd_client::wire::v1::{
            admin_server::Admin as _, placement_server::Placement as _, routes_server::Routes as _,
        };
        use tonic::{Code, Request};

        fn soon<M>(message: M) -> Request<M> {
            let mut request = Request::new(message);
            request.set_timeout(Duration::from_millis(20));
            request
        }
        let (_folder, running) = running().await;
        let daemon = running.daemon.clone();
        let stalled = stall(&daemon);
        let placement = PlacementService::new(daemon.clone());
        let admin = AdminService::new(daemon.clone());
        let release =
            v1::ReleaseRequest { application_id: "application_1_0001".into(), attempt: 1, ..Default::default() };
        let explain = v1::ExplainRequest {
            decision_id: hintd_model::units::DecisionId::of(1).to_string(),
            ..v1::ExplainRequest::default()
        };
        let pair = v1::HostPair { src: "a".into(), dst: "b".into(), class: String::new() };
        let watch = v1::WatchRequest { watcher: "sdn".into(), pairs: vec![pair], ..Default::default() };
        let calls = async {
            [
                ("release", placement.release(soon(release)).await.err()),
                ("explain", placement.explain(soon(explain)).await.err()),
                ("watch", RoutesService::new(daemon.clone()).watch(soon(watch)).await.err()),
                ("status", admin.status(soon(v1::StatusRequest {})).await.err()),
                ("nodes", admin.nodes(soon(v1::NodesRequest::default())).await.err()),
            ]
        };
        let found = tokio::time::timeout(Duration::from_secs(10), calls).await.expect("none waits for ever");
        for (call, status) in found {
            assert_eq!(status.map(|status| status.code()), Some(Code::DeadlineExceeded), "{call}");
        }
        drop(stalled);
        assert_eq!(daemon.engine_report().await.unwrap().counts.routes, 0, "the Watch that was too late is none");
        running.shutdown().await.unwrap();
    }
}
