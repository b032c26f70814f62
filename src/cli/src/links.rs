//! `hintctl links`: capacity and load of links, and who uses them.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::sorting::{Cell, Column, SortArgs};
use super::view::{Format, ViewArgs};
use clap::Args;
use hintd_client::view::load_source;
use hintd_client::wire::v1;

/// Which links.
#[derive(Debug, Args)]
#[command(
    override_usage = "hintctl links [OPTIONS]\n       hintctl links [OPTIONS] [ID]",
    after_help = "Examples:\n  hintctl links --down\n  hintctl links --sort -load\n  hintctl links edge-0-core-1\n  \
    hintctl --json links | jq -r '.links[] | select(.a_to_b_bits_per_s > 0.8 * .bits_per_s) | .id'\n\n\
    A load is measured where the link_stats feed told it, with its age, else modelled (~): max-min fair rates of flows on their\n\
    routes, which fill some link whenever anybody sends. A flow is there from the hint on, before its containers run, until its\n\
    application is over: hints that nobody followed yet, or a request of hintctl's, load links as well. --sort -load has what\n\
    was measured in the last 15 s first, then the rest. Pairs of tasks whose bytes are not known, or are 0, load no link. Users\n\
    are always modelled: the link is measured, and not whose bytes they are. a>b is from the link's end a to its end b. A user\n\
    above what is measured does not send yet, or no longer, or the model is wrong there. Users come by the bytes of their flows\n\
    in the direction that is more loaded, and the table names only those that send that way. Unknown is what is\n\
    measured and is nobody's flow: files that are read or written, and who did not ask for hints. Flows are where task events say that\n\
    containers came, and until then where they were hinted. No flow is above what its bytes fill for a second. Recurring jobs without flows, as\n\
    stock MapReduce, are told by the bytes of earlier runs, on hosts' links and racks' uplinks; what is measured and not of\n\
    flows is divided among them.\n\n\
    Of a link that is down hintctl links ID names the applications whose routes it carried when it went down, and whether these\n\
    have other paths now. Named are routes that a controller installed, and those of hosts that the link alone joined to the rest.\n\
    A link that flaps went down and up more often than routes.flaps allows: new routes avoid it until it was quiet."
)]
pub struct LinksArgs {
    /// Only this link
    #[arg(value_name = "ID", conflicts_with_all = ["down", "limit", "link"])]
    id: Option<String>,
    /// The same
    #[arg(long, value_name = "ID", conflicts_with_all = ["down", "limit"])]
    link: Option<String>,
    /// Only links that are down
    #[arg(long)]
    down: bool,
    /// Show at most LIMIT; 0: all
    #[arg(long, default_value_t = 0)]
    limit: u32,
    /// Users named of each link, greatest first; 0: all [default: 3; with --link or --json all]
    #[arg(long)]
    users: Option<u32>,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// Users named in a row of the table.
const USERS_SHOWN: u32 = 3;

/// `hintctl links`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it has no such link.
pub fn links(args: &LinksArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let script = matches!(args.view.format(output)?, Format::Json | Format::Yaml);
    let link = args.id.as_ref().or(args.link.as_ref());
    let every = script || link.is_some();
    let order = args.sort.of(LINK_COLUMNS, args.limit)?;
    let request = v1::LinksRequest {
        down_only: args.down,
        limit: order.asks(),
        link: link.cloned().unwrap_or_default(),
        users: args.users.unwrap_or(if every { 0 } else { USERS_SHOWN }),
    };
    let ask = async |mut admin: hintd_client::AdminClient| {
        order.answer(admin.links(request.clone()).await, |found| (&mut found.links, found.total.into()))
    };
    let text = |answer: &v1::LinksResponse, wide| match answer.links.as_slice() {
        [only] if link.is_some() => link_text(only),
        links => links_text(links, answer.total, wide || order.is_wide(&shown())),
    };
    args.view.show(daemon, output, ask, text).map(drop)
}

const LINK_COLUMNS: &[Column<v1::LinkView>] = &[
    ("link", |link| (&*link.id).into()),
    ("state", |link| state(link).into()),
    ("a", |link| (&*link.a).into()),
    ("b", |link| (&*link.b).into()),
    ("capacity", |link| link.bits_per_s.into()),
    ("a-to-b", |link| link.a_to_b_bits_per_s.into()),
    ("b-to-a", |link| link.b_to_a_bits_per_s.into()),
    ("load|busier-way", |link| Cell::Graded(u8::from(!measured_now(link)), share(link))),
    ("load-from", |link| load_source(link.load_source()).into()),
    ("load-age", |link| link.load_age_ms.into()),
    ("pairs-a-to-b", |link| link.a_to_b_task_pairs.into()),
    ("pairs-b-to-a", |link| link.b_to_a_task_pairs.into()),
    ("users", |link| (link.users_total > 0).then_some(link.users_total).into()),
    ("down-for", |link| link.down_ms.into()),
];

const LINK_HEADER: [&str; 10] =
    ["link", "state", "users", "load from", "load", "capacity", "a to b", "b to a", "pairs a to b", "pairs b to a"];

/// What its columns show: `state` says since when as well, `load from` how old a load is.
fn shown() -> Vec<&'static str> {
    [&LINK_HEADER[..], &["down for", "load age"]].concat()
}

