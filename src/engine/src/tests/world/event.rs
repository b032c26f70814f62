//! What may happen in the world: plain data with all choices made, so that a list of events can be cut and played again.

use crate::Mode;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// A choice among however many there are when the event comes.
pub(super) type Pick = u16;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    /// A node tells the daemon of itself; it may have another size or rack than before.
    Register {
        host: Pick,
        mb: u64,
        labelled: bool,
        moved: bool,
        word: Word,
    },
    /// A node's heartbeat sets out.
    Beat {
        host: Pick,
        named: bool,
        word: Word,
    },
    /// Every node's heartbeat sets out.
    Round,
    /// Others use so much of a node.
    Foreign {
        host: Pick,
        mb: u64,
    },
    /// YARN starts the container of a promise, there or elsewhere; the application may say so, with or without the lease.
    Start {
        promise: Pick,
        elsewhere: Option<Pick>,
        told: bool,
        with_lease: bool,
    },
    /// YARN starts a container that nobody hinted.
    Stray {
        app: u32,
        host: Pick,
        priority: i32,
        told: bool,
    },
    /// A container ends.
    Stop {
        which: Pick,
        failed: bool,
        told: bool,
    },
    /// A node and what runs on it are no more; perhaps somebody says so.
    Dies {
        host: Pick,
        said: bool,
    },
    /// A message arrives.
    Deliver {
        which: Pick,
    },
    /// The next messages arrive, in order.
    DeliverAll,
    /// A message is lost.
    Lose {
        which: Pick,
    },
    /// A message arrives, and will again.
    Twice {
        which: Pick,
    },
    Link {
        which: Pick,
        up: bool,
    },
    Capacity {
        which: Pick,
        gbit: u64,
    },
    Load {
        which: Pick,
        percent: u64,
    },
    Switch {
        which: Pick,
        up: bool,
    },
    /// The network is told as a whole, all of it up.
    Network,
    /// Another network is told in its place, as by a file that somebody has changed: slower links up, half of the hosts
    /// only, or none at all.
    OtherNetwork {
        which: u8,
    },
    /// Middleboxes and chains are declared, some way or other; none, perhaps.
    Chains {
        which: u8,
    },
    Middlebox {
        which: Pick,
        up: bool,
    },
    BoxCapacity {
        which: Pick,
        mbit: u64,
    },
    /// An application asks: a proposal is computed on the generation of now.
    Ask(Ask),
    /// A request is sent again, perhaps with another body; looked up first, or in a race with itself.
    Repeat {
        which: Pick,
        other_body: bool,
        looked_up: bool,
    },
    /// It turns out that nobody has an answer, or that a repeat fetched it.
    Reached {
        which: Pick,
        reached: bool,
    },
    /// What the engine wants placed anew is proposed.
    PlaceDue,
    /// A waiting proposal is committed, on whatever the ledger is by then.
    Commit {
        which: Pick,
        last: bool,
    },
    /// What it would come to; nothing may change by that.
    Preview {
        which: Pick,
    },
    /// The caller goes away.
    Abandon {
        which: Pick,
    },
    Release {
        app: u32,
        which: Pick,
        all: bool,
        wrong_token: bool,
    },
    /// An application ends.
    Done {
        app: u32,
        failed: bool,
    },
    /// A task may start, or its output is lost.
    Ready {
        app: u32,
        which: Pick,
    },
    Publish,
    Pass {
        ms: u64,
    },
    /// So many batches get to the disk.
    Sync {
        batches: usize,
    },
    /// The disk fails under the batches on their way; the first may be on it all the same.
    DiskFails {
        kept: bool,
    },
    DiskBack,
    Reload {
        which: u8,
    },
    Redispatch {
        which: u8,
    },
    /// The process dies and starts again; the clock may have gone back meanwhile.
    Crash {
        after_ms: u64,
        clock_back_s: u64,
    },
    Watch {
        resume: bool,
    },
    Unwatch,
    Acknowledge {
        behind: u64,
        refuse: bool,
    },
}

/// What a node says its state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Running,
    Unhealthy,
    Decommissioning,
    Shutdown,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    pub(super) app: u32,
    pub(super) attempt: u32,
    pub(super) policy: Pick,
    /// Containers and MB by group.
    pub(super) groups: Vec<(u32, u64, u64)>,
    pub(super) all: bool,
    pub(super) fail_when_full: bool,
    pub(super) follows: bool,
    pub(super) labelled: bool,
    pub(super) avoid: Option<Pick>,
    pub(super) most_per_node: u32,
    pub(super) mib: u64,
    pub(super) reads: bool,
    pub(super) recurring: bool,
    pub(super) asks: bool,
    pub(super) mode: Mode,
}

pub(super) const APPS: u32 = 5;

/// Draws an event with all choices in it.
type Draw = fn(&mut ChaCha8Rng) -> Event;

