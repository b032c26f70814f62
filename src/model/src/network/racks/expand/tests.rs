//! Files with hosts in them: which switches and links come out, and what is said of the rest.

use super::super::{FileProblem, NetworkFile, UNLIMITED, differences, survey};
use super::*;

/// Hosts as `name@rack`.
fn known(hosts: &str) -> KnownHosts {
    let rows = hosts.split_whitespace().map(|word| word.split_once('@').unwrap());
    KnownHosts { racks: rows.map(|(host, rack)| (host.into(), rack.into())).collect(), aliases: BTreeMap::new() }
}

fn file(text: &str) -> NetworkFile {
    NetworkFile::read_toml(&format!("format = \"hintd.racks/1\"\n{text}")).unwrap()
}

fn problems(text: &str) -> Vec<String> {
    let found = NetworkFile::read_toml(&format!("format = \"hintd.racks/1\"\n{text}")).unwrap_err();
    found.iter().map(|problem: &FileProblem| problem.of_file("f")).collect()
}

fn expanded(text: &str, hosts: &str) -> Expanded {
    file(text).expand(&known(hosts)).unwrap()
}

/// `a--b rate`, of all links between switches.
fn ups(expanded: &Expanded) -> Vec<String> {
    let network = expanded.network.as_ref().unwrap();
    let ups = network.links().filter(|(_, link)| !network.vertex_at(link.a).is_host());
    let rate = |rate: BitsPerSec| if rate == UNLIMITED { "-".to_owned() } else { super::super::show_rate(rate) };
    let mut ups: Vec<_> = ups.map(|(_, link)| format!("{} {}", link.name, rate(link.capacity))).collect();
    ups.sort_unstable();
    ups
}

fn nic(expanded: &Expanded, host: &str) -> BitsPerSec {
    let network = expanded.network.as_ref().unwrap();
    network.link_at(network.access_link(network.vertex(host).unwrap()).unwrap()).capacity
}

const FOUR: &str = "n1@/rack1 n2@/rack1 n3@/rack2 n4@/rack2";

#[test]
fn a_line_for_each_rack_is_a_network() {
    let made =
        expanded("nic = \"1Gbit\"\n[racks.\"/rack1\"]\nuplink = \"10Gbit\"\n[racks.\"*\"]\nuplink = \"5Gbit\"\n", FOUR);
    assert_eq!(ups(&made), ["/rack1--core 10Gbit", "/rack2--core 5Gbit"]);
    assert_eq!(nic(&made, "n3"), BitsPerSec(1_000_000_000));
    assert!(made.unknown_hosts.is_empty() && made.racks_left_out.is_empty() && made.racks_unused.is_empty());
}

#[test]
fn a_rack_that_the_file_leaves_out_is_told_and_never_limits() {
    let made = expanded("[racks.\"/rack1\"]\nuplink = \"10Gbit\"\n", FOUR);
    assert_eq!(ups(&made), ["/rack1--core 10Gbit", "/rack2--core -"]);
    assert_eq!((nic(&made, "n1"), nic(&made, "n4")), (UNLIMITED, UNLIMITED));
    assert_eq!(made.racks_left_out, ["/rack2"]);
    let seen = survey(made.network.as_ref(), &known(FOUR));
    assert_eq!(
        seen.racks.iter().map(|rack| (rack.hosts, rack.uplinks[0].rate.is_some())).collect::<Vec<_>>(),
        [(2, true), (2, false)]
    );
}

#[test]
fn hosts_that_yarn_does_not_know_are_kept_and_told() {
    let text = "[racks.\"/rack1\"]\nuplink = \"10Gbit\"\nhosts = [\"n1\", \"n9\"]\n[racks.\"/rack7\"]\nuplink = \"1Gbit\"\n\
                [hosts.n8]\nnic = \"1Gbit\"\n";
    let made = expanded(text, FOUR);
    assert_eq!(made.unknown_hosts, ["n8", "n9"]);
    assert_eq!(made.racks_unused, ["/rack7"]);
    let network = made.network.as_ref().unwrap();
    assert!(network.vertex("n9").is_some(), "it has a place before it comes");
    assert!(network.vertex("n8").is_none() && network.vertex("/rack7").is_none(), "nobody says where it is");
    let seen = survey(made.network.as_ref(), &known(FOUR));
    assert_eq!((seen.unknown_hosts.len(), seen.without_place.len()), (1, 0));
    // Before anybody is known, what is listed is there.
    let early = file(text).expand(&KnownHosts::default()).unwrap();
    assert_eq!(early.network.unwrap().hosts(), 2);
    assert!(file("[racks.\"*\"]\n").expand(&KnownHosts::default()).unwrap().network.is_none());
}

