//! `pat` against its promises: the protocol under any order of messages, chains kept, cost never up, near the best.

use super::field::Ran;
use super::protocol::{Kind, Message, Next, Post, Server, Task};
use super::*;
use crate::Rebalance;
use crate::advise::{ContainerTraffic, RebalanceProblem, Running};
use crate::chained::cases::{gap, gap_to_arrived, spread};
use crate::chained::sample::{SETTINGS, UNIT, World, networks};
use crate::chained::{breaches_of, breaches_unaware};
use crate::check;
use crate::problem::EdgeProblem;
use hintd_model::network::chains::BoxLoads;
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, BoxIdx, Bytes, ChainIdx, ContainerId, NodeIdx};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const MEGABIT: u64 = 1_000_000;

/// Messages come in any order; some come again, later, once or often.
struct Chaos {
    waiting: Vec<Message>,
    random: ChaCha8Rng,
    repeats: u32,
}

impl Post for Chaos {
    fn send(&mut self, message: Message) {
        self.waiting.push(message);
    }

    fn next(&mut self) -> Option<Message> {
        if self.waiting.is_empty() {
            return None;
        }
        let at = self.random.random_range(0..self.waiting.len());
        if self.repeats > 0 && self.random.random_range(0..4) == 0 {
            self.repeats -= 1;
            return Some(self.waiting[at]);
        }
        Some(self.waiting.swap_remove(at))
    }
}

/// Servers of two kinds of resource below three switches; two boxes' places.
fn field() -> impl Strategy<Value = Field<2>> {
    let servers = prop::collection::vec((0_u32..3, 2_u64..8, 2_u64..8), 2..8);
    let tasks = prop::collection::vec((1_u64..3, 1_u64..3, any::<prop::sample::Index>(), 1_u64..9, 0_u64..9), 1..14);
    let hops = prop::collection::vec(prop::collection::vec(prop_oneof![9 => 0_u16..5, 1 => Just(NO_WAY)], 3), 2);
    (servers, tasks, hops).prop_map(|(servers, tasks, hops)| {
        let mut left: Vec<[u64; 2]> = servers.iter().map(|&(_, a, b)| [a, b]).collect();
        let rooms = left.clone();
        let mut movers = Vec::new();
        for (a, b, start, ingress, egress) in tasks {
            let open: Vec<usize> = (0..left.len()).filter(|&at| left[at][0] >= a && left[at][1] >= b).collect();
            if open.is_empty() {
                continue;
            }
            let server = open[start.index(open.len())];
            left[server] = [left[server][0] - a, left[server][1] - b];
            let pulls = [(0, ingress), (1, egress)].into_iter().filter(|(_, rate)| *rate > 0).collect();
            movers.push(Mover { size: [a, b], server: server as u32, pulls, set: 0 });
        }
        Field {
            switch_of: servers.iter().map(|server| server.0).collect(),
            rooms,
            tasks: movers,
            hops,
            allowed: vec![],
        }
    })
}

/// What tasks take of servers, where they say they are.
fn within(field: &Field<2>, run: &Run<'_, 2>) -> bool {
    let mut taken = vec![[0; 2]; field.rooms.len()];
    for (task, known) in run.tasks.iter().zip(&field.tasks) {
        let taken = &mut taken[task.server as usize];
        (taken[0], taken[1]) = (taken[0] + known.size[0], taken[1] + known.size[1]);
    }
    taken.iter().zip(&field.rooms).all(|(taken, room)| taken[0] <= room[0] && taken[1] <= room[1])
}

