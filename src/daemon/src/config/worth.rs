//! The section `[worth]`: who is held out, and when that tells something.

use super::reader::{Reader, Section};
use hintd_engine::WorthSettings;
use std::ops::RangeInclusive;

/// More than half held out is no comparison but a switch: `mode` is that.
pub(super) const SHARES: RangeInclusive<f64> = 0.0..=0.5;

/// Reads `[worth]`: the share of queues that name none, and all but the queues' own shares.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (f64, WorthSettings) {
    let mut section = root.section(reader, "worth");
    let defaults = WorthSettings::default();
    let holdout = section.bounded(reader, "holdout", 0.0, SHARES);
    let settings = WorthSettings {
        seed: section.get(reader, "seed", defaults.seed),
        runs: section.bounded(reader, "runs", defaults.runs, 2..=100_000),
        margin: section.bounded(reader, "margin", defaults.margin, 0.0..=1.0),
        keys: section.bounded(reader, "keys", defaults.keys, 1..=1_000_000),
        holdout: defaults.holdout,
    };
    section.finish(reader);
    (holdout, settings)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::collections::BTreeMap;

    #[test]
    fn a_queue_holds_out_its_own_share_or_that_of_all() {
        let shares = |text: &str| {
            let settings = Config::from_text(text, "f").unwrap().options.settings.engine.worth;
            settings.holdout.iter().map(|(queue, share)| (queue.to_string(), *share)).collect::<BTreeMap<_, _>>()
        };
        let of = |pairs: &[(&str, f64)]| pairs.iter().map(|(queue, share)| ((*queue).to_owned(), *share)).collect();
        assert_eq!(shares(""), of(&[("*", 0.0)]));
        assert_eq!(shares("[worth]\nholdout = 0.1\n"), of(&[("*", 0.1)]));
        let text = "[worth]\nholdout = 0.1\n[queues.etl]\nholdout = 0.5\n[queues.\"*\"]\n[queues.live]\nholdout = 0\n";
        assert_eq!(shares(text), of(&[("*", 0.1), ("etl", 0.5), ("live", 0.0)]));
        // Queues that get no hints hold nobody out, and are not shown as if they did.
        let text = "[worth]\nholdout = 0.1\n[queues.off]\nmode = \"off\"\n[queues.try]\nmode = \"shadow\"\nholdout = 0.5\n[queues.live]\n";
        assert_eq!(shares(text), of(&[("live", 0.1), ("off", 0.0), ("try", 0.0)]));
    }

    #[test]
    fn what_is_no_share_is_refused_by_its_value() {
        for (value, said) in [
            ("0.6", "0.6 is outside 0 to 0.5"),
            ("-1", "-1 is outside 0 to 0.5"),
            ("\"x\"", "a number is wanted, and this is the text \"x\""),
            ("nan", "nan is no finite number"),
        ] {
            for (section, key) in [("[worth]", "worth.holdout"), ("[queues.q]", "queues.q.holdout")] {
                let text = format!("{section}\nholdout = {value}\n");
                let found = Config::from_text(&text, "f").err().expect("refused").to_string();
                assert_eq!(found, format!("f:2: {key}: {said}"));
            }
        }
    }
}
