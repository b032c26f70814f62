//! Several runs at once, results in a fixed order, whatever the number of threads.

use super::super::failure::Failure;
use super::super::output::Output;
use super::progress::{Interrupt, ProgressState};
use hintd_simulator::yarn::Progress;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs that are done by a few threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    /// How many runs.
    pub(crate) runs: usize,
    /// Jobs of each, for the bar.
    pub(crate) jobs: u64,
    /// Runs at once.
    pub(crate) threads: usize,
}

/// What the runs gave, in their order; `None` for those that were not begun.
pub(crate) struct Pooled<T> {
    pub(crate) results: Vec<Option<T>>,
    /// Whether an interrupt came, be it that it ended anything or not.
    pub(crate) interrupted: bool,
}

/// A run's way to say how far it is, and to hear that it is to end.
pub(crate) struct RunWatch<'a> {
    run: usize,
    board: &'a ProgressState,
    interrupt: &'a Interrupt,
}

impl RunWatch<'_> {
    /// Notes how far the run is.
    pub(crate) fn note(&self, progress: Progress) -> ControlFlow<()> {
        self.board.note(self.run, (progress.submitted, progress.done), progress.now);
        if self.interrupt.came() || self.board.failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Pool {
    /// Does all runs by `one`, and shows how far they are; `name` says a run in words.
    ///
    /// # Errors
    /// That of the first run, in their order, which failed; the others then end.
    pub(crate) fn run<T: Send>(
        &self,
        output: Output,
        name: impl Fn(usize) -> String,
        one: impl Fn(usize, &RunWatch<'_>) -> Result<T, Failure> + Sync,
    ) -> Result<Pooled<T>, Failure> {
        let interrupt = Interrupt::listen()?;
        let board = ProgressState::new(self.runs, self.jobs);
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Result<T, Failure>>>> =
            Mutex::new(std::iter::repeat_with(|| None).take(self.runs).collect());
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= self.runs || interrupt.came() || board.failed() {
                    break;
                }
                let result = one(at, &RunWatch { run: at, board: &board, interrupt: &interrupt });
                board.ended(at, result.is_err());
                results.lock().expect("no holder of this lock panics: it only stores")[at] = Some(result);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.clamp(1, self.runs.max(1))).map(|_| scope.spawn(work)).collect();
            board.show(output, || workers.iter().all(std::thread::ScopedJoinHandle::is_finished), &name);
        });
        let results = results.into_inner().expect("the scope has joined every thread");
        let results = results.into_iter().map(Option::transpose).collect::<Result<Vec<_>, _>>()?;
        Ok(Pooled { results, interrupted: interrupt.came() })
    }
}
