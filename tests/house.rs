//! Holds the house rules that neither crates nor clippy can: which modules of a crate may know which, how many circles of
//! files there are, file shape, which crates the pure ones depend on, top-level entries, licenses and banned crates.
//!
//! docs/architecture.md says why each rule stands. The checkers are tested with planted breaches beside them, so that
//! they are known to fail.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

#[path = "house/circles.rs"]
mod circles;
#[path = "house/rules.rs"]
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What may stand at the top of the package: anything else has a room of its own to go to.
const TOP_LEVEL: &[&str] = &[
    ".ci",
    ".git",
    ".gitignore",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "benches",
    "clients",
    "config",
    "deny.toml",
    "deploy",
    "docs",
    "fuzz",
    "proto",
    "rustfmt.toml",
    "src",
    "target",
    "tests",
];
/// Crates that must stay free of clocks, sockets and disks, and what would bring those in.
const PURE: &[&str] = &["hintd-model", "hintd-policy", "hintd-engine", "hintd-simulator"];
const IMPURE: &[&str] =
    &["tokio", "tonic", "hyper", "redb", "notify", "metrics", "tracing", "hintd-client", "hintd-daemon"];
/// Circles of files within crates. A new one is broken up: what both files need gets a file that needs neither.
const CIRCLES_MAX: usize = 2;
/// Files in them: circles that grow into one are fewer, and worse.
const IN_CIRCLES_MAX: usize = 17;
/// A worker's own folders and an operating system's droppings, never committed.
const LOCAL: &[&str] = &[".cargo", ".DS_Store", ".direnv", ".envrc", ".idea", ".vscode"];
/// Never in the tree, whatever deny.toml says: C libraries that double the build or tie it to a system's headers.
const NEVER: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl-sys"];

