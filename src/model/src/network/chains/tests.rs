//! Chains against their rules: declarations, matching, routes by enumeration, changes step by step.

use super::super::build::{self, BCubeSpec, FatTreeSpec, TreeSpec, Vl2Spec};
use super::super::path_table::{PathTable, PathTableOptions};
use super::super::testing::random_network;
use super::*;
use crate::units::{DirectedLinkIdx, LinkIdx};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn put(name: &str, kind: &str, at: &str, bits_per_s: i64) -> BoxEntry {
    BoxEntry { name: name.into(), kind: kind.into(), at: at.into(), bits_per_s, up: true }
}

fn chain(name: &str, sequence: &[&str]) -> ChainEntry {
    ChainEntry {
        name: name.into(),
        sequence: sequence.iter().map(|kind| (*kind).to_owned()).collect(),
        ..Default::default()
    }
}

fn testbed() -> Network {
    build::tree(&TreeSpec::default()).unwrap().network
}

/// A firewall on each core switch, an IPS on the first rack's switch.
fn declared(chains: Vec<ChainEntry>) -> ChainsDocument {
    let boxes = vec![
        put("fw-1", "FW", "core-1", 1_000),
        put("fw-2", "FW", "core-2", 1_000),
        put("ips-1", "IPS", "edge-01", 1_000),
    ];
    ChainsDocument { groups: vec!["spout".into()], boxes, chains }
}

fn table(network: &Network, chains: &Chains, k: usize) -> PathTable {
    let k = NonZeroUsize::new(k).unwrap();
    PathTable::build(network, &PathTableOptions { k, more_ends: chains.ends(), ..PathTableOptions::default() })
}

