//! What a link carries in the mean, from readings of its counters.
//!
//! Bulk transfers take all of a link or nothing: a reading says who sends at this moment, and who begins now shares the link with those
//! who come later. Of a shared link, a transfer gets in the mean what the link's mean load leaves free, whatever the sizes of the others.

use super::LinkLoad;
use crate::units::{BitsPerSec, Micros};

/// After so long a reading counts for a third: many transfers fit in, and yet less than a backup at night.
const WINDOW: Micros = Micros::from_secs(180);

/// The mean of one link's readings: the plain one in the first three minutes, later an exponential one with that time constant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkMean {
    /// Bits per second, as [`LinkLoad`] has its directions.
    mean: [f64; 2],
    /// For how long there were readings.
    age: Micros,
}

impl LinkMean {
    /// Takes a reading in, which stands for the time `since` the one before it; gives it with the mean.
    pub fn add(&mut self, reading: LinkLoad, since: Micros) -> LinkLoad {
        self.age = self.age.saturating_add(since).min(WINDOW);
        // The first stands for itself.
        let share = if self.age == Micros::ZERO { 1.0 } else { (since.0 as f64 / self.age.0 as f64).min(1.0) };
        for (mean, now) in self.mean.iter_mut().zip([reading.a_to_b, reading.b_to_a]) {
            *mean += (now.as_f64() - *mean) * share;
        }
        let [mean_a_to_b, mean_b_to_a] = self.mean.map(|mean| BitsPerSec(mean.round() as u64)); // saturates, and is never below 0
        LinkLoad { mean_a_to_b, mean_b_to_a, ..reading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(mean: &mut LinkMean, bits: u64, seconds: u64) -> (u64, u64) {
        let load = mean.add(LinkLoad::steady(BitsPerSec(bits), BitsPerSec(2 * bits)), Micros::from_secs(seconds));
        assert_eq!((load.a_to_b.0, load.b_to_a.0), (bits, 2 * bits), "the reading itself is left as it is");
        (load.mean_a_to_b.0, load.mean_b_to_a.0)
    }

    #[test]
    fn it_is_the_plain_mean_at_first_and_forgets_what_is_long_ago() {
        let mut mean = LinkMean::default();
        assert_eq!(read(&mut mean, 700, 0), (700, 1_400), "a first reading stands for itself");
        assert_eq!(read(&mut mean, 100, 5), (100, 200), "what came before it was no time");
        assert_eq!(read(&mut mean, 300, 5), (200, 400));
        assert_eq!(read(&mut mean, 800, 10), (500, 1_000), "by time, not by readings");
        assert_eq!(read(&mut mean, 0, 600), (0, 0), "after a long silence the new reading is all that is known");
        for _ in 0..200 {
            read(&mut mean, 1_000, 5);
        }
        let (now, _) = read(&mut mean, 0, 5);
        assert!((960..=980).contains(&now), "one idle reading of five seconds hardly counts: {now}");
    }

    proptest! {
        #[test]
        fn it_lies_between_the_least_and_the_most(readings in proptest::collection::vec((0_u64..1 << 40, 0_u64..400), 1..50)) {
            let mut mean = LinkMean::default();
            for (at, &(bits, seconds)) in readings.iter().enumerate() {
                let (now, _) = read(&mut mean, bits, seconds);
                let so_far = readings[..=at].iter().map(|reading| reading.0);
                prop_assert!(so_far.clone().min().unwrap() <= now && now <= so_far.max().unwrap());
            }
        }
    }
}
