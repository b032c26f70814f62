//! Stable many-to-one matching with capacities: deferred acceptance (Gale and Shapley, "College Admissions and the
//! Stability of Marriage", 1962), proposers first.
//!
//! With proposers of equal size nobody blocks the result (no proposer and host would both rather have each other than
//! what they have), and no proposer could do better in any other such matching. With unequal sizes a matching that
//! nobody blocks need not exist: then the result is within capacities, and no more is promised.

/// Who wants whom, and how much goes where; `K` kinds of resource.
#[derive(Debug, Clone, Copy)]
pub struct Market<'a, const K: usize> {
    /// By proposer: hosts that it would take, best first.
    pub preferences: &'a [Vec<u32>],
    /// By proposer: what it takes of a host.
    pub sizes: &'a [[u64; K]],
    /// By host: what it has.
    pub rooms: &'a [[u64; K]],
}

/// The host of every proposer; `None`: nobody on its list would have it. `score` is what a host gives for a proposer:
/// the higher is preferred, of equal ones the proposer of lower number. Asks for each proposal once.
#[must_use]
pub fn matching<const K: usize>(market: &Market<'_, K>, mut score: impl FnMut(u32, u32) -> f64) -> Vec<Option<u32>> {
    let mut hosts = vec![Vec::<(f64, u32)>::new(); market.rooms.len()];
    let mut left = market.rooms.to_vec();
    let mut matched = vec![None; market.preferences.len()];
    let mut next = vec![0_usize; market.preferences.len()];
    let mut free: Vec<u32> = (0..market.preferences.len() as u32).rev().collect();
    while let Some(proposer) = free.pop() {
        let at = proposer as usize;
        let Some(&host) = market.preferences[at].get(next[at]) else { continue };
        next[at] += 1;
        if !within(&market.sizes[at], &market.rooms[host as usize]) {
            free.push(proposer);
            continue;
        }
        let (held, left) = (&mut hosts[host as usize], &mut left[host as usize]);
        let own = (score(host, proposer), proposer);
        let place = held.partition_point(|known| before(known, &own));
        // Those it would push out, the least wanted first, until it fits. It fits beside nobody it is liked less than.
        let (mut room, mut keep) = (*left, held.len());
        while keep > place && !within(&market.sizes[at], &room) {
            keep -= 1;
            add(&mut room, &market.sizes[held[keep].1 as usize]);
        }
        if !within(&market.sizes[at], &room) {
            free.push(proposer);
            continue;
        }
        for (_, out) in held.drain(keep..) {
            matched[out as usize] = None;
            free.push(out);
        }
        held.insert(place, own);
        for (left, size) in room.iter_mut().zip(&market.sizes[at]) {
            *left -= size;
        }
        *left = room;
        matched[at] = Some(host);
    }
    matched
}

/// Pairs that block a matching: the proposer prefers the host to its own, and the host has room for it beside those
/// that it likes no less.
#[must_use]
pub fn blocking<const K: usize>(
    market: &Market<'_, K>,
    matched: &[Option<u32>],
    mut score: impl FnMut(u32, u32) -> f64,
) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (proposer, list) in (0_u32..).zip(market.preferences) {
        let own = matched[proposer as usize];
        for &host in list.iter().take_while(|host| Some(**host) != own) {
            let rank = (score(host, proposer), proposer);
            let mut room = market.rooms[host as usize];
            for (other, _) in (0_u32..).zip(matched).filter(|(_, at)| **at == Some(host)) {
                if before(&(score(host, other), other), &rank) {
                    let size = &market.sizes[other as usize];
                    room.iter_mut().zip(size).for_each(|(room, size)| *room = room.saturating_sub(*size));
                }
            }
            if within(&market.sizes[proposer as usize], &room) {
                found.push((proposer, host));
            }
        }
    }
    found
}

/// Whether a host likes `a` better than `b`.
fn before(a: &(f64, u32), b: &(f64, u32)) -> bool {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).is_lt()
}

fn within<const K: usize>(size: &[u64; K], room: &[u64; K]) -> bool {
    size.iter().zip(room).all(|(size, room)| size <= room)
}