/// What is wrong with the declaration once `spoil` has been at it: reasons, and the first message.
fn found(spoil: impl Fn(&mut ChainsDocument)) -> (Vec<&'static str>, String) {
    let mut document = declared(vec![chain("secure", &["FW", "IPS"])]);
    spoil(&mut document);
    let problems = Chains::new(&document, Some(&testbed())).err().unwrap_or_default();
    (problems.iter().map(ChainProblem::reason).collect(), problems.first().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn a_sound_declaration_has_no_problem() {
    assert_eq!(found(|_| ()).0, [""; 0]);
}

#[test]
fn every_breach_is_named_with_its_box_or_chain() {
    let message = |spoil: &dyn Fn(&mut ChainsDocument), reason: &str| {
        let (reasons, message) = found(spoil);
        assert_eq!(reasons, [reason], "{message}");
        message
    };
    let typo = message(&|d| d.chains[0].sequence[1] = "IPZ".into(), "unknown-type");
    assert_eq!(typo, "chain \"secure\" passes type \"IPZ\", which no middlebox is of; \"IPS\" is");
    let group = message(&|d| d.chains[0].group = Some("redcue".into()), "unknown-group");
    assert_eq!(group, "chain \"secure\" names group \"redcue\", which is not declared; \"reduce\" is");
    let empty = message(&|d| d.chains[0].sequence.clear(), "empty-sequence");
    assert_eq!(empty, "chain \"secure\" has an empty sequence");
    let nowhere = message(&|d| d.boxes[0].at = "core-9".into(), "unknown-switch");
    assert_eq!(nowhere, "middlebox \"fw-1\" hangs on \"core-9\", which the network does not know");
    message(&|d| d.boxes[0].at.clear(), "unknown-switch");
    message(&|d| d.boxes[0].at = "host-0001".into(), "no-switch");
    let none = message(&|d| d.boxes[2].bits_per_s = 0, "no-capacity");
    assert_eq!(none, "middlebox \"ips-1\" has capacity 0 bit/s: it must carry something");
    message(&|d| d.boxes[2].bits_per_s = -7, "no-capacity");
    message(&|d| d.chains.push(chain("secure", &["FW", "IPS"])), "duplicate-chain");
    message(&|d| d.boxes.push(put("fw-1", "FW", "core-1", 5)), "duplicate-box");
    message(&|d| d.chains[0].sequence[1] = "FW".into(), "repeated-type");
    message(&|d| d.chains[0].ports = Some((9, 3)), "no-ports");
    assert_eq!(
        found(|d| d.chains[0].sequence = ["FW", "IPS", "FW", "IPS"].map(String::from).into()).0[0],
        "long-sequence"
    );
}

#[test]
fn all_problems_come_at_once() {
    let (reasons, _) = found(|d| {
        d.boxes[2].bits_per_s = 0;
        d.boxes[1].at = "nowhere".into();
        d.chains[0].group = Some("ghosts".into());
        d.chains.push(chain("none", &[]));
    });
    assert_eq!(reasons, ["no-capacity", "unknown-group", "empty-sequence", "contradiction", "unknown-switch"]);
}

#[test]
fn chains_that_want_different_things_of_one_flow_are_both_named() {
    let with = |edit: &dyn Fn(&mut ChainEntry)| {
        found(|d| {
            d.chains[0].group = Some("reduce".into());
            d.chains[0].direction = Direction::In;
            let mut other = chain("other", &["FW"]);
            edit(&mut other);
            d.chains.push(other);
        })
    };
    let (reasons, message) = with(&|_| ());
    assert_eq!(reasons, ["contradiction"]);
    assert!(message.starts_with("chains \"other\" and \"secure\" contradict each other"), "{message}");
    assert_eq!(with(&|other| other.priority = 1).0, [""; 0], "the higher priority holds");
    assert_eq!(with(&|other| other.sequence.push("IPS".into())).0, [""; 0], "they want the same");
    let of = |group: &str, direction| {
        let group = Some(group.to_owned());
        with(&move |other| (other.group, other.direction) = (group.clone(), direction)).0
    };
    assert_eq!(of("map", Direction::Out), ["contradiction"], "from map to reduce");
    assert_eq!(of("map", Direction::In), [""; 0], "no flow ends in both");
    assert_eq!(of("map", Direction::Both), ["contradiction"]);
    let scoped = |a: ChainEntry, b: ChainEntry| found(move |d| d.chains = vec![a.clone(), b.clone()]).0;
    let with = |name: &str, sequence: &[&str], edit: &dyn Fn(&mut ChainEntry)| {
        let mut entry = chain(name, sequence);
        edit(&mut entry);
        entry
    };
    let queue = |name: &str, kind: &str, queue: &str| with(name, &[kind], &|e| e.queue = Some(queue.into()));
    assert_eq!(scoped(queue("a", "FW", "root.prod"), queue("b", "IPS", "root.production")), [""; 0]);
    assert_eq!(scoped(queue("a", "FW", "root.prod"), queue("b", "IPS", "root.prod.etl")), ["contradiction"]);
    let app = |name: &str, kind: &str, app: &str| with(name, &[kind], &|e| e.application = Some(app.into()));
    assert_eq!(scoped(app("a", "FW", "etl-*"), app("b", "IPS", "etl-nightly")), ["contradiction"]);
    assert_eq!(scoped(app("a", "FW", "etl-*"), app("b", "IPS", "web-*")), [""; 0]);
    let one = "application_1_0007";
    assert_eq!(scoped(app("a", "FW", "etl-*"), app("b", "IPS", one)), ["contradiction"], "its key may be etl-7");
    assert_eq!(scoped(app("a", "FW", "application_1_0008"), app("b", "IPS", one)), [""; 0], "two applications");
    assert_eq!(scoped(app("a", "FW", "application_1_*"), app("b", "IPS", "application_2_*")), [""; 0]);
    assert_eq!(
        scoped(app("a", "FW", "app*"), app("b", "IPS", "etl-*")),
        ["contradiction"],
        "app* may be an id's start"
    );
    let ports = |name: &str, kind: &str, ports| with(name, &[kind], &|e| e.ports = Some(ports));
    assert_eq!(scoped(ports("a", "FW", (1, 10)), ports("b", "IPS", (10, 12))), ["contradiction"]);
    assert_eq!(scoped(ports("a", "FW", (1, 10)), ports("b", "IPS", (11, 12))), [""; 0]);
}

#[test]
fn a_flow_has_the_chain_of_highest_priority_that_matches_it() {
    let mut narrow = chain("narrow", &["FW", "IPS"]);
    (narrow.priority, narrow.queue, narrow.application) = (5, Some("root.prod".into()), Some("etl-*".into()));
    (narrow.group, narrow.direction) = (Some("reduce".into()), Direction::In);
    (narrow.ports, narrow.protocol) = (Some((13_000, 14_000)), Some(Protocol::Tcp));
    let document = declared(vec![chain("wide", &["FW"]), narrow]);
    let chains = Chains::new(&document, Some(&testbed())).unwrap();
    let flow = FlowFacts {
        application: ["etl-7", "application_1_0007"],
        queue: Some("root.prod.eu"),
        from: ["maps", "map"],
        to: ["r", "reduce"],
        port: Some(13_562),
        protocol: Some(Protocol::Tcp),
    };
    let name = |flow: &FlowFacts<'_>| chains.chain_of(flow).map(|index| &*chains.chain(index).name);
    assert_eq!(name(&flow), Some("narrow"));
    for other in [
        FlowFacts { application: ["web", "application_1_0007"], ..flow },
        FlowFacts { application: ["", ""], ..flow },
        FlowFacts { queue: Some("root.production"), ..flow },
        FlowFacts { to: flow.from, from: flow.to, ..flow },
        FlowFacts { port: Some(80), ..flow },
        FlowFacts { port: None, ..flow },
        FlowFacts { protocol: Some(Protocol::Udp), ..flow },
    ] {
        assert_eq!(name(&other), Some("wide"), "{other:?}");
    }
    assert_eq!(Chains::default().chain_of(&flow), None);
}

#[test]
fn a_chain_that_names_an_id_is_not_got_round_by_a_key() {
    let named = ChainEntry { application: Some("application_1_0007".into()), ..chain("named", &["FW"]) };
    let chains = Chains::new(&declared(vec![named]), Some(&testbed())).unwrap();
    let of = |application| chains.chain_of(&FlowFacts { application, ..FlowFacts::default() });
    assert_eq!(of(["etl-7", "application_1_0007"]), Some(ChainIdx(0)));
    assert_eq!(of(["", "application_1_0007"]), Some(ChainIdx(0)));
    assert_eq!(of(["etl-7", "application_1_0008"]), None);
    assert_eq!(of(["application_1_0007", "application_1_0008"]), None, "a key that looks like an id is none");
}

#[test]
fn a_sequence_that_no_path_can_satisfy_is_refused_with_its_types() {
    let mut network = testbed();
    let island = network.add_switch("island", Tier::Core).unwrap();
    let far = network.add_switch("far", Tier::Core).unwrap();
    network.add_link("l".into(), island, far, BitsPerSec(1)).unwrap();
    let mut document = declared(vec![chain("secure", &["FW", "IPS"])]);
    document.boxes[2].at = "island".into();
    let problems = Chains::new(&document, Some(&network)).unwrap_err();
    let text = "no path leads through the sequence of chain \"secure\": nothing joins a box of type \"FW\" to one of type \"IPS\"";
    assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
    network.set_switch(network.vertex("edge-01").unwrap(), false);
    document.boxes[2].at = "edge-01".into();
    assert!(Chains::new(&document, Some(&network)).is_ok(), "what is down now may come up");
}

#[test]
fn a_declaration_is_replaced_whole_or_not_at_all() {
    let network = testbed();
    let before = declared(vec![chain("a", &["FW"]), {
        let mut b = chain("b", &["IPS"]);
        b.priority = 1;
        b
    }]);
    let mut chains = Chains::new(&before, Some(&network)).unwrap();
    chains.set_box(chains.find_box("fw-2").unwrap(), Some(false), None);
    let mut after = declared(vec![chain("a", &["IPS"])]);
    let in_use = BTreeMap::from([("b".into(), 3), ("a".into(), 1)]);
    let problems = chains.replace(&after, Some(&network), &in_use).unwrap_err();
    assert_eq!(problems, [ChainProblem::InUse { chain: "b".into(), flows: 3 }]);
    assert_eq!(problems[0].to_string(), "chain \"b\" is used by 3 flows: end them or keep it");
    assert_eq!(chains.chains().len(), 2);
    let next = chains.replace(&after, Some(&network), &BTreeMap::from([("a".into(), 1)])).unwrap();
    assert_eq!((next.chains().len(), next.chains()[0].sequence[0]), (1, BoxKind(1)));
    assert!(!next.boxes()[1].up && next.boxes()[0].up, "a box that has failed is not mended by a reload");
    after.boxes[0].bits_per_s = 0;
    let both = chains.replace(&after, Some(&network), &in_use).unwrap_err();
    assert_eq!(both.iter().map(ChainProblem::reason).collect::<Vec<_>>(), ["no-capacity", "in-use"]);
    assert_eq!(chains.find_box("fw1").unwrap_err().to_string(), "there is no middlebox \"fw1\"; \"fw-1\" is");
}

#[test]
fn a_box_that_only_its_declaration_called_down_comes_back_with_the_next_one() {
    let network = testbed();
    let up = declared(vec![]);
    let mut down = up.clone();
    down.boxes[0].up = false;
    let next = |chains: &Chains, document| chains.replace(document, Some(&network), &BTreeMap::new()).unwrap();
    let is_up = |chains: &Chains| chains.boxes()[0].up;
    let fed = |chains: &Chains, up| {
        let mut chains = chains.clone();
        chains.set_box(BoxIdx(0), Some(up), None);
        chains
    };
    let called_down = next(&Chains::new(&up, Some(&network)).unwrap(), &down);
    assert!(!is_up(&called_down) && is_up(&next(&called_down, &up)));
    assert!(is_up(&fed(&called_down, true)), "the later word holds");
    assert!(is_up(&next(&fed(&called_down, true), &down)), "to declare the same again says nothing new");
    assert!(!is_up(&next(&fed(&Chains::new(&up, Some(&network)).unwrap(), true), &down)), "and the one after it");
    assert!(!is_up(&next(&fed(&called_down, false), &up)), "a feed calls it down as well");
    assert!(is_up(&next(&fed(&fed(&called_down, false), true), &up)));
}

#[test]
fn what_a_feed_said_a_box_carries_holds_until_it_is_declared_otherwise() {
    let network = testbed();
    let document = declared(vec![]);
    let mut chains = Chains::new(&document, Some(&network)).unwrap();
    chains.set_box(BoxIdx(0), None, Some(BitsPerSec(7)));
    let mut next = document.clone();
    next.chains.push(chain("a", &["FW"]));
    let kept = chains.replace(&next, Some(&network), &BTreeMap::new()).unwrap();
    assert_eq!((kept.boxes()[0].capacity, kept.boxes()[1].capacity), (BitsPerSec(7), BitsPerSec(1_000)));
    next.boxes[0].bits_per_s = 900;
    let other = kept.replace(&next, Some(&network), &BTreeMap::new()).unwrap();
    assert_eq!(other.boxes()[0].capacity, BitsPerSec(900));
}

#[test]
fn documents_read_back_as_they_were_written() {
    let mut narrow = chain("narrow", &["FW"]);
    (narrow.ports, narrow.direction, narrow.when_broken) = (Some((1, 2)), Direction::Out, WhenBroken::Open);
    let document = declared(vec![narrow]);
    assert_eq!(toml::from_str::<ChainsDocument>(&toml::to_string(&document).unwrap()).unwrap(), document);
    assert!(
        toml::from_str::<ChainsDocument>(
            "[[boxes]]\nname = \"x\"\ntype = \"FW\"\nat = \"s\"\nbits_per_s = 1\ncolour = 2"
        )
        .is_err()
    );
}

#[test]
fn chains_that_can_not_be_met_are_told_with_their_cut() {
    let mut network = testbed();
    let document = declared(vec![chain("secure", &["FW", "IPS"])]);
    let mut chains = Chains::new(&document, Some(&network)).unwrap();
    let mut loads = BoxLoads::new(&chains);
    assert_eq!(unmet(&chains, &network, &loads), []);
    network.set_link(network.link("edge-04--core-1").unwrap(), Some(false), None);
    assert_eq!(unmet(&chains, &network, &loads), [], "the other core serves");
    network.set_switch(network.vertex("core-2").unwrap(), false);
    let told = unmet(&chains, &network, &loads);
    assert_eq!(told.len(), 1);
    assert_eq!((&*told[0].name, &*told[0].kind, told[0].hosts, &*told[0].example), ("secure", "FW", 2, "host-0007"));
    assert_eq!(told[0].why, Why::Cut(vec!["core-2".into(), "edge-04--core-1".into()]));
    chains.set_box(BoxIdx(0), Some(false), None);
    let told = unmet(&chains, &network, &loads);
    assert_eq!((told.len(), told[0].hosts), (2, 6));
    assert_eq!(told[0].why, Why::Down(vec!["fw-1".into(), "fw-2".into()]));
    chains.set_box(BoxIdx(0), Some(true), None);
    loads.add(BoxIdx(2), BitsPerSec(1_000));
    assert_eq!(unmet(&chains, &network, &loads)[0].why, Why::Full(vec!["ips-1".into()]));
}

#[test]
fn a_route_turns_at_its_boxes_and_a_flow_within_a_host_leaves_it_for_them() {
    let network = testbed();
    let chains = Chains::new(&declared(vec![chain("secure", &["IPS", "FW"])]), Some(&network)).unwrap();
    let table = table(&network, &chains, 10);
    let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
    let [a, b] = ["host-0003", "host-0007"].map(|name| network.vertex(name).unwrap());
    let best = |from, to| {
        let sequence = &chains.chain(ChainIdx(0)).sequence;
        waypoint_routes(&ways, (from, to), sequence, BitsPerSec(1), &BoxLoads::new(&chains), 1).pop().unwrap()
    };
    let route = best(a, b);
    assert_eq!((route.hops(), &route.stops[..]), (6, &[3, 4][..]), "edge-02, core, edge-01, core, edge-04");
    assert_eq!(route.segments().map(<[_]>::len).collect::<Vec<_>>(), [3, 1, 2]);
    assert_eq!(best(a, a).hops(), 6);
    let stays = waypoint_routes(&ways, (a, a), &[], BitsPerSec(1), &BoxLoads::new(&chains), 1);
    assert_eq!((stays.len(), stays[0].hops()), (1, 0));
    assert!(is_route(&ways, (a, a), &[], &stays[0]) && !is_route(&ways, (a, b), &[], &stays[0]));
}

#[test]
fn within_a_host_traffic_of_an_open_chain_stays_on_it_when_no_box_is_left() {
    let (network, mut open) = (testbed(), chain("secure", &["IPS", "FW"]));
    open.when_broken = WhenBroken::Open;
    let mut chains = Chains::new(&declared(vec![open]), Some(&network)).unwrap();
    let table = table(&network, &chains, 10);
    let host = network.vertex("host-0003").unwrap();
    let flow = ChainFlow { from: host, to: host, chain: ChainIdx(0), rate: BitsPerSec(1) };
    let mut routes = ChainRoutes::new(&chains);
    let passed = |routes: &ChainRoutes| routes.route(1).map(|way| (way.boxes.len(), way.hops()));
    let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
    routes.insert(&ways, 1, flow);
    assert_eq!(passed(&routes), Some((2, 6)));
    for (down, then) in [(2, Some((1, 4))), (0, Some((1, 4))), (1, Some((0, 0)))] {
        chains.set_box(BoxIdx(down), Some(false), None);
        let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
        routes.on_change(&ways, &[], &[BoxIdx(down)]);
        assert_eq!(passed(&routes), then, "without box {down}");
    }
    assert!(routes.lacking().contains(&1), "it goes through boxes again when they are back");
    chains.set_box(BoxIdx(1), Some(true), None);
    let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
    assert_eq!(routes.on_change(&ways, &[], &[BoxIdx(1)]).changed, [1]);
    assert_eq!(passed(&routes), Some((1, 4)));
}

#[test]
fn figure_6_puts_firewalls_on_top_and_the_others_below_on_all_four_networks() {
    let pods = TreeSpec { racks: 4, racks_per_pod: Some(2), ..TreeSpec::default() }.with_edge_oversubscription(4.0);
    let networks = [
        (build::tree(&pods).unwrap(), [1, 2, 1]),
        (build::tree(&TreeSpec::default()).unwrap(), [2, 2, 2]),
        (build::fat_tree(&FatTreeSpec::default()).unwrap(), [4, 4, 4]),
        (
            build::vl2(&Vl2Spec { aggregation_ports: 4, intermediate_ports: 4, ..Vl2Spec::default() }).unwrap(),
            [2, 2, 2],
        ),
        (build::bcube(&BCubeSpec::default()).unwrap(), [2, 4, 2]),
    ];
    for (built, counts) in networks {
        let boxes = sample::figure6(&built.network, BitsPerSec(5));
        let count = |kind: &str| boxes.iter().filter(|entry| entry.kind == kind).count();
        assert_eq!(sample::TYPES.map(count), counts);
        let document = ChainsDocument { boxes, chains: vec![chain("all", &sample::TYPES)], ..Default::default() };
        let chains = Chains::new(&document, Some(&built.network)).unwrap();
        assert_eq!(unmet(&chains, &built.network, &BoxLoads::new(&chains)), []);
    }
    let drawn = sample::sequences(300, 7);
    assert_eq!(drawn, sample::sequences(300, 7));
    for len in 1..=3 {
        assert!((80..120).contains(&drawn.iter().filter(|sequence| sequence.len() == len).count()));
    }
}

/// Boxes of two types on random switches, and one chain for each order and part of them.
fn declared_on(network: &Network, places: &[(usize, bool, i64)]) -> Chains {
    let switches: Vec<_> =
        network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(_, v)| v.name.clone()).collect();
    let entry = |(nth, &(place, firewall, capacity)): (usize, &(usize, bool, i64))| {
        put(&format!("b{nth}"), if firewall { "FW" } else { "IPS" }, &switches[place % switches.len()], capacity)
    };
    let boxes = places.iter().enumerate().map(entry).collect();
    let chains = [("f", &["FW"][..]), ("i", &["IPS"]), ("fi", &["FW", "IPS"]), ("if", &["IPS", "FW"])];
    let mut priority = 0;
    let mut entry = |(name, sequence): (&str, &[&str])| {
        priority += 1;
        let when_broken = if name == "if" { WhenBroken::Open } else { WhenBroken::Closed };
        ChainEntry { priority, when_broken, ..chain(name, sequence) }
    };
    let chains = chains.map(&mut entry).into();
    Chains::new(&ChainsDocument { boxes, chains, ..Default::default() }, None).unwrap().follow(network)
}

fn places() -> impl Strategy<Value = Vec<(usize, bool, i64)>> {
    let more = prop::collection::vec((0_usize..10, any::<bool>(), 1_i64..6), 0..4);
    more.prop_map(|mut more| {
        more.extend([(3, true, 4), (5, false, 4)]);
        more
    })
}

/// How many loopless paths of each length lead from one switch to another, by walking all of them.
fn lengths(network: &Network, from: VertexIdx, to: VertexIdx) -> BTreeMap<usize, usize> {
    fn walk(network: &Network, to: VertexIdx, passed: &mut Vec<VertexIdx>, counts: &mut BTreeMap<usize, usize>) {
        let here = passed[passed.len() - 1];
        if here == to {
            *counts.entry(passed.len() - 1).or_default() += 1;
            return;
        }
        for (_, far) in network.usable_hops(here).collect::<Vec<_>>() {
            if !network.vertex_at(far).is_host() && !passed.contains(&far) {
                passed.push(far);
                walk(network, to, passed, counts);
                passed.pop();
            }
        }
    }
    let mut counts = BTreeMap::new();
    if network.switch_up(from) && network.switch_up(to) {
        walk(network, to, &mut vec![from], &mut counts);
    }
    counts
}

/// Hops of the k best routes: all choices of boxes, lengths of all paths folded into each other.
fn enumerated(
    ways: &WaypointInputs<'_>,
    ends: (VertexIdx, VertexIdx),
    sequence: &[BoxKind],
    rate: u64,
    k: usize,
) -> Vec<usize> {
    let network = ways.network;
    let (Some(start), Some(end)) = (network.attachment(ends.0), network.attachment(ends.1)) else { return Vec::new() };
    let mut counts: BTreeMap<(VertexIdx, usize), usize> = BTreeMap::from([((start, 2), 1)]);
    let fits =
        |index: &&BoxIdx| ways.chains.is_usable(network, **index) && ways.chains.boxes()[index.at()].capacity.0 >= rate;
    let layers = sequence.iter().map(|&kind| {
        ways.chains.of_kind(kind).iter().filter(fits).filter_map(|index| ways.chains.boxes()[index.at()].at).collect()
    });
    for stops in layers.chain([vec![end]]).collect::<Vec<Vec<VertexIdx>>>() {
        let mut next = BTreeMap::new();
        for (&(from, hops), count) in &counts {
            for &to in &stops {
                for (length, paths) in lengths(network, from, to) {
                    *next.entry((to, hops + length)).or_default() += count * paths;
                }
            }
        }
        counts = next;
    }
    let mut all: Vec<usize> = counts.into_iter().flat_map(|((_, hops), count)| vec![hops; count.min(k)]).collect();
    all.sort_unstable();
    all.truncate(k);
    all
}

/// Everything that a route has to be.
fn assert_sound(ways: &WaypointInputs<'_>, ends: (VertexIdx, VertexIdx), sequence: &[BoxKind], route: &WaypointRoute) {
    let (network, chains) = (ways.network, ways.chains);
    let kinds: Vec<BoxKind> = route.boxes.iter().map(|index| chains.boxes()[index.at()].kind).collect();
    assert_eq!(kinds, sequence);
    assert!(route.boxes.iter().all(|&index| chains.is_usable(network, index)));
    let mut here = ends.0;
    let mut segment = vec![here];
    let step = |link: &DirectedLinkIdx| {
        let known = network.link_at(LinkIdx(link.0 / 2));
        assert!(network.is_usable(LinkIdx(link.0 / 2)));
        if link.0.is_multiple_of(2) { (known.a, known.b) } else { (known.b, known.a) }
    };
    for (at, link) in route.links.iter().enumerate() {
        for (stop, index) in route.stops.iter().zip(&route.boxes).filter(|(stop, _)| usize::from(**stop) == at) {
            assert_eq!(Some(here), chains.boxes()[index.at()].at, "stop {stop}");
            segment = vec![here];
        }
        let (tail, head) = step(link);
        assert_eq!(tail, here);
        let turns = route.boxes.is_empty() || head != ends.1;
        assert!(!turns || !segment.contains(&head), "a loop between boxes");
        segment.push(head);
        here = head;
    }
    assert_eq!(here, ends.1);
    assert_eq!(route.segments().map(<[_]>::len).sum::<usize>(), route.hops());
}

fn hosts(network: &Network) -> Vec<VertexIdx> {
    network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(index, _)| index).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hops_are_those_of_shortest_paths(network in random_network()) {
        let switches: Vec<_> =
            network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(index, _)| index).collect();
        let twice: Vec<_> = switches.iter().chain(&switches).copied().collect();
        let table = HopTable::new(&network, &twice, &switches);
        for (row, &from) in twice.iter().enumerate() {
            let counts = super::super::testing::hop_counts(&network, from);
            let expected = switches.iter().map(|to| counts[to.at()].map_or(HopTable::NONE, |hops| hops as u16));
            prop_assert_eq!(table.row(row).to_vec(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_k_best_routes_are_those_of_an_enumeration(network in random_network(), places in places(), rate in 1_u64..5) {
        let chains = declared_on(&network, &places);
        let table = table(&network, &chains, 12);
        let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
        let hosts = hosts(&network);
        for (at, chain) in chains.chains().iter().enumerate() {
            let ends = (hosts[at % hosts.len()], hosts[(at * 3 + 1) % hosts.len()]);
            let found = waypoint_routes(&ways, ends, &chain.sequence, BitsPerSec(rate), &BoxLoads::new(&chains), 12);
            for route in &found {
                assert_sound(&ways, ends, &chain.sequence, route);
                let through = route_through(&ways, ends, &route.boxes).unwrap();
                assert_sound(&ways, ends, &chain.sequence, &through);
                prop_assert!(through.boxes == route.boxes && through.hops() <= route.hops());
            }
            let hops: Vec<usize> = found.iter().map(WaypointRoute::hops).collect();
            prop_assert_eq!(hops, enumerated(&ways, ends, &chain.sequence, rate, 12));
            let distinct: BTreeSet<_> = found.iter().map(|route| (&route.boxes, &route.links, &route.stops)).collect();
            prop_assert_eq!(distinct.len(), found.len());
            // A table that knows nothing of boxes gives shortest ways all the same.
            let plain = PathTable::build(&network, &PathTableOptions::default());
            let ways = WaypointInputs { table: &plain, ..ways };
            let best = waypoint_routes(&ways, ends, &chain.sequence, BitsPerSec(rate), &BoxLoads::new(&chains), 1);
            prop_assert_eq!(best.first().map(WaypointRoute::hops), found.first().map(WaypointRoute::hops));
        }
    }

    /// No flow ever has a route that breaks its chain, none is overloaded, and none waits that could go.
    #[test]
    fn flows_keep_their_chains_through_failing_links_switches_and_boxes(
        network in random_network(),
        places in places(),
        flows in prop::collection::vec((0_usize..8, 0_usize..8, 0_u32..4, 1_u64..4), 1..12),
        changes in prop::collection::vec((0_u8..4, any::<prop::sample::Index>(), any::<bool>()), 1..14),
    ) {
        let mut network = network;
        let mut chains = declared_on(&network, &places);
        let mut table = table(&network, &chains, 4);
        let mut index = ChainRoutes::new(&chains);
        let hosts = hosts(&network);
        for (number, &(from, to, chain, rate)) in (0..).zip(&flows) {
            let (from, to) = (hosts[from % hosts.len()], hosts[to % hosts.len()]);
            let flow = ChainFlow { from, to, chain: ChainIdx(chain), rate: BitsPerSec(rate) };
            index.insert(&WaypointInputs { network: &network, table: &table, chains: &chains, work: None }, number, flow);
        }
        for (what, which, up) in changes {
            let before = index.clone();
            let (mut links, mut boxes) = (Vec::new(), Vec::new());
            match what {
                0 | 1 => {
                    let link = LinkIdx::new(which.index(network.link_rows().max(1)));
                    network.set_link(link, Some(up), None);
                    links.push(link);
                }
                2 => {
                    let switches: Vec<_> =
                        network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(index, _)| index).collect();
                    let switch = switches[which.index(switches.len())];
                    network.set_switch(switch, up);
                    links.extend(network.links_of(switch).map(|(index, _)| index));
                    let here = (0..chains.boxes().len()).filter(|&at| chains.boxes()[at].at == Some(switch));
                    boxes.extend(here.map(BoxIdx::new));
                }
                _ => {
                    let index = BoxIdx::new(which.index(chains.boxes().len()));
                    chains.set_box(index, Some(up), Some(BitsPerSec(which.index(6) as u64 + 1)));
                    boxes.push(index);
                }
            }
            table.update(&network);
            let ways = WaypointInputs { network: &network, table: &table, chains: &chains, work: None };
            let told = index.on_change(&ways, &links, &boxes);
            check_index(&ways, &index)?;
            let moved: Vec<u64> = index
                .iter()
                .filter(|(number, _, route)| before.route(*number) != *route)
                .map(|(number, ..)| number)
                .collect();
            prop_assert_eq!(&told.changed, &moved);
        }
        for number in 0..flows.len() as u64 {
            prop_assert!(index.remove(number) && !index.remove(number));
        }
        prop_assert_eq!(index.loads(), &BoxLoads::new(&chains));
    }
}

fn check_index(ways: &WaypointInputs<'_>, index: &ChainRoutes) -> Result<(), TestCaseError> {
    let mut loads = BoxLoads::new(ways.chains);
    for (number, flow, route) in index.iter() {
        let chain = ways.chains.chain(flow.chain);
        let ends = (flow.from, flow.to);
        if let Some(route) = route {
            let kinds: Sequence = route.boxes.iter().map(|at| ways.chains.boxes()[at.at()].kind).collect();
            assert_sound(ways, ends, &kinds, route);
            prop_assert!(kinds == chain.sequence || chain.when_broken == WhenBroken::Open);
            route.boxes.iter().for_each(|&at| loads.add(at, flow.rate));
        }
        if route.is_none_or(|route| route.boxes.len() < chain.sequence.len()) {
            let mut others = index.clone();
            others.remove(number);
            let way = waypoint_routes(ways, ends, &chain.sequence, flow.rate, others.loads(), 1);
            prop_assert!(way.is_empty(), "flow {} waits and could go", number);
        }
    }
    prop_assert_eq!(&loads, index.loads());
    for (at, known) in ways.chains.boxes().iter().enumerate() {
        prop_assert!(loads.of(BoxIdx::new(at)) <= known.capacity);
    }
    Ok(())
}
