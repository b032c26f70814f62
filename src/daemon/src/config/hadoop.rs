//! The sections of Hadoop's own servers and of Spark's: `[resource_manager]`, `[name_node]`, `[history_server]` and
//! `[spark_history_server]`.

use super::reader::{Reader, Section};
use super::urls::{asks_nobody, wrong_url};
use super::values::{HOUR, MINUTE, MS, SECOND};
use crate::hadoop::{
    HistoryServerOptions, NameNodeOptions, PathCacheSettings, ResourceManagerOptions, ServerOptions, SlowPeerOptions,
};
use crate::rest_client::{Address, Trust};
use hintd_model::cluster::SizeRules;
use hintd_model::units::Micros;
use std::path::PathBuf;
use std::time::Duration;

/// Reads `[resource_manager]`; `None`: none is named. `stated` are the sizes of `[yarn]`, where the file has that section.
pub(super) fn resource_manager(
    root: &mut Section<'_>,
    reader: &mut Reader<'_>,
    stated: Option<SizeRules>,
) -> Option<ResourceManagerOptions> {
    let mut section = root.section(reader, "resource_manager");
    // A NodeManager reports once a second; a node takes about 1.5 kB.
    let manner = ServerDefaults {
        poll: SECOND,
        poll_min: 100 * MS,
        timeout: 5 * SECOND,
        backoff: 15 * SECOND,
        answer_bytes: 64 << 20,
    };
    let servers = servers(&mut section, reader, "http://rm1:8088", &manner);
    let applications = section.bounded(reader, "applications", 5 * SECOND, Duration::ZERO..=10 * MINUTE);
    let options = ResourceManagerOptions {
        servers,
        unheard_kept: section.bounded(reader, "unheard_kept", 10 * MINUTE, Duration::ZERO..=24 * HOUR),
        absent_kept: section.bounded(reader, "absent_kept", MINUTE, Duration::ZERO..=24 * HOUR),
        applications: (!applications.is_zero()).then_some(applications),
        stated,
    };
    section.finish(reader);
    (!options.servers.addresses.is_empty()).then_some(options)
}

