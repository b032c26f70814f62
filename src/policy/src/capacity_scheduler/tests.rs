//! Rules of the CapacityScheduler, one by one; `tests/scheduler.rs` holds the whole against YARN's own classes.

use super::*;

const MAPS: SchedulerKey = SchedulerKey { priority: 20, allocation_request_id: -1 };
const REDUCES: SchedulerKey = SchedulerKey { priority: 10, allocation_request_id: -1 };
const GB: Size = Size::new(1024, 1);

/// Nodes of 4 GB, two in a rack.
fn cluster(nodes: u32, settings: SchedulerSettings, queue: QueueSettings) -> CapacityScheduler {
    let mut yarn = CapacityScheduler::single_queue(settings, queue).unwrap();
    for node in 0..nodes {
        let host = format!("h{node}");
        yarn.add_node(NodeIdx(node), RackIdx(node / 2), (&host, 8041), Size::new(4096, 4));
    }
    yarn
}

fn plain(nodes: u32) -> CapacityScheduler {
    cluster(nodes, SchedulerSettings::default(), QueueSettings::new(""))
}

fn submit(yarn: &mut CapacityScheduler, user: &str) -> AppIdx {
    let (queue, user) = ("root.default".to_owned(), user.into());
    yarn.submit(Submission { queue, user, priority: 0, master: Size::ZERO }).unwrap()
}

fn row(key: SchedulerKey, place: Place, count: u32) -> AskRow {
    AskRow { key, place, size: GB, count, relax: true }
}

fn anywhere(count: u32) -> [AskRow; 1] {
    [row(MAPS, Place::Any, count)]
}

/// An ask for one host, its rack and `*`.
fn at_host(node: u32, count: u32) -> [AskRow; 3] {
    let (host, rack) = (Place::Host(NodeIdx(node)), Place::Rack(RackIdx(node / 2)));
    [row(MAPS, host, count), row(MAPS, rack, count), row(MAPS, Place::Any, count)]
}

fn kinds(decided: &[Decision]) -> Vec<NodeType> {
    decided.iter().map(|decision| decision.kind).collect()
}

#[test]
fn a_heartbeat_gives_one_container_off_switch_and_as_many_local_ones_as_fit() {
    let mut yarn = plain(4);
    let app = submit(&mut yarn, "ann");
    yarn.ask(app, &anywhere(4));
    assert_eq!(kinds(&yarn.heartbeat(NodeIdx(0))), [NodeType::OffSwitch]);
    yarn.ask(app, &at_host(1, 8));
    assert_eq!(kinds(&yarn.heartbeat(NodeIdx(1))), [NodeType::NodeLocal; 4]);
    yarn.audit().unwrap();
}

#[test]
fn limits_of_a_heartbeat_are_those_of_the_configuration() {
    let limits = |multiple, most, off_switch| {
        let settings = SchedulerSettings {
            multiple_assignments: multiple,
            maximum_container_assignments: most,
            maximum_offswitch_assignments: off_switch,
            ..SchedulerSettings::default()
        };
        let mut yarn = cluster(2, settings, QueueSettings::new(""));
        let app = submit(&mut yarn, "ann");
        yarn.ask(app, &anywhere(9));
        yarn.heartbeat(NodeIdx(0)).len()
    };
    assert_eq!([limits(true, 100, 1), limits(true, 100, 3), limits(true, -1, 9)], [1, 3, 4]);
    assert_eq!([limits(false, 100, 9), limits(true, 2, 9)], [1, 2]);
}

#[test]
fn an_ask_waits_for_its_host_then_for_its_rack_then_goes_anywhere() {
    let settings =
        SchedulerSettings { node_locality_delay: 3, rack_locality_additional_delay: 2, ..SchedulerSettings::default() };
    let mut yarn = cluster(8, settings, QueueSettings::new(""));
    let app = submit(&mut yarn, "ann");
    yarn.ask(app, &at_host(0, 2));
    let passed = (0..9).take_while(|_| yarn.heartbeat(NodeIdx(1)).is_empty()).count();
    assert_eq!(passed, 3, "in the rack with the fourth offer");
    let passed = (0..9).take_while(|_| yarn.heartbeat(NodeIdx(7)).is_empty()).count();
    assert_eq!(passed, 4, "a rack-local container resets the count by default; the rest of its heartbeat is an offer");
}

