//! Ryu's JSON as a real controller sent it, and as none should.

use super::*;
use proptest::prelude::*;

/// Answers recorded from Ryu 4.34 with Open vSwitch 3.1, cut to two switches.
const SWITCHES: &str = r#"[{"dpid": "0000000000000012", "ports": [{"dpid": "0000000000000012", "port_no": "00000001",
    "hw_addr": "12:e6:8e:cd:cd:e0", "name": "spine2-leaf1"}]}, {"dpid": "0000000000000001", "ports": []}]"#;
const LINKS: &str = r#"[{"src": {"dpid": "0000000000000001", "port_no": "00000002", "hw_addr": "ce:a2:02:0d:bc:cb",
    "name": "leaf1-spine2"}, "dst": {"dpid": "0000000000000012", "port_no": "00000001", "hw_addr": "12:e6:8e:cd:cd:e0",
    "name": "spine2-leaf1"}}]"#;
const HOSTS: &str = r#"[{"mac": "02:00:00:00:00:01", "ipv4": ["10.9.0.1"], "ipv6": [], "port": {"dpid":
    "0000000000000001", "port_no": "00000003", "hw_addr": "a2:7e:25:1f:ca:b7", "name": "leaf1-h1"}}]"#;
const PORTS: &str = r#"{"1": [{"hw_addr": "26:79:7a:02:bc:58", "name": "leaf1-h2", "config": 0, "state": 4, "curr": 2112,
    "advertised": 0, "supported": 0, "peer": 0, "curr_speed": 10000000, "max_speed": 0, "port_no": 4}, {"hw_addr":
    "02:ff:00:00:00:01", "name": "leaf1", "config": 1, "state": 1, "curr": 2112, "advertised": 0, "supported": 0,
    "peer": 0, "curr_speed": 10000000, "max_speed": 0, "port_no": "LOCAL"}, {"hw_addr": "ce:a2:02:0d:bc:cb",
    "name": "leaf1-spine2", "config": 0, "state": 1, "curr": 2112, "advertised": 0, "supported": 0, "peer": 0,
    "curr_speed": 10000000, "max_speed": 0, "port_no": 2}]}"#;
const COUNTS: &str = r#"{"1": [{"rx_packets": 7, "tx_packets": 14, "rx_bytes": 586, "tx_bytes": 1006, "rx_dropped": 0,
    "tx_dropped": 0, "rx_errors": 0, "tx_errors": 0, "rx_frame_err": 0, "rx_over_err": 0, "rx_crc_err": 0,
    "collisions": 0, "duration_sec": 6, "duration_nsec": 431000000, "port_no": 4}, {"rx_packets": 0, "tx_packets": 0,
    "rx_bytes": 0, "tx_bytes": 0, "duration_sec": 6, "duration_nsec": 595000000, "port_no": "LOCAL"}]}"#;
const FLOWS: &str = r#"{"1": [{"priority": 65535, "cookie": 0, "idle_timeout": 0, "hard_timeout": 0, "byte_count": 780,
    "duration_sec": 5, "duration_nsec": 614000000, "packet_count": 13, "length": 96, "flags": 0, "actions":
    ["OUTPUT:CONTROLLER"], "match": {"dl_dst": "01:80:c2:00:00:0e", "dl_type": 35020}, "table_id": 0}, {"priority": 100,
    "cookie": 7523666098672107522, "idle_timeout": 0, "hard_timeout": 0, "byte_count": 0, "duration_sec": 1,
    "duration_nsec": 816000000, "packet_count": 0, "length": 96, "flags": 0, "actions": ["OUTPUT:3"], "match":
    {"dl_src": "02:00:00:00:00:01", "dl_dst": "02:00:00:00:00:03"}, "table_id": 0}]}"#;

fn at(switch: u64, port: u32) -> PortAt {
    PortAt { switch: Dpid(switch), port }
}

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

