//! The equations of paper 004 §3.2, as functions of numbers.

use hintd_model::units::Bytes;

/// Eq. 3.1: output of a map (or of all maps of a job) that reads `input`.
pub(super) fn predicted(ratio: f64, input: Bytes) -> Bytes {
    Bytes((ratio * input.as_f64()).round() as u64)
}

/// Whether a map that reads `input` is shuffle-qualified: its output (Eq. 3.1, not rounded) is no larger than `room`.
pub(super) fn qualified(ratio: f64, input: Bytes, room: Bytes) -> bool {
    ratio * input.as_f64() <= room.as_f64()
}

/// The largest input that is [`qualified`].
pub(super) fn largest_qualified(ratio: f64, room: Bytes) -> Bytes {
    if ratio <= 0.0 {
        return Bytes(u64::MAX);
    }
    let most = Bytes((room.as_f64() / ratio) as u64);
    // The quotient may be one off where it is whole.
    let near = [most.saturating_add(Bytes(1)), most, most.saturating_sub(Bytes(1))];
    near.into_iter().find(|&input| qualified(ratio, input, room)).unwrap_or(most)
}

/// Eq. 3.3: what maps on a node of `containers` containers may write in one wave, where jobs that shuffle `shuffle`
/// bytes in all have `maps` maps in all. 0 without maps.
pub(super) fn traffic_threshold(containers: u32, shuffle: u128, maps: u64) -> Bytes {
    let bytes = (u128::from(containers) * shuffle).checked_div(u128::from(maps)).unwrap_or(0);
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Eq. 3.4, up to the next whole task: reduces of `reduces` that belong in a rack with `here` of the `total` bytes of
/// map output. 0 where there is no output: any rack does as well.
#[cfg(test)] // the pool finds it from its own columns; here it stands for the transcription
pub(super) fn reduce_num(reduces: u64, here: u64, total: u64) -> u64 {
    let share = u128::from(reduces) * u128::from(here);
    if total == 0 { 0 } else { u64::try_from(share.div_ceil(u128::from(total))).unwrap_or(u64::MAX) }
}

/// Smallest and largest shuffle of the cluster's jobs, as of the last refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Spread {
    /// S_min.
    pub(super) least: Bytes,
    /// S_max.
    pub(super) most: Bytes,
}

/// Eq. 3.5: share of a job's maps after which its reduces may start: `t_max` for the smallest shuffle and `t_min` for
/// the largest, linear between; `t_max` when all are equal. A job that came since the refresh may lie outside.
pub(super) fn completion_threshold(shuffle: Bytes, spread: Spread, t_min: f64, t_max: f64) -> f64 {
    let span = spread.most.saturating_sub(spread.least);
    if span == Bytes::ZERO {
        return t_max;
    }
    let along = shuffle.saturating_sub(spread.least).as_f64() / span.as_f64();
    (t_max - (t_max - t_min) * along).clamp(t_min, t_max)
}

/// Whether `done` of `all` maps reach the threshold. A job without maps has nothing to wait for.
#[cfg(test)] // likewise
pub(super) fn reached(done: u64, all: u64, threshold: f64) -> bool {
    Bytes(done).as_f64() >= threshold * Bytes(all).as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_the_ratio_times_the_input() {
        assert_eq!(predicted(0.25, Bytes(1000)), Bytes(250));
        assert_eq!(predicted(1.0, Bytes(128 << 20)), Bytes(128 << 20));
        assert_eq!(predicted(0.0, Bytes(5)), Bytes(0));
    }

    #[test]
    fn the_largest_qualified_input_is_the_last_that_is_qualified() {
        for ratio in [0.1, 0.3, 1.0 / 3.0, 0.7, 1.0, 1.1, 2.5, 7.0] {
            for room in 0..500 {
                let most = largest_qualified(ratio, Bytes(room));
                assert!(qualified(ratio, most, Bytes(room)), "{ratio} {room}");
                assert!(!qualified(ratio, Bytes(most.0 + 1), Bytes(room)), "{ratio} {room}");
            }
        }
        assert_eq!(largest_qualified(0.0, Bytes(0)), Bytes(u64::MAX), "what puts out nothing is always qualified");
    }

    #[test]
    fn the_traffic_threshold_is_a_nodes_containers_times_the_mean_output_of_a_map() {
        assert_eq!(traffic_threshold(6, 1000, 10), Bytes(600));
        assert_eq!(traffic_threshold(6, 0, 10), Bytes(0));
        assert_eq!(traffic_threshold(6, 0, 0), Bytes(0));
        assert_eq!(traffic_threshold(6, u128::MAX >> 8, 1), Bytes(u64::MAX));
    }

    #[test]
    fn a_rack_with_a_third_of_the_output_gets_a_third_of_the_reduces_rounded_up() {
        assert_eq!(reduce_num(10, 1, 3), 4);
        assert_eq!(reduce_num(9, 1, 3), 3);
        assert_eq!(reduce_num(10, 0, 3), 0);
        assert_eq!(reduce_num(10, 0, 0), 0);
    }

    #[test]
    fn the_completion_threshold_is_equation_3_5_as_printed() {
        let spread = Spread { least: Bytes(100), most: Bytes(900) };
        for s in [100.0, 300.0, 500.0, 900.0] {
            let (t_min, t_max, s_min, s_max) = (0.2, 0.5, 100.0, 900.0);
            let printed = (t_min - t_max) / (s_max - s_min) * s + (t_max * s_max - t_min * s_min) / (s_max - s_min);
            assert!((completion_threshold(Bytes(s as u64), spread, t_min, t_max) - printed).abs() < 1e-12);
        }
        assert!((completion_threshold(Bytes(5000), spread, 0.2, 0.5) - 0.2).abs() < 1e-12, "came since the refresh");
        assert!((completion_threshold(Bytes(7), Spread::default(), 0.2, 0.5) - 0.5).abs() < 1e-12, "all equal");
    }

    #[test]
    fn a_threshold_is_reached_exactly() {
        assert!(reached(1, 5, 0.2) && reached(5, 10, 0.5) && !reached(4, 10, 0.5));
        assert!(reached(0, 0, 0.5));
    }
}
