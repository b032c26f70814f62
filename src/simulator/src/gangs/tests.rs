//! The simulator against times worked out by hand, and its invariants over random clusters and applications.

use super::*;
use hintd_model::cluster::EdgePattern;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{BitsPerSec, GroupIdx};
use hintd_policy::problem::InputBlock;
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, PlaceProblem, Placement, registry};
use proptest::prelude::*;

const UNIT: Resource = Resource::new(1024, 1);

/// Racks of two nodes under one core; hosts of 1 Gbit/s, uplinks of 400 Mbit/s, disks of 100 MB/s.
fn testbed(racks: usize, slots: u64) -> Sample {
    let spec = TreeSpec { racks, cores: 1, uplink_bits_per_s: BitsPerSec(400_000_000), ..TreeSpec::default() };
    cluster(&tree(&spec).unwrap(), UNIT.times(slots), Bytes(100_000_000))
}

fn edge(from: usize, to: usize, bytes: u64) -> EdgeProblem {
    EdgeProblem {
        from: GroupIdx::new(from),
        to: GroupIdx::new(to),
        pattern: EdgePattern::AllToAll,
        bytes: Bytes(bytes),
    }
}

fn group(name: &str, count: u32) -> GangGroup {
    GangGroup { name: name.into(), count, size: UNIT, input: Arc::default() }
}

fn app(submit_s: f64, groups: Vec<GangGroup>, phases: Vec<Phase>) -> GangApp {
    let edges = phases.iter().find_map(|phase| match phase {
        Phase::Exchange(edges) => Some(edges.clone()),
        Phase::Read | Phase::Compute(_) => None,
    });
    GangApp { submit_s, master: None, groups, edges: edges.unwrap_or_default(), phases }
}

/// Puts task i of all groups, counted through, on the i-th node of a list.
struct Listed(Vec<u32>);

impl Place for Listed {
    fn place(&self, problem: &PlaceProblem<'_>, _: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut nodes = self.0.iter().copied().map(NodeIdx);
        let mut groups = Vec::new();
        for group in &problem.groups {
            let mut shares: Vec<hintd_policy::Share> = Vec::new();
            for node in nodes.by_ref().take(group.count as usize) {
                if group.candidates.binary_search(&node).is_err() {
                    continue;
                }
                match shares.iter_mut().find(|share| share.node == node) {
                    Some(share) => share.count += 1,
                    None => shares.push(hintd_policy::Share { node, count: 1 }),
                }
            }
            groups.push(shares);
        }
        let ended = hintd_policy::Ended::Complete;
        Ok(Placement { groups, routes: vec![], objective: 0.0, parts: vec![], ended, gap: None, steps: 0 })
    }
}

fn run(sample: &Sample, placer: &dyn Place, settings: GangSettings, apps: &[GangApp]) -> GangReport {
    simulate(&GangRun { cluster: &sample.snapshot, placer, settings }, apps).unwrap()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-9 * wanted.max(1.0), "{found} instead of {wanted}");
}

#[test]
fn an_application_alone_takes_what_its_bytes_and_links_say() {
    let sample = testbed(2, 4);
    // 500 MB from rack 1 to rack 2: 4 Gbit over an uplink of 400 Mbit/s.
    let apps = [app(
        3.0,
        vec![group("a", 1), group("b", 1)],
        vec![Phase::Compute(2.0), Phase::Exchange(vec![edge(0, 1, 500_000_000)]), Phase::Compute(1.5)],
    )];
    let report = run(&sample, &Listed(vec![0, 2]), GangSettings::default(), &apps);
    near(report.apps[0].end_s, 3.0 + 2.0 + 10.0 + 1.5);
    assert_eq!(report.apps[0].phase_end_s.len(), 3);
    report.apps[0].phase_end_s.iter().zip([5.0, 15.0, 16.5]).for_each(|(&found, wanted)| near(found, wanted));
    assert_eq!((report.apps[0].cross_rack.0, report.apps[0].nodes), (500_000_000, 2));
    // In one rack the hosts' links of 1 Gbit/s limit.
    let report = run(&sample, &Listed(vec![0, 1]), GangSettings::default(), &apps);
    near(report.apps[0].run_s(), 2.0 + 4.0 + 1.5);
    // On one node nothing does, or what the settings say.
    let report = run(&sample, &Listed(vec![0, 0]), GangSettings::default(), &apps);
    near(report.apps[0].run_s(), 3.5);
    let slow = GangSettings { local_bits_per_s: 2e9, ..GangSettings::default() };
    near(run(&sample, &Listed(vec![0, 0]), slow, &apps).apps[0].run_s(), 5.5);
}

