//! Which runs come within a horizon.

use super::PredictionSettings;
use super::measure::{Errors, error, median};
use super::runs::{Run, Runs};
use hintd_model::units::{Micros, Timestamp};
use hintd_policy::plan::ExpectedJob;
use hintd_policy::{Budget, Work as _};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DAY: i64 = 86_400_000_000;

/// What is expected, and how much of it to believe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Runs of recurring jobs, ascending by arrival; of each key numbered from 0.
    pub jobs: Vec<ExpectedJob>,
    /// Every key of which a run is known, ascending.
    pub keys: Vec<KeyForecast>,
    /// Over all runs of recurring keys that could be predicted from earlier ones.
    pub errors: Errors,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyForecast {
    /// Which.
    pub key: Arc<str>,
    /// Runs that are known.
    pub runs: usize,
    /// How far predictions of them were off.
    pub errors: Errors,
    /// What it counts as.
    pub status: RecurrenceStatus,
}

/// What a key counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecurrenceStatus {
    /// Its runs are predicted.
    Recurring,
    /// Too few runs are known: ad-hoc.
    TooFew,
    /// Its runs are too unlike each other: ad-hoc.
    Unsteady,
}

impl RecurrenceStatus {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recurring => "recurring",
            Self::TooFew => "too_few",
            Self::Unsteady => "unsteady",
        }
    }
}

/// Runs expected from `from` until before `until`, by all that is known at `from`: later runs are passed over.
///
/// # Panics
/// Never: nothing ends it.
#[must_use]
pub fn forecast(runs: &Runs, from: Timestamp, until: Timestamp, settings: &PredictionSettings) -> Forecast {
    let mut never = || false;
    let found = forecast_within(runs, (from, until), settings, &Budget::new(0, &mut never));
    found.expect("a budget without an end was given")
}

/// The same; `None` once the budget is spent.
#[must_use]
pub fn forecast_within(
    runs: &Runs,
    (from, until): (Timestamp, Timestamp),
    settings: &PredictionSettings,
    budget: &Budget<'_>,
) -> Option<Forecast> {
    let (mut jobs, mut keys, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (key, runs) in runs.iter() {
        let known = runs.iter().take_while(|run| run.submitted < from).filter(|run| run.can_be()).copied();
        let known = &known.collect::<Vec<Run>>()[..];
        let off = errors(known, settings, budget)?;
        let errors = Errors::of(off.clone());
        let status = if known.len() < settings.runs_min.max(2) {
            RecurrenceStatus::TooFew
        } else if errors.median > settings.error_max {
            RecurrenceStatus::Unsteady
        } else {
            RecurrenceStatus::Recurring
        };
        if status == RecurrenceStatus::Recurring {
            all.extend(off);
            jobs.extend(of_key(key, known, (from, until), settings, budget)?);
        }
        if !known.is_empty() {
            keys.push(KeyForecast { key: Arc::clone(key), runs: known.len(), errors, status });
        }
    }
    jobs.sort_by(|a, b| (a.arrival, &a.key, a.run).cmp(&(b.arrival, &b.key, b.run)));
    Some(Forecast { jobs, keys, errors: Errors::of(all) })
}

/// Errors of the runs that could be predicted from those before; `None` once the budget is spent.
fn errors(runs: &[Run], settings: &PredictionSettings, budget: &Budget<'_>) -> Option<Vec<f64>> {
    let mut errors = Vec::new();
    for (at, run) in runs.iter().enumerate().skip(1) {
        if !budget.work(at as u64) {
            return None;
        }
        let predicted = like(&runs[..at], run.submitted, settings);
        errors.extend(predicted.map(|predicted| error(&predicted, run)));
    }
    Some(errors)
}

/// What a run that is submitted then will be like: the median of the last like runs. Alike are those of about that time
/// on the same weekday; where those are too few of about that time on any day; else all.
fn like(known: &[Run], submitted: Timestamp, settings: &PredictionSettings) -> Option<Run> {
    let clock = Clock(settings);
    let near = |run: &&Run| clock.apart(run.submitted, submitted) <= settings.alike();
    let same_day = |run: &&Run| clock.weekday(clock.day(run.submitted)) == clock.weekday(clock.day(submitted));
    let last = |runs: Vec<&Run>| runs.into_iter().rev().take(settings.window.max(1)).copied().collect::<Vec<Run>>();
    let enough = settings.days_min.max(1);
    let weekday = last(known.iter().filter(near).filter(same_day).collect());
    let hour = || last(known.iter().filter(near).collect());
    let any = || last(known.iter().collect());
    let chosen = Some(weekday)
        .filter(|runs| runs.len() >= enough)
        .or_else(|| Some(hour()).filter(|runs| runs.len() >= enough))
        .unwrap_or_else(any);
    median(&chosen.iter().collect::<Vec<_>>())
}

/// Days and times of day by the cluster's clock.
struct Clock<'a>(&'a PredictionSettings);

