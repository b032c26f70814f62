//! What links and their users are in words: loads, whose they are, and which links are down.

use super::super::output;
use hintd::findings::outage;
use hintd_client::view::load_source;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

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

const fn rates_of(user: &v1::LinkUser) -> [u64; 2] {
    [user.a_to_b_bits_per_s, user.b_to_a_bits_per_s]
}

const fn loads_of(link: &v1::LinkView) -> [u64; 2] {
    [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s]
}

/// In which directions the model has more of a user than is measured of all: there it does not send now, or the model is wrong. The
/// daemon's `above_measured` says only that there is such a direction.
pub(crate) fn above_measured(link: &v1::LinkView, user: &v1::LinkUser) -> [bool; 2] {
    let (rates, loads) = (rates_of(user), loads_of(link));
    [0, 1].map(|way| is_measured(link) && user.above_measured && rates[way] > loads[way])
}

/// The direction that is more loaded: 0 is from a to b.
pub(crate) fn busier(link: &v1::LinkView) -> usize {
    usize::from(link.b_to_a_bits_per_s > link.a_to_b_bits_per_s)
}

/// Of the directions in which a user sends the more loaded one; a daemon of before told no directions, and there the link's is
/// taken.
fn way_of(link: &v1::LinkView, user: &v1::LinkUser) -> usize {
    let (rates, bytes) = (rates_of(user), bytes_of(user));
    match [0, 1].map(|way| rates[way] > 0 || bytes[way] > 0) {
        [true, false] => 0,
        [false, true] => 1,
        _ => busier(link),
    }
}

/// A link that an application sends over, in the direction in which it does.
#[derive(Clone, Copy)]
pub(crate) struct Sends<'a> {
    pub(crate) link: &'a v1::LinkView,
    /// 0 is from a to b. The figures below are of it.
    pub(crate) way: usize,
    /// The link's load, of its capacity.
    pub(crate) share: f64,
    /// What it sends itself, as it is modelled.
    pub(crate) bits_per_s: u64,
}

impl<'a> Sends<'a> {
    fn of(link: &'a v1::LinkView, user: &v1::LinkUser) -> Self {
        let (way, rates) = (way_of(link, user), rates_of(user));
        let bits_per_s = if rates == [0, 0] { user.bits_per_s } else { rates[way] };
        let share = loads_of(link)[way] as f64 / link.bits_per_s.max(1) as f64;
        Self { link, way, share, bits_per_s }
    }

    /// The busier link is the greater one, and what is measured is greater than what is modelled. Shares count by whole percent: of
    /// links that are as full the one over which it sends most says more.
    pub(crate) fn rank(&self) -> (bool, u64, u64) {
        (measured_now(self.link), (self.share * 100.0).round() as u64, self.bits_per_s)
    }

    /// The ends, in the direction in which it sends.
    pub(crate) fn ends(&self) -> [&'a str; 2] {
        let [a, b] = [self.link.a.as_str(), self.link.b.as_str()];
        if self.way == 0 { [a, b] } else { [b, a] }
    }
}

/// Of each application the busiest link that it sends over, of equals the first. A link that is down carries nothing.
pub(crate) fn busiest(links: &[v1::LinkView]) -> BTreeMap<&str, Sends<'_>> {
    let mut busiest: BTreeMap<&str, Sends<'_>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.up) {
        for user in &link.users {
            let this = Sends::of(link, user);
            let known = busiest.entry(&user.application_id).or_insert(this);
            if this.rank() > known.rank() {
                *known = this;
            }
        }
    }
    busiest
}

/// Of those who have a part in what fills the link, the one with the greatest rate in the direction that is more loaded; of equals
/// the one of which the daemon tells first, by bytes.
pub(crate) fn largest(link: &v1::LinkView) -> Option<&v1::LinkUser> {
    let way = busier(link);
    link.users.iter().rev().filter(|user| fills(link, user)).max_by_key(|user| rates_of(user)[way])
}

/// A user's part of the load in that direction, as it is modelled; above 1: more than is measured. `None`: its rate is not known.
pub(crate) fn part(link: &v1::LinkView, user: &v1::LinkUser) -> Option<f64> {
    let way = busier(link);
    let (rate, load) = (rates_of(user)[way], loads_of(link)[way]);
    (rate > 0 && load > 0).then(|| rate as f64 / load as f64)
}

