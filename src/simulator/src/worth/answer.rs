//! What it all comes to, in one sentence or two.

use super::{
    CellWorth, Counted, FEWEST_JOBS, NETWORK_COUNTS, NETWORK_MATTERS, Overall, SEEDS_TO_BELIEVE, SLOWER_CELL, Spread,
};
use serde::Serialize;

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Runs are missing.
    Incomplete,
    /// Too few jobs or seeds, or figures that differ more from seed to seed than there is to gain.
    CannotTell,
    /// The network costs too little everywhere.
    NothingToWin,
    /// Nothing is better than YARN alone by more than chance.
    NoGain,
    /// The best is better.
    Worth,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What can be said.
    pub verdict: Verdict,
    /// Which of the hinting variants is the best, whether it is any good or not.
    pub best: Option<usize>,
    /// All of it in words.
    pub sentence: String,
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Figures of each cell.
    pub cells: &'a [CellWorth],
    /// How the cells are called.
    pub names: &'a [String],
    /// How the hinting variants are called, in the order of the cells' rows.
    pub variants: &'a [String],
    /// Jobs of the cell that has fewest.
    pub jobs: u64,
    /// Seeds.
    pub seeds: usize,
    /// Runs that belong to it.
    pub runs: usize,
    /// Runs of these that are not there.
    pub missing: usize,
}

/// The variant of the lowest mean.
#[derive(Clone, Copy)]
struct Best<'a> {
    /// Its place among the variants.
    at: usize,
    overall: &'a Overall,
    mean: Spread,
}

impl Asked<'_> {
    /// The answer.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let counted = Counted::of(self.cells);
        let hinted: Vec<Overall> = (0..self.variants.len())
            .map(|at| Overall::of(self.cells, &counted, |cell| cell.hinted[at].as_ref()))
            .collect();
        let ratio = |at: usize| hinted[at].mean.map(|mean| mean.median);
        let known = (0..hinted.len()).filter_map(|at| Some((at, ratio(at)?)));
        let best = known.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at);
        let chance = Overall::of(self.cells, &counted, |cell| cell.phases.as_ref()).mean;
        let (verdict, mut sentence) = self.judge(&counted, best.map(|at| (at, &hinted[at])), chance);
        if matches!(verdict, Verdict::NothingToWin | Verdict::NoGain) {
            sentence += &self.harm(&hinted);
        }
        Answer { verdict, best, sentence }
    }

    fn judge(&self, counted: &Counted, best: Option<(usize, &Overall)>, chance: Option<Spread>) -> (Verdict, String) {
        if self.missing > 0 {
            let there = self.runs - self.missing;
            return (Verdict::Incomplete, format!("No answer yet: {there} of {} runs are there.", self.runs));
        }
        let found = best.and_then(|(at, overall)| Some(Best { at, overall, mean: overall.mean? }));
        if self.jobs < FEWEST_JOBS {
            let (jobs, seen) = (self.jobs, self.seen(found));
            let why = format!(
                "The trace is too short to tell: {} where {FEWEST_JOBS} are the least{seen}.",
                many(jobs, "job")
            );
            return (Verdict::CannotTell, why);
        }
        let Some(Best { at, overall, mean }) = found.filter(|_| !counted.cells.is_empty()) else {
            let cost = self.cells.iter().filter_map(|cell| Some(cell.network_cost?.median)).fold(0.0, f64::max);
            let share = percent(NETWORK_COUNTS);
            let most = percent(cost);
            let why = format!(
                "Nothing is to be won here: the network costs less than {share} of completion everywhere, {most} at most."
            );
            return (Verdict::NothingToWin, why);
        };
        if self.seeds < 2 {
            let why = format!("One seed can't tell what is chance{}. Take {SEEDS_TO_BELIEVE} seeds.", self.seen(found));
            return (Verdict::CannotTell, why);
        }
        let by_chance = chance.map_or(0.0, |chance| (1.0 - chance.min).max(chance.max - 1.0));
        let name = &self.variants[at];
        let gain = 1.0 - mean.median;
        if gain <= by_chance {
            let chance = chance.map_or_else(String::new, |chance| {
                format!(", and YARN alone under other phases of heartbeats to {:.2} to {:.2}", chance.min, chance.max)
            });
            let came = format!("the best, {name}, comes to {} of YARN alone's mean completion", range(&mean));
            return (Verdict::NoGain, format!("No gain beyond chance here: {came}{chance}."));
        }
        if mean.width() > gain {
            let why = format!(
                "The trace is too short to tell: {name} comes to {} of YARN alone's mean completion, which differs more \
                 between seeds than there is to gain. Take more jobs or seeds.",
                range(&mean)
            );
            return (Verdict::CannotTell, why);
        }
        (Verdict::Worth, self.worth(name, counted, overall, &mean))
    }

    fn worth(&self, name: &str, counted: &Counted, overall: &Overall, mean: &Spread) -> String {
        let where_ = match counted.network_costs {
            share if share >= NETWORK_MATTERS => format!("where the network costs more than {}", percent(share)),
            share => format!("where the network costs {} or more", percent(share)),
        };
        let won = overall.won_back.map_or_else(String::new, |won| format!("; {} of that is won back", percent(won)));
        let worst = match (overall.worst_cell, overall.worst_cell_at) {
            (Some(ratio), Some(cell)) if ratio > SLOWER_CELL => {
                format!(" It is slower elsewhere: {ratio:.2} in {}.", self.names[cell])
            }
            (Some(ratio), _) => format!(" Its worst cell comes to {ratio:.2}."),
            _ => String::new(),
        };
        let weak = match self.seeds {
            seeds if seeds < SEEDS_TO_BELIEVE => {
                format!(" {} are weak evidence: {SEEDS_TO_BELIEVE} are better.", many(seeds as u64, "seed"))
            }
            _ => String::new(),
        };
        let (counted, cells) = (counted.cells.len(), self.cells.len());
        format!(
            "Best is {name}: mean completion is {} of YARN alone's {where_} ({counted} of {}){won}.{worst}{weak}",
            range(mean),
            many(cells as u64, "cell"),
        )
    }

    /// Where there is nothing to gain, not to be slower is all that counts.
    fn harm(&self, hinted: &[Overall]) -> String {
        let slower = hinted.iter().zip(self.variants).filter_map(|(overall, name)| {
            let (ratio, cell) = (overall.worst_cell.filter(|&ratio| ratio > SLOWER_CELL)?, overall.worst_cell_at?);
            Some(format!("{name} ({ratio:.2} in {})", self.names[cell]))
        });
        let slower: Vec<String> = slower.collect();
        if slower.is_empty() { String::new() } else { format!(" Slower than YARN alone: {}.", slower.join("; ")) }
    }

    /// What the best came to, for what it is worth.
    fn seen(&self, best: Option<Best<'_>>) -> String {
        best.map_or_else(String::new, |Best { at, mean, .. }| {
            format!("; {} came to {} of YARN alone's mean completion", self.variants[at], range(&mean))
        })
    }
}

/// The median with its spread, as `0.93 (0.91 to 0.95)`.
fn range(spread: &Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.min, spread.max)
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if (percent - percent.round()).abs() < 0.05 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn many(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
