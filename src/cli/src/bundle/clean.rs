//! What of a configuration is no secret. What may be one is known by the names of keys that hold secrets, by URLs that name
//! users or have values in a query or a fragment, and by keys that hintd does not have: a misspelled `password` among them.
//! What was found is left out of every other document too, whatever it says it of.

use crate::failure::Failure;
use crate::output;
use crate::printable::{one_line, printable_json};
use hintd::config::{LEFT_OUT, without_secrets};
use hintd_policy::registry;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Parts of the names of keys whose values are secrets.
const SECRET: [&str; 8] = ["password", "passwd", "secret", "token", "credential", "keytab", "authorization", "cookie"];

/// Parts of the names of parameters of URLs whose values are secrets as well.
const SECRET_PARAMETER: [&str; 5] = ["key", "sig", "auth", "pwd", "delegation"];

/// Shorter ones would be found in words that have nothing to do with them.
const SHORTEST: usize = 4;

/// A parameter's value of so many letters may be a secret, whatever its name is; a shorter one is a word that stands elsewhere
/// for something else.
const TOKEN: usize = 12;

/// Keys that hintd has, with what each is for.
const SHIPPED: &str = include_str!("../../../../config/hintd.toml");

/// Secrets that were found.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    /// Longest first: one may be within another.
    found: Vec<String>,
}

impl Secrets {
    /// A configuration without comments and without secrets, which are remembered. What is no TOML could have a secret
    /// anywhere: only the place of the mistake is said, and [`Self::leave_out_of_lines`] has what can be had.
    ///
    /// # Errors
    /// In words.
    pub(super) fn leave_out_of(&mut self, text: &str) -> Result<String, String> {
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            format!("it is no TOML (line {line})")
        })?;
        table.iter_mut().for_each(|(key, value)| self.leave_out(key, value));
        self.found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        toml::to_string(&table).map_err(|error| error.to_string())
    }

    /// The same of a text that is no TOML, with the lines where they were: names of sections, and keys that hintd has and that
    /// hold no secret, each with a value on its own line. All else is left out, and what may be a secret is remembered.
    pub(super) fn leave_out_of_lines(&mut self, text: &str) -> String {
        let mut within = false;
        let mut kept = String::new();
        for line in text.lines() {
            let was_within = within;
            within ^= ["\"\"\"", "'''"].iter().map(|quotes| line.matches(quotes).count()).sum::<usize>() % 2 == 1;
            let line = line.trim();
            let said = if was_within || within { None } else { self.line_without(line) };
            kept += &said.unwrap_or_else(|| {
                quoted(line).for_each(|text| self.remember(text));
                format!("# {LEFT_OUT}")
            });
            kept.push('\n');
        }
        self.found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        kept
    }

    /// A line that can't hold a secret, without its comment; `None`: it may.
    fn line_without(&mut self, line: &str) -> Option<String> {
        let name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if line.is_empty() {
            return Some(String::new());
        }
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return section.chars().all(|letter| name(letter) || "\"*".contains(letter)).then(|| line.to_owned());
        }
        let (key, value) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
        let plain = !value.contains(['{', '#']) && !key.is_empty() && key.chars().all(name);
        if is_secret(key) && !keys().contains(key) {
            self.remember(value);
        }
        let known = plain && keys().contains(key) && !is_secret(key);
        known.then(|| format!("{key} = {}", self.without_urls_secrets(value)))
    }

    fn leave_out(&mut self, key: &str, value: &mut toml::Value) {
        match value {
            toml::Value::String(text) => *text = self.cleaned(key, text),
            toml::Value::Array(values) => values.iter_mut().for_each(|value| self.leave_out(key, value)),
            toml::Value::Table(table) => table.iter_mut().for_each(|(key, value)| self.leave_out(key, value)),
            // A number that somebody chose for a secret.
            _ if is_secret(key) && !keys().contains(key) => {
                self.remember(&value.to_string());
                *value = toml::Value::String(LEFT_OUT.to_owned());
            }
            _ => {}
        }
    }

    fn cleaned(&mut self, key: &str, text: &str) -> String {
        if is_secret(key) && !text.is_empty() {
            self.remember(text);
            return LEFT_OUT.to_owned();
        }
        // Keys that operators choose, such as names of frameworks, have names of policies.
        if !keys().contains(key) && registry::find(text).is_none() && !text.is_empty() {
            return LEFT_OUT.to_owned();
        }
        self.without_urls_secrets(text)
    }

    fn without_urls_secrets(&mut self, text: &str) -> String {
        without_secrets(text, &mut |name, secret| {
            if name.is_empty() || is_secret_parameter(name) || secret.len() >= TOKEN {
                self.remember(secret);
            }
            if name.is_empty() {
                secret.split_once(':').into_iter().for_each(|(_, password)| self.remember(password));
            }
        })
    }

    fn remember(&mut self, secret: &str) {
        // Lines of the log have it as text is escaped there.
        for secret in [secret.to_owned(), secret.escape_debug().to_string()] {
            if secret.len() >= SHORTEST && !self.found.contains(&secret) {
                self.found.push(secret);
            }
        }
    }

    /// A document without users, passwords and values of URLs, and without what the configuration has of secrets: what is wrong
    /// with it is told with the value.
    ///
    /// # Errors
    /// [`Failure::Work`] for what is no JSON.
    pub(super) fn text(&self, document: &impl Serialize) -> Result<String, Failure> {
        let mut document = output::sorted(document)?;
        strings(&mut document, &mut |text| *text = self.left_out(text));
        let text = serde_json::to_string_pretty(&document).map_err(|error| Failure::Work(error.into()))?;
        Ok(printable_json(&text).into_owned() + "\n")
    }

    /// The same of a text, line by line.
    pub(super) fn lines(&self, text: &str) -> String {
        text.lines().map(|line| format!("{}\n", one_line(&self.left_out(line)))).collect()
    }

    fn left_out(&self, text: &str) -> String {
        let mut text = without_secrets(text, &mut |_, _| {});
        for secret in self.found.iter().filter(|secret| text.contains(&***secret)).collect::<Vec<_>>() {
            text = text.replace(&**secret, LEFT_OUT);
        }
        text
    }
}

