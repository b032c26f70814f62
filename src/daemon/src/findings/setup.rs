//! Checks of the ResourceManager's clock, of its scheduler's delays, and of hintd's processor in it.

use super::check::{Check, page};
use super::quantities;
use hintd_client::wire::v1;

/// A clock may be off by this much, beyond what can be measured, ms.
const CLOCK_OFF: u64 = 1_000;
/// Of both delays less than this defeats hints, in heartbeats of nodes.
const DELAY_LEAST: i64 = 1;

/// What is not known without a look at a ResourceManager is said once.
#[must_use]
pub(super) fn setup(status: &v1::StatusResponse) -> Vec<Check> {
    match &status.resource_manager_setup {
        Some(setup) => vec![clock(setup), delays(setup), processor(setup, status)],
        None => {
            let why = "No ResourceManager has shown its clock, its delays or hintd's processor: none is asked, or none leads.";
            vec![Check::not_checked("processor", page::RESOURCE_MANAGER_SETUP, why)]
        }
    }
}

fn clock(setup: &v1::ResourceManagerSetup) -> Check {
    const NAME: &str = "clock";
    let address = &setup.address;
    let Some(ahead) = setup.clock_ahead_ms else {
        return Check::not_checked(NAME, page::RESOURCE_MANAGER_SETUP, format!("{address} says no date."));
    };
    let (off, error) = (ahead.unsigned_abs(), setup.clock_error_ms);
    let within = format!("known to {}", quantities::age(error));
    if off <= CLOCK_OFF.saturating_add(error) {
        let finding = format!("The clock of {address} is hintd's, as far as that shows ({within}).");
        return Check::ok(NAME, page::RESOURCE_MANAGER_SETUP, finding);
    }
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    Check::warning(
        NAME,
        page::RESOURCE_MANAGER_SETUP,
        format!("The clock of {address} is {} {way} hintd's ({within}).", quantities::age(off)),
        "Set both machines' clocks by NTP (chronyc tracking). hintd takes the time at its start: restart it after its machine's clock was set.",
    )
}

fn delays(setup: &v1::ResourceManagerSetup) -> Check {
    const NAME: &str = "delays";
    let v1::ResourceManagerSetup { address, scheduler, node_locality_delay: node, .. } = setup;
    let rack = setup.rack_locality_additional_delay;
    if !scheduler.is_empty() && scheduler != "CapacityScheduler" {
        let why = format!("{address} schedules by {scheduler}: hints were tried with CapacityScheduler only.");
        return Check::not_checked(NAME, page::YARN_DELAYS, why);
    }
    let both = [("node-locality-delay", *node), ("rack-locality-additional-delay", rack)];
    let said = |(name, delay): &(&str, Option<i64>)| Some(format!("{name} is {}", (*delay)?));
    let low = both.iter().filter(|(_, delay)| delay.is_some_and(|delay| delay < DELAY_LEAST));
    let low: Vec<String> = low.filter_map(said).collect();
    if !low.is_empty() {
        return Check::warning(
            NAME,
            page::YARN_DELAYS,
            format!(
                "{address}: {}, where hints need {DELAY_LEAST} or more: YARN does not wait for hinted hosts.",
                low.join(" and ")
            ),
            "In capacity-scheduler.xml, below yarn.scheduler.capacity: rack-locality-additional-delay 20 or so, \
             node-locality-delay 40 (its default) or so; then yarn rmadmin -refreshQueues.",
        );
    }
    let known: Vec<String> = both.iter().filter_map(said).collect();
    if known.len() == both.len() {
        let finding = format!("{address}: {}; hints need {DELAY_LEAST} or more.", known.join(", "));
        return Check::ok(NAME, page::YARN_DELAYS, finding);
    }
    Check::not_checked(NAME, page::YARN_DELAYS, not_known(setup, &known))
}

