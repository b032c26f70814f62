//! Settings of `[hold]`, within the bounds that the daemon's configuration has.

use super::super::failure::Failure;
use clap::Args;
use hintd_engine::holding::HoldSettings;
use hintd_model::units::Micros;

/// How receivers of heavy shuffles are held, where they are.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Held receivers")]
pub(crate) struct HoldArgs {
    /// Heavy shuffles that may ask at a time (hold.at_once) [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hold_at_once: Option<u32>,
    /// A shuffle is heavy if its bytes take longer over its links together (hold.heavy) [default: 2000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    hold_heavy_ms: Option<u64>,
    /// The part of the cluster's containers that receivers of the first heavy shuffle may hold (hold.share) [default: 0.25]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    hold_share: Option<f64>,
    /// The same of a home rack's containers, for jobs that stay there (hold.home_share) [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    hold_home_share: Option<f64>,
    /// Of the share of the one before it in the order, what the next one may hold (hold.next_share) [default: 0.25]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    hold_next_share: Option<f64>,
    /// Who has waited so long counts as having half of its bytes left (hold.patience) [default: 600]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    hold_patience_s: Option<u64>,
    /// Nobody is held for longer (hold.longest) [default: 3600]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    hold_longest_s: Option<u64>,
}

impl HoldArgs {
    /// With defaults for what was not given.
    pub(crate) fn settings(&self) -> HoldSettings {
        let usual = HoldSettings::default();
        HoldSettings {
            at_once: self.hold_at_once.unwrap_or(usual.at_once),
            heavy: self.hold_heavy_ms.map_or(usual.heavy, Micros::from_millis),
            share: self.hold_share.unwrap_or(usual.share),
            home_share: self.hold_home_share.unwrap_or(usual.home_share),
            next_share: self.hold_next_share.unwrap_or(usual.next_share),
            patience: self.hold_patience_s.map_or(usual.patience, Micros::from_secs),
            longest: self.hold_longest_s.map_or(usual.longest, Micros::from_secs),
        }
    }

    /// What was given, option and value.
    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |value: Option<u64>| value.map(|value| value.to_string());
        let share = |value: Option<f64>| value.map(|value| value.to_string());
        let all = [
            ("--hold-at-once", self.hold_at_once.map(|value| value.to_string())),
            ("--hold-heavy-ms", text(self.hold_heavy_ms)),
            ("--hold-share", share(self.hold_share)),
            ("--hold-home-share", share(self.hold_home_share)),
            ("--hold-next-share", share(self.hold_next_share)),
            ("--hold-patience-s", text(self.hold_patience_s)),
            ("--hold-longest-s", text(self.hold_longest_s)),
        ];
        all.into_iter().filter_map(|(option, value)| Some((option, value?)))
    }

    /// As they were given.
    pub(crate) fn words(&self) -> Vec<String> {
        self.given().map(|(option, value)| format!("{option} {value}")).collect()
    }

    /// Refuses a setting of what is not asked for; `wants`: what would be asked.
    ///
    /// # Errors
    /// [`Failure::Input`] naming the option.
    pub(crate) fn has_a_use(&self, holds: bool, wants: &str) -> Result<(), Failure> {
        match self.given().next() {
            Some((option, _)) if !holds => Err(Failure::Input(format!("{option} is for {wants}"))),
            _ => Ok(()),
        }
    }
}

/// How receivers are held, in words.
pub(crate) fn describe(hold: &HoldSettings) -> String {
    let HoldSettings { at_once, heavy, share, home_share, next_share, patience, longest } = hold;
    format!(
        "{at_once} heavy shuffles at once, heavy from {} s, {share} of the containers for the first, {home_share} of a home rack's, \
         {next_share} of that for the next, patience {} s, held for {} s at most",
        heavy.as_secs_f64(),
        patience.as_secs_f64(),
        longest.as_secs_f64()
    )
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.001..=1.0).contains(&value) { Ok(value) } else { Err("must lie between 0.001 and 1".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        hold: HoldArgs,
    }

    fn parsed(args: &[&str]) -> Result<HoldArgs, clap::Error> {
        Command::try_parse_from([&["hintctl"], args].concat()).map(|command| command.hold)
    }

    #[test]
    fn what_is_given_is_set_and_shown_and_the_rest_is_as_the_daemon_has_it() {
        let none = parsed(&[]).unwrap();
        assert_eq!((none.settings(), none.words().len()), (HoldSettings::default(), 0));
        let args = [
            ["--hold-at-once", "3"],
            ["--hold-heavy-ms", "500"],
            ["--hold-share", "0.4"],
            ["--hold-home-share", "1"],
            ["--hold-next-share", "0.3"],
            ["--hold-patience-s", "60"],
            ["--hold-longest-s", "900"],
        ];
        let all = parsed(&args.concat()).unwrap();
        let [at_once, share, home_share, next_share] = [3.0, 0.4, 1.0, 0.3];
        let expected = HoldSettings {
            at_once: at_once as u32,
            heavy: Micros::from_millis(500),
            share,
            home_share,
            next_share,
            patience: Micros::from_secs(60),
            longest: Micros::from_secs(900),
        };
        assert_eq!(all.settings(), expected);
        assert_eq!(all.words(), args.map(|pair| pair.join(" ")));
        let words = describe(&expected);
        for part in [
            "3 heavy",
            "0.5 s",
            "0.4 of the containers",
            "1 of a home rack's",
            "0.3 of that",
            "patience 60 s",
            "900 s at most",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_configuration_and_a_use_is_asked_for() {
        for (option, least, most, beyond) in [
            ("--hold-at-once", "1", "10000", ["0", "10001"]),
            ("--hold-heavy-ms", "1", "3600000", ["0", "3600001"]),
            ("--hold-share", "0.001", "1", ["0.0009", "1.01"]),
            ("--hold-home-share", "0.001", "1", ["0", "nan"]),
            ("--hold-next-share", "0.001", "1", ["0", "1.01"]),
            ("--hold-patience-s", "1", "86400", ["0", "86401"]),
            ("--hold-longest-s", "1", "86400", ["0", "86401"]),
        ] {
            for value in [least, most] {
                let given = parsed(&[option, value]).unwrap();
                let Err(Failure::Input(problem)) = given.has_a_use(false, "--hold") else { panic!("{option}") };
                assert_eq!(problem, format!("{option} is for --hold"));
                assert!(given.has_a_use(true, "--hold").is_ok());
            }
            for value in beyond {
                assert!(parsed(&[option, value]).is_err(), "{option} {value}");
            }
        }
    }
}
