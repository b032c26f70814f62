//! `[rebalance]`: moves of running containers, proposed to their applications.

use super::reader::{Reader, Section};
use super::records::Share;
use super::values::{DAY, HOUR, MINUTE, MS};
use crate::times::micros;
use hintd_engine::RebalanceSettings;
use hintd_policy::Policy;
use std::sync::Arc;

/// Reads the section; with it, where `latency` stands.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (RebalanceSettings, usize) {
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
    let latency = section.place("latency");
    section.finish(reader);
    (settings, latency)
}

/// Moves that are looked for by latency must be possible: a configuration by which none ever is, is a mistake in numbers.
pub(super) fn check<'p>(
    (settings, at): (RebalanceSettings, usize),
    policies: impl Iterator<Item = (&'static str, &'p Arc<dyn Policy>)>,
    reader: &mut Reader<'_>,
) {
    if !settings.enabled || !settings.latency {
        return;
    }
    for (name, policy) in policies {
        let by_latency = policy.as_rebalance().filter(|rebalance| rebalance.reads_roots());
        let never = by_latency.and_then(|of| of.never_moves(settings.least_ran(), settings.gain_min()));
        if let Some(why) = never {
            let message = format!("no move under [policies.{name}] could ever be proposed: {why}");
            reader.problem(at, "rebalance.latency", message);
        }
    }
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
        let every = "[rebalance]\nenabled = true\nlatency = true\nevery = \"15m\"\n";
        assert!(Config::from_text(every, "f").is_ok(), "each quarter of an hour moves can be told by default");
        let found = Config::from_text("[rebalance]\nmin_gain = 2\nmoves_per_round = 0\n", "f").err().unwrap().0;
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found[0].contains("no share from 0 to 1"), "{found:?}");
        assert!(found[1].contains("rebalance.moves_per_round: 0 is outside 1 to 100000"), "{found:?}");
    }

    #[test]
    fn where_no_move_by_latency_could_ever_come_the_file_is_refused_with_the_numbers() {
        let text = |latency: bool, every: &str, beta: f64| {
            format!(
                "[policies.nomora]\nmigrate_beta = {beta:?}\n[rebalance]\nenabled = true\nevery = \"{every}\"\nlatency = {latency}\n"
            )
        };
        let refused = |text: &str| {
            let found = Config::from_text(text, "f").err().map(|found| found.0).unwrap_or_default();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let expected = "f:6: rebalance.latency: no move under [policies.nomora] could ever be proposed: by curve \"memcached\" a \
                        move saves at most 525 of 625, and having run for 900 s counts 900 of that (migrate_beta 1): a gain of \
                        -0.600, and min_gain is 0.1";
        assert_eq!(refused(&text(true, "15m", 1.0)), [expected]);
        assert_eq!(refused(&text(true, "24h", 0.01)).len(), 1, "by default with a round a day");
        for possible in [text(false, "15m", 1.0), text(true, "15m", 0.0), text(true, "7m", 1.0)] {
            assert_eq!(refused(&possible), [""; 0], "{possible}");
        }
    }
}
