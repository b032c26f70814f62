//! Texts of others, shown so that they can't be taken for something else.

use std::fmt::{self, Display, Write};

/// Whether a character is to be seen by nobody or changes how others look: control characters, line ends, marks of
/// writing direction, and such as have no width.
#[must_use]
pub const fn is_hidden(letter: char) -> bool {
    letter.is_ascii_control()
        || matches!(
            letter,
            '\u{80}'..='\u{9f}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Shows whatever a text says with hidden characters escaped, as in `\n` and `\u{202e}`.
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'f, 'b>(&'f mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_hidden) {
            self.0.write_str(&rest[..at])?;
            let mut letters = rest[at..].chars();
            if let Some(letter) = letters.next() {
                match letter {
                    '\n' | '\r' | '\t' => write!(self.0, "{}", letter.escape_default())?,
                    other => write!(self.0, "{}", other.escape_unicode())?,
                }
            }
            rest = letters.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_escaped_and_all_else_stays() {
        let forged = "r1\nERROR \u{1b}[31m\u{202e}gnp.exe\u{2028}\u{200d}\u{9b}";
        let shown = Shown(forged).to_string();
        assert_eq!(shown, "r1\\nERROR \\u{1b}[31m\\u{202e}gnp.exe\\u{2028}\\u{200d}\\u{9b}");
        for plain in ["", "application_1_0001", "größe · 大 – \"x\""] {
            assert_eq!(Shown(plain).to_string(), plain);
        }
    }
}