#[test]
fn a_delayed_fetch_takes_its_bytes_times_links_five_at_a_time_and_shares_nothing() {
    let sample = testbed(2, 4);
    let apps = [app(0.0, vec![group("a", 2), group("b", 1)], vec![Phase::Exchange(vec![edge(0, 1, 500_000_000)])])];
    let settings = GangSettings { delay_bits_per_s: Some(1e9), ..GangSettings::default() };
    // One sender beside the receiver; the other, of 2 Gbit, in the other rack, four links away.
    let report = run(&sample, &Listed(vec![0, 2, 2]), settings, &apps);
    near(report.apps[0].end_s, 2.0 * 4.0 / 5.0);
    assert_eq!((report.apps[0].local.0, report.apps[0].cross_rack.0), (250_000_000, 250_000_000));
}

#[test]
fn an_all_to_all_exchange_within_one_group_takes_the_closed_form() {
    let sample = testbed(4, 4);
    // One task on each of 8 nodes: a rack's uplink carries 2 · 6 of 56 pairs, up and down alike.
    let bytes = 560_000_000;
    let apps = [app(0.0, vec![group("w", 8)], vec![Phase::Exchange(vec![edge(0, 0, bytes)]); 3])];
    let report = run(&sample, &Listed((0..8).collect()), GangSettings::default(), &apps);
    near(report.apps[0].end_s, 3.0 * (12.0 / 56.0 * bytes as f64 * 8.0 / 4e8));
    assert_eq!(report.apps[0].cross_rack.0, 3 * bytes / 56 * 48);
    assert_eq!(report.apps[0].remote.0, 3 * bytes);
}

#[test]
fn two_applications_share_a_link_until_the_shorter_is_through() {
    let sample = testbed(2, 4);
    let send = |submit_s, bytes| {
        app(submit_s, vec![group("a", 1), group("b", 1)], vec![Phase::Exchange(vec![edge(0, 1, bytes)])])
    };
    // 400 Mbit/s: the first alone for 2 s (100 MB), both at 25 MB/s; the second's 50 MB end at 4 s, then alone again.
    let apps = [send(0.0, 200_000_000), send(2.0, 50_000_000)];
    let report = run(&sample, &Listed(vec![0, 2]), GangSettings::default(), &apps);
    near(report.apps[1].end_s, 4.0);
    near(report.apps[0].end_s, 5.0);
}

#[test]
fn readers_of_a_node_share_its_disk_and_the_network_slows_those_from_afar() {
    let sample = testbed(2, 4);
    let block = |nodes: &[u32]| InputBlock {
        bytes: Bytes(100_000_000),
        nodes: nodes.iter().map(|&node| NodeIdx(node)).collect(),
    };
    let reads = |blocks: Vec<InputBlock>| {
        let readers = GangGroup { input: Arc::new(InputBlocks::new(blocks)), ..group("r", 2) };
        [app(0.0, vec![readers], vec![Phase::Read])]
    };
    // Both blocks lie on node 0, both containers too: 200 MB off one disk.
    let both = reads(vec![block(&[0]), block(&[0])]);
    let report = run(&sample, &Listed(vec![0, 0]), GangSettings::default(), &both);
    near(report.apps[0].end_s, 2.0);
    // One reads it from the other rack: 50 MB/s of the uplink and of the disk's half.
    let report = run(&sample, &Listed(vec![0, 2]), GangSettings::default(), &both);
    near(report.apps[0].end_s, 2.0);
    assert_eq!((report.apps[0].local_read.0, report.apps[0].cross_rack_read.0), (100_000_000, 100_000_000));
    // Four blocks, two on each side: each container reads its own, at the disk's 100 MB/s.
    let apart = reads(vec![block(&[0]), block(&[2]), block(&[0]), block(&[2])]);
    let report = run(&sample, &Listed(vec![0, 2]), GangSettings::default(), &apart);
    near(report.apps[0].end_s, 2.0);
    assert_eq!(report.apps[0].remote_read.0, 0);
    // Both on node 2: the blocks of node 0 come over the uplink, 200 MB at 50 MB/s, once the near ones are read.
    let report = run(&sample, &Listed(vec![2, 2]), GangSettings::default(), &apart);
    near(report.apps[0].end_s, 2.0 + 4.0);
}

#[test]
fn who_finds_no_room_waits_for_it_in_turn() {
    let sample = testbed(1, 1);
    let work = |submit_s, count| app(submit_s, vec![group("w", count)], vec![Phase::Compute(5.0)]);
    let apps = [work(0.0, 1), work(1.0, 2), work(2.0, 1), work(3.0, 9)];
    let placer = registry::with_defaults("spread").unwrap();
    let report = run(&sample, placer.as_place().unwrap(), GangSettings::default(), &apps);
    let ends: Vec<f64> = report.apps.iter().map(|app| app.end_s).collect();
    assert_eq!(ends, [5.0, 10.0, 15.0, 3.0], "the third came before the second's turn, and waits all the same");
    assert_eq!(report.apps.iter().map(|app| app.never_fits).collect::<Vec<_>>(), [false, false, false, true]);
    near(report.apps[1].completion_s(), 9.0);
    near(report.apps[1].run_s(), 5.0);
}

