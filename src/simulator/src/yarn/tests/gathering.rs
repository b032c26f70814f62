//! Policies that say when shuffles start.

use super::toy::FifoState;
use super::*;
use hintd_model::units::{Bytes, Micros, Timestamp};
use hintd_policy::Dispatch;
use hintd_policy::dispatch::{
    Advice, DispatchEvent, DispatchState, DynTimesShuffles, Offer, ShuffleAdvice, ShuffleAsk,
};
use hintd_policy::dispatch::{TimesShuffles, View};
use std::borrow::Cow;
use std::sync::Mutex;

/// First come, first served; shuffles as `answer` says, and every question kept.
pub(super) struct Timed<F> {
    answer: Option<F>,
    asked: Mutex<Vec<(Timestamp, ShuffleAsk)>>,
}

impl<F: Fn(&ShuffleAsk, Timestamp) -> ShuffleAdvice + Send + Sync> Dispatch for Timed<F> {
    type State = FifoState;

    fn start(&self) -> FifoState {
        Dispatch::start(&fifo())
    }

    fn observe(&self, state: &mut FifoState, event: &DispatchEvent, view: &View<'_>) {
        Dispatch::observe(&fifo(), state, event, view);
    }

    fn offer(&self, state: &mut FifoState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        Dispatch::offer(&fifo(), state, offer, view)
    }

    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        self.answer.is_some().then_some(self as _)
    }
}

impl<F: Fn(&ShuffleAsk, Timestamp) -> ShuffleAdvice + Send + Sync> TimesShuffles for Timed<F> {
    fn shuffle(&self, _: &mut FifoState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        self.asked.lock().unwrap().push((view.now, *ask));
        self.answer.as_ref().map_or(ShuffleAdvice::Start, |answer| answer(ask, view.now))
    }
}

pub(super) fn timed<F>(answer: Option<F>) -> Timed<F>
where
    F: Fn(&ShuffleAsk, Timestamp) -> ShuffleAdvice + Send + Sync,
{
    Timed { answer, asked: Mutex::default() }
}

pub(super) fn wait_until(latest: Timestamp) -> ShuffleAdvice {
    ShuffleAdvice::Wait { latest, why: Cow::Borrowed("test") }
}

fn ran(dispatch: &dyn DynDispatch) -> RunReport {
    let cluster = cluster(3, 2, 2, 400_000_000);
    let report = with(&cluster, &still(), &SimSettings::default(), dispatch, &mixed(24), true).unwrap();
    let shuffle: u64 = mixed(24).iter().map(|job| job.shuffle.0).sum();
    assert_eq!((report.jobs, report.unfinished, report.shuffle_bytes), (24, 0, shuffle));
    report
}

#[test]
fn a_policy_that_does_not_time_shuffles_is_never_asked_and_changes_nothing() {
    let silent = timed::<fn(&ShuffleAsk, Timestamp) -> ShuffleAdvice>(None);
    assert_eq!(ran(&silent), ran(&fifo()));
    assert_eq!(silent.asked.into_inner().unwrap(), []);
}

#[test]
fn every_wait_ends_at_the_latest_start_that_was_named_first() {
    let (span, most) = (Micros::from_secs(7), Micros::from_secs(3));
    // The bound moves on with every answer; and one that shrinks is kept.
    for (span, later) in [(span, true), (most, false)] {
        let policy =
            timed(Some(|ask: &ShuffleAsk, now: Timestamp| wait_until(if later { now } else { ask.since }.plus(span))));
        let report = ran(&policy);
        let asked = policy.asked.into_inner().unwrap();
        assert!(asked.iter().any(|(now, ask)| now.since(ask.since) == span), "somebody waits as long as it may");
        for (now, ask) in asked {
            assert!(now.since(ask.since) <= span, "{ask:?} at {now:?}");
            assert!(ask.gathered > Bytes::ZERO && ask.from != ask.to);
        }
        assert!(report.mean_jct_s > ran(&fifo()).mean_jct_s + 1.0, "waiting costs time: {}", report.mean_jct_s);
    }
}

#[test]
fn a_start_at_every_question_delays_nothing_by_more_than_the_second_between_two() {
    let eager = timed(Some(|_: &ShuffleAsk, _: Timestamp| ShuffleAdvice::Start));
    let (asked, plain) = (ran(&eager), ran(&fifo()));
    assert_eq!(asked.shuffle_bytes, plain.shuffle_bytes);
    assert!(asked.mean_jct_s < plain.mean_jct_s + 4.0, "{} and {}", asked.mean_jct_s, plain.mean_jct_s);
}

#[test]
fn the_policy_is_told_when_no_more_can_be_gathered() {
    let gathers = timed(Some(|ask: &ShuffleAsk, _: Timestamp| match ask.maps_done && ask.reduces_placed {
        true => ShuffleAdvice::Start,
        false => wait_until(Timestamp(u64::MAX - 1)),
    }));
    // One job at a time: its reduces find room when its maps are done, so no wait is for ever.
    let cluster = cluster(3, 4, 4, 400_000_000);
    let jobs = [job(0, 0.0, 3_000 * MIB, 4_000 * MIB, 0)];
    let report = with(&cluster, &still(), &SimSettings::default(), &gathers, &jobs, true).unwrap();
    assert_eq!((report.jobs, report.shuffle_bytes), (1, 4_000 * MIB));
    let asked = gathers.asked.into_inner().unwrap();
    let whole: u64 =
        asked.iter().filter(|(_, ask)| ask.maps_done && ask.reduces_placed).map(|(_, ask)| ask.gathered.0).sum();
    assert_eq!(whole, report.cross_rack_shuffle_bytes, "all that crosses racks was gathered first");
}

#[test]
fn a_state_that_was_forgotten_is_asked_like_the_policy_itself() {
    let policy = timed(Some(|_: &ShuffleAsk, now: Timestamp| wait_until(now)));
    let any: &dyn DynDispatch = &policy;
    let mut state: DispatchState = any.start();
    let times = any.as_times_shuffles().unwrap();
    let cluster = cluster(2, 1, 1, 1_000_000);
    let leases = hintd_model::cluster::Overlay::default();
    let view = View { snapshot: &cluster.snapshot, leases: &leases, now: Timestamp(5), explain: false };
    let attempt = super::super::tables::attempt_of(0);
    let (from, to) = (hintd_model::units::RackIdx(0), hintd_model::units::RackIdx(1));
    let (maps_done, reduces_placed, since) = (false, false, Timestamp(5));
    let (gathered, started, threshold) = (Bytes(1), Bytes(0), None);
    let ask = ShuffleAsk { attempt, from, to, gathered, started, threshold, maps_done, reduces_placed, since };
    assert_eq!(times.shuffle(&mut state, &ask, &view), wait_until(Timestamp(5)));
}
