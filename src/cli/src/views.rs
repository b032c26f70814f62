//! Answers as scripts and people read them: keys with units, tables without surprises.

use super::output;
use hintd_client::wire::v1;
use hintd_model::cluster::resource::MEMORY_NAME;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One answer, as `place`, `request`, `whatif request` and `explain` print it.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerView {
    /// Empty for what was computed offline.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub decision_id: String,
    /// The caller's id.
    pub request_id: String,
    /// The policy that decided.
    pub policy: String,
    /// off, shadow, on
    pub mode: &'static str,
    /// The snapshot it was computed on.
    pub snapshot_version: u64,
    /// One entry per container.
    pub hints: Vec<HintView>,
    /// Cost terms by name.
    pub cost: Map<String, Value>,
    /// Those of the default placement; absent where there was no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Map<String, Value>>,
    /// (baseline objective − objective) ÷ baseline objective.
    pub expected_gain: Option<f64>,
    /// complete, optimal, budget, deadline
    pub ended: &'static str,
    /// Relative distance to a proven bound.
    pub gap: Option<f64>,
    /// Steps taken.
    pub steps: u64,
    /// Seed of the search.
    pub seed: u64,
    /// Nodes ruled out, by group and reason.
    pub exclusions: Vec<ExclusionView>,
    /// What keeps nodes from taking what found no room, by group.
    pub blocked: Vec<Value>,
    /// How missing or old inputs changed the answer.
    pub degraded: Vec<String>,
    /// How it stands to the plan of recurring jobs in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// Containers without a lease.
    pub without_room: u32,
    /// Containers left for a later wave.
    pub next_wave: u32,
    /// Of every ordered pair of hosts that will talk.
    pub routes: Vec<RouteView>,
    /// Time from request to answer.
    pub elapsed_ms: f64,
}

/// The route of one pair of hosts.
#[derive(Debug, Clone, Serialize)]
pub struct RouteView {
    /// Sender.
    pub src: String,
    /// Receiver.
    pub dst: String,
    /// Host, switches, host; empty: no path.
    pub vertices: Vec<String>,
    /// One a hop.
    pub links: Vec<String>,
    /// Pairs of tasks that send over it.
    pub task_pairs: u32,
    /// What they send.
    pub bytes: u64,
    /// Whether rules are installed for it; else default forwarding carries it.
    pub installed: bool,
    /// Where there is no path: what, up again, would lead on.
    pub cut: Vec<String>,
    /// Where it is under a chain of middleboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<Value>,
}

/// Where one container should go.
#[derive(Debug, Clone, Serialize)]
pub struct HintView {
    /// `<group>-<index>`
    pub task: String,
    /// The group.
    pub group: String,
    /// Preferred host.
    pub host: String,
    /// Next best hosts, best first.
    pub fallbacks: Vec<String>,
    /// Racks of host and fallbacks, host's first.
    pub racks: Vec<String>,
    /// Its lease, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<u64>,
    /// Expected wait, where there was no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_wait_ms: Option<u64>,
    /// 0..1
    pub confidence: f64,
}

/// Nodes ruled out for one reason.
#[derive(Debug, Clone, Serialize)]
pub struct ExclusionView {
    /// The group.
    pub group: String,
    /// Stable token.
    pub reason: String,
    /// How many.
    pub count: u32,
    /// A few hosts.
    pub examples: Vec<String>,
}

impl AnswerView {
    /// From the wire.
    #[must_use]
    pub fn new(set: &v1::HintSet) -> Self {
        Self {
            decision_id: set.decision_id.clone(),
            request_id: set.request_id.clone(),
            policy: set.policy.clone(),
            mode: mode(set.mode()),
            snapshot_version: set.snapshot_version,
            hints: set.hints.iter().flat_map(containers).collect(),
            cost: set.terms.as_ref().map(terms).unwrap_or_default(),
            baseline: set.baseline.as_ref().map(terms),
            expected_gain: set.expected_gain,
            ended: ended(set.ended()),
            gap: set.gap,
            steps: set.steps,
            seed: set.seed,
            exclusions: set.exclusions.iter().map(exclusion).collect(),
            blocked: blocked_document(&set.blocked),
            degraded: set.degraded.clone(),
            plan: set.plan.as_ref().map(plan_document),
            without_room: set.without_room,
            next_wave: set.next_wave,
            routes: set.routes.iter().map(route).collect(),
            elapsed_ms: set.elapsed_ms,
        }
    }
}

