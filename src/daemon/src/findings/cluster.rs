//! Checks of what the daemon knows of the cluster: itself, feeds, servers, nodes, racks, the network, routes.

use super::check::{Check, Verdict, count, page, some};
use super::links;
use super::quantities::age as ms;
use crate::notice::NoticeKind;
use hintd_client::wire::v1;

/// The check of the configuration: the daemon's own, or a fuller one of whoever can read the file.
pub const CONFIGURATION: &str = "configuration";

/// Usable nodes below this share are fewer than silence of a few explains.
const USABLE: f64 = 0.9;

/// The daemon itself: version, ready, what it does without, what it wants known.
#[must_use]
pub fn daemon(status: &v1::StatusResponse) -> Vec<Check> {
    let mine = env!("CARGO_PKG_VERSION");
    let version = match status.version == mine {
        true => Check::ok("version", page::UPGRADE, format!("hintctl and hintd are {mine}.")),
        false => Check::warning(
            "version",
            page::UPGRADE,
            format!("hintctl is {mine}, hintd is {}.", status.version),
            "Install the same version of both; after an upgrade, restart hintd.",
        ),
    };
    let up = ms(status.uptime_ms);
    let ready = match (status.ready, status.degraded.is_empty()) {
        (false, _) => Check::problem(
            "ready",
            page::WATCH,
            format!("It is live for {up} and not ready: {}.", status.not_ready_reason),
            "The other findings say what is missing; requests get no hints until then.",
        ),
        (true, false) => Check::warning(
            "ready",
            page::WATCH,
            format!("It is live for {up}, ready, and does without: {}.", some(&status.degraded)),
            "See the findings on feeds and servers.",
        ),
        (true, true) => Check::ok("ready", page::WATCH, format!("It is live for {up}, and ready.")),
    };
    let mut checks = vec![version, ready];
    checks.extend(refused(status, &status.config_file).or_else(|| waits_for_restart(status)));
    checks.extend(notices(status).into_iter().map(|notice| {
        let v1::Notice { text, advice, .. } = notice;
        Check::warning("notice", page::WATCH, format!("The daemon reports: {text}."), advice)
    }));
    checks
}

/// What the daemon wants known, without what has a check of its own.
fn notices(status: &v1::StatusResponse) -> Vec<v1::Notice> {
    // A refused configuration has.
    let refused = NoticeKind::ConfigurationRefused.as_str();
    if !status.notices_told.is_empty() {
        return status.notices_told.iter().filter(|notice| notice.kind != refused).cloned().collect();
    }
    // A daemon of before, which tells of no advice.
    let own = |notice: &&String| status.config_refused.is_empty() || !notice.contains(status.config_refused.as_str());
    let advice =
        "hintd is of an older version, which does not say what to do: search docs/operations.md for these words.";
    let told = |text: &String| v1::Notice { kind: String::new(), text: text.clone(), advice: advice.to_owned() };
    status.notices.iter().filter(own).map(told).collect()
}

/// That the configuration on disk, which `file` names, is refused.
#[must_use]
pub fn refused(status: &v1::StatusResponse, file: &str) -> Option<Check> {
    // One problem a line; a terminal's strings have line ends written out.
    let why = status.config_refused.replace("\\n", "\n");
    let why = why.trim_end().replace('\n', "; ");
    let finding = format!("What is on disk is refused, and what was read before stays in force: {why}.");
    let advice = format!("Fix it before the next restart, which would fail: hintd --check --config {file}");
    (!why.is_empty()).then(|| Check::problem(CONFIGURATION, page::RELOAD, finding, advice))
}

/// That keys which were changed on disk are not in force before a restart.
#[must_use]
pub fn waits_for_restart(status: &v1::StatusResponse) -> Option<Check> {
    let keys = &status.config_restart_keys;
    let finding = match keys.len() {
        0 => return None,
        1 => {
            format!("1 key that was changed on disk waits for a restart: {}. Until then the old value holds.", keys[0])
        }
        more => format!(
            "{more} keys that were changed on disk wait for a restart: {}. Until then the old values hold.",
            some(keys)
        ),
    };
    let advice = "Restart hintd (leases and answers are kept), or change it back; hintctl reload then says so.";
    Some(Check::warning(CONFIGURATION, page::RELOAD, finding, advice))
}

