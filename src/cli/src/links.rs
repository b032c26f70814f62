//! `hintctl links`: capacity and load of links, and who uses them.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::sorting::{Column, SortArgs};
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
    A load is measured where the link_stats feed told it, else modelled: max-min fair rates of running flows on\n\
    their routes (~). Pairs of tasks whose bytes are not known, or are 0, load no link. Users are always modelled."
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
    /// At most so many; 0: all
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
        links => links_text(links, answer.total, wide),
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
    ("load|busier-way", |link| (busier(link) / link.bits_per_s.max(1) as f64).into()),
    ("load-from", |link| load_source(link.load_source()).into()),
    ("pairs-a-to-b", |link| link.a_to_b_task_pairs.into()),
    ("pairs-b-to-a", |link| link.b_to_a_task_pairs.into()),
    ("users", |link| link.users_total.into()),
    ("down-for", |link| link.down_ms.into()),
];

/// Of both ways the greater load, bit/s.
fn busier(link: &v1::LinkView) -> f64 {
    link.a_to_b_bits_per_s.max(link.b_to_a_bits_per_s) as f64
}

fn state(link: &v1::LinkView) -> &'static str {
    if link.up { "up" } else { "DOWN" }
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
    let mark = if source == v1::LoadSource::Modelled && rate > 0 { "~" } else { "" };
    format!("{mark}{}", load(rate))
}

fn load(load: u64) -> String {
    output::rate(load as f64)
}

fn links_text(links: &[v1::LinkView], total: u32, wide: bool) -> String {
    let row = |link: &v1::LinkView| {
        [
            link.id.clone(),
            state_since(link),
            users_line(link),
            load_source(link.load_source()).unwrap_or("-").to_owned(),
            output::rate(link.bits_per_s as f64),
            marked_load(link.load_source(), link.a_to_b_bits_per_s),
            marked_load(link.load_source(), link.b_to_a_bits_per_s),
            link.a_to_b_task_pairs.to_string(),
            link.b_to_a_task_pairs.to_string(),
        ]
    };
    let header =
        ["link", "state", "users", "load from", "capacity", "a to b", "b to a", "pairs a to b", "pairs b to a"];
    let table = if wide {
        let share =
            |link: &v1::LinkView| format!("{} %", output::digits(busier(link) * 100.0 / link.bits_per_s.max(1) as f64));
        let rows = links.iter().map(|link| {
            let [id, up, users, load, capacity, down, back, pairs, pairs_back] = row(link);
            let (a, b, by) = (link.a.clone(), link.b.clone(), link.down_by.clone());
            [id, up, by, a, b, users, load, capacity, down, back, share(link), pairs, pairs_back]
        });
        let [id, up, users, load, capacity, down, back, pairs, pairs_back] = header;
        let header = [id, up, "said by", "a", "b", users, load, capacity, down, back, "load", pairs, pairs_back];
        output::table(header, 7, rows)
    } else {
        output::table(header, 4, links.iter().map(row))
    };
    format!("{table}\n{} of {total} links", links.len())
}

/// `application rate, …` and how many more.
fn users_line(link: &v1::LinkView) -> String {
    let named =
        link.users.iter().map(|user| format!("{} {}", user.application_id, output::rate(user.bits_per_s as f64)));
    let mut line = named.collect::<Vec<_>>().join(", ");
    let more = (link.users_total as usize).saturating_sub(link.users.len());
    if more > 0 {
        line += &format!("{}{more} more", if line.is_empty() { "" } else { ", " });
    }
    if line.is_empty() { "-".to_owned() } else { line }
}

fn link_text(link: &v1::LinkView) -> String {
    let direction = |from: &str, to: &str, rate: u64, pairs: u64| {
        let share = output::digits(rate as f64 * 100.0 / link.bits_per_s.max(1) as f64);
        format!("{from} to {to}: {} ({share} %), {pairs} task pairs", load(rate))
    };
    let mut lines = vec![output::pairs(&[
        ("link", format!("{}, {}", link.id, state_in_words(link))),
        ("capacity", format!("{} each way", output::rate(link.bits_per_s as f64))),
        ("load", load_source(link.load_source()).unwrap_or("unknown").to_owned()),
        ("", direction(&link.a, &link.b, link.a_to_b_bits_per_s, link.a_to_b_task_pairs)),
        ("", direction(&link.b, &link.a, link.b_to_a_bits_per_s, link.b_to_a_task_pairs)),
    ])];
    if link.users_total > 0 {
        let rows = link.users.iter().map(|user| [user.application_id.clone(), output::rate(user.bits_per_s as f64)]);
        lines.push(format!("\n{}", output::table(["user", "modelled rate"], 1, rows)));
        lines.push(format!("{} of {} users", link.users.len(), link.users_total));
    }
    lines.join("\n")
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
            users: vec![v1::LinkUser { application_id: "application_1_0001".into(), bits_per_s: 2_500_000_000 }],
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
        assert!(!links_text(&[measured], 1, true).contains('~'));
        assert!(text.contains("application_1_0001 2.5 Gbit/s, 2 more"), "{text}");
        let text = links_text(&[link()], 1, true);
        assert!(text.contains("load from") && text.contains("25 %") && text.contains("s2"), "{text}");
        let document = json!(link());
        assert_eq!((&document["load_source"], &document["b_to_a_bits_per_s"]), (&json!("modelled"), &json!(0)));
        assert!(link_text(&link()).contains("s1 to s2: 2.5 Gbit/s (25 %), 7 task pairs"), "{}", link_text(&link()));
        assert!(link_text(&link()).contains("s2 to s1: 0 bit/s (0 %), 0 task pairs"));
    }
}
