//! A link's outage in words: since when, by whose word, and what was on the link before.

use super::quantities::{age, moment, percent, rate, time_of_day};
use hintd_client::wire::v1;

/// Within this time a time of day says which day's it is.
const DAY_MS: u64 = 86_400_000;

/// `50 s, since 04:35:20 UTC`; a daemon of before does not say since when.
#[must_use]
pub fn lasting(for_ms: u64, at_ms: u64) -> String {
    match at_ms {
        0 => age(for_ms),
        at if for_ms < DAY_MS => format!("{}, since {}", age(for_ms), time_of_day(at)),
        at => format!("{}, since {}", age(for_ms), moment(at)),
    }
}

/// `1 Gbit/s (90 %)`: what was measured in its busier direction last before it went; `None`: nothing was. `capacity`: 0 where it is
/// not known.
#[must_use]
pub fn before(load: Option<&v1::LoadBefore>, capacity: u64) -> Option<String> {
    let load = load?;
    let busier = load.a_to_b_bits_per_s.max(load.b_to_a_bits_per_s) as f64;
    Some(match capacity {
        0 => rate(busier),
        capacity => format!("{} ({})", rate(busier), percent(busier / capacity as f64)),
    })
}

/// `as ryu said; before it carried 1 Gbit/s (90 %)`; empty where neither is known.
#[must_use]
pub fn by_whom(said_by: &str, load: Option<&v1::LoadBefore>, capacity: u64) -> String {
    let said = (!said_by.is_empty()).then(|| format!("as {said_by} said"));
    let carried = before(load, capacity).map(|load| format!("before it carried {load}"));
    said.into_iter().chain(carried).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_says_since_when_by_whose_word_and_what_was_on_the_link_as_far_as_is_known() {
        let at = 1_795_843_810_000;
        assert_eq!(lasting(50_000, at), "50 s, since 05:30:10 UTC");
        assert_eq!(lasting(DAY_MS, at), "86400 s, since 2026-11-28 05:30:10 UTC");
        assert_eq!(lasting(50_000, 0), "50 s");
        let load = v1::LoadBefore { a_to_b_bits_per_s: 2, b_to_a_bits_per_s: 900_000_000, before_ms: 300 };
        assert_eq!(by_whom("ryu", Some(&load), 1_000_000_000), "as ryu said; before it carried 900 Mbit/s (90 %)");
        assert_eq!(by_whom("", Some(&load), 0), "before it carried 900 Mbit/s");
        assert_eq!([by_whom("ryu", None, 0), by_whom("", None, 0)], ["as ryu said", ""]);
    }
}
