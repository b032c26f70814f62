//! How the ResourceManager's scheduler sizes containers (`/conf`, `/ws/v1/cluster/scheduler`), read; no I/O.
//!
//! The resource calculator stands in capacity-scheduler.xml, which neither shows: it is known only where yarn-site.xml or
//! the scheduler itself (Fair, Fifo) says it.

use super::resource_manager::{BadAnswer, SHOWN, json, list, shape};
use crate::notice::{Notice, NoticeKind};
use crate::runtime::setup::{ConfSeen, Delays};
use hintd_model::cluster::{Calculator, Resource, SizeRules};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The ResourceManager's configuration; JSON where `Accept` asks for it.
pub const CONF: &str = "/conf?format=json";

/// The scheduler's state.
pub const SCHEDULER: &str = "/ws/v1/cluster/scheduler";

/// What was said of the scheduler's settings; `None`: not said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedulerSeen {
    /// Its class, without the package.
    pub class: String,
    /// What it looks at.
    pub calculator: Option<Calculator>,
    /// Smallest container, MB and vcores.
    pub minimum: [Option<u64>; 2],
    /// Steps of sizes.
    pub increment: [Option<u64>; 2],
    /// Largest container.
    pub maximum: [Option<u64>; 2],
    /// How long it waits for hosts and racks: only where yarn-site.xml says it.
    pub delays: Delays,
    /// Whether hintd's processor is among those that are named; `None`: none are.
    pub names_processor: Option<bool>,
}

/// Which processors pass ApplicationMasters' requests, in yarn-site.xml.
const PROCESSORS: &str = "yarn.resourcemanager.application-master-service.processors";
/// hintd's.
const PROCESSOR: &str = "io.hintd.rm.HintProcessor";

/// The answer to [`CONF`].
///
/// # Errors
/// [`BadAnswer`].
pub fn conf(body: &[u8]) -> Result<SchedulerSeen, BadAnswer> {
    #[derive(Deserialize)]
    struct Property {
        key: String,
        value: Option<String>,
    }
    let answer = json(body)?;
    let rows = answer.get("properties").ok_or_else(|| BadAnswer::Shape("no properties".to_owned()))?;
    let mut properties = BTreeMap::new();
    for row in list(rows, "property")? {
        let Property { key, value } = Property::deserialize(row).map_err(shape)?;
        properties.insert(key, value.unwrap_or_default());
    }
    let text = |key: &str| properties.get(key).map(|value| value.trim()).filter(|value| !value.is_empty());
    let class = text("yarn.resourcemanager.scheduler.class").unwrap_or_default();
    let class = class.rsplit('.').next().unwrap_or_default().to_owned();
    let both = |memory: &str, vcores: &str| [text(memory).and_then(amount), text(vcores).and_then(amount)];
    let minimum = both("yarn.scheduler.minimum-allocation-mb", "yarn.scheduler.minimum-allocation-vcores");
    let increment = if class == "FairScheduler" {
        let named = both(
            "yarn.resource-types.memory-mb.increment-allocation",
            "yarn.resource-types.vcores.increment-allocation",
        );
        let old = both("yarn.scheduler.increment-allocation-mb", "yarn.scheduler.increment-allocation-vcores");
        [named[0].or(old[0]).or(Some(1_024)), named[1].or(old[1]).or(Some(1))]
    } else {
        minimum // the other schedulers round up to multiples of the minimum
    };
    let calculator = text("yarn.scheduler.capacity.resource-calculator");
    let calculator = match class.as_str() {
        "FifoScheduler" => Some(Calculator::Default),
        "CapacityScheduler" => calculator.map(|class| {
            if class.ends_with("DominantResourceCalculator") { Calculator::Dominant } else { Calculator::Default }
        }),
        "FairScheduler" => Some(Calculator::Dominant), // it fits nodes by everything, whatever shares are made of
        _ => None,
    };
    let maximum = both("yarn.scheduler.maximum-allocation-mb", "yarn.scheduler.maximum-allocation-vcores");
    // What is no number is not known: the scheduler itself would not start with it.
    let delay = |key: &str| text(key).and_then(|value| value.parse().ok());
    let delays = Delays {
        node: delay("yarn.scheduler.capacity.node-locality-delay"),
        rack_additional: delay("yarn.scheduler.capacity.rack-locality-additional-delay"),
    };
    let names_processor = text(PROCESSORS).map(|all| all.split(',').any(|class| class.trim() == PROCESSOR));
    Ok(SchedulerSeen { class, calculator, minimum, increment, maximum, delays, names_processor })
}

