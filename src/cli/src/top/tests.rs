//! Frames on terminals: what a screen of 80 columns and 24 lines shows.

use super::frame::{Frame, Look};
use super::panes::Panes;
use super::text;
use super::*;

const GIGABIT: u64 = 1_000_000_000;

fn id(number: u32) -> String {
    format!("application_1700000000000_{number:04}")
}

fn user(number: u32, rates: [u64; 2]) -> v1::LinkUser {
    v1::LinkUser {
        application_id: id(number),
        bits_per_s: rates[0] + rates[1],
        a_to_b_bits_per_s: rates[0],
        b_to_a_bits_per_s: rates[1],
        a_to_b_bytes: rates[0],
        b_to_a_bytes: rates[1],
        fills: true,
        ..v1::LinkUser::default()
    }
}

/// A link of 10 Gbit/s with a measured load.
fn link(number: u32, loads: [u64; 2]) -> v1::LinkView {
    v1::LinkView {
        id: format!("edge-{number:02}--core-1"),
        up: true,
        bits_per_s: 10 * GIGABIT,
        a_to_b_bits_per_s: loads[0],
        b_to_a_bits_per_s: loads[1],
        load_source: v1::LoadSource::Measured.into(),
        load_age_ms: Some(500),
        users_reason: "no_load".into(),
        ..v1::LinkView::default()
    }
}

/// 9.7 Gbit/s go from a to b, of which one application sends 0.6 and nobody that is known the rest; back goes little.
fn mostly_unknown() -> v1::LinkView {
    v1::LinkView {
        users: vec![user(7, [6 * GIGABIT / 10, 2 * GIGABIT])],
        users_total: 1,
        users_reason: String::new(),
        a_to_b_unaccounted_bits_per_s: 91 * GIGABIT / 10,
        fullness: Some(v1::LinkFullness { a_to_b_full: true, a_to_b_unknown: true, ..v1::LinkFullness::default() }),
        ..link(3, [97 * GIGABIT / 10, 4 * GIGABIT])
    }
}

fn look(links: Vec<v1::LinkView>) -> Look {
    let attempt = |number| v1::AttemptView { application_id: id(number), attempt: 1, ..v1::AttemptView::default() };
    let attempts: Vec<_> = (0..44).map(attempt).collect();
    let down = v1::DownLinkView {
        id: "edge-01--core-1".into(),
        down_ms: 41_000,
        down_at_ms: 1_795_843_810_000,
        said_by: "emulated-controller".into(),
        ..v1::DownLinkView::default()
    };
    let adherence = ["default", "etl", "adhoc"].map(|queue| v1::AdherenceView {
        queue: queue.into(),
        policy: "joint".into(),
        decisions: 54,
        on_host: 9,
        elsewhere: 3,
        ..v1::AdherenceView::default()
    });
    let status = v1::StatusResponse {
        version: env!("CARGO_PKG_VERSION").into(),
        ready: true,
        nodes: 40,
        nodes_usable: 40,
        racks: 5,
        links: 50,
        links_down: 1,
        down: vec![down],
        adherence: adherence.to_vec(),
        ..v1::StatusResponse::default()
    };
    Look {
        at: Instant::now(),
        status,
        links: v1::LinksResponse { total: links.len() as u32, links },
        attempts: v1::ListAttemptsResponse { total: 44, attempts },
    }
}

fn frame() -> Frame {
    let links = (10..59).map(|number| link(number, [u64::from(number) * GIGABIT / 100, 0]));
    let look = look(links.chain([mostly_unknown()]).collect());
    Frame::of(&look, &look, Sort::Load, usize::MAX)
}

fn rows_with<'a>(lines: &'a [String], text: &str) -> Vec<&'a String> {
    lines.iter().filter(|line| line.contains(text)).collect()
}

