//! Circles of files: files of one crate each of which needs the others to be understood, as each names what another has.
//!
//! What a file names of the modules around it does not count: it lives inside them, and they may name it. A name that is
//! handed on by `pub use` counts for the file that has it.

use pathfinding::directed::strongly_connected_components::strongly_connected_components;
use std::collections::{BTreeMap, BTreeSet};

/// A module's place in its crate: `["network", "graph"]`; empty for the crate's root.
pub(crate) type Place = Vec<String>;

/// What one file says.
#[derive(Default)]
struct Module {
    /// Names that `use` brings in, and what they stand for.
    names: BTreeMap<String, Place>,
    /// Everything of its own crate that it names.
    named: Vec<Place>,
}

/// The circles among the modules of one crate, each with its modules in order. Test modules are left out by the caller.
pub(crate) fn circles(sources: &BTreeMap<Place, String>) -> Vec<Vec<Place>> {
    let modules: BTreeMap<&Place, Module> =
        sources.iter().map(|(place, source)| (place, module(place, source, sources))).collect();
    let edges: BTreeMap<&Place, BTreeSet<Place>> =
        modules.iter().map(|(place, module)| (*place, neighbors(place, module, &modules))).collect();
    let nodes: Vec<Place> = sources.keys().cloned().collect();
    let mut found = strongly_connected_components(&nodes, |place| edges[place].iter().cloned());
    found.retain(|circle| circle.len() > 1);
    for circle in &mut found {
        circle.sort();
    }
    found.sort();
    found
}

/// A file's place: `network/mod.rs` and `network.rs` are `["network"]`.
pub(crate) fn place(path_in_crate: &str) -> Place {
    let mut place: Place = path_in_crate.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    place.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
    place
}

/// Modules that `place` needs, but for itself and those around it.
fn neighbors(place: &Place, module: &Module, modules: &BTreeMap<&Place, Module>) -> BTreeSet<Place> {
    let homes = module.named.iter().map(|path| home(path, modules, 0));
    homes.filter(|home| !place.starts_with(home)).collect()
}

/// The module that has what a path names, through re-exports.
fn home(path: &[String], modules: &BTreeMap<&Place, Module>, depth: usize) -> Place {
    let inside = (0..path.len()).rev().map(|end| &path[..=end]);
    let at = inside.into_iter().find(|start| modules.contains_key(&start.to_vec())).unwrap_or(&[]).to_vec();
    let rest = &path[at.len()..];
    let handed_on = rest.first().and_then(|name| modules.get(&at)?.names.get(name));
    match handed_on {
        // Names that hand each other on in a ring end somewhere.
        Some(other) if depth < 8 => home(&[other, &rest[1..]].concat(), modules, depth + 1),
        _ => at,
    }
}

fn module(place: &Place, source: &str, sources: &BTreeMap<Place, String>) -> Module {
    let mut found = Module::default();
    let (uses, rest) = uses_and_rest(&code(source));
    for (path, name) in uses.iter().flat_map(|text| tree(text)) {
        if let Some(path) = absolute(place, &path, sources) {
            found.names.insert(name, path.clone());
            found.named.push(path);
        }
    }
    found.named.extend(paths(&rest).into_iter().filter_map(|path| absolute(place, &path, sources)));
    found
}

/// Lines of code, without comments, up to the file's own tests.
fn code(source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let own_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && !pair[1].ends_with(';');
    let end = lines.windows(2).position(own_tests).unwrap_or(lines.len());
    let code = lines[..end].iter().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// What stands between each `use` and its semicolon, and everything else.
fn uses_and_rest(code: &str) -> (Vec<String>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let begin = statement.rfind("use ").filter(|&at| {
            let before = statement[..at].lines().last().unwrap_or_default().trim();
            before.is_empty() || before.starts_with("pub")
        });
        match begin {
            Some(at) => {
                rest.push_str(&statement[..at]);
                uses.push(statement[at + 4..].trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" "));
            }
            None => rest.push_str(statement),
        }
    }
    (uses, rest)
}

