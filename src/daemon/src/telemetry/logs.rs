//! Logs on stderr, as text for people or JSON lines for collectors.
//!
//! Lines go through a [`LogWriter`]: nothing in the daemon waits for whoever reads its standard error.

use hintd_model::solve::nearest;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;

use super::log_writer::{LogWriter, WAITING_BYTES};
use super::registry::Metrics;

/// How long the end of the process waits for whoever reads the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is no list of directives.
    #[error("log filter \"{filter}\" is wrong: {reason}")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// This process logs already.
    #[error("logging is set up already")]
    AlreadyInstalled(#[source] tracing::subscriber::SetGlobalDefaultError),
    /// The system gives no thread or no descriptor for it.
    #[error("the thread that writes logs can't be started")]
    Writer(#[source] io::Error),
}

/// The level in force, which can be set while the process runs.
pub struct LogLevel {
    current: Mutex<String>,
    reload: Box<dyn Fn(Targets) -> bool + Send + Sync>,
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLevel").field(&self.current()).finish()
    }
}

impl LogLevel {
    /// The filter in force.
    #[must_use]
    pub fn current(&self) -> String {
        self.lock().clone()
    }

    /// Whether it is a filter, of modules that there are.
    ///
    /// # Errors
    /// [`LogError::Filter`].
    pub fn check(&self, filter: &str) -> Result<(), LogError> {
        check_filter(filter)?;
        check_modules(filter)
    }

    /// Another filter from now on.
    ///
    /// # Errors
    /// [`LogError::Filter`]: the one before stays.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        let targets = check_filter(filter)?;
        check_modules(filter)?;
        let mut current = self.lock();
        if (self.reload)(targets) {
            filter.clone_into(&mut current);
            Ok(())
        } else {
            Err(LogError::Filter { filter: filter.to_owned(), reason: "the logs have ended".to_owned() })
        }
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        // A panic under this lock leaves a whole text.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process's logs. Dropping it waits for the last lines to be written, for a second at most: a reader that stalls
/// keeps no process alive.
#[derive(Debug)]
pub struct Logs {
    writer: LogWriter,
    level: Arc<LogLevel>,
}

impl Logs {
    /// Writes a line that is no event, in its order among them.
    pub fn say(&self, line: &str) {
        self.writer.push(format!("{line}\n").as_bytes());
    }

    /// Counts lines that are dropped in `metrics`.
    pub fn count_in(&self, metrics: &Metrics) {
        self.writer.count_in(metrics);
    }

    /// The level in force.
    #[must_use]
    pub fn level(&self) -> Arc<LogLevel> {
        Arc::clone(&self.level)
    }

    /// Sends what a panic says the same way: it would wait for the reader otherwise, and others for it.
    pub fn take_panics(&self) {
        let writer = self.writer.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let mut text = format!("thread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
            let trace = Backtrace::capture(); // as RUST_BACKTRACE says
            if trace.status() == BacktraceStatus::Captured {
                text += &format!("{trace}\n");
            }
            writer.push(text.as_bytes());
        }));
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.writer.flush(LAST_LINES);
    }
}

/// Sends this process's logs to stderr from now on.
///
/// `filter` is a list of levels, of all modules or of one: `info`, or `info,hintd::store=debug`.
///
/// # Errors
/// [`LogError`], the filter being checked first.
pub fn install(format: LogFormat, filter: &str) -> Result<Logs, LogError> {
    check_filter(filter)?;
    // A descriptor of its own: the standard library's lock of stderr is held by whoever hangs in a write.
    let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(LogError::Writer)?;
    let notice = move |count| dropped_line(format, count);
    let writer = LogWriter::start(File::from(stderr), WAITING_BYTES, notice).map_err(LogError::Writer)?;
    let lines = writer.clone();
    let (subscriber, level) = subscriber(format, filter, move || lines.clone(), io::stderr().is_terminal())?;
    tracing::subscriber::set_global_default(subscriber).map_err(LogError::AlreadyInstalled)?;
    // A daemon whose configuration names such a module ran before, and runs on.
    if let Err(error) = check_modules(filter) {
        tracing::warn!(%error, "log.level names a module of which no line comes; the rest of it is in force");
    }
    Ok(Logs { writer, level: Arc::new(level) })
}

