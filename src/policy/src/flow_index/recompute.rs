//! Rates made to fit what changed: from links to pairs, to inlets, to sinks.

use super::FlowIndex;
use super::jobs::Follow;
use hintd_model::units::DirectedLinkIdx;

/// What changed since the last recompute.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    links: Vec<DirectedLinkIdx>,
    link_listed: Vec<bool>,
    /// Rows of pairs whose rate is to be taken anew.
    rows: Vec<u32>,
    row_listed: Vec<bool>,
    /// Pairs whose rate changed, with the rate before.
    changed: Vec<(u32, f64)>,
    changed_listed: Vec<bool>,
    /// Jobs with inlets that changed.
    jobs: Vec<u32>,
    follow: Vec<Follow>,
}

impl Pending {
    /// A link's load or capacity changed.
    pub(super) fn touch(&mut self, link: DirectedLinkIdx) {
        if link.at() >= self.link_listed.len() {
            self.link_listed.resize(link.at() + 1, false);
        }
        if !std::mem::replace(&mut self.link_listed[link.at()], true) {
            self.links.push(link);
        }
    }

    /// A pair's route changed.
    pub(super) fn reroute(&mut self, row: u32) {
        if !std::mem::replace(&mut self.row_listed[row as usize], true) {
            self.rows.push(row);
        }
    }

    /// Rows up to `rows` exist.
    pub(super) fn grow(&mut self, rows: usize) {
        self.row_listed.resize(rows, false);
        self.changed_listed.resize(rows, false);
    }
}

impl FlowIndex {
    pub(super) fn recompute_unless_held(&mut self) {
        if self.held > 0 {
            return;
        }
        self.recompute_link_shares();
        self.recompute_pair_rates();
        self.recompute_job_rates();
    }

    /// Shares of touched links. A pair takes a lower share at once; a higher one is looked into only where the link
    /// was its slowest.
    fn recompute_link_shares(&mut self) {
        let Self { pending, share, capacity, load, on, rates, work, .. } = self;
        for link in pending.links.drain(..) {
            let at = link.at();
            pending.link_listed[at] = false;
            let (old, new) = (share[at], capacity[at] / load[at].max(1) as f64);
            if old == new {
                continue;
            }
            share[at] = new;
            *work += on[at].len() as u64;
            for &row in &on[at] {
                let rate = rates[row as usize];
                if new < rate {
                    if !std::mem::replace(&mut pending.changed_listed[row as usize], true) {
                        pending.changed.push((row, rate));
                    }
                    rates[row as usize] = new;
                } else if old == rate && !std::mem::replace(&mut pending.row_listed[row as usize], true) {
                    pending.rows.push(row);
                }
            }
        }
    }

    fn recompute_pair_rates(&mut self) {
        let Self { pending, share, pairs, rates, work, .. } = self;
        for row in pending.rows.drain(..) {
            let at = row as usize;
            pending.row_listed[at] = false;
            let route = &pairs[at].route;
            *work += route.len() as u64;
            let least = route.iter().map(|link| share[link.at()]).fold(f64::INFINITY, f64::min);
            let new = if route.is_empty() { 0.0 } else { least };
            let old = std::mem::replace(&mut rates[at], new);
            if old != new && !std::mem::replace(&mut pending.changed_listed[at], true) {
                pending.changed.push((row, old));
            }
        }
    }

    fn recompute_job_rates(&mut self) {
        let Self { pending, pairs, rates, jobs, utilities, work, .. } = self;
        pending.follow.resize_with(jobs.len().max(pending.follow.len()), Follow::default);
        for (row, old) in pending.changed.drain(..) {
            pending.changed_listed[row as usize] = false;
            let new = rates[row as usize];
            if old == new {
                continue;
            }
            *work += pairs[row as usize].inlets.len() as u64;
            for &(job, inlet) in &pairs[row as usize].inlets {
                let known = jobs[job as usize].as_mut().expect("a pair's inlets are of jobs that are here");
                known.pair_changed(inlet, old, new, &mut pending.follow[job as usize]);
                pending.jobs.push(job);
            }
        }
        for job in pending.jobs.drain(..) {
            let Some(known) = jobs[job as usize].as_mut() else { continue };
            if known.follow(rates, &mut pending.follow[job as usize]) {
                utilities[job as usize] = known.utility();
            }
        }
    }
}
