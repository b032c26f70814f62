//! `[latency]`: how measured round trips are read, and what agents that measure them are told.

use super::reader::{Reader, Section};
use super::values::{MINUTE, MS, SECOND};
use crate::runtime::options::LatencyFeed;
use hintd_model::network::latency::LatencySettings;
use hintd_model::network::latency::probes::Fanout;

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (LatencySettings, LatencyFeed) {
    let mut section = root.section(reader, "latency");
    let (default, fanout) = (LatencySettings::default(), Fanout::default());
    let settings = LatencySettings {
        quantile: section.bounded(reader, "quantile", default.quantile, 0.0..=1.0),
        pairs: section.bounded(reader, "pairs", default.pairs, 0..=10_000_000),
        pairs_per_host: section.bounded(reader, "pairs_per_host", default.pairs_per_host, 0..=100_000),
        ..default
    };
    let feed = LatencyFeed {
        // Fifty times what an agent sends: room for another tool on the same host.
        items_per_s: section.bounded(reader, "items_per_s", 200, 0..=1_000_000),
        fanout: Fanout {
            in_rack: section.bounded(reader, "in_rack", fanout.in_rack, 0..=1_000),
            between_racks: section.bounded(reader, "between_racks", fanout.between_racks, 0..=1_000),
            across: section.bounded(reader, "across", fanout.across, 0..=1_000),
        },
        // Twenty packets a second and host, and five values of a path in each report.
        interval: section.bounded(reader, "interval", SECOND, 10 * MS..=MINUTE),
        report: section.bounded(reader, "report", 5 * SECOND, 100 * MS..=MINUTE),
    };
    section.finish(reader);
    (settings, feed)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use hintd_model::units::Micros;
    use std::time::Duration;

    #[test]
    fn every_setting_of_latency_can_be_set_and_reloaded_and_its_age_is_that_of_its_source() {
        let text = "[latency]\nquantile = 1\npairs = 7\npairs_per_host = 3\nitems_per_s = 9\nin_rack = 1\nbetween_racks = 2\n\
                    across = 3\ninterval = \"50ms\"\nreport = \"200ms\"\n[model.max_age]\nlatency = \"5s\"\n";
        let (set, none) = (Config::from_text(text, "f").unwrap(), Config::from_text("", "f").unwrap());
        let settings = &set.options.settings;
        let read = settings.engine.latency();
        assert_eq!((read.quantile, read.pairs, read.pairs_per_host, read.max_age), (1.0, 7, 3, Micros::from_secs(5)));
        let feed = settings.latency;
        assert_eq!((feed.fanout.in_rack, feed.fanout.between_racks, feed.fanout.across), (1, 2, 3));
        assert_eq!((feed.interval, feed.report), (Duration::from_millis(50), Duration::from_millis(200)));
        let bounds = settings.latency_bounds();
        assert_eq!((bounds.items_per_s, bounds.max_age), (9, Micros::from_secs(5)));
        assert_eq!(set.changes(&none).1, Vec::<String>::new(), "none needs a restart");
        let found = Config::from_text("[latency]\nquantile = 1.5\nin_rack = 1001\n", "f").err().unwrap().0;
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found[0].contains("latency.quantile: 1.5 is outside 0 to 1"), "{found:?}");
        assert!(found[1].contains("latency.in_rack: 1001 is outside 0 to 1000"), "{found:?}");
    }
}
