//! `hintctl links`: capacity and load of links, and who uses them.
//!
//! # Code map
//! - `words`: loads and users as `hintctl top` and `hintctl status` say them as well; `one`: all of one link.

mod one;
mod words;

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::filter::near;
use super::moments;
use super::output::{self, Output};
use super::sorting::{Cell, Column, SortArgs};
use super::view::{Format, ViewArgs, not_empty};
use super::width;
use clap::Args;
use hintd::findings::outage;
use hintd_client::AdminClient;
use hintd_client::view::load_source;
use hintd_client::wire::v1;
use one::link_text;
use tonic::{Code, Status};
pub(super) use words::{
    Called, Sends, above_measured, busier, busier_load, busiest, fills, is_measured, largest, load_from, marked_load,
    measured_now, named_down, no_users, part, share, unknown, unknown_part, user_text, whose,
};
use words::{OLD_MS, WAYS, mark};

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
    in the direction that is more loaded, and the table names only those that send that way; -o wide names all. On a terminal\n\
    without room for it, and not sorted by state or users, a row has the direction that is more loaded, and whose that load is:\n\
    the largest user and its part, and what is unknown; >100 % is above what is measured. Unknown is what is measured and is\n\
    nobody's flow, mostly files: maps that read blocks of other hosts, and replicas that are written; else who did not ask for\n\
    hints. Flows are where task events say\n\
    that containers came, and until then where they were hinted. No flow is above what its bytes fill for a second. Recurring jobs without flows, as\n\
    stock MapReduce, are told by the bytes of earlier runs, on hosts' links and racks' uplinks; what is measured and not of\n\
    flows is divided among them.\n\n\
    Of a link that is down hintctl links ID names the applications whose routes it carried when it went down, and whether these\n\
    have other paths now. Named are routes that a controller installed, and those of hosts that the link alone joined to the rest.\n\
    A link that flaps went down and up more often than routes.flaps allows: new routes avoid it until it was quiet."
)]
pub struct LinksArgs {
    /// Only this link
    #[arg(value_name = "ID", value_parser = not_empty, conflicts_with_all = ["down", "limit", "link"])]
    id: Option<String>,
    /// The same
    #[arg(long, value_name = "ID", value_parser = not_empty, conflicts_with_all = ["down", "limit"])]
    link: Option<String>,
    /// Only links that are down
    #[arg(long)]
    down: bool,
    /// Show at most LIMIT; 0: all
    #[arg(long, default_value_t = 0)]
    limit: u32,
    /// Users named of each link, greatest first; 0: all [default: 3; with --link, --json or -o wide all]
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
    let is_table = args.view.format(output)? == Format::Table;
    let link = args.id.as_ref().or(args.link.as_ref());
    let every = !is_table || link.is_some();
    let order = args.sort.of(LINK_COLUMNS, args.limit)?;
    let request = v1::LinksRequest {
        down_only: args.down,
        limit: order.asks(),
        link: link.cloned().unwrap_or_default(),
        users: args.users.unwrap_or(if every { 0 } else { USERS_SHOWN }),
    };
    let ask = async |mut admin: AdminClient| {
        let answer = match admin.links(request.clone()).await {
            Err(status) if status.code() == Code::NotFound => {
                Err(Failure::from(with_near(admin, status, &request.link).await))
            }
            answer => answer.map_err(Failure::from),
        };
        order.answer(answer, |found| (&mut found.links, found.total.into()))
    };
    let text = |answer: &v1::LinksResponse, wide| match answer.links.as_slice() {
        [only] if link.is_some() => link_text(only),
        links => links_text(links, answer.total, wide || order.is_wide(&shown())),
    };
    args.view.show(daemon, output, ask, text).map(drop)
}