#[test]
fn hosts_are_put_by_name_alias_and_pattern_where_yarn_knows_no_racks() {
    let text = "[racks.\"/a\"]\nhosts = [\"node-1*\", \"10.0.0.2\"]\nnic = \"10Gbit\"\noversubscription = 4.0\n\
                [racks.\"/b\"]\nhosts = [\"node-*\"]\nnic = \"25Gbit\"\nuplink = \"40Gbit\"\n\
                [hosts.\"node-3\"]\nrack = \"/a\"\nnic = \"100Gbit\"\n";
    let mut hosts = known("node-1@/default-rack node-10@/default-rack node-2@/default-rack node-3@/default-rack");
    hosts.aliases.insert("10.0.0.2".into(), "node-2".into());
    let made = file(text).expand(&hosts).unwrap();
    // node-3 is on /b by its pattern and on /a by its name: the name counts. 10 + 10 + 10 + 100 by 4.
    assert_eq!(ups(&made), ["/a--core 32500Mbit"]);
    hosts.racks.insert("node-20".into(), "/default-rack".into());
    let made = file(text).expand(&hosts).unwrap();
    assert_eq!(ups(&made), ["/a--core 32500Mbit", "/b--core 40Gbit"]);
    assert_eq!(
        (nic(&made, "node-20"), nic(&made, "node-3")),
        (BitsPerSec(25_000_000_000), BitsPerSec(100_000_000_000))
    );
}

#[test]
fn spines_and_pods_are_above_what_their_patterns_mean() {
    let leaf_spine = "[racks.\"*\"]\nuplink = \"80Gbit\"\n[switches.spine-1]\nabove = [\"*\"]\n[switches.spine-2]\nabove = [\"*\"]\n";
    let made = expanded(leaf_spine, FOUR);
    assert_eq!(
        ups(&made),
        ["/rack1--spine-1 40Gbit", "/rack1--spine-2 40Gbit", "/rack2--spine-1 40Gbit", "/rack2--spine-2 40Gbit"]
    );
    let pods = "nic = \"10Gbit\"\n[racks.\"*\"]\nuplink = \"20Gbit\"\n[switches.pod-1]\nabove = [\"/p1/*\"]\nuplink = \"30Gbit\"\n\
                [switches.pod-2]\nabove = [\"/p2/*\"]\noversubscription = 2\n";
    let made = expanded(pods, "a@/p1/r1 b@/p1/r2 c@/p2/r1 d@/other");
    assert_eq!(
        ups(&made),
        [
            "/other--core 20Gbit",
            "/p1/r1--pod-1 20Gbit",
            "/p1/r2--pod-1 20Gbit",
            "/p2/r1--pod-2 20Gbit",
            "pod-1--core 30Gbit",
            "pod-2--core 10Gbit"
        ]
    );
    // A pod without a rack is not there yet.
    assert!(expanded(pods, "a@/p1/r1").network.unwrap().vertex("pod-2").is_none());
}

#[test]
fn an_irregular_network_is_declared_switch_by_switch_and_link_by_link() {
    let text = "nic = \"10Gbit\"\n[racks.\"/rack1\"]\nswitch = \"tor-1\"\n[racks.\"/rack2\"]\nswitch = \"tor-2\"\n\
                [switches.tor-1]\n[switches.tor-2]\n[hosts.gpu]\nswitch = \"tor-2\"\n\
                [[links]]\na = \"tor-1\"\nb = \"tor-2\"\nrate = \"40Gbit\"\n\
                [[links]]\nid = \"second\"\na = \"tor-2\"\nb = \"tor-1\"\nrate = 20000000000\n";
    let made = expanded(text, &format!("{FOUR} gpu@/rack1 stray@/rack9"));
    assert_eq!(ups(&made), ["/rack9--tor-1 -", "second 20Gbit", "tor-1--tor-2 40Gbit"]);
    let network = made.network.as_ref().unwrap();
    let at =
        |host: &str| network.vertex_at(network.attachment(network.vertex(host).unwrap()).unwrap()).name.to_string();
    assert_eq!([at("n1"), at("gpu"), at("stray")], ["tor-1", "tor-2", "/rack9"]);
    assert_eq!(made.racks_left_out, ["/rack9"]);
}

