//! How often, or for how long, each user was passed over.
//!
//! An offer that nobody takes passes over every user that stands in line: that costs one number, not a walk.

use crate::pool::UserIdx;
use hintd_model::units::{Micros, Timestamp};
use serde::{Deserialize, Serialize};

/// What bounds skipping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Times.
    Count(u32),
    /// Since the first time.
    Time(Micros),
}

/// Skip counters of all users: D^m_i or D^r_i.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Skips {
    /// Offers that nobody took.
    declined: u64,
    rows: Vec<Row>,
    /// Users in line.
    present: u32,
    /// In line and not skipped since they were last served; some may have left.
    fresh: Vec<UserIdx>,
    /// Before so many declined offers, or before that time, nobody in line is due.
    not_before: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    present: bool,
    fresh: bool,
    /// Times skipped, without declined offers from `from` on while in line.
    count: u32,
    from: u64,
    since: Option<Timestamp>,
}

impl Skips {
    fn row(&mut self, user: UserIdx) -> &mut Row {
        if user.at() >= self.rows.len() {
            self.rows.resize(user.at() + 1, Row::default());
        }
        &mut self.rows[user.at()]
    }

    /// Users in line.
    pub(super) const fn present(&self) -> u32 {
        self.present
    }

    /// Whether the user stands in line.
    pub(super) fn has(&self, user: UserIdx) -> bool {
        self.rows.get(user.at()).is_some_and(|row| row.present)
    }

    /// The user stands in line, or does not.
    pub(super) fn line(&mut self, user: UserIdx, present: bool) {
        let declined = self.declined;
        let row = self.row(user);
        if row.present == present {
            return;
        }
        row.present = present;
        if present {
            row.from = declined;
            self.present += 1;
            // Whoever comes back may be due at once.
            self.not_before = 0;
            self.freshen(user);
        } else {
            row.count = row.count.saturating_add(counted(declined - row.from));
            self.present -= 1;
        }
    }

    fn freshen(&mut self, user: UserIdx) {
        let row = self.row(user);
        if row.since.is_none() && !row.fresh {
            row.fresh = true;
            self.fresh.push(user);
        }
    }

    /// A task of the user was launched.
    pub(super) fn reset(&mut self, user: UserIdx) {
        let declined = self.declined;
        let row = self.row(user);
        (row.count, row.from, row.since) = (0, declined, None);
        if row.present {
            self.freshen(user);
        }
    }

    /// The user was passed over.
    pub(super) fn skip(&mut self, user: UserIdx, now: Timestamp, bound: Bound) {
        let row = self.row(user);
        row.count = row.count.saturating_add(1);
        row.since.get_or_insert(now);
        let at = self.due_from(user, bound);
        self.not_before = self.not_before.min(at);
    }

    /// Everybody in line was.
    pub(super) fn skip_all(&mut self, now: Timestamp, bound: Bound) {
        self.declined += 1;
        for user in std::mem::take(&mut self.fresh) {
            let row = self.row(user);
            row.fresh = false;
            if row.present && row.since.is_none() {
                row.since = Some(now);
                let at = self.due_from(user, bound);
                self.not_before = self.not_before.min(at);
            }
        }
    }

    /// The declined offers, or the time, from which a user in line is due if nothing else skips it.
    fn due_from(&self, user: UserIdx, bound: Bound) -> u64 {
        let row = &self.rows[user.at()];
        match bound {
            Bound::Count(most) => (row.from + u64::from(most)).saturating_sub(u64::from(row.count)),
            Bound::Time(span) => row.since.map_or(u64::MAX, |since| since.plus(span).0),
        }
    }

    /// Where the bound's measure stands: declined offers, or the time.
    const fn at(&self, now: Timestamp, bound: Bound) -> u64 {
        match bound {
            Bound::Count(_) => self.declined,
            Bound::Time(_) => now.0,
        }
    }

    /// How long until the user is due, where time bounds it.
    pub(super) fn left(&self, user: UserIdx, now: Timestamp, bound: Bound) -> Option<Micros> {
        let Bound::Time(span) = bound else { return None };
        let since = self.rows.get(user.at()).and_then(|row| row.since);
        Some(span.saturating_sub(now.since(since.unwrap_or(now))))
    }

    /// Whether the user may be served whatever it takes.
    pub(super) fn due(&self, user: UserIdx, now: Timestamp, bound: Bound) -> bool {
        self.has(user) && self.at(now, bound) >= self.due_from(user, bound)
    }

    /// Whether anybody in line may be due; looks at all users only when that can have changed.
    pub(super) fn anybody_due(&mut self, now: Timestamp, bound: Bound) -> bool {
        let at = self.at(now, bound);
        if at < self.not_before {
            return false;
        }
        let present = (0..self.rows.len()).filter(|&user| self.rows[user].present);
        self.not_before = present.map(|user| self.due_from(UserIdx(user as u32), bound)).min().unwrap_or(u64::MAX);
        at >= self.not_before
    }
}

fn counted(times: u64) -> u32 {
    u32::try_from(times).unwrap_or(u32::MAX)
}
