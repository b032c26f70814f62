//! Servers that the daemon asks, as `hintctl status` shows them.

use super::output;
use hintd_client::wire::v1;

/// A table, and below it what those said that gave no good answer; empty: nobody is asked.
#[must_use]
pub fn text(servers: &[v1::ServerView]) -> String {
    if servers.is_empty() {
        return String::new();
    }
    let rows = servers.iter().map(|server| {
        let heard = server.heard_ms.map_or_else(|| "never".to_owned(), output::age);
        let used = if server.in_use { "in use" } else { "" };
        [server.source.clone(), server.address.clone(), used.to_owned(), state(server), heard]
    });
    let mut lines = vec![output::table(["server", "", "", "state", "good answer"], 4, rows)];
    let wrong = servers.iter().filter(|server| !server.error.is_empty());
    lines.extend(wrong.map(|server| {
        let advice = if server.advice.is_empty() { String::new() } else { format!("\n  {}", server.advice) };
        format!("{} {}: {}{advice}", server.source, server.address, server.error)
    }));
    lines.join("\n")
}

fn state(server: &v1::ServerView) -> String {
    let since = output::age(server.since_ms);
    let state = match server.state.as_str() {
        "answers" => "answers".to_owned(),
        "standby" => "standby".to_owned(),
        "not_asked" => "not asked".to_owned(),
        "safe_mode" => format!("in safe mode for {since}"),
        "busy" => format!("too busy for {since}"),
        "wrong_answer" => format!("answers wrongly for {since}"),
        _ => format!("no good answer for {}", server.heard_ms.map_or(since, output::age)),
    };
    // Of who is not in use nobody knows how it is now.
    match server.asked_ms {
        Some(asked) if !server.in_use => format!("{state}, asked {} ago", output::age(asked)),
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_stands_there_with_its_state_and_what_went_wrong_last() {
        let server = |address: &str, state: &str| v1::ServerView {
            source: "name_node".into(),
            address: address.into(),
            state: state.into(),
            in_use: state != "standby",
            since_ms: 61_000,
            heard_ms: Some(65_000),
            asked_ms: Some(2_000),
            error: if state == "answers" { String::new() } else { format!("it is {state}") },
            advice: if state == "silent" { "Start it.".into() } else { String::new() },
        };
        let shown = text(&["a standby", "b silent", "c answers", "d wrong_answer"].map(|row| {
            let (name, state) = row.split_once(' ').unwrap();
            server(&format!("http://{name}:1"), state)
        }));
        let expected = "\
server                         state                     good answer
name_node  http://a:1          standby, asked 2 s ago           65 s
name_node  http://b:1  in use  no good answer for 65 s          65 s
name_node  http://c:1  in use  answers                          65 s
name_node  http://d:1  in use  answers wrongly for 61 s         65 s
name_node http://a:1: it is standby
name_node http://b:1: it is silent
  Start it.
name_node http://d:1: it is wrong_answer";
        assert_eq!(shown, expected);
        assert_eq!(text(&[]), "");
        assert_eq!(serde_json::json!(server("http://b:1", "silent"))["error"], "it is silent");
    }
}