/// What stands in quotes of a line, whichever they are.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(['"', '\'']).skip(1).step_by(2)
}

/// Whether values of keys with this name are secrets.
fn is_secret(key: &str) -> bool {
    let named = key.to_ascii_lowercase();
    SECRET.iter().any(|secret| named.contains(secret))
}

/// Whether values of a URL's parameters with this name are secrets.
fn is_secret_parameter(name: &str) -> bool {
    let named = name.to_ascii_lowercase();
    is_secret(name) || SECRET_PARAMETER.iter().any(|secret| named.contains(secret))
}

/// Keys of hintd's configuration: those that the shipped one has, set or as a comment, and parameters of policies.
fn keys() -> &'static BTreeSet<String> {
    static KEYS: OnceLock<BTreeSet<String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let named = |line: &str| {
            let (key, _) = line.trim_start_matches("# ").split_once(" = ")?;
            let is_key = key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
            is_key.then(|| key.to_owned())
        };
        let params = registry::entries().iter().filter_map(|entry| registry::with_defaults(entry.name));
        let params: Vec<String> = params.map(|policy| policy.params_toml()).collect();
        let inline = SHIPPED.lines().flat_map(|line| line.split(['{', ',']).map(str::trim));
        inline.chain(params.iter().flat_map(|text| text.lines())).filter_map(named).collect()
    })
}

