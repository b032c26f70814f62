//! Tokens that stories cannot provoke, found in the source wherever it is: words that functions return as
//! `&'static str`, and counter names. Each recorded token must remain a string literal somewhere in `src/`.

use crate::programs::root;
use std::collections::BTreeSet;

/// Tokens and literals of the source.
pub(crate) struct Source {
    /// Words in functions that define tokens.
    pub(crate) tokens: BTreeSet<String>,
    /// All string literals.
    pub(crate) literals: BTreeSet<String>,
}

/// Reads `src/` without its tests.
pub(crate) fn read() -> Source {
    let mut source = Source { tokens: BTreeSet::new(), literals: BTreeSet::new() };
    let mut open = vec![root().join("src")];
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if ["tests", "tests.rs", "testing.rs"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
            source.literals.extend(literals(text));
            source.tokens.extend(defined(text));
        }
    }
    assert!(source.tokens.len() > 100, "where is the source? {} tokens", source.tokens.len());
    source
}

/// String literals, line by line; tokens contain neither quotes nor line ends.
fn literals(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Whether a word has the form of a token.
fn is_token(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// Tokens in functions that return `&'static str` and contain at least two, and counter names.
fn defined(text: &str) -> BTreeSet<String> {
    let mut tokens = BTreeSet::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some((word, count)) = line.split_once(".add(\"").and_then(|(_, rest)| rest.split_once("\", ")) {
            // Counters are followed by a count, problems of documents by a message.
            if is_token(word) && !count.starts_with(['"', 'f', 'p', 'm']) {
                tokens.insert(format!("counter {word}"));
            }
        }
        let signature = line.contains("fn ")
            && line.trim_end().ends_with('{')
            && line.contains("-> ")
            && line.contains("&'static str");
        if signature {
            let indent = line.len() - line.trim_start().len();
            let end = |line: &&&str| line.len() - line.trim_start().len() > indent || line.trim().is_empty();
            let body: Vec<&str> = lines[at + 1..].iter().take_while(end).copied().collect();
            let words: BTreeSet<String> =
                literals(&body.join("\n")).into_iter().filter(|word| is_token(word)).collect();
            if words.len() > 1 {
                tokens.extend(words);
            }
        }
    }
    tokens
}

/// The recorded tokens that are still literals; when recording, those that are defined now as well.
pub(crate) fn lines(recorded: &BTreeSet<String>) -> Vec<String> {
    const MARK: &str = "token in the source: ";
    let source = read();
    let still = recorded
        .iter()
        .filter_map(|line| line.strip_prefix(MARK))
        .filter(|token| source.literals.contains(token.trim_start_matches("counter ")));
    // New ones are not reported: not every function that returns words defines tokens.
    let new = source.tokens.iter().map(String::as_str).filter(|_| crate::lists::recording());
    still.chain(new).map(|token| format!("{MARK}{token}")).collect()
}

#[test]
fn tokens_are_told_from_prose() {
    let text = r#"
impl X {
    const fn as_str(self) -> &'static str {
        match self {
            A => "no_room",
            B => "leased",
            C => "no such thing",
        }
    }
}
fn f() {
    meters.add("leases_bound", 1);
    problems.add("racks", "is 0");
}
"#;
    let found: Vec<String> = defined(text).into_iter().collect();
    assert_eq!(found, ["counter leases_bound", "leased", "no_room"]);
}
