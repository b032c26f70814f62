//! Weeks of made-up runs, and what is made of them.

use super::sample::{DAY, HOUR, MONDAY, Made, weeks};
use super::*;
use hintd_model::units::{Bytes, Micros, Timestamp};
use std::collections::BTreeMap;

const EVERY_DAY: [u64; 7] = [0, 1, 2, 3, 4, 5, 6];

fn jobs() -> Vec<Made> {
    vec![
        Made::steady("nightly", &EVERY_DAY, &[3]),
        Made::steady("workdays", &[0, 1, 2, 3, 4], &[9, 17]),
        Made::steady("sundays", &[6], &[12]),
        Made::steady("hourly", &EVERY_DAY, &(0..24).collect::<Vec<_>>()),
    ]
}

fn day(number: u64) -> (Timestamp, Timestamp) {
    let from = Timestamp(MONDAY.0 + number * DAY);
    (from, from.plus(Micros(DAY)))
}

fn counts(forecast: &Forecast) -> BTreeMap<&str, u32> {
    let mut counts = BTreeMap::new();
    forecast.jobs.iter().for_each(|job| *counts.entry(&*job.key).or_default() += 1);
    counts
}

#[test]
fn runs_are_expected_on_the_weekdays_and_hours_on_which_they_came() {
    let runs = weeks(&jobs(), 4, 0, 1);
    for (number, wanted) in [
        (28, vec![("hourly", 24), ("nightly", 1), ("workdays", 2)]),
        (33, vec![("hourly", 24), ("nightly", 1)]),
        (34, vec![("hourly", 24), ("nightly", 1), ("sundays", 1)]),
    ] {
        let (from, until) = day(number);
        let forecast = forecast(&runs, from, until, &PredictionSettings::default());
        assert_eq!(counts(&forecast), wanted.into_iter().collect(), "day {number}");
        for job in &forecast.jobs {
            let minute = (job.arrival.0 - MONDAY.0) % HOUR / 60_000_000;
            assert!((27..=33).contains(&minute), "{} at {minute} past", job.key);
        }
        assert!(forecast.jobs.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
    }
}

#[test]
fn sizes_are_those_of_like_weekdays_and_hours_within_the_noise() {
    let made = jobs();
    let runs = weeks(&made, 4, 0, 2);
    let (from, until) = (day(28).0, day(34).1);
    let forecast = forecast(&runs, from, until, &PredictionSettings::default());
    for job in &forecast.jobs {
        let of = made.iter().find(|made| made.key == job.key).unwrap();
        let plain = of.plain(job.arrival);
        let off = job.shuffle.as_f64() / plain.shuffle.as_f64() - 1.0;
        // Neighbouring hours count as well within 40 minutes of jitter: none here.
        assert!(off.abs() < 0.15, "{}#{}: {off}", job.key, job.run);
        assert!((f64::from(job.maps.0) / f64::from(plain.maps.0) - 1.0).abs() < 0.2);
    }
    let numbers: Vec<u32> = forecast.jobs.iter().filter(|job| &*job.key == "nightly").map(|job| job.run).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn errors_are_near_the_noise_and_near_the_papers_six_and_a_half_per_cent() {
    let runs = weeks(&jobs(), 6, 0, 3);
    let (from, until) = day(42);
    let forecast = forecast(&runs, from, until, &PredictionSettings::default());
    // Noise of 6 % against a median of 6 %; the weekend of a key's first weeks is predicted from its workdays.
    assert!((0.02..0.12).contains(&forecast.errors.median), "{:?}", forecast.errors);
    assert!(forecast.keys.iter().all(|key| key.status == RecurrenceStatus::Recurring));
    assert!(forecast.keys.iter().all(|key| key.errors.runs == key.runs - 1));
}

#[test]
fn runs_that_went_astray_move_nothing() {
    let (clean, astray) = (weeks(&jobs(), 5, 0, 4), weeks(&jobs(), 5, 4, 4));
    let (from, until) = day(35);
    let settings = PredictionSettings::default();
    let (clean, astray) = (forecast(&clean, from, until, &settings), forecast(&astray, from, until, &settings));
    assert_eq!(counts(&clean), counts(&astray));
    for (one, other) in clean.jobs.iter().zip(&astray.jobs) {
        let ratio = one.shuffle.as_f64() / other.shuffle.as_f64();
        assert!((0.6..1.6).contains(&ratio), "{}#{}: {ratio}", one.key, one.run);
    }
    assert!(astray.errors.mean > clean.errors.mean && astray.errors.median < 0.12, "{:?}", astray.errors);
    assert!(astray.keys.iter().all(|key| key.status == RecurrenceStatus::Recurring));
}

#[test]
fn a_key_whose_runs_are_unlike_each_other_counts_as_ad_hoc() {
    let mut wild = Made::steady("wild", &EVERY_DAY, &[5]);
    wild.sigma = 3.0;
    let runs = weeks(&[wild, Made::steady("nightly", &EVERY_DAY, &[3])], 4, 0, 5);
    let (from, until) = day(28);
    let forecast = forecast(&runs, from, until, &PredictionSettings::default());
    assert_eq!(counts(&forecast), [("nightly", 1)].into());
    let status: Vec<_> = forecast.keys.iter().map(|key| (&*key.key, key.status)).collect();
    assert_eq!(status, [("nightly", RecurrenceStatus::Recurring), ("wild", RecurrenceStatus::Unsteady)]);
    assert!(forecast.errors.median < 0.12, "what is not predicted does not count: {:?}", forecast.errors);
}

fn single(shuffle: u64) -> Run {
    let submitted = Timestamp(MONDAY.0 + 5 * HOUR);
    let (maps, reduces) = ((4, Micros(9)), (1, Micros(9)));
    Run {
        submitted,
        maps,
        reduces,
        input: Bytes(7),
        shuffle: Bytes(shuffle),
        application: None,
        counted: false,
        ran_on: None,
    }
}

#[test]
fn a_key_with_one_run_or_two_is_not_predicted() {
    let mut runs = Runs::default();
    let (from, until) = day(3);
    assert_eq!(forecast(&runs, from, until, &PredictionSettings::default()).keys, []);
    for (number, status) in
        [(0, RecurrenceStatus::TooFew), (1, RecurrenceStatus::TooFew), (2, RecurrenceStatus::Recurring)]
    {
        let submitted = single(5).submitted.plus(Micros(number * DAY));
        runs.note(&"young".into(), Run { submitted, ..single(5) });
        let forecast = forecast(&runs, from, until, &PredictionSettings::default());
        assert_eq!((forecast.keys[0].runs, forecast.keys[0].status), (number as usize + 1, status));
        assert_eq!(forecast.jobs.len(), usize::from(status == RecurrenceStatus::Recurring));
    }
}

#[test]
fn runs_whose_figures_can_not_be_are_passed_over() {
    let mut runs = Runs::default();
    for number in 0..4 {
        let submitted = single(5).submitted.plus(Micros(number * DAY));
        runs.note(&"good".into(), Run { submitted, ..single(5) });
        runs.note(&"large".into(), Run { submitted, ..single(1 << 51) });
        runs.note(&"long".into(), Run { submitted, maps: (4, Micros(32 * DAY)), ..single(5) });
    }
    let (from, until) = day(4);
    let forecast = forecast(&runs, from, until, &PredictionSettings::default());
    assert_eq!(counts(&forecast), [("good", 1)].into());
    assert_eq!(forecast.keys.len(), 1, "{:?}", forecast.keys);
}

#[test]
fn a_shuffle_of_nothing_is_predicted_as_nothing() {
    let mut runs = Runs::default();
    for number in 0..5 {
        runs.note(&"maps".into(), Run { submitted: single(0).submitted.plus(Micros(number * DAY)), ..single(0) });
    }
    let (from, until) = day(5);
    let forecast = forecast(&runs, from, until, &PredictionSettings::default());
    assert_eq!((forecast.jobs[0].shuffle, forecast.errors.mean), (Bytes(0), 0.0));
}

#[test]
fn a_job_that_grew_a_hundredfold_is_believed_once_most_like_runs_say_so() {
    let mut runs = Runs::default();
    let settings = PredictionSettings { error_max: 2.0, ..PredictionSettings::default() };
    let shuffle = |runs: &Runs, number| {
        let (from, until) = day(number);
        forecast(runs, from, until, &settings).jobs[0].shuffle
    };
    for number in 0..40 {
        let size = if number < 28 { 50 } else { 5_000 };
        runs.note(&"grew".into(), Run { submitted: single(size).submitted.plus(Micros(number * DAY)), ..single(size) });
    }
    assert_eq!(shuffle(&runs, 36), Bytes(50), "one like run in five");
    for number in 40..60 {
        runs.note(
            &"grew".into(),
            Run { submitted: single(5_000).submitted.plus(Micros(number * DAY)), ..single(5_000) },
        );
    }
    assert_eq!(shuffle(&runs, 60), Bytes(5_000));
}

#[test]
fn a_horizon_that_begins_at_noon_leaves_the_morning_out() {
    let runs = weeks(&jobs(), 4, 0, 6);
    let from = Timestamp(day(28).0.0 + 12 * HOUR);
    let forecast = forecast(&runs, from, from.plus(Micros(DAY)), &PredictionSettings::default());
    let counts = counts(&forecast);
    assert_eq!((counts["hourly"], counts["nightly"], counts["workdays"]), (24, 1, 2));
    assert!(forecast.jobs.iter().all(|job| job.arrival >= from));
}

#[test]
fn days_begin_at_the_clusters_midnight() {
    // At 23:30 in UTC on Sundays, which is Monday 05:00 in India.
    let made = Made::steady("weekly", &[6], &[23]);
    let runs = weeks(&[made], 4, 0, 7);
    let settings = PredictionSettings { zone_offset_s: 19_800, ..PredictionSettings::default() };
    let (from, until) = (day(34).0, day(35).1);
    let forecast = forecast(&runs, from, until, &settings);
    assert_eq!(forecast.jobs.len(), 1);
    assert!(forecast.jobs[0].arrival.0.abs_diff(day(34).0.0 + 23 * HOUR + HOUR / 2) < HOUR / 10);
}

#[test]
fn the_same_runs_told_in_any_order_give_the_same_forecast() {
    let runs = weeks(&jobs(), 3, 5, 8);
    let mut back = Runs::default();
    for (key, runs) in runs.iter() {
        runs.iter().rev().for_each(|run| _ = back.note(key, *run));
    }
    let (from, until) = day(21);
    let of = |runs: &Runs| forecast(runs, from, until, &PredictionSettings::default());
    assert_eq!(of(&runs), of(&back));
}
