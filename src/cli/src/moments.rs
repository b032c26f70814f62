//! Moments as people read and write them: in UTC, as the daemon's log has them.

use super::failure::Failure;
use super::output;
use clap::Args;
pub(super) use hintd::findings::quantities::{moment, time_of_day};
use hintd_model::units::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;
/// `--at` means so much before and after.
const AROUND_MS: u64 = 5 * 60_000;

/// From when to when.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WhenArgs {
    /// Only since then: for a time (90s, 10m, 2h, 1d), or from a moment on, as for --at
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only within five minutes of that moment in UTC: 04:35, the last time that it was, 04:35:20, or 2026-11-28T04:35
    #[arg(long, value_name = "MOMENT", conflicts_with = "since")]
    at: Option<String>,
}

impl WhenArgs {
    /// From when to when, milliseconds since 1970; 0: without a bound.
    ///
    /// # Errors
    /// [`Failure::Input`] for what is no time.
    pub(super) fn bounds(&self) -> Result<(u64, u64), Failure> {
        self.bounds_at(now_ms())
    }

    fn bounds_at(&self, now_ms: u64) -> Result<(u64, u64), Failure> {
        let wrong = |option: &str, text: &str, as_in: &str| {
            Failure::Input(format!("{option}: {text:?} is no time as in {as_in}; moments are in UTC"))
        };
        if let Some(text) = &self.since {
            let span = span_ms(text).map(|span| now_ms.saturating_sub(span));
            let from = span.or_else(|| moment_ms(text, now_ms));
            return Ok((from.ok_or_else(|| wrong("--since", text, "10m or 04:35"))?.max(1), 0));
        }
        let Some(text) = &self.at else { return Ok((0, 0)) };
        let at = moment_ms(text, now_ms).ok_or_else(|| wrong("--at", text, "04:35 or 2026-11-28T04:35"))?;
        Ok((at.saturating_sub(AROUND_MS).max(1), at.saturating_add(AROUND_MS)))
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// `10m`
fn span_ms(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let unit = match &text[digits..] {
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

/// `04:35` is the last one before now; a date makes it another.
fn moment_ms(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    if let Some((date, time)) = text.split_once(['T', ' ']) {
        return day_ms(date)?.checked_add(of_day_ms(time)?);
    }
    let of_day = of_day_ms(text)?;
    let today = now_ms / DAY_MS * DAY_MS + of_day;
    if today <= now_ms { Some(today) } else { today.checked_sub(DAY_MS) }
}

fn of_day_ms(text: &str) -> Option<u64> {
    let parts: Vec<u64> = numbers(text, ':')?;
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    (hour < 24 && minute < 60 && second < 60).then(|| (hour * 3_600 + minute * 60 + second) * 1_000)
}

fn day_ms(text: &str) -> Option<u64> {
    let [year, month, day] = numbers(text, '-')?[..] else { return None };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The calendar is the model's, which goes the other way: the day is looked for, from the first that it can be.
    let first = (year - 1970) * 365;
    let is_it = |at: &u64| {
        let found = Timestamp(at * DAY_MS * 1_000).calendar(0);
        (found.year, found.month, found.day) == (year, month, day)
    };
    (first..first + 366 + (year - 1970) / 4 + 1).find(is_it).map(|at| at * DAY_MS)
}

fn numbers(text: &str, between: char) -> Option<Vec<u64>> {
    let number = |part: &str| part.chars().all(|letter| letter.is_ascii_digit()).then(|| part.parse().ok())?;
    text.split(between).map(number).collect()
}

/// A moment and how long ago that is, by the daemon's clock; a daemon of before, which does not say that, sends 0.
pub(super) fn moment_and_age(ms: u64, age_ms: u64) -> String {
    match age_ms {
        0 => moment(ms),
        age_ms => format!("{}, {} ago", moment(ms), output::age(age_ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-28 05:30:10 UTC.
    const NOW: u64 = 1_795_843_810_000;

    fn bounds(since: Option<&str>, at: Option<&str>) -> Result<(u64, u64), String> {
        let [since, at] = [since, at].map(|text| text.map(str::to_owned));
        WhenArgs { since, at }.bounds_at(NOW).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_moment_is_written_as_it_is_read() {
        assert_eq!(moment(NOW), "2026-11-28 05:30:10 UTC");
        assert_eq!(moment(0), "-");
        assert_eq!(moment_and_age(NOW, 90_000), "2026-11-28 05:30:10 UTC, 90 s ago");
        assert_eq!(moment_and_age(NOW, 0), "2026-11-28 05:30:10 UTC", "and not 0 s ago, of a daemon that does not say");
        for text in ["2026-11-28T05:30:10Z", "2026-11-28 05:30:10", "05:30:10"] {
            assert_eq!(moment_ms(text, NOW), Some(NOW), "{text}");
        }
        assert_eq!(moment_ms("2024-02-29T00:00", NOW).map(moment).as_deref(), Some("2024-02-29 00:00:00 UTC"));
        assert_eq!(moment_ms("9999-12-31T00:00", NOW).map(moment).as_deref(), Some("9999-12-31 00:00:00 UTC"));
    }

    #[test]
    fn since_and_at_are_bounds_and_what_is_no_time_is_refused_with_what_is() {
        assert_eq!(bounds(None, None), Ok((0, 0)));
        assert_eq!(bounds(Some("10m"), None), Ok((NOW - 600_000, 0)));
        assert_eq!(bounds(Some("1d"), None), Ok((NOW - DAY_MS, 0)));
        let of_day = NOW - 10_000;
        assert_eq!(bounds(Some("05:30"), None), Ok((of_day, 0)));
        assert_eq!(bounds(None, Some("05:30")), Ok((of_day - AROUND_MS, of_day + AROUND_MS)));
        let yesterday = of_day - DAY_MS + 60_000;
        assert_eq!(bounds(Some("05:31"), None), Ok((yesterday, 0)), "it has not been today");
        for wrong in ["", "10", "25:00", "04:60", "2026-02-30T04:35", "2026-13-01T00:00", "now", "+5:30", "10w"] {
            assert!(bounds(Some(wrong), None).unwrap_err().starts_with("--since: "), "{wrong}");
            assert!(bounds(None, Some(wrong)).unwrap_err().contains("2026-11-28T04:35; moments are in UTC"), "{wrong}");
        }
    }
}
