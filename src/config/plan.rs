//! `[plan]`: plans of recurring jobs, kept and followed.

use super::parse::{DAY, SECOND, micros};
use super::reader::{Reader, Section};
use crate::engine::PlanSettings;
use std::time::Duration;

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> PlanSettings {
    let mut section = root.section(reader, "plan");
    let settings = PlanSettings {
        // A planned rack that runs a minute late is no reason to leave it: elsewhere the shuffle would take as long.
        patience: micros(section.bounded(reader, "patience", 60 * SECOND, Duration::ZERO..=DAY)),
        // A month of days.
        kept_max: section.bounded(reader, "kept", 32, 1..=1_000),
    };
    section.finish(reader);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::units::Micros;

    #[test]
    fn plans_settings_can_be_set_and_reloaded() {
        let text = "[plan]\npatience = \"5s\"\nkept = 3\n";
        let (set, none) = (Config::from_text(text, "f").unwrap(), Config::from_text("", "f").unwrap());
        assert_eq!(set.options.settings.engine.plans, PlanSettings { patience: Micros::from_secs(5), kept_max: 3 });
        assert_eq!(none.options.settings.engine.plans, PlanSettings::default());
        assert_eq!(set.changes(&none).1, Vec::<String>::new(), "none needs a restart");
        let found = Config::from_text("[plan]\nkept = 0\n", "f").err().unwrap().0;
        assert!(found[0].to_string().contains("plan.kept: 0 is outside 1 to 1000"), "{found:?}");
    }
}