fn chaos(seed: u64) -> Chaos {
    Chaos { waiting: Vec::new(), random: ChaCha8Rng::seed_from_u64(seed), repeats: 400 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Every move is followed as it is made: cost falls with each, no server holds more than it has, and all ends.
    #[test]
    fn in_any_order_late_and_repeated_it_ends_within_room_and_every_move_lowers_cost(
        field in field(),
        seed: u64,
        news: bool,
        window in 1_usize..16,
    ) {
        let mut run = Run::new(&field);
        run.news = news;
        let before = run.cost();
        let lost = (0..field.tasks.len() as u32).filter(|&at| field.cost_below(at, field.switch_of[field.tasks[at as usize].server as usize]).is_none()).count();
        let mut steps = 0_u32;
        let ran = run.play(window, &mut chaos(seed), || {
            steps += 1;
            steps < 200_000
        });
        prop_assert!(!ran.stopped, "it goes on and on");
        prop_assert!(run.tasks.iter().all(Task::is_still));
        prop_assert!(within(&field, &run));
        // What servers have left is what tasks leave: nothing was counted twice nor lost.
        let mut left = field.rooms.clone();
        for (task, known) in run.tasks.iter().zip(&field.tasks) {
            let left = &mut left[task.server as usize];
            (left[0], left[1]) = (left[0] - known.size[0], left[1] - known.size[1]);
        }
        let counted: Vec<_> = run.servers.iter().map(|server| server.left).collect();
        prop_assert_eq!(counted, left);
        let mut at: Vec<u32> = field.tasks.iter().map(|task| task.server).collect();
        for &(task, server) in &run.log {
            let cost = |server: u32| field.cost_below(task, field.switch_of[server as usize]);
            prop_assert!(cost(at[task as usize]).is_none_or(|old| cost(server).unwrap() < old));
            at[task as usize] = server;
        }
        prop_assert!(lost > 0 || run.cost() <= before);
        prop_assert_eq!(ran.moves > 0, !run.log.is_empty());
    }

    /// In order, and with news of servers' room, no task is left that could gain by going where there is room.
    #[test]
    fn where_it_is_quiet_nobody_could_gain_by_moving(field in field(), window in 1_usize..8) {
        let mut run = Run::new(&field);
        run.play(window, &mut InOrder::default(), || true);
        for (at, task) in (0..).zip(&run.tasks) {
            let own = field.cost_below(at, field.switch_of[task.server as usize]);
            for (server, known) in (0..).zip(&run.servers) {
                let size = &field.tasks[at as usize].size;
                let fits = server != task.server && size.iter().zip(&known.left).all(|(size, left)| size <= left);
                let there = field.cost_below(at, field.switch_of[server as usize]);
                let gains = there.is_some_and(|there| own.is_none_or(|own| there < own));
                prop_assert!(!(fits && gains), "task {} to server {}", at, server);
            }
        }
    }
}

#[test]
fn accept_reserves_nothing_and_the_second_check_rejects_who_comes_late() {
    #[derive(Default)]
    struct Sent(Vec<Message>);
    impl Post for Sent {
        fn send(&mut self, message: Message) {
            self.0.push(message);
        }
        fn next(&mut self) -> Option<Message> {
            None
        }
    }
    let (mut server, mut sent) = (Server::new([1]), Sent::default());
    let mut tasks = [Task::at(9), Task::at(9)];
    for (at, task) in (0..).zip(&mut tasks) {
        task.ask(at, 4, &mut sent);
    }
    for message in std::mem::take(&mut sent.0) {
        server.receive(message, &[1], &mut sent);
    }
    assert!(sent.0.iter().all(|answer| answer.kind == Kind::Accept), "both are accepted for the room of one");
    for message in std::mem::take(&mut sent.0) {
        assert_eq!(tasks[message.task as usize].receive(message, &mut sent), Next::Wait);
    }
    for message in std::mem::take(&mut sent.0) {
        server.receive(message, &[1], &mut sent);
    }
    let answers = std::mem::take(&mut sent.0);
    assert_eq!(answers.iter().map(|answer| answer.kind).collect::<Vec<_>>(), [Kind::Confirm, Kind::RejectLate]);
    assert_eq!(tasks[0].receive(answers[0], &mut sent), Next::Look { moved: true });
    assert_eq!(tasks[1].receive(answers[1], &mut sent), Next::Look { moved: false });
    assert_eq!((tasks[0].server, tasks[1].server, tasks[1].avoids(4)), (4, 9, true));
    let release = Message { kind: Kind::Release, task: 0, server: 9, turn: 0 };
    assert_eq!(sent.0, [release], "the old server hears of it");
    // Told again, nothing happens twice.
    assert_eq!(tasks[0].receive(answers[0], &mut sent), Next::Wait);
    assert!(!server.receive(Message { kind: Kind::Optimize, task: 0, server: 4, turn: 1 }, &[1], &mut sent));
    assert_eq!((sent.0.last().map(|answer| answer.kind), server.left), (Some(Kind::Confirm), [0]));
}

#[test]
fn nobody_goes_where_a_box_of_its_is_not_reached_however_cheap_the_others_are() {
    let tasks = vec![Mover { size: [1, 1], server: 0, pulls: vec![(0, 5), (1, 5)], set: 0 }];
    let (rooms, hops) = (vec![[4, 4]; 3], vec![vec![3, 0, 2], vec![3, NO_WAY, 2]]);
    let field = Field { switch_of: vec![0, 1, 2], rooms, tasks, hops, allowed: vec![] };
    let mut run = Run::new(&field);
    run.play(1, &mut InOrder::default(), || true);
    assert_eq!((run.tasks[0].server, run.cost()), (2, 20));
}

#[test]
fn of_candidates_that_cost_the_same_the_one_with_most_left_is_asked() {
    let tasks = [Mover { size: [1, 1], server: 0, pulls: vec![(0, 5), (1, 5)], set: 0 }];
    // Servers 1 and 2 below switches that are alike, 3 below one that is as far by another way.
    for (left, wanted) in [([2, 4, 3], 2), ([2, 3, 4], 3), ([4, 2, 3], 1)] {
        let rooms: Vec<[u64; 2]> = [[8, 8]].into_iter().chain(left.map(|_| [4, 4])).collect();
        let fillers = (1_u32..).zip(left).flat_map(|(server, left)| {
            std::iter::repeat_n(Mover { size: [1, 1], server, pulls: vec![], set: 0 }, 4 - left as usize)
        });
        let tasks: Vec<_> = tasks.iter().cloned().chain(fillers).collect();
        let hops = vec![vec![3, 1, 1, 2], vec![3, 2, 2, 1]];
        let field = Field { switch_of: vec![0, 1, 2, 3], rooms, tasks, hops, allowed: vec![] };
        let mut run = Run::new(&field);
        run.play(1, &mut InOrder::default(), || true);
        assert_eq!(run.tasks[0].server, wanted, "{left:?}");
    }
}

#[test]
fn an_answer_to_an_earlier_turn_is_ignored() {
    let mut sent = InOrder::default();
    let mut task = Task::at(9);
    task.ask(0, 4, &mut sent);
    let late = Message { kind: Kind::Reject, ..sent.next().unwrap() };
    assert_eq!(task.receive(late, &mut sent), Next::Look { moved: false });
    task.begin();
    task.ask(0, 4, &mut sent);
    let request = sent.next().unwrap();
    assert_eq!((request.kind, request.turn), (Kind::Request, 2));
    // Told again, it speaks of a room that may be free by now.
    assert_eq!(task.receive(late, &mut sent), Next::Wait);
    assert_eq!(task.receive(Message { kind: Kind::Accept, ..late }, &mut sent), Next::Wait);
    assert!(sent.next().is_none() && !task.avoids(4) && !task.is_still());
    assert_eq!(task.receive(Message { kind: Kind::Accept, ..request }, &mut sent), Next::Wait);
    assert_eq!(sent.next().map(|message| (message.kind, message.turn)), Some((Kind::Optimize, 2)));
}

#[test]
fn tasks_that_start_together_race_and_all_end_somewhere() {
    let tasks = (0..40).map(|_| Mover { size: [1, 1], server: 0, pulls: vec![(0, 5)], set: 0 }).collect();
    let (rooms, hops) = (vec![[40, 40], [10, 10], [10, 10]], vec![vec![3, 1]]);
    let field = Field { switch_of: vec![0, 1, 1], rooms, tasks, hops, allowed: vec![] };
    let mut run = Run::new(&field);
    let ran: Ran = run.play(40, &mut InOrder::default(), || true);
    assert!(ran.races > 0, "{ran:?}");
    assert_eq!(ran.moves, 20);
    assert!(within(&field, &run));
}

fn place(policy: &dyn Place, problem: &PlaceProblem<'_>) -> Result<Placement, PlaceError> {
    policy.place(problem, &mut Budget::new(u64::MAX, &mut || false))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_chain_is_broken_while_links_switches_and_boxes_fail(
        network in 0_usize..4,
        megabits in 40_u64..400,
        percent in 0_u32..12,
        seed: u64,
    ) {
        let mut world = World::new(&networks()[network], BitsPerSec(megabits * MEGABIT), seed);
        world.fail(percent, seed ^ 7);
        let problem = world.job(6, 3, Bytes(1 << 30), seed);
        match place(&Pat::default(), &problem) {
            Ok(placement) => {
                prop_assert_eq!(check(&problem, &placement), []);
                let breaches = breaches_of(&problem, &placement, &SETTINGS).unwrap();
                prop_assert_eq!((breaches.broken, breaches.involved), (0, 0));
                prop_assert_eq!(&place(&Pat::default(), &problem).unwrap(), &placement);
            }
            Err(error) => prop_assert!(matches!(error, PlaceError::Broken { .. }), "{}", error),
        }
    }

    /// From the same start, with the same first boxes.
    #[test]
    fn a_placement_never_costs_more_than_the_one_it_starts_from(network in 0_usize..4, seed: u64) {
        let world = World::new(&networks()[network], BitsPerSec(400 * MEGABIT), seed);
        let problem = world.job(6, 3, Bytes(1 << 30), seed);
        let compiled = ChainedProblem::compile(&problem, &SETTINGS).unwrap().unwrap();
        let mut search_state = SearchState::new(&compiled);
        search_state.place_as(&place(&Capacity::default(), &problem).unwrap().groups);
        first_lists(&mut search_state, None, &Budget::new(u64::MAX, &mut || false)).unwrap();
        let placement = place(&Pat::default(), &problem).unwrap();
        prop_assert!(placement.objective <= search_state.cost() as f64 / 1e9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Maps send to each other what no chain asks for, which pulls at nobody: a round may lose there more than it saves.
    #[test]
    fn traffic_without_a_chain_never_makes_a_run_cost_more_and_a_second_run_moves_nothing(
        network in 0_usize..4,
        plain in 0_u64..8,
        crowded: bool,
        seed: u64,
    ) {
        let world = World::new(&networks()[network], BitsPerSec(400 * MEGABIT), seed);
        let mut problem = world.job(6, 3, Bytes(1 << 30), seed);
        let maps = hintd_model::units::GroupIdx(0);
        let pattern = hintd_model::cluster::EdgePattern::AllToAll;
        problem.edges.push(EdgeProblem { from: maps, to: maps, pattern, bytes: Bytes(plain << 30) });
        let compiled = ChainedProblem::compile(&problem, &SETTINGS).unwrap().unwrap();
        let mut search_state = SearchState::new(&compiled);
        let mut start = place(&Capacity::default(), &problem).unwrap().groups;
        if crowded {
            // All maps on one node, as far as they fit: what boxes pull apart costs between them.
            let room = |node: &&NodeIdx| (problem.room(**node).memory_mb(), std::cmp::Reverse(node.0));
            let node = *problem.groups[0].candidates.iter().max_by_key(room).unwrap();
            start[0] = vec![crate::Share { node, count: 6 }];
        }
        search_state.place_as(&start);
        // Drawn boxes, so that there is something to choose.
        prop_assume!(first_lists(&mut search_state, Some(seed), &Budget::new(u64::MAX, &mut || false)).is_ok());
        let before = search_state.cost();
        let mut never = || false;
        let budget = Budget::new(u64::MAX, &mut never);
        Pat::default().run(&mut search_state, &budget);
        prop_assert!(search_state.cost() <= before, "{} became {}", before, search_state.cost());
        let (at, lists) = (search_state.at.clone(), search_state.lists.clone());
        Pat::default().run(&mut search_state, &budget);
        prop_assert_eq!((&search_state.at, &search_state.lists), (&at, &lists));
        if plain == 0 {
            for (flow, list) in search_state.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
                let hops = |list: &[u32]| search_state.hops_by(&compiled.own.flows[flow], list);
                prop_assert!(search_state.best_list(flow as u32).is_none_or(|best| hops(&best) >= hops(list)));
            }
        }
    }
}

/// Printed with `--nocapture`.
#[test]
fn small_cases_come_near_the_exact_best_and_pna_does_not_keep_chains() {
    let (mut flows, mut broken) = (0, 0);
    for seed in 0..24 {
        let world = World::small(BitsPerSec(120 * MEGABIT), seed);
        let problem = world.job(2, 2, Bytes(1 << 30), seed);
        let pna = place(&crate::baselines::pna::Pna::default(), &problem).unwrap();
        let breaches = breaches_unaware(&problem, &world.intact, &pna, &SETTINGS).unwrap();
        (flows, broken) = (flows + breaches.flows, broken + breaches.broken);
    }
    let gaps: Vec<f64> = (0..24).map(|seed| gap(&Pat::default(), seed).unwrap()).collect();
    let [median, p90, worst] = spread(gaps).map(|share| 100.0 * share);
    println!("gap of pat to the exact best, 24 cases: median {median:.1} %, p90 {p90:.1} %, worst {worst:.1} %");
    println!("pna breaks {broken} of {flows} flows on them");
    assert!(median <= 25.0, "{median}");
}

#[test]
fn small_later_waves_come_near_the_exact_best() {
    let gaps: Vec<f64> = (0..24).map(|seed| gap_to_arrived(&Pat::default(), seed).unwrap()).collect();
    let [median, p90, worst] = spread(gaps).map(|share| 100.0 * share);
    println!("gap of pat to the exact best, 24 later waves: median {median:.1} %, p90 {p90:.1} %, worst {worst:.1} %");
    assert!(median <= 25.0, "{median}");
}

#[test]
fn running_containers_are_advised_towards_their_boxes_within_bounds() {
    // One load balancer on the way: where it stands draws both ends.
    let balanced = |seed: &u64| hintd_model::network::chains::sample::sequences(1, *seed)[0] == ["LB"];
    let seed = (0..).find(balanced).unwrap();
    let mut world = World::new(&networks()[1], BitsPerSec(4_000 * MEGABIT), seed);
    world.sample.snapshot.occupied.fill(UNIT.times(4));
    let container = |application, id| ContainerId {
        attempt: AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: application }, attempt: 1 },
        id,
    };
    let run = |at: u32| Running {
        container: container(at % 3, u64::from(at)),
        node: NodeIdx(at),
        size: UNIT,
        cooling: at == 0,
        set: 0,
    };
    let running: Vec<Running> = (0..12).map(run).collect();
    let traffic: Vec<_> =
        (0..12_u32).map(|from| ContainerTraffic { from, to: (from + 5) % 12, bytes: Bytes(100 << 20) }).collect();
    let problem = |moves_max, application_moves_max, gain_min| RebalanceProblem {
        snapshot: &world.sample.snapshot,
        leases: &world.sample.leases,
        running: running.clone(),
        allowed: Vec::new(),
        traffic: traffic.clone(),
        chains: vec![Some(ChainIdx(0)); 12],
        roots: Vec::new(),
        others: None,
        moves_max,
        application_moves_max,
        gain_min,
        seed: 1,
    };
    let advise = |problem: &RebalanceProblem<'_>| {
        Pat::default().rebalance(problem, &mut Budget::new(u64::MAX, &mut || false)).unwrap()
    };
    let all = advise(&problem(100, 100, 0.0));
    assert!(all.len() >= 3, "{all:?}");
    assert!(all.iter().all(|step| step.gain > 0.0 && step.container != container(0, 0)), "it has just been moved");
    assert!(all.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
    assert_eq!(advise(&problem(2, 100, 0.0)), all[..2]);
    let each = advise(&problem(100, 1, 0.0));
    assert!(each.len() <= 3 && each.len() < all.len());
    assert_eq!(advise(&problem(100, 100, 1.1)), []);
    let mut full = BoxLoads::new(&world.chains);
    for (at, known) in world.chains.boxes().iter().enumerate() {
        full.add(BoxIdx::new(at), known.capacity);
    }
    let mut beside = problem(100, 100, 0.0);
    beside.others = Some(full);
    assert_eq!(advise(&beside), [], "no box has room for it wherever it goes");
    let mut none = problem(100, 100, 0.0);
    none.chains.clear();
    assert_eq!(advise(&none), [], "nothing is to be passed");
}

#[test]
fn messages_for_each_container_do_not_grow_with_the_cluster() {
    let per_container = |containers: usize, servers: usize| {
        let played = sample::drawn(containers, servers, 1).unwrap().play(64);
        assert!(played.after < played.before && played.races > 0, "{played:?}");
        played.messages as f64 / containers as f64
    };
    let (small, large) = (per_container(400, 40), per_container(1_600, 160));
    assert!(large < 2.0 * small, "{small} and {large} messages each");
}
