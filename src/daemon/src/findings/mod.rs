//! What is wrong with a daemon and what it needs, by what it says itself: one set of rules for `hintctl doctor` and the page.
//!
//! # Code map
//! - `check`: one finding, and the pages that explain it.
//! - `cluster`: feeds, servers, nodes, racks, the network; `links`: links that are down, and what is left of racks; `outage`: since when, and what was on them.
//! - `setup`: the ResourceManager's clock, its scheduler's delays, hintd's processor in it.
//! - `hints`: requests, holdouts, refusals, the log; `followed`: adherence and gains by queue.
//! - `quantities`: figures as people write them.

mod check;
pub mod cluster;
pub mod followed;
pub mod hints;
mod links;
pub mod outage;
pub mod quantities;
mod setup;

pub use check::{Check, Verdict, count, page, some};

use hintd_client::wire::v1;

/// All that the daemon's own answers show, well or not, in the order of `hintctl doctor`.
#[must_use]
pub fn all(
    status: &v1::StatusResponse,
    racks: &Result<v1::RacksResponse, String>,
    network: &Result<v1::NetworkResponse, String>,
    down: &Result<v1::LinksResponse, String>,
) -> Vec<Check> {
    let mut found = cluster::daemon(status);
    // A server that does not answer is why its feed is silent: the cause comes first.
    found.extend(cluster::servers(status));
    found.extend(setup::setup(status));
    found.extend(cluster::feeds(status));
    found.extend(cluster::nodes(status));
    found.push(cluster::racks(status, racks));
    found.extend(cluster::network(status, network, down));
    found.push(hints::asked(status));
    found.extend(followed::followed(status));
    found.extend(followed::gain(status));
    found.extend(hints::worth(status));
    found.push(cluster::plan(status));
    found.extend(hints::refused(status));
    found.push(hints::log(status));
    found
}

/// The warnings and problems among all findings, the worst first.
#[must_use]
pub fn attention(mut found: Vec<Check>) -> Vec<Check> {
    found.retain(|check| check.verdict >= Verdict::Warning);
    found.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::NoticeKind;

    #[test]
    fn what_is_wrong_needs_attention_the_worst_first_and_what_is_well_does_not() {
        let node_is_fresh =
            v1::SourceAge { source: "heartbeats".into(), age_ms: Some(100), ..v1::SourceAge::default() };
        let well = v1::StatusResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            ready: true,
            nodes: 2,
            nodes_usable: 2,
            racks: 1,
            links: 50,
            ages: vec![node_is_fresh],
            ..v1::StatusResponse::default()
        };
        let network = Ok(v1::NetworkResponse { links: 50, source: "feed".into(), ..v1::NetworkResponse::default() });
        let none = Ok(v1::LinksResponse::default());
        let racks = Ok(v1::RacksResponse::default());
        // Two nodes in one rack: nothing is known of what lies between racks.
        let one_rack = attention(all(&well, &racks, &network, &none));
        assert_eq!(one_rack.iter().map(|check| check.name).collect::<Vec<_>>(), ["racks"]);
        let well = v1::StatusResponse { racks: 2, ..well };
        assert_eq!(attention(all(&well, &racks, &network, &none)), []);
        let link =
            v1::LinkView { id: "l1".into(), down_ms: Some(119_000), down_by: "ryu".into(), ..Default::default() };
        let down = Ok(v1::LinksResponse { links: vec![link], total: 1 });
        let broken = v1::StatusResponse { nodes_usable: 0, links_down: 1, ..well };
        let found = attention(all(&broken, &racks, &network, &down));
        let shown: Vec<_> = found.iter().map(|check| (check.name, check.verdict)).collect();
        assert_eq!(shown, [("nodes", Verdict::Problem), ("links", Verdict::Warning)]);
        assert_eq!(found[1].finding, "1 link of 50 is down: l1 for 119 s (as ryu said).");
    }

    #[test]
    fn keys_that_wait_for_a_restart_need_attention_unless_the_configuration_is_refused_anyway() {
        let of = |keys: usize, refused: &str| {
            let status = v1::StatusResponse {
                config_restart_keys: (0..keys).map(|at| format!("limits.k{at}")).collect(),
                config_refused: refused.into(),
                ..v1::StatusResponse::default()
            };
            let found = cluster::daemon(&status).into_iter().filter(|check| check.name == "configuration");
            found.map(|check| (check.verdict, check.finding, check.advice)).collect::<Vec<_>>()
        };
        assert!(of(0, "").is_empty());
        let [(Verdict::Warning, finding, advice)] = &of(1, "")[..] else { panic!("{:?}", of(1, "")) };
        assert_eq!(
            finding,
            "1 key that was changed on disk waits for a restart: limits.k0. Until then the old value holds."
        );
        assert!(advice.contains("Restart hintd"), "{advice}");
        let finding = &of(7, "")[0].1;
        assert!(
            finding.starts_with("7 keys that were changed on disk wait for a restart: limits.k0, ")
                && finding.ends_with("limits.k4 and 2 more. Until then the old values hold."),
            "{finding}"
        );
        let [(Verdict::Problem, finding, _)] = &of(1, "no")[..] else { panic!("{:?}", of(1, "no")) };
        assert!(finding.contains("refused"), "{finding}");
    }

    #[test]
    fn a_refused_configuration_needs_attention_once() {
        let refused = "worker.threads: expected an integer, got \"many\"\nlog: unknown key\n";
        let told = |kind: NoticeKind, text: String| {
            let (kind, advice) = (kind.as_str().to_owned(), kind.advice().to_owned());
            v1::Notice { kind, text, advice }
        };
        let notice = format!("the configuration on disk is refused, the one before it stays: {refused}");
        let status = v1::StatusResponse {
            config_refused: refused.into(),
            config_file: "/etc/hintd/hintd.toml".into(),
            notices_told: vec![
                told(NoticeKind::ConfigurationRefused, notice),
                told(NoticeKind::PlanNotFollowed, "nobody follows plan \"p\"".into()),
            ],
            ..v1::StatusResponse::default()
        };
        let found = cluster::daemon(&status);
        let of = |name: &str| found.iter().filter(|check| check.name == name).collect::<Vec<_>>();
        let ([configuration], [notice]) = (&of("configuration")[..], &of("notice")[..]) else {
            panic!("one finding each: {found:?}")
        };
        assert_eq!(configuration.verdict, Verdict::Problem);
        assert!(
            configuration
                .finding
                .ends_with("in force: worker.threads: expected an integer, got \"many\"; log: unknown key."),
            "{configuration:?}"
        );
        assert!(configuration.advice.ends_with("--config /etc/hintd/hintd.toml"), "{configuration:?}");
        assert!(notice.finding.contains("nobody follows plan"), "{notice:?}");
        assert_eq!(notice.advice, NoticeKind::PlanNotFollowed.advice(), "its own, whatever its words are");
        let (racks, network) = (Ok(v1::RacksResponse::default()), Ok(v1::NetworkResponse::default()));
        let shown = attention(all(&status, &racks, &network, &Ok(v1::LinksResponse::default())));
        assert!(shown.contains(configuration), "{shown:?}");
    }
}