/// One answer for people.
#[must_use]
pub fn answer_text(set: &v1::HintSet) -> String {
    let mut lines = vec![format!(
        "{}: policy {}, {} containers on {} hosts, {} after {} steps in {}",
        if set.decision_id.is_empty() { &set.request_id } else { &set.decision_id },
        set.policy,
        set.hints.iter().map(|hint| hint.count).sum::<u32>(),
        by_host(&set.hints, None).len(),
        ended(set.ended()),
        set.steps,
        output::seconds(set.elapsed_ms / 1e3),
    )];
    match set.mode() {
        v1::Mode::Off => lines.push("the queue is off: no hints".to_owned()),
        v1::Mode::Shadow => lines.push("the queue is in shadow: nothing is leased, asks stay as they were".to_owned()),
        v1::Mode::On | v1::Mode::Unspecified => {}
    }
    let rows = set.hints.iter().map(|hint| {
        let wait = hint.expected_wait_ms.map_or_else(String::new, |wait| output::seconds(wait as f64 / 1e3));
        let rack = hint.racks.first().cloned().unwrap_or_default();
        [hint.group.clone(), hint.count.to_string(), hint.host.clone(), rack, hint.fallbacks.join(" "), wait]
    });
    lines.push(String::new());
    lines.push(output::table(["group", "count", "host", "rack", "or else", "wait"], 5, rows));
    lines.push(String::new());
    lines.push(terms_table(set));
    if let Some(gain) = set.expected_gain {
        lines.push(format!("\nexpected gain over the default placement: {} %", output::digits(gain * 100.0)));
    }
    for (count, what) in
        [(set.without_room, "containers find no room now"), (set.next_wave, "containers wait for a later wave")]
    {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    if !set.routes.is_empty() {
        lines.push(format!("\n{}", routes_text(&set.routes)));
    }
    if !set.exclusions.is_empty() {
        let rows = set.exclusions.iter().map(|exclusion| {
            [
                exclusion.group.clone(),
                exclusion.reason.clone(),
                exclusion.examples.join(" "),
                exclusion.count.to_string(),
            ]
        });
        lines.push(String::new());
        lines.push(output::table(["group", "ruled out because", "for example", "nodes"], 3, rows));
    }
    if !set.blocked.is_empty() {
        lines.push(format!("\n{}", blocked_text(&set.blocked)));
    }
    if !set.degraded.is_empty() {
        lines.push(format!("\ndecided without: {}", set.degraded.join(", ")));
    }
    if let Some(note) = &set.plan {
        lines.push(format!("\n{}", plan_text(note)));
    }
    if !set.history.is_empty() {
        lines.push(format!("history: {}", set.history));
    }
    lines.join("\n")
}

fn plan_document(note: &v1::PlanNote) -> Value {
    json!({
        "plan": note.plan, "job": (!note.job.is_empty()).then_some(&note.job), "as_planned": note.as_planned,
        "elsewhere": note.elsewhere, "deviations": note.deviations,
    })
}

fn plan_text(note: &v1::PlanNote) -> String {
    let why = match note.deviations.join(", ") {
        why if why.is_empty() => String::new(),
        why => format!("; leaves it: {why}"),
    };
    match note.job.as_str() {
        "" => format!("not by plan \"{}\"{why}", note.plan),
        job => format!(
            "by plan \"{}\" as {job}: {} containers in its racks, {} elsewhere{why}",
            note.plan, note.as_planned, note.elsewhere
        ),
    }
}

/// What keeps nodes from taking containers, and which come nearest; a paragraph a group.
#[must_use]
pub fn blocked_text(blocked: &[v1::Blocked]) -> String {
    let lack = |lack: &v1::Lack| match lack.resource.as_str() {
        "" => lack.constraint.clone(),
        MEMORY_NAME => format!("{} MB short ({})", lack.short, lack.constraint),
        resource => format!("{} {resource} short ({})", lack.short, lack.constraint),
    };
    let near = |near: &v1::NearMiss| {
        let lacks: Vec<String> = near.lacks.iter().map(lack).collect();
        let rest = if near.lacks.len() == 1 { ", all else fits" } else { "" };
        format!("  nearest: {}: {}{rest}", near.host, lacks.join(", "))
    };
    let group = |blocked: &v1::Blocked| {
        let v1::Blocked { group, count, constraint, nodes, nearest } = blocked;
        let alone = match nodes {
            0 => String::new(),
            1 => ", which alone rules out 1 node".to_owned(),
            nodes => format!(", which alone rules out {nodes} nodes"),
        };
        let first = format!("{count} of {group} found no room: {constraint}{alone}");
        std::iter::once(first).chain(nearest.iter().map(near)).collect::<Vec<_>>().join("\n")
    };
    blocked.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// A refusal in words, with what blocks.
#[must_use]
pub fn refused_text(refused: &v1::Refused) -> String {
    let said = format!("refused ({}): {}", refused.reason, refused.message);
    if refused.blocked.is_empty() { said } else { format!("{said}\n{}", blocked_text(&refused.blocked)) }
}

/// A refusal for scripts.
#[must_use]
pub fn refused_document(refused: &v1::Refused) -> Value {
    json!({
        "reason": refused.reason, "message": refused.message, "field": refused.field,
        "blocked": blocked_document(&refused.blocked), "decision_id": refused.decision_id,
        "chain": refused.chain,
    })
}

/// The same for scripts.
#[must_use]
pub fn blocked_document(blocked: &[v1::Blocked]) -> Vec<Value> {
    let lack =
        |lack: &v1::Lack| json!({ "constraint": lack.constraint, "resource": lack.resource, "short": lack.short });
    let near =
        |near: &v1::NearMiss| json!({ "host": near.host, "lacks": near.lacks.iter().map(lack).collect::<Vec<_>>() });
    let group = |blocked: &v1::Blocked| {
        json!({
            "group": blocked.group, "count": blocked.count, "constraint": blocked.constraint,
            "nodes": blocked.nodes, "nearest": blocked.nearest.iter().map(near).collect::<Vec<_>>(),
        })
    };
    blocked.iter().map(group).collect()
}

/// Routes shown one by one; of more, the heaviest.
const ROUTES_SHOWN: usize = 20;

/// `src → dst via …`, a line a route; above 20 the heaviest and a summary.
#[must_use]
pub fn routes_text(routes: &[v1::HintRoute]) -> String {
    let mut shown: Vec<&v1::HintRoute> = routes.iter().collect();
    if routes.len() > ROUTES_SHOWN {
        shown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| (&a.src, &a.dst).cmp(&(&b.src, &b.dst))));
        shown.truncate(ROUTES_SHOWN);
    }
    let mut lines: Vec<String> = shown.into_iter().map(route_line).collect();
    let count = |what: fn(&v1::HintRoute) -> bool| routes.iter().filter(|route| what(route)).count();
    if routes.len() > ROUTES_SHOWN {
        lines.push(format!(
            "these are the heaviest of {} routes: {} to install, {} by default forwarding, {} cut off",
            routes.len(),
            count(|route| route.installed),
            count(|route| !route.installed && !route.vertices.is_empty()),
            count(|route| route.vertices.is_empty()),
        ));
    }
    lines.join("\n")
}

