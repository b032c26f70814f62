//! Whether hints are followed, and whether what they were to gain came true: by queue, of the last hour where enough came in it,
//! else since the start. Of the last hour groups and decisions are told apart as well: a large job's containers outnumber those
//! of all small ones.

use super::check::{Check, count, page, some};
use super::quantities::digits;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// Fewer containers say nothing of a queue.
const CONTAINERS_ENOUGH: u64 = 20;
/// Fewer decisions say nothing of gains.
const DECISIONS_ENOUGH: u64 = 10;
/// Containers on their host or in its rack below this share: hints are made in vain.
const NEAR_ENOUGH: f64 = 0.5;
/// Containers on their host from this share on: hints are followed to the letter, or nearly so.
const TO_THE_LETTER: f64 = 0.9;
/// The check's name.
pub const FOLLOWED: &str = "followed";
/// Below this share of what was expected a gain is not realised.
const REALISED: f64 = 0.1;
/// Where hints were to save less than this share of a cost, chance decides what comes of it.
const WORTH_COMPARING: f64 = 0.05;
/// Hints that are expected to gain less gain nothing.
const NOTHING: f64 = 0.01;
/// Costs whose gain is looked at, the first that was compared, and their words.
const COSTS: [(&str, &str); 2] =
    [("cross_rack_bytes", "bytes between racks"), ("remote_bytes", "input bytes from other hosts")];

/// What became of one queue's hints.
#[derive(Default)]
struct Queue<'a> {
    rows: Vec<&'a v1::AdherenceView>,
    /// Of the last hour, and not since the start.
    lately: bool,
}

impl Queue<'_> {
    fn sum(&self, of: fn(&v1::AdherenceView) -> u64) -> u64 {
        self.rows.iter().map(|row| of(row)).sum()
    }

    fn containers(&self) -> u64 {
        self.sum(|row| row.on_host + row.in_rack + row.elsewhere + row.never)
    }

    fn share(&self, of: fn(&v1::AdherenceView) -> u64) -> f64 {
        self.sum(of) as f64 / self.containers().max(1) as f64
    }

    fn near(&self) -> f64 {
        self.share(|row| row.on_host + row.in_rack)
    }

    /// Containers by group, those of most first: name, all of them, and those on their host or in its rack. Empty: nobody says.
    fn groups(&self) -> Vec<(&str, Group)> {
        let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
        for found in self.rows.iter().flat_map(|row| &row.groups) {
            groups.entry(&found.group).or_default().add(found);
        }
        let mut groups: Vec<(&str, Group)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.containers));
        groups
    }

    const fn when(&self) -> &'static str {
        if self.lately { "in the last hour" } else { "since the start" }
    }

    /// The most frequent reason for not being on the host.
    fn most(&self) -> Option<(&str, u64)> {
        let mut misses: BTreeMap<&str, u64> = BTreeMap::new();
        self.rows.iter().flat_map(|row| &row.misses).for_each(|(why, of)| *misses.entry(why).or_default() += of);
        misses.into_iter().max_by_key(|(_, of)| *of)
    }

    fn gain(&self, term: &str) -> Option<Gain> {
        let (mut default, mut expected, mut realised, mut decisions) = (0.0, 0.0, 0.0, 0);
        for found in self.rows.iter().flat_map(|row| &row.terms).filter(|found| found.term == term) {
            let (Some(to_save), Some(saved)) = (found.expected_gain, found.realised_gain) else { continue };
            default += found.default_placement;
            expected += to_save * found.default_placement;
            realised += saved * found.default_placement;
            decisions += found.beside;
        }
        (default > 0.0).then(|| Gain { expected: expected / default, realised: realised / default, decisions })
    }

    /// The mean gain that was expected by the policies' own objectives, and of how many decisions.
    fn objective(&self) -> Option<(f64, u64)> {
        let known = self.rows.iter().filter_map(|row| Some((row.objective_gain?, row.objective_gains)));
        let (sum, decisions) = known.fold((0.0, 0), |(sum, all), (mean, of)| (sum + mean * of as f64, all + of));
        (decisions > 0).then(|| (sum / decisions as f64, decisions))
    }
}

/// What hints were to save of the default placement's cost, and what was saved: shares of it.
struct Gain {
    expected: f64,
    realised: f64,
    /// Of so many decisions.
    decisions: u64,
}

/// Hinted containers of groups of one name.
#[derive(Default)]
struct Group {
    containers: u64,
    near: u64,
    decisions: u64,
    not_followed: u64,
}

