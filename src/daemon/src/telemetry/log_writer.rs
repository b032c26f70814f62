//! The thread that writes log lines: whoever logs never waits for whoever reads.
//!
//! tracing-appender is not used: its queue is bounded in lines, not in bytes; where the queue is full at the end it
//! prints on standard output, which hangs where that is the same stalled pipe; and it neither says in the log that lines
//! are missing nor counts those that a full disk refused (docs/decisions.md).

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::registry::{Metrics, SharedCounter};

pub(super) const LOG_LINES_DROPPED: &str = "hintd_log_lines_dropped_total";

/// Bytes of lines that may wait to be written, and as many again that are being written: some 20,000 lines.
pub const WAITING_BYTES: usize = 4 << 20;
/// A buffer that grew beyond this for a burst is given back after it.
const KEPT_BYTES: usize = 64 << 10;
/// Pause before another try where the reader shares a descriptor that does not block.
const AGAIN: Duration = Duration::from_millis(50);

/// Makes the line that tells how many are missing.
type Notice = Box<dyn Fn(u64) -> String + Send>;

/// Takes lines and returns at once; a thread of its own writes them. What finds no room is dropped and counted.
#[derive(Debug, Clone)]
pub struct LogWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    state: Mutex<State>,
    /// Lines came.
    work: Condvar,
    /// All is written.
    idle: Condvar,
}

#[derive(Default)]
struct State {
    /// Whole lines, one after another.
    waiting: Vec<u8>,
    /// Lines that found no room since the thread looked last.
    untold: u64,
    /// The thread is at work on lines that it took.
    writing: bool,
    dropped: u64,
    exported: Option<SharedCounter>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting.len()).field("dropped", &self.dropped).finish()
    }
}

impl State {
    fn drop_lines(&mut self, lines: u64) {
        self.dropped += lines;
        if let Some(exported) = &self.exported {
            exported.add(lines);
        }
    }
}

impl LogWriter {
    /// A writer to `to`, where at most `most` bytes wait. `notice` makes the line that says how many lines are missing,
    /// which follows the next lines that can be written. The thread lives as long as the process.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(
        to: impl Write + Send + 'static,
        most: usize,
        notice: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Shared { most, state: Mutex::default(), work: Condvar::default(), idle: Condvar::default() };
        let writer = Self(Arc::new(shared));
        let own = writer.clone();
        let thread = std::thread::Builder::new().name("logs".to_owned());
        thread.spawn(move || own.run(to, &(Box::new(notice) as Notice)))?;
        Ok(writer)
    }

    /// Leaves a line, or several that belong together, to be written.
    pub fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.waiting.len() + line.len() > self.0.most {
            state.untold += 1;
            state.drop_lines(1);
            return;
        }
        state.waiting.extend_from_slice(line);
        drop(state);
        self.0.work.notify_one();
    }

    /// Lines that were dropped, or that could not be written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Counts dropped lines as a metric from now on, and those of before.
    pub fn count_in(&self, metrics: &Metrics) {
        let counter = metrics.counter(LOG_LINES_DROPPED, &[]);
        let mut state = self.state();
        counter.add(state.dropped);
        state.exported = Some(counter);
    }

    /// Waits until all lines are written, at most `limit`; whether they are.
    pub fn flush(&self, limit: Duration) -> bool {
        let busy = |state: &mut State| state.writing || !state.waiting.is_empty();
        let waited = self.0.idle.wait_timeout_while(self.state(), limit, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half way.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut to: impl Write, notice: &Notice) {
        let (mut batch, mut torn) = (Vec::new(), false);
        // Lines that are missing and that the log does not tell of yet.
        let mut owed = 0;
        loop {
            owed += self.take(&mut batch);
            let first = usize::from(torn);
            if torn {
                batch.insert(0, b'\n');
            }
            let lines = first..batch.len();
            if owed > 0 {
                batch.extend_from_slice(notice(owed).as_bytes());
            }
            match write_whole(&mut to, &batch) {
                Ok(()) => (torn, owed) = (false, 0),
                Err(written) => {
                    torn = if written == 0 { torn } else { batch[written - 1] != b'\n' };
                    let unwritten = &batch[written.clamp(lines.start, lines.end)..lines.end];
                    let lost = unwritten.iter().filter(|byte| **byte == b'\n').count() as u64;
                    owed += lost;
                    self.state().drop_lines(lost);
                }
            }
            batch.clear();
            batch.shrink_to(KEPT_BYTES);
        }
    }

    /// Waits for lines and takes all there are; returns how many found no room since the last time.
    fn take(&self, batch: &mut Vec<u8>) -> u64 {
        let mut state = self.state();
        state.writing = false;
        if state.waiting.is_empty() {
            self.0.idle.notify_all();
        }
        let waited = self.0.work.wait_while(state, |state| state.waiting.is_empty());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        std::mem::swap(batch, &mut state.waiting);
        std::mem::take(&mut state.untold)
    }
}

