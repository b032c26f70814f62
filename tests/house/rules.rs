//! The house rules for one source file that neither crates nor clippy hold. Each breach says file, line and why.

/// Modules of one crate that may not know all of their neighbors: crate, module, the neighbors that it may use.
/// Whatever is not listed may use any module of its crate.
const NEIGHBORS: &[(&str, &str, &[&str])] = &[
    ("model", "units", &[]),
    ("model", "solve", &["units"]),
    ("model", "network", &["units", "solve"]),
    ("model", "cluster", &["units", "solve", "network"]),
    ("client", "wire", &[]),
    ("daemon", "telemetry", &[]),
    ("daemon", "rest_client", &[]),
    ("daemon", "store", &["telemetry"]),
    ("daemon", "runtime", &["telemetry", "store"]),
    ("daemon", "feed", &["telemetry", "runtime"]),
    ("daemon", "findings", &[]),
    ("daemon", "server", &["telemetry", "store", "runtime", "feed", "findings"]),
    ("daemon", "http", &["telemetry", "runtime", "server"]),
    ("daemon", "hadoop", &["telemetry", "rest_client", "runtime", "feed"]),
    ("daemon", "sdn", &["telemetry", "rest_client", "runtime", "feed"]),
    ("cli", "emulate", &[]),
];
/// Modules that only their own crate's edge uses: crate, module. Nothing else in the crate imports them.
const ON_TOP: &[(&str, &str)] = &[("simulator", "reproduce")];

/// Longer files are split: nobody reads them whole.
const MAX_LINES: usize = 700;
const UNFINISHED: [&str; 2] = ["FIXME", "XXX"];

/// Breaches in one file. `path` is relative to the package, as in `src/policy/src/lib.rs`; `test_only` files are
/// declared under `#[cfg(test)]` and may import what they like.
pub(crate) fn breaches(path: &str, source: &str, test_only: bool) -> Vec<String> {
    let mut found = shape(path, source);
    let Some((folder, module)) = module(path) else { return found };
    if !test_only {
        for (number, line) in code_lines(source) {
            found.extend(imported(line).filter_map(|used| {
                let why = forbidden(folder, module, used)?;
                Some(format!("{path}:{number}: `{module}` names `{used}`: {why}"))
            }));
        }
    }
    found
}

/// What holds for every file, tests as well.
fn shape(path: &str, source: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !source.starts_with("//!") {
        found.push(format!("{path}:1: no `//!` line: a reader wants to know what the file is for"));
    }
    let lines = source.lines().count();
    if lines > MAX_LINES {
        found.push(format!("{path}:{MAX_LINES}: {lines} lines, more than {MAX_LINES}: split it by what it does"));
    }
    if path != "tests/house/rules.rs" {
        for (number, line) in (1..).zip(source.lines()) {
            if let Some(mark) = words(line).find(|word| UNFINISHED.contains(word)) {
                found.push(format!("{path}:{number}: {mark}: known faults are fixed or filed, not marked"));
            }
        }
    }
    found
}

/// Crate folder and top module of a file in `src/CRATE/src/`; none for a crate's root.
fn module(path: &str) -> Option<(&str, &str)> {
    let (folder, inside) = path.strip_prefix("src/")?.split_once("/src/")?;
    let module = inside.split('/').next()?.trim_end_matches(".rs");
    (module != "lib").then_some((folder, module))
}

/// Numbered lines of code, without comments, up to the file's own tests.
fn code_lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(source.lines()).take_while(|(_, line)| *line != "#[cfg(test)]");
    lines.map(|(number, line)| (number, line.split("//").next().unwrap_or_default()))
}

/// Modules of the own crate that a line names by `crate::`.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let after = line.split("crate::").skip(1);
    after.filter_map(|rest| words(rest).next()).filter(|word| !word.is_empty())
}

fn forbidden(folder: &str, module: &str, used: &str) -> Option<&'static str> {
    if used == module {
        return None;
    }
    if ON_TOP.contains(&(folder, used)) {
        return Some("nothing below it knows it");
    }
    let known =
        |name: &str| NEIGHBORS.iter().any(|(of, module, _)| *of == folder && *module == name) || name == "config";
    let (_, _, allowed) = NEIGHBORS.iter().find(|(of, name, _)| *of == folder && *name == module)?;
    (known(used) && !allowed.contains(&used)).then_some("docs/architecture.md says which modules may know which")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, body: &str, part: &str) {
        let found = breaches(path, &format!("//! Purpose.\n{body}"), false);
        assert!(found.len() == 1 && found[0].contains(part), "{path}: {body:?}: {found:#?}");
    }

    fn passes(path: &str, body: &str) {
        assert_eq!(breaches(path, &format!("//! Purpose.\n{body}"), false), Vec::<String>::new(), "{path}: {body:?}");
    }

    #[test]
    fn a_module_that_names_one_above_it_is_caught() {
        refused("src/model/src/network/mod.rs", "use crate::cluster::Snapshot;", "network/mod.rs:2: `network` names");
        refused("src/model/src/units.rs", "fn f() {\n crate::solve::anneal() }", "src/model/src/units.rs:3:");
        refused("src/model/src/solve/mod.rs", "use crate::network::Graph;", "`solve` names `network`");
        refused("src/daemon/src/runtime/daemon/place.rs", "use crate::server::status;", "`runtime` names `server`");
        refused("src/daemon/src/store/mod.rs", "use crate::config::Config;", "`store` names `config`");
        refused("src/simulator/src/yarn/mod.rs", "use crate::reproduce::Row;", "nothing below it knows it");
    }

    #[test]
    fn what_the_rules_allow_passes() {
        passes("src/model/src/cluster/mod.rs", "use crate::network::Graph; use crate::units::Bytes;");
        passes("src/model/src/units.rs", "/// [`crate::cluster::Snapshot`]\nconst A: u8 = 1; // crate::cluster");
        passes("src/model/src/units.rs", "#[cfg(test)]\nmod tests { use crate::network::Graph; }");
        passes("src/daemon/src/config/mod.rs", "use crate::sdn::Options;");
        passes("src/engine/src/placer/mod.rs", "use crate::ledger::Ledger; use hintd_model::units::Bytes;");
        assert!(breaches("src/model/src/units.rs", "//! P.\nuse crate::network::Graph;", true).is_empty());
    }

    #[test]
    fn an_unfinished_mark_is_caught_in_tests_too() {
        refused("tests/demo.rs", "// FIXME: later", "tests/demo.rs:2: FIXME");
        refused("src/daemon/src/server/mod.rs", "/* XXX */", "XXX");
        passes("src/daemon/src/server/mod.rs", "// a XXXL shirt, todo lists");
    }

    #[test]
    fn a_file_without_purpose_or_of_great_length_is_caught() {
        assert!(breaches("src/model/src/units.rs", "use std::fmt;\n", false)[0].contains("no `//!` line"));
        refused("src/model/src/units.rs", &"\n".repeat(700), "701 lines, more than 700");
        passes("src/model/src/units.rs", &"\n".repeat(699));
    }
}