impl Group {
    fn add(&mut self, found: &v1::GroupAdherence) {
        self.near += found.on_host + found.in_rack;
        self.containers += found.on_host + found.in_rack + found.elsewhere + found.never;
        self.decisions += found.decisions;
        self.not_followed += found.not_followed;
    }

    fn share(&self) -> f64 {
        self.near as f64 / self.containers.max(1) as f64
    }
}

fn by_queue(rows: &[v1::AdherenceView], mode: v1::Mode, lately: bool) -> BTreeMap<&str, Queue<'_>> {
    let mut queues: BTreeMap<&str, Queue<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.mode() == mode) {
        let queue = queues.entry(&row.queue).or_default();
        queue.lately = lately;
        queue.rows.push(row);
    }
    queues
}

/// Queues under mode `on`: each of the last hour where that tells `enough`, else since the start.
fn queues<'a>(status: &'a v1::StatusResponse, enough: fn(&Queue<'a>) -> bool) -> BTreeMap<&'a str, Queue<'a>> {
    let mut queues = by_queue(&status.adherence, v1::Mode::On, false);
    let lately = by_queue(&status.adherence_last_hour, v1::Mode::On, true);
    queues.extend(lately.into_iter().filter(|(_, queue)| enough(queue)));
    queues
}

/// Whether hints are followed, of decisions under mode `on`: a warning by queue, or one finding of all.
#[must_use]
pub(super) fn followed(status: &v1::StatusResponse) -> Vec<Check> {
    const NAME: &str = FOLLOWED;
    let queues = queues(status, |queue| queue.containers() >= CONTAINERS_ENOUGH);
    let seen: u64 = queues.values().map(Queue::containers).sum();
    if seen == 0 {
        return vec![Check::not_checked(NAME, page::FOLLOWED, nothing_seen(status))];
    }
    let judged = || queues.iter().filter(|(_, queue)| queue.containers() >= CONTAINERS_ENOUGH);
    if judged().next().is_none() {
        let near: u64 = queues.values().map(|queue| queue.sum(|row| row.on_host + row.in_rack)).sum();
        let few = format!(
            "Since the start {near} of {} came to their host or its rack: too few to judge a queue by.",
            count(seen, "hinted container")
        );
        return vec![Check::not_checked(NAME, page::FOLLOWED, few)];
    }
    let bad: Vec<Check> = judged().flat_map(|(name, queue)| judge(name, queue)).collect();
    if !bad.is_empty() {
        return bad;
    }
    let said: Vec<String> = judged().map(|(name, queue)| format!("queue {name}: {}", shares(queue))).collect();
    vec![Check::ok(NAME, page::FOLLOWED, format!("Hints are followed; {}.", some(&said)))]
}

/// `12 % of 340 hinted containers in the last hour came to their host, 30 % there or to its rack (map 31 % of 300, reduce 20 % of
/// 40)`
fn shares(queue: &Queue<'_>) -> String {
    let groups: Vec<String> = queue.groups().iter().map(group_share).collect();
    // A lone group's share has been said.
    let groups = if groups.len() > 1 { format!(" ({})", some(&groups)) } else { String::new() };
    format!(
        "{} % of {} hinted containers {} came to their host, {} % there or to its rack{groups}",
        percent(queue.share(|row| row.on_host)),
        queue.containers(),
        queue.when(),
        percent(queue.near())
    )
}

fn group_share((name, group): &(&str, Group)) -> String {
    format!("{name} {} % of {}", percent(group.share()), group.containers)
}

fn percent(share: f64) -> String {
    digits(share * 100.0)
}

/// What is wrong with how a queue's hints are followed: all of them, those of a group, or those of most decisions.
fn judge(name: &str, queue: &Queue<'_>) -> Vec<Check> {
    if queue.near() < NEAR_ENOUGH {
        return vec![not_followed(
            name,
            queue,
            "",
            &format!("Hints of queue {name} are not followed: {}", shares(queue)),
        )];
    }
    let bad = |group: &Group| group.containers >= CONTAINERS_ENOUGH && group.share() < NEAR_ENOUGH;
    let groups = queue.groups();
    let groups: Vec<Check> = groups.iter().filter(|(_, group)| bad(group)).map(|(group, of)| {
        let found = format!(
            "Hints of queue {name} for {group} are not followed: {} % of {} hinted containers {} came to their host or its rack, \
             and in {} of {} decisions none did; of all the queue's {}",
            percent(of.share()),
            of.containers,
            queue.when(),
            of.not_followed,
            of.decisions,
            shares(queue)
        );
        not_followed(name, queue, " in the whole queue", &found)
    }).collect();
    if !groups.is_empty() {
        return groups;
    }
    let (none, all) = (queue.sum(|row| row.not_followed), queue.sum(|row| row.decisions));
    if all < DECISIONS_ENOUGH || none * 2 <= all {
        return Vec::new();
    }
    let found = format!(
        "Hints of most decisions of queue {name} are not followed, only those of large ones: of {none} of {all} decisions {} no \
         container came to its host or its rack, though {}",
        queue.when(),
        shares(queue)
    );
    vec![not_followed(name, queue, "", &found)]
}