fn strings(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| strings(field, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_secrets(text: &str) -> Result<String, String> {
        Secrets::default().leave_out_of(text)
    }

    #[test]
    fn a_configuration_goes_without_comments_secrets_and_users_of_urls() {
        let text = "# hunter1\n[sdn.ryu]\nurl = \"http://ann:hunter2@ctl:8080/v1\"\npassword = \"hunter3\" # hunter4\n\
            [tokens]\nlegacy_clients = true\n[name_node]\nurls = [\"https://bob:hunter5@nn\"]\nSecretKey = \"hunter6\"\n";
        let without = without_secrets(text).unwrap();
        assert!(!without.contains("hunter") && !without.contains("ann:"), "{without}");
        assert!(
            without.contains("http://(left out)@ctl:8080/v1") && without.contains("https://(left out)@nn"),
            "{without}"
        );
        assert!(without.contains("legacy_clients = true"), "{without}");
    }

    #[test]
    fn a_number_may_be_a_password() {
        let mut secrets = Secrets::default();
        let cleaned = secrets.leave_out_of("[proxy]\npassword = 87654321\nport = 8080\n").unwrap();
        assert!(!cleaned.contains("87654321") && cleaned.contains("8080"), "{cleaned}");
        assert!(!secrets.text(&"refused: 87654321").unwrap().contains("87654321"));
    }

    #[test]
    fn what_hintd_does_not_know_may_be_a_secret_and_what_it_knows_is_none() {
        let text = "[sdn]\npasswrd = \"hunter1\"\n[policy]\ndefault = \"joint\"\n[policy.frameworks]\nspark = \"spread\"\n\
            flink = \"hunter2\"\n[store]\npath = \"/var/lib/hintd\"\n[policies.scale_up_out]\norder = \"delay\"\n\
            [hook]\npassed_on = [\"hunter3\"]\n";
        let without = without_secrets(text).unwrap();
        assert!(!without.contains("hunter"), "{without}");
        let kept = ["default = \"joint\"", "spark = \"spread\"", "path = \"/var/lib/hintd\"", "order = \"delay\""];
        assert!(kept.iter().all(|kept| without.contains(kept)), "{without}");
    }

    #[test]
    fn the_shipped_configuration_is_kept_whole() {
        let shipped: toml::Table = SHIPPED.parse().unwrap();
        let kept: toml::Table = without_secrets(SHIPPED).unwrap().parse().unwrap();
        assert_eq!(kept, shipped);
    }

    #[test]
    fn what_the_configuration_has_of_secrets_no_other_document_says() {
        let mut secrets = Secrets::default();
        secrets.leave_out_of("token = \"hunter-1\"\nurls = [\"http://ann:hunter@nn\"]\nsecret = \"a\"\n").unwrap();
        let log = secrets.lines("got hunter-1\u{1b}[2J\nfrom http://bob:x@nn\n");
        assert_eq!(log, "got (left out)\\u{1b}[2J\nfrom http://(left out)@nn\n");
        let text = secrets.text(&serde_json::json!({ "why": ["got hunter-1 of ann:hunter, a hunter"] })).unwrap();
        assert!(!text.contains("hunter") && text.contains("got (left out) of (left out), a (left out)"), "{text}");
    }

    #[test]
    fn values_in_queries_and_fragments_of_urls_are_left_out_and_names_stay() {
        let mut secrets = Secrets::default();
        let text = "[tracing]\nendpoint = \"http://c:4317/v1?token=hunter1&state=RUNNING#hunter2\"\n\
            [name_node]\nurls = [\"https://ann:hunter3@nn/x?delegation=hunter4-is-a-long-one&doas=bob\", \"http://n2/?hunter5\"]\n";
        let without = secrets.leave_out_of(text).unwrap();
        assert!(!without.contains("hunter"), "{without}");
        for kept in
            ["http://c:4317/v1?token=(left out)&state=(left out)#(left out)", "n2/?(left out)", "delegation=(left out)"]
        {
            assert!(without.contains(kept), "{kept}: {without}");
        }
        let lines = secrets.leave_out_of_lines("[tracing]\nendpoint = \"http://c:4317?api_key=hunter6\"\n= [\n");
        assert!(lines.contains("endpoint = \"http://c:4317?api_key=(left out)\""), "{lines}");
        let log = secrets.lines(
            "WARN endpoint=http://d/?t=hunter7&x=y refused hunter1, hunter2 and hunter4-is-a-long-one\n\
             got hunter5 hunter6; nodes RUNNING of bob\n",
        );
        let clean = "WARN endpoint=http://d/?t=(left out)&x=(left out) refused (left out), (left out) and (left out)\n\
            got (left out) (left out); nodes RUNNING of bob\n";
        assert_eq!(log, clean, "a word that a parameter has is no secret elsewhere");
        let text = secrets.text(&serde_json::json!({ "location": "https://login/?ticket=hunter8" })).unwrap();
        assert!(text.contains("https://login/?ticket=(left out)"), "{text}");
    }

    #[test]
    fn of_a_file_that_is_no_toml_only_the_line_is_told() {
        let why = without_secrets("[a]\npassword = hunter2\n").unwrap_err();
        assert!(why.contains("line 2") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn of_a_file_that_is_no_toml_lines_that_can_hold_no_secret_are_kept_where_they_were() {
        let text = "# hunter1\n[listen]\nmetrics = \"127.0.0.1:9470\" # hunter2\ngrpc = \"127.0.0.1:8470\"\n[sdn.ryu]\n\
            url = \"http://ann:hunter3@ctl:8080\"\npassword = hunter4\npasswrd = \"hunter5\"\n\
            [queues.\"*\"]\nmode = \"\"\"hunter6\ngrpc = \"hunter7\"\n\"\"\"\nmode = { secret = \"hunter8\" }\nhunter9\n";
        let mut secrets = Secrets::default();
        let kept = secrets.leave_out_of_lines(text);
        assert!(!kept.contains("hunter"), "{kept}");
        assert_eq!(kept.lines().count(), text.lines().count(), "lines have their numbers: {kept}");
        for line in ["[listen]", "grpc = \"127.0.0.1:8470\"", "url = \"http://(left out)@ctl:8080\"", "[queues.\"*\"]"]
        {
            assert!(kept.lines().any(|has| has == line), "{line}: {kept}");
        }
        let log = secrets.lines("hunter4 hunter5 hunter7 hunter8 http://ann:hunter3@x\n");
        assert!(!log.contains("hunter"), "the log does not say them either: {log}");
    }
}
