//! DataNodes that others report as slow, as people read it.

use super::age;
use crate::output;
use hintd_client::wire::v1;

/// Hosts that are shown; of more the number.
const SHOWN: usize = 50;

/// A row for each report, or why there is none.
pub(super) fn text(answer: &v1::LatencyResponse) -> String {
    let v1::LatencyResponse { slow_peers, slow_peers_state: state, slow_peers_age_ms: told, .. } = answer;
    let told = told.map_or_else(String::new, |ms| format!(", asked {}", age(ms)));
    if slow_peers.is_empty() {
        return match state.as_str() {
            "on" => format!("no DataNode counts as slow{told}"),
            "off" => "the NameNode tells of no slow DataNodes: dfs.datanode.peer.stats.enabled is false, or Hadoop is too old".to_owned(),
            _ => "nobody told of slow DataNodes ([name_node] urls and slow_peers)".to_owned(),
        };
    }
    let rows = slow_peers.iter().take(SHOWN).map(|row| {
        let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{} ms", output::digits(ms)));
        let others = row.slowdown_of_host.map_or_else(|| "-".to_owned(), times);
        let since = output::age(row.age_ms);
        [
            row.slow.clone(),
            row.reporter.clone(),
            ms(row.reported_ms),
            ms(row.median_ms),
            times(row.slowdown),
            others,
            since,
        ]
    });
    let table = output::table(["slow", "reported by", "packets", "median", "raises", "to others", "for"], 2, rows);
    let more = match slow_peers.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("\n{more} reports more: --json has all"),
    };
    format!("DataNodes that others report as slow{told}\n{table}{more}")
}

fn times(times: f64) -> String {
    format!("× {}", output::digits(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_is_a_row_and_what_an_older_hadoop_does_not_say_is_left_open() {
        let row = |reporter: &str, reported_ms| v1::SlowPeerReport {
            slow: "w3".into(),
            reporter: reporter.into(),
            reported_ms,
            median_ms: reported_ms.map(|_| 1.5),
            slowdown: 8.25,
            slowdown_of_host: Some(3.0),
            age_ms: 90_000,
        };
        let answer = v1::LatencyResponse {
            slow_peers: vec![row("w1", Some(12.375)), row("w2", None)],
            slow_peers_state: "on".into(),
            slow_peers_age_ms: Some(2_000),
            ..Default::default()
        };
        let said = text(&answer);
        for words in ["asked 2 s ago", "w3", "w1", "w2", "1.5 ms", "× 8.25", "× 3", "-"] {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        let many = v1::LatencyResponse { slow_peers: vec![row("w1", None); SHOWN + 7], ..answer };
        assert!(text(&many).ends_with("7 reports more: --json has all"), "{}", text(&many));
    }

    #[test]
    fn why_there_is_none_is_said() {
        let said = |state: &str, age| {
            let state = state.to_owned();
            text(&v1::LatencyResponse { slow_peers_state: state, slow_peers_age_ms: age, ..Default::default() })
        };
        assert_eq!(said("on", Some(3_000)), "no DataNode counts as slow, asked 3 s ago");
        assert!(said("off", Some(3_000)).contains("dfs.datanode.peer.stats.enabled"));
        assert!(said("unknown", None).starts_with("nobody told of slow DataNodes"));
    }
}
