//! The house rules for one source file. Each breach says file, line, what stands there, and why it may not.

use crate::source::{Kind, Mention, code, is_word, mentions, without_tests};

/// Rooms and the floor each stands on; docs/architecture.md says what lives where.
const FLOORS: &[(&str, u8)] = &[
    ("units", 1),
    ("solve", 1),
    ("network", 2),
    ("cluster", 2),
    ("policy", 3),
    ("engine", 4),
    ("sim", 5),
    ("runtime", 5),
    ("feed", 5),
    ("server", 5),
    ("store", 5),
    ("client", 5),
    ("rest", 5), // asks Hadoop and SDN controllers; imports no other room
    ("wire", 5),
    ("config", 6),
    ("emulate", 6),
    ("reproduce", 6),
    ("hadoop", 6),
    ("sdn", 6),
    ("cli", 6),
    ("telemetry", 5), // imports no other room; every edge records through it
    ("bin", 6),
];
const EDGES: u8 = 5;
const TOP: u8 = 6;
/// On these floors only the named neighbour may be used: (user, used).
const NEIGHBOURS: &[(&str, &str)] = &[("solve", "units"), ("cluster", "network")];

/// Longer files are split: nobody reads them whole.
const MAX_LINES: usize = 700;

/// Crates that a pure room never names, alone or as the start of a path.
const IMPURE_CRATES: &[&str] = &["tokio", "tokio_stream", "tokio_util", "tonic", "hyper_util", "redb", "notify"];
/// Paths that a pure room never names, by their start.
const IMPURE_PATHS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "net"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "process"],
    &["rand", "rng"],
    &["rand", "random"],
    &["metrics"],
    &["tracing"],
];
/// Names that a pure room never uses, wherever they stand in a path.
const IMPURE_NAMES: &[&str] = &["SystemTime", "Instant", "thread_rng", "SysRng", "OsRng", "ThreadRng"];
const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
const UNFINISHED_MACROS: &[&str] = &["todo", "unimplemented"];
const UNFINISHED_MARKS: &[&str] = &["FIXME", "XXX"];

/// Breaches in one file. `path` is relative to the package, as in `src/policy/mod.rs`; `test_only` files are declared
/// under `#[cfg(test)]` and may use what tests may.
pub(crate) fn breaches(path: &str, source: &str, test_only: bool) -> Vec<String> {
    let mut found = shape(path, source);
    let all = code(source);
    for mention in mentions(&all) {
        if mention.kind == Kind::Macro && UNFINISHED_MACROS.contains(&last(&mention)) {
            found.push(breach(path, &mention, "unfinished code is not landed: finish it or leave it out"));
        }
    }
    if test_only || !path.starts_with("src/") {
        return found;
    }
    let Some(room) = room(path) else { return found };
    if floor(room).is_none() {
        found.push(format!("{path}:1: room `{room}` stands on no floor: add it to docs/architecture.md and to FLOORS"));
        return found;
    }
    for mention in mentions(&without_tests(&all)) {
        found.extend(floor_breach(path, room, &mention));
        if is_pure(room) {
            found.extend(impurity(path, &mention));
        }
        let calls = mention.kind == Kind::Member || mention.path.len() > 1;
        if calls && last(&mention) == "unwrap" {
            found.push(breach(path, &mention, "a daemon says why it may not fail: use `expect(\"why it holds\")`"));
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
    if !path.starts_with("tests/house") {
        for (number, line) in source.lines().enumerate() {
            let words = || line.split(|c| !is_word(c));
            if let Some(mark) = words().find(|word| UNFINISHED_MARKS.contains(word)) {
                let number = number + 1;
                found.push(format!("{path}:{number}: {mark}: known faults are mended or filed, not marked"));
            }
        }
    }
    found
}

/// The room that `path` belongs to; none for the crate's root.
fn room(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let first = inside.split('/').next()?.trim_end_matches(".rs");
    (first != "lib").then_some(first)
}

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|&(_, floor)| floor)
}

fn is_pure(room: &str) -> bool {
    room == "sim" || floor(room).is_some_and(|floor| floor < EDGES)
}

