//! `[limits]`: what is refused beyond. docs/limits.md has every limit, of this section and of others, in one table.

use super::reader::{Reader, Section};
use super::values::{DAY, HOUR, MS, SECOND};
use crate::runtime::RequestLimits;
use crate::runtime::options::WatchLimits;
use crate::runtime::registries::RegistryLimits;
use std::time::Duration;

/// Sizes and rates, before they go to who holds them.
pub(super) struct Limits {
    pub(super) message_bytes: usize,
    pub(super) inbound_bytes: usize,
    pub(super) outbound_bytes: usize,
    pub(super) upload: Duration,
    pub(super) unread: Duration,
    pub(super) read_bytes_per_s: u64,
    pub(super) header_bytes: u32,
    pub(super) connections: usize,
    pub(super) greeting: Duration,
    pub(super) streams: usize,
    pub(super) streams_per_connection: usize,
    pub(super) requests_per_s: u32,
    pub(super) requests_at_once: u32,
    pub(super) log_lines_per_s: u32,
    pub(super) leases: usize,
    pub(super) answers: usize,
    pub(super) answers_kept_bytes: usize,
    pub(super) attempts: usize,
    pub(super) requests_per_attempt: usize,
    pub(super) requests_kept_bytes: usize,
    pub(super) attempt_silence: Duration,
    pub(super) attempt_jump: u32,
    pub(super) decisions_watched: usize,
    pub(super) containers_seen: usize,
    pub(super) follow_messages: usize,
    pub(super) watch: WatchLimits,
    pub(super) request: RequestLimits,
    pub(super) feeds: RegistryLimits,
}

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Limits {
    let mut section = root.section(reader, "limits");
    let limits = Limits {
        message_bytes: section.bounded(reader, "message_bytes", 16 << 20, 4_096..=1 << 30),
        // Sixteen of the longest messages, twice over: once as they arrive, once as they are read.
        inbound_bytes: section.bounded(reader, "inbound_bytes", 256 << 20, 65_536..=1 << 40),
        outbound_bytes: section.bounded(reader, "outbound_bytes", 256 << 20, 65_536..=1 << 40),
        // The longest message at 4.5 Mbit/s.
        upload: section.bounded(reader, "upload", 30 * SECOND, 100 * MS..=HOUR),
        // As long as keepalive gives a peer that falls silent.
        unread: section.bounded(reader, "unread", 30 * SECOND, 100 * MS..=HOUR),
        // 4 Mbit/s, about what limits.upload asks of the longest message.
        read_bytes_per_s: section.bounded(reader, "read_bytes_per_s", 512 << 10, 0..=1 << 30),
        // HTTP/2 libraries' own default.
        header_bytes: section.bounded(reader, "header_bytes", 16_384, 1_024..=1 << 20),
        // One for each running application of a large cluster; descriptors are allowed for six times as many.
        connections: section.bounded(reader, "connections", 10_000, 1..=1_000_000),
        // A client greets with its first packet; a slow network loses a few of them.
        greeting: section.bounded(reader, "greeting", 10 * SECOND, 100 * MS..=HOUR),
        streams: section.bounded(reader, "streams", 20_000, 1..=1_000_000),
        streams_per_connection: section.bounded(reader, "streams_per_connection", 256, 1..=65_536),
        // Far above any ApplicationMaster that means what it asks, below what one loop can do.
        requests_per_s: section.bounded(reader, "requests_per_s", 1_000, 0..=1_000_000),
        // An eighth of the placer's queue: an ApplicationMaster has one or two under way.
        requests_at_once: section.bounded(reader, "requests_at_once", 128, 0..=1_000_000),
        // A request has one line or two: far more than who reads them can follow, and no flood.
        log_lines_per_s: section.bounded(reader, "log_lines_per_s", 20, 0..=1_000_000),
        leases: section.bounded(reader, "leases", 500_000, 1..=100_000_000),
        answers: section.bounded(reader, "answers", 200_000, 1..=100_000_000),
        // As many as limits.answers of the usual size; in memory a third of it.
        answers_kept_bytes: section.bounded(reader, "answers_kept_bytes", 512 << 20, 65_536..=1 << 40),
        attempts: section.bounded(reader, "attempts", 20_000, 1..=10_000_000),
        // Longer than a job's tasks run without a word where nodes name no containers; 0: never.
        attempt_silence: section.bounded(reader, "attempt_silence", HOUR, Duration::ZERO..=30 * DAY),
        // YARN counts attempts from 1, and gives up after a few; services that reset their count come to some dozens.
        attempt_jump: section.bounded(reader, "attempt_jump", 100, 1..=1_000_000),
        requests_per_attempt: section.bounded(reader, "requests_per_attempt", 64, 1..=100_000),
        // Some 100,000 of the usual size.
        requests_kept_bytes: section.bounded(reader, "requests_kept_bytes", 256 << 20, 65_536..=1 << 40),
        decisions_watched: section.bounded(reader, "decisions_watched", 20_000, 1..=10_000_000),
        containers_seen: section.bounded(reader, "containers_seen", 1_000_000, 1..=1_000_000_000),
        follow_messages: section.bounded(reader, "follow_messages", 1_024, 1..=1_000_000),
        watch: WatchLimits {
            pairs: section.bounded(reader, "watched_pairs", 200_000, 0..=100_000_000),
            // Half: who takes all it may leaves others as much.
            pairs_per_peer: section.bounded(reader, "watched_pairs_per_peer", 100_000, 0..=100_000_000),
            watchers: section.bounded(reader, "watchers", 256, 1..=65_536),
        },
        request: request(&mut section, reader),
        feeds: feeds(&mut section, reader),
    };
    section.finish(reader);
    limits
}