/// Of both ways the greater load, of the capacity.
pub(super) fn share(link: &v1::LinkView) -> f64 {
    link.a_to_b_bits_per_s.max(link.b_to_a_bits_per_s) as f64 / link.bits_per_s.max(1) as f64
}

pub(super) fn is_measured(link: &v1::LinkView) -> bool {
    link.load_source() == v1::LoadSource::Measured
}

/// A load that was measured longer ago says little of now; the page fades it from then on.
const OLD_MS: u64 = 15_000;

/// What stands before modelled loads: one that is measured, and not long ago. A link that is down has no load.
pub(super) fn measured_now(link: &v1::LinkView) -> bool {
    link.up && is_measured(link) && link.load_age_ms.is_none_or(|age| age <= OLD_MS)
}

/// `measured 2.5 s ago`, `modelled`
pub(super) fn load_from(source: v1::LoadSource, age_ms: Option<u64>) -> String {
    let source = load_source(source).unwrap_or("-");
    age_ms.map_or_else(|| source.to_owned(), |ms| format!("{source} {} ago", output::age(ms)))
}

/// Why a link has no users, in words.
pub(super) fn no_users(reason: &str) -> &str {
    match reason {
        "others" => "others, unknown to hintd",
        "no_load" => "nobody",
        "down" => "nobody: it is down",
        "" => "-",
        other => other,
    }
}

fn state(link: &v1::LinkView) -> &'static str {
    match (link.up, link.damped) {
        (false, _) => "DOWN",
        (true, true) => "up, flaps",
        (true, false) => "up",
    }
}

/// Since when as well, where it is down.
fn state_since(link: &v1::LinkView) -> String {
    match link.down_ms {
        Some(ms) => format!("{} {}", state(link), output::age(ms)),
        None => state(link).to_owned(),
    }
}

/// `, DOWN for 50 s, as sdn.ryu said`
fn state_in_words(link: &v1::LinkView) -> String {
    let said_by = if link.down_by.is_empty() { String::new() } else { format!(", as {} said", link.down_by) };
    link.down_ms
        .map_or_else(|| state(link).to_owned(), |ms| format!("{} for {}{said_by}", state(link), output::age(ms)))
}

fn damped(link: &v1::LinkView) -> &'static str {
    if link.damped { "; new routes avoid it until it was quiet for a while (routes.flaps_hold)" } else { "" }
}

/// Links named where one line tells of those that are down.
const DOWN_NAMED: usize = 2;

/// `: l1 for 50 s (as sdn.ryu said), …` and how many more of `all` there are.
pub(super) fn named_down(down: &[v1::DownLinkView], all: u32) -> String {
    let name =
        |link: &v1::DownLinkView| format!("{} for {} (as {} said)", link.id, output::age(link.down_ms), link.said_by);
    let named = down.iter().take(DOWN_NAMED).map(name).collect::<Vec<_>>();
    match (all as usize).saturating_sub(named.len()) {
        _ if named.is_empty() => String::new(),
        0 => format!(": {}", named.join(", ")),
        more => format!(": {} and {more} more", named.join(", ")),
    }
}