impl Metrics {
    /// Lines that a [`LogWriter`] which counts here dropped.
    #[must_use]
    pub fn log_lines_dropped(&self) -> u64 {
        self.counters().get(LOG_LINES_DROPPED).copied().unwrap_or(0)
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all of it; where that fails, how many bytes it got through.
fn write_whole(to: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while written < bytes.len() {
        match to.write(&bytes[written..]) {
            Ok(0) => return Err(written),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(_) => return Err(written),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    const SOON: Duration = Duration::from_secs(30);

    fn told(count: u64) -> String {
        format!("{count} lines dropped\n")
    }

    /// Each write waits until it is read.
    struct Pipe(SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn piped(most: usize) -> (LogWriter, Receiver<Vec<u8>>) {
        let (pipe, read) = sync_channel(0);
        (LogWriter::start(Pipe(pipe), most, told).unwrap(), read)
    }

    fn next(read: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(read.recv_timeout(SOON).unwrap()).unwrap()
    }

    /// The first number in a line.
    fn number(line: &str) -> Option<u64> {
        line.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
    }

    #[test]
    fn a_reader_that_stalls_holds_up_nobody_and_is_told_what_it_missed() {
        let (writer, read) = piped(100);
        writer.push(b"first\n");
        // The thread hangs in its write of the first line from here on, or soon will.
        for _ in 0..10_000 {
            writer.push(b"123456789\n");
        }
        assert!(!writer.flush(Duration::from_millis(10)), "what nobody reads is not waited for");
        let dropped = writer.dropped();
        assert!(dropped >= 10_000 - 20, "at most two buffers of ten lines: {dropped}");
        // A thread that began late tells what was dropped in two parts.
        let missing = |all: &str| all.lines().filter(|line| line.contains("dropped")).filter_map(number).sum::<u64>();
        let mut all = String::new();
        while missing(&all) < dropped {
            all += &next(&read);
        }
        let lines = all.lines().filter(|line| *line == "123456789").count() as u64;
        assert!(all.starts_with("first\n") && missing(&all) == dropped, "{all}");
        assert_eq!(lines + dropped, 10_000, "each line is written or counted");
        writer.push(b"again\n");
        assert_eq!(next(&read), "again\n", "it is said once");
        assert!(writer.flush(SOON));
    }

    #[test]
    fn a_line_beyond_the_bound_is_dropped_and_told_with_the_next() {
        let (writer, read) = piped(10);
        writer.push(b"a line that is far too long\n");
        writer.push(b"short\n");
        assert_eq!(next(&read), "short\n1 lines dropped\n");
    }

    #[test]
    fn lines_that_a_full_disk_refuses_are_counted_and_told_when_it_has_room() {
        /// Takes so many bytes, then nothing until it is emptied.
        struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);
        impl Write for Disk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let mut disk = self.0.lock().unwrap();
                let room = disk.1.saturating_sub(disk.0.len()).min(bytes.len());
                if room == 0 {
                    return Err(io::Error::from(ErrorKind::StorageFull));
                }
                disk.0.extend_from_slice(&bytes[..room]);
                Ok(room)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let disk = Arc::new(Mutex::new((Vec::new(), 8)));
        let writer = LogWriter::start(Disk(Arc::clone(&disk)), 1_000, told).unwrap();
        for line in [&b"one\n"[..], b"second\n", b"third\n"] {
            writer.push(line);
            assert!(writer.flush(SOON), "a write that fails is over");
        }
        assert_eq!(writer.dropped(), 2);
        disk.lock().unwrap().1 = 1_000;
        writer.push(b"fourth\n");
        assert!(writer.flush(SOON));
        let text = String::from_utf8(disk.lock().unwrap().0.clone()).unwrap();
        assert_eq!(text, "one\nseco\nfourth\n2 lines dropped\n");
    }

    #[test]
    fn dropped_lines_are_a_metric_those_of_before_included() {
        let (writer, _read) = piped(4);
        writer.push(b"too long\n");
        let metrics = Metrics::new();
        writer.count_in(&metrics);
        writer.push(b"too long\n");
        assert_eq!(metrics.counters()[LOG_LINES_DROPPED], 2);
    }
}
