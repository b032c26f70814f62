//! `[page]`: the operator's page, on the metrics listener.

use super::reader::{Reader, Section};
use super::values::{DAY, HOUR, MINUTE};
use crate::runtime::page::PageOptions;
use std::net::SocketAddr;

/// Reads the section; `None`: the page is off. `metrics`: where the listener is that would serve it.
pub(super) fn read(
    root: &mut Section<'_>,
    reader: &mut Reader<'_>,
    metrics: Option<SocketAddr>,
) -> Option<PageOptions> {
    let mut section = root.section(reader, "page");
    // It shows names of applications, users' queues and hosts: nobody is to be surprised by it.
    let enabled = section.get(reader, "enabled", false);
    let options = PageOptions {
        sessions: section.bounded(reader, "sessions", 16, 1..=256),
        session_time: section.bounded(reader, "session_time", 12 * HOUR, MINUTE..=7 * DAY),
        // Of the listener's 32 connections; a scrape finds a place whatever browsers do.
        streams: section.bounded(reader, "streams", 16, 1..=24),
    };
    let trouble = match metrics {
        None => Some("true, and listen.metrics is off: the page is served there".to_owned()),
        Some(address) if !address.ip().is_loopback() && !address.ip().is_unspecified() => Some(format!(
            "true, and listen.metrics is {address}: without TLS the page is for browsers of the same machine only, at a \
             loopback address or 0.0.0.0"
        )),
        Some(_) => None,
    };
    if let Some(message) = trouble.filter(|_| enabled) {
        reader.problem(section.place("enabled"), &section.key("enabled"), message);
    }
    section.finish(reader);
    enabled.then_some(options)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn refused(text: &str) -> String {
        Config::from_text(text, "f").err().expect("refused").to_string()
    }

    #[test]
    fn the_page_is_off_until_it_is_switched_on_and_needs_a_listener_on_this_machine() {
        assert_eq!(Config::from_text("", "f").unwrap().page, None);
        let on = Config::from_text("[page]\nenabled = true\nstreams = 3\n", "f").unwrap();
        assert_eq!(on.page.map(|page| (page.streams, page.sessions)), Some((3, 16)));
        assert_eq!(on.changes(&Config::from_text("", "f").unwrap()).1, ["page.enabled", "page.streams"]);
        let off = refused("[listen]\nmetrics = \"\"\n[page]\nenabled = true\n");
        assert_eq!(off, "f:4: page.enabled: true, and listen.metrics is off: the page is served there");
        let far = refused("[listen]\nmetrics = \"10.0.0.1:9470\"\ninsecure_bind = true\n[page]\nenabled = true\n");
        assert!(far.starts_with("f:5: page.enabled: true, and listen.metrics is 10.0.0.1:9470"), "{far}");
        assert!(refused("[page]\nstreams = 25\n").contains("25 is outside 1 to 24"));
    }
}
