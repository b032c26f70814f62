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

/// Letters put in, left out, replaced, or swapped with their neighbour: the distance of Damerau and Levenshtein, no
/// letter touched twice.
fn edits(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let substituted = row[j] + usize::from(letter != other);
            let mut least = substituted.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *other && *letter == b[j - 1] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
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
        assert_eq!(nearest("fiar", ["fair", "nas"].into_iter()), Some("fair"));
        assert_eq!([edits("kitten", "sitting"), edits("nsa", "nas"), edits("", "ab"), edits("ab", "")], [3, 1, 2, 2]);
    }
}