#[test]
fn a_terminal_of_24_lines_has_five_rows_of_links_and_of_applications() {
    let mut panes = Panes::default();
    let lines = panes.lines(&frame(), (23, 80), 10); // the first line has the keys
    assert!(lines.len() <= 23 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    let applications = lines.iter().filter(|line| line.starts_with("application_"));
    assert!(applications.count() >= 5 && rows_with(&lines, "--core-1  ").len() >= 5, "{lines:#?}");
    for title in ["> links: 1 to 5 of 50, by load", "  applications: 1 to 5 of 44, by", "were hints followed: "] {
        assert_eq!(rows_with(&lines, title).len(), 1, "{title}: {lines:#?}");
    }
    assert!(lines[0].contains("ready, 1 warning (hintctl doctor), up"), "{lines:#?}");
    assert!(lines[4].starts_with("1 link DOWN: edge-01--core-1 for 41 s, since 05:30:10 UTC"), "{lines:#?}");
    // On fewer lines hints give way, and then links.
    let few = panes.lines(&frame(), (18, 80), 10);
    assert!(few.len() <= 18 && rows_with(&few, "were hints followed").is_empty(), "{few:#?}");
    assert!(few.iter().filter(|line| line.starts_with("application_")).count() >= 4, "{few:#?}");
}

#[test]
fn only_rows_that_are_shown_are_laid_out() {
    let mut frame = frame();
    // What is scrolled away makes no column wider.
    frame.links[30].id = "a".repeat(300);
    let (all, mut panes) = (text::panes(&frame), Panes::default());
    assert_eq!((all[0].row_count(), all[0].total), (50, 50));
    let part = all[0].lines(3..5, usize::MAX);
    assert!(part.len() == 3 && part[0].starts_with("link  ") && part[1].starts_with(&frame.links[3].id), "{part:#?}");
    assert!(part.iter().all(|line| line.chars().count() < 300), "{part:#?}");
    let lines = panes.lines(&frame, (23, 80), 10);
    assert_eq!(rows_with(&lines, "> links: 1 to 5 of 50").len(), 1, "{lines:#?}");
}

#[test]
fn keys_scroll_the_chosen_table_and_tab_chooses_the_next() {
    let (frame, mut panes) = (frame(), Panes::default());
    let mut after = |keys: &[Key]| {
        keys.iter().for_each(|key| panes.key(*key));
        panes.lines(&frame, (23, 80), 10)
    };
    after(&[]);
    let lines = after(&[Key::PageDown, Key::Down]);
    assert_eq!(rows_with(&lines, "> links: 7 to 11 of 50").len(), 1, "{lines:#?}");
    let lines = after(&[Key::Tab, Key::Last]);
    assert_eq!(rows_with(&lines, "  links: 7 to 11 of 50").len(), 1, "{lines:#?}");
    assert_eq!(rows_with(&lines, "> applications: 40 to 44 of 44").len(), 1, "{lines:#?}");
    let lines = after(&[Key::Tab, Key::Letter(b'j'), Key::Tab, Key::First]);
    assert_eq!(rows_with(&lines, "> links: 1 to 5 of 50").len(), 1, "{lines:#?}");
    assert_eq!(rows_with(&lines, "  were hints followed: 2 of 3").len(), 1, "{lines:#?}");
}

#[test]
fn who_sends_a_few_percent_of_a_link_is_not_named_without_saying_how_much_nobody_is_known_to_send() {
    let frame = frame();
    let lines = text::lines(&frame, 80);
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let row = words(rows_with(&lines, "edge-03--core-1  97 %")[0]);
    assert_eq!(row, "edge-03--core-1 97 % a>b 10 Gbit/s unknown 94 %, …1700000000000_0007 6 %");
    let narrower = text::lines(&frame, 70);
    assert!(
        words(rows_with(&narrower, "edge-03--core-1  97 %")[0]).ends_with("unknown 94 %, …_0007 6 %"),
        "{narrower:#?}"
    );
    let wider = text::lines(&frame, 100);
    assert!(words(rows_with(&wider, "edge-03--core-1  97 %")[0]).contains(&id(7)), "the whole ID, where it has room");
    let link = &frame.links[0];
    assert_eq!((link.busier, link.top_user.as_deref()), ("a_to_b", Some(&*id(7))));
    let percent = |share: Option<f64>| share.map(|share| (share * 100.0).round());
    assert_eq!((percent(link.top_user_share), percent(link.unknown_share)), (Some(6.0), Some(94.0)));
    let all = text::lines(&frame, usize::MAX);
    assert_eq!(rows_with(&all, "from a to b").len(), 1, "all columns where they have room");
}

#[test]
fn what_an_application_sends_and_the_load_there_are_of_one_direction() {
    // It sends 2 Gbit/s where the link has 4, and 0.6 where it has 9.7.
    let both = frame();
    let row = &both.applications[0];
    assert_eq!((&*row.application_id, row.busiest_way), (&*id(7), Some("a_to_b")));
    assert_eq!((row.busiest_share, row.busiest_bits_per_s), (Some(0.97), Some(6 * GIGABIT / 10)));
    let back = v1::LinkView { users: vec![user(7, [0, 2 * GIGABIT])], ..mostly_unknown() };
    let look = look(vec![back]);
    let frame = Frame::of(&look, &look, Sort::Load, 3);
    let row = &frame.applications[0];
    assert_eq!((row.busiest_way, row.busiest_share), (Some("b_to_a"), Some(0.4)), "it sends nothing the other way");
    assert_eq!(row.busiest_bits_per_s, Some(2 * GIGABIT));
    let lines = text::lines(&frame, 80);
    assert!(lines.iter().any(|line| line.contains(" 40 % b>a ") && line.contains("~2 Gbit/s")), "{lines:#?}");
}

#[test]
fn above_measured_is_judged_in_the_direction_that_is_shown() {
    // From a to b it sends less than is measured, back more.
    let one = v1::LinkUser { above_measured: true, ..user(7, [GIGABIT, 5 * GIGABIT]) };
    let link = |user: v1::LinkUser| v1::LinkView { users: vec![user], ..mostly_unknown() };
    let looks =
        [look(vec![link(one.clone())]), look(vec![link(v1::LinkUser { a_to_b_bits_per_s: 98 * GIGABIT / 10, ..one })])];
    let [below, above] = looks.map(|look| Frame::of(&look, &look, Sort::Load, 3));
    assert!(!below.links[0].top_user_above_measured && below.links[0].whose[0].contains("_0007 10 %"));
    assert!(above.links[0].top_user_above_measured && above.links[0].whose[0].contains("_0007 >100 %"));
}
