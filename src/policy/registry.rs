//! The policies there are: one line each.

use super::params::{self, ParamError, PolicyTable};
use super::{Policy, baselines};

/// One policy of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// As configuration and requests spell it.
    pub name: &'static str,
    /// One sentence, with the paper where there is one.
    pub summary: &'static str,
    /// Makes it from its configuration table.
    pub build: fn(PolicyTable<'_>) -> Result<Box<dyn Policy>, ParamError>,
}

const ENTRIES: [Entry; 3] = [
    Entry { name: baselines::random::NAME, summary: baselines::random::SUMMARY, build: baselines::random::build },
    Entry { name: baselines::spread::NAME, summary: baselines::spread::SUMMARY, build: baselines::spread::build },
    Entry { name: baselines::capacity::NAME, summary: baselines::capacity::SUMMARY, build: baselines::capacity::build },
];

/// Every policy that is available.
#[must_use]
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The policy of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}

/// The policy of that name with every parameter at its default.
#[must_use]
pub fn with_defaults(name: &str) -> Option<Box<dyn Policy>> {
    find(name).map(|entry| (entry.build)(params::no_params()).expect("defaults are checked by a test"))
}

/// The name that `name` was probably meant to be: at most two edits away, and closer than its own length.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let near = entries().iter().map(|entry| (edits(&lower, entry.name), entry.name)).min()?;
    (near.0 <= 2 && near.0 < lower.chars().count()).then_some(near.1)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn build(name: &str, text: &str) -> Result<Box<dyn Policy>, ParamError> {
        (find(name).unwrap().build)(DeTable::parse(text).unwrap())
    }

    #[test]
    fn every_policy_is_built_from_defaults_and_from_its_own_parameters_written_down() {
        for entry in entries() {
            let policy = with_defaults(entry.name).unwrap();
            assert_eq!((policy.name(), policy.summary()), (entry.name, entry.summary));
            let again = build(entry.name, &policy.params_toml()).unwrap();
            assert_eq!(again.params_toml(), policy.params_toml());
        }
    }

    #[test]
    fn a_misspelt_policy_gets_the_name_that_was_meant() {
        assert_eq!(nearest("contaner"), Some("container"));
        assert_eq!(nearest("Spread"), Some("spread"));
        assert_eq!(nearest("ramdon"), Some("random"));
        assert_eq!(nearest("tetris"), None);
        assert_eq!(nearest(""), None);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_in_the_file() {
        let text = "delay = 40\nwieghts = 3\n";
        let error = build("container", text).err().unwrap();
        assert!(error.message.contains("delay"), "{error}");
        let error = build("capacity", "node_locality_delay = 40\nwieghts = 3\n").err().unwrap();
        assert_eq!(error.key.as_deref(), Some("wieghts"));
        assert_eq!(error.span, Some(25..32));
        assert!(error.to_string().starts_with("policy.capacity.wieghts: unknown field"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_refused_with_its_place_in_the_file() {
        let text = "node_locality_delay = \"many\"\n";
        let error = build("capacity", text).err().unwrap();
        assert_eq!(error.key.as_deref(), Some("node_locality_delay"));
        assert_eq!(&text[error.span.unwrap()], "\"many\"");
    }
}
