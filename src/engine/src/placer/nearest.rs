//! What a name was probably meant to be.

/// Names looked at for a suggestion: an error should not cost more than an answer.
const NEAREST_LOOKED_AT: usize = 2_000;

/// The known name that `name` was probably meant to be.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    hintd_model::solve::nearest(name, known.take(NEAREST_LOOKED_AT)).map(str::to_owned)
}
