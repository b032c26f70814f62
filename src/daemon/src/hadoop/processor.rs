//! The bean of hintd's processor in the ResourceManager (`/jmx`), read; no I/O.
//!
//! A name or text of a stranger is cut, and there are no more queues than fit a screen of a doctor: it is shown, and nothing
//! is decided by it.

use super::resource_manager::{BadAnswer, json};
use crate::rest_client::RestError;
use crate::runtime::setup::{Delays, ProcessorSeen};
use serde_json::Value;
use std::collections::BTreeMap;

/// The bean, as clients/java/hintd-rm-processor registers it.
pub const BEAN: &str = "/jmx?qry=hintd:name=RmProcessor";

/// Counters that show whether it asks, and with what result.
const COUNTS: [&str; 8] =
    ["allocates", "asked", "answered", "failed", "refused", "not_asked", "errors", "breaker_opened"];
/// Queues with a mode of their own.
const QUEUES: usize = 256;
/// Characters of a name.
const NAME: usize = 256;
/// Characters of a version, of which a jar's manifest may hold any text.
const VERSION: usize = 40;
/// Characters of an error.
const ERROR: usize = 400;

/// Why a ResourceManager does not say something, for status.
pub(super) fn error_shown(error: &RestError<BadAnswer>) -> String {
    error.to_string().chars().take(ERROR).collect()
}

/// The answer to [`BEAN`]; `None`: there is no such bean.
///
/// # Errors
/// [`BadAnswer`].
pub fn processor(body: &[u8]) -> Result<Option<ProcessorSeen>, BadAnswer> {
    let answer = json(body)?;
    let beans = answer.get("beans").and_then(Value::as_array);
    let beans = beans.ok_or_else(|| BadAnswer::Shape("no beans".to_owned()))?;
    let Some(bean) = beans.first() else { return Ok(None) };
    let counts = table(bean, "Counts").ok_or_else(|| BadAnswer::Shape("the bean has no Counts".to_owned()))?;
    let count = |name: &str| Some((name.to_owned(), counts.get(name)?.as_u64()?));
    let delays = table(bean, "Delays").unwrap_or_default();
    let delay = |name: &str| delays.get(name).and_then(Value::as_i64);
    let modes = table(bean, "Modes").unwrap_or_default().into_iter().take(QUEUES);
    let mode = |(queue, mode): (String, Value)| Some((queue, cut(mode.as_str()?, NAME).to_lowercase()));
    Ok(Some(ProcessorSeen {
        version: bean.get("Version").and_then(Value::as_str).map(|version| cut(version, VERSION)).unwrap_or_default(),
        modes: modes.filter_map(mode).collect(),
        breaker_open: bean.get("BreakerOpen").and_then(Value::as_bool).unwrap_or(false),
        counts: COUNTS.into_iter().filter_map(count).collect(),
        delays: Delays { node: delay("node_locality_delay"), rack_additional: delay("rack_locality_additional_delay") },
    }))
}

/// A map of a bean, which Hadoop writes as rows of a key and a value.
fn table(bean: &Value, name: &str) -> Option<BTreeMap<String, Value>> {
    let rows = bean.get(name)?.as_array()?;
    let row = |row: &Value| Some((cut(row.get("key")?.as_str()?, NAME), row.get("value")?.clone()));
    Some(rows.iter().filter_map(row).collect())
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Hadoop 3.4 shows it.
    const BEANS: &str = r#"{"beans":[{"name":"hintd:name=RmProcessor","modelerType":"io.hintd.rm.Counters",
        "Version":"0.1.0","BreakerOpen":true,"LeftAlone":[],"Over":[],
        "Modes":[{"key":"*","value":"SHADOW"},{"key":"root.etl","value":"ON"}],
        "Delays":[{"key":"node_locality_delay","value":40},{"key":"rack_locality_additional_delay","value":-1}],
        "QuietAllocateMicros":[1.0,2.0,3.0],
        "Counts":[{"key":"asked","value":7},{"key":"failed","value":2},{"key":"on_hinted","value":9}]}]}"#;

    #[test]
    fn the_bean_is_read() {
        let seen = processor(BEANS.as_bytes()).unwrap().unwrap();
        assert_eq!((seen.version.as_str(), seen.breaker_open), ("0.1.0", true));
        assert_eq!(seen.delays, Delays { node: Some(40), rack_additional: Some(-1) });
        let modes: Vec<(&str, &str)> = seen.modes.iter().map(|(queue, mode)| (&**queue, &**mode)).collect();
        assert_eq!(modes, [("*", "shadow"), ("root.etl", "on")]);
        let counts: Vec<(&str, u64)> = seen.counts.iter().map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(counts, [("asked", 7), ("failed", 2)], "those that show whether it asks");
    }

    #[test]
    fn an_older_one_says_less_none_is_none_and_nonsense_is_refused() {
        let older = br#"{"beans":[{"name":"hintd:name=RmProcessor","BreakerOpen":false,"Counts":[]}]}"#;
        assert_eq!(processor(older), Ok(Some(ProcessorSeen::default())));
        assert_eq!(processor(br#"{"beans":[]}"#), Ok(None), "it is not loaded");
        for nonsense in [&b"<html>"[..], b"{}", br#"{"beans":[{"name":"x"}]}"#, br#"{"beans":{}}"#] {
            assert!(processor(nonsense).is_err(), "{}", String::from_utf8_lossy(nonsense));
        }
        let long = BEANS.replace("0.1.0", &"9".repeat(5_000));
        assert_eq!(processor(long.as_bytes()).unwrap().unwrap().version.len(), VERSION);
    }
}
