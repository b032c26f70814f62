//! One figure of a paper beside ours: values over seeds, the median held against the paper's.

use serde::{Deserialize, Serialize};

/// When our value reaches the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The median is the paper's value or more.
    AtLeast,
    /// The median is the paper's value or less.
    AtMost,
    /// The systems come in the paper's order: values count pairs in order, all of them are needed.
    Order,
}

/// Which end of a measure is the good one, for [`Row::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// As for completion times.
    Lower,
    /// As for throughput.
    Higher,
}

/// What a row is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The paper's figure under the stated settings: it decides the verdict.
    Figure,
    /// The same figure with one stated assumption changed: it may explain a row that falls short.
    Assumption {
        /// The name of the row that it explains.
        explains: String,
        /// What was changed, and to what.
        changed: String,
    },
    /// Printed beside the others, as the half and double compute rate; decides nothing.
    Beside,
}

/// One line of an experiment's table. `our_value` is the median over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What is measured, unique within its entry.
    pub name: String,
    /// The paper's figure.
    pub paper_value: f64,
    /// Ours: the median of `values`.
    pub our_value: f64,
    /// Unit of both.
    pub unit: String,
    /// Whether ours reaches the paper's.
    pub reached: bool,
    /// What reaching means.
    pub direction: Direction,
    /// What the row is for.
    pub role: Role,
    /// The smallest value over seeds.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// One value for each seed, in the seeds' order.
    pub values: Vec<f64>,
    /// What a reader must know to read the row, as the systems of an order.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Values that no row can be made of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RowError {
    /// No seed was run.
    #[error("row \"{row}\" has no values")]
    NoValues {
        /// Its name.
        row: String,
    },
    /// A value that compares with nothing.
    #[error("row \"{row}\": {value} is no finite number")]
    NotFinite {
        /// Its name.
        row: String,
        /// The value.
        value: f64,
    },
    /// An order of fewer than two systems.
    #[error("row \"{row}\" orders {systems} system: an order needs two")]
    NoOrder {
        /// Its name.
        row: String,
        /// How many there are.
        systems: usize,
    },
    /// Systems measured over different seeds.
    #[error("row \"{row}\": \"{system}\" has {found} values where the first system has {expected}")]
    Uneven {
        /// The row's name.
        row: String,
        /// The system that differs.
        system: String,
        /// Its values.
        found: usize,
        /// The first system's.
        expected: usize,
    },
}

impl Row {
    /// Our figure is to be the paper's or more.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn at_least(name: &str, paper_value: f64, unit: &str, values: Vec<f64>) -> Result<Self, RowError> {
        Self::judged(name, paper_value, unit, Direction::AtLeast, values)
    }

    /// Our figure is to be the paper's or less.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn at_most(name: &str, paper_value: f64, unit: &str, values: Vec<f64>) -> Result<Self, RowError> {
        Self::judged(name, paper_value, unit, Direction::AtMost, values)
    }

    /// The systems, given in the paper's order from best to worst with their values over the same seeds, are to come
    /// in that order. Each seed's value is the number of pairs in order, a tie not counted as such.
    ///
    /// # Errors
    /// If there are fewer than two systems, uneven or no values, or one is not finite.
    pub fn order(name: &str, better: Better, systems: &[(&str, Vec<f64>)]) -> Result<Self, RowError> {
        let row = || name.to_owned();
        let Some(((_, first), _)) = systems.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return Err(RowError::NoOrder { row: row(), systems: systems.len() });
        };
        for (system, values) in systems {
            if values.len() != first.len() {
                let (found, expected) = (values.len(), first.len());
                return Err(RowError::Uneven { row: row(), system: (*system).to_owned(), found, expected });
            }
            finite(name, values)?;
        }
        let pairs = || (0..systems.len()).flat_map(|a| (a + 1..systems.len()).map(move |b| (a, b)));
        let in_order = |seed: usize| {
            let ahead = |&(a, b): &(usize, usize)| match better {
                Better::Lower => systems[a].1[seed] < systems[b].1[seed],
                Better::Higher => systems[a].1[seed] > systems[b].1[seed],
            };
            count(pairs().filter(ahead).count())
        };
        let values = (0..first.len()).map(in_order).collect();
        let mut made = Self::judged(name, count(pairs().count()), "pairs in order", Direction::Order, values)?;
        made.note = systems.iter().map(|(system, _)| *system).collect::<Vec<_>>().join(", then ");
        Ok(made)
    }

    /// The same figure as `explained`, measured with one assumption changed.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn assumption(explained: &Self, changed: &str, values: Vec<f64>) -> Result<Self, RowError> {
        let name = format!("{} [{changed}]", explained.name);
        let made = Self::judged(&name, explained.paper_value, &explained.unit, explained.direction, values)?;
        let role = Role::Assumption { explains: explained.name.clone(), changed: changed.to_owned() };
        Ok(Self { role, note: explained.note.clone(), ..made })
    }

    /// The row, but deciding nothing.
    #[must_use]
    pub fn beside(self) -> Self {
        Self { role: Role::Beside, ..self }
    }

    /// Ours divided by the paper's; none where the paper's is 0.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.paper_value != 0.0).then(|| self.our_value / self.paper_value)
    }

    /// The row as its values make it: what a file says of median, spread and `reached` is computed again.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn recomputed(&self) -> Result<Self, RowError> {
        let mut made = Self::judged(&self.name, self.paper_value, &self.unit, self.direction, self.values.clone())?;
        // JSON readers may differ in a float's last bit: then the middle of two values is not the middle written.
        if (made.our_value - self.our_value).abs() <= 1e-12 * made.our_value.abs() {
            made.our_value = self.our_value;
            made.reached = self.direction.reached(self.our_value, self.paper_value);
        }
        Ok(Self { role: self.role.clone(), note: self.note.clone(), ..made })
    }

    fn judged(name: &str, paper: f64, unit: &str, direction: Direction, values: Vec<f64>) -> Result<Self, RowError> {
        finite(name, &[paper])?;
        finite(name, &values)?;
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Err(RowError::NoValues { row: name.to_owned() });
        };
        let ours = median(&sorted);
        Ok(Self {
            name: name.to_owned(),
            paper_value: paper,
            our_value: ours,
            unit: unit.to_owned(),
            reached: direction.reached(ours, paper),
            direction,
            role: Role::Figure,
            min,
            max,
            values,
            note: String::new(),
        })
    }
}