/// As [`load`], with a `~` before what is modelled and not measured.
pub(super) fn marked_load(source: v1::LoadSource, rate: u64) -> String {
    format!("{}{}", mark(source, rate as f64), output::rate(rate as f64))
}

fn mark(source: v1::LoadSource, load: f64) -> &'static str {
    if source == v1::LoadSource::Modelled && load > 0.0 { "~" } else { "" }
}

fn links_text(links: &[v1::LinkView], total: u32, wide: bool) -> String {
    let row = |link: &v1::LinkView| {
        let busier = match link.up {
            true => format!("{}{} %", mark(link.load_source(), share(link)), output::digits(share(link) * 100.0)),
            false => "-".to_owned(),
        };
        [
            link.id.clone(),
            state_since(link),
            users_line(link),
            load_from(link.load_source(), link.load_age_ms),
            busier,
            output::rate(link.bits_per_s as f64),
            marked_load(link.load_source(), link.a_to_b_bits_per_s),
            marked_load(link.load_source(), link.b_to_a_bits_per_s),
            link.a_to_b_task_pairs.to_string(),
            link.b_to_a_task_pairs.to_string(),
        ]
    };
    let table = if wide {
        let rows = links.iter().map(|link| {
            let [id, up, rest @ ..] = row(link);
            let [users, from, load, capacity, down, back, pairs, pairs_back] = rest;
            let (a, b, by) = (link.a.clone(), link.b.clone(), link.down_by.clone());
            [id, up, by, a, b, users, from, capacity, down, back, load, pairs, pairs_back]
        });
        let [id, up, users, from, load, capacity, down, back, pairs, pairs_back] = LINK_HEADER;
        let header = [id, up, "said by", "a", "b", users, from, capacity, down, back, load, pairs, pairs_back];
        output::table(header, 7, rows)
    } else {
        output::table(LINK_HEADER, 4, links.iter().map(row))
    };
    let measured = links.iter().filter(|link| is_measured(link)).count();
    let kinds = match (measured, links.len() - measured) {
        (_, 0) => String::new(),
        (0, _) => "; loads are modelled (~)".to_owned(),
        (measured, modelled) => format!("; {measured} loads are measured, {modelled} modelled (~)"),
    };
    format!("{table}\n{} of {total} links{kinds}", links.len())
}

/// `application ~rate a>b, …` and how many more; of a link that is down those whose routes it carried.
fn users_line(link: &v1::LinkView) -> String {
    if let Some(carried) = link.carried.as_ref().filter(|carried| carried.applications_total > 0) {
        let named = carried.applications.iter().take(USERS_SHOWN as usize).map(|of| of.application_id.clone());
        let mut named: Vec<String> = named.collect();
        match (carried.applications_total as usize).saturating_sub(named.len()) {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        return format!("was: {}", named.join(", "));
    }
    let mut named: Vec<String> =
        link.users.iter().filter(|user| fills(link, user)).map(|user| user_text(link, user)).collect();
    let more = (link.users_total as usize).saturating_sub(named.len());
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.extend(unknown(link));
    if named.is_empty() { no_users(&link.users_reason).to_owned() } else { named.join(", ") }
}

const WAYS: [&str; 2] = ["a>b", "b>a"];

/// A direction that is loaded as much as this part of the other counts as full as well.
const AS_FULL: f64 = 0.9;

/// The directions that are most loaded: 0 is from a to b.
fn full_ways(link: &v1::LinkView) -> impl Iterator<Item = usize> + use<> {
    let loads = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s].map(|load| load as f64);
    (0..2).filter(move |way| loads[*way] >= AS_FULL * loads[1 - way])
}

/// A user with less than this part of a measured load does not make it.
const NAMED_FROM: f64 = 0.01;

