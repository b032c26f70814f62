//! `[rebalance]`: moves of running containers, proposed to their applications.

use super::reader::{Reader, Section};
use super::records::Share;
use super::values::{DAY, HOUR, MINUTE, MS, micros};
use hintd_engine::RebalanceSettings;

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> RebalanceSettings {
    let mut section = root.section(reader, "rebalance");
    let settings = RebalanceSettings {
        // A move costs a task its work so far: nobody is to be surprised by such advice.
        enabled: section.get(reader, "enabled", false),
        latency: section.get(reader, "latency", false),
        every: micros(section.bounded(reader, "every", MINUTE, 100 * MS..=DAY)),
        gain_min_per_million: section.get(reader, "min_gain", Share(100_000)).0,
        moves_per_round: section.bounded(reader, "moves_per_round", 16, 1..=100_000),
        moves_per_application: section.bounded(reader, "moves_per_application", 4, 1..=100_000),
        // Most tasks run for less: who moves once has mostly moved for good.
        cool_down: micros(section.bounded(reader, "cool_down", 10 * MINUTE, MS..=24 * HOUR)),
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
    fn every_setting_of_rebalancing_can_be_set_and_reloaded_and_by_default_it_is_off() {
        let text = "[rebalance]\nenabled = true\nlatency = true\nevery = \"2s\"\nmin_gain = 0.25\nmoves_per_round = 3\n\
                    moves_per_application = 1\ncool_down = \"4s\"\n";
        let (set, none) = (Config::from_text(text, "f").unwrap(), Config::from_text("", "f").unwrap());
        let expected = RebalanceSettings {
            enabled: true,
            latency: true,
            every: Micros::from_secs(2),
            gain_min_per_million: 250_000,
            moves_per_round: 3,
            moves_per_application: 1,
            cool_down: Micros::from_secs(4),
        };
        assert_eq!(set.options.settings.engine.rebalance, expected);
        assert_eq!(none.options.settings.engine.rebalance, RebalanceSettings::default());
        assert_eq!(set.changes(&none).1, Vec::<String>::new(), "none needs a restart");
        let found = Config::from_text("[rebalance]\nmin_gain = 2\nmoves_per_round = 0\n", "f").err().unwrap().0;
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found[0].contains("no share from 0 to 1"), "{found:?}");
        assert!(found[1].contains("rebalance.moves_per_round: 0 is outside 1 to 100000"), "{found:?}");
    }
}