/// What stands in the log for lines that are missing, whatever the filter says.
fn dropped_line(format: LogFormat, count: u64) -> String {
    let mut timestamp = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp)); // a string takes all
    let message = format!("{count} log lines dropped: they were not read in time, or could not be written");
    match format {
        LogFormat::Text => format!("{timestamp}  WARN {}: {message}\n", module_path!()),
        LogFormat::Json => {
            let target = module_path!();
            let line = serde_json::json!({ "timestamp": timestamp, "level": "WARN", "target": target,
                "message": message, "count": count });
            format!("{line}\n")
        }
    }
}

/// A subscriber that writes to `writer`, and its level, for [`install`] and for tests.
///
/// # Errors
/// [`LogError::Filter`].
pub fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    writer: W,
    colour: bool,
) -> Result<(Box<dyn Subscriber + Send + Sync>, LogLevel), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let targets = check_filter(filter)?;
    let current = Mutex::new(filter.to_owned());
    // A line that can't be written is lost. Told of on standard error, as the library would, it panics where that is
    // what fails (a full disk, a closed pipe), and ends the thread that logged.
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(writer)
        .with_ansi(colour)
        .log_internal_errors(false);
    Ok(match format {
        LogFormat::Text => {
            let (filter, handle) = reload::Layer::new(targets);
            let reload = Box::new(move |targets| handle.reload(targets).is_ok());
            (Box::new(builder.finish().with(filter)), LogLevel { current, reload })
        }
        LogFormat::Json => {
            let (filter, handle) = reload::Layer::new(targets);
            let reload = Box::new(move |targets| handle.reload(targets).is_ok());
            let subscriber = builder.fmt_fields(JsonFields::new()).event_format(FlatJson).finish().with(filter);
            (Box::new(subscriber), LogLevel { current, reload })
        }
    })
}

/// hintd's own modules, whose names a filter may begin with.
const MODULES: [&str; 14] = [
    "config",
    "descriptors",
    "feed",
    "findings",
    "hadoop",
    "http",
    "notice",
    "regular_file",
    "rest_client",
    "runtime",
    "sdn",
    "server",
    "store",
    "telemetry",
];

/// Parses a filter. Errors are logged of modules that it does not name, unless it names a level for all.
///
/// A directive without `=` must be a level: tracing-subscriber takes a misspelled one (`inof`) for the
/// name of a module, and then logs nothing at all.
///
/// # Errors
/// [`LogError::Filter`], naming the filter and the directive.
pub fn check_filter(filter: &str) -> Result<Targets, LogError> {
    let wrong = |reason: String| LogError::Filter { filter: filter.to_owned(), reason };
    let mut checked = Targets::new().with_default(LevelFilter::ERROR);
    for directive in filter.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        let Some((module, level)) = directive.split_once('=') else {
            let level: Result<LevelFilter, _> = directive.parse();
            let level =
                level.map_err(|_| wrong(format!("\"{directive}\" is neither a level ({LEVELS}) nor module=level")))?;
            checked = checked.with_default(level);
            continue;
        };
        // Such directives of tracing-subscriber choose by spans and their fields; that takes its regular expressions.
        if module.is_empty() || module.contains(['[', ']', '{', '}']) {
            return Err(wrong(format!("\"{directive}\": invalid filter directive")));
        }
        let level = match level {
            "" => LevelFilter::TRACE,
            level => level.parse().map_err(|error| wrong(format!("\"{directive}\": {error}")))?,
        };
        checked = checked.with_target(module, level);
    }
    Ok(checked)
}