/// Why delays are not known, and those that are.
fn not_known(setup: &v1::ResourceManagerSetup, known: &[String]) -> String {
    let address = &setup.address;
    let conf = match setup.conf_error.as_str() {
        "" => "/conf does not show capacity-scheduler.xml".to_owned(),
        error => format!("/conf says nothing ({error})"),
    };
    let processor = match (&setup.processor, setup.processor_error.is_empty()) {
        (Some(_), _) => "hintd's processor there is too old to say",
        (None, true) => "hintd's processor, which would, is not loaded",
        (None, false) => "neither does hintd's processor show itself",
    };
    let known = if known.is_empty() { String::new() } else { format!("{}; the rest: ", known.join(", ")) };
    format!("{address}: {known}{conf}, and {processor}. See rack-locality-additional-delay in that file.")
}

fn processor(setup: &v1::ResourceManagerSetup, status: &v1::StatusResponse) -> Check {
    const NAME: &str = "processor";
    let address = &setup.address;
    if !setup.processor_error.is_empty() {
        let why = format!("{address} does not show hintd's processor: {}.", setup.processor_error);
        return Check::not_checked(NAME, page::YARN_PROCESSOR, why);
    }
    let Some(processor) = &setup.processor else { return absent(setup) };
    let finding = format!("hintd's processor in {address} is loaded: {}.", figures(processor));
    let mine = &status.version;
    let (verdict, advice): (fn(_, _, _, _) -> Check, String) = if processor.breaker_open {
        let advice = "hintd's breaker is open there: see address and deadline-ms in the processor's file, the way from there to \
                      hintd, and the ResourceManager's log; it tries again by itself.";
        (Check::problem, advice.to_owned())
    } else if let Some(queues) = idle(processor, status) {
        let advice = format!(
            "hintd gives hints for {queues} and the processor passes none on: set mode=on, or mode.QUEUE=on, in its file."
        );
        (Check::warning, advice)
    } else if processor.version != *mine {
        let theirs = if processor.version.is_empty() { "too old to say" } else { &processor.version };
        let advice = format!(
            "Its version is {theirs}, hintd's is {mine}: put the jar of hintd's version there and restart the ResourceManager."
        );
        (Check::warning, advice)
    } else {
        return Check::ok(NAME, page::YARN_PROCESSOR, finding);
    };
    verdict(NAME, page::YARN_PROCESSOR, finding, advice)
}

/// Not loaded, which is a fault only where it should be: ApplicationMasters may ask by themselves.
fn absent(setup: &v1::ResourceManagerSetup) -> Check {
    const NAME: &str = "processor";
    let address = &setup.address;
    if setup.processor_configured == Some(true) {
        return Check::problem(
            NAME,
            page::YARN_PROCESSOR,
            format!(
                "{address} is told to load hintd's processor and does not have it: no application gets hints by it."
            ),
            "Look for \"hintd:\" in its log; the jar belongs to share/hadoop/yarn/lib. Restart it after yarn-site.xml was changed.",
        );
    }
    let finding = format!(
        "hintd's processor is not loaded in {address}: only applications that ask hintd by themselves get hints."
    );
    Check::ok(NAME, page::YARN_PROCESSOR, finding)
}

/// `version 0.1.0, mode shadow (root.etl on), asked 7 times: 5 answered, 2 failed`
fn figures(processor: &v1::RmProcessorView) -> String {
    let version = match processor.version.as_str() {
        "" => "of an unknown version".to_owned(),
        version => format!("version {version}"),
    };
    let mode = processor.modes.get("*").map_or_else(|| "unknown".to_owned(), Clone::clone);
    let own = processor.modes.iter().filter(|(queue, _)| *queue != "*");
    let own: Vec<String> = own.map(|(queue, mode)| format!("{queue} {mode}")).collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", super::some(&own)) };
    let count = |name: &str| processor.counts.get(name).copied().unwrap_or(0);
    let results =
        ["answered", "refused", "failed", "not_asked", "errors"].map(|name| (name.replace('_', " "), count(name)));
    let results: Vec<String> = results
        .iter()
        .enumerate()
        .filter(|(at, (_, count))| *at == 0 || *count > 0)
        .map(|(_, (name, count))| format!("{count} {name}"))
        .collect();
    let asked = super::count(count("asked"), "question");
    format!("{version}, mode {mode}{own}, {asked}: {}", results.join(", "))
}