/// The answer to [`SCHEDULER`]: the largest container it allocates now, where it says so.
///
/// # Errors
/// [`BadAnswer`].
pub fn maximum(body: &[u8]) -> Result<[Option<u64>; 2], BadAnswer> {
    let answer = json(body)?;
    let info =
        answer.pointer("/scheduler/schedulerInfo").ok_or_else(|| BadAnswer::Shape("no schedulerInfo".to_owned()))?;
    let part =
        |name: &str| info.get("maximumAllocation").and_then(|most| most.get(name)).and_then(serde_json::Value::as_u64);
    Ok([part("memory"), part("vCores")])
}

/// "1024", "1024 Mi", "2Gi".
fn amount(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "" | "Mi" | "M" => Some(number),
        "Gi" | "G" => number.checked_mul(1_024),
        _ => None,
    }
}

impl SchedulerSeen {
    /// What status shows of it.
    #[must_use]
    pub fn shown(&self) -> ConfSeen {
        let scheduler = self.class.chars().take(SHOWN).collect();
        ConfSeen { scheduler, delays: self.delays, names_processor: self.names_processor }
    }

    /// Takes what the scheduler itself says of its largest container.
    pub fn effective(&mut self, maximum: [Option<u64>; 2]) {
        self.maximum = [maximum[0].or(self.maximum[0]), maximum[1].or(self.maximum[1])];
    }

    /// These settings, and those in force where nothing was said.
    #[must_use]
    pub fn rules(&self, in_force: &SizeRules) -> SizeRules {
        let pair = |seen: [Option<u64>; 2], known: Resource| {
            Resource::new(seen[0].unwrap_or(known.memory_mb()), seen[1].unwrap_or(known.vcores()))
        };
        SizeRules {
            calculator: self.calculator.unwrap_or(in_force.calculator),
            minimum: pair(self.minimum, in_force.minimum),
            increment: pair(self.increment, in_force.increment),
            maximum: pair(self.maximum, in_force.maximum),
        }
    }