#[test]
fn the_master_takes_room_and_stays_where_yarn_put_it() {
    let sample = testbed(1, 2);
    let mut first = app(0.0, vec![group("w", 3)], vec![Phase::Compute(5.0)]);
    first.master = Some(UNIT);
    let placer = registry::with_defaults("container").unwrap();
    let report = run(&sample, placer.as_place().unwrap(), GangSettings::default(), &[first.clone(), first.clone()]);
    assert_eq!(report.apps.iter().map(|app| app.end_s).collect::<Vec<_>>(), [5.0, 10.0]);
    first.groups[0].count = 4;
    let report = run(&sample, placer.as_place().unwrap(), GangSettings::default(), &[first]);
    assert!(report.apps[0].never_fits, "three containers' room is left beside the master");
}

#[test]
fn what_can_not_be_run_is_refused() {
    let sample = testbed(1, 2);
    let placer = Listed(vec![0, 1]);
    let refused = |app: GangApp| {
        let run = GangRun { cluster: &sample.snapshot, placer: &placer, settings: GangSettings::default() };
        simulate(&run, &[app]).unwrap_err().to_string()
    };
    assert_eq!(refused(app(-1.0, vec![], vec![])), "application 0: -1 s is no time");
    assert_eq!(refused(app(0.0, vec![], vec![Phase::Compute(f64::NAN)])), "application 0: NaN s is no time");
    let lost = InputBlock { bytes: Bytes(1), nodes: [].into_iter().collect() };
    let readers = GangGroup { input: Arc::new(InputBlocks::new(vec![lost])), ..group("r", 1) };
    let message = refused(app(0.0, vec![readers], vec![Phase::Read]));
    assert_eq!(message, "application 0: block 0 of group 0 has no replica");
}

#[derive(Debug, Clone)]
struct Drawn {
    submit_s: f64,
    counts: (u32, u32),
    bytes: (u64, u64),
    compute_s: f64,
    blocks: usize,
    master: bool,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let counts = (1_u32..5, 1_u32..4);
    let bytes = (0_u64..300_000_000, 0_u64..300_000_000);
    let rest = (0.0_f64..20.0, 0.0_f64..5.0, 0_usize..8, any::<bool>());
    (counts, bytes, rest).prop_map(|(counts, bytes, (submit_s, compute_s, blocks, master))| Drawn {
        submit_s,
        counts,
        bytes,
        compute_s,
        blocks,
        master,
    })
}

fn made(sample: &Sample, drawn: &Drawn, seed: u64) -> GangApp {
    let (a, b) = drawn.counts;
    let edges = vec![edge(0, 1, drawn.bytes.0), edge(0, 0, drawn.bytes.1)];
    let phases = vec![
        Phase::Read,
        Phase::Exchange(edges.clone()),
        Phase::Compute(drawn.compute_s),
        Phase::Exchange(edges[..1].to_vec()),
    ];
    let readers = GangGroup { input: sample.input(drawn.blocks, Bytes(64 << 20), seed), ..group("a", a) };
    let master = drawn.master.then_some(UNIT);
    GangApp { submit_s: drawn.submit_s, master, groups: vec![readers, group("b", b)], edges, phases }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_placer_keeps_the_invariants_and_the_same_run_is_the_same(
        drawn in prop::collection::vec(drawn(), 1..7),
        slots in 2_u64..6,
        racks in 2_usize..5,
        seed in 0_u64..1_000,
    ) {
        let sample = testbed(racks, slots);
        let apps: Vec<GangApp> = (0..).zip(&drawn).map(|(at, drawn)| made(&sample, drawn, seed + at)).collect();
        for name in ["random", "spread", "capacity", "container", "cross_layer"] {
            let policy = registry::with_defaults(name).unwrap();
            let settings = GangSettings { seed, local_bits_per_s: 4e9, ..GangSettings::default() };
            let gang = GangRun { cluster: &sample.snapshot, placer: policy.as_place().unwrap(), settings };
            // Capacity, routes and bytes are looked after inside: an error is a rule broken.
            let report = simulate(&gang, &apps).unwrap();
            prop_assert_eq!(&simulate(&gang, &apps).unwrap(), &report);
            for (app, told) in apps.iter().zip(&report.apps).filter(|(_, told)| !told.never_fits) {
                // No one is faster than its own links alone would allow.
                let bits = |bytes: Bytes| bytes.as_f64() * 8.0;
                let nodes = f64::from(told.nodes);
                let least = bits(told.remote) / (nodes * 1e9) + app.phases.iter().map(|phase| match phase {
                    Phase::Compute(seconds) => *seconds,
                    Phase::Read | Phase::Exchange(_) => 0.0,
                }).sum::<f64>();
                prop_assert!(told.run_s() >= least * (1.0 - 1e-9), "{} < {}", told.run_s(), least);
                prop_assert!(told.start_s >= app.submit_s);
                prop_assert_eq!(told.remote.0 + told.local.0 + skipped(app), app.exchanged().0);
            }
        }
    }
}

/// Bytes of edges within a group of one: nobody is there to send them to.
fn skipped(app: &GangApp) -> u64 {
    if app.groups[0].count == 1 { app.edges[1].bytes.0 } else { 0 }
}
