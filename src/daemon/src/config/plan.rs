//! `[plan]`: plans of recurring jobs, kept, followed, and made by the daemon itself.

use super::reader::{Key, Reader, Section};
use super::values::{DAY, HOUR, MINUTE, SECOND, one_of};
use crate::runtime::options::{Planning, When};
use crate::times::micros;
use hintd_engine::PlanSettings;
use hintd_engine::prediction::PredictionSettings;
use hintd_model::cluster::Resource;
use hintd_model::units::{BitsPerSec, Micros};
use hintd_policy::plan::Objective;
use hintd_policy::registry;
use std::time::Duration;
use toml::de::DeValue;

/// Bits a second. No rack has less, and what is less is meant in another unit.
pub const UPLINK_MIN: u64 = 1_000_000;

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (PlanSettings, Planning) {
    let mut section = root.section(reader, "plan");
    let settings = PlanSettings {
        // A planned rack that runs a minute late is no reason to leave it: elsewhere the shuffle would take as long.
        patience: micros(section.bounded(reader, "patience", 60 * SECOND, Duration::ZERO..=DAY)),
        // A month of days.
        kept_max: section.bounded(reader, "kept", 32, 1..=1_000),
        follow: section.get(reader, "follow", true),
    };
    let at = section.get(reader, "at", Clock(None)).0;
    let every = section.bounded(reader, "every", Duration::ZERO, Duration::ZERO..=31 * DAY);
    if at.is_some() && !every.is_zero() {
        reader.problem(section.place("every"), &section.key("every"), "plan.at is set as well: one of both".to_owned());
    }
    if !every.is_zero() && every < SECOND {
        let message = "less than 1s: a plan is for hours".to_owned();
        reader.problem(section.place("every"), &section.key("every"), message);
    }
    let when = at.map(When::At).or_else(|| (!every.is_zero()).then(|| When::Every(micros(every))));
    let policy = section.get(reader, "policy", Planner("jobpacker")).0;
    let mut size = |key: &'static str| section.bounded(reader, key, 0_u64, 0..=1 << 30);
    let (memory, vcores) = (size("container_memory_mb"), size("container_vcores"));
    let uplink = section.bounded(reader, "uplink_bits_per_s", 0_u64, 0..=100_000_000_000_000);
    let planning = Planning {
        when,
        horizon: micros(section.bounded(reader, "horizon", DAY, MINUTE..=31 * DAY)),
        policy,
        objective: section.get(reader, "objective", Objective::Online),
        // A thousand jobs on twenty racks take half a minute at most, nearly all of it for forecasts.
        time: section.bounded(reader, "time", 2 * MINUTE, SECOND..=HOUR),
        // Nobody follows what nobody reviewed, unless the operator says so.
        activate: section.get(reader, "activate", false),
        unit: (memory > 0).then(|| Resource::new(memory, vcores)),
        uplink: (uplink > 0).then_some(BitsPerSec(uplink)),
        prediction: PredictionSettings {
            zone_offset_s: section.get(reader, "utc_offset", Offset(0)).0,
            ..PredictionSettings::default()
        },
    };
    if (1..UPLINK_MIN).contains(&uplink) {
        let message = format!("{uplink} is less than a megabit a second: 10 Gbit/s are 10000000000");
        reader.problem(section.place("uplink_bits_per_s"), &section.key("uplink_bits_per_s"), message);
    }
    if vcores > 0 && memory == 0 {
        let message = "goes with plan.container_memory_mb".to_owned();
        reader.problem(section.place("container_vcores"), &section.key("container_vcores"), message);
    }
    section.finish(reader);
    (settings, planning)
}

/// Time of day; "": never.
#[derive(Clone)]
struct Clock(Option<Micros>);

impl Key for Clock {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value)?;
        if text.is_empty() {
            return Ok(Self(None));
        }
        hours(&text)
            .filter(|seconds| *seconds < 86_400)
            .map(|seconds| Self(Some(Micros::from_secs(seconds))))
            .ok_or_else(|| format!("\"{text}\" is no time of day as \"02:00\""))
    }
}

/// The cluster's clock against UTC, seconds.
#[derive(Clone)]
struct Offset(i64);