/// Checks that lines can come of the modules that a filter names, as far as they may be hintd's: of a misspelled one none does.
///
/// # Errors
/// [`LogError::Filter`], naming the filter, the directive and what may be meant.
pub fn check_modules(filter: &str) -> Result<(), LogError> {
    let wrong = |reason: String| LogError::Filter { filter: filter.to_owned(), reason };
    for directive in filter.split(',').map(str::trim) {
        let Some((module, _)) = directive.split_once('=') else { continue };
        let own = module.strip_prefix("hintd::").map(|path| path.split("::").next().unwrap_or_default());
        if let Some(own) = own.filter(|own| !MODULES.contains(own)) {
            let near = nearest(own, MODULES.into_iter()).map(|near| format!("; did you mean \"hintd::{near}\"?"));
            let near = near.unwrap_or_default();
            return Err(wrong(format!("\"{directive}\": hintd has no module \"hintd::{own}\"{near}")));
        }
        // The same without `hintd::`, and another of its crates: what decides logs nothing.
        let root = module.split("::").next().unwrap_or_default();
        if MODULES.contains(&root) {
            return Err(wrong(format!("\"{directive}\": did you mean \"hintd::{module}\"?")));
        }
        if root != "hintd" && root.starts_with("hintd") {
            let modules = MODULES.join(", ");
            return Err(wrong(format!("\"{directive}\": only hintd's own modules log, as hintd::MODULE: {modules}")));
        }
    }
    Ok(())
}

const LEVELS: &str = "off, error, warn, info, debug, trace";

/// JSON lines with the fields of all enclosing spans at the top level, the innermost winning, so that
/// `decision_id` recorded once on a request's span stands on every line of that request.
struct FlatJson;