/// Whether a user has a part in what fills the link; a daemon of before told no bytes.
pub(super) fn fills(link: &v1::LinkView, user: &v1::LinkUser) -> bool {
    let (bytes, rates) = (bytes_of(user), [user.a_to_b_bits_per_s, user.b_to_a_bits_per_s]);
    let loads = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s];
    let much = |way: usize| !is_measured(link) || rates[way] as f64 >= NAMED_FROM * loads[way] as f64;
    bytes == [0; 2] || full_ways(link).any(|way| bytes[way] > 0 && much(way))
}

fn bytes_of(user: &v1::LinkUser) -> [u64; 2] {
    [user.a_to_b_bytes, user.b_to_a_bytes]
}

/// What of a measured load is no user's is told from this part of it on.
const UNKNOWN_FROM: f64 = 0.1;

/// `unknown 320 Mbit/s a>b (files read or written, or others)`
pub(super) fn unknown(link: &v1::LinkView) -> Option<String> {
    let rest = [link.a_to_b_unaccounted_bits_per_s, link.b_to_a_unaccounted_bits_per_s];
    let loads = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s];
    let told = |way: &usize| rest[*way] > 0 && rest[*way] as f64 >= UNKNOWN_FROM * loads[*way] as f64;
    let ways: Vec<String> =
        full_ways(link).filter(told).map(|way| format!("{} {}", output::rate(rest[way] as f64), WAYS[way])).collect();
    (!ways.is_empty()).then(|| format!("unknown {} (files read or written, or others)", ways.join(" + ")))
}