fn request(section: &mut Section<'_>, reader: &mut Reader<'_>) -> RequestLimits {
    let default = RequestLimits::default();
    RequestLimits {
        containers: section.bounded(reader, "containers_per_request", default.containers, 1..=10_000_000),
        groups: section.bounded(reader, "groups_per_request", default.groups, 1..=65_536),
        asks: section.bounded(reader, "asks_per_request", default.asks, 1..=10_000_000),
        edges: section.bounded(reader, "edges_per_request", default.edges, 0..=1_000_000),
        paths: section.bounded(reader, "paths_per_request", default.paths, 0..=1_000_000),
        avoid: section.bounded(reader, "avoid_per_request", default.avoid, 0..=1_000_000),
        text_bytes: section.bounded(reader, "text_bytes", default.text_bytes, 64..=1 << 20),
        name_bytes: section.bounded(reader, "name_bytes", default.name_bytes, 64..=65_536),
        answer_bytes: section.bounded(reader, "answer_bytes", default.answer_bytes, 4_096..=1 << 30),
    }
}

fn feeds(section: &mut Section<'_>, reader: &mut Reader<'_>) -> RegistryLimits {
    let default = RegistryLimits::default();
    RegistryLimits {
        nodes: section.bounded(reader, "nodes", default.nodes, 1..=1_000_000),
        datasets: section.bounded(reader, "datasets", default.datasets, 0..=100_000_000),
        blocks: section.bounded(reader, "blocks", default.blocks, 0..=1_000_000_000),
        links: section.bounded(reader, "links", default.links, 1..=100_000_000),
        containers_per_node: section.bounded(reader, "containers_per_node", default.containers_per_node, 1..=1_000_000),
        containers: section.bounded(reader, "containers", default.containers, 1..=1_000_000_000),
        feed_names_bytes: section.bounded(reader, "feed_names_bytes", default.feed_names_bytes, 65_536..=1 << 40),
        replicas: section.bounded(reader, "replicas", default.replicas, 0..=10_000_000_000),
        names_per_node: section.bounded(reader, "names_per_node", default.names_per_node, 1..=65_536),
        replicas_per_block: section.bounded(reader, "replicas_per_block", default.replicas_per_block, 1..=65_536),
        paths_per_event: section.bounded(reader, "paths_per_event", default.paths_per_event, 0..=1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::collections::BTreeMap;

    const PAGE: &str = include_str!("../../../../docs/limits.md");
    const SHIPPED: &str = include_str!("../../../../config/hintd.toml");
    const EDGES: &str = include_str!("../../../../tests/daemon/limits.rs");

    /// One row of the page: key, default, least and most as written, whether a restart is needed.
    struct Row<'p> {
        key: &'p str,
        default: String,
        range: String,
        restart: bool,
    }

    fn rows() -> Vec<Row<'static>> {
        let cells = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
        let row = |cells: Vec<&'static str>| {
            let key = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            let plain = |cell: &str| cell.replace([',', '`'], "");
            Some(Row { key, default: plain(cells[2]), range: plain(cells[3]), restart: cells[4] == "restart" })
        };
        PAGE.lines().map(cells).filter_map(row).collect()
    }

    /// What the shipped file says, by dotted key, as written.
    fn shipped() -> BTreeMap<String, String> {
        let mut section = "";
        let mut found = BTreeMap::new();
        for line in SHIPPED.lines() {
            if let Some((name, _)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                section = name;
            } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
                found.insert(format!("{section}.{key}"), value.trim_matches('"').to_owned());
            }
        }
        found
    }

    fn problem(key: &str, value: &str) -> Option<String> {
        let (section, name) = key.rsplit_once('.').unwrap();
        let text = format!("[{section}]\n{name} = {value}\n");
        let problems = Config::from_text(&text, "f").err()?.0;
        problems.into_iter().map(|problem| problem.message).find(|message| message.contains("is outside"))
    }

    #[test]
    fn the_page_has_every_limit_with_the_shipped_value() {
        let (rows, shipped) = (rows(), shipped());
        for row in &rows {
            assert_eq!(shipped.get(row.key), Some(&row.default), "{}", row.key);
        }
        for key in shipped.keys().filter(|key| key.starts_with("limits.")) {
            assert!(rows.iter().any(|row| row.key == key), "docs/limits.md lacks {key}");
        }
        // Who is asked, and how often and patiently, bounds nothing.
        let manner = ["urls", "ca_file", "user", "poll", "timeout", "backoff", "applications"];
        for key in shipped.keys() {
            let Some((section, name)) = key.split_once('.') else { continue };
            let asked = ["resource_manager", "name_node", "history_server", "spark_history_server"].contains(&section);
            let there = rows.iter().any(|row| row.key == key);
            assert!(!asked || there || manner.contains(&name), "docs/limits.md lacks {key}");
        }
    }

    #[test]
    fn the_page_says_what_each_limit_may_be_and_what_needs_a_restart() {
        for Row { key, range, restart, .. } in rows() {
            assert_eq!(crate::config::parse::needs_restart(key), restart, "{key}");
            let most = range.rsplit(' ').next().unwrap();
            let beyond = most.parse::<u64>().map_or_else(|_| "\"1000000h\"".to_owned(), |most| (most + 1).to_string());
            let message = problem(key, &beyond).unwrap_or_else(|| panic!("{key} takes {beyond}"));
            assert!(message.ends_with(&format!("is outside {range}")), "{key}: the page says {range}: {message}");
        }
    }

    #[test]
    fn the_limits_that_the_page_calls_tested_have_a_test() {
        for Row { key, .. } in rows() {
            let (section, name) = key.rsplit_once('.').unwrap();
            let tested = EDGES.contains(&format!("\"{name} = ")) || EDGES.contains(&format!("// {key}:"));
            assert!(tested, "tests/daemon/limits.rs sets no {section}.{name}, nor says where it is tested");
        }
    }
}
