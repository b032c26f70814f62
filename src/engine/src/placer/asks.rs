//! The replacement table: the caller's asks by scheduler key, with our hosts in them.
//!
//! Rules: counts are absolute, as YARN's are; a host's row counts the containers that name it, a rack's row those
//! that name a host of it, the `*` row all containers of the key. A container whose room is leased names its host
//! only: YARN can't rank rows, and would take a next best host as gladly, while the lease keeps the best one free.
//! One without a lease names its next best hosts, too. Every row allows other places: a hint never strands a
//! container. Rows of the caller stay, with the larger count of both; a key with a strict row
//! (`relax_locality = false`) comes back as it came, for it is an order and not a wish.

use super::super::refusal::Refusal;
use super::hints::Hints;
use hintd_model::cluster::{Ask, HintRequest, TaskGroup};
use hintd_model::units::SchedulerKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// YARN's name of any place.
const ANY: &str = "*";

/// Whether every scheduler key has one size and one label.
///
/// # Errors
/// [`Refusal::Invalid`] for the first group that shares its key with an earlier one and is not like it.
pub fn check_keys(groups: &[TaskGroup]) -> Result<(), Refusal> {
    let mut first: BTreeMap<SchedulerKey, &TaskGroup> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        let earlier = *first.entry(group.key).or_insert(group);
        if !group.is_like(earlier) {
            let SchedulerKey { priority, allocation_request_id } = group.key;
            let message = format!(
                "groups \"{}\" and \"{}\" differ in size or label, and both have priority {priority}, allocation \
                 request {allocation_request_id}: YARN keeps one size and label for each scheduler key",
                earlier.name, group.name
            );
            return Err(Refusal::Invalid { field: format!("groups[{at}].priority"), message });
        }
    }
    Ok(())
}