/// `application 1.2 GB a>b (~1 Gbit/s, above measured)`, in the directions that are most loaded
pub(super) fn user_text(link: &v1::LinkView, user: &v1::LinkUser) -> String {
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

fn link_text(link: &v1::LinkView) -> String {
    let source = link.load_source();
    let direction = |from: &str, to: &str, rate: u64, modelled: u64, pairs: u64| {
        let share = output::digits(rate as f64 * 100.0 / link.bits_per_s.max(1) as f64);
        let wrong = match is_measured(link) && modelled > rate {
            true => format!(
                "; the model has {}, with flows that do not send now",
                marked_load(v1::LoadSource::Modelled, modelled)
            ),
            false => String::new(),
        };
        format!("{from} to {to}: {} ({share} %), {pairs} task pairs{wrong}", marked_load(source, rate))
    };
    let [down, back] = [link.a_to_b_modelled_bits_per_s, link.b_to_a_modelled_bits_per_s];
    let mut lines = vec![output::pairs(&[
        ("link", format!("{}, {}{}", link.id, state_in_words(link), damped(link))),
        ("capacity", format!("{} each way", output::rate(link.bits_per_s as f64))),
        ("load", load_from(source, link.load_age_ms)),
        ("", direction(&link.a, &link.b, link.a_to_b_bits_per_s, down, link.a_to_b_task_pairs)),
        ("", direction(&link.b, &link.a, link.b_to_a_bits_per_s, back, link.b_to_a_task_pairs)),
    ])];
    if link.users_total > 0 {
        let sends = |bytes: u64, rate: u64| match bytes {
            0 if rate == 0 => "-".to_owned(),
            0 => marked_load(v1::LoadSource::Modelled, rate),
            _ if rate == 0 => output::bytes(bytes as f64),
            _ => format!("{}, {}", output::bytes(bytes as f64), marked_load(v1::LoadSource::Modelled, rate)),
        };
        let rows = link.users.iter().map(|user| {
            let wrong = if user.above_measured { "above what is measured" } else { "" };
            let down = sends(user.a_to_b_bytes, user.a_to_b_bits_per_s);
            let back = sends(user.b_to_a_bytes, user.b_to_a_bits_per_s);
            [user.application_id.clone(), wrong.to_owned(), down, back]
        });
        let (down, back) = (format!("{} to {}", link.a, link.b), format!("{} to {}", link.b, link.a));
        lines.push(format!("\n{}", output::table(["user (modelled)", "", &down, &back], 2, rows)));
        lines.push(format!(
            "{} of {} users; bytes are those of their flows from beginning to end",
            link.users.len(),
            link.users_total
        ));
        lines.extend(unknown(link));
    } else if !link.users_reason.is_empty() {
        lines.push(format!("users: {}", no_users(&link.users_reason)));
    }
    lines.extend(link.carried.as_ref().map(carried_text));
    lines.extend(link.last_outage.as_ref().map(outage_text));
    lines.join("\n")
}

/// `last outage: 50 s long, ended 2 min ago, as sdn.ryu said; when it went down: 12 routes over it, of application_…`
fn outage_text(outage: &v1::LastOutage) -> String {
    let v1::LastOutage { ended_ms, lasted_ms, said_by, carried } = outage;
    let said = if said_by.is_empty() { String::new() } else { format!(", as {said_by} said") };
    let carried = carried.as_ref().map_or_else(String::new, |carried| {
        let named: Vec<&str> = carried.applications.iter().map(|of| &*of.application_id).collect();
        let more = match (carried.applications_total as usize).saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whose = if named.is_empty() { String::new() } else { format!(", of {}{more}", named.join(", ")) };
        format!("; when it went down: {}{whose}", carried_in_words(carried))
    });
    format!("last outage: {} long, ended {} ago{said}{carried}", output::age(*lasted_ms), output::age(*ended_ms))
}

/// What it carried when it went down, and what became of that.
fn carried_text(carried: &v1::CarriedRoutes) -> String {
    let mut text = format!("when it went down: {}", carried_in_words(carried));
    if !carried.applications.is_empty() {
        let row = |of: &v1::CarriedApplication| [of.application_id.clone(), of.routes.to_string(), paths_now(of)];
        let rows = carried.applications.iter().map(row);
        text += &format!("\n\n{}", output::table(["application", "routes over it", "now"], 1, rows));
        text += &format!("\n{} of {} applications", carried.applications.len(), carried.applications_total);
    }
    text
}

/// `12 routes over it, 4 more that may have gone over it (…)`
fn carried_in_words(carried: &v1::CarriedRoutes) -> String {
    let mut parts = vec![format!("{} over it", routes(carried.routes))];
    if carried.routes_chained > 0 {
        parts.push(format!("{} through middleboxes over it", routes(carried.routes_chained)));
    }
    if carried.routes_uncertain > 0 {
        let why = "the network chose among several paths, which hintd does not see";
        parts.push(format!("{} that may have gone over it ({why})", routes(carried.routes_uncertain)));
    }
    match parts.as_slice() {
        [_] if carried.routes == 0 => "no route over it that hintd knows of".to_owned(),
        parts => parts.join(", "),
    }
}

fn routes(number: u64) -> String {
    format!("{number} route{}", if number == 1 { "" } else { "s" })
}

fn paths_now(of: &v1::CarriedApplication) -> String {
    match (of.routes_whole, of.routes_cut) {
        (0, 0) => "sends no more".to_owned(),
        (whole, 0) => format!("{} with a path", routes(whole)),
        (whole, cut) => format!("{} without a path, {whole} with one", routes(cut)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn link() -> v1::LinkView {
        v1::LinkView {
            id: "l1".into(),
            a: "s1".into(),
            b: "s2".into(),
            bits_per_s: 10_000_000_000,
            up: true,
            a_to_b_bits_per_s: 2_500_000_000,
            load_source: v1::LoadSource::Modelled.into(),
            a_to_b_task_pairs: 7,
            users: vec![v1::LinkUser {
                application_id: "application_1_0001".into(),
                bits_per_s: 2_500_000_000,
                a_to_b_bits_per_s: 2_500_000_000,
                ..v1::LinkUser::default()
            }],
            users_total: 3,
            ..v1::LinkView::default()
        }
    }

    #[test]
    fn a_link_that_is_down_says_since_when_and_by_whose_word() {
        let down = v1::LinkView { up: false, down_ms: Some(50_400), down_by: "sdn.ryu".into(), ..link() };
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(links_text(std::slice::from_ref(&down), 1, false)).contains("l1 DOWN 50.4 s application"));
        assert!(words(links_text(std::slice::from_ref(&down), 1, true)).contains("l1 DOWN 50.4 s sdn.ryu s1 s2"));
        assert!(link_text(&down).contains("l1, DOWN for 50.4 s, as sdn.ryu said"), "{}", link_text(&down));
        assert!(link_text(&link()).contains("l1, up\n"), "{}", link_text(&link()));
    }

    #[test]
    fn a_link_that_is_down_names_the_applications_whose_routes_it_carried() {
        let of = |id: u32, routes, [routes_whole, routes_cut]: [u64; 2]| v1::CarriedApplication {
            application_id: format!("application_1_000{id}"),
            routes,
            routes_whole,
            routes_cut,
        };
        let carried = v1::CarriedRoutes {
            routes: 12,
            routes_uncertain: 1,
            applications: vec![of(1, 8, [40, 0]), of(2, 3, [1, 2]), of(3, 1, [0, 0]), of(4, 1, [1, 0])],
            applications_total: 9,
            ..v1::CarriedRoutes::default()
        };
        let down = v1::LinkView {
            up: false,
            down_ms: Some(50_400),
            users: Vec::new(),
            users_total: 0,
            users_reason: "down".into(),
            carried: Some(carried),
            ..link()
        };
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(link_text(&down));
        for part in [
            "when it went down: 12 routes over it, 1 route that may have gone over it",
            "application_1_0001 8 40 routes with a path",
            "application_1_0002 3 2 routes without a path, 1 with one",
            "application_1_0003 1 sends no more",
            "4 of 9 applications",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let row = words(links_text(std::slice::from_ref(&down), 1, false));
        assert!(row.contains("was: application_1_0001, application_1_0002, application_1_0003, 6 more"), "{row}");
        let unknown = v1::LinkView { carried: Some(v1::CarriedRoutes::default()), ..down };
        assert!(link_text(&unknown).ends_with("when it went down: no route over it that hintd knows of"));
        assert!(links_text(&[unknown], 1, false).contains("nobody: it is down"));
    }

    #[test]
    fn one_or_two_links_that_are_down_are_named_and_more_are_counted() {
        let down = |id: &str| v1::DownLinkView { id: id.into(), down_ms: 50_000, said_by: "ryu".into() };
        assert_eq!(named_down(&[down("l1")], 1), ": l1 for 50 s (as ryu said)");
        assert!(named_down(&[down("l1"), down("l2"), down("l3")], 7).ends_with("l2 for 50 s (as ryu said) and 5 more"));
        assert_eq!(named_down(&[], 3), "", "a daemon of before");
    }

    #[test]
    fn a_load_says_where_it_is_from() {
        let text = links_text(&[link()], 1, false);
        assert!(text.contains("modelled") && text.contains("~2.5 Gbit/s"), "{text}");
        assert!(!text.contains("~0"), "{text}");
        let measured = v1::LinkView { load_source: v1::LoadSource::Measured.into(), ..link() };
        let row = links_text(&[measured], 1, true).replace("~2.5 Gbit/s a>b", "");
        assert!(!row.contains('~'), "users are modelled, whatever the load is: {row}");
        assert!(text.contains("application_1_0001 ~2.5 Gbit/s a>b, 2 more"), "{text}");
        assert!(text.ends_with("1 of 1 links; loads are modelled (~)"), "{text}");
        let text = links_text(&[link()], 1, true);
        assert!(text.contains("load from") && text.contains("~25 %") && text.contains("s2"), "{text}");
        let document = json!(link());
        assert_eq!((&document["load_source"], &document["b_to_a_bits_per_s"]), (&json!("modelled"), &json!(0)));
        assert!(link_text(&link()).contains("s1 to s2: ~2.5 Gbit/s (25 %), 7 task pairs"), "{}", link_text(&link()));
        assert!(link_text(&link()).contains("s2 to s1: 0 bit/s (0 %), 0 task pairs"));
    }

    #[test]
    fn users_and_load_do_not_contradict_each_other_without_a_word() {
        let user = v1::LinkUser { above_measured: true, ..link().users[0].clone() };
        let wrong = v1::LinkView {
            load_source: v1::LoadSource::Measured.into(),
            load_age_ms: Some(2_300),
            a_to_b_bits_per_s: 440_000_000,
            a_to_b_modelled_bits_per_s: 2_500_000_000,
            users: vec![user],
            users_total: 1,
            ..link()
        };
        let text = link_text(&wrong);
        assert!(
            text.contains(
                "440 Mbit/s (4.4 %), 7 task pairs; the model has ~2.5 Gbit/s, with flows that do not send now"
            ),
            "{text}"
        );
        assert!(text.contains("measured 2.3 s ago") && text.contains("above what is measured"), "{text}");
        let text = links_text(std::slice::from_ref(&wrong), 1, false);
        assert!(text.contains("~2.5 Gbit/s a>b (above measured)") && text.contains(" 4.4 %"), "{text}");
        let named = v1::LinkUser { a_to_b_bytes: 1_200_000_000, ..wrong.users[0].clone() };
        let back = v1::LinkUser {
            b_to_a_bytes: 9_000_000_000,
            application_id: "application_1_0002".into(),
            ..v1::LinkUser::default()
        };
        let full = v1::LinkView {
            users: vec![named, back],
            users_total: 2,
            a_to_b_unaccounted_bits_per_s: 340_000_000,
            b_to_a_unaccounted_bits_per_s: 1,
            ..wrong.clone()
        };
        let text = links_text(std::slice::from_ref(&full), 1, false);
        let whose = "application_1_0001 1.2 GB a>b (~2.5 Gbit/s, above measured), 1 more, unknown 340 Mbit/s a>b (files read or written, or others)";
        assert!(text.contains(whose) && !text.contains("application_1_0002"), "{text}");
        let text = link_text(&full);
        assert!(
            text.contains("1.2 GB, ~2.5 Gbit/s") && text.contains("application_1_0002") && text.contains("9 GB"),
            "{text}"
        );
        assert!(text.contains("unknown 340 Mbit/s a>b (files read or written, or others)"), "{text}");
        let alone = v1::LinkView { users: vec![], users_total: 0, users_reason: "others".into(), ..wrong };
        assert!(links_text(std::slice::from_ref(&alone), 1, false).contains("others, unknown to hintd"));
        assert!(link_text(&alone).ends_with("users: others, unknown to hintd"), "{}", link_text(&alone));
    }

    #[test]
    fn measured_loads_are_sorted_before_modelled_ones_whichever_way() {
        let of = |id: &str, source: v1::LoadSource, load| v1::LinkView {
            id: id.into(),
            load_source: source.into(),
            a_to_b_bits_per_s: load,
            ..link()
        };
        let (measured, modelled) = (v1::LoadSource::Measured, v1::LoadSource::Modelled);
        let all = [of("full", modelled, 10_000_000_000), of("calm", measured, 1), of("hot", measured, 9_000_000_000)];
        for (by, expected) in [("-load", ["hot", "calm", "full"]), ("load", ["calm", "hot", "full"])] {
            let order = SortArgs::by(by).of(LINK_COLUMNS, 0).unwrap();
            let answer = v1::LinksResponse { links: all.to_vec(), total: 3 };
            let answer = order.answer(Ok(tonic::Response::new(answer)), |found| (&mut found.links, 3)).unwrap();
            let ids: Vec<_> = answer.get_ref().links.iter().map(|link| &*link.id).collect();
            assert_eq!(ids, expected, "{by}");
        }
        let order = SortArgs::by("users").of(LINK_COLUMNS, 0).unwrap();
        let links = vec![v1::LinkView { users_total: 0, id: "none".into(), ..link() }, link()];
        let answer = tonic::Response::new(v1::LinksResponse { links, total: 2 });
        let answer = order.answer(Ok(answer), |found| (&mut found.links, 2)).unwrap();
        assert_eq!(answer.get_ref().links[1].id, "none", "rows with nothing there stand last");
    }
}