/// The daemon names one that may have been meant; where there is none, those that have the text in their names, or some that there
/// are.
async fn with_near(mut admin: AdminClient, refused: Status, asked: &str) -> Status {
    if refused.message().contains("did you mean") {
        return refused;
    }
    let Ok(all) = admin.links(v1::LinksRequest { users: 1, ..v1::LinksRequest::default() }).await else {
        return refused;
    };
    let ids: Vec<String> = all.into_inner().links.into_iter().map(|link| link.id).collect();
    Status::not_found(format!("{}{}", refused.message(), near("link", asked, &ids)))
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

/// What says most stands first: a terminal of 80 columns has the loads, and who makes the first of them.
const LINK_HEADER: [&str; 5] = ["link", "state", "load", "capacity", "users"];

/// Of these the columns that the narrow table does not have: where rows are sorted by one of them the whole table is cut instead.
const NOT_NARROW: [&str; 2] = ["state", "users"];

/// What its columns show: `state` says since when as well.
fn shown() -> Vec<&'static str> {
    [&LINK_HEADER[..], &["down for"]].concat()
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

fn links_text(links: &[v1::LinkView], total: u32, wide: bool) -> String {
    let table = if wide { wide_table(links) } else { table(links) };
    let measured = links.iter().filter(|link| is_measured(link)).count();
    let kinds = match (measured, links.len() - measured) {
        (_, 0) => String::new(),
        (0, _) => "; loads are modelled (~)".to_owned(),
        (measured, modelled) => format!("; {measured} loads are measured, {modelled} modelled (~)"),
    };
    format!("{table}\n{} of {total} links{kinds}", links.len())
}

/// Where there is no room for all of it, the direction that is more loaded and whose that load is.
fn table(links: &[v1::LinkView]) -> String {
    let capacity = |link: &v1::LinkView| output::rate(link.bits_per_s as f64);
    let row = |link: &v1::LinkView| [link.id.clone(), state_since(link), loads(link), capacity(link), users_line(link)];
    let (whole, _) = width::within(width::ANY, || output::table(LINK_HEADER, LINK_HEADER.len(), links.iter().map(row)));
    if fits(&whole) {
        return whole;
    }
    if NOT_NARROW.iter().any(|column| width::is_kept(column)) {
        return output::table(LINK_HEADER, LINK_HEADER.len(), links.iter().map(row));
    }
    let of = |called: Called| {
        let whose = |link: &v1::LinkView| match down_line(link) {
            line if line.is_empty() => whose(link, called),
            line => line,
        };
        let row = |link: &v1::LinkView| [link.id.clone(), busier_load(link), capacity(link), whose(link)];
        output::table(["link", "load", "capacity", "whose load"], 4, links.iter().map(row))
    };
    let (named, _) = width::within(width::ANY, || of(Called::Whole));
    if fits(&named) { named } else { of(Called::Number) }
}

fn fits(table: &str) -> bool {
    table.lines().all(|line| line.chars().count() <= width::in_force())
}

fn wide_table(links: &[v1::LinkView]) -> String {
    let row = |link: &v1::LinkView| {
        let busier = match link.up {
            true => format!("{}{} %", mark(link.load_source(), share(link)), output::digits(share(link) * 100.0)),
            false => "-".to_owned(),
        };
        [
            link.id.clone(),
            state_since(link),
            link.down_by.clone(),
            link.a.clone(),
            link.b.clone(),
            all_users_line(link),
            load_from(link.load_source(), link.load_age_ms),
            output::rate(link.bits_per_s as f64),
            marked_load(link.load_source(), link.a_to_b_bits_per_s),
            marked_load(link.load_source(), link.b_to_a_bits_per_s),
            busier,
            link.a_to_b_task_pairs.to_string(),
            link.b_to_a_task_pairs.to_string(),
        ]
    };
    let header = [
        "link",
        "state",
        "said by",
        "a",
        "b",
        "users",
        "load from",
        "capacity",
        "a to b",
        "b to a",
        "load",
        "pairs a to b",
        "pairs b to a",
    ];
    output::table(header, 7, links.iter().map(row))
}

/// `100 % a>b, 36 % b>a`, and its age where that is not of now; a link that is down has none.
fn loads(link: &v1::LinkView) -> String {
    if !link.up {
        return "-".to_owned();
    }
    let rates = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s].map(|rate| rate as f64);
    let way = |way: usize| {
        let share = rates[way] / link.bits_per_s.max(1) as f64;
        format!("{}{} {}", mark(link.load_source(), share), output::percent(share), WAYS[way])
    };
    let age = link.load_age_ms.filter(|age| is_measured(link) && *age > OLD_MS);
    let age = age.map_or_else(String::new, |age| format!(", {} old", output::age(age)));
    match rates.iter().all(|rate| *rate <= 0.0) {
        true => format!("0 %{age}"),
        false => format!("{}, {}{age}", way(0), way(1)),
    }
}

