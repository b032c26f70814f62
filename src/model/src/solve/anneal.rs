//! Simulated annealing that knows no clusters (Kirkpatrick, Gelatt and Vecchi 1983).
//!
//! A round cools geometrically from the best state so far, returns to the best state it met and descends
//! greedily from there. Rounds repeat, each with the same random draws, until one of them gains nothing: so
//! that solving a settled state again with the same schedule moves nothing.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// A state, its neighbours, and what moving costs.
pub trait Landscape {
    /// One change of state.
    type Move: Copy;

    /// A random neighbour's move; `None`: the draw hit nothing that is allowed.
    fn propose(&mut self, random: &mut ChaCha8Rng) -> Option<Self::Move>;

    /// Cost after the move minus cost now. The state is the same before and after the call.
    fn delta(&mut self, step: Self::Move) -> f64;

    /// Makes an allowed move.
    fn apply(&mut self, step: Self::Move);

    /// Takes back the move made last.
    fn undo(&mut self, step: Self::Move);

    /// Size of the numbered neighbourhood that the descent walks.
    fn neighbors(&self) -> u64;

    /// The move of that number in the present state; `None`: it is not allowed or changes nothing.
    fn neighbor(&self, number: u64) -> Option<Self::Move>;
}

/// How to cool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// First temperature, in units of cost; positive.
    pub start: f64,
    /// Last temperature; positive, at most `start`.
    pub end: f64,
    /// Proposals in one round.
    pub steps: u64,
    /// Most rounds.
    pub rounds: u32,
    /// Seed of all draws.
    pub seed: u64,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Annealed {
    /// Cost at the end minus cost at the start, summed over moves; never positive.
    pub gain: f64,
    /// The last round gained nothing: annealing the result again would not move it.
    pub settled: bool,
    /// Rounds begun.
    pub rounds: u32,
}

/// Gains below this are rounding.
const EPSILON: f64 = 1e-12;

/// Numbers without a move that count as one step: large neighbourhoods must not outlast the gate either.
const SKIPS: u64 = 256;

/// Leaves `landscape` in the best state found; the state at the start is never left for a worse or equal one.
/// `gate` is asked before every step and before every neighbour of the descent; false ends the search.
pub fn anneal<L: Landscape>(landscape: &mut L, schedule: &Schedule, gate: &mut dyn FnMut() -> bool) -> Annealed {
    let mut done = Annealed { gain: 0.0, settled: false, rounds: 0 };
    while done.rounds < schedule.rounds && !done.settled {
        done.rounds += 1;
        let cooled = cool(landscape, schedule, gate);
        let (descended, complete) = descend(landscape, gate);
        done.gain += cooled + descended;
        if !complete {
            break;
        }
        done.settled = cooled + descended > -EPSILON;
    }
    done
}

/// One round of cooling; returns the gain of the best state met, in which it leaves the landscape.
fn cool<L: Landscape>(landscape: &mut L, schedule: &Schedule, gate: &mut dyn FnMut() -> bool) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(schedule.seed);
    let factor = (schedule.end / schedule.start).powf(1.0 / schedule.steps.max(1) as f64);
    let mut temperature = schedule.start;
    let (mut cost, mut best) = (0.0, 0.0);
    // Moves since the best state: taking them back restores it without a copy of the state.
    let mut since: Vec<L::Move> = Vec::new();
    for _ in 0..schedule.steps {
        if !gate() {
            break;
        }
        temperature *= factor;
        let Some(step) = landscape.propose(&mut random) else { continue };
        let delta = landscape.delta(step);
        if delta > 0.0 && random.random::<f64>() >= (-delta / temperature).exp() {
            continue;
        }
        landscape.apply(step);
        cost += delta;
        if cost < best - EPSILON {
            best = cost;
            since.clear();
        } else {
            since.push(step);
        }
    }
    while let Some(step) = since.pop() {
        landscape.undo(step);
    }
    best
}

