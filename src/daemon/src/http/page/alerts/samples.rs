//! Samples of Prometheus's text format, as the daemon itself exports them.

use std::collections::BTreeMap;

/// Labels of a series, by name.
pub(super) type Labels = BTreeMap<String, String>;

/// One series and its value now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) value: f64,
}

/// What of a text are samples; lines that are none are left out.
pub(super) fn samples(text: &str) -> Vec<Sample> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample> {
    let name_ends = line.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)))?;
    let (name, rest) = line.split_at(name_ends);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Labels::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| Sample { name: name.to_owned(), labels, value })
}

/// Labels up to `}`, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut found = Labels::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((found, rest));
        }
        let (name, value) = rest.split_once("=\"")?;
        let (value, after) = quoted(value)?;
        found.insert(name.trim().to_owned(), value);
        rest = after;
    }
}

/// A text up to its closing quote, and what follows it.
pub(super) fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_read_and_what_is_none_is_left_out() {
        let text = "# HELP a b\n# TYPE a gauge\na 1\nb{x=\"1\",y=\"q\\\"}\\n\"} +Inf\nc{} NaN\n\nd{x=\"open\n{} 3\ne\n";
        let found = samples(text);
        let names: Vec<&str> = found.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!((found[1].labels["y"].as_str(), found[1].value), ("q\"}\n", f64::INFINITY));
        assert!(found[2].value.is_nan() && found[2].labels.is_empty());
    }
}
