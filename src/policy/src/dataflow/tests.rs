//! The dataflow by hand, and against a reckoning task by task.

use super::*;
use proptest::prelude::*;

fn edge(from: u32, to: u32, pattern: EdgePattern, bytes: u64) -> EdgeProblem {
    EdgeProblem { from: GroupIdx(from), to: GroupIdx(to), pattern, bytes: Bytes(bytes) }
}

fn all(from: u32, to: u32, bytes: u64) -> EdgeProblem {
    edge(from, to, EdgePattern::AllToAll, bytes)
}

fn each(from: u32, to: u32, bytes: u64) -> EdgeProblem {
    edge(from, to, EdgePattern::OneToOne, bytes)
}

fn shares(of: &[&[(u32, u32)]]) -> Vec<Vec<Share>> {
    let share = |&(node, count): &(u32, u32)| Share { node: NodeIdx(node), count };
    of.iter().map(|shares| shares.iter().map(share).collect()).collect()
}

fn told(traffic: &Traffic) -> Vec<(u32, u32, u32, u64)> {
    traffic.flows.iter().map(|f| (f.pair.from.0, f.pair.to.0, f.task_pairs, f.bytes.0)).collect()
}

#[test]
fn a_shuffle_sends_from_every_node_to_every_other_and_what_stays_is_no_flow() {
    let traffic = traffic(&[all(0, 1, 60)], &shares(&[&[(1, 2), (2, 1)], &[(2, 1), (3, 1)]])).unwrap();
    assert_eq!(told(&traffic), [(1, 2, 2, 20), (1, 3, 2, 20), (2, 3, 1, 10)]);
    let near = Inlet { flows: vec![0], local: Some(NodeIdx(2)) };
    assert_eq!(traffic.inlets, [near, Inlet { flows: vec![1, 2], local: None }]);
    assert_eq!(traffic.sinks, [Sink { count: 1, inlets: vec![0] }, Sink { count: 1, inlets: vec![1] }]);
}

#[test]
fn a_pipeline_joins_task_i_to_task_i_modulo_the_count() {
    let placed = shares(&[&[(0, 1), (1, 1), (2, 1)], &[(5, 1), (1, 1)]]);
    let traffic = traffic(&[each(0, 1, 9)], &placed).unwrap();
    assert_eq!(told(&traffic), [(0, 5, 1, 3), (2, 5, 1, 3)], "task 1 stays on node 1");
    assert_eq!(traffic.sinks.len(), 2);
}

#[test]
fn an_edge_of_a_group_to_itself_makes_it_root_and_sink_of_itself() {
    let traffic = traffic(&[all(0, 0, 600)], &shares(&[&[(4, 2), (7, 1)]])).unwrap();
    assert_eq!(told(&traffic), [(4, 7, 2, 200), (7, 4, 2, 200)]);
    assert_eq!(traffic.inlets[0], Inlet { flows: vec![1], local: Some(NodeIdx(4)) });
    assert_eq!(traffic.sinks.iter().map(|sink| (sink.count, sink.inlets.len())).collect::<Vec<_>>(), [(2, 2), (1, 2)]);
}

#[test]
fn a_sink_waits_for_every_inlet_between_its_roots_and_itself() {
    let placed = shares(&[&[(0, 1)], &[(1, 1)], &[(2, 1)], &[(3, 1)]]);
    let traffic = traffic(&[all(0, 1, 1), all(1, 2, 1), all(0, 3, 1)], &placed).unwrap();
    assert_eq!(traffic.sinks, [Sink { count: 1, inlets: vec![0, 1] }, Sink { count: 1, inlets: vec![2] }]);
}

#[test]
fn cycles_are_legal_where_something_feeds_and_leaves_them() {
    let placed = shares(&[&[(0, 1)], &[(1, 1)], &[(2, 1)], &[(3, 1)]]);
    let traffic = traffic(&[all(0, 1, 1), all(1, 2, 1), all(2, 1, 1), all(2, 3, 1)], &placed).unwrap();
    assert_eq!(traffic.sinks, [Sink { count: 1, inlets: vec![0, 1, 2] }]);
    assert_eq!(traffic.inlets[0].flows.len(), 2, "from the source and back from the cycle");
}

#[test]
fn a_graph_without_source_or_sink_is_refused_and_the_cycle_named() {
    let placed = shares(&[&[(0, 1)], &[(1, 1)], &[(2, 1)]]);
    let error = traffic(&[all(0, 1, 1), all(1, 0, 1), all(1, 2, 1)], &placed).unwrap_err();
    assert_eq!(error, DataflowError::NoRoot { groups: vec![GroupIdx(1), GroupIdx(0)] });
    assert_eq!(error.to_string(), "the edges have no source: groups [1, 0] form a cycle that nothing feeds");
    let error = traffic(&[all(2, 0, 1), all(0, 1, 1), all(1, 0, 1)], &placed).unwrap_err();
    assert_eq!((error.lacks(), error.groups()), ("sink", &[GroupIdx(0), GroupIdx(1)][..]));
    assert_eq!(traffic(&[], &placed).unwrap(), Traffic::default());
}

#[test]
fn what_no_root_reaches_sends_but_counts_for_no_sink() {
    // The cycle of 1 and 2 is fed by nothing; group 0 feeds the sink.
    let placed = shares(&[&[(0, 1)], &[(1, 1)], &[(2, 1)], &[(3, 1)]]);
    let traffic = traffic(&[all(0, 3, 1), all(1, 2, 1), all(2, 1, 1), all(2, 3, 1)], &placed).unwrap();
    assert_eq!(traffic.flows.len(), 4);
    assert_eq!(traffic.inlets, [Inlet { flows: vec![0], local: None }]);
    assert_eq!(traffic.sinks, [Sink { count: 1, inlets: vec![0] }]);
}

