//! Work that waits for machines of one class, and how much of it goes before a job's own.
//!
//! Both orders of a class give its jobs like parts of its containers. So of another job's waiting work no more goes before a
//! job's own than as much as its own: what goes first is the sum of the lesser of both, over all jobs. It is found from
//! counts and sums by powers of two, in the same time however many jobs wait: at least the sum, and less than twice that.

use serde::{Deserialize, Serialize};

/// A job's work counts as no more than that (35 years of one container), so that sums of 16 million jobs fit.
const MOST_MS: u64 = 1 << 40;
/// Powers of two up to [`MOST_MS`].
const BANDS: usize = 41;

/// Waiting work of the jobs of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Backlog {
    /// By the power of two that is not above a job's work; empty before the first job.
    bands: Vec<Band>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Band {
    jobs: u64,
    /// Milliseconds of a container.
    work_ms: u64,
}

impl Backlog {
    /// A job's waiting work is `now_ms`, and was `was_ms`; 0: nothing of it waits.
    pub(super) fn change(&mut self, was_ms: u64, now_ms: u64) {
        if was_ms == now_ms {
            return;
        }
        if self.bands.is_empty() {
            self.bands = vec![Band::default(); BANDS];
        }
        if let Some((at, work)) = band(was_ms) {
            self.bands[at].jobs -= 1;
            self.bands[at].work_ms -= work;
        }
        if let Some((at, work)) = band(now_ms) {
            self.bands[at].jobs += 1;
            self.bands[at].work_ms += work;
        }
    }

    /// What goes before a job of so much work.
    pub(super) fn ahead_of_ms(&self, work_ms: u64) -> u64 {
        let work = work_ms.min(MOST_MS);
        let most = |band: &Band| band.work_ms.min(band.jobs.saturating_mul(work));
        self.bands.iter().map(most).fold(0, u64::saturating_add)
    }
}

/// Where a job of so much work is counted, and as how much.
fn band(work_ms: u64) -> Option<(usize, u64)> {
    let work = work_ms.min(MOST_MS);
    work.checked_ilog2().map(|at| (at as usize, work))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Seconds after which a job that comes last is done, on one container that all jobs share in like parts, each getting
    /// one of its milliseconds in turn.
    fn end_in_turns(jobs: &[u64], own: u64) -> u64 {
        let (mut left, mut now) = (jobs.to_vec(), 0);
        for _ in 0..own {
            for other in left.iter_mut().filter(|other| **other > 0) {
                (*other, now) = (*other - 1, now + 1);
            }
            now += 1;
        }
        now
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_goes_before_a_job_is_what_turns_give_others_until_it_ends(
            jobs in prop::collection::vec(0_u64..300, 0..12),
            own in 1_u64..300,
            gone in 0_usize..12,
        ) {
            let mut backlog = Backlog::default();
            for &work in &jobs {
                backlog.change(0, work / 2);
                backlog.change(work / 2, work);
            }
            let mut left = jobs;
            if gone < left.len() {
                backlog.change(left.remove(gone), 0);
            }
            let exact = end_in_turns(&left, own) - own;
            let ours = backlog.ahead_of_ms(own);
            prop_assert!((exact..=2 * exact).contains(&ours), "{ours} for {exact}");
            left.iter().for_each(|&work| backlog.change(work, 0));
            prop_assert_eq!(backlog.ahead_of_ms(u64::MAX), 0);
        }
    }

    #[test]
    fn work_without_end_counts_as_much_as_can_be_summed() {
        let mut backlog = Backlog::default();
        (0..3).for_each(|_| backlog.change(0, u64::MAX));
        assert_eq!(backlog.ahead_of_ms(u64::MAX), 3 * MOST_MS);
        assert_eq!(backlog.ahead_of_ms(7), 21);
    }
}