/// `2 keys wait for a restart: listen.grpc, worker.threads`; `None`: none does, or the daemon is too old to say.
#[must_use]
pub fn restart_keys(status: &v1::StatusResponse) -> Option<String> {
    let keys = &status.config_restart_keys;
    let waits = match keys.len() {
        0 => return None,
        1 => "1 key waits".to_owned(),
        more => format!("{more} keys wait"),
    };
    Some(format!("{waits} for a restart: {}", some(keys)))
}

/// When each source was heard.
#[must_use]
pub fn feeds(status: &v1::StatusResponse) -> Vec<Check> {
    status.ages.iter().map(|age| feed(age, status)).collect()
}

fn feed(age: &v1::SourceAge, status: &v1::StatusResponse) -> Check {
    const NAME: &str = "feed";
    let source = &age.source;
    let heartbeats = source == "heartbeats";
    match (age.age_ms, age.stale) {
        (None, _) if heartbeats => Check::problem(
            NAME,
            page::NO_HEARTBEATS,
            "No node was ever heard: without nodes there are no hints.",
            advice_unless_asked(
                status,
                "resource_manager",
                false,
                "Set [resource_manager] urls, or start the feed of heartbeats.",
            ),
        ),
        (None, _) if source == "blocks" => Check::warning(
            NAME,
            page::FROM_NAME_NODE,
            "Nobody told where blocks are: hints can't put tasks beside their input.",
            advice_unless_asked(status, "name_node", false, "Set [name_node] urls, or feed datasets."),
        ),
        (None, _) => Check::ok(NAME, page::FEED_STOPPED, format!("{source}: never heard, and so not missed.")),
        (Some(heard), true) => {
            let finding = format!("{source}: heard last {} ago, which is too old (model.max_age).", ms(heard));
            match heartbeats {
                true => Check::problem(
                    NAME,
                    page::NO_HEARTBEATS,
                    finding,
                    advice_unless_asked(status, "resource_manager", true, "Restart the feed of heartbeats."),
                ),
                false => Check::warning(
                    NAME,
                    page::FEED_STOPPED,
                    finding,
                    "Restart the feed; hints go without it. If it is gone for good, restart hintd.",
                ),
            }
        }
        (Some(heard), false) => {
            let without = if source == "blocks" && status.blocks == 0 { ", and no block is known" } else { "" };
            Check::ok(NAME, page::FEED_STOPPED, format!("{source}: heard {} ago{without}.", ms(heard)))
        }
    }
}

/// What to do about a source that a configured server would tell of: look at that server, and nothing else.
/// `heard`: it told of the source before.
fn advice_unless_asked(status: &v1::StatusResponse, kind: &str, heard: bool, otherwise: &str) -> String {
    let asked: Vec<&v1::ServerView> = status.servers.iter().filter(|server| server.source == kind).collect();
    match asked.iter().any(|server| server.in_use && server.state == "answers") {
        _ if asked.is_empty() => otherwise.to_owned(),
        true if heard => {
            format!("The configured {kind} answers and has told nothing new of this since: look at its log.")
        }
        true => format!("The configured {kind} answers and names none yet: look there."),
        false => format!("This follows from the finding {kind}: its servers are configured, and none answers."),
    }
}

/// The controller of `[sdn.ryu]`, as status calls it: few clusters have one, so that none is no finding.
const CONTROLLER: &str = "sdn_controller";

/// Servers that the daemon asks, by kind.
#[must_use]
pub fn servers(status: &v1::StatusResponse) -> Vec<Check> {
    let kinds = [
        ("resource_manager", "ResourceManager", page::RESOURCE_MANAGER),
        ("name_node", "NameNode", page::NAME_NODE),
        ("history_server", "JobHistoryServer", page::HISTORY_SERVER),
        ("spark_history_server", "Spark history server", page::HISTORY_SERVER),
    ];
    let of = |kind: &str| status.servers.iter().filter(|server| server.source == kind).collect::<Vec<_>>();
    let mut checks: Vec<Check> =
        kinds.into_iter().map(|(kind, name, page)| group(kind, name, page, &of(kind))).collect();
    let controllers = of(CONTROLLER);
    if !controllers.is_empty() {
        checks.push(group(CONTROLLER, "SDN controller", page::CONTROLLER, &controllers));
    }
    // Whoever installs routes may be another program, which is asked nothing and watches.
    checks.extend(status.watchers.iter().filter(|watcher| watcher.installs).map(controller));
    checks
}

