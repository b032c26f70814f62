//! Arguments and the table of variants.

use super::lies::{self, LIES};
use super::page::{MEASURE, legend, measure};
use super::parts::{self, ALL, PARTS};
use super::variants::{LEVERS, LeverSettings, Variant, chosen, names, other_phases};
use super::{Shard, WorthArgs, check_places, shard};
use clap::Parser;
use hintd_engine::holding::HoldSettings;
use hintd_simulator::{HistoryLie, SimSettings};

#[test]
fn parts_are_told_as_people_count_and_are_all_of_the_runs() {
    assert_eq!(shard("2/3"), Ok(Shard { part: 1, of: 3 }));
    for (text, problem) in
        [("3/2", "no part 3 of 2"), ("0/2", "no part 0 of 2"), ("1", "I/N"), ("a/b", "I/N"), ("1/0", "no part 1")]
    {
        assert!(shard(text).unwrap_err().contains(problem), "{text}");
    }
    let parts: Vec<usize> = (0..3).map(|part| (0..10).filter(|&run| Shard { part, of: 3 }.has(run)).count()).collect();
    assert_eq!(parts, [4, 3, 3]);
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: WorthArgs,
}

fn line(words: &[&str]) -> Result<WorthArgs, clap::Error> {
    let all = [&["worth", "--trace", "t", "--cluster", "c"][..], words].concat();
    Line::try_parse_from(all).map(|line| line.args)
}

#[test]
fn files_that_are_there_are_replaced_where_that_is_asked_for_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(place("plots")).unwrap();
    for (option, value, file) in [
        ("--output", "out.json", "out.json"),
        ("--markdown", "page.md", "page.md"),
        ("--plots", "plots", "plots/worth.svg"),
    ] {
        let (value, file) = (place(value), place(file));
        let checked = |more: &[&str]| check_places(&line(&[more, &[option, &value]].concat()).unwrap());
        checked(&[]).unwrap();
        std::fs::write(&file, "").unwrap();
        let said = checked(&[]).unwrap_err().to_string();
        assert_eq!(said, format!("{option}: {file}: it is there already: --force replaces it"));
        checked(&["--force"]).unwrap();
    }
    assert!(line(&["--force"]).is_err(), "there is nothing to replace");
}

#[test]
fn each_policy_is_run_by_each_lever_beside_the_three_that_it_is_held_against() {
    let levers = chosen(&["where".to_owned(), "when".to_owned()]);
    let variants = Variant::all(2, &levers, 0, 0);
    assert_eq!(variants[..3], [Variant::Alone, Variant::Phases, Variant::Free]);
    // Where YARN places by itself, only when receivers are asked for can differ.
    let [one, two, alone] = [Some(0), Some(1), None];
    let hinted = [(one, 0), (one, 1), (two, 0), (two, 1), (alone, 1)];
    assert_eq!(variants[3..], hinted.map(|(policy, lever)| Variant::Hinted(policy, lever)));
    let less = Variant::all(2, &levers, 2, 0);
    assert_eq!(less[..8], variants[..]);
    let without = [(0, 0), (0, 1), (1, 0), (1, 1)];
    assert_eq!(less[8..], without.map(|(policy, part)| Variant::Without(policy, part)), "they come last");
    assert_eq!(chosen(&names().iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).len(), LEVERS.len());
    assert_eq!(chosen(&["where".to_owned()])[0].name, "where");
    assert_ne!(other_phases(1), other_phases(2));
}

fn told() -> LeverSettings {
    LeverSettings { recurring: (0.4, 3.0), hold: HoldSettings { home_share: 0.75, ..HoldSettings::default() } }
}

#[test]
fn each_part_changes_the_lever_that_has_it_and_is_refused_elsewhere() {
    let lever = |name: &str| chosen(&[name.to_owned()])[0];
    let mut whole = SimSettings::default();
    lever("data-when").set(&mut whole, &told());
    assert_eq!(whole.hold.unwrap().home_share, 0.75);
    let all = parts::chosen(&[ALL.to_owned()], lever("data-when")).ok().unwrap();
    assert_eq!(all.len(), PARTS.len(), "the fullest lever has every part");
    let mut seen = vec![whole.clone()];
    for part in all {
        let mut less = whole.clone();
        part.set(&mut less);
        assert!(!seen.contains(&less), "{} changes nothing, or what another does", part.name);
        seen.push(less);
    }
    let of =
        |lever| parts::chosen(&[ALL.to_owned()], lever).ok().unwrap().iter().map(|part| part.name).collect::<Vec<_>>();
    assert_eq!(of(lever("where")), ["guard", "receivers", "blocks"]);
    assert_eq!(of(lever("when")), ["guard", "receivers", "blocks", "hold", "order", "cap", "next-share", "aging"]);
    let refused = parts::chosen(&["home-lanes".to_owned()], lever("data")).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "--without home-lanes is of levers history-when, data-when; the fullest of --levers is data"
    );
}

#[test]
fn levers_change_settings_by_what_they_are() {
    let of = |name: &str| {
        let mut settings = SimSettings::default();
        chosen(&[name.to_owned()])[0].set(&mut settings, &told());
        (settings.hold.is_some(), settings.recurring, settings.history_error, settings.data_placement)
    };
    assert_eq!(of("where"), (false, 0.0, 2.0, false));
    assert_eq!(of("when"), (true, 0.0, 2.0, false));
    assert_eq!(of("history"), (false, 0.4, 3.0, false));
    assert_eq!(of("history-when"), (true, 0.4, 3.0, false));
    assert_eq!(of("data"), (false, 0.4, 3.0, true));
    assert_eq!(of("data-when"), (true, 0.4, 3.0, true));
}

