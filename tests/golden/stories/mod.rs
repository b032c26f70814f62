//! Stories: each starts a daemon, feeds it, makes it do everything in its area, and records what callers see.

mod asked;
mod feeds;
mod flows;
mod offline;
mod placing;
mod plans;
mod servers;
mod worth;

use crate::notes::Notes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

type Story = fn(&Notes);

const ALL: &[(&str, Story)] = &[
    ("demo", offline::the_demo_shows_itself),
    ("demo of dispatch", offline::the_demo_dispatches),
    ("loads", offline::loads_are_measured),
    ("losses", flows::leases_are_withdrawn_and_lost_tasks_placed_anew),
    ("reroute", offline::failing_links_are_timed),
    ("networks", offline::networks_and_placements),
    ("traces", offline::traces_plans_and_simulations),
    ("placing", placing::a_cluster_is_fed_and_asked),
    ("refusing", placing::what_can_not_be_had_is_refused),
    ("flows", flows::routes_are_watched_and_moved),
    ("chains", flows::chains_are_kept_broken_and_moved_for),
    ("plans", plans::plans_are_kept_followed_and_rolled_back),
    ("circuits", plans::shuffles_ride_circuits),
    ("dispatch", plans::tasks_are_dispatched),
    ("waiting", plans::reasons_to_wait_are_told),
    ("history", plans::history_is_planned_from),
    ("feeds", feeds::bad_items_are_named),
    ("limits", feeds::limits_are_named),
    ("worth", worth::applications_are_held_out),
    ("asked", asked::hadoop_and_ryu_are_asked),
    ("overload", feeds::searches_are_cut_and_queues_are_full),
];

/// Stories that run at a time: most wait for daemons, and each daemon takes memory.
const AT_ONCE: usize = 8;

/// The result of all stories, run once and in parallel; an error names those that failed.
static TOLD: LazyLock<Result<Notes, String>> = LazyLock::new(|| {
    let (notes, next, failed) = (Notes::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, story)) = ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A thread of its own, so that a panic says which story it was and ends no other one.
            let told = std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().name((*name).to_owned());
                thread.spawn_scoped(scope, || story(&notes)).unwrap().join()
            });
            if told.is_err() {
                failed.lock().unwrap().push(*name);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    match failed.into_inner().unwrap().as_slice() {
        [] => Ok(notes),
        failed => Err(format!("these stories failed: {failed:?}")),
    }
});

/// What all stories recorded.
pub(crate) fn notes() -> &'static Notes {
    TOLD.as_ref().unwrap_or_else(|failed| panic!("{failed}; the output of the first test that ran them says why"))
}
