//! Measurements as lines of values between commas.

/// Empty lines and lines that begin with #.
#[must_use]
pub fn is_passed_over(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// A line's values, without spaces and quotes around them.
#[must_use]
pub fn fields(row: &str) -> Vec<&str> {
    row.trim_start_matches('\u{feff}').split(',').map(|field| field.trim().trim_matches('"')).collect()
}

/// The column of a header that has one of these names, in any case.
#[must_use]
pub fn column(header: &[&str], names: &[&str]) -> Option<usize> {
    header.iter().position(|name| names.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// All lines of a file that say something, with their numbers.
pub fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !is_passed_over(line))
}
