//! Whether hints are followed, and whether what they were to gain came true: by queue, of the last hour where enough came in it,
//! else since the start.

use super::check::{Check, count, page, some};
use super::quantities::digits;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// Fewer containers say nothing of a queue.
const CONTAINERS_ENOUGH: u64 = 20;
/// Fewer decisions say nothing of gains.
const DECISIONS_ENOUGH: u64 = 10;
/// Containers on their host or in its rack below this share: hints are made in vain.
const FOLLOWED: f64 = 0.5;
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
    const NAME: &str = "followed";
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
    let bad: Vec<Check> = judged().filter(|(_, queue)| queue.near() < FOLLOWED).map(not_followed).collect();
    if !bad.is_empty() {
        return bad;
    }
    let said: Vec<String> = judged().map(|(name, queue)| format!("queue {name}: {}", shares(queue))).collect();
    vec![Check::ok(NAME, page::FOLLOWED, format!("Hints are followed; {}.", some(&said)))]
}

/// `12 % of 340 hinted containers in the last hour on their host, 30 % there or in its rack`
fn shares(queue: &Queue<'_>) -> String {
    let percent = |share: f64| digits(share * 100.0);
    format!(
        "{} % of {} hinted containers {} came to their host, {} % there or to its rack",
        percent(queue.share(|row| row.on_host)),
        queue.containers(),
        queue.when(),
        percent(queue.near())
    )
}

fn not_followed((name, queue): (&&str, &Queue<'_>)) -> Check {
    let most = queue.most();
    let why = most.map(|(reason, count)| format!("; most often for {reason} ({count})")).unwrap_or_default();
    let finding = format!("Hints of queue {name} are not followed: {}{why}.", shares(queue));
    let remedy = remedy(most.map_or("", |(why, _)| why));
    // Queues beyond those that are told apart are no queue of that name.
    let advice = match *name {
        "(other)" => remedy.to_owned(),
        name => format!("{remedy} hintctl decisions --queue '{name}' shows whose."),
    };
    Check::warning("followed", page::FOLLOWED, finding, advice)
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

fn remedy(reason: &str) -> &'static str {
    match reason {
        "yarn_chose" => {
            "YARN does not wait for the hinted hosts (delays: yarn.scheduler.capacity.node-locality-delay, \
             rack-locality-additional-delay), or was not sent the whole table of the answer."
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
    let percent = |share: f64| digits(share * 100.0);
    let of = |decisions| format!("({} {})", count(decisions, "decision"), queue.when());
    let costs = COSTS.iter().filter_map(|(term, words)| Some((queue.gain(term)?, *words)));
    let worth = |found: &Gain| found.decisions >= DECISIONS_ENOUGH && found.expected >= WORTH_COMPARING;
    if let Some((Gain { expected, realised, decisions }, words)) = costs.into_iter().find(|(found, _)| worth(found)) {
        let finding = format!(
            "Queue {name}: hints were to save {} % of the {words} against YARN's own placement, and {} % were saved {}.",
            percent(expected),
            percent(realised),
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

/// Why a gain is not realised, as far as can be said.
fn not_realised(queue: &Queue<'_>) -> String {
    match (queue.containers() >= CONTAINERS_ENOUGH && queue.near() < FOLLOWED, queue.most()) {
        (true, most) => format!("Hints are not followed. {}", remedy(most.map_or("", |(reason, _)| reason))),
        (false, Some((reason, _))) => {
            format!("Containers come near their hosts and not to them, most often for {reason}. {}", remedy(reason))
        }
        (false, None) => {
            "Containers come to their hosts: hintctl explain of a decision has hinted and realised costs side by side."
                .to_owned()
        }
    }
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
        assert_eq!(verdict(&of(vec![term(10, 0.4, 0.05)], Some(0.4), 10)), Verdict::Ok);
        assert_eq!(verdict(&of(vec![term(9, 0.4, 0.0)], Some(0.4), 9)), Verdict::NotChecked, "too few");
        let none = of(vec![term(10, 0.01, 0.0)], Some(0.004), 10);
        assert_eq!(verdict(&none), Verdict::Warning);
        assert!(none.finding.contains("next to nothing, 0.4 %"), "{none:?}");
        assert_eq!(verdict(&of(vec![], Some(0.2), 50)), Verdict::NotChecked);
    }
}