/// `of`: of what the reason is the most frequent, where that is more than what was found.
fn not_followed(name: &str, queue: &Queue<'_>, of: &str, found: &str) -> Check {
    let most = queue.most();
    let why = most.map(|(reason, count)| format!("; most often{of} for {reason} ({count})")).unwrap_or_default();
    let finding = format!("{found}{why}.");
    let remedy = remedy(most.map_or("", |(why, _)| why));
    // Queues beyond those that are told apart are no queue of that name.
    let advice = match name {
        "(other)" => remedy.to_owned(),
        name => format!("{remedy} hintctl decisions --queue '{name}' shows whose."),
    };
    Check::warning(FOLLOWED, page::FOLLOWED, finding, advice)
}

fn nothing_seen(status: &v1::StatusResponse) -> String {
    let shadow = by_queue(&status.adherence, v1::Mode::Shadow, false);
    let names: Vec<String> = shadow.keys().map(|name| (*name).to_owned()).collect();
    if names.is_empty() {
        let awaited = count(status.decisions_watched, "decision");
        return format!("No hint's containers were all seen yet; {awaited} are watched.");
    }
    let all = Queue { rows: shadow.into_values().flat_map(|queue| queue.rows).collect(), lately: false };
    format!(
        "No hint was sent to YARN: queues in shadow: {}. By itself it put {} % of {} where they would have been hinted.",
        some(&names),
        digits(all.share(|row| row.on_host) * 100.0),
        count(all.containers(), "container")
    )
}

/// What helps where containers are not on their host for this reason, the token.
#[must_use]
pub fn remedy(reason: &str) -> &'static str {
    match reason {
        "yarn_chose" => {
            "YARN does not wait for the hinted hosts: unless yarn.scheduler.capacity.rack-locality-additional-delay is set (20 or \
             so), it gives an ask for few containers any node after a heartbeat or two, whatever node-locality-delay is; or it was \
             not sent the whole table of the answer."
        }
        "no_room" => {
            "Hosts are full when containers come: heartbeats that come sooner, fewer applications without hints."
        }
        "expired" | "withdrawn" => "Containers come later than leases.time_to_live, or others take the room.",
        "late_hint" => "Ask for hints before asking YARN.",
        "node_not_running" => "Nodes fail or fall silent: see the finding on nodes.",
        _ => "Feed heartbeats that name containers, or task events, so that hintd sees where they run.",
    }
}

/// Whether hints gain what they were to gain, by queue under mode `on`.
#[must_use]
pub(super) fn gain(status: &v1::StatusResponse) -> Vec<Check> {
    const NAME: &str = "gain";
    let lately = by_queue(&status.adherence_last_hour, v1::Mode::On, true);
    let of = |(name, since_the_start): (&&str, &Queue<'_>)| {
        let last_hour = lately.get(name).and_then(|queue| gain_of(name, queue));
        last_hour.or_else(|| gain_of(name, since_the_start))
    };
    let found: Vec<Check> = by_queue(&status.adherence, v1::Mode::On, false).iter().filter_map(of).collect();
    if found.is_empty() {
        let none = "Too few decisions were compared with YARN's own placement to say what hints gain.";
        return vec![Check::not_checked(NAME, page::FOLLOWED, none)];
    }
    found
}

/// What hints of a queue gain; `None`: too little was compared.
fn gain_of(name: &str, queue: &Queue<'_>) -> Option<Check> {
    const NAME: &str = "gain";
    let of = |decisions| format!("({} {})", count(decisions, "decision"), queue.when());
    let costs = COSTS.iter().filter_map(|(term, words)| Some((queue.gain(term)?, *words)));
    let worth = |found: &Gain| found.decisions >= DECISIONS_ENOUGH && found.expected >= WORTH_COMPARING;
    if let Some((Gain { expected, realised, decisions }, words)) = costs.into_iter().find(|(found, _)| worth(found)) {
        let came = match realised < 0.0 {
            true => format!("it became {} % more", percent(-realised)),
            false => format!("{} % were saved", percent(realised)),
        };
        let finding = format!(
            "Queue {name}: hints were to save {} % of the {words} against YARN's own placement, and {came} {}.",
            percent(expected),
            of(decisions)
        );
        return Some(match realised < expected * REALISED {
            true => Check::warning(NAME, page::FOLLOWED, finding, not_realised(queue)),
            false => Check::ok(NAME, page::FOLLOWED, finding),
        });
    }
    let (mean, decisions) = queue.objective().filter(|(mean, of)| *of >= DECISIONS_ENOUGH && *mean < NOTHING)?;
    let finding = format!(
        "Queue {name}: hints are expected to gain next to nothing, {} % by their policies' objectives {}.",
        percent(mean),
        of(decisions)
    );
    Some(Check::warning(NAME, page::FOLLOWED, finding, NOTHING_TO_GAIN))
}

