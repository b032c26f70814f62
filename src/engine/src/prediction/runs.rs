//! Finished runs of jobs, by key.

use hintd_model::units::{ApplicationId, Bytes, Micros, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Maps, and the mean time of one.
    pub maps: (u32, Micros),
    /// Reduces, and the mean time of one.
    pub reduces: (u32, Micros),
    /// Bytes that its maps read.
    pub input: Bytes,
    /// Bytes between maps and reduces.
    pub shuffle: Bytes,
    /// Whose run it was, so that one that is told in several ways counts once; `None`: of a trace, or of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationId>,
    /// A history server told it: bytes are those that the whole job counted, and the time of a reduce is that of its own
    /// work. Else bytes may be 0 for not told, and a reduce's time is its container's, the wait for maps included.
    #[serde(default, skip_serializing_if = "is_false")]
    pub counted: bool,
    /// How much of it ran on machines of the class that a policy learns of
    /// ([`EngineSettings::machine_class`](crate::EngineSettings::machine_class)); `None`: that was not heard, or there was no
    /// such machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_on: Option<ClassShare>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// How many of a run's containers ran on machines of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassShare {
    /// Which class.
    pub class: ClassHash,
    /// Of a thousand containers.
    pub per_mille: u16,
}

impl ClassShare {
    /// Of a thousand containers, how many ran on machines of the class of that name; `None`: it tells of another class.
    #[must_use]
    pub fn of(&self, class: &str) -> Option<u16> {
        (self.class == ClassHash::of(class)).then_some(self.per_mille)
    }
}

/// A class of machines, by its name: 200,000 runs are kept, and have no room for names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassHash(u32);

impl ClassHash {
    /// FNV-1a, which is the same in every version.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
    }
}

/// A task takes no longer, and no run reads or shuffles more: a figure that is wrong would be planned for.
const TASK_MAX: Micros = Micros::from_secs(31 * 86_400);
const BYTES_MAX: Bytes = Bytes(1 << 50);

impl Run {
    /// Whether such a run can have been.
    pub(super) fn can_be(&self) -> bool {
        let times = [self.maps.1, self.reduces.1].iter().all(|time| *time <= TASK_MAX);
        times && [self.input, self.shuffle].iter().all(|bytes| *bytes <= BYTES_MAX)
    }
}

/// Runs by key, ascending by submission; bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    by_key: BTreeMap<Arc<str>, Vec<Run>>,
    each_max: usize,
}

/// Eight weeks of an hourly job.
const EACH_MAX: usize = 8 * 7 * 24;

impl Default for Runs {
    fn default() -> Self {
        Self::new(EACH_MAX)
    }
}

impl Runs {
    /// None yet; of each key the last `each_max` are kept, at least one.
    #[must_use]
    pub fn new(each_max: usize) -> Self {
        Self { by_key: BTreeMap::new(), each_max: each_max.max(1) }
    }

    /// Takes a finished run in. One that is told twice, by its moment of submission, counts once: the later telling.
    /// Returns the run that went for it: that of the same moment, or the oldest, which may be the very one.
    pub fn note(&mut self, key: &Arc<str>, run: Run) -> Option<Run> {
        let runs = self.by_key.entry(Arc::clone(key)).or_default();
        match runs.binary_search_by_key(&run.submitted, |other| other.submitted) {
            Ok(at) => return Some(std::mem::replace(&mut runs[at], run)),
            Err(at) => runs.insert(at, run),
        }
        (runs.len() > self.each_max).then(|| runs.remove(0))
    }

    /// Forgets one run.
    pub fn forget(&mut self, key: &str, submitted: Timestamp) {
        let Some(runs) = self.by_key.get_mut(key) else { return };
        runs.retain(|run| run.submitted != submitted);
        if runs.is_empty() {
            self.by_key.remove(key);
        }
    }