#[test]
fn what_is_wrong_with_a_file_is_named_by_line_and_key_with_the_value() {
    let text = "nic = \"10GB\"\n[racks.rack1]\nuplink = \"10Xbit\"\n[racks.\"/r2\"]\nuplink = \"1Gbit\"\noversubscription = 4\n\
                hosts = [\"n1\", \"n1\"]\n[racks.\"/p/*\"]\nhosts = [\"n2\"]\n[racks.\"/r3\"]\nswitch = \"tor\"\n\
                [switches.s]\nabove = [\"a*b\"]\ntier = \"edge\"\n[[links]]\na = \"s\"\nb = \"nowhere\"\nrate = 5\n";
    let found = problems(text);
    for begin in [
        "f:2: nic: \"10GB\": is B byte or bit",
        "f:3: racks.rack1: \"rack1\" is no path of a rack",
        "f:4: racks.rack1.uplink: \"10Xbit\" is no rate",
        "f:7: racks.\"/r2\".oversubscription: says again what uplink says",
        "f:8: racks.\"/r2\".hosts.1: \"n1\" is in rack \"/r2\" already",
        "f:10: racks.\"/p/*\".hosts.0: \"n2\" is in one rack: \"/p/*\" means many",
        "f:12: racks.\"/r3\".switch: \"tor\" is not declared in [switches]",
        "f:14: switches.s.above.0: \"a*b\": a * may stand at the end only",
        "f:15: switches.s.tier: is edge, and it is above others",
        "f:18: links.0.b: \"nowhere\" is neither a declared switch",
        "f:19: links.0.rate: 5 bit/s is outside 1Mbit to 100Tbit",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(begin)), "{begin} is not in {found:#?}");
    }
    assert_eq!(found.len(), 11, "{found:#?}");
    assert!(
        problems("[racks.\"/r\"]\nuplonk = 1\n")[0].starts_with("f:3: racks.\"/r\".uplonk: unknown field `uplonk`")
    );
    assert!(problems("[racks.\"/r\"]\noversubscription = 4\n")[0].contains("needs the rate of the hosts' links"));
    assert!(problems("[racks\n")[0].starts_with("f:2: "));
    let format = NetworkFile::read_toml("\nformat = \"hintd.racks/2\"\n").unwrap_err()[0].of_file("f");
    assert!(format.starts_with("f:2: format: is \"hintd.racks/2\": \"hintd.racks/1\" is wanted"), "{format}");
    let none = NetworkFile::read_toml("").unwrap_err()[0].of_file("f");
    assert!(none.starts_with("f:1: format: is missing"), "{none}");
}

#[test]
fn a_switch_that_comes_to_nothing_is_refused() {
    let zones = "[switches.a]\nabove = [\"/dc1/*\"]\nuplink = \"100Gbit\"\n\
                 [switches.b]\nabove = [\"a\"]\nuplink = \"5Gbit\"\n[switches.c]\nabove = [\"b\"]\n";
    let found = problems(zones);
    assert!(found[0].starts_with("f:6: switches.b.above.0: \"a\" is aggregation, and \"b\" aggregation"), "{found:?}");
    let itself = problems("[switches.a]\nabove = [\"a\"]\nuplink = \"5Gbit\"\n");
    assert!(itself[0].contains("it is to be of a higher tier"), "{itself:?}");
    let nobody = problems("[racks.\"/r1\"]\n[switches.a]\nabove = [\"tor-*\"]\nuplink = \"5Gbit\"\n");
    assert_eq!(nobody.len(), 1, "{nobody:?}");
    assert!(nobody[0].starts_with("f:3: switches.a: comes to nothing"), "{nobody:?}");
    file("[switches.spine]\ntier = \"core\"\n");
}