fn group(name: &'static str, kind: &str, page: &'static str, servers: &[&v1::ServerView]) -> Check {
    if servers.is_empty() {
        return Check::not_checked(name, page, format!("No {kind} is configured; feeds may tell what it would."));
    }
    let state = |server: &&v1::ServerView| {
        let heard = server.heard_ms.map_or_else(|| "never".to_owned(), |heard| format!("{} ago", ms(heard)));
        let error = if server.error.is_empty() { String::new() } else { format!(", {}", server.error) };
        format!("{} {} (last good answer: {heard}{error})", server.address, server.state.replace('_', " "))
    };
    let states = servers.iter().map(state).collect::<Vec<_>>();
    let finding = format!("{kind}: {}.", some(&states));
    let good = |server: &&&v1::ServerView| server.in_use && server.state == "answers";
    let fails = |server: &&&v1::ServerView| ["silent", "wrong_answer"].contains(&server.state.as_str());
    let failing: Vec<&v1::ServerView> = servers.iter().filter(fails).copied().collect();
    match (servers.iter().any(|server| good(&server)), failing.is_empty()) {
        (true, true) => Check::ok(name, page, finding),
        (true, false) => {
            let advice =
                format!("One of the pair is down: mend it before the other one fails. {}", what_to_do(&failing));
            Check::warning(name, page, finding, advice)
        }
        (false, true) => Check::problem(name, page, finding, what_to_do(servers)),
        // Of a pair of which one stands by, the other one is to be mended.
        (false, false) => Check::problem(name, page, finding, what_to_do(&failing)),
    }
}

/// What each server's failure needs, the same of several once.
fn what_to_do(servers: &[&v1::ServerView]) -> String {
    let advice = |server: &v1::ServerView| match (server.advice.as_str(), server.state.as_str()) {
        ("", "standby") => "None of them leads: look at their logs and at ZooKeeper.".to_owned(),
        ("", "safe_mode") => {
            "It waits for its DataNodes' reports, or was put there: hdfs dfsadmin -safemode get.".to_owned()
        }
        ("", "busy") => "It refuses load: look at its log; hintd asks again by itself.".to_owned(),
        ("", "not_asked") => "It was not asked yet: look again in some seconds.".to_owned(),
        ("", _) => "Check that it runs, its address, and the way there from this machine.".to_owned(),
        (advice, _) => advice.to_owned(),
    };
    let mut each: Vec<(&str, String)> = Vec::new();
    for server in servers {
        let advice = advice(server);
        if each.iter().all(|(_, said)| *said != advice) {
            each.push((&server.address, advice));
        }
    }
    match &each[..] {
        [(_, advice)] => advice.clone(),
        several => several.iter().map(|(of, advice)| format!("{of}: {advice}")).collect::<Vec<_>>().join(" "),
    }
}

fn controller(watcher: &v1::WatcherView) -> Check {
    const NAME: &str = "controller";
    let v1::WatcherView { name, state, since_ms, refused_total, attached, .. } = watcher;
    let is = watcher_state(watcher);
    let finding = format!(
        "{name} installs routes: {is}; it began to watch {} ago; {refused_total} routes refused.",
        ms(*since_ms)
    );
    match (state.as_str(), attached, refused_total) {
        ("silent", ..) | (_, false, _) => {
            Check::problem(NAME, page::WATCHER, finding, "Look at its log and start it again.")
        }
        (_, true, 0) => Check::ok(NAME, page::WATCHER, finding),
        _ => Check::warning(NAME, page::WATCHER, finding, "hintctl --json status names the refused routes and why."),
    }
}

