//! What `pat-cost` and `pat-network` share: figures of one field, and the same under each assumption that was changed.

use super::field::{Case, Placed, all};
use crate::reproduce::hit::systems::failed;
use crate::reproduce::{ReproduceError, Row, RunContext};

/// One seed's field under `capacity`, `pna`, `pat` and `hit`.
pub(super) type Runs = [Placed; 4];

/// A value of each seed.
pub(super) fn values(runs: &[Runs], value: impl Fn(&Runs) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

/// The rows of `figures`, then those of every changed case as assumptions, then those of `beside`.
pub(super) fn rows(
    name: &'static str,
    context: &RunContext<'_>,
    figures: fn(&[Runs]) -> Result<Vec<Row>, ReproduceError>,
    beside: fn(&[Runs]) -> Result<Vec<Row>, ReproduceError>,
) -> Result<Vec<Row>, ReproduceError> {
    let measure = |case: Case| context.per_seed(|seed| all(case, seed).map_err(|error| failed(name, error)));
    let case = Case::new(context.scale);
    let base = measure(case)?;
    let found = figures(&base)?;
    let mut rows = found.clone();
    for (changed, case) in case.changed() {
        (context.progress)(&format!("{name}: {changed}"));
        for (row, other) in found.iter().zip(figures(&measure(case)?)?) {
            rows.push(Row::assumption(row, changed, other.values)?);
        }
    }
    rows.extend(beside(&base)?);
    Ok(rows)
}
