//! Words that want a look, in color: on a terminal, unless --color, NO_COLOR or TERM says otherwise.

use clap::ValueEnum;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// When there are colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Whatever standard output is
    Always,
    /// Never
    Never,
}

static CHOSEN: OnceLock<When> = OnceLock::new();

/// What the command line says, once.
pub(super) fn choose(when: When) {
    CHOSEN.get_or_init(|| when);
}

/// What `--color` says in arguments that were not parsed: help is asked for, or something is wrong with them.
pub(super) fn among(args: impl IntoIterator<Item = OsString>) -> When {
    let mut args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let value = match arg.strip_prefix("--color") {
            Some("") => args.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(when) = value.and_then(|value| When::from_str(&value, false).ok()) {
            return when;
        }
    }
    When::Auto
}

/// What is broken, and what is not as it should be, as the commands write it.
const WORDS: [(&str, &str); 9] = [
    ("PROBLEM", RED),
    ("NOT READY", RED),
    ("DOWN", RED),
    ("LOST", RED),
    ("WARNING", YELLOW),
    ("DEGRADED", YELLOW),
    ("UNHEALTHY", YELLOW),
    ("STALE", YELLOW),
    ("NOTICE", YELLOW),
];
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// Whether standard output takes colors: <https://no-color.org>.
pub(super) fn wanted() -> bool {
    match CHOSEN.get() {
        Some(When::Always) => return true,
        Some(When::Never) => return false,
        Some(When::Auto) | None => {}
    }
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !refused && !dumb && std::io::stdout().is_terminal()
}

/// A text whose words above are in color, where these are wanted. Nothing in `text` may be obeyed by a terminal, but for what
/// the caller has put there.
pub(super) fn painted(text: &str, wanted: bool) -> Cow<'_, str> {
    if !wanted {
        return Cow::Borrowed(text);
    }
    let painted = WORDS.iter().fold(text.to_owned(), |text, (word, color)| paint(&text, word, color));
    Cow::Owned(painted)
}

fn paint(text: &str, word: &str, color: &str) -> String {
    let part_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let (mut painted, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        let alone = !before.chars().next_back().or(painted.chars().next_back()).is_some_and(part_of_word)
            && !after.chars().next().is_some_and(part_of_word);
        painted += before;
        painted += &if alone { format!("{color}{word}{PLAIN}") } else { word.to_owned() };
        rest = after;
    }
    painted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_painted_where_they_stand_alone_and_only_where_colors_are_wanted() {
        let text = "l1 DOWN\nDOWN-town COUNTDOWN\nNOT READY: no node\n";
        assert_eq!(painted(text, false), text);
        let expected = "l1 \x1b[31mDOWN\x1b[0m\nDOWN-town COUNTDOWN\n\x1b[31mNOT READY\x1b[0m: no node\n";
        assert_eq!(painted(text, true), expected);
    }

    #[test]
    fn help_finds_the_option_among_arguments_that_are_not_parsed() {
        let of = |line: &str| among(line.split_whitespace().map(OsString::from));
        assert_eq!([of("links --help"), of("links --color --help"), of("links --colors always")], [When::Auto; 3]);
        assert_eq!([of("--color never links --help"), of("links -h --color=never")], [When::Never; 2]);
        assert_eq!(of("links --help --color always"), When::Always);
    }

    #[test]
    fn what_goes_to_no_terminal_has_no_colors() {
        assert!(!wanted() || std::io::stdout().is_terminal());
    }
}
