//! Round trips from wire items to the model, and those that are refused.

use super::*;
use crate::runtime::registries::AskingAgent;
use hintd_model::network::latency::Basis;

fn histogram(from: &str, to: &str, buckets: &[(u64, u64)]) -> v1::LatencyHistogram {
    let buckets = buckets.iter().map(|&(rtt_us, count)| v1::LatencyBucket { rtt_us, count }).collect();
    v1::LatencyHistogram { from_host: from.into(), to_host: to.into(), buckets, ..Default::default() }
}

fn latency(histogram: v1::LatencyHistogram) -> Wire {
    Wire::Latency(v1::latency_item::Item::Histogram(histogram))
}

/// The latency of nodes 0 and 1.
fn rtt(snapshot: &Snapshot) -> Option<(u64, Basis)> {
    let end = |node| (NodeIdx(node), snapshot.rack(NodeIdx(node)));
    snapshot.latency.measured(end(0), end(1), T).map(|found| (found.rtt.0, found.basis))
}

#[test]
fn latency_is_measured_between_registered_nodes() {
    let mut rig = rig();
    let sample = |from: &str, to: &str, rtt_us| {
        let sample = v1::LatencySample { from_host: from.into(), to_host: to.into(), rtt_us, measured_at_ms: 0 };
        Wire::Latency(v1::latency_item::Item::Sample(sample))
    };
    for host in ["a", "b"] {
        rig.ingest(register(host, "/r1")).unwrap();
    }
    rig.ingest(sample("b", "a", 90)).unwrap();
    assert_eq!(reason(rig.ingest(sample("a", "x", 90))), Reason::UnknownNode);
    assert_eq!(reason(rig.ingest(sample("a", "a", 90))), Reason::Malformed);
    assert_eq!(reason(rig.ingest(sample("a", "b", 0))), Reason::Zero);
    assert_eq!(reason(rig.ingest(sample("a", "b", i64::MAX as u64))), Reason::TooLarge);
    assert_eq!(reason(rig.ingest(sample("a", "b", -7_i64 as u64))), Reason::Negative);
    assert_eq!(rtt(&rig.publish()), Some((90, Basis::Hosts)));
}

#[test]
fn a_histogram_counts_as_its_round_trips_and_a_wrong_one_is_refused_with_its_value() {
    let mut rig = rig();
    for host in ["a", "b"] {
        rig.ingest(register(host, "/r1")).unwrap();
    }
    let good = histogram("a", "b", &[(50, 80), (400, 20)]);
    rig.ingest(latency(good.clone())).unwrap();
    assert_eq!(rtt(&rig.publish()), Some((400, Basis::Hosts)), "nine of ten are not above it");
    for (wrong, why, says) in [
        (histogram("a", "b", &[(50, 0)]), Reason::Zero, "no round trips"),
        (histogram("a", "b", &[(50, 1), (0, 1)]), Reason::Zero, "a round trip of 0 µs is not above 0"),
        (histogram("a", "b", &[(-5_i64 as u64, 1)]), Reason::Negative, "a round trip of -5 µs is not above 0"),
        (histogram("a", "b", &[(60_000_001, 1)]), Reason::TooLarge, "a round trip of 60000001 µs is not believed"),
        (histogram("a", "b", &[(1, 1); 257]), Reason::TooMany, "257 lengths of round trips: at most 256"),
        (v1::LatencyHistogram { path: 4, ..good.clone() }, Reason::Malformed, "path 4: there are at most 4"),
        (
            v1::LatencyHistogram { measured_at_ms: 7_000, ..good.clone() },
            Reason::Future,
            "measured 6 s ahead of now: at most 5 s",
        ),
    ] {
        let refused = rig.ingest(latency(wrong)).unwrap_err();
        assert!(refused.reason == why && refused.message.contains(says), "{refused:?} lacks {says}");
    }
    assert_eq!(rig.ack(Source::Latency).refused.len(), 7);
    let old = latency::ingest(
        &rig.registries,
        &mut rig.streams[Source::Latency as usize],
        v1::LatencyItem {
            number: 1_000,
            item: Some(v1::latency_item::Item::Histogram(v1::LatencyHistogram { measured_at_ms: 1_000, ..good })),
        },
        LatencyBounds { items_per_s: 5, max_age: Micros::from_secs(60) },
        T.plus(Micros::from_secs(61)),
    );
    assert_eq!(reason(old), Reason::Old);
}

#[test]
fn an_agent_that_floods_is_refused_beyond_its_rate_and_one_that_was_replaced_altogether() {
    let mut rig = rig();
    for host in ["a", "b"] {
        rig.ingest(register(host, "/r1")).unwrap();
    }
    let taken = (0..100).filter(|_| rig.ingest(latency(histogram("a", "b", &[(50, 1)]))).is_ok()).count();
    assert_eq!(taken, 5, "as many as one host may tell of in a second");
    rig.ingest(latency(histogram("b", "a", &[(50, 1)]))).expect("others are not held up");
    let snapshot = rig.publish();
    assert!(rig.drained < 10, "{}", rig.drained);
    let ask = |instance| {
        let address = "127.0.0.1:1".parse().unwrap();
        let agent = AskingAgent { host: "b", address, instance };
        rig.registries.agents().ask(agent, &snapshot, &Default::default(), T)
    };
    ask(1).unwrap();
    ask(2).unwrap();
    let of = |instance| latency(v1::LatencyHistogram { instance, ..histogram("b", "a", &[(50, 1)]) });
    assert_eq!(reason(rig.ingest(of(1))), Reason::NotOwner);
    rig.ingest(of(2)).unwrap();
}
