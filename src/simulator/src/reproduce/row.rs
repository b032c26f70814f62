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
    /// Printed beside the others, as the half and double compute rate, or what the paper prints no figure of; decides
    /// nothing.
    Beside,
}

/// One line of an experiment's table. `our_value` is the median over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What is measured, unique within its entry.
    pub name: String,
    /// The paper's figure; none: it prints none.
    pub paper_value: Option<f64>,
    /// Ours: the median of `values`.
    pub our_value: f64,
    /// Unit of both.
    pub unit: String,
    /// Whether ours reaches the paper's; none: there is nothing to reach.
    pub reached: Option<bool>,
    /// What reaching means; none: likewise.
    pub direction: Option<Direction>,
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
    /// An assumption that would explain a row with nothing to reach.
    #[error("row \"{row}\": the paper prints no figure for an assumption to reach")]
    NoFigure {
        /// The row that it would explain.
        row: String,
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

    /// What a reader wants to know and the paper prints no figure of: there is nothing to reach, and it decides nothing.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn without_figure(name: &str, unit: &str, values: Vec<f64>) -> Result<Self, RowError> {
        finite(name, &values)?;
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Err(RowError::NoValues { row: name.to_owned() });
        };
        Ok(Self {
            name: name.to_owned(),
            paper_value: None,
            our_value: median(&sorted),
            unit: unit.to_owned(),
            reached: None,
            direction: None,
            role: Role::Beside,
            min,
            max,
            values,
            note: String::new(),
        })
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
    /// If there are no values, one is not finite, or the paper prints no figure of `explained`.
    pub fn assumption(explained: &Self, changed: &str, values: Vec<f64>) -> Result<Self, RowError> {
        let name = format!("{} [{changed}]", explained.name);
        let Some((paper, direction)) = explained.bar() else {
            return Err(RowError::NoFigure { row: explained.name.clone() });
        };
        let made = Self::judged(&name, paper, &explained.unit, direction, values)?;
        let role = Role::Assumption { explains: explained.name.clone(), changed: changed.to_owned() };
        Ok(Self { role, note: explained.note.clone(), ..made })
    }

    /// The row, but deciding nothing.
    #[must_use]
    pub fn beside(self) -> Self {
        Self { role: Role::Beside, ..self }
    }

    /// Ours divided by the paper's; none where the paper's is 0 or not printed.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.paper_value.filter(|&paper| paper != 0.0).map(|paper| self.our_value / paper)
    }

    /// The paper's figure and what reaching it means; none where the paper prints none.
    #[must_use]
    pub fn bar(&self) -> Option<(f64, Direction)> {
        self.paper_value.zip(self.direction)
    }

    /// The row as its values make it: what a file says of median, spread and `reached` is computed again. Without a
    /// bar a row is beside, whatever the file says.
    ///
    /// # Errors
    /// If there are no values or one is not finite.
    pub fn recomputed(&self) -> Result<Self, RowError> {
        let mut made = match self.bar() {
            Some((paper, direction)) => {
                let made = Self::judged(&self.name, paper, &self.unit, direction, self.values.clone())?;
                Self { role: self.role.clone(), ..made }
            }
            None => Self::without_figure(&self.name, &self.unit, self.values.clone())?,
        };
        // JSON readers may differ in a float's last bit: then the middle of two values is not the middle written.
        if (made.our_value - self.our_value).abs() <= 1e-12 * made.our_value.abs() {
            made.our_value = self.our_value;
            made.reached = made.bar().map(|(paper, direction)| direction.reached(self.our_value, paper));
        }
        Ok(Self { note: self.note.clone(), ..made })
    }

    fn judged(name: &str, paper: f64, unit: &str, direction: Direction, values: Vec<f64>) -> Result<Self, RowError> {
        finite(name, &[paper])?;
        let made = Self::without_figure(name, unit, values)?;
        Ok(Self {
            paper_value: Some(paper),
            reached: Some(direction.reached(made.our_value, paper)),
            direction: Some(direction),
            role: Role::Figure,
            ..made
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
        assert_eq!((row.min, row.our_value, row.max, row.reached), (5.0, 20.0, 30.0, Some(true)));
        let row = Row::at_least("gain", 20.0, "%", vec![20.0, 19.0]).unwrap();
        assert_eq!((row.our_value, row.reached), (19.5, Some(false)));
        assert_eq!(Row::at_most("time", 0.5, "s", vec![0.5]).unwrap().reached, Some(true));
        assert_eq!(Row::at_most("time", 0.5, "s", vec![0.51]).unwrap().reached, Some(false));
        assert_eq!(row.ratio(), Some(0.975));
        assert_eq!(Row::at_most("violations", 0.0, "", vec![0.0]).unwrap().ratio(), None);
    }

    #[test]
    fn an_order_is_reached_only_when_every_pair_is_in_it() {
        let systems = |b: f64| [("hit", vec![1.0; 5]), ("pna", vec![b; 5]), ("capacity", vec![3.0; 5])];
        let row = Row::order("order", Better::Lower, &systems(2.0)).unwrap();
        assert_eq!((row.paper_value, row.our_value, row.reached), (Some(3.0), 3.0, Some(true)));
        assert_eq!(row.note, "hit, then pna, then capacity");
        let swapped = Row::order("order", Better::Lower, &systems(4.0)).unwrap();
        assert_eq!((swapped.our_value, swapped.reached), (2.0, Some(false)));
        let tied = Row::order("order", Better::Lower, &systems(1.0)).unwrap();
        assert_eq!(tied.reached, Some(false), "a tie is no order");
        assert_eq!(Row::order("order", Better::Higher, &systems(2.0)).unwrap().reached, Some(false));
    }

    #[test]
    fn an_assumption_row_keeps_the_papers_bar() {
        let row = Row::at_least("gain", 20.0, "%", vec![10.0]).unwrap();
        let changed = Row::assumption(&row, "rate x 2", vec![21.0]).unwrap();
        assert_eq!((changed.bar(), changed.reached), (Some((20.0, Direction::AtLeast)), Some(true)));
        assert_eq!(changed.name, "gain [rate x 2]");
    }

    #[test]
    fn a_row_without_a_figure_has_a_spread_and_nothing_to_reach() {
        let row = Row::without_figure("links", "links", vec![3.0, 1.0]).unwrap();
        assert_eq!((row.min, row.our_value, row.max), (1.0, 2.0, 3.0));
        assert_eq!((row.paper_value, row.ratio(), row.reached, &row.role), (None, None, None, &Role::Beside));
        assert_eq!(row.recomputed().unwrap(), row);
        let decides = Row { role: Role::Figure, ..row.clone() };
        assert_ne!(decides.recomputed().unwrap(), decides, "it would decide without a bar");
        assert!(matches!(Row::assumption(&row, "x", vec![1.0]), Err(RowError::NoFigure { .. })));
        assert!(matches!(Row::without_figure("links", "links", vec![]), Err(RowError::NoValues { .. })));
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