#[test]
fn without_an_additional_delay_the_wait_grows_with_what_is_outstanding_and_the_places_asked_for() {
    let mut yarn = plain(8);
    let app = submit(&mut yarn, "ann");
    // min(8 nodes, 6 outstanding × 2 places ÷ 8 nodes) = 1.5
    yarn.ask(app, &at_host(0, 6));
    let passed = (0..9).take_while(|_| yarn.heartbeat(NodeIdx(7)).is_empty()).count();
    assert_eq!(passed, 1);
    assert_eq!(yarn.heartbeat(NodeIdx(6)).len(), 1, "an off-switch container does not reset the count");
}

#[test]
fn strict_asks_go_to_their_hosts_only() {
    let mut yarn = plain(4);
    let app = submit(&mut yarn, "ann");
    let mut rows = at_host(0, 1);
    rows[1].relax = false;
    rows[2].relax = false;
    yarn.ask(app, &rows);
    assert!((0..20).all(|_| yarn.heartbeat(NodeIdx(1)).is_empty() && yarn.heartbeat(NodeIdx(3)).is_empty()));
    assert_eq!(kinds(&yarn.heartbeat(NodeIdx(0))), [NodeType::NodeLocal]);
}

#[test]
fn where_any_does_not_relax_a_racks_row_is_never_served_and_rows_of_its_hosts_are_at_once() {
    let mut yarn = plain(4);
    let app = submit(&mut yarn, "ann");
    let rack = row(MAPS, Place::Rack(RackIdx(0)), 6);
    let any = AskRow { relax: false, ..row(MAPS, Place::Any, 6) };
    // Offers in the rack are taken back as those elsewhere are, so none counts towards `node-locality-delay`.
    yarn.ask(app, &[rack, any]);
    assert!((0..400).all(|beat| yarn.heartbeat(NodeIdx(beat % 4)).is_empty()));
    // Rows of all hosts for all that is outstanding: `*` still ends it.
    let host = |node| row(MAPS, Place::Host(NodeIdx(node)), 6);
    yarn.ask(app, &[host(0), host(1), rack, any]);
    assert_eq!(kinds(&yarn.heartbeat(NodeIdx(1))), [NodeType::NodeLocal; 4]);
    assert!(yarn.heartbeat(NodeIdx(2)).is_empty());
    assert_eq!(kinds(&yarn.heartbeat(NodeIdx(0))), [NodeType::NodeLocal; 2]);
    yarn.audit().unwrap();
}

#[test]
fn lower_priority_numbers_come_first_and_who_waits_for_locality_stops_its_application() {
    let mut yarn = plain(4);
    let app = submit(&mut yarn, "ann");
    yarn.ask(app, &anywhere(1));
    yarn.ask(app, &[row(REDUCES, Place::Any, 1)]);
    assert_eq!(yarn.heartbeat(NodeIdx(0))[0].key, REDUCES);
    let host = row(REDUCES, Place::Host(NodeIdx(0)), 4);
    let rack = row(REDUCES, Place::Rack(RackIdx(0)), 4);
    yarn.ask(app, &[host, rack, row(REDUCES, Place::Any, 4)]);
    assert!(yarn.heartbeat(NodeIdx(2)).is_empty(), "its maps may not overtake");
}

#[test]
fn applications_come_in_order_of_submission_or_of_use() {
    let order = |ordering| {
        let mut yarn = cluster(4, SchedulerSettings::default(), QueueSettings { ordering, ..QueueSettings::new("") });
        let (ann, bob) = (submit(&mut yarn, "ann"), submit(&mut yarn, "bob"));
        yarn.ask(ann, &anywhere(3));
        yarn.ask(bob, &anywhere(3));
        (0..4).map(|node| yarn.heartbeat(NodeIdx(node))[0].app.0).collect::<Vec<_>>()
    };
    assert_eq!(order(AppOrdering::Fifo), [0, 0, 0, 1]);
    assert_eq!(order(AppOrdering::Fair), [0, 1, 0, 1]);
}

