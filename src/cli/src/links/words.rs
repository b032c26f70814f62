//! What links and their users are in words: loads, whose they are, and which links are down.

use super::super::output;
use hintd::findings::outage;
use hintd_client::view::load_source;
use hintd_client::wire::v1;

/// Of both ways the greater load, of the capacity.
pub(crate) fn share(link: &v1::LinkView) -> f64 {
    link.a_to_b_bits_per_s.max(link.b_to_a_bits_per_s) as f64 / link.bits_per_s.max(1) as f64
}

pub(crate) fn is_measured(link: &v1::LinkView) -> bool {
    link.load_source() == v1::LoadSource::Measured
}

/// A load that was measured longer ago says little of now; the page fades it from then on.
pub(super) const OLD_MS: u64 = 15_000;

/// What stands before modelled loads: one that is measured, and not long ago. A link that is down has no load.
pub(crate) fn measured_now(link: &v1::LinkView) -> bool {
    link.up && is_measured(link) && link.load_age_ms.is_none_or(|age| age <= OLD_MS)
}

/// `measured 2.5 s ago`, `modelled`
pub(crate) fn load_from(source: v1::LoadSource, age_ms: Option<u64>) -> String {
    let source = load_source(source).unwrap_or("-");
    age_ms.map_or_else(|| source.to_owned(), |ms| format!("{source} {} ago", output::age(ms)))
}

/// Why a link has no users, in words.
pub(crate) fn no_users(reason: &str) -> &str {
    match reason {
        "others" => "others, unknown to hintd",
        "no_load" => "nobody",
        "down" => "nobody: it is down",
        "" => "-",
        other => other,
    }
}

/// Links named where one line tells of those that are down.
const DOWN_NAMED: usize = 2;

/// `: l1 for 50 s, since 04:35:20 UTC (as sdn.ryu said; before it carried 900 Mbit/s), …` and how many more of `all` there are.
pub(crate) fn named_down(down: &[v1::DownLinkView], all: u32) -> String {
    let name = |link: &v1::DownLinkView| {
        let told = outage::by_whom(&link.said_by, link.load_before.as_ref(), 0);
        format!("{} for {} ({told})", link.id, outage::lasting(link.down_ms, link.down_at_ms))
    };
    let named = down.iter().take(DOWN_NAMED).map(name).collect::<Vec<_>>();
    match (all as usize).saturating_sub(named.len()) {
        _ if named.is_empty() => String::new(),
        0 => format!(": {}", named.join(", ")),
        more => format!(": {} and {more} more", named.join(", ")),
    }
}

/// As [`load`], with a `~` before what is modelled and not measured.
pub(crate) fn marked_load(source: v1::LoadSource, rate: u64) -> String {
    format!("{}{}", mark(source, rate as f64), output::rate(rate as f64))
}

pub(super) fn mark(source: v1::LoadSource, load: f64) -> &'static str {
    if source == v1::LoadSource::Modelled && load > 0.0 { "~" } else { "" }
}

/// The directions, as they are written behind a figure.
pub(super) const WAYS: [&str; 2] = ["a>b", "b>a"];

/// The directions that are most loaded, as the daemon says; one of before does not say it, and then each that carries something
/// is. 0 is from a to b.
fn full_ways(link: &v1::LinkView) -> impl Iterator<Item = usize> + use<> {
    let full = match &link.fullness {
        Some(fullness) => [fullness.a_to_b_full, fullness.b_to_a_full],
        None => [link.a_to_b_bits_per_s > 0, link.b_to_a_bits_per_s > 0],
    };
    (0..2).filter(move |way| full[*way])
}

/// Whether a user has a part in what fills the link, as the daemon says; of one of before each user is named.
pub(crate) fn fills(link: &v1::LinkView, user: &v1::LinkUser) -> bool {
    user.fills || link.fullness.is_none()
}

fn bytes_of(user: &v1::LinkUser) -> [u64; 2] {
    [user.a_to_b_bytes, user.b_to_a_bytes]
}

/// `320 Mbit/s a>b`: of what is measured the part that is of no flow, where it is worth being named.
pub(crate) fn unknown_rates(link: &v1::LinkView) -> Option<String> {
    let rest = [link.a_to_b_unaccounted_bits_per_s, link.b_to_a_unaccounted_bits_per_s];
    let told = match &link.fullness {
        Some(fullness) => [fullness.a_to_b_unknown, fullness.b_to_a_unknown],
        None => rest.map(|rest| rest > 0),
    };
    let way = |way: usize| format!("{} {}", output::rate(rest[way] as f64), WAYS[way]);
    let ways: Vec<String> = (0..2).filter(|at| told[*at]).map(way).collect();
    (!ways.is_empty()).then(|| ways.join(" + "))
}

/// `unknown 320 Mbit/s a>b (no flow: files read or written, or others)`
pub(crate) fn unknown(link: &v1::LinkView) -> Option<String> {
    unknown_rates(link).map(|rates| format!("unknown {rates} (no flow: files read or written, or others)"))
}

/// `application 1.2 GB a>b (~1 Gbit/s, above measured)`, in the directions that are most loaded
pub(crate) fn user_text(link: &v1::LinkView, user: &v1::LinkUser) -> String {
    let (bytes, rates) = (bytes_of(user), [user.a_to_b_bits_per_s, user.b_to_a_bits_per_s]);
    let way = |way: usize| {
        let wrong = if user.above_measured { ", above measured" } else { "" };
        let rate = match rates[way] {
            0 => "rate unknown".to_owned(),
            rate => marked_load(v1::LoadSource::Modelled, rate),
        };
        format!("{} {} ({rate}{wrong})", output::bytes(bytes[way] as f64), WAYS[way])
    };
    let told: Vec<String> = full_ways(link).filter(|way| bytes[*way] > 0).map(way).collect();
    if told.is_empty() {
        let wrong = if user.above_measured { " (above measured)" } else { "" };
        return format!("{} {}{wrong}", user.application_id, ways(user));
    }
    format!("{} {}", user.application_id, told.join(" + "))
}

/// `~1 Gbit/s a>b + ~2 Gbit/s b>a`; a daemon of before told no directions.
fn ways(user: &v1::LinkUser) -> String {
    let ways = [(user.a_to_b_bits_per_s, " a>b"), (user.b_to_a_bits_per_s, " b>a")];
    let known: Vec<String> = ways
        .into_iter()
        .filter(|(rate, _)| *rate > 0)
        .map(|(rate, way)| format!("{}{way}", marked_load(v1::LoadSource::Modelled, rate)))
        .collect();
    match known.as_slice() {
        [] => marked_load(v1::LoadSource::Modelled, user.bits_per_s),
        known => known.join(" + "),
    }
}
