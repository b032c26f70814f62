//! The terminal for `top` and `--watch`: keys as they are pressed, and lines in the place of those before. It is left as it was found.

use super::colors;
use super::failure::Failure;
use super::interrupt::Interrupts;
use super::printable::one_line;
use super::scroll::{Decoder, Key};
use super::width::of_terminal as size;
use rustix::process::{Signal as SignalNumber, getpid, kill_process};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Another screen than the one with the shell's history, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// An answer that takes longer is said to be waited for.
const LATE: Duration = Duration::from_secs(1);
const WAITING: &str = "the daemon does not answer (q or Ctrl-C quits)";
/// Keys that wait to be taken.
const KEYS: usize = 16;

/// What is shown again and again.
pub(super) trait Live {
    /// What stands first.
    fn head(&self) -> String;
    /// The lines below, for so many lines and columns; what does not fit is cut.
    fn lines(&mut self, room: (usize, usize)) -> Vec<String>;
    /// Looks again; what was there stays where this fails.
    async fn look(&mut self) -> Result<(), Failure>;
    /// A key other than `q`.
    fn key(&mut self, key: Key);
}

/// Time between two looks.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    if (0.1..=3_600.0).contains(&seconds) { Ok(seconds) } else { Err(format!("{seconds} is outside 0.1 to 3600")) }
}

/// Whether there is a terminal to show it on.
///
/// # Errors
/// [`Failure::Input`] with `instead`, which says what works without one.
pub(super) fn terminal(instead: &str) -> Result<(), Failure> {
    match io::stdout().is_terminal() && io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(Failure::Input(format!("there is no terminal: {instead}"))),
    }
}

/// Shows it until `q` or Ctrl-C is pressed or a signal ends it. A daemon that goes away is waited for: what was shown last stays, with
/// the reason. Keys and signals are heard while it is waited for. The terminal is left as it was found, while the process is
/// stopped (Ctrl-Z) as well.
pub(super) async fn live(shown: &mut impl Live, every: Duration) -> Result<(), Failure> {
    let mut signals = Signals::new()?; // unheard, they would end or stop the process before the screen is left
    let mut screen = Screen::open().map_err(broken)?;
    let mut trouble = None;
    let mut next = Instant::now() + every;
    loop {
        let head = trouble.clone().unwrap_or_else(|| shown.head());
        let lines = shown.lines(room_below(&head));
        screen.draw(&head, &lines).map_err(broken)?;
        tokio::select! {
            heard = screen.heard(&mut signals) => match heard? {
                Heard::Quit => return Ok(()),
                Heard::Key(key) => shown.key(key),
                Heard::Stop => screen.stopped(&mut signals).await?,
            },
            () = sleep_until(next) => {
                let Some(looked) = look(shown, &mut screen, &mut signals).await? else { return Ok(()) };
                trouble = looked.err().map(|failure| failure.to_string());
                next = Instant::now() + every;
            }
        }
    }
}

/// Looks again, and hears keys and signals meanwhile; `None`: `q` was pressed.
async fn look(
    shown: &mut impl Live,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Option<Result<(), Failure>>, Failure> {
    let lines = shown.lines(room_below(WAITING));
    let (mut pressed, mut waits) = (Vec::new(), false);
    let late = Instant::now() + LATE;
    let looked = {
        let looking = shown.look();
        tokio::pin!(looking);
        loop {
            tokio::select! {
                looked = &mut looking => break looked,
                heard = screen.heard(signals) => match heard? {
                    Heard::Quit => return Ok(None),
                    Heard::Key(key) if pressed.len() < KEYS => pressed.push(key),
                    Heard::Key(_) => {}
                    Heard::Stop => screen.stopped(signals).await?,
                },
                () = sleep_until(late), if !waits => waits = true,
            }
            if waits {
                screen.draw(WAITING, &lines).map_err(broken)?;
            }
        }
    };
    pressed.into_iter().for_each(|key| shown.key(key));
    Ok(Some(looked))
}

fn broken(error: io::Error) -> Failure {
    Failure::work(format!("the terminal: {error}"))
}

/// Signals that would leave a terminal as it is.
struct Signals {
    interrupt: Interrupts,
    terminate: Signal,
    hang_up: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let heard = |kind| signal(kind).map_err(|error| Failure::work(format!("signals: {error}")));
        Ok(Self {
            interrupt: Interrupts::hear()?,
            terminate: heard(SignalKind::terminate())?,
            hang_up: heard(SignalKind::hangup())?,
            stop: heard(SignalKind::from_raw(SignalNumber::TSTP.as_raw()))?,
            go_on: heard(SignalKind::from_raw(SignalNumber::CONT.as_raw()))?,
        })
    }
}

/// What is heard of whoever looks.
enum Heard {
    Quit,
    Key(Key),
    /// The process is to be stopped.
    Stop,
}

/// See the module.
struct Screen {
    before: Termios,
    keys: mpsc::Receiver<Key>,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let screen = Self { before: termios::tcgetattr(io::stdin())?, keys: keys() };
        screen.enter()?;
        Ok(screen)
    }

    /// Keys come at once and are not shown; signals stay what they are.
    fn enter(&self) -> io::Result<()> {
        let mut keys_at_once = self.before.clone();
        keys_at_once.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &keys_at_once)?;
        write(ENTER)
    }

    fn leave(&self) -> io::Result<()> {
        write(LEAVE)?;
        Ok(termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before)?)
    }

    /// The next key or signal; nothing is lost where the caller does not wait for it.
    async fn heard(&mut self, signals: &mut Signals) -> Result<Heard, Failure> {
        tokio::select! {
            key = self.keys.recv() => Ok(match key {
                None | Some(Key::Letter(b'q' | b'Q')) => Heard::Quit,
                Some(key) => Heard::Key(key),
            }),
            // What is shown until somebody has seen enough ends well by it, as top(1) and watch(1) do.
            () = signals.interrupt.came() => Ok(Heard::Quit),
            _ = signals.terminate.recv() => Err(Failure::work("ended by SIGTERM")),
            _ = signals.hang_up.recv() => Err(Failure::work("ended by SIGHUP")),
            _ = signals.stop.recv() => Ok(Heard::Stop),
        }
    }

    /// Leaves the screen, stops the process, and enters the screen when it goes on. Not to be given up half way.
    async fn stopped(&self, signals: &mut Signals) -> Result<(), Failure> {
        self.leave().map_err(broken)?;
        kill_process(getpid(), SignalNumber::STOP).map_err(|error| broken(error.into()))?;
        // The stop may take a moment; that it is over is said by this alone.
        signals.go_on.recv().await;
        self.enter().map_err(broken)
    }

    /// Shows a head, whole, and lines, as many and as much of each as there is room for.
    fn draw(&mut self, head: &str, lines: &[String]) -> io::Result<()> {
        let (height, width) = size();
        write(&colors::painted(&frame(head, lines, height, width), colors::wanted()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.leave();
    }
}

/// Lines and columns of the terminal below what stands first.
fn room_below(head: &str) -> (usize, usize) {
    let (height, width) = size();
    (height.saturating_sub(one_line(head).chars().count().div_ceil(width.max(1))), width)
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
fn keys() -> mpsc::Receiver<Key> {
    let (sender, keys) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let (mut byte, mut decoder) = ([0], Decoder::default());
        while stdin.read_exact(&mut byte).is_ok() {
            if decoder.key(byte[0]).is_some_and(|key| sender.blocking_send(key).is_err()) {
                return;
            }
        }
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
