//! Which rows of a list are wanted, and what is said where there are none.

use super::asked::application_id;
use super::output::Output;
use super::view::not_empty;
use clap::Args;

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

    fn empty_text(&self, what: &str, more: &[(&str, bool)]) -> Option<String> {
        let texts = [("--application", &self.application), ("--queue", &self.queue), ("--host", &self.host)];
        let texts = texts.iter().filter_map(|(option, text)| Some(format!("{option} {}", text.as_ref()?)));
        let more = more.iter().filter(|(_, given)| *given).map(|(option, _)| (*option).to_owned());
        let given: Vec<String> = texts.chain(more).collect();
        (!given.is_empty()).then(|| format!("no {what} for {}", given.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
