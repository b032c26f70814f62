//! The routing level on its own.

use super::*;

fn world(sample: &Sample) -> (&hintd_model::network::Network, &hintd_model::network::PathTable, &Topology) {
    let topology = &*sample.snapshot.topology;
    (topology.network.as_deref().unwrap(), topology.paths().unwrap(), topology)
}

fn go(
    index: &mut FlowIndex,
    sample: &Sample,
    pairs: &[NodePair],
    avoid: &BTreeSet<LinkIdx>,
    planned: bool,
) -> Vec<NodePair> {
    let (network, paths, topology) = world(sample);
    let what = Reroute { network, paths, topology, pairs, avoid, seed: 7, planned };
    let mut never = || false;
    let changed = reroute(index, &what, &mut Budget::new(2_000, &mut never));
    for (pair, links) in &changed {
        assert_eq!(index.route(*pair), links.as_deref());
    }
    changed.into_iter().map(|(pair, _)| pair).collect()
}

fn all_pairs(flows: &RunningFlows) -> Vec<NodePair> {
    let mut pairs: Vec<NodePair> = flows.routes.iter().map(|(pair, _)| *pair).collect();
    pairs.sort_unstable();
    pairs
}

fn routes(index: &FlowIndex, pairs: &[NodePair]) -> BTreeMap<NodePair, Vec<DirectedLinkIdx>> {
    pairs.iter().filter_map(|pair| Some((*pair, index.route(*pair)?.to_vec()))).collect()
}

/// The sample with a link between switches down, and its topology rebuilt.
fn without(sample: &Sample, link: LinkIdx) -> Sample {
    let mut other = sample.clone();
    let mut network = (**sample.snapshot.topology.network.as_ref().unwrap()).clone();
    network.set_link(link, Some(false), None);
    other.snapshot.topology = Arc::new(Topology::new(Some(Arc::new(network)), &other.snapshot.statics));
    other
}

#[test]
fn only_pairs_on_a_lost_link_move_and_never_onto_it() {
    for seed in 0..10 {
        let sample = fish(seed, 2);
        let flows = busy(&sample, 4);
        let (network, _, topology) = world(&sample);
        let mut index = FlowIndex::of(network, topology, &flows);
        let pairs = all_pairs(&flows);
        let lost = index.route(pairs[seed as usize]).unwrap()[1];
        let cut = without(&sample, LinkIdx(lost.0 / 2));
        let hit: BTreeSet<NodePair> =
            (0..2).flat_map(|way| index.pairs_on(DirectedLinkIdx(lost.0 / 2 * 2 + way)).collect::<Vec<_>>()).collect();
        let before = routes(&index, &pairs);
        (0..2).for_each(|way| index.set_capacity(DirectedLinkIdx(lost.0 / 2 * 2 + way), 0.0));
        let broken = index.utility();
        let hit: Vec<NodePair> = hit.into_iter().collect();
        let changed = go(&mut index, &cut, &hit, &BTreeSet::new(), false);
        assert!(index.utility() >= broken);
        assert!(changed.iter().all(|pair| hit.contains(pair)));
        for (pair, route) in routes(&index, &pairs) {
            assert!(!hit.contains(&pair) && route == before[&pair] || hit.contains(&pair));
            assert!(route.iter().all(|link| link.0 / 2 != lost.0 / 2), "no route uses a dead link");
        }
        let chosen: Vec<ChosenRoute> =
            routes(&index, &hit).into_iter().map(|(pair, links)| ChosenRoute::plain(pair, links.into())).collect();
        assert_whole(&cut.snapshot.topology, &chosen);
    }
}

#[test]
fn a_planned_change_makes_utility_rise_or_changes_nothing() {
    let mut risen = 0;
    for seed in 0..10 {
        let sample = fish(seed, 1);
        let flows = busy(&sample, 2);
        let (network, _, topology) = world(&sample);
        let mut index = FlowIndex::of(network, topology, &flows);
        let pairs = all_pairs(&flows);
        let (before, utility) = (routes(&index, &pairs), index.utility());
        let changed = go(&mut index, &sample, &pairs, &BTreeSet::new(), true);
        if changed.is_empty() {
            assert_eq!((routes(&index, &pairs), index.utility()), (before, utility));
        } else {
            assert!(index.utility() > utility);
            risen += 1;
        }
    }
    assert!(risen > 0, "routes drawn at random leave nothing to gain");
}