/// Reads `[name_node]`; `None`: none is named.
pub(super) fn name_node(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<NameNodeOptions> {
    let mut section = root.section(reader, "name_node");
    // 1,000 blocks of a page take about 2 MB, a row of a directory 0.4 kB.
    let manner = ServerDefaults {
        poll: 10 * SECOND,
        poll_min: 100 * MS,
        timeout: 5 * SECOND,
        backoff: 15 * SECOND,
        answer_bytes: 16 << 20,
    };
    let servers = servers(&mut section, reader, "http://nn1:9870", &manner);
    let path_cache = PathCacheSettings {
        paths: section.bounded(reader, "paths", 10_000, 1..=1_000_000),
        blocks: section.bounded(reader, "blocks", 1_000_000, 1..=100_000_000),
        // Replicas move when a DataNode is lost or the balancer runs.
        fresh: section.bounded(reader, "fresh", 5 * MINUTE, SECOND..=24 * HOUR),
        refused_fresh: section.bounded(reader, "refused_fresh", 10 * SECOND, MS..=24 * HOUR),
        kept: section.bounded(reader, "kept", HOUR, SECOND..=7 * 24 * HOUR),
    };
    // DataNodes report every 30 minutes; a NameNode keeps what they said for three times as long.
    let slow_peers = section.bounded(reader, "slow_peers", MINUTE, Duration::ZERO..=HOUR);
    let kept = section.bounded(reader, "slow_peers_kept", 10 * MINUTE, SECOND..=24 * HOUR);
    if slow_peers > kept {
        let message =
            format!("{}s is less than name_node.slow_peers, {}s", kept.as_secs_f64(), slow_peers.as_secs_f64());
        reader.problem(section.place("slow_peers_kept"), &section.key("slow_peers_kept"), message);
    }
    let kept = Micros(u64::try_from(kept.as_micros()).unwrap_or(u64::MAX));
    let options = NameNodeOptions {
        servers,
        slow_peers: (!slow_peers.is_zero()).then_some(SlowPeerOptions { every: slow_peers, kept }),
        // A directory of some files is there in less where the NameNode is not busy.
        wait: section.bounded(reader, "wait", 50 * MS, Duration::ZERO..=MINUTE),
        parallel: section.bounded(reader, "parallel", 8, 1..=256),
        files_per_path: section.bounded(reader, "files_per_path", 10_000, 1..=1_000_000),
        blocks_per_path: section.bounded(reader, "blocks_per_path", 100_000, 1..=10_000_000),
        path_cache,
    };
    if options.blocks_per_path > path_cache.blocks {
        let message = format!("{} is more than name_node.blocks, {}", options.blocks_per_path, path_cache.blocks);
        reader.problem(section.place("blocks_per_path"), &section.key("blocks_per_path"), message);
    }
    section.finish(reader);
    (!options.servers.addresses.is_empty()).then_some(options)
}

/// Reads `[history_server]`; `None`: none is named.
pub(super) fn history_server(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<HistoryServerOptions> {
    // A job in the list takes about 400 bytes, and its configuration 300 kB.
    history(root.section(reader, "history_server"), reader, "http://history:19888", ("jobs_per_poll", 10 * SECOND))
}

/// Reads `[spark_history_server]`; `None`: none is named.
pub(super) fn spark_history_server(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<HistoryServerOptions> {
    // An application in the list takes about 450 bytes, an executor 2 kB. The first question about an application makes
    // the server read its event log.
    let section = root.section(reader, "spark_history_server");
    history(section, reader, "http://history:18080", ("applications_per_poll", 30 * SECOND))
}

/// Reads the section of a history server, with the key of how much is looked at in a poll, and how long an answer takes.
fn history(
    mut section: Section<'_>,
    reader: &mut Reader<'_>,
    example: &str,
    (per_poll, timeout): (&'static str, Duration),
) -> Option<HistoryServerOptions> {
    let manner =
        ServerDefaults { poll: 30 * SECOND, poll_min: SECOND, timeout, backoff: 2 * MINUTE, answer_bytes: 64 << 20 };
    let servers = servers(&mut section, reader, example, &manner);
    let options = HistoryServerOptions {
        servers,
        lookback: section.bounded(reader, "lookback", 7 * 24 * HOUR, MINUTE..=400 * 24 * HOUR),
        jobs_per_poll: section.bounded(reader, per_poll, 100, 1..=10_000),
    };
    section.finish(reader);
    (!options.servers.addresses.is_empty()).then_some(options)
}

/// How servers of a kind are asked unless the file says otherwise.
struct ServerDefaults {
    poll: Duration,
    poll_min: Duration,
    timeout: Duration,
    backoff: Duration,
    answer_bytes: usize,
}

/// Whom to ask, whom to trust, as whom, and how patiently.
fn servers(
    section: &mut Section<'_>,
    reader: &mut Reader<'_>,
    example: &str,
    manner: &ServerDefaults,
) -> ServerOptions {
    let mut addresses = Vec::new();
    for url in section.get(reader, "urls", Vec::<String>::new()) {
        let problem = match Address::parse(&url) {
            Some(found) if addresses.contains(&found) => format!("\"{url}\" is there twice"),
            Some(found) => match asks_nobody(&found) {
                Some(why) => format!("\"{url}\": {why}"),
                None => {
                    addresses.push(found);
                    continue;
                }
            },
            None => wrong_url(&url, example),
        };
        reader.problem(section.place("urls"), &section.key("urls"), problem);
    }
    let ca_file = section.get(reader, "ca_file", String::new());
    let ca_file: Option<PathBuf> = (!ca_file.is_empty()).then(|| ca_file.into());
    // Here and not at the start: a check, or a reload, of what can't start has to say so.
    if let Some(Err(error)) = ca_file.as_deref().map(|file| Trust::read(Some(file))) {
        reader.problem(section.place("ca_file"), &section.key("ca_file"), error.to_string());
    }
    let user = section.get(reader, "user", String::new());
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let message = format!("{user:?} is no user's name");
        reader.problem(section.place("user"), &section.key("user"), message);
    }
    ServerOptions {
        addresses,
        ca_file,
        user,
        poll: section.bounded(reader, "poll", manner.poll, manner.poll_min..=HOUR),
        timeout: section.bounded(reader, "timeout", manner.timeout, 10 * MS..=MINUTE),
        backoff: section.bounded(reader, "backoff", manner.backoff, SECOND..=HOUR),
        answer_bytes: section.bounded(reader, "answer_bytes", manner.answer_bytes, 4_096..=1 << 30),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::time::Duration;

    #[test]
    fn resource_managers_are_named_by_their_web_addresses() {
        let text = "[resource_manager]\nurls = [\"http://rm1:8088\", \"https://rm2:8090/\"]\npoll = \"2s\"\n";
        let found = Config::from_text(text, "f").unwrap().resource_manager.unwrap();
        let shown: Vec<String> = found.servers.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["http://rm1:8088", "https://rm2:8090"]);
        assert_eq!((found.servers.poll, found.absent_kept), (Duration::from_secs(2), Duration::from_secs(60)));
        assert_eq!((found.applications, found.stated), (Some(Duration::from_secs(5)), None));
        assert!(Config::from_text("", "f").unwrap().resource_manager.is_none());
        let stated = format!("{text}applications = \"0s\"\n[yarn]\nminimum_memory_mb = 512\n");
        let found = Config::from_text(&stated, "f").unwrap().resource_manager.unwrap();
        assert_eq!((found.applications, found.stated.map(|rules| rules.minimum.memory_mb())), (None, Some(512)));
    }

    #[test]
    fn name_nodes_are_named_by_their_web_addresses() {
        let text = "[name_node]\nurls = [\"http://nn1:9870\", \"http://nn2:9870\"]\nuser = \"hdfs\"\nwait = \"0s\"\n";
        let found = Config::from_text(text, "f").unwrap().name_node.unwrap();
        assert_eq!(
            (found.servers.addresses.len(), found.servers.user.as_str(), found.wait),
            (2, "hdfs", Duration::ZERO)
        );
        assert!(Config::from_text("", "f").unwrap().name_node.is_none());
        let found = Config::from_text("[name_node]\nblocks = 10\n", "f").err().expect("refused").to_string();
        assert!(found.contains("name_node.blocks_per_path: 100000 is more than name_node.blocks, 10"), "{found}");
        let urls = "[name_node]\nurls = [\"http://nn1:9870\"]\n";
        let slow_peers = |text: &str| {
            Config::from_text(&format!("{urls}{text}"), "f").map(|found| found.name_node.unwrap().slow_peers)
        };
        let found = slow_peers("").unwrap().unwrap();
        assert_eq!((found.every.as_secs(), found.kept.as_millis()), (60, 600_000));
        assert!(slow_peers("slow_peers = \"0s\"\n").unwrap().is_none());
        let found = slow_peers("slow_peers = \"20m\"\n").expect_err("refused").to_string();
        assert!(found.contains("name_node.slow_peers_kept: 600s is less than name_node.slow_peers, 1200s"), "{found}");
    }

    #[test]
    fn history_servers_are_named_by_their_web_addresses() {
        let text = "[history_server]\nurls = [\"https://history:19890/\"]\npoll = \"5s\"\n";
        let found = Config::from_text(text, "f").unwrap().history_server.unwrap();
        assert_eq!(found.servers.addresses[0].to_string(), "https://history:19890");
        assert_eq!((found.servers.poll, found.jobs_per_poll), (Duration::from_secs(5), 100));
        assert!(Config::from_text("", "f").unwrap().history_server.is_none());
        let text = "[spark_history_server]\nurls = [\"http://history:18080\"]\napplications_per_poll = 7\n";
        let found = Config::from_text(text, "f").unwrap().spark_history_server.unwrap();
        assert_eq!((found.servers.timeout, found.jobs_per_poll), (Duration::from_secs(30), 7));
        assert!(Config::from_text("", "f").unwrap().spark_history_server.is_none());
        let wrong = text.replace("applications", "jobs");
        let wrong = Config::from_text(&wrong, "f").err().unwrap().to_string();
        assert!(wrong.contains("spark_history_server.jobs_per_poll"), "{wrong}");
        let wrong = Config::from_text("[history_server]\nurls = [\"history\"]\n", "f").err().unwrap().to_string();
        assert!(wrong.starts_with("f:2: history_server.urls: \"history\" is not a valid URL"), "{wrong}");
    }

    #[test]
    fn what_is_no_address_is_named_by_its_line() {
        let problem = |text: &str| {
            let found = Config::from_text(&format!("[resource_manager]\n{text}\n"), "f").err().expect("refused");
            found.to_string()
        };
        let found = problem("urls = [\"rm1:8088\"]");
        assert!(found.starts_with("f:2: resource_manager.urls: \"rm1:8088\" is not a valid URL"), "{found}");
        assert!(problem("urls = [\"http://a:1\", \"http://a:1/\"]").contains("is there twice"));
        let found = problem("urls = [\"http://${RM}:8088\", \"http://0.0.0.0:8088\"]");
        assert!(
            found.contains("f:2: resource_manager.urls: \"http://${RM}:8088\": its host is a placeholder"),
            "{found}"
        );
        assert!(
            found.contains("f:2: resource_manager.urls: \"http://0.0.0.0:8088\": a server listens at it"),
            "{found}"
        );
        assert!(problem("user = \"a b\"").contains("is no user's name"));
        let found = problem("urls = [\"http://ann:hunter2@rm1:8088/x\"]");
        assert!(!found.contains("hunter2") && found.contains("it names a user, it has a path"), "{found}");
        let found = problem("urls = [\"ann:hunter2@rm1:8088\"]");
        assert!(!found.contains("hunter2") && found.contains("\"(left out)@rm1:8088\""), "{found}");
        // A URL that was put elsewhere is told with the value, and still without its password.
        let found = problem("poll = \"http://ann:hunter2@rm1:8088\"");
        assert!(!found.contains("hunter2") && found.contains("http://(left out)@rm1:8088"), "{found}");
        let found = problem("poll = \"2s\"\npoll = \"3s\"");
        assert_eq!(found, "f:3: poll: duplicate key");
        let found = problem("ca_file = \"/nonexistent/ca.pem\"");
        assert!(found.starts_with("f:2: resource_manager.ca_file: /nonexistent/ca.pem: "), "{found}");
    }
}