/// Takes improving moves, by number and round and round, until a whole round has none; returns the gain and
/// whether it came to that end.
pub fn descend<L: Landscape>(landscape: &mut L, gate: &mut dyn FnMut() -> bool) -> (f64, bool) {
    let mut gain = 0.0;
    let (mut number, mut without, mut skipped) = (0, 0, 0);
    while without < landscape.neighbors() {
        let step = landscape.neighbor(number);
        number = (number + 1) % landscape.neighbors();
        without += 1;
        skipped = if step.is_some() { 0 } else { (skipped + 1) % SKIPS };
        if skipped == 0 && !gate() {
            return (gain, false);
        }
        let Some(step) = step else { continue };
        let delta = landscape.delta(step);
        if delta < -EPSILON {
            landscape.apply(step);
            gain += delta;
            without = 0;
        }
    }
    (gain, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers on a circle, sorted by swapping neighbours: the cost is the sum of |number − place|·weight.
    #[derive(Debug, Clone, PartialEq)]
    struct Shelf(Vec<i64>);

    impl Shelf {
        fn cost(&self) -> f64 {
            // Rugged on purpose: parity costs too, so that single swaps meet local optima.
            let place = |(at, &number): (usize, &i64)| {
                let off = (number - at as i64).abs();
                off as f64 + if off % 3 == 1 { 1.5 } else { 0.0 }
            };
            self.0.iter().enumerate().map(place).sum()
        }
    }

    impl Landscape for Shelf {
        type Move = (usize, usize);

        fn propose(&mut self, random: &mut ChaCha8Rng) -> Option<Self::Move> {
            let (a, b) = (random.random_range(0..self.0.len()), random.random_range(0..self.0.len()));
            (a != b).then_some((a, b))
        }

        fn delta(&mut self, (a, b): Self::Move) -> f64 {
            let before = self.cost();
            self.0.swap(a, b);
            let after = self.cost();
            self.0.swap(a, b);
            after - before
        }

        fn apply(&mut self, (a, b): Self::Move) {
            self.0.swap(a, b);
        }

        fn undo(&mut self, (a, b): Self::Move) {
            self.0.swap(a, b);
        }

        fn neighbors(&self) -> u64 {
            (self.0.len() * self.0.len()) as u64
        }

        fn neighbor(&self, number: u64) -> Option<Self::Move> {
            let (a, b) = (number as usize / self.0.len(), number as usize % self.0.len());
            (a < b).then_some((a, b))
        }
    }

    const SCHEDULE: Schedule = Schedule { start: 5.0, end: 0.05, steps: 2_000, rounds: 8, seed: 3 };

    fn shuffled(count: usize) -> Shelf {
        Shelf((0..count as i64).map(|number| number * 7 % count as i64).collect())
    }

    #[test]
    fn it_finds_what_descent_alone_does_not() {
        let mut greedy = shuffled(12);
        descend(&mut greedy, &mut || true);
        let mut annealed = shuffled(12);
        let done = anneal(&mut annealed, &SCHEDULE, &mut || true);
        assert!(annealed.cost() <= greedy.cost());
        assert_eq!((annealed.cost(), done.settled), (0.0, true));
    }

    #[test]
    fn the_gate_ends_it_in_the_best_state_met() {
        let start = shuffled(20).cost();
        for steps in [0, 1, 50, 500] {
            let (mut shelf, mut left) = (shuffled(20), steps);
            let done = anneal(&mut shelf, &SCHEDULE, &mut || {
                left -= 1;
                left >= 0
            });
            assert!(shelf.cost() <= start && !done.settled);
            assert!((shelf.cost() - start - done.gain).abs() < 1e-9);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_settled_state_stays_where_it_is(count in 2_usize..14, seed in 0_u64..1_000) {
            let mut shelf = shuffled(count);
            let schedule = Schedule { seed, steps: 300, rounds: 50, ..SCHEDULE };
            prop_assert!(anneal(&mut shelf, &schedule, &mut || true).settled);
            let settled = shelf.clone();
            let again = anneal(&mut shelf, &schedule, &mut || true);
            prop_assert_eq!((again.rounds, again.gain), (1, 0.0));
            prop_assert_eq!(shelf, settled);
        }
    }
}
