//! Metrics: names, types, and labels with their values, from the metrics pages of all stories' daemons, and the other
//! pages at that address.

use crate::programs::{Daemon, page};
use std::collections::BTreeSet;

/// Labels whose values are not ours, or others with each release.
const DATA_LABELS: [&str; 2] = ["server", "version"];

/// The lines of the list.
pub(crate) fn lines(pages: &[String]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for page in pages {
        for line in page.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("# ") {
                Some(comment) if comment.starts_with("TYPE ") => {
                    lines.insert(comment.replacen("TYPE ", "metric ", 1));
                }
                Some(_) => {}
                None => lines.extend(series(line)),
            }
        }
    }
    lines
}

/// The labels of a sample with their values. Sums and counts of histograms are skipped: their buckets have the same.
fn series(line: &str) -> Vec<String> {
    let Some((name, rest)) = line.split_once('{') else {
        return Vec::new();
    };
    let (labels, _) = rest.rsplit_once('}').unwrap_or_else(|| panic!("{line}"));
    if name.ends_with("_sum") || name.ends_with("_count") {
        return Vec::new();
    }
    let pairs = labels.split("\",").map(|pair| pair.trim_end_matches('"').split_once("=\"").unwrap());
    let shown = |(label, value): (&str, &str)| {
        format!("label {name} {label}={}", if DATA_LABELS.contains(&label) { "*" } else { value })
    };
    pairs.map(shown).collect()
}

/// The pages with status and headers, and answers to other methods and paths.
pub(crate) fn pages() -> Vec<String> {
    let daemon = Daemon::start("");
    let asked = [
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("HEAD", "/healthz"),
        ("POST", "/metrics"),
        ("GET", "/"),
    ];
    let shown = |(method, path): (&str, &str)| {
        let (head, body) = page(daemon.metrics(), method, path);
        let status = head.lines().next().unwrap().trim_start_matches("HTTP/1.1 ").to_owned();
        let wanted = |line: &&str| line.starts_with("content-type") || line.starts_with("allow");
        let more: Vec<&str> = head.lines().filter(wanted).collect();
        let body = if path.ends_with('z') { body.trim() } else { "" };
        format!("page {method} {path}: {status}, {} {body}", more.join(", ")).trim_end().to_owned()
    };
    asked.into_iter().map(shown).collect()
}