impl Direction {
    fn reached(self, ours: f64, paper: f64) -> bool {
        match self {
            Self::AtLeast | Self::Order => ours >= paper,
            Self::AtMost => ours <= paper,
        }
    }
}

fn finite(row: &str, values: &[f64]) -> Result<(), RowError> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(&value) => Err(RowError::NotFinite { row: row.to_owned(), value }),
        None => Ok(()),
    }
}

/// Of sorted values, at least one; between the two middle ones of an even number.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("a handful of systems has few pairs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides_and_the_spread_is_kept() {
        let row = Row::at_least("gain", 20.0, "%", vec![19.0, 30.0, 20.0, 5.0, 21.0]).unwrap();
        assert_eq!((row.min, row.our_value, row.max, row.reached), (5.0, 20.0, 30.0, true));
        let row = Row::at_least("gain", 20.0, "%", vec![20.0, 19.0]).unwrap();
        assert_eq!((row.our_value, row.reached), (19.5, false));
        assert!(Row::at_most("time", 0.5, "s", vec![0.5]).unwrap().reached);
        assert!(!Row::at_most("time", 0.5, "s", vec![0.51]).unwrap().reached);
        assert_eq!(row.ratio(), Some(0.975));
        assert_eq!(Row::at_most("violations", 0.0, "", vec![0.0]).unwrap().ratio(), None);
    }

    #[test]
    fn an_order_is_reached_only_when_every_pair_is_in_it() {
        let systems = |b: f64| [("hit", vec![1.0; 5]), ("pna", vec![b; 5]), ("capacity", vec![3.0; 5])];
        let row = Row::order("order", Better::Lower, &systems(2.0)).unwrap();
        assert_eq!((row.paper_value, row.our_value, row.reached), (3.0, 3.0, true));
        assert_eq!(row.note, "hit, then pna, then capacity");
        let swapped = Row::order("order", Better::Lower, &systems(4.0)).unwrap();
        assert_eq!((swapped.our_value, swapped.reached), (2.0, false));
        let tied = Row::order("order", Better::Lower, &systems(1.0)).unwrap();
        assert!(!tied.reached, "a tie is no order");
        assert!(!Row::order("order", Better::Higher, &systems(2.0)).unwrap().reached);
    }

    #[test]
    fn an_assumption_row_keeps_the_papers_bar() {
        let row = Row::at_least("gain", 20.0, "%", vec![10.0]).unwrap();
        let changed = Row::assumption(&row, "rate x 2", vec![21.0]).unwrap();
        assert_eq!((changed.paper_value, changed.direction, changed.reached), (20.0, Direction::AtLeast, true));
        assert_eq!(changed.name, "gain [rate x 2]");
    }

    #[test]
    fn values_that_compare_with_nothing_are_refused() {
        assert!(matches!(Row::at_least("r", 1.0, "", vec![]), Err(RowError::NoValues { .. })));
        assert!(matches!(Row::at_least("r", 1.0, "", vec![f64::NAN]), Err(RowError::NotFinite { .. })));
        assert!(matches!(Row::at_least("r", f64::INFINITY, "", vec![1.0]), Err(RowError::NotFinite { .. })));
        assert!(matches!(Row::order("r", Better::Lower, &[("a", vec![1.0])]), Err(RowError::NoOrder { .. })));
        let uneven = Row::order("r", Better::Lower, &[("a", vec![1.0]), ("b", vec![])]);
        assert!(matches!(uneven, Err(RowError::Uneven { .. })));
    }
}