fn route_line(route: &v1::HintRoute) -> String {
    let v1::HintRoute { src, dst, task_pairs, .. } = route;
    let what = format!("{task_pairs} task pairs, {}", output::bytes(route.bytes as f64));
    if let Some(chain) = &route.chain {
        return chain_line(route, chain, &what);
    }
    if route.vertices.is_empty() {
        return format!("{src} → {dst} has no path ({what}), cut by {}", route.cut.join(" "));
    }
    let default = if route.installed { "" } else { ", default forwarding" };
    format!("{src} → {dst} via {} ({what}{default})", via(&route.vertices))
}

/// A way under a chain, box by box: how many links lead to each, and what all of it costs.
fn chain_line(route: &v1::HintRoute, chain: &v1::ChainPath, what: &str) -> String {
    let v1::HintRoute { src, dst, .. } = route;
    let name = &chain.name;
    let Some(cost) = chain.cost.filter(|_| !route.vertices.is_empty()) else {
        return format!("{src} → {dst} under chain {name} has no way through its boxes ({what}): it must not flow");
    };
    if route.links.is_empty() {
        return format!(
            "{src} → {dst} under chain {name} stays on the host, past its boxes ({what}): the chain fails open"
        );
    }
    let mut walked = 0;
    let mut line = format!("{src} → {dst} under chain {name}: {src}");
    for stop in &chain.stops {
        let links = stop.after.saturating_sub(walked);
        line += &format!(" ─{links}→ {} ({} at {})", stop.r#box, stop.r#type, stop.at);
        walked = stop.after;
    }
    let all = route.links.len();
    let rate = output::rate(chain.rate_bits_per_s as f64);
    let left = all.saturating_sub(walked as usize);
    let past = match &chain.left_out[..] {
        [] => String::new(),
        kinds => format!("; past {}, of which none is left: the chain fails open", kinds.join(", ")),
    };
    line + &format!(" ─{left}→ {dst}; {rate} × {all} links costs {} ({what}){past}", output::rate(cost as f64))
}

/// The switches between the ends of a path.
#[must_use]
pub fn via(vertices: &[String]) -> String {
    match vertices {
        [_, between @ .., _] => between.join(" "),
        _ => String::new(),
    }
}

/// Terms beside the default placement's.
#[must_use]
pub fn terms_table(set: &v1::HintSet) -> String {
    let hinted = set.terms.as_ref().map(readable).unwrap_or_default();
    let default = set.baseline.as_ref().map(readable).unwrap_or_default();
    let absent = || "-".to_owned();
    let rows = hinted.iter().map(|(name, value)| {
        let other = default.iter().find(|(known, _)| known == name).map_or_else(absent, |(_, value)| value.clone());
        [name.clone(), value.clone(), other]
    });
    output::table(["cost", "hinted", "default"], 1, rows)
}

/// Terms by name, absent ones left out.
#[must_use]
pub fn terms(terms: &v1::Terms) -> Map<String, Value> {
    let common = [
        ("remote_bytes", terms.remote_bytes),
        ("cross_rack_bytes", terms.cross_rack_bytes),
        ("core_hops", terms.core_hops),
        ("worst_link_s", terms.worst_link_s),
        ("balance", terms.balance),
        ("objective", terms.objective),
    ];
    let common = common.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    let parts = terms.parts.iter().map(|(name, value)| (format!("part.{name}"), json!(value)));
    common.chain(parts).collect()
}

/// Hosts with how many containers go there, most first, then by name; of one group or of all.
#[must_use]
pub fn by_host(hints: &[v1::Hint], group: Option<&str>) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for hint in hints.iter().filter(|hint| group.is_none_or(|group| hint.group == group)) {
        *counts.entry(&hint.host).or_default() += hint.count;
    }
    let mut hosts: Vec<(String, u32)> = counts.into_iter().map(|(host, count)| (host.to_owned(), count)).collect();
    hosts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    hosts
}

