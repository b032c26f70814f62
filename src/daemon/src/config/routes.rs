//! `[routes]`: running flows, their routes, and what is expected of who installs them.

use super::reader::{Reader, Section};
use super::values::{DAY, HOUR, MINUTE, MS, SECOND};
use crate::times::micros;
use hintd_engine::RouteSettings;
use hintd_model::units::Bytes;
use std::time::Duration;

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> RouteSettings {
    let mut section = root.section(reader, "routes");
    let settings = RouteSettings {
        // What 10 Gbit/s carries in a millisecond: for less a rule is not worth its place.
        min_bytes: Bytes(section.bounded(reader, "min_bytes", 1 << 20, 0..=1 << 60)),
        // Hardware tables hold a few thousand.
        rules_per_switch: section.bounded(reader, "rules_per_switch", 2_000, 0..=100_000_000),
        changes_per_s: section.bounded(reader, "changes_per_s", 10_000, 1..=100_000_000),
        steps: section.bounded(reader, "steps", 2_000, 0..=1_000_000_000),
        pairs_max: section.bounded(reader, "pairs_max", 200_000, 0..=100_000_000),
        keep_flows: micros(section.bounded(reader, "keep_flows", MINUTE, Duration::ZERO..=DAY)),
        // A controller answers within a second; its switches may be slow.
        ack_timeout: micros(section.bounded(reader, "ack_timeout", 5 * SECOND, 10 * MS..=HOUR)),
        ack_tries: section.bounded(reader, "ack_tries", 3, 0..=1_000),
        updates_keep: section.bounded(reader, "updates_keep", 1_024, 0..=1_000_000),
        flaps: section.bounded(reader, "flaps", 4, 1..=1_000_000),
        within: micros(section.bounded(reader, "flaps_within", MINUTE, MS..=DAY)),
        hold: micros(section.bounded(reader, "flaps_hold", 30 * SECOND, Duration::ZERO..=DAY)),
        ..RouteSettings::default()
    };
    section.finish(reader);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use hintd_model::units::Micros;

    #[test]
    fn every_setting_of_routes_can_be_set_and_reloaded() {
        let text = "[routes]\nmin_bytes = 1\nrules_per_switch = 2\nchanges_per_s = 3\nsteps = 4\npairs_max = 5\n\
                    keep_flows = \"6s\"\nack_timeout = \"7s\"\nack_tries = 8\nupdates_keep = 9\nflaps = 10\n\
                    flaps_within = \"11s\"\nflaps_hold = \"12s\"\n";
        let set = Config::from_text(text, "f").unwrap();
        let expected = RouteSettings {
            min_bytes: Bytes(1),
            rules_per_switch: 2,
            changes_per_s: 3,
            steps: 4,
            pairs_max: 5,
            keep_flows: Micros::from_secs(6),
            ack_timeout: Micros::from_secs(7),
            ack_tries: 8,
            updates_keep: 9,
            flaps: 10,
            within: Micros::from_secs(11),
            hold: Micros::from_secs(12),
            ..RouteSettings::default()
        };
        assert_eq!(set.options.settings.engine.routes, expected);
        assert_eq!(Config::from_text("", "f").unwrap().options.settings.engine.routes, RouteSettings::default());
        assert_eq!(set.changes(&Config::from_text("", "f").unwrap()).1, Vec::<String>::new(), "none needs a restart");
        let found = Config::from_text("[routes]\nflaps = 0\nack_timeout = 5\n", "f").err().unwrap().0;
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found[0].contains("routes.flaps: 0 is outside"), "{found:?}");
        assert!(found[1].contains("routes.ack_timeout: the number 5 needs a unit"), "{found:?}");
    }
}