fn floor_breach(path: &str, room: &str, mention: &Mention) -> Option<String> {
    let used = used_room(path, &mention.path)?;
    let (own, other) = (floor(room)?, floor(used)?);
    let why = match room {
        _ if used == room => return None,
        "wire" => "generated messages import nothing of ours",
        "sim" if other >= EDGES => "sim is pure: it uses floors 1 to 4 only",
        _ if other < own => return None,
        _ if other > own => "a lower floor never imports a higher one",
        _ if own == EDGES || own == TOP || NEIGHBOURS.contains(&(room, used)) => return None,
        _ => "rooms of one floor below the edges do not know each other (but solve uses units, cluster uses network)",
    };
    let (line, text) = (mention.line, mention.path.join("::"));
    Some(format!("{path}:{line}: `{text}` in {room} (floor {own}) names {used} (floor {other}): {why}"))
}

/// The room that a path leads to: after `crate`, or after as many `super` as lead out of the file's own room.
fn used_room<'m>(path: &str, segments: &'m [String]) -> Option<&'m str> {
    let supers = segments.iter().take_while(|segment| *segment == "super").count();
    let depth = path.trim_end_matches("/mod.rs").split('/').count() - 1;
    let leads_out = supers >= depth || segments.first().is_some_and(|first| first == "crate");
    let target = segments.get(supers.max(1))?;
    (leads_out && floor(target).is_some()).then_some(target.as_str())
}

fn impurity(path: &str, mention: &Mention) -> Option<String> {
    if mention.kind == Kind::Member {
        return None;
    }
    let segments = &mention.path;
    let starts = |pattern: &&[&str]| {
        // One word alone may be a variable; as a path it is the crate.
        segments.len() > 1 && pattern.len() <= segments.len() && pattern.iter().zip(segments).all(|(a, b)| a == b)
    };
    let printing = mention.kind == Kind::Macro && PRINTING.contains(&last(mention));
    let impure = printing
        || IMPURE_CRATES.contains(&segments[0].as_str())
        || IMPURE_PATHS.iter().any(starts)
        || segments.iter().any(|segment| IMPURE_NAMES.contains(&segment.as_str()));
    impure.then(|| {
        breach(path, mention, "pure rooms get clock, data and seed as arguments and return what is to be done or shown")
    })
}

fn last(mention: &Mention) -> &str {
    mention.path.last().map_or("", String::as_str)
}