/// Nodes that hints may name.
#[must_use]
pub fn nodes(status: &v1::StatusResponse) -> Vec<Check> {
    const NAME: &str = "nodes";
    let v1::StatusResponse { nodes, nodes_usable: usable, racks, .. } = status;
    let finding = format!(
        "{usable} of {} can be hinted at, in {}.",
        count(u64::from(*nodes), "node"),
        count(u64::from(*racks), "rack")
    );
    let advice = "hintctl nodes shows state and age of each: STALE and LOST ones are silent, others YARN took out.";
    let mut checks = vec![match *usable {
        0 => Check::problem(NAME, page::NODES, finding, advice),
        usable if f64::from(usable) < f64::from(*nodes) * USABLE => Check::warning(NAME, page::NODES, finding, advice),
        _ => Check::ok(NAME, page::NODES, finding),
    }];
    if status.unknown_names_total > 0 {
        let names = some(&status.unknown_names);
        checks.push(Check::warning(
            "unknown_names",
            page::FEED_REFUSED,
            format!(
                "{} of HDFS or the network belong to no node of YARN: {names}.",
                count(status.unknown_names_total, "name")
            ),
            "Feed aliases of nodes, or call hosts in HDFS as YARN does.",
        ));
    }
    checks
}

/// Racks, by who believes what.
#[must_use]
pub fn racks(status: &v1::StatusResponse, racks: &Result<v1::RacksResponse, String>) -> Check {
    const NAME: &str = "racks";
    let racks = match racks {
        Ok(racks) => racks,
        Err(why) => return Check::not_checked(NAME, page::RACKS, format!("{why}.")),
    };
    if racks.differing > 0 {
        let hosts: Vec<String> = racks.hosts.iter().map(|host| host.host.clone()).collect();
        return Check::warning(
            NAME,
            page::RACKS,
            format!(
                "YARN, HDFS or the network put {} in different racks: {}.",
                count(u64::from(racks.differing), "host"),
                some(&hosts)
            ),
            "hintctl racks --differences; give all three one source of racks.",
        );
    }
    if status.racks == 1 && status.nodes > 1 {
        return Check::warning(
            NAME,
            page::RACKS,
            "YARN has all nodes in one rack: nothing is known of what lies between them.",
            "Set net.topology.script.file.name, or net.topology.node.switch.mapping.impl, for the ResourceManager.",
        );
    }
    let by = [(racks.yarn_hosts, "YARN"), (racks.hdfs_hosts, "HDFS"), (racks.network_hosts, "the network")];
    let by = by.map(|(hosts, who)| format!("{hosts} by {who}")).join(", ");
    Check::ok(NAME, page::RACKS, format!("Racks agree; hosts whose rack is known: {by}."))
}

/// The network: whether there is one, what limits it, who has no place.
#[must_use]
pub fn network(
    status: &v1::StatusResponse,
    network: &Result<v1::NetworkResponse, String>,
    down: &Result<v1::LinksResponse, String>,
) -> Vec<Check> {
    const NAME: &str = "network";
    let network = match network {
        Ok(network) => network,
        Err(why) => return vec![Check::not_checked(NAME, page::NETWORK, format!("{why}."))],
    };
    if network.links == 0 && network.source == "file" && network.trouble.is_empty() {
        return vec![Check::ok(
            NAME,
            page::NETWORK,
            "The network file is in force; no host is known yet that it could place.",
        )];
    }
    if network.links == 0 && network.trouble.is_empty() {
        return vec![Check::warning(
            NAME,
            page::NETWORK,
            "No network is known: hosts are as far apart as their racks say, and no link limits anything.",
            "Write a network file of a few lines ([network] file), or connect a controller.",
        )];
    }
    let mut checks = Vec::new();
    if !network.trouble.is_empty() {
        checks.push(Check::problem(
            NAME,
            page::NETWORK,
            format!("With the nodes of now the file makes no network, and the one before stays: {}.", network.trouble),
            "Correct the file; hintctl network diff FILE checks it.",
        ));
    }
    checks.extend(places(network));
    checks.extend(rates(network));
    checks.extend(links::down(status, network, down));
    let flows = status.flows.unwrap_or_default();
    if flows.cut > 0 {
        let finding = format!("{} have traffic and no path.", count(flows.cut, "host pair"));
        checks.push(Check::problem(
            "routes",
            page::CUT,
            finding,
            "hintctl links --down; if the links work, the source of the network is wrong.",
        ));
    }
    if checks.iter().all(|check| check.verdict < Verdict::Warning) {
        let v1::NetworkResponse { source, hosts, switches, links, .. } = network;
        let finding = format!("Known from a {source}: {hosts} hosts, {switches} switches, {links} links, rates known.");
        checks.push(Check::ok(NAME, page::NETWORK, finding));
    }
    checks
}

