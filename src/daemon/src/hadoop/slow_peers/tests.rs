//! Reports of slow DataNodes: what is read, left out and forgotten.

use super::book::Book;
use super::report::{Hosts, LeftOut, NamedRow, Report, Row, Rows, live_nodes, report, without_port};
use hintd_model::cluster::NodeStatics;
use hintd_model::network::latency::slow_peers::{MOST_REPORTS, PacketTimes, SlowPeersState};
use hintd_model::units::{Micros, NodeIdx, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// As Hadoop 3.4.2's `SlowPeerTracker` writes it, of nulls and of a median that is no number.
const PEERS: &str = r#"[{"SlowNode":"10.0.0.2:9864","SlowPeerLatencyWithReportingNodes":[{"ReportingNode":"10.0.0.1:9867","ReportedLatency":null,"MedianLatency":null,"MadLatency":null,"UpperLimitLatency":null}]},{"SlowNode":"10.0.0.4:9864","SlowPeerLatencyWithReportingNodes":[{"ReportingNode":"10.0.0.1:9867","ReportedLatency":12.0,"MedianLatency":"NaN","MadLatency":0.0,"UpperLimitLatency":5.0}]},{"SlowNode":"10.0.0.3:9864","SlowPeerLatencyWithReportingNodes":[{"ReportingNode":"10.0.0.1:9867","ReportedLatency":48.5,"MedianLatency":1.2,"MadLatency":0.4,"UpperLimitLatency":5.0},{"ReportingNode":"10.0.0.2:9867","ReportedLatency":20.0,"MedianLatency":1.0,"MadLatency":0.0,"UpperLimitLatency":5.0}]}]"#;

fn status(state: &str, peers: Value) -> Vec<u8> {
    let name = "Hadoop:service=NameNode,name=NameNodeStatus";
    let bean = serde_json::json!({ "name": name, "modelerType": "NameNode", "State": state, "SlowPeersReport": peers });
    serde_json::to_vec(&serde_json::json!({ "beans": [bean] })).unwrap()
}

fn told(peers: &str) -> Rows {
    match report(&status("active", peers.into())) {
        Ok(Report::On(rows)) => rows,
        other => panic!("{other:?}"),
    }
}

fn row(slow: &str, reporter: &str, packet_us: Option<(u64, u64)>) -> Row {
    let packet = packet_us.map(|(reported, median)| PacketTimes { reported: Micros(reported), median: Micros(median) });
    Row { slow: slow.into(), reporter: reporter.into(), packet }
}

/// Reasons and how often.
fn reasons(rows: &Rows) -> Vec<(LeftOut, u64)> {
    rows.left_out.iter().map(|(why, (count, _))| (*why, *count)).collect()
}

fn nodes(hosts: &[&str], alias: Option<(&str, u32)>) -> NodeStatics {
    NodeStatics {
        host: hosts.iter().map(|host| (*host).into()).collect(),
        by_host: (0_u32..).zip(hosts).map(|(at, host)| ((*host).into(), NodeIdx(at))).collect(),
        by_alias: alias.into_iter().map(|(alias, node)| (alias.into(), NodeIdx(node))).collect(),
        ..NodeStatics::default()
    }
}

#[test]
fn a_report_of_hadoop_3_4_has_each_reporters_latency_and_the_median() {
    let rows = told(PEERS);
    let expected = [
        row("10.0.0.2:9864", "10.0.0.1:9867", None),
        row("10.0.0.3:9864", "10.0.0.1:9867", Some((48_500, 1_200))),
        row("10.0.0.3:9864", "10.0.0.2:9867", Some((20_000, 1_000))),
    ];
    assert_eq!(rows.taken, expected);
    assert_eq!(reasons(&rows), [(LeftOut::BadNumber, 1)]);
    let said = &rows.left_out[&LeftOut::BadNumber].1;
    assert_eq!(said, "10.0.0.1:9867 on 10.0.0.4:9864: MedianLatency \"NaN\" is not within 0 to 3600000 ms");
}

#[test]
fn an_older_report_has_reporters_alone() {
    let rows = told(r#"[{"SlowNode":"10.0.0.3:9864","ReportingNodes":["10.0.0.1:9867","10.0.0.2:9867"]}]"#);
    let expected = [row("10.0.0.3:9864", "10.0.0.1:9867", None), row("10.0.0.3:9864", "10.0.0.2:9867", None)];
    assert_eq!((rows.taken.as_slice(), rows.left_out.len()), (expected.as_slice(), 0));
    assert_eq!(told("[]"), Rows::default(), "nobody is slow");
}

#[test]
fn statistics_that_are_off_are_told_from_a_hadoop_without_them() {
    assert_eq!(report(&status("active", Value::Null)), Ok(Report::Off));
    let bean = br#"{"beans":[{"name":"Hadoop:service=NameNode,name=NameNodeStatus","State":"active"}]}"#;
    assert_eq!(report(bean), Ok(Report::Absent));
}

#[test]
fn an_answer_that_makes_no_sense_is_refused_with_what_is_wrong() {
    let refused = |body: &[u8]| report(body).unwrap_err().to_string();
    assert_eq!(refused(&status("standby", "[]".into())), "it is standby, not active");
    assert_eq!(refused(br#"{"beans":[]}"#), "the answer has no bean NameNodeStatus");
    assert!(refused(b"<html>").starts_with("the answer is not as a NameNode's: expected value at line 1"));
    assert!(refused(&status("active", "[{".into())).starts_with("SlowPeersReport is not as a NameNode's: EOF"));
    assert!(
        refused(&status("active", "{}".into())).starts_with("SlowPeersReport is not as a NameNode's: invalid type")
    );
    assert_eq!(refused(&status("active", 7.into())), "SlowPeersReport is not as a NameNode's: a number is no text");
    assert_eq!(refused(&status(&"x".repeat(9_000), "[]".into())), format!("it is {}, not active", "x".repeat(40)));
}

#[test]
fn a_row_that_can_not_be_is_left_out_and_the_others_count() {
    let latency = |reported: &str, median: &str| {
        let said = format!(r#"{{"ReportingNode":"b","ReportedLatency":{reported},"MedianLatency":{median}}}"#);
        told(&format!(r#"[{{"SlowNode":"a","SlowPeerLatencyWithReportingNodes":[{said},{{"ReportingNode":"c"}}]}}]"#))
    };
    for (reported, median, why) in [
        ("-1", "1", LeftOut::BadNumber),
        ("9", "-0.1", LeftOut::BadNumber),
        ("3600000.1", "1", LeftOut::BadNumber),
        ("1e300", "1", LeftOut::BadNumber),
        ("\"Infinity\"", "1", LeftOut::BadNumber),
        ("[]", "1", LeftOut::BadNumber),
        ("1", "1", LeftOut::NotSlow),
        ("0.5", "1", LeftOut::NotSlow),
    ] {
        let rows = latency(reported, median);
        assert_eq!((reasons(&rows), rows.taken), (vec![(why, 1)], vec![row("a", "c", None)]), "{reported} {median}");
    }
    assert_eq!(latency("3600000", "0").taken[0], row("a", "b", Some((3_600_000_000, 0))));
    let rows = told(r#"[7,{"SlowNode":7},{"SlowNode":"a","ReportingNodes":[7,"b"]},{"SlowNode":"d"}]"#);
    assert_eq!((reasons(&rows), rows.taken), (vec![(LeftOut::Malformed, 3)], vec![row("a", "b", None)]));
}

#[test]
fn reports_beyond_what_is_kept_are_left_out_and_counted() {
    let reporters: Vec<String> = (0..MOST_REPORTS + 5).map(|at| format!("\"r{at}\"")).collect();
    let rows = told(&format!(r#"[{{"SlowNode":"a","ReportingNodes":[{}]}}]"#, reporters.join(",")));
    assert_eq!((rows.taken.len(), reasons(&rows)), (MOST_REPORTS, vec![(LeftOut::TooMany, 5)]));
}

#[test]
fn addresses_are_hosts_of_yarn_by_what_the_name_node_calls_them() {
    let body = serde_json::json!({ "beans": [{
        "name": "Hadoop:service=NameNode,name=NameNodeInfo",
        "LiveNodes": r#"{"w1.example.org:9866":{"infoAddr":"10.0.0.1:9864","xferaddr":"10.0.0.1:9866","location":"/r"},
            "w2:9866":{"infoAddr":"10.0.0.2:9864"},"w9:9866":{"capacity":7}}"#,
    }] });
    let names = live_nodes(&serde_json::to_vec(&body).unwrap()).unwrap();
    let pairs: Vec<(&str, &str)> = names.iter().map(|(address, name)| (address.as_str(), name.as_str())).collect();
    assert_eq!(pairs, [("10.0.0.1", "w1.example.org"), ("10.0.0.2", "w2")]);
    let nodes = nodes(&["w1", "w2", "w3"], Some(("10.0.0.3", 2)));
    let hosts = Hosts { nodes: &nodes, names: &names };
    let find = |address: &str| hosts.find(address).map(|host| host.to_string());
    for (address, host) in [
        ("10.0.0.1:9867", Some("w1")),
        ("10.0.0.2:9864", Some("w2")),
        ("10.0.0.3:9864", Some("w3")),
        ("w3.example.org:9864", Some("w3")),
        ("10.0.0.9:9864", None),
        ("", None),
    ] {
        assert_eq!(find(address).as_deref(), host, "{address}");
    }
    let mut rows = Rows {
        taken: vec![
            row("10.0.0.1:9864", "10.0.0.2:9867", None),
            row("w1", "w2", Some((7, 1))),
            row("10.0.0.9:9864", "w1", None),
            row("w1:9864", "10.0.0.1:9867", None),
        ],
        ..Rows::default()
    };
    assert_eq!(hosts.unknown(&rows.taken).into_iter().collect::<Vec<_>>(), ["10.0.0.9"]);
    let row = NamedRow { slow: "w1".into(), reporter: "w2".into(), packet: None };
    assert_eq!(hosts.named(&mut rows), [row], "a pair that is there twice is once");
    assert_eq!(reasons(&rows), [(LeftOut::UnknownHost, 1), (LeftOut::Itself, 1)]);
    assert!(live_nodes(b"{\"beans\":[]}").is_err() && live_nodes(b"no").is_err());
}

#[test]
fn a_port_is_what_stands_behind_the_last_colon_of_what_is_no_bare_address() {
    for (address, bare) in [
        ("10.0.0.1:9866", "10.0.0.1"),
        ("[2001:db8::1]:9866", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("w1", "w1"),
        ("w1:", "w1:"),
        (":1", ""),
    ] {
        assert_eq!(without_port(address), bare, "{address}");
    }
}

/// What a book shows of an answer of these pairs.
fn take(book: &mut Book, pairs: &[(&str, &str)], nodes: &NodeStatics, now_s: u64) -> Vec<(String, u64)> {
    let taken = pairs.iter().map(|(slow, reporter)| row(slow, reporter, None)).collect();
    let mut report = Report::On(Rows { taken, ..Rows::default() });
    let told = book.take(&mut report, &Hosts { nodes, names: &BTreeMap::new() }, at(now_s));
    told.reports.iter().map(|told| (told.slow.to_string(), told.since.0 / 1_000_000)).collect()
}

const fn at(s: u64) -> Timestamp {
    Timestamp(s * 1_000_000)
}

#[test]
fn a_pair_keeps_its_time_while_it_is_named_again_and_begins_anew_after_a_pause() {
    let nodes = nodes(&["a", "b", "c"], None);
    let mut book = Book::new(Micros::from_secs(600));
    assert!(!book.counts(at(1)) && book.notice(at(1)).is_none());
    assert_eq!(take(&mut book, &[("a", "b")], &nodes, 100), [("a".to_owned(), 100)]);
    let both = [("a".to_owned(), 100), ("a".to_owned(), 160)];
    assert_eq!(take(&mut book, &[("a", "b"), ("a", "c")], &nodes, 160), both);
    assert_eq!(
        book.notice(at(220)).unwrap().text,
        "DataNodes report hosts as slow: a (by 2, for 120 s); hintctl latency shows by how much"
    );
    assert_eq!(book.notice(at(761)), None, "no NameNode has said it for too long");
    assert_eq!(book.slow(at(761)), []);
    assert_eq!(take(&mut book, &[("a", "b")], &nodes, 761), [("a".to_owned(), 761)], "nor does it keep its time");
    assert_eq!(book.notice(at(761)), None, "one reporter alone is no notice");
    assert_eq!(take(&mut book, &[], &nodes, 770), []);
    let told = book.take(&mut Report::Off, &Hosts { nodes: &nodes, names: &BTreeMap::new() }, at(780));
    assert_eq!((told.state, told.max_age), (SlowPeersState::Off, Micros::from_secs(600)));
}

#[test]
fn a_notice_names_five_hosts_and_says_how_many_more_there_are() {
    let hosts = ["a", "b", "c", "d", "e", "f", "g"];
    let nodes = nodes(&hosts, None);
    let mut pairs: Vec<(&str, &str)> = hosts[2..].iter().flat_map(|host| [(*host, "a"), (*host, "b")]).collect();
    pairs.extend([("a", "f"), ("a", "g"), ("a", "c")]);
    let mut book = Book::new(Micros::from_secs(600));
    take(&mut book, &pairs, &nodes, 100);
    let said = book.notice(at(100)).unwrap().text;
    assert!(
        said.contains("slow: a (by 3, for 0 s), c (by 2, for 0 s), ") && said.contains("f (by 2, for 0 s) and 1 more;"),
        "{said}"
    );
}