fn add<const K: usize>(room: &mut [u64; K], size: &[u64; K]) {
    room.iter_mut().zip(size).for_each(|(room, size)| *room += size);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    struct Drawn {
        preferences: Vec<Vec<u32>>,
        sizes: Vec<[u64; 1]>,
        rooms: Vec<[u64; 1]>,
        scores: Vec<Vec<f64>>,
    }

    impl Drawn {
        fn market(&self) -> Market<'_, 1> {
            Market { preferences: &self.preferences, sizes: &self.sizes, rooms: &self.rooms }
        }

        fn score(&self, host: u32, proposer: u32) -> f64 {
            self.scores[host as usize][proposer as usize]
        }

        fn load(&self, matched: &[Option<u32>], host: u32) -> u64 {
            (0..matched.len()).filter(|&at| matched[at] == Some(host)).map(|at| self.sizes[at][0]).sum()
        }

        fn is_feasible(&self, matched: &[Option<u32>]) -> bool {
            let fits = |host: usize| self.load(matched, host as u32) <= self.rooms[host][0];
            let listed = |at: usize| matched[at].is_none_or(|host| self.preferences[at].contains(&host));
            (0..self.rooms.len()).all(fits) && (0..matched.len()).all(listed)
        }

        /// Every assignment of proposers to hosts of their lists, or to none.
        fn all(&self) -> Vec<Vec<Option<u32>>> {
            let mut all = vec![Vec::new()];
            for list in &self.preferences {
                let choices: Vec<Option<u32>> = list.iter().copied().map(Some).chain([None]).collect();
                let grown = |so_far: &Vec<Option<u32>>| -> Vec<Vec<Option<u32>>> {
                    choices.iter().map(|&choice| [&so_far[..], &[choice]].concat()).collect()
                };
                all = all.iter().flat_map(grown).collect();
            }
            all
        }
    }

    fn drawn(sizes: impl Strategy<Value = u64> + Clone + 'static) -> impl Strategy<Value = Drawn> {
        (1_usize..6, 1_usize..4).prop_flat_map(move |(proposers, hosts)| {
            let list = (Just((0..hosts as u32).collect::<Vec<_>>()).prop_shuffle(), 0..=hosts);
            let list = list.prop_map(|(all, len)| all[..len].to_vec());
            let scores = prop::collection::vec(prop::collection::vec((0_u8..4).prop_map(f64::from), proposers), hosts);
            let sizes = prop::collection::vec(sizes.clone().prop_map(|size| [size]), proposers);
            let rooms = prop::collection::vec((0_u64..7).prop_map(|room| [room]), hosts);
            (prop::collection::vec(list, proposers), sizes, rooms, scores)
                .prop_map(|(preferences, sizes, rooms, scores)| Drawn { preferences, sizes, rooms, scores })
        })
    }

    fn rank(drawn: &Drawn, proposer: usize, host: Option<u32>) -> usize {
        let list = &drawn.preferences[proposer];
        host.and_then(|host| list.iter().position(|listed| *listed == host)).unwrap_or(list.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        /// Among all assignments, those that nobody blocks are found one by one; in none of them is anybody better off.
        #[test]
        fn with_equal_sizes_nobody_blocks_and_every_proposer_has_the_best_it_can(drawn in drawn(Just(2_u64))) {
            let matched = matching(&drawn.market(), |host, proposer| drawn.score(host, proposer));
            prop_assert!(drawn.is_feasible(&matched));
            let blocks = |matched: &[Option<u32>]| blocking(&drawn.market(), matched, |h, p| drawn.score(h, p));
            prop_assert_eq!(blocks(&matched), vec![]);
            let stable = drawn.all().into_iter().filter(|other| drawn.is_feasible(other) && blocks(other).is_empty());
            let (mut count, mut found) = (0, false);
            for other in stable {
                count += 1;
                found |= other == matched;
                for (proposer, host) in other.iter().enumerate() {
                    prop_assert!(rank(&drawn, proposer, matched[proposer]) <= rank(&drawn, proposer, *host));
                }
            }
            prop_assert!(found && count > 0);
        }

        #[test]
        fn with_unequal_sizes_it_stays_within_capacities_and_lists(drawn in drawn(1_u64..5)) {
            let matched = matching(&drawn.market(), |host, proposer| drawn.score(host, proposer));
            prop_assert!(drawn.is_feasible(&matched));
        }
    }

    #[test]
    fn a_host_that_is_asked_for_by_all_keeps_those_it_likes_best() {
        let sizes = [[1, 1]; 4];
        let market = Market { preferences: &vec![vec![0, 1]; 4], sizes: &sizes, rooms: &[[2, 9], [9, 1]] };
        let matched = matching(&market, |_, proposer| f64::from(proposer % 3));
        assert_eq!(matched, [Some(1), Some(0), Some(0), None], "2 and 1 are liked best, then 0 before 3");
        assert_eq!(blocking(&market, &[Some(0), Some(0), Some(1), None], |_, p| f64::from(p % 3)), [(2, 0)]);
    }
}