#[test]
fn the_committed_page_is_as_the_generator_writes_it_and_names_every_lever() {
    let page = include_str!("../../../../docs/worth.md");
    assert!(page.contains(MEASURE), "docs/worth.md has the measure in other words");
    for lever in LEVERS {
        assert!(page.contains(&legend(lever)), "docs/worth.md lacks {}", legend(lever));
    }
    let rows = chosen(&["where".to_owned(), "when".to_owned()]);
    // Nine cells, the table of all, and the table of goals for what has one.
    for (row, tables) in [(rows[0].row(Some("joint")), 11), (rows[1].row(Some("joint")), 11), (rows[1].row(None), 10)] {
        assert_eq!(page.matches(&format!("\n| {row} | ")).count(), tables, "{row}");
    }
    assert_eq!(LEVERS[5].row(Some("joint")), "places by joint, data placed, receivers held");
}

#[test]
fn only_the_projects_own_page_has_links_to_its_others() {
    assert_eq!(measure(true), MEASURE);
    assert!(MEASURE.contains("](worth-parts.md)") && MEASURE.contains("](worth-lies.md)"));
    let own = measure(false);
    assert!(!own.contains("](") && own.contains("(docs/worth-parts.md of hintd)"), "{own}");
    assert!(line(&["--markdown", "p", "--commit", "abc"]).unwrap().is_for_docs());
    assert!(!line(&["--markdown", "p"]).unwrap().is_for_docs());
}

#[test]
fn the_committed_page_of_parts_names_every_part() {
    let page = include_str!("../../../../docs/worth-parts.md");
    assert!(page.contains(MEASURE) && page.contains(" --without all "), "docs/worth-parts.md is of another command");
    for part in PARTS {
        assert!(page.contains(&format!("- `{}`: {}.\n", part.name, part.about)), "no {}", part.name);
        // A row of the table of parts, and one of each cell's and of all.
        assert!(page.contains(&format!("\n| {} | ", part.name)), "no row {}", part.name);
    }
    for lever in LEVERS {
        assert!(page.contains(&legend(lever)), "docs/worth-parts.md lacks {}", legend(lever));
    }
}

#[test]
fn the_committed_page_of_other_uplinks_is_of_both_clusters_and_every_lever() {
    let page = include_str!("../../../../docs/worth-uplinks.md");
    assert!(page.contains(MEASURE), "docs/worth-uplinks.md has the measure in other words");
    for lever in LEVERS {
        // Six cells and the table of all; of goals, where there are some.
        let rows = page.matches(&format!("\n| {} | ", lever.row(Some("joint")))).count();
        assert!(rows == 7 || rows == 8, "{rows} rows of {}", lever.name);
    }
    assert_eq!(page.matches(" on nas-40-2to1, bytes x 0.3\n").count(), 3);
    assert_eq!(page.matches(" on nas-40-10to1, bytes x 0.3\n").count(), 3);
}

#[test]
fn the_committed_page_of_lies_names_every_lie_and_has_it_under_each_lever_with_history() {
    let page = include_str!("../../../../docs/worth-lies.md");
    assert!(page.contains(MEASURE) && page.contains(" --lies all "), "docs/worth-lies.md is of another command");
    for lie in LIES {
        assert!(page.contains(&format!("- `{}`: {}.\n", lie.name, lie.about)), "no {}", lie.name);
        for lever in LEVERS.iter().filter(|lever| lever.history) {
            assert!(
                page.contains(&format!("\n| {}: {} | ", lever.name, lie.name)),
                "no row {} {}",
                lever.name,
                lie.name
            );
        }
    }
}

#[test]
fn each_lie_is_told_to_levers_that_know_earlier_runs_and_changes_nothing_else() {
    let levers = chosen(&["where".to_owned(), "history".to_owned()]);
    let all = lies::chosen(&[lies::ALL.to_owned()]);
    assert_eq!(all.len(), LIES.len());
    let lied = |variant: &&Variant| matches!(variant, Variant::Lied(0, 1, _));
    let variants = Variant::all(1, &levers, 0, all.len());
    assert_eq!(variants.iter().filter(lied).count(), all.len());
    assert!(!variants.iter().any(|variant| matches!(variant, Variant::Lied(_, 0, _))), "`where` knows no earlier runs");
    let mut seen = vec![HistoryLie::NONE];
    for lie in all {
        let mut settings = SimSettings::default();
        lie.set(&mut settings);
        assert!(!seen.contains(&settings.history_lie), "{} tells what another does", lie.name);
        seen.push(settings.history_lie);
        assert_eq!(SimSettings { history_lie: HistoryLie::NONE, ..settings }, SimSettings::default());
    }
}

#[test]
fn earlier_runs_are_a_row_where_they_are_asked_for() {
    let levers = chosen(&["where".to_owned(), "history".to_owned()]);
    assert_eq!(levers[1].row(Some("joint")), "places by joint, earlier runs known");
    assert!(Variant::all(1, &levers, 0, 0).contains(&Variant::Hinted(Some(0), 1)));
}
