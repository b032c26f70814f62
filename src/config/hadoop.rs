//! The section of Hadoop's own servers: `[resource_manager]`.

use super::parse::{HOUR, MINUTE, MS, SECOND};
use super::reader::{Reader, Section};
use super::sdn::authority;
use crate::hadoop::ResourceManagerOptions;
use std::time::Duration;

/// Reads `[resource_manager]`; `None`: none is named.
pub(super) fn resource_manager(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<ResourceManagerOptions> {
    let mut section = root.section(reader, "resource_manager");
    let urls = section.get(reader, "urls", Vec::<String>::new());
    let mut authorities = Vec::new();
    for url in &urls {
        match authority(url) {
            Some(found) if authorities.contains(&found) => {
                reader.problem(section.place("urls"), &section.key("urls"), format!("\"{url}\" is there twice"));
            }
            Some(found) => authorities.push(found),
            None => {
                let message = format!("\"{url}\" is no address, as in \"http://rm1:8088\"");
                reader.problem(section.place("urls"), &section.key("urls"), message);
            }
        }
    }
    let user = section.get(reader, "user", String::new());
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let message = format!("{user:?} is no user's name");
        reader.problem(section.place("user"), &section.key("user"), message);
    }
    let options = ResourceManagerOptions {
        authorities,
        user,
        // A NodeManager reports once a second.
        poll: section.bounded(reader, "poll", SECOND, 100 * MS..=10 * MINUTE),
        timeout: section.bounded(reader, "timeout", 5 * SECOND, 10 * MS..=MINUTE),
        backoff: section.bounded(reader, "backoff", 15 * SECOND, SECOND..=10 * MINUTE),
        // A node takes about 1.5 kB.
        answer_bytes: section.bounded(reader, "answer_bytes", 64 << 20, 4_096..=1 << 30),
        unheard_kept: section.bounded(reader, "unheard_kept", 10 * MINUTE, Duration::ZERO..=24 * HOUR),
        absent_kept: section.bounded(reader, "absent_kept", MINUTE, Duration::ZERO..=24 * HOUR),
    };
    section.finish(reader);
    (!urls.is_empty()).then_some(options)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::time::Duration;

    #[test]
    fn resource_managers_are_named_by_their_web_addresses() {
        let text = "[resource_manager]\nurls = [\"http://rm1:8088\", \"http://rm2:8088/\"]\npoll = \"2s\"\n";
        let found = Config::from_text(text, "f").unwrap().resource_manager.unwrap();
        assert_eq!(found.authorities, ["rm1:8088", "rm2:8088"]);
        assert_eq!((found.poll, found.absent_kept), (Duration::from_secs(2), Duration::from_secs(60)));
        assert!(Config::from_text("", "f").unwrap().resource_manager.is_none());
    }

    #[test]
    fn what_is_no_address_is_named_by_its_line() {
        let problem = |text: &str| {
            let found = Config::from_text(&format!("[resource_manager]\n{text}\n"), "f").err().expect("refused");
            found.to_string()
        };
        let found = problem("urls = [\"rm1:8088\"]");
        assert!(found.starts_with("f:2: resource_manager.urls: \"rm1:8088\" is no address"), "{found}");
        assert!(problem("urls = [\"http://a:1\", \"http://a:1/\"]").contains("is there twice"));
        assert!(problem("user = \"a b\"").contains("is no user's name"));
    }
}