#[test]
fn what_a_real_controller_answers_is_understood() {
    assert_eq!(switches(SWITCHES.as_bytes()).unwrap(), BTreeSet::from([Dpid(1), Dpid(18)]));
    assert_eq!(links(LINKS.as_bytes()).unwrap(), BTreeSet::from([(at(1, 2), at(18, 1))]));
    let host = HostSeen { mac: mac(1), addresses: vec!["10.9.0.1".parse().unwrap()], at: at(1, 3) };
    assert_eq!(hosts(HOSTS.as_bytes()).unwrap(), [host]);
    let found = ports(Dpid(1), PORTS.as_bytes()).unwrap();
    let port = |port, up| PortSeen { port, up, kbit_per_s: 10_000_000 };
    assert_eq!(found, [port(4, true), port(2, false)], "LOCAL has no number; state 1 is no carrier");
    let counted = Duration::from_millis(6_431);
    let found = counts(Dpid(1), COUNTS.as_bytes()).unwrap();
    assert_eq!(found, [PortCount { port: 4, rx_bytes: 586, tx_bytes: 1_006, counted }]);
    let found = entries(Dpid(1), FLOWS.as_bytes()).unwrap();
    assert_eq!((found[0].matches, found[0].cookie), (None, 0), "a match on more than addresses is none of ours");
    assert_eq!(found[1].matches, Some(Match { src: Some(mac(1)), dst: mac(3) }));
    assert_eq!(found[1].outputs, Some(BTreeSet::from([Output::Port(3)])));
}

#[test]
fn rubbish_half_answers_and_other_switches_are_refused() {
    assert_eq!(ports(Dpid(2), PORTS.as_bytes()), Err(BadAnswer::OtherSwitch(Dpid(2))));
    for text in ["", "null", "{}", "[{}]", "<html>", r#"[{"dpid": 7}]"#, r#"[{"dpid": "x"}]"#, &SWITCHES[..60]] {
        assert!(switches(text.as_bytes()).is_err(), "{text}");
    }
    assert!(links(br#"[{"src": {"dpid": "1", "port_no": "1"}}]"#).is_err());
    assert!(links(&LINKS.replace("\"00000002\"", "\"100000000\"").into_bytes()).is_err(), "a port beyond 32 bits");
    assert!(counts(Dpid(1), br#"{"1": [{"port_no": 1, "rx_bytes": -1}]}"#).is_err());
}

#[test]
fn calls_over_the_websocket_become_events_and_always_have_an_answer() {
    let one = &LINKS[1..LINKS.len() - 1];
    let text = format!(r#"{{"jsonrpc": "2.0", "method": "event_link_delete", "params": [{one}], "id": 4}}"#);
    let (event, answer) = call(&text).unwrap();
    assert_eq!(event, Ok(Event::LinkDelete(at(1, 2), at(18, 1))));
    assert_eq!(answer, r#"{"id":4,"jsonrpc":"2.0","result":""}"#);
    let (event, answer) = call(r#"{"method": "event_link_add", "params": [7], "id": 5}"#).unwrap();
    assert!(event.is_err() && answer.contains("\"id\":5"), "nonsense is answered too, or Ryu waits for ever");
    let (event, _) = call(r#"{"method": "event_moon_phase", "id": 6}"#).unwrap();
    assert_eq!(event, Ok(Event::Other("event_moon_phase".to_owned())));
    assert!(call("b'{}'").is_err(), "what an unmended Ryu sends");
}

#[test]
fn what_is_sent_reads_back_as_the_same_entry() {
    for src in [None, Some(mac(1))] {
        let outputs = BTreeSet::from([Output::Port(7), Output::Controller]);
        let entry = Entry { cookie: u64::MAX - 1, priority: 1_000, matches: Match { src, dst: mac(9) }, outputs };
        let sent = add(Dpid(18), &entry);
        assert_eq!((&sent["dpid"], &sent["table_id"]), (&json!(18), &json!(0)));
        let actions: Vec<String> = sent["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|to| format!("OUTPUT:{}", to["port"]).replace('"', ""))
            .collect();
        let shown = json!({ "18": [{ "cookie": sent["cookie"], "priority": sent["priority"], "table_id": 0,
            "match": sent["match"], "actions": actions }] });
        let found = entries(Dpid(18), shown.to_string().as_bytes()).unwrap().remove(0);
        assert_eq!((found.cookie, found.priority), (entry.cookie, entry.priority));
        assert_eq!((found.matches, found.outputs), (Some(entry.matches), Some(entry.outputs)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes, and whatever real answers are cut or changed into, it is read or refused.
    #[test]
    fn no_bytes_break_the_reader(cut in 0_usize..800, byte: u8, noise in prop::collection::vec(any::<u8>(), 0..64)) {
        for text in [SWITCHES, LINKS, HOSTS, PORTS, COUNTS, FLOWS] {
            let mut body = text.as_bytes().to_vec();
            let place = cut % body.len();
            body[place] = byte;
            for body in [&body[..], &body[..place], &noise[..]] {
                let _ = (switches(body), links(body), hosts(body), ports(Dpid(1), body));
                let _ = (counts(Dpid(1), body), entries(Dpid(1), body), call(&String::from_utf8_lossy(body)));
            }
        }
    }
}