fn root() -> PathBuf {
    // At run time, not baked in: the checkout may have moved since the test was built.
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Every `.rs` file below `folder`, sorted, as paths relative to the package.
fn rust_files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where the modules live that `path` declares under `#[cfg(test)]`: such a file, and all below such a folder.
fn test_only(path: &str, source: &str) -> Vec<String> {
    let folder = match path.rsplit_once('/') {
        Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    };
    let mut lines = source.lines().map(str::trim);
    let mut found = Vec::new();
    while lines.any(|line| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(any(test")) {
        let Some(declared) = lines.find(|line| !line.starts_with("#[")) else { break };
        if let Some((_, name)) = declared.trim_end_matches(';').split_once("mod ").filter(|_| declared.ends_with(';')) {
            found.extend([format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]);
        }
    }
    found
}

fn package_names(lock: &str) -> Vec<(String, Option<String>)> {
    let lock: toml::Table = lock.parse().expect("Cargo.lock is TOML");
    let text = |package: &toml::Value, key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let packages = lock["package"].as_array().expect("Cargo.lock lists packages");
    packages
        .iter()
        .map(|package| (text(package, "name").expect("a package has a name"), text(package, "source")))
        .collect()
}

#[test]
fn every_source_file_keeps_the_rules() {
    let sources: Vec<(String, String)> = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(folder))
        .map(|path| (path.clone(), read(&path)))
        .collect();
    assert!(sources.len() > 20, "the walk found only {} files", sources.len());
    let tests: BTreeSet<String> = sources.iter().flat_map(|(path, source)| test_only(path, source)).collect();
    let is_test = |path: &str| tests.iter().any(|test| path == test || test.ends_with('/') && path.starts_with(test));
    let found: Vec<String> =
        sources.iter().flat_map(|(path, source)| rules::breaches(path, source, is_test(path))).collect();
    assert!(found.is_empty(), "{} breaches of the house rules:\n{}", found.len(), found.join("\n"));
}

#[test]
fn hardly_any_files_know_each_other_in_circles() {
    let files = rust_files("src");
    let tests: BTreeSet<String> = files.iter().flat_map(|path| test_only(path, &read(path))).collect();
    let is_test = |path: &str| tests.iter().any(|test| path == test || test.ends_with('/') && path.starts_with(test));
    let mut crates: BTreeMap<&str, BTreeMap<circles::Place, String>> = BTreeMap::new();
    for path in files.iter().filter(|path| !is_test(path)) {
        if let Some((name, inside)) = path.strip_prefix("src/").and_then(|path| path.split_once("/src/")) {
            crates.entry(name).or_default().insert(circles::place(inside), read(path));
        }
    }
    assert!(crates.len() > 5, "the walk found only {} crates", crates.len());
    let (mut found, mut within) = (Vec::new(), 0);
    for (name, sources) in &crates {
        for circle in circles::circles(sources) {
            let files: Vec<String> = circle.iter().map(|place| place.join("::")).collect();
            within += files.len();
            found.push(format!("{name}, {} files: {}", files.len(), files.join(" ")));
        }
    }
    let (count, list) = (found.len(), found.join("\n"));
    assert!(count <= CIRCLES_MAX, "{count} circles of files, more than {CIRCLES_MAX}:\n{list}");
    assert!(within <= IN_CIRCLES_MAX, "{within} files in circles, more than {IN_CIRCLES_MAX}:\n{list}");
}

#[test]
fn test_files_are_known_by_their_declaration() {
    let declared = test_only("src/a/mod.rs", "//! P.\n#[cfg(test)]\nmod toys;\nmod real;");
    assert_eq!(declared, ["src/a/toys.rs", "src/a/toys/"]);
    assert_eq!(test_only("src/a/b.rs", "#[cfg(test)]\npub(crate) mod toys;"), ["src/a/b/toys.rs", "src/a/b/toys/"]);
    assert!(test_only("src/a/mod.rs", "#[cfg(test)]\nmod tests { fn f() {} }").is_empty());
}

#[test]
fn the_top_level_holds_only_what_belongs_there() {
    let strays: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !TOP_LEVEL.contains(&name.as_str()) && !LOCAL.contains(&name.as_str()))
        .collect();
    assert!(
        strays.is_empty(),
        "{strays:?} at the top of the package: move them into a folder, or add them to TOP_LEVEL"
    );
}

#[test]
fn the_lock_file_holds_no_banned_crate_and_no_foreign_source() {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let banned: BTreeSet<&str> =
        deny["bans"]["deny"].as_array().unwrap().iter().map(|ban| ban["crate"].as_str().unwrap()).collect();
    for name in NEVER {
        assert!(banned.contains(name), "deny.toml no longer bans {name}");
    }
    let packages = package_names(&read("Cargo.lock"));
    assert!(packages.len() > 50, "Cargo.lock lists only {} packages", packages.len());
    for (name, source) in packages {
        assert!(!banned.contains(name.as_str()), "Cargo.lock holds {name}: deny.toml says why it may not");
        let known = source.as_deref().is_none_or(|source| source.starts_with("registry+https://github.com/rust-lang/"));
        assert!(known, "{name} comes from {source:?}: only crates.io is trusted");
    }
}

#[test]
fn every_dependency_has_an_allowed_license() {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let allowed: Vec<String> = deny["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|license| license.as_str().unwrap().to_owned())
        .collect();
    let allowed: Vec<spdx::Licensee> =
        allowed.iter().map(|license| spdx::Licensee::parse(license).expect("deny.toml names SPDX licenses")).collect();
    for package in metadata()["packages"].as_array().unwrap() {
        let (name, license) = (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or_default());
        let expression = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX)
            .unwrap_or_else(|error| panic!("{name}: {license:?} is not a license expression: {error}"));
        let allows = expression.evaluate(|term| allowed.iter().any(|license| license.satisfies(term)));
        assert!(allows, "{name} is under {license:?}, which deny.toml does not allow");
    }
}

/// Names of all packages that `package` depends on in a build, however indirectly.
fn dependencies_of(package: &str, metadata: &serde_json::Value) -> BTreeSet<String> {
    let name_of: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let nodes: BTreeMap<&str, &serde_json::Value> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node))
        .collect();
    let start = nodes.keys().find(|id| name_of[*id] == package).unwrap_or_else(|| panic!("no package {package}"));
    let (mut open, mut found) = (vec![*start], BTreeSet::new());
    while let Some(id) = open.pop() {
        for dependency in nodes[id]["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            let id = dependency["pkg"].as_str().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) && found.insert(name_of[id].to_owned()) {
                open.push(id);
            }
        }
    }
    found
}

#[test]
fn pure_crates_depend_on_nothing_that_reaches_outside() {
    let metadata = metadata();
    assert!(dependencies_of("hintd-daemon", &metadata).contains("tokio"), "the walk finds what is there");
    for package in PURE {
        let found = dependencies_of(package, &metadata);
        let impure: Vec<_> = IMPURE.iter().filter(|name| found.contains(**name)).collect();
        assert!(impure.is_empty(), "{package} depends on {impure:?}: time, data and seeds are arguments there");
    }
    let client = dependencies_of("hintd-client", &metadata);
    for heavy in ["redb", "plotters", "clap", "petgraph", "hintd-engine"] {
        assert!(!client.contains(heavy), "an ApplicationMaster's author would build {heavy}");
    }
}

/// The dependency tree for this machine. Offline: what was just built is at hand, other platforms' crates are not.
fn metadata() -> serde_json::Value {
    let output = |program: String, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tool = |variable: &str, default: &str| env::var(variable).unwrap_or_else(|_| default.to_owned());
    let version = output(tool("RUSTC", "rustc"), &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host];
    serde_json::from_str(&output(tool("CARGO", "cargo"), &arguments)).unwrap()
}
