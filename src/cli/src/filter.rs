//! Which rows of a list are wanted, and what is said where there are none.

use super::asked::application_id;
use super::failure::Failure;
use super::output::Output;
use super::printable::one_line;
use super::view::{ViewArgs, not_empty};
use clap::Args;
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use tonic::Status;

/// Which rows.
#[derive(Debug, Clone, Args)]
pub(super) struct FilterArgs {
    /// Only of this application, as YARN names it
    #[arg(long, value_name = "ID", value_parser = application_id)]
    pub(super) application: Option<String>,
    /// Only of this queue
    #[arg(long, value_name = "NAME", value_parser = not_empty)]
    pub(super) queue: Option<String>,
    /// Only with hosts whose names contain this
    #[arg(long, value_name = "TEXT", value_parser = not_empty)]
    pub(super) host: Option<String>,
    /// Show at most LIMIT, the newest, or with --sort the first of the newest 10,000; 0: 10,000
    #[arg(long, default_value_t = 50)]
    pub(super) limit: u32,
}

impl FilterArgs {
    /// Application, queue and host, as the daemon is asked: empty where any will do.
    pub(super) fn texts(&self) -> [String; 3] {
        [&self.application, &self.queue, &self.host].map(|text| text.clone().unwrap_or_default())
    }

    /// Says on standard error what a list that is empty was narrowed by. `more`: other options that narrow it.
    pub(super) fn warn_empty(&self, total: u64, what: &str, more: &[(&str, bool)], output: Output) {
        if let Some(said) = self.empty_text(what, more).filter(|_| total == 0) {
            output.progress(&said);
        }
    }

    /// Whether what an empty list was narrowed by is known at all: else it is misspelled, more often than not. A list that is watched
    /// may wait for it, and scripts read that there is nothing.
    ///
    /// # Errors
    /// [`Failure::Input`] with what is not there; as the daemon refuses, where it does not say.
    pub(super) async fn check_known(
        &self,
        admin: &mut AdminClient,
        total: u64,
        view: &ViewArgs,
        output: Output,
    ) -> Result<(), Failure> {
        if total > 0 || view.is_watched() || view.is_for_scripts(output) {
            return Ok(());
        }
        if let Some(application) = &self.application
            && !knows_application(admin, application).await?
        {
            return Err(Failure::Input(format!(
                "application {application} is not known: it never asked for hints, or it ended before the oldest record"
            )));
        }
        let Some(host) = &self.host else { return Ok(()) };
        let asked = v1::NodesRequest { host_contains: host.clone(), limit: 1 };
        if admin.nodes(asked).await?.into_inner().total > 0 {
            return Ok(());
        }
        let all = admin.nodes(v1::NodesRequest::default()).await?.into_inner().nodes;
        let hosts: Vec<String> = all.into_iter().map(|node| one_line(&node.host).into_owned()).collect();
        Err(Failure::Input(format!(
            "--host {}: no node has it in its name{}",
            one_line(host),
            near("node", host, &hosts)
        )))
    }

    fn empty_text(&self, what: &str, more: &[(&str, bool)]) -> Option<String> {
        let texts = [("--application", &self.application), ("--queue", &self.queue), ("--host", &self.host)];
        let texts = texts.iter().filter_map(|(option, text)| Some(format!("{option} {}", text.as_ref()?)));
        let more = more.iter().filter(|(_, given)| *given).map(|(option, _)| (*option).to_owned());
        let given: Vec<String> = texts.chain(more).collect();
        (!given.is_empty()).then(|| format!("no {what} for {}", given.join(" ")))
    }
}

/// Whether it has asked, as far as that is kept.
async fn knows_application(admin: &mut AdminClient, id: &str) -> Result<bool, Status> {
    let asked = v1::ListApplicationsRequest { application_id: id.to_owned(), limit: 1, ..Default::default() };
    if admin.list_applications(asked).await?.into_inner().total > 0 {
        return Ok(true);
    }
    let asked = v1::ListDecisionsRequest { application_id: id.to_owned(), limit: 1, ..Default::default() };
    Ok(admin.list_decisions(asked).await?.into_inner().total > 0)
}

/// Names given where there is none of the name that was asked for.
const NEAR_NAMED: usize = 5;

/// Those that have the text in their names, or some that there are, to be said after what there is not. `kind`: of one, as the list's
/// command has it with an `s`.
pub(super) fn near(kind: &str, asked: &str, names: &[String]) -> String {
    let lower = asked.to_lowercase();
    let as_asked: Vec<&String> = names.iter().filter(|name| name.contains(asked)).collect();
    let in_any_case: Vec<&String> = names.iter().filter(|name| name.to_lowercase().contains(&lower)).collect();
    let (those, named) = match (as_asked.is_empty(), in_any_case.is_empty()) {
        (false, _) => (format!("{kind}s that have it in their names"), as_asked),
        (true, false) => (format!("{kind}s that have it in their names, in another case"), in_any_case),
        (true, true) => ("there are".to_owned(), names.iter().collect()),
    };
    let shown = named.iter().take(NEAR_NAMED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    match named.len().saturating_sub(NEAR_NAMED) {
        _ if named.is_empty() => format!("; no {kind} is known"),
        0 => format!("; {those}: {shown}"),
        more => format!("; {those}: {shown} and {more} more (hintctl {kind}s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_none_is_refused_with_those_that_have_its_name_in_theirs_or_with_some_that_there_are() {
        let ids: Vec<String> = (1..=8).map(|at| format!("edge-{at}--core")).collect();
        assert_eq!(near("link", "edge-3", &ids), "; links that have it in their names: edge-3--core");
        assert_eq!(near("link", "EDGE-3", &ids), "; links that have it in their names, in another case: edge-3--core");
        let many = near("link", "core", &ids);
        assert!(many.ends_with("edge-4--core, edge-5--core and 3 more (hintctl links)"), "{many}");
        let others = near("link", "spine", &ids);
        assert!(others.starts_with("; there are: edge-1--core, "), "{others}");
        assert_eq!(near("node", "spine", &[]), "; no node is known");
    }

    #[test]
    fn what_an_empty_list_was_narrowed_by_is_said() {
        let none = FilterArgs { application: None, queue: None, host: None, limit: 50 };
        assert_eq!(none.empty_text("lease is live", &[("--refused", false)]), None, "there is just nothing");
        let some = FilterArgs { application: Some("application_1_0009".into()), host: Some("x".into()), ..none };
        assert_eq!(
            some.empty_text("decision is recorded", &[("--refused", true)]).unwrap(),
            "no decision is recorded for --application application_1_0009 --host x --refused"
        );
    }
}