    /// Keys with their runs, ascending by submission.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &[Run])> + '_ {
        self.by_key.iter().map(|(key, runs)| (key, &runs[..]))
    }

    /// Runs of one key, ascending by submission.
    #[must_use]
    pub fn of(&self, key: &str) -> &[Run] {
        self.by_key.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    /// At most `most` runs for who learns from them: the last one of each key, newest first, then the last but one of each,
    /// and so on, so that a job that comes every minute does not crowd out all others. Runs that can't have been are left out.
    #[must_use]
    pub fn newest_of_each(&self, most: usize) -> Vec<Run> {
        let mut taken = Vec::new();
        let longest = self.by_key.values().map(Vec::len).max().unwrap_or(0);
        for back in 0..longest {
            let of_key = |runs: &Vec<Run>| runs.iter().rev().nth(back).copied().filter(Run::can_be);
            let mut turn: Vec<Run> = self.by_key.values().filter_map(of_key).collect();
            turn.sort_by_key(|run| std::cmp::Reverse(run.submitted));
            taken.extend(turn);
            if taken.len() >= most {
                break;
            }
        }
        taken.truncate(most);
        taken
    }

    /// Runs of all keys.
    #[must_use]
    pub fn total(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    /// Forgets a key with its runs: of those with one run, while they are more than half, the oldest; else the one whose
    /// last run is the oldest. Names that never come again push no recurring job out, and jobs that ceased leave room for
    /// new ones to come a second time.
    pub fn forget_oldest(&mut self) -> Option<(Arc<str>, Vec<Run>)> {
        let once = self.by_key.values().filter(|runs| runs.len() == 1).count();
        let once_first = 2 * once > self.by_key.len();
        let order = |runs: &[Run]| (once_first && runs.len() > 1, runs.last().map(|run| run.submitted));
        let key = self.by_key.iter().min_by_key(|(_, runs)| order(runs)).map(|(key, _)| Arc::clone(key))?;
        self.by_key.remove_entry(&key)
    }

    /// Keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: u64, maps: u32) -> Run {
        let (input, shuffle) = (Bytes(0), Bytes(0));
        let (maps, reduces) = ((maps, Micros(1)), (0, Micros(0)));
        Run { submitted: Timestamp(at), maps, reduces, input, shuffle, application: None, counted: false, ran_on: None }
    }

    #[test]
    fn of_keys_too_many_those_with_one_run_go_first_while_they_are_more_than_half() {
        let mut runs = Runs::new(3);
        let mut note = |key: &str, at| assert_eq!(runs.note(&key.into(), run(at, 1)), None);
        [("weekly", 1), ("weekly", 8), ("ceased", 2), ("ceased", 3)].into_iter().for_each(|(key, at)| note(key, at));
        (10..15).for_each(|at| note(&format!("ad hoc {at}"), at));
        let mut gone = || runs.forget_oldest().map(|(key, _)| key.to_string()).unwrap();
        assert_eq!([gone(), gone(), gone()], ["ad hoc 10", "ad hoc 11", "ad hoc 12"], "though they are newer");
        assert_eq!([gone(), gone()], ["ceased", "ad hoc 13"], "two of four keys, then two of three");
        assert_eq!([gone(), gone()], ["weekly", "ad hoc 14"]);
        assert_eq!(runs.forget_oldest(), None);
    }

    #[test]
    fn who_learns_gets_the_last_run_of_each_key_before_another_of_any() {
        let mut runs = Runs::new(9);
        for (key, at) in [("often", 7), ("often", 8), ("often", 9), ("rare", 1), ("odd", 5)] {
            runs.note(&key.into(), run(at, 1));
        }
        runs.note(&"odd".into(), Run { input: Bytes(1 << 51), ..run(6, 1) });
        let newest = |most| runs.newest_of_each(most).iter().map(|run| run.submitted.0).collect::<Vec<_>>();
        assert_eq!(newest(9), [9, 1, 8, 5, 7], "one that can't have been is left out");
        assert_eq!(newest(3), [9, 1, 8]);
        assert!(Runs::default().newest_of_each(5).is_empty());
    }

    #[test]
    fn runs_stand_in_order_once_each_and_the_oldest_go_first() {
        let mut runs = Runs::new(3);
        for (at, maps) in [(5, 1), (2, 1), (9, 1), (5, 7), (7, 1)] {
            runs.note(&"a".into(), run(at, maps));
        }
        let kept: Vec<_> = runs.iter().flat_map(|(_, runs)| runs).map(|run| (run.submitted.0, run.maps.0)).collect();
        assert_eq!(kept, [(5, 7), (7, 1), (9, 1)]);
    }
}
