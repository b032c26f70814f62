//! Which known name a misspelt one was meant to be.

/// The known name nearest to `name`, if it is near enough to be a typo of it.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let allowed = (name.chars().count() / 3).max(1);
    known
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|best| best.1)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_another_word_does_not() {
        let known = ["time_to_live", "answers_kept"];
        assert_eq!(nearest("time_to_life", known.into_iter()), Some("time_to_live"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
