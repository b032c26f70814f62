//! Quantities as people write them.

use hintd_model::units::{Calendar, Timestamp};

/// Bytes, three digits: `1.23 GB` (decimal, as links count).
#[must_use]
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1e3, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// Bits per second: `10 Gbit/s`.
#[must_use]
pub fn rate(bits_per_s: f64) -> String {
    scaled(bits_per_s, 1e3, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s"])
}

/// Seconds, in the unit that reads best: `340 us`, `2.1 ms`, `1.5 s`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    if seconds == 0.0 {
        "0 s".to_owned()
    } else if seconds > 0.0 && seconds < 1e-6 {
        "<1 us".to_owned() // an estimate: no clock of this program tells less
    } else if seconds >= 1.0 {
        format!("{} s", digits(seconds))
    } else if seconds >= 1e-3 {
        format!("{} ms", digits(seconds * 1e3))
    } else {
        format!("{} us", digits(seconds * 1e6))
    }
}

/// For how long something has been so, from milliseconds: `1.2 s`; `<1 ms` of what has only just begun.
#[must_use]
pub fn age(ms: u64) -> String {
    if ms == 0 { "<1 ms".to_owned() } else { seconds(ms as f64 / 1e3) }
}

/// A time that was set, in the greatest unit of which it is two or more: `60 s`, `30 min`, `12 h`, `7 d`.
#[must_use]
pub fn whole_time(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min")];
    let whole = units.iter().find(|(unit, _)| ms.is_multiple_of(*unit) && ms / unit >= 2);
    whole.map_or_else(|| seconds(ms as f64 / 1e3), |(unit, name)| format!("{} {name}", ms / unit))
}

/// `2026-11-28 04:35:20 UTC`, from milliseconds since 1970; `-` for 0, which nobody knows.
#[must_use]
pub fn moment(ms: u64) -> String {
    if ms == 0 {
        return "-".to_owned();
    }
    let Calendar { year, month, day, .. } = Timestamp(ms.saturating_mul(1_000)).calendar(0);
    format!("{year:04}-{month:02}-{day:02} {}", time_of_day(ms))
}

/// `04:35:20 UTC`
#[must_use]
pub fn time_of_day(ms: u64) -> String {
    let Calendar { hour, minute, second, .. } = Timestamp(ms.saturating_mul(1_000)).calendar(0);
    format!("{hour:02}:{minute:02}:{second:02} UTC")
}

/// Three significant digits, no needless zeros.
#[must_use]
pub fn digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(6);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A share in whole percent; what is rounded to nothing has no sign.
#[must_use]
pub fn percent(share: f64) -> String {
    let text = format!("{:.0} %", share * 100.0);
    text.strip_prefix("-0 ").map_or_else(|| text.clone(), |rest| format!("0 {rest}"))
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (first, mut value, mut unit) = (units[0], value, 0);
    // There is no part of a byte or of a bit: it comes of means.
    if value > 0.0 && value < 1.0 {
        return format!("<1 {first}");
    }
    if value < step * 0.9995 {
        return format!("{value:.0} {first}");
    }
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!([bytes(0.0), bytes(999.0), bytes(1234567.0)], ["0 B", "999 B", "1.23 MB"]);
        assert_eq!(bytes(999_999.0), "1 MB");
        assert_eq!(rate(1e10), "10 Gbit/s");
        assert_eq!([seconds(0.0), seconds(0.0123), seconds(2.5)], ["0 s", "12.3 ms", "2.5 s"]);
        assert_eq!(digits(100.0), "100");
        assert_eq!([digits(-0.0), digits(-1e-9), digits(-0.5)], ["0", "0", "-0.5"]);
        assert_eq!([percent(-0.003), percent(-0.006), percent(0.126)], ["0 %", "-1 %", "13 %"]);
        assert_eq!([bytes(0.477), bytes(1.0), rate(0.2)], ["<1 B", "1 B", "<1 bit/s"]);
        assert_eq!([bytes(45.7), bytes(999.4), rate(12.25)], ["46 B", "999 B", "12 bit/s"]);
        assert_eq!([seconds(6.33e-8), seconds(1e-6)], ["<1 us", "1 us"]);
        assert_eq!([age(0), age(1), age(1_500)], ["<1 ms", "1 ms", "1.5 s"]);
        let times = [60_000, 90_000, 1_800_000, 43_200_000, 604_800_000].map(whole_time);
        assert_eq!(times, ["60 s", "90 s", "30 min", "12 h", "7 d"]);
    }
}