/// The table to send instead of the one that came.
pub(crate) fn replacement_asks(request: &HintRequest, hints: &Hints) -> Vec<Ask> {
    let mut keys: Vec<SchedulerKey> = Vec::new();
    for key in request.asks.iter().map(|ask| ask.key).chain(request.groups.iter().map(|group| group.key)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().flat_map(|key| rows(request, hints, key)).collect()
}

fn rows(request: &HintRequest, hints: &Hints, key: SchedulerKey) -> Vec<Ask> {
    let came: Vec<&Ask> = request.asks.iter().filter(|ask| ask.key == key).collect();
    let groups: Vec<&TaskGroup> = request.groups.iter().filter(|group| group.key == key).collect();
    let strict = came.iter().any(|ask| !ask.relax_locality);
    let Some(first) = groups.first().filter(|_| !strict) else {
        return came.into_iter().cloned().collect();
    };
    let any = came.iter().find(|ask| *ask.resource_name == *ANY);
    let wanted = groups.iter().fold(0_u32, |sum, group| sum.saturating_add(group.count));
    let label = first.label.clone().unwrap_or_else(|| "".into());
    let like = any.or(came.first()).map(|ask| (ask.size.clone(), Arc::clone(&ask.label)));
    let (size, label) = like.unwrap_or_else(|| (first.size.clone(), label));
    let row = |resource_name: Arc<str>, count: u32| Ask {
        key,
        resource_name,
        size: size.clone(),
        count,
        relax_locality: true,
        label: Arc::clone(&label),
    };
    // Hosts before racks before any, as YARN's own clients write them.
    let mut counts: BTreeMap<(u8, Arc<str>), u32> = BTreeMap::new();
    let mut add = |name: &Arc<str>, count: u32| {
        let sum = counts.entry((rank(name), Arc::clone(name))).or_default();
        *sum = sum.saturating_add(count);
    };
    let here = hints.iter().filter(|(hint, _)| groups.iter().any(|group| group.name == hint.group));
    for (hint, leased) in here {
        let others: &[_] = if leased { &[] } else { &hint.fallbacks };
        let hosts: BTreeSet<_> = [&hint.host].into_iter().chain(others).collect();
        hosts.into_iter().for_each(|host| add(&host.0, hint.count));
        let racks: BTreeSet<_> = hint.racks.iter().collect();
        racks.into_iter().for_each(|rack| add(&rack.0, hint.count));
    }
    for ask in came.iter().filter(|ask| *ask.resource_name != *ANY) {
        let count = counts.entry((rank(&ask.resource_name), Arc::clone(&ask.resource_name))).or_default();
        *count = (*count).max(ask.count);
    }
    let placed = counts.into_iter().map(|((_, name), count)| row(name, count));
    placed.chain([row(ANY.into(), any.map_or(wanted, |ask| ask.count))]).collect()
}

fn rank(name: &str) -> u8 {
    u8::from(name.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;
    use crate::decision::Hint;
    use crate::testing::{ask, hint, request};
    use hintd_model::cluster::Resource;
    use hintd_model::units::NodeIdx;

    fn hints_of(hints: &[Hint], lease: bool) -> Hints {
        let row = |hint: &Hint| Row {
            group: 0,
            node: NodeIdx(0),
            count: hint.count,
            size: Resource::new(1024, 1),
            key: SchedulerKey { priority: 0, allocation_request_id: -1 },
            lease,
        };
        Hints { hints: hints.to_vec(), rows: hints.iter().map(row).collect() }
    }

    fn told(asks: &[Ask]) -> Vec<(String, u32, bool)> {
        asks.iter().map(|ask| (ask.resource_name.to_string(), ask.count, ask.relax_locality)).collect()
    }

    fn row(name: &str, count: u32, relax: bool) -> (String, u32, bool) {
        (name.to_owned(), count, relax)
    }

    #[test]
    fn hosts_racks_and_any_carry_absolute_counts() {
        let mut asked = request("r", &[("map", 5)]);
        asked.asks = vec![ask(asked.groups[0].key, "*", 5)];
        let hints = [hint("map", "h1", 3, &["h2"], &["/r1"]), hint("map", "h2", 2, &["h3"], &["/r1", "/r2"])];
        let table = told(&replacement_asks(&asked, &hints_of(&hints, false)));
        let waiting =
            [("h1", 3), ("h2", 5), ("h3", 2), ("/r1", 5), ("/r2", 2), ("*", 5)].map(|(name, n)| row(name, n, true));
        assert_eq!(table, waiting);
        let table = told(&replacement_asks(&asked, &hints_of(&hints, true)));
        let leased = [("h1", 3), ("h2", 2), ("/r1", 5), ("/r2", 2), ("*", 5)].map(|(name, n)| row(name, n, true));
        assert_eq!(table, leased, "where room is leased, YARN is not offered a second choice");
    }

    #[test]
    fn a_strict_ask_comes_back_as_it_came() {
        let mut asked = request("r", &[("map", 1)]);
        let key = asked.groups[0].key;
        asked.asks = vec![ask(key, "h9", 1), ask(key, "/r9", 1), Ask { relax_locality: false, ..ask(key, "*", 1) }];
        let table = replacement_asks(&asked, &hints_of(&[hint("map", "h1", 1, &[], &["/r1"])], true));
        assert_eq!(table, asked.asks);
    }

    #[test]
    fn keys_that_no_group_has_come_back_as_they_came() {
        let mut asked = request("r", &[("map", 1)]);
        let other = SchedulerKey { priority: 99, allocation_request_id: 4 };
        asked.asks = vec![ask(other, "h7", 2), ask(other, "*", 2)];
        let table = replacement_asks(&asked, &hints_of(&[hint("map", "h1", 1, &[], &["/r1"])], true));
        assert_eq!(table[..2], asked.asks[..]);
        assert_eq!(told(&table[2..]), [row("h1", 1, true), row("/r1", 1, true), row("*", 1, true)]);
    }

    #[test]
    fn hosts_that_the_caller_wished_for_stay() {
        let mut asked = request("r", &[("map", 2)]);
        let key = asked.groups[0].key;
        asked.asks = vec![ask(key, "h8", 2), ask(key, "*", 2)];
        let table = told(&replacement_asks(&asked, &hints_of(&[hint("map", "h1", 2, &[], &["/r1"])], true)));
        assert_eq!(table, [("h1", 2), ("h8", 2), ("/r1", 2), ("*", 2)].map(|(name, n)| row(name, n, true)));
    }
}