impl Clock<'_> {
    fn local(&self, at: Timestamp) -> i64 {
        i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(self.0.zone_offset_s.saturating_mul(1_000_000))
    }

    fn day(&self, at: Timestamp) -> i64 {
        self.local(at).div_euclid(DAY)
    }

    fn time_of_day(&self, at: Timestamp) -> i64 {
        self.local(at).rem_euclid(DAY)
    }

    /// 0 is Monday: day 0 was a Thursday.
    fn weekday(&self, day: i64) -> i64 {
        (day + 3).rem_euclid(7)
    }

    /// How far apart in time of day, around midnight the short way.
    fn apart(&self, a: Timestamp, b: Timestamp) -> Micros {
        let apart = (self.time_of_day(a) - self.time_of_day(b)).rem_euclid(DAY);
        Micros(apart.min(DAY - apart) as u64)
    }

    fn moment(&self, day: i64, time: i64) -> Option<Timestamp> {
        let local = day.checked_mul(DAY)?.checked_add(time)?;
        u64::try_from(local.checked_sub(self.0.zone_offset_s.saturating_mul(1_000_000))?).ok().map(Timestamp)
    }
}

/// The key's runs within the horizon; `None` once the budget is spent.
fn of_key(
    key: &Arc<str>,
    known: &[Run],
    (from, until): (Timestamp, Timestamp),
    settings: &PredictionSettings,
    budget: &Budget<'_>,
) -> Option<Vec<ExpectedJob>> {
    let clock = Clock(settings);
    let mut times: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for run in known {
        times.entry(clock.day(run.submitted)).or_default().push(clock.time_of_day(run.submitted));
    }
    let mut expected: Vec<ExpectedJob> = Vec::new();
    let since = times.first_key_value().map_or(0, |(&first, _)| clock.day(from).saturating_sub(first).max(0) as u64);
    // Of each kind of day as many are looked for as the window has, a week's at most for each, or all.
    let days = since.min(7 * settings.window.max(settings.days_min) as u64).max(1);
    for day in clock.day(from)..=clock.day(until) {
        if !budget.work(days) {
            return None;
        }
        let arrivals = arrivals(&times, day, clock.day(from), settings);
        let moments = arrivals.into_iter().filter_map(|time| clock.moment(day, time));
        for arrival in moments.filter(|arrival| *arrival >= from && *arrival < until) {
            if !budget.work(known.len() as u64) {
                return None;
            }
            let Some(run) = like(known, arrival, settings).filter(|run| run.maps.0 > 0) else { continue };
            let (key, number) = (Arc::clone(key), expected.len() as u32);
            let Run { input, maps, reduces, shuffle, .. } = run;
            expected.push(ExpectedJob { key, run: number, arrival, input, maps, reduces, shuffle });
        }
    }
    Some(expected)
}

/// Times of day at which runs come on a day: as many as on like days in the median, the n-th at the median of the n-th.
/// Days before today count, from the key's first on; those without a run count as well.
fn arrivals(times: &BTreeMap<i64, Vec<i64>>, day: i64, today: i64, settings: &PredictionSettings) -> Vec<i64> {
    let clock = Clock(settings);
    let Some((&first, _)) = times.first_key_value() else { return Vec::new() };
    let (weekday, weekend) = (clock.weekday(day), |day: i64| clock.weekday(day) >= 5);
    let kinds: [&dyn Fn(i64) -> bool; 3] =
        [&|other| clock.weekday(other) == weekday, &|other| weekend(other) == weekend(day), &|_| true];
    // Today is not over: it counts only where there is no other day.
    let last = if first < today { today - 1 } else { today };
    let alike = |kind: &&dyn Fn(i64) -> bool| -> Vec<i64> {
        (first..=last).rev().filter(|&other| kind(other)).take(settings.window.max(1)).collect()
    };
    let found = kinds.iter().map(alike).find(|days| days.len() >= settings.days_min.max(1));
    let days = found.unwrap_or_else(|| (first..=last).collect());
    let none = Vec::new();
    let runs: Vec<&Vec<i64>> = days.iter().map(|day| times.get(day).unwrap_or(&none)).collect();
    let Some(count) = middle(runs.iter().map(|times| times.len() as i64).collect()) else { return Vec::new() };
    let nth =
        |nth: usize| middle(runs.iter().filter(|times| times.len() as i64 == count).map(|times| times[nth]).collect());
    let times: BTreeSet<i64> = (0..count as usize).filter_map(nth).collect();
    times.into_iter().collect()
}

/// The lower median: of two days, one with a run and one without, none is promised.
fn middle(mut values: Vec<i64>) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}