/// `application ~rate a>b, …` and how many more; of a link that is down those whose routes it carried.
fn users_line(link: &v1::LinkView) -> String {
    match down_line(link) {
        line if line.is_empty() => sending_line(link),
        line => line,
    }
}

/// `since 04:35:20 UTC, as sdn.ryu said; before it carried 900 Mbit/s (90 %); was: application_…` of a link that is down.
fn down_line(link: &v1::LinkView) -> String {
    let since = (link.down_at_ms > 0).then(|| format!("since {}", moments::time_of_day(link.down_at_ms)));
    let told = outage::by_whom(&link.down_by, link.load_before.as_ref(), link.bits_per_s);
    let told = Some(told).filter(|told| !link.up && !told.is_empty());
    let told: Vec<String> = since.into_iter().chain(told).collect();
    let was = was_line(link);
    [told.join(", "), was].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Whose routes it carried when it went down.
fn was_line(link: &v1::LinkView) -> String {
    if let Some(carried) = link.carried.as_ref().filter(|carried| carried.applications_total > 0) {
        let named = carried.applications.iter().take(USERS_SHOWN as usize).map(|of| of.application_id.clone());
        let mut named: Vec<String> = named.collect();
        match (carried.applications_total as usize).saturating_sub(named.len()) {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        return format!("was: {}", named.join(", "));
    }
    String::new()
}

fn sending_line(link: &v1::LinkView) -> String {
    let mut named: Vec<String> =
        link.users.iter().filter(|user| fills(link, user)).map(|user| user_text(link, user)).collect();
    let more = (link.users_total as usize).saturating_sub(named.len());
    if more > 0 {
        named.push(format!("{more} more (-o wide)"));
    }
    named.extend(unknown(link));
    if named.is_empty() { no_users(&link.users_reason).to_owned() } else { named.join(", ") }
}

/// Users named of each link where all of a list is shown.
const USERS_WIDE: usize = 16;

/// With those as well who have no part worth being named in what fills the link.
fn all_users_line(link: &v1::LinkView) -> String {
    let down = down_line(link);
    if !down.is_empty() {
        return down;
    }
    let named = link.users.iter().take(USERS_WIDE).map(|user| user_text(link, user));
    let more = (link.users_total as usize).saturating_sub(named.len());
    let more = (more > 0).then(|| format!("{more} more (hintctl links ID)"));
    let told: Vec<String> = named.chain(unknown(link)).chain(more).collect();
    if told.is_empty() { no_users(&link.users_reason).to_owned() } else { told.join(", ") }
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
        assert!(
            words(links_text(std::slice::from_ref(&down), 1, false))
                .contains("l1 DOWN 50.4 s - 10 Gbit/s as sdn.ryu said")
        );
        assert!(words(links_text(std::slice::from_ref(&down), 1, true)).contains("l1 DOWN 50.4 s sdn.ryu s1 s2"));
        assert!(link_text(&down).contains("l1, DOWN for 50.4 s, as sdn.ryu said"), "{}", link_text(&down));
        assert!(link_text(&link()).contains("l1, up\n"), "{}", link_text(&link()));
        let before =
            v1::LoadBefore { a_to_b_bits_per_s: 9_000_000_000, b_to_a_bits_per_s: 100_000_000, before_ms: 300 };
        let told = v1::LinkView { down_at_ms: 1_795_843_810_000, load_before: Some(before), ..down.clone() };
        let row = links_text(std::slice::from_ref(&told), 1, false);
        assert!(row.contains("since 05:30:10 UTC, as sdn.ryu said; before it carried 9 Gbit/s (90 %)"), "{row}");
        let text = words(link_text(&told));
        for part in [
            "l1, DOWN for 50.4 s, since 05:30:10 UTC, as sdn.ryu said; before it carried 9 Gbit/s (90 %)",
            "load before measured 300 ms before it went s1 to s2: 9 Gbit/s (90 %) s2 to s1: 100 Mbit/s (1 %)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(link_text(&down).contains("nothing was measured on it before it went"));
        let over =
            v1::LastOutage { ended_ms: 60_000, lasted_ms: 50_000, down_at_ms: 1_795_843_810_000, ..Default::default() };
        let mended = v1::LinkView { last_outage: Some(v1::LastOutage { load_before: Some(before), ..over }), ..link() };
        let text = link_text(&mended);
        assert!(
            text.contains(
                "50 s long, from 2026-11-28 05:30:10 UTC on, ended 60 s ago, before it carried 9 Gbit/s (90 %)"
            ),
            "{text}"
        );
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
        let down = |id: &str| v1::DownLinkView {
            id: id.into(),
            down_ms: 50_000,
            said_by: "ryu".into(),
            ..v1::DownLinkView::default()
        };
        assert_eq!(named_down(&[down("l1")], 1), ": l1 for 50 s (as ryu said)");
        let load = v1::LoadBefore { b_to_a_bits_per_s: 700_000_000, ..v1::LoadBefore::default() };
        let told = v1::DownLinkView { down_at_ms: 1_795_843_810_000, load_before: Some(load), ..down("l1") };
        let said = ": l1 for 50 s, since 05:30:10 UTC (as ryu said; before it carried 700 Mbit/s)";
        assert_eq!(named_down(&[told], 1), said);
        assert!(named_down(&[down("l1"), down("l2"), down("l3")], 7).ends_with("l2 for 50 s (as ryu said) and 5 more"));
        assert_eq!(named_down(&[], 3), "", "a daemon of before");
    }

    #[test]
    fn a_load_says_where_it_is_from() {
        let text = links_text(&[link()], 1, false);
        assert!(text.contains("~25 % a>b, 0 % b>a") && text.contains("~2.5 Gbit/s"), "{text}");
        assert!(!text.contains("~0"), "{text}");
        let old =
            v1::LinkView { load_source: v1::LoadSource::Measured.into(), load_age_ms: Some(OLD_MS + 1_000), ..link() };
        let text_of_old = links_text(std::slice::from_ref(&old), 1, false);
        assert!(text_of_old.contains("  25 % a>b, 0 % b>a, 16 s old"), "{text_of_old}");
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
        assert!(text.contains("~2.5 Gbit/s a>b (above measured)") && text.contains(" 4 % a>b"), "{text}");
        let named = v1::LinkUser { a_to_b_bytes: 1_200_000_000, fills: true, ..wrong.users[0].clone() };
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
            fullness: Some(v1::LinkFullness { a_to_b_full: true, a_to_b_unknown: true, ..v1::LinkFullness::default() }),
            ..wrong.clone()
        };
        let text = links_text(std::slice::from_ref(&full), 1, false);
        let whose = "application_1_0001 1.2 GB a>b (~2.5 Gbit/s, above measured), 1 more (-o wide), unknown 340 Mbit/s a>b (no flow: files read or written, or others)";
        assert!(text.contains(whose) && !text.contains("application_1_0002"), "{text}");
        let text = link_text(&full);
        assert!(
            text.contains("1.2 GB, ~2.5 Gbit/s") && text.contains("application_1_0002") && text.contains("9 GB"),
            "{text}"
        );
        assert!(text.contains("unknown: 340 Mbit/s a>b, of no flow that hintd knows. Mostly files: "), "{text}");
        // A daemon of before says of nothing whether it is worth being named: all is.
        let before = v1::LinkView { fullness: None, ..full.clone() };
        let text = links_text(std::slice::from_ref(&before), 1, false);
        assert!(text.contains("application_1_0002") && text.contains("340 Mbit/s a>b + 1 bit/s b>a"), "{text}");
        let nobody = v1::LinkView { users: vec![], users_total: 0, users_reason: "others".into(), ..full };
        assert!(link_text(&nobody).contains("unknown: 340 Mbit/s a>b"), "{}", link_text(&nobody));
        let alone = v1::LinkView { users: vec![], users_total: 0, users_reason: "others".into(), ..wrong };
        assert!(links_text(std::slice::from_ref(&alone), 1, false).contains("others, unknown to hintd"));
        assert!(link_text(&alone).ends_with("users: others, unknown to hintd"), "{}", link_text(&alone));
    }

    #[test]
    fn above_measured_stands_at_the_direction_in_which_it_is_so() {
        // 9 Gbit/s are measured one way and 0.4 the other; the user sends 1 and 2.5.
        let user = v1::LinkUser {
            application_id: "application_1700000000000_0007".into(),
            above_measured: true,
            a_to_b_bits_per_s: 1_000_000_000,
            b_to_a_bits_per_s: 2_500_000_000,
            a_to_b_bytes: 3_000_000_000,
            b_to_a_bytes: 4_000_000_000,
            fills: true,
            ..v1::LinkUser::default()
        };
        let both = v1::LinkFullness { a_to_b_full: true, b_to_a_full: true, ..v1::LinkFullness::default() };
        let link = v1::LinkView {
            load_source: v1::LoadSource::Measured.into(),
            a_to_b_bits_per_s: 9_000_000_000,
            b_to_a_bits_per_s: 400_000_000,
            users: vec![user],
            users_total: 1,
            fullness: Some(both),
            ..link()
        };
        let row = links_text(std::slice::from_ref(&link), 1, false);
        assert!(row.contains("3 GB a>b (~1 Gbit/s) + 4 GB b>a (~2.5 Gbit/s, above measured)"), "{row}");
        let rows: Vec<String> = link_text(&link).lines().map(str::to_owned).collect();
        let row = rows.iter().find(|row| row.starts_with("application_")).unwrap();
        assert!(row.contains("~1 Gbit/s  ") && row.ends_with("~2.5 Gbit/s !"), "{rows:#?}");
        // Without their bytes, as a daemon of before told them.
        let bare = v1::LinkUser { a_to_b_bytes: 0, b_to_a_bytes: 0, ..link.users[0].clone() };
        let row = links_text(&[v1::LinkView { users: vec![bare], ..link.clone() }], 1, false);
        assert!(row.contains("~1 Gbit/s a>b + ~2.5 Gbit/s b>a (above measured)"), "{row}");
        let none = v1::LinkUser { above_measured: false, ..link.users[0].clone() };
        assert!(!links_text(&[v1::LinkView { users: vec![none], ..link }], 1, false).contains("above"));
    }

    #[test]
    fn a_narrow_terminal_has_the_busier_direction_and_whose_it_is_and_wide_names_all_users() {
        let user = |id: u32, rate: u64, fills| v1::LinkUser {
            application_id: format!("application_1700000000000_{id:04}"),
            bits_per_s: rate,
            b_to_a_bits_per_s: rate,
            b_to_a_bytes: rate,
            fills,
            ..v1::LinkUser::default()
        };
        let back = v1::LinkFullness { b_to_a_full: true, b_to_a_unknown: true, ..v1::LinkFullness::default() };
        let link = v1::LinkView {
            id: "edge-03--core-1".into(),
            load_source: v1::LoadSource::Measured.into(),
            a_to_b_bits_per_s: 1_000_000_000,
            b_to_a_bits_per_s: 9_700_000_000,
            b_to_a_unaccounted_bits_per_s: 8_730_000_000,
            users: vec![user(7, 582_000_000, true), user(9, 1_000, false)],
            users_total: 2,
            fullness: Some(back),
            ..link()
        };
        let shown = |columns, wide| output::list(columns, wide, || links_text(std::slice::from_ref(&link), 1, wide));
        let narrow = shown(80, false);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let row = "edge-03--core-1 97 % b>a 10 Gbit/s unknown 90 %, …1700000000000_0007 6 %, 1 more";
        assert!(words(&narrow).contains(row), "{narrow}");
        let whole = shown(width::ANY, false);
        assert!(whole.contains("10 % a>b, 97 % b>a") && whole.contains("1 more (-o wide)"), "{whole}");
        // What rows are sorted by stays.
        let sorted = |by: &str| {
            let text = output::list(80, false, || {
                width::keep(by);
                links_text(std::slice::from_ref(&link), 1, false)
            });
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{by}: {text}");
            text.lines().next().unwrap_or_default().to_owned()
        };
        for by in ["state", "users", "capacity"] {
            assert!(sorted(by).contains(by), "{by}: {}", sorted(by));
        }
        assert!(sorted("load").contains("whose load"), "{}", sorted("load"));
        let wide = shown(80, true);
        assert!(wide.contains("_0007 582 MB b>a") && wide.contains("_0009 1 kB b>a"), "{wide}");
        assert!(!wide.contains(" more"), "{wide}");
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
