//! How far the runs are: a bar on a terminal, else a line now and then; and the interrupt that ends them.

use super::super::failure::Failure;
use super::super::output::Output;
use hintd_model::units::Micros;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState as BarState, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the bar is drawn and ended runs are looked for.
const TICK: Duration = Duration::from_millis(100);
/// When a line is written first where there is no terminal, and how often then.
const LINE_FIRST: Duration = Duration::from_secs(1);
const LINE_EVERY: Duration = Duration::from_secs(10);
/// What a process that was interrupted twice leaves with, as shells count it.
const INTERRUPTED: i32 = 130;

/// Where the runs write how far they are, and the one who shows it reads.
pub(super) struct ProgressState {
    runs: Vec<Run>,
    jobs: u64,
    failed: AtomicBool,
}

#[derive(Default)]
struct Run {
    begun: AtomicBool,
    ended: AtomicBool,
    submitted: AtomicU64,
    done: AtomicU64,
    now_s: AtomicU64,
}

impl ProgressState {
    /// For so many runs of so many jobs each.
    pub(super) fn new(runs: usize, jobs: u64) -> Self {
        let runs = std::iter::repeat_with(Run::default).take(runs).collect();
        Self { runs, jobs, failed: AtomicBool::new(false) }
    }

    /// A run is so far: jobs submitted, and those that ended.
    pub(super) fn note(&self, run: usize, (submitted, done): (u64, u64), now: Micros) {
        let run = &self.runs[run];
        run.begun.store(true, Ordering::Relaxed);
        run.submitted.store(submitted, Ordering::Relaxed);
        run.done.store(done, Ordering::Relaxed);
        run.now_s.store(now.0 / 1_000_000, Ordering::Relaxed);
    }

    /// A run has ended, well or not.
    pub(super) fn ended(&self, run: usize, failed: bool) {
        self.runs[run].ended.store(true, Ordering::Relaxed);
        self.runs[run].submitted.store(self.jobs, Ordering::Relaxed);
        self.runs[run].done.store(self.jobs, Ordering::Relaxed);
        self.failed.fetch_or(failed, Ordering::Relaxed);
    }

    /// Whether any run has failed: the others then end too.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Shows how far the runs are until `over`.
    pub(super) fn show(&self, output: Output, over: impl Fn() -> bool, name: impl Fn(usize) -> String) {
        let bar = std::io::stderr().is_terminal().then(|| self.bar());
        let mut next = Instant::now() + LINE_FIRST;
        while !over() {
            std::thread::sleep(TICK);
            if let Some(bar) = &bar {
                bar.set_position(self.steps());
                bar.set_message(self.words(&name));
            } else if Instant::now() >= next {
                next = Instant::now() + LINE_EVERY;
                output.progress(&format!("{} of {} jobs; {}", self.done(), self.all(), self.words(&name)));
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(self.all().saturating_mul(2)), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {left}  {wide_msg}");
        // Until something is done nobody can say: the estimate is 0 then.
        let left = |state: &BarState, text: &mut dyn std::fmt::Write| {
            let left = if state.pos() == 0 { "time unknown".to_owned() } else { clock(state.eta()) + " left" };
            _ = text.write_str(&left); // what a terminal does not take is not shown
        };
        let style = style.expect("the template is a constant").with_key("left", left);
        bar.with_style(style.progress_chars("=> "))
    }

    fn done(&self) -> u64 {
        self.runs.iter().map(|run| run.done.load(Ordering::Relaxed)).sum()
    }

    /// Of the two steps of each job, for the bar: jobs that all end late would leave it at 0 % to the end.
    fn steps(&self) -> u64 {
        let submitted: u64 = self.runs.iter().map(|run| run.submitted.load(Ordering::Relaxed)).sum();
        submitted.saturating_add(self.done())
    }

    fn all(&self) -> u64 {
        self.jobs.saturating_mul(self.runs.len() as u64)
    }

    /// Runs that ended, and the first that is under way with its virtual time.
    fn words(&self, name: impl Fn(usize) -> String) -> String {
        let ended = self.runs.iter().filter(|run| run.ended.load(Ordering::Relaxed)).count();
        let under_way = |run: &Run| run.begun.load(Ordering::Relaxed) && !run.ended.load(Ordering::Relaxed);
        let of_all = format!("{ended} of {} ended", runs(self.runs.len()));
        match self.runs.iter().position(under_way) {
            Some(at) => {
                let now_s = self.runs[at].now_s.load(Ordering::Relaxed);
                let clock = format!("{}:{:02}:{:02}", now_s / 3600, now_s / 60 % 60, now_s % 60);
                format!("{of_all}; {} at {clock}", name(at))
            }
            None => of_all,
        }
    }
}

fn runs(count: usize) -> String {
    format!("{count} {}", if count == 1 { "run" } else { "runs" })
}

/// Whether the user has had enough.
#[derive(Clone)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C and SIGTERM from now on; a second one ends the process at once.
    pub(super) fn listen() -> Result<Self, Failure> {
        let came = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Work(error.into()))?;
        let told = Arc::clone(&came);
        let (ready, listening) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                use tokio::signal::unix::{SignalKind, signal};
                let Ok(mut term) = signal(SignalKind::terminate()) else { return };
                let Ok(mut int) = signal(SignalKind::interrupt()) else { return };
                let _ = ready.send(());
                loop {
                    tokio::select! {
                        _ = term.recv() => {}
                        _ = int.recv() => {}
                    }
                    if told.swap(true, Ordering::Relaxed) {
                        std::process::exit(INTERRUPTED);
                    }
                }
            });
        });
        let _ = listening.recv(); // nobody listens: signals then end the process, as ever
        Ok(Self(came))
    }

    /// Whether it came.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
/// `01:02:03`
fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_submitted_and_have_not_ended_move_the_bar_and_an_ended_run_fills_its_part() {
        let board = ProgressState::new(2, 10);
        assert_eq!((board.steps(), board.all()), (0, 20));
        board.note(0, (6, 0), Micros(0));
        assert_eq!((board.steps(), board.done()), (6, 0));
        board.note(0, (10, 3), Micros(0));
        assert_eq!(board.steps(), 13);
        board.ended(0, false);
        board.ended(1, false);
        assert_eq!(board.steps(), 2 * board.all());
    }
}
