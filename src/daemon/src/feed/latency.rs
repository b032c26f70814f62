//! `Feed.Latency`: round trips that hosts measured to others.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, ItemRefusal, Reason, convert};
use crate::runtime::options::LatencyBounds;
use hintd_client::wire::v1;
use hintd_model::cluster::Measured;
use hintd_model::network::latency::{LatencyError, believed, in_time, path, thinned};
use hintd_model::units::Timestamp;
use v1::latency_item::Item;

/// Lengths that one item tells of, at most.
const BUCKETS: usize = 256;

/// Takes one item in.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(
    registries: &FeedRegistries,
    stream: &mut FeedStream,
    item: v1::LatencyItem,
    bounds: LatencyBounds,
    now: Timestamp,
) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Sample(sample) => {
            stream.greeted()?;
            let v1::LatencySample { from_host, to_host, rtt_us, measured_at_ms } = sample;
            let buckets = vec![v1::LatencyBucket { rtt_us, count: 1 }];
            let histogram = v1::LatencyHistogram { from_host, to_host, buckets, measured_at_ms, ..Default::default() };
            measured(registries, &histogram, bounds, now)
        }
        Item::Histogram(histogram) => {
            stream.greeted()?;
            measured(registries, &histogram, bounds, now)
        }
    })
}

fn measured(
    registries: &FeedRegistries,
    histogram: &v1::LatencyHistogram,
    bounds: LatencyBounds,
    now: Timestamp,
) -> Result<(), ItemRefusal> {
    let v1::LatencyHistogram { from_host, to_host, path: number, buckets, measured_at_ms, instance } = histogram;
    let (from, to) = (convert::host("from_host", from_host)?, convert::host("to_host", to_host)?);
    let refused = |error: LatencyError| ItemRefusal::new(reason(&error), format!("\"{from}\" to \"{to}\": {error}"));
    let at = match measured_at_ms {
        0 => now,
        ms => Timestamp(ms.saturating_mul(1_000)),
    };
    in_time(at, now, bounds.max_age).map_err(refused)?;
    let path = path(*number).map_err(refused)?;
    if buckets.len() > BUCKETS {
        let message = format!("\"{from}\" to \"{to}\": {} lengths of round trips: at most {BUCKETS}", buckets.len());
        return Err(ItemRefusal::new(Reason::TooMany, message));
    }
    // A signed number below 0 comes as one above the half.
    let rtt = |bucket: &v1::LatencyBucket| match i64::try_from(bucket.rtt_us) {
        Ok(rtt_us) => believed(rtt_us as f64),
        Err(_) => Err(LatencyError::NotPositive(bucket.rtt_us as i64 as f64)),
    };
    let counts = buckets.iter().map(|bucket| Ok((rtt(bucket)?, bucket.count)));
    let rtts = thinned(&counts.collect::<Result<Vec<_>, LatencyError>>().map_err(refused)?);
    if rtts.is_empty() {
        return Err(ItemRefusal::new(Reason::Zero, format!("\"{from}\" to \"{to}\": no round trips")));
    }
    registries.latency(Measured { from, to, path, rtts: rtts.into(), at }, *instance, bounds.items_per_s, now)
}

const fn reason(error: &LatencyError) -> Reason {
    match error {
        LatencyError::NotPositive(rtt_us) if *rtt_us < 0.0 => Reason::Negative,
        LatencyError::NotPositive(_) => Reason::Zero,
        LatencyError::TooLong { .. } => Reason::TooLarge,
        LatencyError::Future(_) => Reason::Future,
        LatencyError::Old { .. } => Reason::Old,
        LatencyError::TooManyPairs(_) | LatencyError::TooManyOfHost(_) => Reason::TooMany,
        LatencyError::NotANumber(_) | LatencyError::NoSuchPath(_) | LatencyError::Itself(_) => Reason::Malformed,
    }
}
