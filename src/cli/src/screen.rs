//! The terminal: keys as they are pressed, and lines in the place of those before. It is left as it was found.

use super::super::printable::one_line;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use tokio::sync::mpsc;

/// Another screen than the one with the shell's history, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// See the module.
pub(super) struct Screen {
    before: Termios,
    keys: mpsc::Receiver<u8>,
}

impl Screen {
    /// Keys come at once and are not shown; signals stay what they are.
    pub(super) fn open() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut keys_at_once = before.clone();
        keys_at_once.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &keys_at_once)?;
        let screen = Self { before, keys: keys() };
        write(ENTER)?;
        Ok(screen)
    }

    /// The next key; `None`: standard input has ended.
    pub(super) async fn key(&mut self) -> Option<u8> {
        self.keys.recv().await
    }

    /// Shows a head, whole, and lines, as many and as much of each as there is room for.
    pub(super) fn draw(&mut self, head: &str, lines: &[String]) -> io::Result<()> {
        let (height, width) = match termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (usize::from(size.ws_row), usize::from(size.ws_col)),
            _ => (24, 80),
        };
        write(&frame(head, lines, height, width))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = write(LEAVE);
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// What shows these lines and nothing of what stood there before.
fn frame(head: &str, lines: &[String], height: usize, width: usize) -> String {
    let mut text = "\x1b[H".to_owned();
    let head: Vec<char> = one_line(head).chars().collect();
    let head = head.chunks(width.max(1)).map(|part| part.iter().collect::<String>());
    let lines = lines.iter().map(|line| one_line(line).chars().take(width).collect());
    for (at, shown) in head.chain(lines).take(height).enumerate() {
        let end = if at == 0 { "" } else { "\r\n" };
        let _ = write!(text, "{end}{shown}\x1b[K"); // a string takes all
    }
    text + "\x1b[J"
}

/// A thread reads, for as long as the process lives: nothing can end a read from a terminal.
fn keys() -> mpsc::Receiver<u8> {
    let (sender, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut key = [0];
        while stdin.read_exact(&mut key).is_ok() && sender.blocking_send(key[0]).is_ok() {}
    });
    keys
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_its_terminal_and_says_nothing_to_it_by_names() {
        let lines = ["a\x1b[2Jb".to_owned(), "0123456789".to_owned(), "c".to_owned()];
        assert_eq!(frame("head", &lines, 3, 9), "\x1b[Hhead\x1b[K\r\na\\u{1b}[2\x1b[K\r\n012345678\x1b[K\x1b[J");
        // Why nobody answers is no line to cut.
        assert_eq!(frame("0123456789", &lines[2..], 3, 9), "\x1b[H012345678\x1b[K\r\n9\x1b[K\r\nc\x1b[K\x1b[J");
    }
}
