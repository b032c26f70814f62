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

/// Of policies in use that tell classes of machines apart: whether nodes are told theirs, and only one.
pub(super) fn classes(answers: &Answers) -> Vec<Check> {
    let Ok(policies) = &answers.policies else { return Vec::new() };
    let is_used = |policy: &&v1::PolicyView| {
        policy.name == policies.default_policy || !policy.queues.is_empty() || !policy.frameworks.is_empty()
    };
    let of = |policy: &v1::PolicyView| Some(classes_of(&policy.name, policy.classes.as_ref()?));
    policies.policies.iter().filter(is_used).filter_map(of).flatten().collect()
}

/// Nodes whose classes are told one by one.
const NODES_SHOWN: usize = 3;

fn classes_of(policy: &str, classes: &v1::PolicyClasses) -> Vec<Check> {
    const NAME: &str = "classes";
    let v1::PolicyClasses { parameter, class, nodes, others, told, ambiguous, ambiguous_total } = classes;
    let mut checks = Vec::new();
    if *nodes == 0 {
        let told = match told.join(", ") {
            told if told.is_empty() => "no node is told a class".to_owned(),
            told => format!("nodes are told {told}"),
        };
        let finding = format!("{policy} is in use and no node is of the class {parameter} = \"{class}\": {told}.");
        let advice = format!(
            "Give the large machines that class (yarn nodeattributes -add \"HOST:hintd-class={class}\"), or set {parameter} in [policies.{policy}] to a class that nodes have."
        );
        checks.push(Check::warning(NAME, page::SCALE_UP_OUT, finding, advice));
    }
    if *ambiguous_total > 0 {
        let one = |node: &v1::NodeClasses| {
            let told: Vec<String> = node.told.iter().map(|told| format!("{} by {}", told.class, told.by)).collect();
            format!("{}: {}", node.host, told.join(", "))
        };
        let mut shown: Vec<String> = ambiguous.iter().take(NODES_SHOWN).map(one).collect();
        let more = (*ambiguous_total as usize).saturating_sub(shown.len());
        shown.extend((more > 0).then(|| format!("{more} more (hintctl --json policies --show {policy})")));
        let finding =
            format!("Nodes are told more than one class, of which {policy} takes the first: {}.", shown.join("; "));
        checks.push(Check::warning(NAME, page::SCALE_UP_OUT, finding, "Leave each node one of them."));
    }
    if checks.is_empty() {
        let finding = format!("{policy}: {nodes} nodes are of the class {parameter} = \"{class}\", {others} are not.");
        checks.push(Check::ok(NAME, page::SCALE_UP_OUT, finding));
    }
    checks
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
    use hintd::findings::Verdict;

    fn answers_of(status: v1::StatusResponse, policies: Result<v1::ListPoliciesResponse, String>) -> Answers {
        let (network, racks, down) = (nothing_of(), nothing_of(), nothing_of());
        Answers { status, network, racks, policies, down, latest: nothing_of() }
    }

    #[test]
    fn modes_are_those_in_force_whatever_is_on_disk() {
        let queue =
            |name: &str, mode: &str| v1::QueueView { name: name.into(), mode: mode.into(), policy: String::new() };
        let status =
            v1::StatusResponse { queues: vec![queue("*", "off"), queue("etl", "shadow")], ..Default::default() };
        let answers = |status| {
            let policies = Ok(v1::ListPoliciesResponse { default_policy: "joint".into(), ..Default::default() });
            answers_of(status, policies)
        };
        let check = policy(&answers(status), &OnDisk::Wrong("hintd.toml:3: leeses".to_owned()));
        assert!(check.finding.contains("queues by mode: off: *, shadow: etl. Hints are computed"), "{}", check.finding);
        for (name, words) in [("*", "in [queues.\"*\"]"), ("etl", "in a queue's section")] {
            let status = v1::StatusResponse { queues: vec![queue(name, "off")], ..Default::default() };
            let advice = policy(&answers(status), &OnDisk::Wrong(String::new())).advice;
            assert!(advice.contains(words), "{name}: {advice}");
        }
    }

    #[test]
    fn a_class_without_nodes_and_nodes_of_two_classes_are_warned_of_where_the_policy_is_in_use() {
        let checks = |default: &str, queues: &[&str], classes: v1::PolicyClasses| {
            let view = v1::PolicyView {
                name: "scale_up_out".into(),
                queues: queues.iter().map(|&queue| queue.to_owned()).collect(),
                classes: Some(classes),
                ..v1::PolicyView::default()
            };
            let policies = v1::ListPoliciesResponse { default_policy: default.into(), policies: vec![view] };
            let (status, policies) = (v1::StatusResponse::default(), Ok(policies));
            let answers = answers_of(status, policies);
            let checks = super::classes(&answers);
            checks.into_iter().map(|check| (check.verdict, check.finding)).collect::<Vec<_>>()
        };
        let told = |by: &str, class: &str| v1::ToldClass { by: by.into(), class: class.into() };
        let sound = v1::PolicyClasses {
            parameter: "scale_up".into(),
            class: "scale-up".into(),
            nodes: 2,
            others: 8,
            ..v1::PolicyClasses::default()
        };
        assert!(checks("joint", &[], v1::PolicyClasses { nodes: 0, ..sound.clone() }).is_empty(), "it is not in use");
        let ok = checks("joint", &["etl"], sound.clone());
        let said = "scale_up_out: 2 nodes are of the class scale_up = \"scale-up\", 8 are not.";
        assert_eq!(ok, [(Verdict::Ok, said.to_owned())]);
        let none = v1::PolicyClasses { nodes: 0, told: vec!["big".into(), "gpu".into()], ..sound.clone() };
        let said =
            "scale_up_out is in use and no node is of the class scale_up = \"scale-up\": nodes are told big, gpu.";
        assert_eq!(checks("scale_up_out", &[], none), [(Verdict::Warning, said.to_owned())]);
        let node = |host: &str| v1::NodeClasses {
            host: host.into(),
            told: vec![told("feed", "small"), told("rm.yarn.io/hintd-class", "scale-up")],
        };
        let ambiguous = ["n1", "n2", "n3", "n4"].map(node).to_vec();
        let two = checks("scale_up_out", &[], v1::PolicyClasses { ambiguous, ambiguous_total: 104, ..sound });
        let [(Verdict::Warning, finding)] = &two[..] else { panic!("{two:?}") };
        assert!(finding.contains("the first: n1: small by feed, scale-up by rm.yarn.io/hintd-class; n2"), "{finding}");
        assert!(finding.contains("; 101 more (hintctl"), "{finding}");
    }

    fn nothing_of<T>() -> Result<T, String> {
        Err("not asked".to_owned())
    }
}