/// Stable token.
#[must_use]
pub const fn mode(mode: v1::Mode) -> &'static str {
    match mode {
        v1::Mode::Unspecified => "unspecified",
        v1::Mode::Off => "off",
        v1::Mode::Shadow => "shadow",
        v1::Mode::On => "on",
    }
}

/// Stable token.
#[must_use]
pub const fn ended(ended: v1::Ended) -> &'static str {
    match ended {
        v1::Ended::Unspecified => "unspecified",
        v1::Ended::Complete => "complete",
        v1::Ended::Optimal => "optimal",
        v1::Ended::Budget => "budget",
        v1::Ended::Deadline => "deadline",
    }
}

/// Terms in words and units.
fn readable(terms: &v1::Terms) -> Vec<(String, String)> {
    let common = [
        ("remote input", terms.remote_bytes.map(output::bytes)),
        ("across racks", terms.cross_rack_bytes.map(output::bytes)),
        ("core hops", terms.core_hops.map(output::digits)),
        ("worst link", terms.worst_link_s.map(output::seconds)),
        ("balance", terms.balance.map(output::digits)),
        ("objective", terms.objective.map(output::digits)),
    ];
    let common = common.into_iter().map(|(name, value)| (name.to_owned(), value.unwrap_or_else(|| "-".to_owned())));
    let parts = terms.parts.iter().map(|(name, value)| (format!("  of which {name}"), output::digits(*value)));
    common.chain(parts).collect()
}

