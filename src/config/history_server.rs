//! The section of MapReduce's JobHistoryServer: `[history_server]`.

use super::parse::{HOUR, MINUTE, MS, SECOND};
use super::reader::{Reader, Section};
use super::sdn::authority;
use crate::hadoop::HistoryServerOptions;

/// Reads `[history_server]`; `None`: none is named.
pub(super) fn history_server(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<HistoryServerOptions> {
    let mut section = root.section(reader, "history_server");
    let urls = section.get(reader, "urls", Vec::<String>::new());
    let mut authorities = Vec::new();
    for url in &urls {
        match authority(url) {
            Some(found) if authorities.contains(&found) => {
                reader.problem(section.place("urls"), &section.key("urls"), format!("\"{url}\" is there twice"));
            }
            Some(found) => authorities.push(found),
            None => {
                let message = format!("\"{url}\" is no address, as in \"http://history:19888\"");
                reader.problem(section.place("urls"), &section.key("urls"), message);
            }
        }
    }
    let user = section.get(reader, "user", String::new());
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let message = format!("{user:?} is no user's name");
        reader.problem(section.place("user"), &section.key("user"), message);
    }
    let options = HistoryServerOptions {
        authorities,
        user,
        poll: section.bounded(reader, "poll", 30 * SECOND, SECOND..=HOUR),
        timeout: section.bounded(reader, "timeout", 10 * SECOND, 10 * MS..=MINUTE),
        backoff: section.bounded(reader, "backoff", 2 * MINUTE, SECOND..=HOUR),
        // A job in the list takes about 400 bytes, and its configuration 300 kB.
        answer_bytes: section.bounded(reader, "answer_bytes", 64 << 20, 4_096..=1 << 30),
        lookback: section.bounded(reader, "lookback", 7 * 24 * HOUR, MINUTE..=400 * 24 * HOUR),
        jobs_per_poll: section.bounded(reader, "jobs_per_poll", 100, 1..=10_000),
    };
    section.finish(reader);
    (!urls.is_empty()).then_some(options)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::time::Duration;

    #[test]
    fn history_servers_are_named_by_their_web_addresses() {
        let text = "[history_server]\nurls = [\"http://history:19888/\"]\npoll = \"5s\"\n";
        let found = Config::from_text(text, "f").unwrap().history_server.unwrap();
        assert_eq!(found.authorities, ["history:19888"]);
        assert_eq!((found.poll, found.jobs_per_poll), (Duration::from_secs(5), 100));
        assert!(Config::from_text("", "f").unwrap().history_server.is_none());
        let wrong = Config::from_text("[history_server]\nurls = [\"history\"]\n", "f").err().unwrap().to_string();
        assert!(wrong.starts_with("f:2: history_server.urls: \"history\" is no address"), "{wrong}");
    }
}