/// Queues for which hintd gives hints and that the processor does not hint; `None`: there are none, or nobody knows.
fn idle(processor: &v1::RmProcessorView, status: &v1::StatusResponse) -> Option<String> {
    let modes = &processor.modes;
    let anywhere = modes.values().any(|mode| mode == "on");
    if modes.is_empty() {
        return None;
    }
    let on = status.queues.iter().filter(|queue| queue.mode == "on");
    // Of all others it is enough that some queue is on: its own list may be the narrower one.
    let idle = on.filter(|queue| if queue.name == "*" { !anywhere } else { mode_of(modes, &queue.name) != "on" });
    let idle: Vec<String> = idle.map(|queue| format!("queue {}", queue.name)).collect();
    (!idle.is_empty()).then(|| super::some(&idle))
}

/// As the processor finds a queue's mode: its own, its nearest ancestor's, its leaf's, the default. hintd's configuration may
/// name a queue by its leaf alone, too.
fn mode_of<'a>(modes: &'a std::collections::BTreeMap<String, String>, queue: &str) -> &'a str {
    let leaf = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let mut name = queue;
    loop {
        if let Some(mode) = modes.get(name) {
            return mode;
        }
        match name.rsplit_once('.') {
            Some((parent, _)) => name = parent,
            None => break,
        }
    }
    let same_leaf = modes.iter().find(|(name, _)| leaf(name) == leaf(queue));
    same_leaf.map(|(_, mode)| mode).or_else(|| modes.get("*")).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    fn sound() -> v1::ResourceManagerSetup {
        let modes = [("*", "shadow"), ("root.etl", "on")].map(|(queue, mode)| (queue.to_owned(), mode.to_owned()));
        let counts = [("asked", 7), ("answered", 5), ("failed", 2)].map(|(name, count)| (name.to_owned(), count));
        v1::ResourceManagerSetup {
            address: "http://rm:8088".into(),
            clock_ahead_ms: Some(-400),
            clock_error_ms: 505,
            scheduler: "CapacityScheduler".into(),
            node_locality_delay: Some(40),
            rack_locality_additional_delay: Some(20),
            delays_from: "processor".into(),
            processor: Some(v1::RmProcessorView {
                version: "0.1.0".into(),
                modes: modes.into(),
                counts: counts.into(),
                breaker_open: false,
            }),
            ..v1::ResourceManagerSetup::default()
        }
    }

    fn status(queues: &[(&str, &str)]) -> v1::StatusResponse {
        let queue = |(name, mode): &(&str, &str)| v1::QueueView {
            name: (*name).into(),
            mode: (*mode).into(),
            ..v1::QueueView::default()
        };
        v1::StatusResponse {
            version: "0.1.0".into(),
            queues: queues.iter().map(queue).collect(),
            ..v1::StatusResponse::default()
        }
    }

    #[test]
    fn all_is_well_where_it_is_and_nothing_is_said_of_nobody() {
        let status = status(&[("*", "on")]);
        let found = setup(&v1::StatusResponse { resource_manager_setup: Some(sound()), ..status.clone() });
        let shown: Vec<_> = found.iter().map(|check| (check.name, check.verdict)).collect();
        assert_eq!(shown, [("clock", Verdict::Ok), ("delays", Verdict::Ok), ("processor", Verdict::Ok)]);
        let processor = &found[2].finding;
        assert!(
            processor.contains("version 0.1.0, mode shadow (root.etl on), 7 questions: 5 answered, 2 failed."),
            "{processor}"
        );
        let nobody = setup(&status);
        assert_eq!(nobody.iter().map(|check| check.verdict).collect::<Vec<_>>(), [Verdict::NotChecked]);
    }

    #[test]
    fn a_clock_is_off_beyond_a_second_and_what_can_be_measured() {
        let verdict = |ahead, error| {
            clock(&v1::ResourceManagerSetup { clock_ahead_ms: ahead, clock_error_ms: error, ..sound() }).verdict
        };
        let warns = |ahead, error| verdict(Some(ahead), error) == Verdict::Warning;
        assert!(!warns(1_505, 505) && warns(1_506, 505) && warns(-1_506, 505) && !warns(-3_000, 2_000));
        assert_eq!(verdict(None, 0), Verdict::NotChecked);
        let behind = clock(&v1::ResourceManagerSetup { clock_ahead_ms: Some(-60_000), ..sound() }).finding;
        assert_eq!(behind, "The clock of http://rm:8088 is 60 s behind hintd's (known to 505 ms).");
    }

    #[test]
    fn delays_that_defeat_hints_are_named_with_their_range_and_what_is_not_shown_is_not_guessed() {
        let of = |node, rack| {
            delays(&v1::ResourceManagerSetup {
                node_locality_delay: node,
                rack_locality_additional_delay: rack,
                ..sound()
            })
        };
        let low = of(Some(40), Some(-1));
        assert_eq!(low.verdict, Verdict::Warning);
        assert!(low.finding.contains("rack-locality-additional-delay is -1, where hints need 1 or more"), "{low:?}");
        assert!(of(Some(0), Some(-1)).finding.contains("node-locality-delay is 0 and rack-"), "both");
        assert_eq!(of(None, Some(0)).verdict, Verdict::Warning, "one is enough");
        let half = of(Some(40), None);
        assert_eq!(half.verdict, Verdict::NotChecked);
        assert!(half.finding.contains("node-locality-delay is 40; the rest: /conf does not show"), "{half:?}");
        let refused = v1::ResourceManagerSetup {
            conf_error: "/conf: the answer is 403".into(),
            processor: None,
            node_locality_delay: None,
            rack_locality_additional_delay: None,
            ..sound()
        };
        let finding = delays(&refused).finding;
        assert!(
            finding.contains("(/conf: the answer is 403), and hintd's processor, which would, is not"),
            "{finding}"
        );
        let fair = delays(&v1::ResourceManagerSetup { scheduler: "FairScheduler".into(), ..sound() });
        assert_eq!(fair.verdict, Verdict::NotChecked);
    }

    #[test]
    fn a_processor_that_does_not_ask_or_is_another_version_is_a_fault_and_none_only_where_it_should_be() {
        let on = status(&[("*", "on")]);
        let of = |change: fn(&mut v1::RmProcessorView), status: &v1::StatusResponse| {
            let mut setup = sound();
            change(setup.processor.as_mut().unwrap());
            processor(&setup, status)
        };
        let open = of(|seen| seen.breaker_open = true, &on);
        assert_eq!(open.verdict, Verdict::Problem);
        assert!(open.advice.contains("breaker is open"), "{open:?}");
        let other = of(|seen| seen.version = "0.0.9".into(), &on);
        assert_eq!(other.verdict, Verdict::Warning);
        assert!(other.advice.starts_with("Its version is 0.0.9, hintd's is 0.1.0"), "{other:?}");
        assert!(of(|seen| seen.version.clear(), &on).advice.contains("too old to say"));
        let shadow: fn(&mut v1::RmProcessorView) = |seen| _ = seen.modes.remove("root.etl");
        let idle = of(shadow, &on);
        assert_eq!(idle.verdict, Verdict::Warning);
        assert!(idle.advice.starts_with("hintd gives hints for queue * and"), "{idle:?}");
        assert_eq!(of(shadow, &status(&[("*", "shadow")])).verdict, Verdict::Ok, "hintd gives none either");
        assert_eq!(of(|seen| seen.modes.clear(), &on).verdict, Verdict::Ok, "an older one does not say");
        let none = |configured| {
            let setup = v1::ResourceManagerSetup { processor: None, processor_configured: configured, ..sound() };
            processor(&setup, &on).verdict
        };
        assert_eq!([none(None), none(Some(false)), none(Some(true))], [Verdict::Ok, Verdict::Ok, Verdict::Problem]);
        let refused = v1::ResourceManagerSetup { processor_error: "403".into(), processor: None, ..sound() };
        assert_eq!(processor(&refused, &on).verdict, Verdict::NotChecked);
    }

    #[test]
    fn a_queues_mode_is_found_as_the_processor_finds_it() {
        let modes = [("*", "off"), ("root.a", "on"), ("b", "shadow")];
        let modes = modes.map(|(queue, mode)| (queue.to_owned(), mode.to_owned())).into();
        let of = |queue| mode_of(&modes, queue);
        assert_eq!([of("root.a.c"), of("a"), of("root.b"), of("root.d")], ["on", "on", "shadow", "off"]);
    }
}