/// The paths of a tree of `use`, each with the name that it brings in.
fn tree(text: &str) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    for part in at_commas(text) {
        if let Some((before, inside)) = part.split_once('{') {
            let before: Place = segments(before.trim_end().trim_end_matches("::"));
            let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
            found.extend(tree(inside).into_iter().map(|(path, name)| ([before.clone(), path].concat(), name)));
        } else {
            let (path, alias) = part.split_once(" as ").map_or((part, None), |(path, alias)| (path, Some(alias)));
            let mut path = segments(path);
            path.pop_if(|last| last == "self");
            let name = alias.map(|alias| alias.trim().to_owned()).or_else(|| path.last().cloned());
            found.extend(name.map(|name| (path, name)));
        }
    }
    found
}

/// Parts between the commas that no braces are around.
fn at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(Some(text[begin..at].trim()).filter(|part| !part.is_empty()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn segments(path: &str) -> Place {
    path.split("::").map(|segment| segment.trim().to_owned()).filter(|segment| !segment.is_empty()).collect()
}

/// Paths of two names and more, wherever they stand.
fn paths(code: &str) -> Vec<Place> {
    let chains = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    let chains = chains.filter(|chain| chain.contains("::") && !chain.starts_with("::"));
    chains.map(segments).filter(|path| path.len() > 1).collect()
}

/// A path from the crate's root; `None`: it is of another crate, or no path of a module.
fn absolute(place: &Place, path: &[String], sources: &BTreeMap<Place, String>) -> Option<Place> {
    let first = path.first()?.as_str();
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let up = path.iter().take_while(|name| *name == "super").count();
    let rest = &path[up + usize::from(first == "self")..];
    if up > 0 || first == "self" {
        return Some([&place[..place.len().checked_sub(up)?], rest].concat());
    }
    let child = [&place[..], &path[..1]].concat();
    sources.contains_key(&child).then(|| [&place[..], path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Circles of files with these sources, as text.
    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, source)| (place(path), (*source).to_owned())).collect();
        circles(&sources)
            .iter()
            .map(|circle| circle.iter().map(|place| place.join("::")).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn files_that_name_each_other_are_a_circle() {
        let lib = ("lib.rs", "mod a; mod b;");
        let one_way = [lib, ("a.rs", "use crate::b::B;"), ("b.rs", "pub struct B;")];
        assert_eq!(of(&one_way), Vec::<String>::new());
        let both = [lib, ("a.rs", "use crate::b::B;"), ("b.rs", "fn f() -> super::a::A {}")];
        assert_eq!(of(&both), ["a b"]);
        let in_comments =
            [lib, ("a.rs", "use crate::b::B;"), ("b.rs", "/// [`super::a::A`]\nfn f() {} // super::a::A")];
        assert_eq!(of(&in_comments), Vec::<String>::new());
        let in_tests =
            [lib, ("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests {\n use super::super::a::A; }")];
        assert_eq!(of(&in_tests), Vec::<String>::new());
    }

    #[test]
    fn a_circle_may_go_over_several_files_and_re_exports() {
        let files = [
            ("lib.rs", "mod a; mod room;"),
            ("a.rs", "use crate::room::{self, inner::{C as Other, D}};"),
            ("room/mod.rs", "mod b; mod inner;\npub(crate) use b::B;"),
            ("room/b.rs", "use crate::a::A;"),
            ("room/inner.rs", "use super::B;"),
        ];
        assert_eq!(of(&files), ["a room::b room::inner"]);
    }

    #[test]
    fn a_room_and_what_is_in_it_are_none() {
        let files = [
            ("lib.rs", "mod room;"),
            ("room/mod.rs", "mod inner;\nuse inner::Inner;\npub(crate) struct Room;\nfn f() { inner::make() }"),
            ("room/inner.rs", "use super::Room;"),
        ];
        assert_eq!(of(&files), Vec::<String>::new());
    }
}
