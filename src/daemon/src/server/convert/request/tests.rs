//! Each field of a request, well-formed and not.

use super::*;
use hintd_client::wire::yarn;
use hintd_model::cluster::NamedResource;

fn resource(memory: i64, vcores: i32) -> yarn::ResourceProto {
    yarn::ResourceProto { memory: Some(memory), virtual_cores: Some(vcores), ..Default::default() }
}

fn row(priority: i32, name: &str, count: i32) -> yarn::ResourceRequestProto {
    yarn::ResourceRequestProto {
        priority: Some(yarn::PriorityProto { priority: Some(priority) }),
        resource_name: Some(name.to_owned()),
        capability: Some(resource(2048, 1)),
        num_containers: Some(count),
        ..Default::default()
    }
}

fn group(name: &str) -> v1::TaskGroup {
    v1::TaskGroup { name: name.to_owned(), count: 3, resource: Some(resource(2048, 1)), ..Default::default() }
}

fn base() -> v1::RequestHintsRequest {
    v1::RequestHintsRequest {
        request_id: "r1".to_owned(),
        application_id: "application_1_0001".to_owned(),
        attempt: 1,
        groups: vec![group("map"), v1::TaskGroup { priority: 1, ..group("reduce") }],
        ..Default::default()
    }
}

/// The field and message of the refusal that a change of the well-formed request brings.
fn refused(change: impl FnOnce(&mut v1::RequestHintsRequest)) -> (String, String) {
    let mut wire = base();
    change(&mut wire);
    match request(&wire, &RequestLimits::default()) {
        Err(Refusal::Invalid { field, message }) => (field, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_well_formed_request_keeps_what_was_said() {
    let mut wire = base();
    wire.edges = vec![v1::GroupEdge { from: "map".into(), to: "reduce".into(), pattern: 0, bytes: 9 }];
    wire.groups[1].allocation_request_id = Some(7);
    let core = request(&wire, &RequestLimits::default()).unwrap();
    assert_eq!(core.queue.as_str(), "default");
    assert_eq!(core.groups[0].key, SchedulerKey { priority: 0, allocation_request_id: -1 });
    assert_eq!(core.groups[1].key.allocation_request_id, 7);
    assert_eq!(
        core.edges,
        [GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(9) }]
    );
    assert_eq!((core.gang, core.when_full), (Gang::UpTo, WhenFull::Advise));
}

#[test]
fn without_groups_every_scheduler_key_of_the_table_is_one() {
    let mut wire = base();
    wire.groups.clear();
    wire.asks = vec![row(20, "host1", 2), row(20, "/rack1", 2), row(20, "*", 5), row(10, "*", 1), row(5, "*", 0)];
    wire.asks[3].allocation_request_id = Some(3);
    let core = request(&wire, &RequestLimits::default()).unwrap();
    let found: Vec<_> = core.groups.iter().map(|group| (&*group.name, group.count)).collect();
    assert_eq!(found, [("p10.3", 1), ("p20", 5)]);
    assert_eq!(core.groups[1].size, NamedResource { memory_mb: 2048, vcores: 1, named: vec![] });
    assert_eq!(core.asks.len(), 5, "the table is kept whole: the replacement is made from it");
}

#[test]
fn each_field_that_is_wrong_is_named_with_its_value() {
    type Change = fn(&mut v1::RequestHintsRequest);
    let cases: [(&str, &str, Change); 26] = [
        ("request_id", "missing", |r| r.request_id.clear()),
        ("application_id", "\"app_1\"", |r| r.application_id = "app_1".into()),
        ("attempt", "0 is no attempt", |r| r.attempt = 0),
        ("groups", "nothing is asked for", |r| r.groups.clear()),
        ("groups[1].name", "\"map\" is given twice", |r| r.groups[1].name = "map".into()),
        ("groups[0].name", "missing", |r| r.groups[0].name = " ".into()),
        ("groups[1].count", "0 containers", |r| r.groups[1].count = 0),
        ("groups[0].count", "4294967295 containers", |r| r.groups[0].count = u32::MAX),
        ("groups", "120000 containers", |r| {
            r.groups[0].count = 60_000;
            r.groups[1].count = 60_000;
        }),
        ("groups[1].whole", "4294967295 containers", |r| r.groups[1].whole = u32::MAX),
        ("groups", "100003 containers in all, 6 of them now and the others later (whole); at most 100000", |r| {
            r.groups[0].whole = 100_000;
            r.groups.push(v1::TaskGroup { priority: 2, count: 1, ..group("sort") });
            r.groups[1].count = 2;
        }),
        ("groups[0].resource", "missing", |r| r.groups[0].resource = None),
        ("groups[0].resource.memory", "0 MB", |r| r.groups[0].resource = Some(resource(0, 1))),
        ("groups[0].resource.memory", "-5 is negative", |r| r.groups[0].resource = Some(resource(-5, 1))),
        ("groups[0].resource.virtual_cores", "-1 is negative", |r| {
            r.groups[0].resource = Some(resource(1, -1));
        }),
        ("edges[0].to", "\"sort\" is none of the groups", |r| {
            r.edges = vec![v1::GroupEdge { from: "map".into(), to: "sort".into(), pattern: 0, bytes: 1 }];
        }),
        ("edges[0].pattern", "9 is no edge pattern", |r| {
            r.edges = vec![v1::GroupEdge { from: "map".into(), to: "map".into(), pattern: 9, bytes: 1 }];
        }),
        ("edges[1].bytes", "18446744073709551615 bytes", |r| {
            let edge = |bytes| v1::GroupEdge { from: "map".into(), to: "map".into(), pattern: 0, bytes };
            r.edges = vec![edge(1), edge(u64::MAX)];
        }),
        ("gang", "7 is no gang", |r| r.gang = 7),
        ("when_full", "-1 is no answer", |r| r.when_full = -1),
        ("input_paths[1]", "missing", |r| r.input_paths = vec!["/a".into(), String::new()]),
        ("queue", "10000 bytes", |r| r.queue = "q".repeat(10_000)),
        ("user", "control character", |r| r.user = "a\nb".into()),
        ("constraints.avoid_hosts[0]", "missing", |r| {
            r.constraints = Some(v1::Constraints { avoid_hosts: vec![String::new()], ..Default::default() });
        }),
        ("asks[0].num_containers", "-3 is negative", |r| r.asks = vec![row(1, "*", -3)]),
        ("asks[1].resource_name", "twice", |r| r.asks = vec![row(1, "*", 1), row(1, "*", 2)]),
    ];
    for (field, message, change) in cases {
        let (found, said) = refused(change);
        assert_eq!(found, field, "{said}");
        assert!(said.contains(message), "{field}: \"{said}\" lacks \"{message}\"");
    }
}

#[test]
fn a_table_without_its_counting_row_is_refused() {
    let (field, said) = refused(|r| {
        r.groups.clear();
        r.asks = vec![row(20, "host1", 2)];
    });
    assert_eq!(field, "asks");
    assert!(said.contains("priority 20") && said.contains("\"*\""), "{said}");
}

#[test]
fn named_kinds_are_read_in_their_units_and_overflow_is_refused() {
    let entry = |key: &str, value, units: &str| yarn::ResourceInformationProto {
        key: key.to_owned(),
        value: Some(value),
        units: Some(units.to_owned()),
        ..Default::default()
    };
    let with = |map: Vec<yarn::ResourceInformationProto>| {
        let mut wire = base();
        let resource = yarn::ResourceProto { resource_value_map: map, memory: None, virtual_cores: Some(2) };
        wire.groups[0].resource = Some(resource);
        request(&wire, &RequestLimits::default()).map(|core| core.groups[0].size.clone())
    };
    let found = with(vec![entry("memory-mb", 3, "Gi"), entry("vcores", 9, ""), entry("yarn.io/gpu", 2, "k")]);
    let expected = NamedResource { memory_mb: 3072, vcores: 2, named: vec![("yarn.io/gpu".into(), 2000)] };
    assert_eq!(found, Ok(expected), "the field wins over the map");
    for (entry, message) in [
        (entry("fpga", i64::MAX, "k"), "overflows"),
        (entry("fpga", 1, "zz"), "is no unit"),
        (entry("fpga", -1, ""), "-1 is negative"),
    ] {
        let Err(Refusal::Invalid { field, message: said }) = with(vec![entry]) else { panic!("accepted") };
        assert!(field.starts_with("groups[0].resource.resource_value_map[0]"), "{field}");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn groups_of_one_scheduler_key_must_be_alike() {
    type Change = fn(&mut v1::TaskGroup);
    let changes: [Change; 3] = [
        |group| group.resource = Some(resource(4096, 1)),
        |group| group.resource = Some(resource(2048, 2)),
        |group| group.node_label_expression = "gpu".into(),
    ];
    for change in changes {
        let (field, said) = refused(|r| {
            r.groups[1].priority = 0;
            change(&mut r.groups[1]);
        });
        assert_eq!(field, "groups[1].priority", "{said}");
        for part in ["\"map\"", "\"reduce\"", "priority 0", "allocation request -1", "one size and label"] {
            assert!(said.contains(part), "\"{said}\" lacks {part}");
        }
        let mut apart = base();
        apart.groups[1].priority = 0;
        apart.groups[1].allocation_request_id = Some(2);
        change(&mut apart.groups[1]);
        assert!(request(&apart, &RequestLimits::default()).is_ok(), "another allocation request is another key");
    }
    let mut alike = base();
    alike.groups[1].priority = 0;
    let none = yarn::ResourceInformationProto { key: "fpga".to_owned(), value: Some(0), ..Default::default() };
    let size = yarn::ResourceProto { resource_value_map: vec![none], ..resource(2048, 1) };
    alike.groups[1].resource = Some(size); // nothing of a kind is nothing
    assert!(request(&alike, &RequestLimits::default()).is_ok());
}
