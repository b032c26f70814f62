//! The time axis: where it ends, where its ticks are, and what stands at them.

use super::Block;
use crate::plots::style::number;
use hintd_model::units::{Calendar, Micros, Timestamp};
use hintd_policy::plan::Plan;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// A longer axis is in hours, where the plan's times are no clock's.
const HOURS_FROM_S: f64 = 7_200.0;
/// Ticks at most.
const TICKS_MAX: u64 = 12;
/// Seconds between two ticks, as clocks have them; beyond the last it is whole days.
const STEPS_S: [u64; 17] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200];
const DAY_S: u64 = 86_400;

/// Time to the right, seconds from the plan's beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    from: Timestamp,
    /// The clock, seconds ahead of UTC; none: times count from a trace's start.
    zone_offset_s: Option<i64>,
    /// Where it ends.
    pub(super) end_s: f64,
    /// Seconds between two ticks.
    step_s: u64,
}

impl Axis {
    /// Of a plan with these bars, by a clock that is so many seconds ahead of UTC.
    pub(super) fn new(plan: &Plan, blocks: &[Block<'_>], zone_offset_s: i64) -> Self {
        let end_s = end_s(plan.makespan().as_secs_f64(), blocks);
        let step_s = step_s(end_s.ceil() as u64);
        Self { from: plan.from, zone_offset_s: plan.has_real_times().then_some(zone_offset_s), end_s, step_s }
    }

    /// Seconds from the plan's beginning: whole hours or the like by the clock.
    fn ticks(&self) -> Vec<f64> {
        let step = Micros::from_secs(self.step_s).0;
        let zone = self.zone_offset_s.map_or(0, |offset_s| offset_s.saturating_mul(1_000_000));
        // What is left of a step when the plan begins.
        let first = match self.zone_offset_s {
            None => 0,
            Some(_) => (step - self.from.0.saturating_add_signed(zone) % step) % step,
        };
        let end = (self.end_s * 1e6) as u64;
        let at = |nth: u64| first.saturating_add(nth.saturating_mul(step));
        (0..=TICKS_MAX).map(at).take_while(|at| *at <= end).map(|at| Micros(at).as_secs_f64()).collect()
    }

    /// What stands at a tick: the time, at midnight the date.
    fn label(&self, at_s: f64) -> String {
        let Some(zone_offset_s) = self.zone_offset_s else {
            return number(if self.in_hours() { at_s / 3_600.0 } else { at_s });
        };
        let at = self.from.plus(Micros((at_s * 1e6).round() as u64)).calendar(zone_offset_s);
        match (at.hour, at.minute, at.second) {
            (0, 0, 0) => day(at),
            (hour, minute, _) if self.step_s.is_multiple_of(60) => format!("{hour:02}:{minute:02}"),
            (hour, minute, second) => format!("{hour:02}:{minute:02}:{second:02}"),
        }
    }

    /// What it measures.
    pub(super) fn name(&self) -> String {
        match self.zone_offset_s {
            Some(offset_s) => format!("time from {} on, {}", day(self.from.calendar(offset_s)), zone(offset_s)),
            None if self.in_hours() => "time from the plan's beginning, hours".to_owned(),
            None => "time from the plan's beginning, seconds".to_owned(),
        }
    }

    /// From when to when, in words.
    pub(super) fn span(&self, from: Timestamp, to: Timestamp) -> String {
        let Some(zone_offset_s) = self.zone_offset_s else {
            let [from, to] = [from, to].map(|at| number(at.since(self.from).as_secs_f64()));
            return format!("{from} s to {to} s from the plan's beginning");
        };
        let [from, to] = [from, to].map(|at| at.calendar(zone_offset_s));
        let clock = |at: Calendar| format!("{:02}:{:02}:{:02}", at.hour, at.minute, at.second);
        let until = if day(from) == day(to) { clock(to) } else { format!("{} {}", day(to), clock(to)) };
        format!("{} {} to {until} {}", day(from), clock(from), zone(zone_offset_s))
    }

    fn in_hours(&self) -> bool {
        self.end_s > HOURS_FROM_S
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, at_s: &f64, (left, right): (i32, i32)) -> i32 {
        left + (f64::from(right - left) * at_s / self.end_s).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.end_s
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(at_s: &f64) -> String {
        number(*at_s)
    }

    fn format_ext(&self, at_s: &f64) -> String {
        self.label(*at_s)
    }
}

/// With the makespan, which is the forecast's, or with the last slice if that is later.
fn end_s(makespan_s: f64, blocks: &[Block<'_>]) -> f64 {
    blocks.iter().map(|block| block.end_s).fold(makespan_s.max(1.0), f64::max)
}

fn step_s(span_s: u64) -> u64 {
    let fits = |step_s: &u64| span_s / step_s < TICKS_MAX;
    let days = (span_s / DAY_S).div_ceil(TICKS_MAX - 1).max(1);
    STEPS_S.into_iter().find(fits).unwrap_or(days.saturating_mul(DAY_S))
}

fn day(at: Calendar) -> String {
    format!("{}-{:02}-{:02}", at.year, at.month, at.day)
}

/// `UTC`, or `UTC+01:00`.
fn zone(offset_s: i64) -> String {
    let (sign, minutes) = (if offset_s < 0 { '-' } else { '+' }, offset_s.unsigned_abs() / 60);
    if minutes == 0 { "UTC".to_owned() } else { format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday 2026-11-22, 22:10:00 UTC.
    const LATE: Timestamp = Timestamp(1_795_385_400_000_000);

    fn axis(from: Timestamp, zone_offset_s: Option<i64>, end_s: f64) -> Axis {
        Axis { from, zone_offset_s, end_s, step_s: step_s(end_s.ceil() as u64) }
    }

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|at| axis.label(at)).collect()
    }

    #[test]
    fn ticks_are_round_by_the_clock_and_midnight_is_a_date() {
        let utc = axis(LATE, Some(0), 2.9 * 3_600.0);
        assert_eq!(labels(&utc)[..5], ["22:15", "22:30", "22:45", "23:00", "23:15"]);
        assert_eq!(labels(&utc)[7..], ["2026-11-23", "00:15", "00:30", "00:45", "01:00"]);
        assert_eq!((utc.ticks()[0], utc.name().as_str()), (300.0, "time from 2026-11-22 on, UTC"));
        let india = axis(LATE, Some(19_800), 20.0 * 3_600.0);
        assert_eq!(labels(&india)[..3], ["04:00", "06:00", "08:00"], "of its own hours");
        assert_eq!((india.ticks()[0], india.name().as_str()), (1_200.0, "time from 2026-11-23 on, UTC+05:30"));
        assert_eq!(axis(LATE, Some(-34_200), 1.0).name(), "time from 2026-11-22 on, UTC-09:30");
        let short = axis(LATE, Some(0), 20.0);
        assert_eq!(labels(&short)[..3], ["22:10:00", "22:10:02", "22:10:04"]);
        let weeks = axis(LATE, Some(0), 20.0 * 86_400.0);
        assert_eq!(labels(&weeks)[..2], ["2026-11-23", "2026-11-25"]);
    }

    #[test]
    fn times_of_a_trace_count_from_its_start() {
        let day = axis(Timestamp(5_000_000), None, 86_400.0);
        assert_eq!(labels(&day)[..3], ["0", "3", "6"]);
        assert!(day.name().ends_with("beginning, hours") && day.ticks()[1] == 10_800.0);
        let short = axis(Timestamp(5_000_000), None, 61.0);
        assert_eq!(labels(&short)[..3], ["0", "10", "20"]);
        let span = short.span(Timestamp(6_000_000), Timestamp(7_500_000));
        assert_eq!(span, "1 s to 2.5 s from the plan's beginning");
    }

    #[test]
    fn spans_name_the_second_day_only_where_it_is_another() {
        let axis = axis(LATE, Some(0), 7_200.0);
        let to = |seconds| axis.span(LATE, LATE.plus(Micros::from_secs(seconds)));
        assert_eq!(to(61), "2026-11-22 22:10:00 to 22:11:01 UTC");
        assert_eq!(to(7_200), "2026-11-22 22:10:00 to 2026-11-23 00:10:00 UTC");
    }

    #[test]
    fn ticks_are_few_however_long_the_plan_is() {
        for end_s in [0.5, 1.0, 11.0, 12.0, 100.0, 5e3, 86_400.0, 86_401.0, 1e6, 1e9, 1.8e13] {
            for from in [Timestamp(0), LATE, Timestamp(u64::MAX)] {
                let axis = axis(from, Some(3_600), end_s);
                let ticks = axis.ticks();
                assert!(ticks.len() <= 13 && ticks.iter().all(|at| (0.0..=end_s).contains(at)), "{end_s}: {ticks:?}");
                assert!(labels(&axis).iter().all(|label| !label.is_empty()));
            }
        }
    }
}
