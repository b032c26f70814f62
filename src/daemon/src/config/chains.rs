//! `[chains]`: middleboxes, and which traffic passes which types of them.

use super::reader::{Reader, Section};
use super::values::{HOUR, MINUTE, MS};
use crate::times::micros;
use hintd_engine::ChainSettings;
use hintd_model::network::chains::{Chains, ChainsDocument};
use serde::Deserialize;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Where the keys stand that name boxes and chains.
type Places = Vec<(String, usize)>;

/// Reads the section. Whether boxes hang on switches that there are is seen when a network is known.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (ChainSettings, Arc<ChainsDocument>) {
    let mut section = root.section(reader, "chains");
    let defaults = ChainSettings::default();
    let settings = ChainSettings {
        transfer: micros(section.bounded(reader, "transfer", MINUTE, MS..=HOUR)),
        port: section.bounded(reader, "port", u64::from(defaults.port), 1..=u64::from(u16::MAX)) as u16,
    };
    let at = section.at();
    let table = section.into_table();
    let places = places(table.get_ref());
    let document = match ChainsDocument::deserialize(toml::Deserializer::from(table)) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().map_or(at, |span| span.start);
            reader.problem(at, "chains", error.message().trim_end());
            return (settings, Arc::default());
        }
    };
    if let Err(problems) = Chains::new(&document, None) {
        for problem in problems {
            let place = problem.about().and_then(|name| places.iter().rev().find(|(known, _)| known == name));
            reader.problem(place.map_or(at, |(_, at)| *at), "chains", problem.to_string());
        }
    }
    (settings, Arc::new(document))
}

/// Where boxes and chains are named.
fn places(table: &DeTable<'_>) -> Places {
    let mut places = Places::new();
    for entries in table.iter().filter_map(|(_, value)| value.get_ref().as_array()) {
        for entry in entries {
            let name = match entry.get_ref() {
                DeValue::Table(entry) => entry.iter().find(|(key, _)| key.get_ref() == "name").map(|(_, value)| value),
                _ => None,
            };
            if let Some((name, at)) = name.and_then(|name| Some((name.get_ref().as_str()?, name.span().start))) {
                places.push((name.to_owned(), at));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use hintd_model::network::chains::ChainsDocument;
    use hintd_model::units::Micros;

    const DECLARED: &str = "[chains]\ntransfer = \"30s\"\nport = 80\ngroups = [\"web\"]\n\
        [[chains.boxes]]\nname = \"fw-1\"\ntype = \"FW\"\nat = \"edge-1\"\nbits_per_s = 1_000_000_000\n\
        [[chains.chains]]\nname = \"inbound\"\ngroup = \"web\"\nsequence = [\"FW\"]\n";

    fn problems(text: &str) -> Vec<String> {
        Config::from_text(text, "f").err().unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn boxes_and_chains_are_read_and_reloaded_as_a_whole() {
        let config = Config::from_text(DECLARED, "f").unwrap();
        let engine = &config.options.settings.engine;
        assert_eq!((engine.chains.boxes.len(), engine.chains.chains.len()), (1, 1));
        assert_eq!((engine.routes.chains.transfer, engine.routes.chains.port), (Micros::from_secs(30), 80));
        let none = Config::from_text("", "f").unwrap();
        assert_eq!(*none.options.settings.engine.chains, ChainsDocument::default());
        let (changed, restart) = config.changes(&none);
        assert!(changed.contains(&"chains.boxes".to_owned()) && restart.is_empty(), "{changed:?} {restart:?}");
        let moved = Config::from_text(&format!("\n\n{DECLARED}"), "f").unwrap();
        assert_eq!(moved.changes(&config).0, Vec::<String>::new(), "only lines have moved");
    }

    #[test]
    fn every_problem_of_a_declaration_is_named_with_its_line() {
        let text = "[chains]\n[[chains.boxes]]\nname = \"fw-1\"\ntype = \"FW\"\nat = \"\"\nbits_per_s = 0\n\
            [[chains.chains]]\nname = \"a\"\nsequence = [\"FV\"]\n[[chains.chains]]\nname = \"b\"\nsequence = []\n\
            [[chains.chains]]\nname = \"c\"\ngroup = \"mapp\"\nsequence = [\"FW\"]\n";
        let found = problems(text);
        for (line, words) in [
            (3, "middlebox \"fw-1\" hangs on \"\", which the network does not know"),
            (3, "middlebox \"fw-1\" has capacity 0 bit/s: it must carry something"),
            (8, "chain \"a\" passes type \"FV\", which no middlebox is of; \"FW\" is"),
            (11, "chain \"b\" has an empty sequence"),
            (14, "chain \"c\" names group \"mapp\", which is not declared; \"map\" is"),
            (8, "chains \"a\" and \"c\" contradict each other"),
        ] {
            let begin = format!("f:{line}: chains: {words}");
            assert!(found.iter().any(|problem| problem.starts_with(&begin)), "{begin} is not in {found:#?}");
        }
        let found = problems("[chains]\n[[chains.boxes]]\nname = \"fw-1\"\nkind = \"FW\"\n");
        assert!(found[0].starts_with("f:4: chains: unknown field `kind`"), "{found:?}");
        let found = problems("[chains]\nport = 0\n");
        assert!(found[0].contains("chains.port: 0 is outside 1 to 65535"), "{found:?}");
    }
}