    /// Where the configuration states otherwise, in words.
    #[must_use]
    pub fn differences(&self, stated: &SizeRules) -> Vec<Notice> {
        let differs = |words: String| Notice::new(NoticeKind::SchedulerDiffers, words);
        let mut differ = Vec::new();
        if let Some(seen) = self.calculator
            && seen != stated.calculator
        {
            let word = |calculator| if calculator == Calculator::Dominant { "dominant" } else { "default" };
            let (ours, theirs) = (word(stated.calculator), word(seen));
            let words = format!("yarn.resource_calculator is \"{ours}\", and the ResourceManager's is \"{theirs}\"");
            differ.push(differs(words));
        }
        for (name, seen, stated) in [
            ("minimum", self.minimum, stated.minimum),
            ("increment", self.increment, stated.increment),
            ("maximum", self.maximum, stated.maximum),
        ] {
            for (kind, seen, stated) in
                [("memory_mb", seen[0], stated.memory_mb()), ("vcores", seen[1], stated.vcores())]
            {
                if let Some(seen) = seen.filter(|seen| *seen != stated) {
                    let words = format!("yarn.{name}_{kind} is {stated}, and the ResourceManager's is {seen}");
                    differ.push(differs(words));
                }
            }
        }
        differ
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(properties: &[(&str, &str)]) -> SchedulerSeen {
        let row =
            |(key, value): &(&str, &str)| format!("{{\"key\":\"{key}\",\"value\":\"{value}\",\"isFinal\":false}}");
        let rows: Vec<String> = properties.iter().map(row).collect();
        conf(format!("{{\"properties\":[{}]}}", rows.join(",")).as_bytes()).unwrap()
    }

    const CLASS: &str = "yarn.resourcemanager.scheduler.class";

    #[test]
    fn the_capacity_scheduler_rounds_to_its_minimum_and_does_not_say_its_calculator() {
        let seen = of(&[
            (CLASS, "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"),
            ("yarn.scheduler.minimum-allocation-mb", "256"),
            ("yarn.scheduler.minimum-allocation-vcores", "1"),
            ("yarn.scheduler.maximum-allocation-mb", "1536"),
        ]);
        assert_eq!((seen.class.as_str(), seen.calculator), ("CapacityScheduler", None));
        assert_eq!((seen.minimum, seen.increment), ([Some(256), Some(1)], [Some(256), Some(1)]));
        let rules = seen.rules(&SizeRules { calculator: Calculator::Dominant, ..SizeRules::default() });
        assert_eq!((rules.calculator, rules.maximum), (Calculator::Dominant, Resource::new(1_536, 4)));
        let stated = SizeRules { minimum: Resource::new(256, 1), ..SizeRules::default() };
        let differences = |stated: &SizeRules| {
            let notices = seen.differences(stated);
            notices.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            differences(&stated),
            [
                "yarn.increment_memory_mb is 1024, and the ResourceManager's is 256",
                "yarn.maximum_memory_mb is 8192, and the ResourceManager's is 1536"
            ]
        );
        assert_eq!(differences(&rules), [""; 0]);
    }

    #[test]
    fn delays_and_the_processor_are_known_where_yarn_site_says_them() {
        let shown = of(&[
            (CLASS, "a.b.CapacityScheduler"),
            ("yarn.scheduler.capacity.node-locality-delay", " 40 "),
            ("yarn.scheduler.capacity.rack-locality-additional-delay", "-1"),
            (PROCESSORS, "com.example.Other, io.hintd.rm.HintProcessor"),
        ])
        .shown();
        let delays = Delays { node: Some(40), rack_additional: Some(-1) };
        assert_eq!(shown, ConfSeen { scheduler: "CapacityScheduler".into(), delays, names_processor: Some(true) });
        assert_eq!(of(&[(PROCESSORS, "com.example.Other")]).names_processor, Some(false));
        let silent = of(&[("yarn.scheduler.capacity.node-locality-delay", "soon")]);
        assert_eq!((silent.delays, silent.names_processor), (Delays::default(), None), "nothing is guessed");
    }

    #[test]
    fn the_fair_scheduler_has_steps_of_its_own() {
        let fair = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler";
        assert_eq!(of(&[(CLASS, fair)]).increment, [Some(1_024), Some(1)]);
        let named = of(&[(CLASS, fair), ("yarn.resource-types.memory-mb.increment-allocation", "2Gi")]);
        assert_eq!((named.increment, named.calculator), ([Some(2_048), Some(1)], Some(Calculator::Dominant)));
    }

    #[test]
    fn what_the_scheduler_says_of_its_maximum_counts_more() {
        let text = r#"{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","maximumAllocation":{"memory":512,"vCores":2}}}}"#;
        let mut seen = of(&[("yarn.scheduler.maximum-allocation-mb", "1536")]);
        seen.effective(maximum(text.as_bytes()).unwrap());
        assert_eq!(seen.maximum, [Some(512), Some(2)]);
        let silent = maximum(br#"{"scheduler":{"schedulerInfo":{"type":"fifoScheduler"}}}"#).unwrap();
        seen.effective(silent);
        assert_eq!(seen.maximum, [Some(512), Some(2)]);
        assert!(maximum(b"{}").is_err() && conf(b"<configuration>").is_err());
    }
}