#[test]
fn islands_are_found_before_a_host_is_known() {
    let found = problems("[switches.a]\nabove = [\"/p1/*\"]\n[switches.b]\nabove = [\"/p2/*\"]\n");
    assert!(found[0].starts_with("f:2: switches: 2 vertices are an island"), "{found:?}");
}

#[test]
fn a_graph_is_read_as_ever_and_its_problems_have_lines() {
    let text = "format = \"hintd.network/1\"\nhosts = [{ name = \"n1\" }, { name = \"n5\" }]\n\
                [[switches]]\nname = \"tor\"\ntier = \"edge\"\n\
                [[links]]\nid = \"l1\"\na = \"n1\"\nb = \"tor\"\nbits_per_s = 1000000000\n\
                [[links]]\nid = \"l5\"\na = \"n5\"\nb = \"tor\"\nbits_per_s = 1000000000\n";
    let made = NetworkFile::read_toml(text).unwrap().expand(&known(FOUR)).unwrap();
    assert_eq!(made.unknown_hosts, ["n5"]);
    let seen = survey(made.network.as_ref(), &known(FOUR));
    assert_eq!(seen.without_place.iter().map(ToString::to_string).collect::<Vec<_>>(), ["n2", "n3", "n4"]);
    let wrong = NetworkFile::read_toml(&text.replace("\"l5\"", "\"l1\"")).unwrap_err();
    assert_eq!(wrong[0].of_file("f"), "f:12: link \"l1\" is given twice");
    let json = r#"{"format": "hintd.racks/1", "racks": {"/r1": {"uplink": "10Gbit"}}}"#;
    assert!(NetworkFile::read_json(json).is_ok());
    assert!(
        NetworkFile::read_json(&json.replace("10Gbit", "10GB")).unwrap_err()[0]
            .of_file("f")
            .starts_with("f: racks.\"/r1\".uplink: ")
    );
}