fn breach(path: &str, mention: &Mention, why: &str) -> String {
    let mark = if mention.kind == Kind::Macro { "!" } else { "" };
    format!("{path}:{}: `{}{mark}`: {why}", mention.line, mention.path.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaches of a file with a purpose line and `body` from line 2 on.
    fn at(path: &str, body: &str) -> Vec<String> {
        breaches(path, &format!("//! Purpose.\n{body}"), false)
    }

    fn refused(path: &str, body: &str, part: &str) {
        let found = at(path, body);
        assert!(found.len() == 1 && found[0].contains(part), "{path}: {body:?}: {found:#?}");
    }

    fn passes(path: &str, body: &str) {
        assert_eq!(at(path, body), Vec::<String>::new(), "{path}: {body:?}");
    }

    #[test]
    fn a_lower_floor_that_names_a_higher_one_is_caught() {
        refused("src/policy/mod.rs", "use crate::engine::Ledger;", "src/policy/mod.rs:2: `crate::engine::Ledger`");
        refused("src/policy/mod.rs", "use crate::{units::Bytes, engine::Ledger};", "policy (floor 3) names engine");
        refused("src/units.rs", "fn f() {\n crate::solve::anneal() }", "src/units.rs:3:");
        refused("src/network/mod.rs", "use crate::cluster::Snapshot;", "do not know each other");
        refused("src/sim/mod.rs", "use crate::runtime::Writer;", "sim is pure");
        refused("src/wire.rs", "use crate::units::Bytes;", "import nothing");
        refused("src/server/mod.rs", "use crate::cli::Args;", "never imports a higher");
        refused("src/policy/mod.rs", "use super::engine::Ledger;", "names engine");
        refused("src/policy/container/cost.rs", "use super::super::super::engine::Ledger;", "names engine");
        refused("src/policy/container/mod.rs", "use super::super::engine::Ledger;", "names engine");
        refused("src/shed/mod.rs", "", "stands on no floor");
    }

    #[test]
    fn what_the_floors_allow_passes() {
        passes("src/policy/mod.rs", "use crate::cluster::Snapshot; use super::units::Bytes; use self::terms::engine;");
        passes("src/policy/container/mod.rs", "use super::engine::Toy; // policy::engine, not the room");
        passes("src/cluster/mod.rs", "use crate::network::Graph;");
        passes("src/solve/mod.rs", "use crate::units::Bytes;");
        passes("src/server/mod.rs", "use crate::{runtime::Writer, wire::v1, sim::JobModel};");
        passes("src/cli/mod.rs", "use crate::emulate::Cluster;");
        passes("src/lib.rs", "pub mod cli;\nuse crate::cli::x;");
        passes("src/units.rs", "/// [`crate::engine::Ledger`]\nconst A: &str = \"crate::engine\";");
        passes("src/units.rs", "#[cfg(test)]\nmod tests { use crate::engine::Ledger; }");
    }

    #[test]
    fn a_pure_room_that_reaches_outside_is_caught() {
        for room in ["units.rs", "solve/mod.rs", "policy/a/b.rs", "engine/mod.rs", "sim/mod.rs"] {
            for body in [
                "use tokio::sync;",
                "async fn f() { tonic::Status::ok() }",
                "use std::fs;",
                "use std::{collections::BTreeMap, fs::File};",
                "fn f() { std::net::TcpStream::connect(1) }",
                "fn f() { std::env::var(x) }",
                "use std::thread;",
                "use std::time::SystemTime;",
                "fn f(at: Instant) {}",
                "fn f() { rand::rng() }",
                "fn f() { thread_rng() }",
                "fn f() { metrics::counter!(x) }",
                "use tracing::info;",
                "fn f() { println!() }",
                "fn f() { eprintln!() }",
            ] {
                refused(&format!("src/{room}"), body, "pure rooms get clock");
            }
        }
    }

    #[test]
    fn what_pure_rooms_may_do_passes() {
        passes("src/engine/mod.rs", "use std::time::Duration; use rand::rngs::ChaCha8Rng; use std::io::BufRead;");
        passes("src/engine/mod.rs", "fn f(metrics: &Counts) { metrics.add(self.instant, Instantly) }");
        passes("src/engine/mod.rs", "// println! and std::fs are for others\n#[cfg(test)]\nuse std::fs;");
        passes("src/runtime/mod.rs", "use tokio::sync; use std::time::Instant; use tracing::info;");
    }

    #[test]
    fn unwrap_outside_tests_is_caught() {
        refused("src/server/mod.rs", "fn f() {\n\n x.unwrap() }", "src/server/mod.rs:4: `unwrap`");
        refused("src/server/mod.rs", "fn f() { x.map(Option::unwrap) }", "`Option::unwrap`");
        passes("src/server/mod.rs", "fn f() { x.unwrap_or(1).expect(\"why it holds\"); let unwrap = 1; }");
        passes("src/server/mod.rs", "#[cfg(test)]\nmod tests { fn f() { x.unwrap() } }");
        assert!(breaches("src/server/tests.rs", "//! P.\nfn f() { x.unwrap() }", true).is_empty());
    }

    #[test]
    fn unfinished_code_is_caught_in_tests_too() {
        refused("src/server/mod.rs", "fn f() { todo!() }", "unfinished");
        refused("src/server/mod.rs", "#[cfg(test)]\nmod tests { fn f() { unimplemented!(\"x\") } }", "unfinished");
        refused("tests/demo.rs", "// FIXME: later", "tests/demo.rs:2: FIXME");
        refused("src/server/mod.rs", "/* XXX */", "XXX");
        passes("src/server/mod.rs", "// a XXXL shirt, todo lists");
    }

    #[test]
    fn a_file_without_purpose_or_of_great_length_is_caught() {
        assert!(breaches("src/units.rs", "use std::fmt;\n", false)[0].contains("no `//!` line"));
        refused("src/units.rs", &"\n".repeat(700), "701 lines, more than 700");
        passes("src/units.rs", &"\n".repeat(699));
    }
}
