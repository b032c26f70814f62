//! Counters of links, as everybody sees them by the snapshot.

use super::toy::FifoState;
use super::*;
use crate::settings::FlowGrain;
use hintd_model::cluster::{LinkLoad, Snapshot};
use hintd_model::units::{LinkName, Micros, Timestamp};
use hintd_policy::Dispatch;
use hintd_policy::dispatch::{Advice, DispatchEvent, Offer, View};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Loads = Arc<BTreeMap<LinkName, LinkLoad>>;

/// First come, first served; keeps what the snapshot says of links, with when that was news.
#[derive(Default)]
struct Watching {
    told: Mutex<Vec<(Timestamp, Loads)>>,
}

impl Watching {
    fn look(&self, view: &View<'_>) {
        let mut told = self.told.lock().unwrap();
        let known = told.last().is_some_and(|(_, loads)| Arc::ptr_eq(loads, &view.snapshot.link_loads));
        if !known && !view.snapshot.link_loads.is_empty() {
            told.push((view.now, Arc::clone(&view.snapshot.link_loads)));
        }
    }
}

impl Dispatch for Watching {
    type State = FifoState;

    fn start(&self) -> FifoState {
        Dispatch::start(&fifo())
    }

    fn observe(&self, state: &mut FifoState, event: &DispatchEvent, view: &View<'_>) {
        self.look(view);
        Dispatch::observe(&fifo(), state, event, view);
    }

    fn offer(&self, state: &mut FifoState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        self.look(view);
        Dispatch::offer(&fifo(), state, offer, view)
    }
}

/// Bits a second that leave racks.
fn out_of_racks(snapshot: &Snapshot, loads: &Loads) -> u64 {
    let network = snapshot.topology.network.as_deref().unwrap();
    let is_host = |at| network.vertex_at(at).is_host();
    let links = network.links().filter(|(_, link)| !is_host(link.a) && !is_host(link.b));
    links
        .map(|(_, link)| {
            let load = &loads[&link.name];
            let a_is_rack = network.links_of(link.a).any(|(_, of)| is_host(of.other(link.a)));
            if a_is_rack { load.a_to_b.0 } else { load.b_to_a.0 }
        })
        .sum()
}

#[test]
fn counters_add_up_to_what_crossed_racks_and_end_at_nothing() {
    for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
        let cluster = cluster(3, 2, 2, 400_000_000);
        let watching = Watching::default();
        let settings = SimSettings { grain, link_counters: Some(Micros::from_secs(4)), ..SimSettings::default() };
        let report = with(&cluster, &still(), &settings, &watching, &mixed(24), true).unwrap();
        let told = watching.told.into_inner().unwrap();
        assert!(told.len() > 10, "{} times", told.len());
        // Each is the mean of the four seconds before it; seen at the first event after them.
        let counted: u64 = told.iter().map(|(_, loads)| 4 * out_of_racks(&cluster.snapshot, loads) / 8).sum();
        let crossed = report.cross_rack_bytes;
        let apart = (counted as f64 / crossed as f64 - 1.0).abs();
        assert!(apart < 0.1, "{grain:?}: {counted} counted, {crossed} crossed");
        let last = &told.last().unwrap().1;
        let idle = |load: &LinkLoad| (load.a_to_b.0, load.b_to_a.0) == (0, 0);
        assert!(last.values().all(idle), "{grain:?}: nothing runs any more: {last:?}");
    }
}

#[test]
fn nobody_is_told_of_links_where_nobody_counts() {
    let watching = Watching::default();
    let cluster = cluster(3, 2, 2, 400_000_000);
    with(&cluster, &still(), &SimSettings::default(), &watching, &mixed(24), true).unwrap();
    assert_eq!(watching.told.into_inner().unwrap().len(), 0);
}

#[test]
fn what_links_carried_before_the_cluster_stood_empty_is_forgotten_after_a_while() {
    let cluster = cluster(3, 2, 2, 400_000_000);
    let watching = Watching::default();
    let settings = SimSettings { link_counters: Some(Micros::from_secs(4)), ..SimSettings::default() };
    let jobs = [0.0, 4_000.0].map(|at| job(usize::from(at > 0.0), at, 3_000 * MIB, 4_000 * MIB, 0));
    with(&cluster, &still(), &settings, &watching, &jobs, true).unwrap();
    let told = watching.told.into_inner().unwrap();
    let means = |loads: &Loads| loads.values().map(|load| load.mean_a_to_b.0 + load.mean_b_to_a.0).sum::<u64>();
    let before = told.iter().rfind(|(at, _)| *at < Timestamp(3_900_000_000)).unwrap();
    let after = told.iter().find(|(at, _)| *at > Timestamp(3_900_000_000)).unwrap();
    assert!(means(&before.1) > 0 && means(&after.1) == 0, "{before:?}, {after:?}");
}
