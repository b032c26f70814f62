//! Which known name a misspelt one was meant to be.

use strsim::osa_distance;

/// The known name nearest to `name`, if it is near enough to be a typo of it: counted are letters put in, left out,
/// replaced, or swapped with their neighbour.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let allowed = (name.chars().count() / 3).max(1);
    known
        .map(|candidate| (osa_distance(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|best| best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_another_word_does_not() {
        let known = ["time_to_live", "answers_kept"];
        assert_eq!(nearest("time_to_life", known.into_iter()), Some("time_to_live"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest("fiar", ["fair", "nas"].into_iter()), Some("fair"));
        let pairs = [("kitten", "sitting"), ("nsa", "nas"), ("", "ab"), ("ab", ""), ("ca", "abc")];
        assert_eq!(pairs.map(|(a, b)| osa_distance(a, b)), [3, 1, 2, 2, 3]);
    }
}
