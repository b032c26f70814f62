//! How a list is shown: as a table, with more columns, as JSON or YAML; once, or again and again.

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line_strings;
use super::screen::{self, Live, live};
use super::scroll::{Key, Scroll};
use clap::{Args, ValueEnum};
use hintd_client::AdminClient;
use prost::{Message, Name};
use serde::Serialize;
use std::time::Duration;
use tonic::Response;

/// How it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For people, with more columns
    Wide,
    /// For scripts, as --json
    Json,
    /// For scripts
    Yaml,
}

/// How a list is shown.
#[derive(Debug, Clone, Args)]
pub struct ViewArgs {
    /// How it is shown [default: table; json with --json]
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Show it again and again on the terminal, every SECONDS (0.1 to 3600; 2 if left out); q or Ctrl-C quits
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = screen::seconds)]
    watch: Option<f64>,
}

/// How what is no list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlainFormat {
    /// For people
    Table,
    /// For scripts, as --json
    Json,
    /// For scripts
    Yaml,
}

/// How what is no list is shown: as lists take it.
#[derive(Debug, Clone, Default, Args)]
pub struct PlainViewArgs {
    /// How it is shown [default: table; json with --json]
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    format: Option<PlainFormat>,
}

impl PlainViewArgs {
    /// Where the words go then.
    ///
    /// # Errors
    /// [`Failure::Input`] where `--json` and `-o` contradict each other.
    pub fn output(&self, output: Output) -> Result<Output, Failure> {
        match (self.format, output.is_json()) {
            (None, _) | (Some(PlainFormat::Table), false) => Ok(output),
            (Some(PlainFormat::Json), _) => Ok(Output::new(true)),
            (Some(PlainFormat::Yaml), false) => Ok(Output::yaml()),
            (Some(PlainFormat::Table | PlainFormat::Yaml), true) => {
                Err(Failure::Input("--json and -o name different formats".to_owned()))
            }
        }
    }
}

/// Text by which a list is narrowed: what is empty, as a variable of a script that is not set, would show all without a word.
pub(super) fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty; leave it out to see all".to_owned()) } else { Ok(text.to_owned()) }
}

/// How long one look may take: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

impl ViewArgs {
    /// What is to be shown.
    ///
    /// # Errors
    /// [`Failure::Input`] where `--json` and `-o` contradict each other, or there is no terminal to show it on again and again.
    pub fn format(&self, output: Output) -> Result<Format, Failure> {
        let format = match (self.format, output.is_json()) {
            (None, false) => Format::Table,
            (None | Some(Format::Json), true) => Format::Json,
            (Some(format), false) => format,
            (Some(_), true) => return Err(Failure::Input("--json and -o name different formats".to_owned())),
        };
        match (self.watch, format) {
            (Some(_), Format::Json | Format::Yaml) => {
                Err(Failure::Input("--watch shows tables: leave -o json, -o yaml and --json out".to_owned()))
            }
            (Some(_), _) => screen::terminal("leave --watch out").map(|()| format),
            (None, _) => Ok(format),
        }
    }

    /// Whether it is shown again and again: what is not there yet may come.
    pub(super) const fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether a script reads it.
    pub(super) const fn is_for_scripts(&self, output: Output) -> bool {
        output.is_json() || matches!(self.format, Some(Format::Json | Format::Yaml))
    }

    /// Whether nobody said how it is to be shown.
    pub(super) const fn is_default(&self, output: Output) -> bool {
        self.format.is_none() && !output.is_json()
    }

    /// Asks the daemon and shows the answer; again and again, where that is wanted. Returns the last answer.
    ///
    /// # Errors
    /// [`Failure`] where no daemon answers, or as [`Self::format`].
    pub fn show<M>(
        &self,
        daemon: &DaemonArgs,
        output: Output,
        ask: impl AsyncFn(AdminClient) -> Result<Response<M>, Failure>,
        text: impl Fn(&M, bool) -> String,
    ) -> Result<M, Failure>
    where
        M: Message + Name + Default + Serialize,
    {
        let format = self.format(output)?;
        let is_wide = format == Format::Wide;
        let text = |answer: &M| text(&one_line_strings(answer), is_wide);
        block_on(async {
            let admin = daemon.operator().await?;
            let answer = within(ask(admin.clone())).await?;
            let Some(every) = self.watch else {
                match format {
                    Format::Table | Format::Wide => output.list(is_wide, || text(&answer))?,
                    Format::Json => output.document(&output::sorted(&answer)?)?,
                    Format::Yaml => Output::yaml().document(&answer)?,
                }
                return Ok(answer);
            };
            let mut shown = Watched { admin, ask, text, is_wide, answer, scroll: Scroll::default() };
            live(&mut shown, Duration::from_secs_f64(every)).await?;
            Ok(shown.answer)
        })
    }
}