/// Events by how often they come.
const WEIGHTS: [(u32, Draw); 42] = [
    (2, |r| Event::Register {
        host: r.random(),
        mb: *[2048, 4096, 4096, 8192].choose(r).unwrap(),
        labelled: r.random_bool(0.1),
        moved: r.random_bool(0.1),
        word: word(r),
    }),
    (10, |r| Event::Beat { host: r.random(), named: r.random_bool(0.85), word: word(r) }),
    (3, |_| Event::Round),
    (2, |r| Event::Foreign { host: r.random(), mb: if r.random() { 0 } else { r.random_range(0..6000) } }),
    (12, |r| Event::Start {
        promise: r.random(),
        elsewhere: r.random_bool(0.15).then(|| r.random()),
        told: r.random(),
        with_lease: r.random_bool(0.8),
    }),
    (1, |r| Event::Stray { app: app(r), host: r.random(), priority: r.random_range(1..3), told: r.random() }),
    (5, |r| Event::Stop { which: r.random(), failed: r.random_bool(0.2), told: r.random_bool(0.7) }),
    (1, |r| Event::Dies { host: r.random(), said: r.random() }),
    (14, |r| Event::Deliver { which: r.random() }),
    (5, |_| Event::DeliverAll),
    (2, |r| Event::Lose { which: r.random() }),
    (2, |r| Event::Twice { which: r.random() }),
    (3, |r| Event::Link { which: r.random(), up: r.random_bool(0.6) }),
    (1, |r| Event::Capacity { which: r.random(), gbit: r.random_range(1..11) }),
    (1, |r| Event::Load { which: r.random(), percent: r.random_range(0..120) }),
    (1, |r| Event::Switch { which: r.random(), up: r.random_bool(0.7) }),
    (1, |r| match r.random_range(0..10) {
        0 | 1 => Event::Network,
        2 | 3 => Event::OtherNetwork { which: r.random() },
        _ => Event::Round,
    }),
    (12, |r| Event::Ask(ask(r))),
    (2, |r| Event::Repeat { which: r.random(), other_body: r.random_bool(0.2), looked_up: r.random() }),
    (3, |r| Event::Reached { which: r.random(), reached: r.random() }),
    (3, |_| Event::PlaceDue),
    (14, |r| Event::Commit { which: r.random(), last: r.random_bool(0.2) }),
    (1, |r| Event::Preview { which: r.random() }),
    (1, |r| Event::Abandon { which: r.random() }),
    (2, |r| Event::Release {
        app: app(r),
        which: r.random(),
        all: r.random_bool(0.1),
        wrong_token: r.random_bool(0.1),
    }),
    (1, |r| Event::Done { app: app(r), failed: r.random_bool(0.3) }),
    (1, |r| Event::Ready { app: app(r), which: r.random() }),
    (10, |_| Event::Publish),
    (9, |r| Event::Pass { ms: *[50, 100, 100, 300, 1_000, 3_000, 8_000].choose(r).unwrap() }),
    (1, |r| match r.random_range(0..8) {
        0 => Event::Pass { ms: r.random_range(30_000..400_000) },
        1 | 2 => Event::Pass { ms: 20_000 },
        _ => Event::Round,
    }),
    (14, |r| Event::Sync { batches: r.random_range(1..8) }),
    (1, |r| if r.random_bool(0.3) { Event::DiskFails { kept: r.random() } } else { Event::Publish }),
    (1, |_| Event::DiskBack),
    (1, |r| if r.random_bool(0.4) { Event::Reload { which: r.random() } } else { Event::Publish }),
    (1, |r| if r.random_bool(0.4) { Event::Redispatch { which: r.random() } } else { Event::Publish }),
    (1, |r| Event::Crash {
        after_ms: *[0, 300, 2_000, 40_000].choose(r).unwrap(),
        clock_back_s: if r.random_bool(0.8) { 0 } else { r.random_range(1..100) },
    }),
    (2, |r| Event::Watch { resume: r.random() }),
    (1, |r| if r.random_bool(0.3) { Event::Unwatch } else { Event::Watch { resume: true } }),
    (4, |r| Event::Acknowledge { behind: r.random_range(0..3), refuse: r.random_bool(0.2) }),
    (1, |r| Event::Chains { which: r.random() }),
    (3, |r| Event::Middlebox { which: r.random(), up: r.random_bool(0.6) }),
    (1, |r| Event::BoxCapacity { which: r.random(), mbit: r.random_range(1..30) }),
];

/// The events of a seed.
pub(super) fn script(seed: u64, steps: usize) -> Vec<Event> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let all: u32 = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    let event = |random: &mut ChaCha8Rng| {
        let mut at = random.random_range(0..all);
        let found = WEIGHTS.iter().find(|(weight, _)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        (found.expect("the die has as many sides as there are weights").1)(random)
    };
    (0..steps).map(|_| event(&mut random)).collect()
}

fn app(r: &mut ChaCha8Rng) -> u32 {
    r.random_range(1..=APPS)
}

fn word(r: &mut ChaCha8Rng) -> Word {
    match r.random_range(0..40) {
        0 => Word::Unhealthy,
        1 => Word::Decommissioning,
        2 => Word::Shutdown,
        _ => Word::Running,
    }
}

fn ask(r: &mut ChaCha8Rng) -> Ask {
    let group = |r: &mut ChaCha8Rng| {
        let mb = *[512, 1024, 1024, 2048, 9000].choose(r).unwrap();
        (r.random_range(1..7), if mb == 9000 && r.random_bool(0.9) { 1024 } else { mb }, r.random_range(1..4))
    };
    let groups = (0..r.random_range(1..3)).map(|_| group(r)).collect();
    let plain = r.random_bool(0.5);
    let mut maybe = |share: f64| !plain && r.random_bool(share);
    let (all, fail_when_full, labelled) = (maybe(0.5), maybe(0.3), maybe(0.2));
    let (avoids, bounded, asks) = (maybe(0.3), maybe(0.3), maybe(0.4));
    Ask {
        app: app(r),
        attempt: if r.random_bool(0.06) { 2 } else { 1 },
        policy: r.random(),
        groups,
        all,
        fail_when_full,
        follows: r.random_bool(0.6),
        labelled,
        avoid: avoids.then(|| r.random()),
        most_per_node: if bounded { r.random_range(1..3) } else { 0 },
        mib: if r.random() { r.random_range(0..64) } else { 0 },
        reads: r.random_bool(0.4),
        recurring: r.random_bool(0.3),
        asks,
        mode: *[Mode::On, Mode::On, Mode::On, Mode::On, Mode::On, Mode::On, Mode::Shadow, Mode::Off].choose(r).unwrap(),
    }
}
