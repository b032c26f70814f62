//! Where a plot is from: a line below it, and all of it in its `<desc>`, so that whoever finds the file can make it again.

use super::style::FAMILY;
use anyhow::Context as _;
use hintd_client::shown_address;
use std::borrow::Cow;

/// Height of the strip below the plot, pixels.
const STRIP: u32 = 24;
/// Of its letters, pixels: their size, and the width of one at most.
const LETTER: u32 = 11;
const LETTER_WIDTH: u32 = 7;
/// Options that take a daemon's address.
const ADDRESSES: [&str; 2] = ["--address", "--target"];
/// To the left of the line, pixels, and to its right.
const MARGIN: u32 = 16;

/// What a plot was made of.
#[derive(Debug)]
pub(crate) struct Provenance {
    /// The command line, as a shell takes it.
    command: String,
    /// What and which, in the order of reading: trace, cluster, seeds.
    facts: Vec<(&'static str, String)>,
}

impl Provenance {
    /// Of the command that runs. Facts without a value are left out.
    pub(crate) fn of(facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self::new(std::env::args(), facts)
    }

    fn new(words: impl Iterator<Item = String>, facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let mut command = "hintctl".to_owned();
        let mut is_address = false;
        for word in words.skip(1) {
            // Nobody's user or password; other words may have an @ that says nothing of the kind.
            let is_one = std::mem::take(&mut is_address)
                || word.contains("://")
                || ADDRESSES.iter().any(|name| word.starts_with(name));
            command += " ";
            command += &quoted(&if is_one { shown_address(&word) } else { word.clone() });
            is_address = ADDRESSES.contains(&&*word);
        }
        let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Self { command, facts }
    }

    /// `hintd 0.1.0, trace jobs.tsv, cluster paper, seeds 1, 2, 3`
    fn caption(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("; {name} {value}"));
        format!("hintd {}{}", env!("CARGO_PKG_VERSION"), facts.collect::<String>())
    }

    /// The plot with a line below it, and a description.
    ///
    /// # Errors
    /// Where it is no SVG as plotters writes them.
    pub(crate) fn sign(&self, svg: &str) -> anyhow::Result<String> {
        let begin = svg.find('>').context("the plot has no beginning")? + 1;
        let (open, rest) = svg.split_at(begin);
        let end = rest.rfind("</svg>").context("the plot has no end")?;
        let (width, height) = (attribute(open, "width")?, attribute(open, "height")?);
        let taller = height + STRIP;
        let open = open
            .replace(&format!(" height=\"{height}\""), &format!(" height=\"{taller}\""))
            .replace(&format!("\"0 0 {width} {height}\""), &format!("\"0 0 {width} {taller}\""));
        let caption = self.caption();
        let room = (width.saturating_sub(2 * MARGIN) / LETTER_WIDTH) as usize;
        let line = if caption.chars().count() > room {
            format!("{}…", caption.chars().take(room.saturating_sub(1)).collect::<String>())
        } else {
            caption.clone()
        };
        Ok(format!(
            "{open}\n<desc>{}</desc>{}<rect x=\"0\" y=\"{height}\" width=\"{width}\" height=\"{STRIP}\" fill=\"#FFFFFF\"/>\n\
             <text x=\"{MARGIN}\" y=\"{}\" font-family=\"{FAMILY}\" font-size=\"{LETTER}\" fill=\"#555555\">{}</text>\n</svg>\n",
            escaped(&format!("{}; made by: {}", caption, self.command)),
            &rest[..end],
            height + STRIP - 9,
            escaped(&line),
        ))
    }
}

fn attribute(tag: &str, name: &str) -> anyhow::Result<u32> {
    let value = tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    value.and_then(|(value, _)| value.parse().ok()).with_context(|| format!("the plot has no {name}"))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./,:=+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

/// As text of XML; what none may hold is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}')) {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// `1, 2, 3`; more than a few: `1 to 20`, where none is left out between.
pub(crate) fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 3 && seeds.windows(2).all(|pair| pair[0] + 1 == pair[1]) => {
            format!("{first} to {last}")
        }
        seeds => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A file's own name: the folder is in the command.
pub(crate) fn file(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: &str = "<svg width=\"860\" height=\"520\" viewBox=\"0 0 860 520\" xmlns=\"http://www.w3.org/2000/svg\">\n<rect/>\n</svg>\n";

    fn provenance(trace: &str) -> Provenance {
        let words = ["target/hintctl", "simulate", "--trace", "my @jobs.tsv", "--address", "ann:hunter2@h:1"];
        let facts = [("trace", trace.to_owned()), ("cluster", String::new()), ("seeds", seeds(&[1, 2, 3, 4]))];
        Provenance::new(words.map(str::to_owned).into_iter(), facts)
    }

    #[test]
    fn a_plot_says_in_a_line_and_its_description_what_it_was_made_of() {
        let signed = provenance("a<b>&.tsv").sign(PLOT).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let line = format!("hintd {version}; trace a&lt;b&gt;&amp;.tsv; seeds 1 to 4");
        assert!(signed.contains(&format!(">{line}</text>")), "{signed}");
        let command = "hintctl simulate --trace 'my @jobs.tsv' --address '(left out)@h:1'";
        assert!(signed.contains(&format!("<desc>{line}; made by: {command}</desc>")), "{signed}");
        assert!(signed.starts_with("<svg width=\"860\" height=\"544\" viewBox=\"0 0 860 544\""), "{signed}");
        assert!(signed.trim_end().ends_with("</svg>") && signed.matches("</svg>").count() == 1);
    }

    #[test]
    fn a_line_has_no_more_letters_than_there_is_room_for_and_the_description_has_all() {
        let long = "x".repeat(300);
        let signed = provenance(&long).sign(PLOT).unwrap();
        assert!(signed.contains("…</text>") && signed.matches(&long).count() == 1, "{signed}");
        assert!(provenance("t").sign("no picture").is_err());
    }

    #[test]
    fn seeds_in_a_row_are_told_by_their_ends() {
        assert_eq!(
            [seeds(&[7]), seeds(&[1, 2, 3]), seeds(&[1, 2, 3, 4, 5]), seeds(&[1, 2, 4, 5])],
            ["7", "1, 2, 3", "1 to 5", "1, 2, 4, 5"]
        );
    }
}