async fn within<M>(answer: impl Future<Output = Result<Response<M>, Failure>>) -> Result<M, Failure> {
    let late = |_| Failure::work(format!("the daemon does not answer within {} s", PATIENCE.as_secs()));
    Ok(tokio::time::timeout(PATIENCE, answer).await.map_err(late)??.into_inner())
}

/// An answer that is asked for again and again.
struct Watched<M, A, T> {
    admin: AdminClient,
    ask: A,
    text: T,
    is_wide: bool,
    answer: M,
    scroll: Scroll,
}

impl<M, A, T> Live for Watched<M, A, T>
where
    A: AsyncFn(AdminClient) -> Result<Response<M>, Failure>,
    T: Fn(&M) -> String,
{
    fn head(&self) -> String {
        "q or Ctrl-C quits".to_owned()
    }

    fn lines(&mut self, (height, width): (usize, usize)) -> Vec<String> {
        let text = output::list(width, self.is_wide, || (self.text)(&self.answer));
        scrolled(text.lines().map(str::to_owned).collect(), height, &mut self.scroll)
    }

    async fn look(&mut self) -> Result<(), Failure> {
        self.answer = within((self.ask)(self.admin.clone())).await?;
        Ok(())
    }

    fn key(&mut self, key: Key) {
        self.scroll.key(key);
    }
}

/// As many lines as there is room for, always with the first, which says what stands below; and how many are left off.
fn scrolled(mut lines: Vec<String>, height: usize, scroll: &mut Scroll) -> Vec<String> {
    if lines.len() <= height || height < 3 {
        return lines;
    }
    let rows = lines.split_off(1);
    let shown = scroll.shown(rows.len(), height - 2);
    let (above, below) = (shown.start, rows.len() - shown.end);
    lines.extend_from_slice(&rows[shown]);
    let above = if above > 0 { format!("{above} lines above, ") } else { String::new() };
    lines.push(format!("… {above}{below} more lines (Up, Down, PgUp, PgDn scroll)"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(format: Option<Format>, watch: Option<f64>, json: bool) -> Result<Format, String> {
        ViewArgs { format, watch }.format(Output::new(json)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_is_no_list_takes_the_same_option_for_json() {
        let asked = |format, json| PlainViewArgs { format }.output(Output::new(json)).map(Output::is_json).ok();
        assert_eq!([asked(None, false), asked(None, true)], [Some(false), Some(true)]);
        let json = Some(PlainFormat::Json);
        assert_eq!([asked(json, false), asked(json, true)], [Some(true), Some(true)]);
        let table = Some(PlainFormat::Table);
        assert_eq!([asked(table, false), asked(table, true)], [Some(false), None]);
        let yaml = Some(PlainFormat::Yaml);
        assert_eq!([asked(yaml, false), asked(yaml, true)], [Some(true), None], "a document, and no JSON");
    }

    #[test]
    fn who_reads_it_is_told_by_either_option() {
        let of = |format, json| {
            let view = ViewArgs { format, watch: None };
            (view.is_for_scripts(Output::new(json)), view.is_default(Output::new(json)))
        };
        assert_eq!([of(None, false), of(None, true)], [(false, true), (true, false)]);
        assert_eq!([of(Some(Format::Table), false), of(Some(Format::Wide), false)], [(false, false); 2]);
        assert_eq!([of(Some(Format::Json), false), of(Some(Format::Yaml), false)], [(true, false); 2]);
    }

    #[test]
    fn what_has_no_room_on_the_terminal_is_counted_and_scrolled_to() {
        let lines: Vec<String> = (0..58).map(|at| format!("line {at}")).collect();
        let mut scroll = Scroll::default();
        let first = scrolled(lines.clone(), 23, &mut scroll);
        assert_eq!((first.len(), &*first[0], &*first[21]), (23, "line 0", "line 21"));
        assert!(first[22].starts_with("… 36 more lines"), "{}", first[22]);
        scroll.key(Key::PageDown);
        let second = scrolled(lines.clone(), 23, &mut scroll);
        assert_eq!((&*second[0], &*second[1]), ("line 0", "line 22"), "the header stays");
        assert!(second[22].starts_with("… 21 lines above, 15 more lines"), "{}", second[22]);
        assert_eq!(scrolled(lines[..23].to_vec(), 23, &mut scroll), lines[..23], "all of it has room");
    }

    #[test]
    fn the_format_is_what_either_option_says_and_both_may_not_contradict_each_other() {
        assert_eq!(asked(None, None, false), Ok(Format::Table));
        assert_eq!(asked(None, None, true), Ok(Format::Json));
        assert_eq!(asked(Some(Format::Json), None, true), Ok(Format::Json));
        assert_eq!(asked(Some(Format::Yaml), None, false), Ok(Format::Yaml));
        assert!(asked(Some(Format::Wide), None, true).unwrap_err().contains("--json and -o"));
        assert!(asked(None, Some(1.0), true).unwrap_err().contains("--watch shows tables"));
    }
}