fn containers(hint: &v1::Hint) -> impl Iterator<Item = HintView> + '_ {
    (0..hint.count).map(|at| HintView {
        task: format!("{}-{}", hint.group, hint.first_index + at),
        group: hint.group.clone(),
        host: hint.host.clone(),
        fallbacks: hint.fallbacks.clone(),
        racks: hint.racks.clone(),
        lease_id: hint.lease_ids.get(at as usize).copied(),
        expected_wait_ms: hint.expected_wait_ms,
        confidence: hint.confidence,
    })
}

fn chain_document(chain: &v1::ChainPath) -> Value {
    let stop =
        |stop: &v1::BoxStop| json!({ "box": stop.r#box, "type": stop.r#type, "at": stop.at, "after": stop.after });
    json!({
        "name": chain.name, "stops": chain.stops.iter().map(stop).collect::<Vec<_>>(),
        "rate_bits_per_s": chain.rate_bits_per_s, "cost_bit_links_per_s": chain.cost, "left_out": chain.left_out,
    })
}

fn route(route: &v1::HintRoute) -> RouteView {
    RouteView {
        src: route.src.clone(),
        dst: route.dst.clone(),
        vertices: route.vertices.clone(),
        links: route.links.clone(),
        task_pairs: route.task_pairs,
        bytes: route.bytes,
        installed: route.installed,
        cut: route.cut.clone(),
        chain: route.chain.as_ref().map(chain_document),
    }
}

fn exclusion(exclusion: &v1::Exclusion) -> ExclusionView {
    ExclusionView {
        group: exclusion.group.clone(),
        reason: exclusion.reason.clone(),
        count: exclusion.count,
        examples: exclusion.examples.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_is_a_hint_of_its_own_with_its_own_lease() {
        let hint = v1::Hint {
            group: "map".into(),
            host: "h1".into(),
            count: 3,
            first_index: 5,
            lease_ids: vec![7, 8],
            ..v1::Hint::default()
        };
        let view = AnswerView::new(&v1::HintSet { hints: vec![hint], ..v1::HintSet::default() });
        let tasks: Vec<_> = view.hints.iter().map(|hint| (hint.task.as_str(), hint.lease_id)).collect();
        assert_eq!(tasks, [("map-5", Some(7)), ("map-6", Some(8)), ("map-7", None)]);
    }

    #[test]
    fn many_routes_are_summed_up_after_the_heaviest() {
        let route = |number: u64| v1::HintRoute {
            src: format!("h{number}"),
            dst: "sink".into(),
            vertices: ["h", "s1", "s2", "sink"].map(str::to_owned).to_vec(),
            task_pairs: 2,
            bytes: number * 1_000_000,
            installed: number > 1,
            ..v1::HintRoute::default()
        };
        let few = routes_text(&[route(1), route(2)]);
        assert_eq!(
            few,
            "h1 → sink via s1 s2 (2 task pairs, 1 MB, default forwarding)\nh2 → sink via s1 s2 (2 task pairs, 2 MB)"
        );
        let mut many: Vec<_> = (0..29).map(route).collect();
        many.push(v1::HintRoute { vertices: vec![], cut: vec!["l1".into()], installed: false, ..route(99) });
        let text = routes_text(&many);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), ROUTES_SHOWN + 1);
        assert_eq!(lines[0], "h99 → sink has no path (2 task pairs, 99 MB), cut by l1");
        assert!(
            lines[ROUTES_SHOWN].ends_with("of 30 routes: 27 to install, 2 by default forwarding, 1 cut off"),
            "{text}"
        );
    }

    #[test]
    fn a_term_that_could_not_be_computed_is_absent_and_never_zero() {
        let set = v1::Terms { remote_bytes: Some(0.0), ..v1::Terms::default() };
        assert_eq!(Value::Object(terms(&set)), json!({ "remote_bytes": 0.0 }));
    }
}