const NOTHING_TO_GAIN: &str = "The network is not what these jobs wait for, or their input and shuffles are not known: \
     hintctl explain of one says which. Look elsewhere for why jobs are slow.";

/// Why a gain is not realised, as far as can be said: by where containers are, which is what their costs are of.
fn not_realised(queue: &Queue<'_>) -> String {
    let on_host = queue.share(|row| row.on_host);
    if queue.containers() == 0 || on_host >= TO_THE_LETTER {
        return "Containers come to their hosts: hintctl explain of a decision has hinted and realised costs side by side."
            .to_owned();
    }
    let (reason, why) =
        queue.most().map_or(("", String::new()), |(reason, _)| (reason, format!(", most often for {reason}")));
    format!(
        "Containers are not where they were hinted: {} % of {} came to their host, {} % to another one of its rack, {} % \
         elsewhere{why}. {}",
        percent(on_host),
        queue.containers(),
        percent(queue.share(|row| row.in_rack)),
        percent(queue.share(|row| row.elsewhere)),
        remedy(reason)
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    fn row(queue: &str, on_host: u64, in_rack: u64, elsewhere: u64) -> v1::AdherenceView {
        let misses = [("yarn_chose".to_owned(), in_rack + elsewhere)].into();
        let (queue, mode) = (queue.to_owned(), v1::Mode::On.into());
        v1::AdherenceView { queue, mode, on_host, in_rack, elsewhere, misses, ..v1::AdherenceView::default() }
    }

    fn status(adherence: Vec<v1::AdherenceView>, adherence_last_hour: Vec<v1::AdherenceView>) -> v1::StatusResponse {
        v1::StatusResponse { adherence, adherence_last_hour, ..v1::StatusResponse::default() }
    }

    #[test]
    fn a_queue_whose_hints_were_not_followed_in_the_last_hour_is_named_however_well_it_went_before() {
        let since_the_start = vec![row("etl", 9_000, 0, 100), row("live", 900, 0, 0)];
        let found = followed(&status(since_the_start.clone(), vec![row("etl", 10, 9, 81)]));
        let [etl] = &found[..] else { panic!("one finding: {found:?}") };
        assert_eq!(etl.verdict, Verdict::Warning);
        assert_eq!(
            etl.finding,
            "Hints of queue etl are not followed: 10 % of 100 hinted containers in the last hour came to their host, 19 % there \
             or to its rack; most often for yarn_chose (90)."
        );
        assert!(etl.advice.contains("node-locality-delay") && etl.advice.contains("--queue 'etl'"), "{etl:?}");
        let well = followed(&status(since_the_start, vec![row("etl", 1, 0, 9)]));
        assert_eq!(well[0].verdict, Verdict::Ok, "ten of the last hour say nothing: {well:?}");
    }

    #[test]
    fn a_rack_is_near_enough_and_few_containers_are_not_judged() {
        let verdict = |rows| followed(&status(rows, vec![]))[0].verdict;
        assert_eq!(verdict(vec![row("etl", 0, 12, 8)]), Verdict::Ok);
        assert_eq!(verdict(vec![row("etl", 0, 9, 11)]), Verdict::Warning);
        assert_eq!(verdict(vec![row("etl", 0, 0, 19)]), Verdict::NotChecked);
        assert_eq!(verdict(vec![]), Verdict::NotChecked);
        let shadow = v1::AdherenceView { mode: v1::Mode::Shadow.into(), ..row("etl", 5, 0, 15) };
        let found = followed(&status(vec![shadow], vec![]));
        assert!(
            found[0].finding.starts_with("No hint was sent to YARN: queues in shadow: etl. By itself"),
            "{found:?}"
        );
    }

    #[test]
    fn a_group_and_small_jobs_that_are_not_followed_are_found_beside_large_ones_that_are() {
        let group = |group: &str, on_host, elsewhere, not_followed| v1::GroupAdherence {
            group: group.into(),
            decisions: 30,
            not_followed,
            on_host,
            elsewhere,
            ..v1::GroupAdherence::default()
        };
        let of = |reduces: u64, not_followed| v1::AdherenceView {
            decisions: 30,
            not_followed,
            groups: vec![group("map", 900, 100, 3), group("reduce", reduces, 40 - reduces, 30 - reduces)],
            ..row("etl", 900 + reduces, 0, 140 - reduces)
        };
        let found = followed(&status(vec![], vec![of(4, 3)]));
        let [reduces] = &found[..] else { panic!("one finding: {found:?}") };
        assert_eq!(reduces.verdict, Verdict::Warning);
        assert!(
            reduces.finding.starts_with(
                "Hints of queue etl for reduce are not followed: 10 % of 40 hinted containers in the last hour came to their host \
                 or its rack, and in 26 of 30 decisions none did; of all the queue's 86.9 % of 1040"
            ),
            "{reduces:?}"
        );
        let small = &followed(&status(vec![], vec![of(25, 16)]))[0];
        assert!(
            small.finding.contains("of 16 of 30 decisions in the last hour no container came to its host"),
            "{small:?}"
        );
        assert!(small.advice.contains("rack-locality-additional-delay"), "{small:?}");
        let well = &followed(&status(vec![], vec![of(25, 15)]))[0];
        assert_eq!(well.verdict, Verdict::Ok);
        assert!(well.finding.contains("there or to its rack (map 90 % of 1000, reduce 62.5 % of 40)."), "{well:?}");
        let before = v1::AdherenceView { not_followed: 0, groups: vec![], ..of(4, 0) };
        assert_eq!(
            followed(&status(vec![], vec![before]))[0].verdict,
            Verdict::Ok,
            "a daemon of before tells no groups"
        );
    }

    #[test]
    fn the_cause_of_a_gain_that_is_not_realised_does_not_contradict_what_became_of_containers() {
        let of = |on_host, in_rack, elsewhere| {
            let view = row("etl", on_host, in_rack, elsewhere);
            not_realised(&Queue { rows: vec![&view], lately: true })
        };
        assert!(of(100, 0, 0).starts_with("Containers come to their hosts: "));
        let near = of(46, 9, 45);
        assert!(
            near.starts_with(
                "Containers are not where they were hinted: 46 % of 100 came to their host, 9 % to another one of its rack, 45 % \
                 elsewhere, most often for yarn_chose. YARN does not wait"
            ),
            "{near}"
        );
        assert!(
            of(0, 0, 100).contains("0 % of 100 came to their host, 0 % to another one of its rack, 100 % elsewhere")
        );
    }

    #[test]
    fn a_gain_that_is_not_realised_and_one_that_is_none_are_warned_of() {
        let term = |beside, expected, realised| v1::TermAdherence {
            term: "cross_rack_bytes".into(),
            beside,
            default_placement: 1e9,
            expected_gain: Some(expected),
            realised_gain: Some(realised),
            ..v1::TermAdherence::default()
        };
        let of = |terms, objective_gain, objective_gains| {
            let row = v1::AdherenceView { terms, objective_gain, objective_gains, ..row("etl", 20, 0, 0) };
            gain(&status(vec![row], vec![])).remove(0)
        };
        let verdict = |found: &Check| found.verdict;
        let lost = of(vec![term(10, 0.4, 0.03)], Some(0.4), 10);
        assert_eq!(verdict(&lost), Verdict::Warning);
        assert!(lost.finding.starts_with("Queue etl: hints were to save 40 % of the bytes between racks"), "{lost:?}");
        assert!(lost.finding.ends_with("and 3 % were saved (10 decisions since the start)."), "{lost:?}");
        let more = of(vec![term(10, 0.4, -0.234)], Some(0.4), 10);
        assert!(more.finding.ends_with("and it became 23.4 % more (10 decisions since the start)."), "{more:?}");
        assert_eq!(verdict(&of(vec![term(10, 0.4, 0.05)], Some(0.4), 10)), Verdict::Ok);
        assert_eq!(verdict(&of(vec![term(9, 0.4, 0.0)], Some(0.4), 9)), Verdict::NotChecked, "too few");
        let none = of(vec![term(10, 0.01, 0.0)], Some(0.004), 10);
        assert_eq!(verdict(&none), Verdict::Warning);
        assert!(none.finding.contains("next to nothing, 0.4 %"), "{none:?}");
        assert_eq!(verdict(&of(vec![], Some(0.2), 50)), Verdict::NotChecked);
    }
}
