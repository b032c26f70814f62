//! How leases of an answer ended.

use super::lease::LeaseEnd;
use hintd_model::units::LeaseId;

/// Leases with ids that follow each other and that ended alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedLeases {
    first: LeaseId,
    count: u32,
    end: LeaseEnd,
}

impl EndedLeases {
    /// The lease after the last of them.
    const fn after(&self) -> LeaseId {
        LeaseId(self.first.0.saturating_add(self.count as u64))
    }
}

/// Leases of one answer mostly end in their order, or all at once.
pub(crate) fn note_end(runs: &mut Vec<EndedLeases>, lease: LeaseId, end: LeaseEnd) {
    let at = runs.partition_point(|run| run.first <= lease);
    let next = LeaseId(lease.0.saturating_add(1));
    let leads = runs.get(at).is_some_and(|run| run.end == end && run.first == next);
    match runs[..at].last_mut() {
        Some(before) if before.end == end && before.after() == lease => {
            before.count += 1;
            if leads {
                runs[at - 1].count += runs[at].count;
                runs.remove(at);
            }
        }
        _ if leads => (runs[at].first, runs[at].count) = (lease, runs[at].count + 1),
        _ => runs.insert(at, EndedLeases { first: lease, count: 1, end }),
    }
}

/// How a lease of an answer ended, if it did in this process.
pub(crate) fn end_of(runs: &[EndedLeases], lease: LeaseId) -> Option<LeaseEnd> {
    let last = runs.get(runs.partition_point(|run| run.first <= lease).checked_sub(1)?)?;
    (lease < last.after()).then_some(last.end)
}