fn places(network: &v1::NetworkResponse) -> Vec<Check> {
    let lists = [
        (
            &network.hosts_without_place,
            "have no place in the network",
            "Name them in the network file, or tell YARN their rack.",
        ),
        (&network.hosts_left_out, "are called as a switch is, and have no place", "Give the switch another name."),
        (&network.hosts_twice, "are named twice", "Keep one spelling in the network file."),
        (&network.patterns_unused, "of the network file mean nothing that is there", "Correct or remove them."),
        (
            &network.racks_on_racks,
            "hang on a rack's switch",
            "Declare a switch above racks: [switches.spine] above = [\"*\"].",
        ),
    ];
    let found = lists.into_iter().filter(|(names, ..)| !names.is_empty());
    let check = |(names, what, advice): (&Vec<String>, &str, &str)| {
        let what = format!("{} {what}: {}.", names.len(), some(names));
        Check::warning("network", page::NETWORK, what, advice)
    };
    found.map(check).collect()
}

/// Racks whose links nothing limits: bottlenecks there are not seen.
fn rates(network: &v1::NetworkResponse) -> Option<Check> {
    let unlimited = |rack: &&v1::NetworkRack| {
        rack.hosts > 0
            && (rack.nic_bits_per_s.is_none() || rack.uplinks.iter().any(|uplink| uplink.bits_per_s.is_none()))
    };
    let racks: Vec<String> = network.racks.iter().filter(unlimited).map(|rack| rack.switch.clone()).collect();
    if racks.is_empty() {
        return None;
    }
    let what = format!(
        "Nothing says what links of {} carry, so they never limit: {}.",
        count(racks.len() as u64, "rack"),
        some(&racks)
    );
    Some(Check::warning("network_rates", page::NETWORK, what, "Give nic and uplink in the network file."))
}

/// The plan in force.
#[must_use]
pub fn plan(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "plan";
    match &status.plan {
        None => Check::ok(NAME, page::PLANS, "No plan is in force."),
        Some(plan) if plan.expired => Check::warning(
            NAME,
            page::PLANS,
            format!("Plan \"{}\" is in force and its horizon has passed.", plan.name),
            "Activate another one, or hintctl plan rollback.",
        ),
        Some(plan) => Check::ok(
            NAME,
            page::PLANS,
            format!("Plan \"{}\" is in force for another {}.", plan.name, ms(plan.left_ms)),
        ),
    }
}