impl<S> FormatEvent<S, JsonFields> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>().map_or("", |fields| fields.as_str());
            if let Ok(Value::Object(fields)) = serde_json::from_str(fields) {
                line.extend(fields);
            }
            line.insert("span".to_owned(), span.name().into());
        }
        event.record(&mut Fields(&mut line));
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        line.insert("timestamp".to_owned(), timestamp.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("target".to_owned(), event.metadata().target().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Gathers an event's own fields.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        // The whole chain: the outermost message alone seldom says what to do.
        let chain = std::iter::successors(Some(value), |error| error.source());
        self.set(field, chain.map(ToString::to_string).collect::<Vec<_>>().join(": "));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str, say: impl FnOnce()) -> Vec<String> {
        let captured = Captured::default();
        let writer = captured.clone();
        let (subscriber, _) = subscriber(format, filter, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, say);
        let bytes = captured.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn a_request() {
        let request = tracing::info_span!("request", decision_id = tracing::field::Empty, queue = "root.a");
        let _entered = request.enter();
        request.record("decision_id", 42_u64);
        tracing::info!(nodes = 3, "asked");
        tracing::info_span!("place", queue = "root.b").in_scope(|| tracing::warn!(ok = false, share = 0.5, "placed"));
    }

    #[test]
    fn a_decision_id_recorded_on_the_request_is_on_every_json_line() {
        let lines = logged(LogFormat::Json, "info", a_request);
        let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line["decision_id"] == 42), "{lines:?}");
        let first = &lines[0];
        assert_eq!(
            (&first["message"], &first["nodes"], &first["queue"]),
            (&"asked".into(), &3.into(), &"root.a".into())
        );
        assert_eq!((&first["level"], &first["span"]), (&"INFO".into(), &"request".into()));
        assert_eq!(first["target"], module_path!());
        assert!(first["timestamp"].as_str().unwrap().ends_with('Z'), "{first}");
        let second = &lines[1];
        assert_eq!((&second["queue"], &second["span"]), (&"root.b".into(), &"place".into()), "the innermost wins");
        assert_eq!((&second["ok"], &second["share"]), (&false.into(), &0.5.into()));
    }

    #[test]
    fn text_lines_carry_the_request_as_well() {
        let lines = logged(LogFormat::Text, "info", a_request);
        assert!(lines.iter().all(|line| line.contains("decision_id=42")), "{lines:?}");
    }

    #[test]
    fn an_error_is_logged_with_its_causes() {
        let source = io::Error::other("the disk is on fire");
        let error = LogFormatTestError { source };
        let lines = logged(LogFormat::Json, "info", || {
            tracing::error!(error = &error as &dyn std::error::Error, "failed");
        });
        assert!(lines[0].contains("\"error\":\"write failed: the disk is on fire\""), "{lines:?}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("write failed")]
    struct LogFormatTestError {
        source: io::Error,
    }

    #[test]
    fn the_filter_chooses_levels_by_module() {
        let say = || {
            tracing::debug!(target: "hintd::store", "kept");
            tracing::debug!(target: "hintd::feed", "dropped");
        };
        let lines = logged(LogFormat::Text, "warn,hintd::store=debug", say);
        assert!(lines.len() == 1 && lines[0].contains("kept"), "{lines:?}");
    }

    #[test]
    fn a_level_that_is_set_while_the_process_runs_holds_from_then_on_and_a_wrong_one_changes_nothing() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let captured = Captured::default();
            let writer = captured.clone();
            let (subscriber, level) = subscriber(format, "warn", move || writer.clone(), false).unwrap();
            tracing::subscriber::with_default(subscriber, || {
                let say = |what: &str| tracing::debug!(target: "hintd::store", "{what}");
                say("early");
                level.set("warn,hintd::store=debug").unwrap();
                say("kept");
                assert!(level.set("loud").is_err());
                assert!(level.check("store=debug").is_err() && level.set("store=debug").is_err());
                assert_eq!(level.current(), "warn,hintd::store=debug");
                level.set("warn").unwrap();
                say("late");
            });
            let said = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
            assert!(said.lines().count() == 1 && said.contains("kept"), "{format:?}: {said}");
        }
    }

    #[test]
    fn the_line_about_dropped_ones_is_a_line_of_its_format() {
        let text = dropped_line(LogFormat::Text, 7);
        assert!(text.contains("Z  WARN hintd::telemetry::logs: 7 log lines dropped") && text.ends_with('\n'), "{text}");
        let json = dropped_line(LogFormat::Json, 7);
        let line: Value = serde_json::from_str(json.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!((&line["count"], &line["level"]), (&7.into(), &"WARN".into()));
    }

    #[test]
    fn a_bad_filter_is_named() {
        for (filter, culprit) in [
            ("inof", "\"inof\""),
            ("info,hintd::store", "hintd::store"),
            ("hintd=loud", "hintd=loud"),
            ("=debug", "\"=debug\""),
            ("hintd[request{queue=root}]=trace", "invalid filter directive"),
        ] {
            let error = check_filter(filter).unwrap_err().to_string();
            assert!(error.contains(filter) && error.contains(culprit), "{error}");
        }
        for filter in ["info", "WARN, hintd=debug", "off", "3", "hintd=", "", "other::store-x=INFO"] {
            check_filter(filter).unwrap();
        }
    }

    #[test]
    fn a_misspelled_module_of_hintds_own_is_refused_with_the_one_that_is_near_and_no_reason_not_to_start() {
        let said = check_modules("info,hintd::stroe=debug").unwrap_err().to_string();
        assert!(said.contains("no module \"hintd::stroe\"; did you mean \"hintd::store\"?"), "{said}");
        assert!(check_modules("hintd::store::group=debug,hintd=info,tonic=warn").is_ok());
        let said = check_modules("info,store::group=debug").unwrap_err().to_string();
        assert!(said.contains("did you mean \"hintd::store::group\"?"), "{said}");
        for started in ["info,hintd::stroe=debug", "info,store::group=debug", "hintd_engine=debug"] {
            assert!(check_filter(started).is_ok(), "{started}: a configuration may have it");
        }
        let said = check_modules("hintd_engine=debug").unwrap_err().to_string();
        assert!(said.contains("only hintd's own modules log, as hintd::MODULE: config, "), "{said}");
        // All that lib.rs declares are known.
        let declared = include_str!("../lib.rs").lines().filter_map(|line| line.strip_prefix("pub mod "));
        let declared: Vec<&str> = declared.map(|name| name.trim_end_matches(';')).collect();
        assert!(declared.iter().all(|name| MODULES.contains(name)) && declared.len() == MODULES.len(), "{declared:?}");
    }

    #[test]
    fn a_module_takes_the_level_of_its_longest_name_and_unnamed_ones_log_errors() {
        let say = || {
            tracing::error!(target: "other", "kept");
            tracing::warn!(target: "other", "dropped");
            tracing::trace!(target: "hintd::store::group", "kept");
            tracing::info!(target: "hintd::store", "dropped");
            tracing::info!(target: "hintd::feed", "kept");
        };
        for format in [LogFormat::Text, LogFormat::Json] {
            let lines = logged(format, "hintd=info, hintd::store=warn,hintd::store::group=", say);
            assert!(lines.len() == 3 && lines.iter().all(|line| line.contains("kept")), "{lines:?}");
        }
    }
}
