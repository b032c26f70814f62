//! `[tracing]`: where spans of requests go.

use super::reader::{Reader, Section};
use super::sdn::authority;
use super::urls::shown;
use super::values::{MINUTE, MS, SECOND};
use crate::telemetry::spans::{COMPILED_IN, SpanOptions};

/// Reads the section; `None`: no spans are made.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<SpanOptions> {
    let mut section = root.section(reader, "tracing");
    let options = SpanOptions {
        endpoint: section.get(reader, "endpoint", String::new()),
        // Of 1,000 requests a second ten: enough to see what is slow, and five spans each are nothing to a collector.
        sample_ratio: section.bounded(reader, "sample_ratio", 0.01, 0.0..=1.0),
        timeout: section.bounded(reader, "timeout", 5 * SECOND, 10 * MS..=MINUTE),
        // A span takes about a kilobyte.
        queue: section.bounded(reader, "queue", 2_048, 1..=65_536),
    };
    let endpoint = &options.endpoint;
    let trouble = if authority(endpoint).is_none() {
        let endpoint = shown(endpoint);
        Some(format!("\"{endpoint}\" is no address of a collector without TLS, as in \"http://127.0.0.1:4317\""))
    } else if !COMPILED_IN {
        Some(format!(
            "\"{endpoint}\", and this hintd was built without OpenTelemetry: leave it empty, or build with \
             `cargo build --release --features opentelemetry`, as packages are"
        ))
    } else {
        None
    };
    if let Some(message) = trouble.filter(|_| !endpoint.is_empty()) {
        reader.problem(section.place("endpoint"), &section.key("endpoint"), message);
    }
    section.finish(reader);
    (!options.endpoint.is_empty()).then_some(options)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::telemetry::spans::COMPILED_IN;

    fn refused(text: &str) -> String {
        Config::from_text(text, "f").err().expect("refused").to_string()
    }

    #[test]
    fn no_spans_are_made_until_an_endpoint_is_named() {
        assert_eq!(Config::from_text("[tracing]\nsample_ratio = 1\n", "f").unwrap().options.tracing, None);
        for endpoint in
            ["127.0.0.1:4317", "https://127.0.0.1:4317", "http://127.0.0.1", "http://127.0.0.1:4317/v1/traces"]
        {
            let said = refused(&format!("[tracing]\nendpoint = \"{endpoint}\"\n"));
            let expected = format!("f:2: tracing.endpoint: \"{endpoint}\" is no address of a collector without TLS");
            assert!(said.starts_with(&expected), "{said}");
        }
        assert!(refused("[tracing]\nsample_ratio = 1.5\n").contains("1.5 is outside 0 to 1"));
        assert!(refused("[tracing]\nqueue = 0\n").contains("0 is outside 1 to 65536"));
    }

    #[test]
    fn a_program_that_can_send_none_refuses_an_endpoint() {
        let text = "[tracing]\nendpoint = \"http://127.0.0.1:4317\"\nsample_ratio = 0.5\n";
        if COMPILED_IN {
            let config = Config::from_text(text, "f").unwrap();
            let options = config.options.tracing.as_ref().map(|tracing| (tracing.sample_ratio, tracing.queue));
            assert_eq!(options, Some((0.5, 2_048)));
            let changed = config.changes(&Config::from_text("", "f").unwrap()).1;
            assert_eq!(changed, ["tracing.endpoint", "tracing.sample_ratio"], "they need a restart");
        } else {
            let said = refused(text);
            let expected =
                "f:2: tracing.endpoint: \"http://127.0.0.1:4317\", and this hintd was built without OpenTelemetry";
            assert!(said.starts_with(expected) && said.contains("--features opentelemetry"), "{said}");
        }
    }
}