#[test]
fn a_node_too_full_for_the_next_container_is_reserved_and_serves_nobody_else() {
    let mut yarn = plain(1);
    let (ann, bob) = (submit(&mut yarn, "ann"), submit(&mut yarn, "bob"));
    yarn.ask(ann, &at_host(0, 3));
    assert_eq!(yarn.heartbeat(NodeIdx(0)).len(), 3);
    // One core of memory is left beside the 3 GB in use: 2 GB do not fit.
    yarn.ask(bob, &[AskRow { size: Size::new(2048, 1), ..row(MAPS, Place::Any, 1) }]);
    yarn.ask(ann, &anywhere(0));
    let decided = yarn.heartbeat(NodeIdx(0));
    assert!(decided.is_empty(), "the cluster's 4 GB are the queue's limit: {decided:?}");
    yarn.release(ann, 1);
    assert_eq!(yarn.heartbeat(NodeIdx(0))[0].verdict, Verdict::Allocated);
    yarn.audit().unwrap();
}

#[test]
fn a_reservation_is_made_again_served_and_given_up() {
    let mut yarn = plain(2);
    let (ann, bob) = (submit(&mut yarn, "ann"), submit(&mut yarn, "bob"));
    yarn.ask(ann, &at_host(0, 3));
    yarn.heartbeat(NodeIdx(0));
    let two = |count| [AskRow { size: Size::new(2048, 1), ..row(MAPS, Place::Any, count) }];
    yarn.ask(bob, &two(1));
    let verdicts = |yarn: &mut CapacityScheduler| {
        yarn.heartbeat(NodeIdx(0)).iter().map(|decision| decision.verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&mut yarn), [Verdict::Reserved]);
    assert_eq!(yarn.reserved_on(NodeIdx(0)), Some(bob));
    assert_eq!(verdicts(&mut yarn), [Verdict::ReservedAgain]);
    yarn.release(ann, 2);
    assert_eq!(verdicts(&mut yarn), [Verdict::FromReservation]);
    yarn.ask(bob, &two(1));
    assert_eq!(verdicts(&mut yarn), [], "a full node is not offered");
    yarn.release(ann, 1);
    assert_eq!(verdicts(&mut yarn), [Verdict::Reserved]);
    yarn.ask(bob, &two(0));
    assert_eq!(verdicts(&mut yarn), [Verdict::GivenUp]);
    assert_eq!(yarn.used("root"), Some(Size::new(3072, 2)));
    yarn.audit().unwrap();
}

#[test]
fn applications_beyond_the_share_of_application_masters_wait() {
    let queue = QueueSettings { maximum_am_share: 0.25, ..QueueSettings::new("") };
    let mut yarn = cluster(2, SchedulerSettings::default(), queue);
    let mut apps = Vec::new();
    for user in ["ann", "bob", "cat"] {
        let (queue, user) = ("root.default".to_owned(), user.into());
        apps.push(yarn.submit(Submission { queue, user, priority: 0, master: GB }).unwrap());
    }
    assert_eq!(apps.iter().map(|&app| yarn.is_active(app)).collect::<Vec<_>>(), [true, true, false]);
    yarn.finish(apps[0]);
    assert!(yarn.is_active(apps[2]));
}

#[test]
fn what_is_lost_with_a_node_is_told_and_free() {
    let mut yarn = plain(2);
    let app = submit(&mut yarn, "ann");
    yarn.ask(app, &anywhere(2));
    yarn.heartbeat(NodeIdx(0));
    yarn.heartbeat(NodeIdx(1));
    assert_eq!(yarn.remove_node(NodeIdx(0)), [(app, 1)]);
    assert_eq!(yarn.used("root.default"), Some(GB));
    assert!(yarn.heartbeat(NodeIdx(0)).is_empty());
    yarn.finish(app);
    assert_eq!(yarn.used("root"), Some(Size::ZERO));
}

#[test]
fn queues_that_are_no_tree_are_refused() {
    let tree = |paths: &[&str]| {
        let queues = paths.iter().map(|path| QueueSettings::new(path)).collect();
        CapacityScheduler::new(SchedulerSettings::default(), queues).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(tree(&["root", "root.a.b"]), "queue root.a.b: comes before its parent");
    assert_eq!(tree(&["root", "root"]), "queue root: is there twice");
    assert_eq!(tree(&["default"]), "queue default: is no child of root");
    assert_eq!(tree(&[]), "queue root: there is none");
}