#[test]
fn misspelled_keys_do_not_hide_one_another_nor_what_else_is_wrong() {
    let found = problems(
        "nick = \"1Gbit\"\n[racks.\"/a\"]\nuplnk = \"1Gbit\"\nnic = true\nhost = [\"n\"]\n[racks.\"/b\"]\nuplink = \"10GB\"\n\
         [hosts.n1]\nrak = \"/a\"\n[[links]]\na = \"x\"\nbb = \"y\"\nrate = 1\n[[links]]\na = \"x\"\n",
    );
    let begins = [
        "f:2: nick: unknown field `nick`, expected one of",
        "f:4: racks.\"/a\".uplnk: unknown field `uplnk`",
        "f:5: racks.\"/a\".nic: a rate is a text",
        "f:6: racks.\"/a\".host: unknown field `host`",
        "f:10: hosts.n1.rak: unknown field `rak`",
        "f:13: links.0.bb: unknown field `bb`",
        "f:15: links.1: missing field `b`",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (found, begin) in found.iter().zip(begins) {
        assert!(found.starts_with(begin), "{begin} is not how this begins: {found}");
    }
    // What does not follow from a key that is wrong is named with it.
    let found =
        problems("[racks.\"/a\"]\nuplnk = \"1Gbit\"\noversubscription = 0\n[racks.\"/b\"]\nuplink = \"10GB\"\n");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[1].starts_with("f:6: racks.\"/b\".uplink: \"10GB\""), "{found:#?}");
    let switches = problems("[switches.s]\nabve = [\"*\"]\n[racks.\"/b\"]\nswitch = \"nowhere\"\n");
    assert_eq!(switches.len(), 1, "of a switch that is not read much would follow: {switches:#?}");
    let json = r#"{"format": "hintd.racks/1", "racks": {"/a": {"x": 1}, "/b": 7}, "hosts": [], "y": {}}"#;
    let found: Vec<_> = NetworkFile::read_json(json).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn broken_entries_of_a_graph_do_not_hide_one_another() {
    let text = "format = \"hintd.network/1\"\ncolor = 1\n[[switches]]\nname = \"tor\"\nteir = \"edge\"\n[[hosts]]\nname = \"n1\"\n\
                [[links]]\nid = \"l1\"\na = \"n1\"\nb = \"tor\"\nbits = 1000000000\n";
    let found: Vec<_> = NetworkFile::read_toml(text).unwrap_err().iter().map(|found| found.of_file("f")).collect();
    assert_eq!(found.len(), 3, "{found:#?}");
    for (found, begin) in
        found.iter().zip(["f:2: color: ", "f:3: switches[0]: unknown field", "f:8: links[0]: unknown field"])
    {
        assert!(found.starts_with(begin), "{begin} is not how this begins: {found}");
    }
}

#[test]
fn networks_differ_in_what_a_file_can_say() {
    let made = |text: &str| expanded(text, FOUR).network;
    let one = made("[racks.\"*\"]\nuplink = \"10Gbit\"\n");
    assert!(differences(one.as_ref(), one.as_ref()).is_empty());
    let other = made("[racks.\"/rack1\"]\nuplink = \"20Gbit\"\n[racks.\"/rack2\"]\nuplink = \"10Gbit\"\n");
    let found = differences(one.as_ref(), other.as_ref());
    assert_eq!(found.len(), 1);
    let (before, after) = (found[0].before.as_deref().unwrap(), found[0].after.as_deref().unwrap());
    assert_eq!((found[0].what, before, after), ("link", "/rack1 - core 10Gbit", "/rack1 - core 20Gbit"));
    assert_eq!(differences(None, one.as_ref()).len(), 3 + 4 + 6, "switches, hosts, links");
}

#[test]
fn a_host_that_is_called_as_a_switch_has_no_place_and_the_others_have_theirs() {
    let text = "[racks.\"*\"]\nuplink = \"10Gbit\"\n";
    let made = expanded(text, &format!("{FOUR} core@/rack1 alone@/rack9"));
    assert_eq!(made.hosts_left_out, ["core"]);
    assert_eq!(ups(&made), ["/rack1--core 10Gbit", "/rack2--core 10Gbit", "/rack9--core 10Gbit"]);
    let seen = survey(made.network.as_ref(), &known(&format!("{FOUR} core@/rack1")));
    assert_eq!(seen.without_place.iter().map(ToString::to_string).collect::<Vec<_>>(), ["core"]);
    assert_eq!(seen.racks[0].hosts, 2);
    // A rack that it is alone in is not there.
    let made = expanded(text, &format!("{FOUR} core@/rack9"));
    assert_eq!(ups(&made), ["/rack1--core 10Gbit", "/rack2--core 10Gbit"]);
    // A file that puts it there itself contradicts itself.
    assert!(problems("[racks.\"/rack1\"]\nhosts = [\"core\"]\n")[0].contains("core"));
    assert_eq!(expanded(text, FOUR).hosts_left_out, Vec::<String>::new());
}

#[test]
fn a_host_in_two_spellings_is_refused_or_told() {
    let found = problems("[hosts.n1]\nnic = \"1Gbit\"\n[hosts.\"n1.a.com\"]\nnic = \"10Gbit\"\n");
    assert_eq!(found, ["f:4: hosts.\"n1.a.com\": \"n1.a.com\" and \"n1\" are one host: keep one"]);
    let found = problems("[racks.\"/r1\"]\nhosts = [\"n1\"]\n[racks.\"/r2\"]\nhosts = [\"N1\"]\n");
    assert_eq!(found, ["f:5: racks.\"/r2\".hosts.0: \"N1\" and \"n1\" are one host: keep one"]);
    // An address is another name as soon as YARN knows the host.
    let mut hosts = known(FOUR);
    hosts.aliases.insert("10.0.0.1".into(), "n1".into());
    let text = "[racks.\"/rack1\"]\n[hosts.n1]\nnic = \"1Gbit\"\n[hosts.\"10.0.0.1\"]\nnic = \"10Gbit\"\n";
    let made = file(text).expand(&hosts).unwrap();
    assert_eq!((nic(&made, "n1"), made.hosts_twice.len()), (BitsPerSec(1_000_000_000), 1), "{:?}", made.hosts_twice);
}

#[test]
fn patterns_that_mean_nothing_are_told_with_their_keys() {
    let text = "[racks.\"*\"]\n[racks.\"/pod9/*\"]\nuplink = \"1Gbit\"\n[racks.\"/rack1\"]\nhosts = [\"n*\", \"m*\"]\n\
                [switches.pod]\nabove = [\"/rack*\", \"/pod8/*\", \"/rack77\"]\nuplink = \"1Gbit\"\n";
    let made = expanded(text, FOUR);
    let expected = [
        "racks.\"/pod9/*\"",
        "racks.\"/rack1\".hosts \"m*\"",
        "switches.pod.above \"/pod8/*\"",
        "switches.pod.above \"/rack77\"",
    ];
    assert_eq!(made.patterns_unused, expected);
    assert_eq!(expanded("[racks.\"*\"]\n", FOUR).patterns_unused, Vec::<String>::new());
}

#[test]
fn a_rack_that_hangs_on_anothers_switch_for_want_of_a_core_is_told() {
    let text = "[racks.\"/rack1\"]\nswitch = \"tor-1\"\n[racks.\"/rack2\"]\nswitch = \"tor-2\"\n[switches.tor-1]\n\
                [switches.tor-2]\n[[links]]\na = \"tor-1\"\nb = \"tor-2\"\nrate = \"40Gbit\"\n";
    let made = expanded(text, &format!("{FOUR} stray@/rack9"));
    assert_eq!(made.racks_on_racks, ["/rack9 on tor-1"]);
    assert_eq!(expanded(text, FOUR).racks_on_racks, Vec::<String>::new());
    // Racks' own switches stay those of racks.
    let own = "[racks.\"/rack1\"]\n[racks.\"/rack2\"]\n[[links]]\na = \"/rack1\"\nb = \"/rack2\"\nrate = \"40Gbit\"\n";
    let made = expanded(own, &format!("{FOUR} stray@/rack9"));
    assert_eq!(made.racks_on_racks, ["/rack9 on /rack1"]);
    assert_eq!(ups(&made), ["/rack1--/rack2 40Gbit", "/rack9--/rack1 -"]);
    assert_eq!(survey(made.network.as_ref(), &known(FOUR)).racks.len(), 3);
    // A switch above all joins what links join already: those are links between neighbors.
    let uplink = text.replace("[switches.tor-1]\n", "[switches.tor-1]\nuplink = \"80Gbit\"\n");
    let spine = format!("{uplink}[switches.spine]\nabove = [\"*\"]\n");
    let made = expanded(&spine, &format!("{FOUR} stray@/rack9"));
    assert_eq!(made.racks_on_racks, Vec::<String>::new());
    assert_eq!(ups(&made), ["/rack9--spine -", "tor-1--spine 80Gbit", "tor-1--tor-2 40Gbit", "tor-2--spine -"]);
    assert!(problems(&uplink)[0].contains("leads on from \"tor-1\", whose uplink"), "{:?}", problems(&uplink));
}

#[test]
fn of_thousands_of_mistakes_some_are_told_and_how_many_more() {
    let rows: String = (0..5_000).map(|at| format!("[racks.\"/r{at}\"]\nuplink = \"{at}GB\"\n")).collect();
    let found = problems(&rows);
    assert_eq!(found.len(), 51);
    assert_eq!(found[50], "f: and 4950 more mistakes");
    let long = problems(&format!("[racks.\"/r\"]\nuplink = \"{}\"\n", "x".repeat(100_000)));
    assert!(long.len() == 1 && long[0].len() < 1_000, "{}", long[0].len());
}

#[test]
fn the_file_alone_says_where_hosts_are() {
    let text = "[racks.\"/a\"]\nhosts = [\"N1.a.com\", \"db-*\"]\n[racks.\"/b\"]\nswitch = \"tor\"\nhosts = [\"db-1*\"]\n\
                [switches.tor]\n[hosts.gpu]\nswitch = \"tor\"\n[hosts.n2]\nrack = \"/c\"\n[hosts.n3]\nnic = \"1Gbit\"\n";
    let said = file(text).rack_of();
    let racks = ["n1.A.com", "db-2", "db-17", "gpu", "n2", "n3", "n9"].map(|name| said.of(name));
    assert_eq!(racks, [Some("/a"), Some("/a"), Some("/b"), Some("/b"), Some("/c"), None, None]);
    assert!(file("[racks.\"*\"]\n").rack_of().is_empty());
}