/// The part of the load in that direction that is nobody's whom hintd knows, where it is worth being named.
pub(crate) fn unknown_part(link: &v1::LinkView) -> Option<f64> {
    let way = busier(link);
    let rest = [link.a_to_b_unaccounted_bits_per_s, link.b_to_a_unaccounted_bits_per_s][way];
    let is_told = match &link.fullness {
        Some(fullness) => [fullness.a_to_b_unknown, fullness.b_to_a_unknown][way],
        None => rest > 0,
    };
    let load = loads_of(link)[way];
    (is_told && load > 0).then(|| (rest as f64 / load as f64).min(1.0))
}

/// `97 % a>b`: the direction that is more loaded, and its age where that is not of now; `DOWN 41 s`.
pub(crate) fn busier_load(link: &v1::LinkView) -> String {
    if !link.up {
        return link.down_ms.map_or_else(|| "DOWN".to_owned(), |ms| format!("DOWN {}", output::age(ms)));
    }
    let flaps = if link.damped { ", flaps" } else { "" };
    let age = link.load_age_ms.filter(|age| is_measured(link) && *age > OLD_MS);
    let age = age.map_or_else(String::new, |age| format!(", {} old", output::age(age)));
    let way = if share(link) > 0.0 { format!(" {}", WAYS[busier(link)]) } else { String::new() };
    format!("{}{}{way}{age}{flaps}", mark(link.load_source(), share(link)), output::percent(share(link)))
}

/// How an application is called where there is little room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    /// `application_1700000000000_0007`
    Whole,
    /// `…1700000000000_0007`
    Number,
    /// `…_0007`
    Last,
}

impl Called {
    /// The longest first.
    pub(crate) const ALL: [Self; 3] = [Self::Whole, Self::Number, Self::Last];

    fn of(self, id: &str) -> String {
        let number = id.strip_prefix("application_").filter(|_| self != Self::Whole);
        match (number, number.and_then(|number| number.rsplit_once('_'))) {
            (Some(_), Some((_, last))) if self == Self::Last => format!("…_{last}"),
            (Some(number), _) => format!("…{number}"),
            _ => id.to_owned(),
        }
    }
}

/// `unknown 90 %, application_… 6 %, 2 more`: whose that load is, the largest part first, in few words.
pub(crate) fn whose(link: &v1::LinkView, called: Called) -> String {
    let user = largest(link);
    let named = user.map(|user| {
        let part = part(link, user);
        let told = match part {
            Some(part) if part > 1.0 => ">100 %".to_owned(),
            Some(part) => output::percent(part),
            None => "rate unknown".to_owned(),
        };
        (part.unwrap_or(0.0), format!("{} {told}", called.of(&user.application_id)))
    });
    let unknown = unknown_part(link).map(|part| (part, format!("unknown {}", output::percent(part))));
    let mut parts: Vec<(f64, String)> = unknown.into_iter().chain(named).collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut told: Vec<String> = parts.into_iter().map(|(_, told)| told).collect();
    let more = (link.users_total as usize).saturating_sub(usize::from(user.is_some()));
    if more > 0 {
        told.push(format!("{more} more"));
    }
    if told.is_empty() { no_users(&link.users_reason).to_owned() } else { told.join(", ") }
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
    let (bytes, rates, above) = (bytes_of(user), rates_of(user), above_measured(link, user));
    let way = |way: usize| {
        let wrong = if above[way] { ", above measured" } else { "" };
        let rate = match rates[way] {
            0 => "rate unknown".to_owned(),
            rate => marked_load(v1::LoadSource::Modelled, rate),
        };
        format!("{} {} ({rate}{wrong})", output::bytes(bytes[way] as f64), WAYS[way])
    };
    let told: Vec<String> = full_ways(link).filter(|way| bytes[*way] > 0).map(way).collect();
    let told = if told.is_empty() { ways(user, above) } else { told.join(" + ") };
    format!("{} {told}", user.application_id)
}

/// `~1 Gbit/s a>b (above measured) + ~2 Gbit/s b>a`; a daemon of before told no directions.
fn ways(user: &v1::LinkUser, above: [bool; 2]) -> String {
    let rates = rates_of(user);
    let way = |way: usize| {
        let wrong = if above[way] { " (above measured)" } else { "" };
        format!("{} {}{wrong}", marked_load(v1::LoadSource::Modelled, rates[way]), WAYS[way])
    };
    let known: Vec<String> = (0..2).filter(|at| rates[*at] > 0).map(way).collect();
    match known.as_slice() {
        [] => marked_load(v1::LoadSource::Modelled, user.bits_per_s),
        known => known.join(" + "),
    }
}
