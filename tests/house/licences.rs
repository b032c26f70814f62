//! Licence expressions (SPDX, and the older `A/B`) against a list of those allowed.

/// Whether the terms of `expression` can be met with `allowed` licences only.
///
/// # Errors
/// What cannot be read as an expression.
pub(crate) fn is_allowed(expression: &str, allowed: &[String]) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let allows = any(&words, &mut at, allowed).ok_or_else(|| expression.to_owned())?;
    if at == words.len() { Ok(allows) } else { Err(expression.to_owned()) }
}

fn any(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut allows = all(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allows |= all(words, at, allowed)?;
    }
    Some(allows)
}

fn all(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut allows = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allows &= one(words, at, allowed)?;
    }
    Some(allows)
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let allows = any(words, at, allowed)?;
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return closed.then_some(allows);
    }
    if matches!(word, ")" | "AND" | "OR" | "WITH") {
        return None;
    }
    let mut name = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
    }
    Some(allowed.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged_as_spdx_reads_them() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("GPL-3.0 AND Unicode-3.0 OR MIT", true),
            ("GPL-3.0 AND (Unicode-3.0 OR MIT)", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ] {
            assert_eq!(is_allowed(expression, &allowed), Ok(expected), "{expression}");
        }
        for nonsense in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR", "MIT WITH"] {
            assert!(is_allowed(nonsense, &allowed).is_err(), "{nonsense}");
        }
    }
}
