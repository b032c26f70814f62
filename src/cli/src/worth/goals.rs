//! What the project set out to reach, beside what the runs came to.

use super::outcome::Outcome;
use super::table::{percent, two};
use hintd_simulator::worth::Overall;

/// A lever's goals; shares are of 1, ratios against YARN alone.
struct Goals {
    lever: &'static str,
    mean: f64,
    won_back: f64,
    cross_rack: f64,
    slowest: f64,
}

const GOALS: [Goals; 4] = [
    Goals { lever: "where", mean: 0.90, won_back: 0.20, cross_rack: 1.0, slowest: 2.0 },
    Goals { lever: "when", mean: 0.72, won_back: 0.45, cross_rack: 1.0, slowest: 3.0 },
    Goals { lever: "data", mean: 0.78, won_back: 0.45, cross_rack: 0.75, slowest: 2.0 },
    Goals { lever: "data-when", mean: 0.68, won_back: 0.55, cross_rack: 0.75, slowest: 3.0 },
];
/// Of all levers.
const WORST_CELL: f64 = 1.02;
/// Of all levers.
const SLOWER: f64 = 0.05;

/// Heads of the columns.
pub(super) const HEAD: [&str; 7] =
    ["found (goal)", "mean x", "won back %", "worst cell x", "cross-rack x", "slower beyond chance %", "slowest x"];

/// A line for each lever of the first policy that has goals; what falls short of one is in bold.
pub(super) fn rows(outcome: &Outcome<'_>) -> Vec<[String; 7]> {
    let Some(policy) = outcome.overall.first().map(|hinted| hinted.policy) else { return Vec::new() };
    let hinted = outcome.overall.iter().filter(|hinted| hinted.policy == policy && hinted.is_whole());
    let with_goals =
        hinted.filter_map(|hinted| Some((hinted, GOALS.iter().find(|goals| goals.lever == hinted.lever)?)));
    with_goals.map(|(hinted, goals)| row(&hinted.name, &hinted.figures, goals)).collect()
}

fn row(name: &str, found: &Overall, goals: &Goals) -> [String; 7] {
    let at_most = |found, goal, print: fn(f64) -> String| cell(found, goal, print, found <= Some(goal));
    [
        name.to_owned(),
        at_most(found.mean.map(|mean| mean.median), goals.mean, two),
        cell(found.won_back, goals.won_back, percent, found.won_back >= Some(goals.won_back)),
        at_most(found.worst_cell, WORST_CELL, two),
        at_most(found.cross_rack, goals.cross_rack, two),
        at_most(found.slower_beyond_phases, SLOWER, percent),
        at_most(found.slowest, goals.slowest, two),
    ]
}

fn cell(found: Option<f64>, goal: f64, print: fn(f64) -> String, reached: bool) -> String {
    let Some(found) = found else { return "-".to_owned() };
    let (found, goal) = (print(found), print(goal));
    // What reads as the goal reaches it.
    if reached || found == goal { format!("{found} ({goal})") } else { format!("**{found}** ({goal})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_short_is_bold_and_what_reads_as_the_goal_reaches_it() {
        let goals = &GOALS[0];
        let found = Overall {
            won_back: Some(0.198),
            worst_cell: Some(1.024),
            cross_rack: Some(1.006),
            slower_beyond_phases: None,
            slowest: Some(2.0),
            ..Overall::default()
        };
        let line = row("places", &found, goals);
        assert_eq!(line[1..], ["-", "**19.8** (20)", "1.02 (1.02)", "**1.01** (1.00)", "-", "2.00 (2.00)"]);
    }
}
