//! The page's files, within the program: what is not in this table is not served, whatever a path spells.

use sha2::{Digest as _, Sha256};

/// One file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asset {
    /// Below `/page/`, as a browser asks for it.
    pub(super) path: &'static str,
    /// Its media type.
    pub(super) kind: &'static str,
    pub(super) bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $kind:expr) => {
        Asset { path: $path, kind: $kind, bytes: include_bytes!(concat!("assets/", $path)) }
    };
}

/// The first one is the page itself, at `/page/`.
const ASSETS: &[Asset] = &[
    Asset { path: "", kind: HTML, bytes: include_bytes!("assets/index.html") },
    asset!("page.css", CSS),
    asset!("icon.svg", SVG),
    asset!("page.mjs", SCRIPT),
    asset!("state.mjs", SCRIPT),
    asset!("parts.mjs", SCRIPT),
    asset!("overview.mjs", SCRIPT),
    asset!("network.mjs", SCRIPT),
    asset!("layout.mjs", SCRIPT),
    asset!("nodes.mjs", SCRIPT),
    asset!("applications.mjs", SCRIPT),
    asset!("settings.mjs", SCRIPT),
    asset!("replay.mjs", SCRIPT),
    asset!("plans.mjs", SCRIPT),
    asset!("circuits.mjs", SCRIPT),
    asset!("servers.mjs", SCRIPT),
    asset!("alerts.mjs", SCRIPT),
    asset!("markdown.mjs", SCRIPT),
    asset!("vendor/preact.mjs", SCRIPT),
    asset!("vendor/htm.mjs", SCRIPT),
    asset!("vendor/signals-core.mjs", SCRIPT),
    asset!("vendor/uplot.mjs", SCRIPT),
    asset!("vendor/uplot.css", CSS),
    asset!("vendor/d3-force.mjs", SCRIPT),
    asset!("vendor/d3-dispatch.mjs", SCRIPT),
    asset!("vendor/d3-quadtree.mjs", SCRIPT),
    asset!("vendor/d3-timer.mjs", SCRIPT),
];

/// What a browser without a session gets.
pub(super) const CLOSED: &[u8] = include_bytes!("assets/closed.html");

/// A file by its exact path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

/// What marks a version of all files: a browser asks whether it has changed.
pub(super) fn tag() -> String {
    let mut all = Sha256::new();
    for asset in ASSETS {
        all.update(asset.bytes);
    }
    let hash: [u8; 32] = all.finalize().into();
    let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{short}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    /// Path, package, version, license, SHA-256.
    fn vendored() -> BTreeMap<&'static str, [&'static str; 4]> {
        let list = include_str!("assets/vendor/VENDORED");
        let rows = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().expect("five words a line");
            (word(), [word(), word(), word(), word()])
        });
        rows.collect()
    }

    #[test]
    fn vendored_files_are_those_that_the_list_names_byte_by_byte() {
        let list = vendored();
        let files: Vec<&Asset> = ASSETS.iter().filter(|asset| asset.path.starts_with("vendor/")).collect();
        let names = |found: &[&str]| found.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut served: Vec<&str> = files.iter().map(|asset| asset.path.strip_prefix("vendor/").unwrap()).collect();
        served.sort_unstable();
        assert_eq!(names(&served), names(&list.keys().copied().collect::<Vec<_>>()));
        for (asset, name) in files.iter().map(|asset| (asset, asset.path.strip_prefix("vendor/").unwrap())) {
            // As the package has it: a browser knows no packages, so that imports name files here (`vendor/VENDORED`).
            let [package, version, _, sha256] = list[name];
            let from_npm =
                std::str::from_utf8(asset.bytes).unwrap().replace("from './", "from '").replace(".mjs';", "';");
            let original = if package == "d3-force" { from_npm.as_bytes() } else { asset.bytes };
            let hash: [u8; 32] = Sha256::digest(original).into();
            let mut hex = String::new();
            hash.iter().for_each(|byte| write!(hex, "{byte:02x}").unwrap());
            assert_eq!(hex, sha256, "{name} is not that of {package} {version}");
        }
    }

    #[test]
    fn vendored_files_have_licenses_that_deny_toml_allows() {
        let deny: toml::Table = include_str!("../../../../../deny.toml").parse().unwrap();
        let allowed = deny["licenses"]["allow"].as_array().unwrap();
        for (file, [package, _, license, _]) in vendored() {
            assert!(allowed.iter().any(|known| known.as_str() == Some(license)), "{file} of {package}: {license}");
        }
    }

    #[test]
    fn nothing_of_the_page_names_another_place_or_runs_text() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.starts_with("vendor/")) {
            let text = std::str::from_utf8(asset.bytes).unwrap().replace("http://www.w3.org/2000/svg", "");
            for banned in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "eval(",
                "new Function",
                "document.write",
                " style=",
                "onclick=",
            ] {
                assert!(!text.contains(banned), "{}: {banned}", asset.path);
            }
        }
    }

    #[test]
    fn a_path_is_a_file_of_the_table_or_nothing() {
        assert!(find("").is_some() && find("vendor/preact.mjs").is_some());
        for path in [
            "vendor",
            "vendor/",
            "/page.css",
            "../mod.rs",
            "vendor/../page.css",
            "page.css/",
            "PAGE.CSS",
            "vendor/VENDORED",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