#[test]
fn bytes_beyond_what_a_flow_can_tell_are_kept_exact() {
    let traffic = traffic(&[all(0, 1, u64::MAX)], &shares(&[&[(0, 3)], &[(1, 1), (2, 2)]])).unwrap();
    assert_eq!(traffic.flows.iter().map(|flow| u128::from(flow.bytes.0)).sum::<u128>(), u128::from(u64::MAX));
}

/// Tasks one by one: (group, number) to node; edges between tasks; closure by brute force.
fn naive(edges: &[EdgeProblem], groups: &[Vec<Share>]) -> (BTreeMap<Hop, u32>, Waits) {
    let tasks: Vec<Vec<u32>> = groups
        .iter()
        .map(|shares| shares.iter().flat_map(|s| std::iter::repeat_n(s.node.0, s.count as usize)).collect())
        .collect();
    let mut hops: BTreeSet<(Place, Place)> = BTreeSet::new();
    let mut flows: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for edge in edges {
        let (g, h) = (edge.from.at(), edge.to.at());
        for (i, &a) in tasks[g].iter().enumerate() {
            for (j, &b) in tasks[h].iter().enumerate() {
                let (n, m) = (tasks[g].len(), tasks[h].len());
                let joined = match edge.pattern {
                    EdgePattern::AllToAll => g != h || i != j,
                    EdgePattern::OneToOne => i.max(j) < n.max(m) && (i % m == j || j % n == i),
                };
                if joined {
                    hops.insert(((g, a), (h, b)));
                    *flows.entry((a, b)).or_default() += u32::from(a != b);
                }
            }
        }
    }
    flows.retain(|_, count| *count > 0);
    let places: BTreeSet<Place> =
        tasks.iter().enumerate().flat_map(|(g, nodes)| nodes.iter().map(move |&node| (g, node))).collect();
    let other = |g: usize, into: bool| {
        edges.iter().any(|e| e.from != e.to && if into { e.to.at() == g } else { e.from.at() == g })
    };
    let mut reached: BTreeSet<Place> = places.iter().copied().filter(|(g, _)| !other(*g, true)).collect();
    while let Some((_, to)) = hops.iter().find(|(from, to)| reached.contains(from) && !reached.contains(to)) {
        reached.insert(*to);
    }
    let mut sinks = Vec::new();
    for sink in places.iter().filter(|(g, _)| !other(*g, false)).filter(|place| reached.contains(place)) {
        let mut before = BTreeSet::from([*sink]);
        while let Some((from, _)) = hops.iter().find(|(from, to)| before.contains(to) && !before.contains(from)) {
            before.insert(*from);
        }
        let waits: BTreeSet<Hop> = hops
            .iter()
            .filter(|(from, to)| reached.contains(from) && before.contains(to))
            .map(|&((_, a), (_, b))| (a, b))
            .collect();
        if !waits.is_empty() {
            sinks.push((tasks[sink.0].iter().filter(|&&node| node == sink.1).count() as u32, waits));
        }
    }
    (flows, sinks)
}

type Place = (usize, u32);
type Hop = (u32, u32);
/// Tasks of each sink, and the hops it waits for.
type Waits = Vec<(u32, BTreeSet<Hop>)>;

fn edges_of(raw: &[(u32, u32, bool)], groups: u32) -> Vec<EdgeProblem> {
    let of = |&(from, to, every): &(u32, u32, bool)| {
        let pattern = if every { EdgePattern::AllToAll } else { EdgePattern::OneToOne };
        edge(from % groups, to % groups, pattern, 1_000)
    };
    raw.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_is_what_a_reckoning_task_by_task_gives(
        raw in prop::collection::vec((0_u32..5, 0_u32..5, any::<bool>()), 1..8),
        placed in prop::collection::vec(prop::collection::vec((0_u32..5, 1_u32..3), 0..4), 1..5),
    ) {
        let mut edges = edges_of(&raw, placed.len() as u32);
        // Two edges between the same groups would be counted pair by pair as well, but in patterns that differ.
        edges.sort_by_key(|edge| (edge.from, edge.to));
        let rows: Vec<&[(u32, u32)]> = placed.iter().map(|row| &row[..]).collect();
        let groups = shares(&rows);
        let Ok(found) = traffic(&edges, &groups) else {
            prop_assert!(check_dataflow(&edges).is_err());
            return Ok(());
        };
        let (flows, sinks) = naive(&edges, &groups);
        let told: BTreeMap<(u32, u32), u32> =
            found.flows.iter().map(|flow| ((flow.pair.from.0, flow.pair.to.0), flow.task_pairs)).collect();
        prop_assert_eq!(told, flows);
        let mut waits: Vec<(u32, BTreeSet<Hop>)> = found
            .sinks
            .iter()
            .map(|sink| {
                let hops = sink.inlets.iter().flat_map(|&inlet| {
                    let inlet = &found.inlets[inlet as usize];
                    let pairs = inlet.flows.iter().map(|&row| found.flows[row as usize].pair);
                    pairs.map(|pair| (pair.from.0, pair.to.0)).chain(inlet.local.map(|node| (node.0, node.0)))
                });
                (sink.count, hops.collect())
            })
            .collect();
        let mut sinks = sinks;
        waits.sort();
        sinks.sort();
        prop_assert_eq!(waits, sinks);
    }
}