impl Key for Offset {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        utc_offset(&String::read(value)?).map(Self)
    }
}

/// A clock's offset against UTC, seconds: `+01:00`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn utc_offset(text: &str) -> Result<i64, String> {
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("-", rest)) => (-1, rest),
        Some(("+", rest)) => (1, rest),
        _ => (1, text),
    };
    let seconds = hours(rest).filter(|seconds| *seconds <= 14 * 3_600);
    seconds.map(|seconds| sign * seconds as i64).ok_or_else(|| format!("\"{text}\" is no offset as \"+01:00\""))
}

/// Seconds of `HH:MM`.
fn hours(text: &str) -> Option<u64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| if text.len() == 2 { text.parse::<u64>().ok() } else { None };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some(hours * 3_600 + minutes * 60)
}

/// A policy that plans.
#[derive(Clone)]
struct Planner(&'static str);

impl Key for Planner {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value)?;
        let found = registry::find(&text).ok_or_else(|| format!("there is no policy \"{text}\""))?;
        let plans = registry::with_defaults(found.name).is_some_and(|policy| policy.as_plan().is_some());
        if plans { Ok(Self(found.name)) } else { Err(format!("\"{text}\" does not plan")) }
    }
}

impl Key for Objective {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        one_of(value, &[("batch", Self::Batch), ("online", Self::Online)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn plans_settings_can_be_set_and_reloaded() {
        let text = "[plan]\npatience = \"5s\"\nkept = 3\nfollow = false\nat = \"02:30\"\nhorizon = \"12h\"\npolicy = \"corral\"\n\
                    objective = \"batch\"\ntime = \"5s\"\nactivate = true\nutc_offset = \"-05:00\"\ncontainer_memory_mb = 2048\n\
                    container_vcores = 2\nuplink_bits_per_s = 1000000000\n";
        let (set, none) = (Config::from_text(text, "f").unwrap(), Config::from_text("", "f").unwrap());
        let plans = PlanSettings { patience: Micros::from_secs(5), kept_max: 3, follow: false };
        assert_eq!(set.options.settings.engine.plans, plans);
        assert_eq!(none.options.settings.engine.plans, PlanSettings::default());
        let planning = set.options.settings.planning.clone();
        assert_eq!((planning.when, planning.policy), (Some(When::At(Micros::from_secs(9_000))), "corral"));
        assert_eq!((planning.horizon, planning.objective), (Micros::from_secs(43_200), Objective::Batch));
        assert_eq!((planning.time, none.options.settings.planning.time), (5 * SECOND, 2 * MINUTE));
        assert_eq!((planning.activate, planning.unit), (true, Some(Resource::new(2_048, 2))));
        assert_eq!((planning.uplink, none.options.settings.planning.uplink), (Some(BitsPerSec(1_000_000_000)), None));
        assert_eq!(planning.prediction.zone_offset_s, -18_000);
        let planning = &none.options.settings.planning;
        assert_eq!((planning.when, planning.activate, planning.policy), (None, false, "jobpacker"));
        assert_eq!(set.changes(&none).1, Vec::<String>::new(), "none needs a restart");
    }

    #[test]
    fn what_makes_no_sense_is_said_by_key() {
        for (text, words) in [
            ("time = \"10ms\"", "plan.time"),
            ("kept = 0", "plan.kept: 0 is outside 1 to 1000"),
            ("at = \"25:00\"", "no time of day"),
            ("at = \"2:00\"", "no time of day"),
            ("policy = \"fair\"", "\"fair\" does not plan"),
            ("policy = \"jobpaker\"", "there is no policy"),
            ("utc_offset = \"+19:00\"", "no offset"),
            ("every = \"5ms\"", "less than 1s"),
            ("every = \"1h\"\nat = \"02:00\"", "one of both"),
            ("uplink_bits_per_s = 10", "plan.uplink_bits_per_s: 10 is less than a megabit a second"),
            ("container_vcores = 1", "goes with plan.container_memory_mb"),
        ] {
            let found = Config::from_text(&format!("[plan]\n{text}\n"), "f").err().unwrap().0;
            assert!(found[0].to_string().contains(words), "{text}: {found:?}");
        }
    }
}
