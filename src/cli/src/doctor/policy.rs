//! The check of which policy is in force, and of the modes of queues.

use super::facts::{Answers, OnDisk};
use hintd::findings::{Check, page};
use hintd_client::wire::v1;
use hintd_engine::Mode;
use std::collections::BTreeMap;

/// The policy, and modes by queue.
pub(super) fn policy(answers: &Answers, on_disk: &OnDisk) -> Check {
    const NAME: &str = "policy";
    let default = match &answers.policies {
        Ok(policies) => policies.default_policy.clone(),
        Err(why) => return Check::not_checked(NAME, page::CONFIGURE, format!("{why}.")),
    };
    let queues = modes(&answers.status, on_disk);
    if queues.is_empty() {
        let why = "modes of queues are in the configuration, which can't be read from here, or is wrong";
        return Check::ok(NAME, page::CONFIGURE, format!("The default policy is {default}; {why}."));
    }
    let mut by_mode: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, mode) in &queues {
        by_mode.entry(mode).or_default().push(name);
    }
    let modes: Vec<String> = by_mode.iter().map(|(mode, queues)| format!("{mode}: {}", queues.join(" "))).collect();
    let finding = format!("The default policy is {default}; queues by mode: {}.", modes.join(", "));
    match queues.iter().any(|(_, mode)| mode != Mode::Off.as_str()) {
        true if queues.iter().all(|(_, mode)| mode != Mode::On.as_str()) => {
            let finding = format!("{finding} Hints are computed and not given.");
            Check {
                advice: "After a day, look at \"potential saving\" in hintctl status.".to_owned(),
                ..Check::ok(NAME, page::FOLLOWED, finding)
            }
        }
        true => Check::ok(NAME, page::CONFIGURE, finding),
        false => Check::warning(
            NAME,
            page::CONFIGURE,
            format!("{finding} No queue gets hints."),
            match queues.iter().any(|(name, _)| name == "*") {
                true => "Set mode = \"shadow\" in [queues.\"*\"] to begin.",
                false => "Set mode = \"shadow\" in a queue's section to begin.",
            },
        ),
    }
}

/// Queues with their modes: as the daemon has them in force; of one that does not say, as they are on disk.
fn modes(status: &v1::StatusResponse, on_disk: &OnDisk) -> Vec<(String, String)> {
    match on_disk {
        _ if !status.queues.is_empty() => {
            status.queues.iter().map(|queue| (queue.name.clone(), queue.mode.clone())).collect()
        }
        OnDisk::Sound(config) => {
            let queues = config.options.settings.queues.iter();
            queues.map(|(name, queue)| (name.clone(), queue.mode.as_str().to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_in_force_whatever_is_on_disk() {
        let queue =
            |name: &str, mode: &str| v1::QueueView { name: name.into(), mode: mode.into(), policy: String::new() };
        let status =
            v1::StatusResponse { queues: vec![queue("*", "off"), queue("etl", "shadow")], ..Default::default() };
        let answers = |status| {
            let policies = Ok(v1::ListPoliciesResponse { default_policy: "joint".into(), ..Default::default() });
            Answers { status, network: nothing_of(), racks: nothing_of(), policies, down: nothing_of() }
        };
        let check = policy(&answers(status), &OnDisk::Wrong("hintd.toml:3: leeses".to_owned()));
        assert!(check.finding.contains("queues by mode: off: *, shadow: etl. Hints are computed"), "{}", check.finding);
        for (name, words) in [("*", "in [queues.\"*\"]"), ("etl", "in a queue's section")] {
            let status = v1::StatusResponse { queues: vec![queue(name, "off")], ..Default::default() };
            let advice = policy(&answers(status), &OnDisk::Wrong(String::new())).advice;
            assert!(advice.contains(words), "{name}: {advice}");
        }
    }

    fn nothing_of<T>() -> Result<T, String> {
        Err("not asked".to_owned())
    }
}