#[test]
fn links_to_avoid_are_taken_only_where_there_is_no_other_way() {
    let sample = fat(4, 2);
    let (network, _, topology) = world(&sample);
    let mut index = FlowIndex::new(network, topology);
    let pair = NodePair { from: NodeIdx(0), to: NodeIdx(5) };
    let edges = [all(0, 1)];
    let at = |node: NodeIdx| vec![Share { node, count: 1 }];
    index.add_job(&traffic(&edges, &[at(pair.from), at(pair.to)]).unwrap());
    let first = network.attachment(topology.vertex[0].unwrap()).unwrap();
    let up: Vec<LinkIdx> = network
        .links_of(first)
        .filter(|(_, link)| !network.vertex_at(link.other(first)).is_host())
        .map(|(at, _)| at)
        .collect();
    for avoided in &up {
        index.set_route(pair, None);
        go(&mut index, &sample, &[pair], &BTreeSet::from([*avoided]), false);
        assert!(index.route(pair).unwrap().iter().all(|link| link.0 / 2 != avoided.0));
    }
    index.set_route(pair, None);
    go(&mut index, &sample, &[pair], &up.into_iter().collect(), false);
    assert!(index.route(pair).is_some(), "a way that flaps is better than none");
}

#[test]
fn a_pair_that_is_cut_loses_its_route_and_one_without_budget_still_gets_its_first() {
    let sample = fat(4, 2);
    let (network, _, topology) = world(&sample);
    let mut index = FlowIndex::new(network, topology);
    let pair = NodePair { from: NodeIdx(0), to: NodeIdx(5) };
    let at = |node: NodeIdx| vec![Share { node, count: 1 }];
    index.add_job(&traffic(&[all(0, 1)], &[at(pair.from), at(pair.to)]).unwrap());
    let what = |sample: &Sample, index: &mut FlowIndex| {
        let (network, paths, topology) = world(sample);
        let (pairs, avoid) = ([pair], BTreeSet::new());
        let what = Reroute { network, paths, topology, pairs: &pairs, avoid: &avoid, seed: 1, planned: false };
        let mut stop = || true;
        reroute(index, &what, &mut Budget::new(0, &mut stop))
    };
    let changed = what(&sample, &mut index);
    assert_eq!((changed.len(), index.route(pair).unwrap().len()), (1, 6));
    let access = index.route(pair).unwrap()[0];
    index.set_capacity(access, 0.0);
    let changed = what(&without(&sample, LinkIdx(access.0 / 2)), &mut index);
    assert_eq!(changed, [(pair, None)]);
    assert_eq!((index.route(pair), index.utility()), (None, 0.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_index_after_rerouting_is_one_built_anew(seed in 0_u64..1_000, planned: bool) {
        let sample = fish(seed % 5, 2);
        let flows = busy(&sample, 3);
        let (network, _, topology) = world(&sample);
        let mut index = FlowIndex::of(network, topology, &flows);
        let pairs: Vec<NodePair> = all_pairs(&flows).into_iter().skip(seed as usize % 3).step_by(2).collect();
        go(&mut index, &sample, &pairs, &BTreeSet::new(), planned);
        let mut anew = flows.clone();
        for pair in all_pairs(&flows) {
            let links: Arc<[DirectedLinkIdx]> = index.route(pair).unwrap().into();
            let known = (**anew.routes.get(&pair).unwrap()).clone();
            anew.change().routes.set(&pair, Some(Arc::new(PairRoute { links, ..known })));
        }
        let anew = FlowIndex::of(network, topology, &anew);
        prop_assert_eq!(anew.utility(), index.utility());
    }
}