/// `current`; where its stream is broken `disconnected for 50 s, silent before`.
#[must_use]
pub fn watcher_state(watcher: &v1::WatcherView) -> String {
    match watcher.away_ms {
        _ if watcher.attached => watcher.state.clone(),
        Some(away) => format!("disconnected for {}, {} before", ms(away), watcher.state),
        None => format!("disconnected, {} before", watcher.state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_is_advised_on_by_how_it_fails() {
        let server = |address: &str, state: &str, advice: &str| v1::ServerView {
            source: "resource_manager".into(),
            address: address.into(),
            state: state.into(),
            in_use: state == "answers",
            error: if advice.is_empty() { String::new() } else { "it fails".into() },
            advice: advice.into(),
            ..v1::ServerView::default()
        };
        let check = |list: Vec<v1::ServerView>| {
            servers(&v1::StatusResponse { servers: list, ..v1::StatusResponse::default() }).swap_remove(0)
        };
        let both = check(vec![server("a", "wrong_answer", "Log in."), server("b", "wrong_answer", "Log in.")]);
        assert_eq!((both.verdict, both.advice.as_str()), (Verdict::Problem, "Log in."), "the same advice once");
        assert!(both.finding.contains("a wrong answer (last good answer: never, it fails)"), "{both:?}");
        let each = check(vec![server("a", "silent", "Start it."), server("b", "wrong_answer", "Log in.")]);
        assert_eq!(each.advice, "a: Start it. b: Log in.");
        let half = check(vec![server("a", "standby", ""), server("b", "silent", "Start it.")]);
        assert_eq!((half.verdict, half.advice.as_str()), (Verdict::Problem, "Start it."));
        let spare = check(vec![server("a", "answers", ""), server("b", "wrong_answer", "Log in.")]);
        assert_eq!(spare.verdict, Verdict::Warning);
        assert!(spare.advice.ends_with("before the other one fails. Log in."), "{spare:?}");
        assert!(check(vec![server("a", "standby", "")]).advice.contains("ZooKeeper"));
        assert!(check(vec![server("a", "silent", "")]).advice.contains("Check that it runs"), "of an older daemon");
    }

    #[test]
    fn sizes_that_differ_say_where_to_write_which() {
        let seen = crate::hadoop::scheduler::SchedulerSeen { minimum: [Some(256), None], ..Default::default() };
        let notices = seen.differences(&hintd_model::cluster::SizeRules::default());
        let told = |notice: &crate::notice::Notice| v1::Notice {
            kind: notice.kind.as_str().into(),
            text: notice.text.clone(),
            advice: notice.kind.advice().into(),
        };
        let notices_told = notices.iter().map(told).collect();
        let found = daemon(&v1::StatusResponse { notices_told, ..v1::StatusResponse::default() });
        let notice = found.iter().find(|check| check.name == "notice").unwrap();
        assert!(notice.advice.contains("into [yarn] and restart"), "{notice:?}");
    }

    #[test]
    fn what_is_configured_already_is_no_advice() {
        let server = |source: &str, state: &str| v1::ServerView {
            source: source.into(),
            state: state.into(),
            in_use: true,
            ..v1::ServerView::default()
        };
        let advice = |servers: Vec<v1::ServerView>| {
            let age = |source: &str| v1::SourceAge { source: source.into(), ..v1::SourceAge::default() };
            let ages = vec![age("heartbeats"), age("blocks")];
            feeds(&v1::StatusResponse { servers, ages, ..v1::StatusResponse::default() })
                .into_iter()
                .map(|check| check.advice)
                .collect::<Vec<_>>()
        };
        let none = advice(vec![]);
        assert!(none[0].starts_with("Set [resource_manager]") && none[1].starts_with("Set [name_node]"), "{none:?}");
        let dead = advice(vec![server("resource_manager", "silent"), server("name_node", "silent")]);
        assert!(dead[0].starts_with("This follows from the finding resource_manager"), "{dead:?}");
        assert!(dead[1].starts_with("This follows from the finding name_node"), "{dead:?}");
        let alive = advice(vec![server("resource_manager", "answers")]);
        assert!(
            alive[0].contains("answers and names none yet") && alive[1].starts_with("Set [name_node]"),
            "{alive:?}"
        );
        let stale = v1::SourceAge { source: "heartbeats".into(), age_ms: Some(90_000), stale: true };
        let servers = vec![server("resource_manager", "answers")];
        let status = v1::StatusResponse { servers, ages: vec![stale], ..v1::StatusResponse::default() };
        let [stale] = &feeds(&status)[..] else { panic!("one finding a source") };
        assert_eq!(stale.verdict, Verdict::Problem);
        assert!(stale.advice.contains("has told nothing new of this since"), "{}", stale.advice);
    }

    #[test]
    fn a_controller_that_left_is_away_since_then_and_not_since_it_came() {
        let watcher = |attached, away_ms| v1::WatcherView {
            name: "ryu".into(),
            installs: true,
            state: "silent".into(),
            since_ms: 687_000,
            attached,
            away_ms,
            ..v1::WatcherView::default()
        };
        let check = controller(&watcher(false, Some(50_000)));
        assert_eq!(check.verdict, Verdict::Problem);
        assert!(
            check.finding.starts_with("ryu installs routes: disconnected for 50 s, silent before; "),
            "{}",
            check.finding
        );
        assert!(check.finding.contains("began to watch 687 s ago"), "{}", check.finding);
        assert!(!controller(&watcher(true, None)).finding.contains("disconnected"));
    }
}
