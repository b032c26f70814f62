//! `[network]`: the file that describes the network where no controller does.

use super::reader::{Problem, Reader, Section};
use crate::regular_file::{self, NETWORK_BYTES};
use crate::runtime::options::NetworkSource;
use hintd_model::network::racks::NetworkFile;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configured file, and the line that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    path: String,
    line: usize,
}

/// Reads the section; `controller`: one is named as well. `None`: no file is named, or none that could be read.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>, controller: bool) -> Option<Named> {
    let mut section = root.section(reader, "network");
    let path = section.get(reader, "file", String::new());
    let place = section.place("file");
    let mut is_named = !path.is_empty();
    if !path.is_empty() && controller {
        let message = format!("\"{path}\" and sdn.ryu.url both say what the network is: leave one out");
        reader.problem(place, &section.key("file"), message);
        is_named = false;
    }
    let ending = Path::new(&path).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !path.is_empty() && !["toml", "json"].contains(&ending) {
        let message = format!("\"{path}\" ends neither in .toml nor in .json, which says how it is written");
        reader.problem(place, &section.key("file"), message);
        is_named = false;
    }
    section.finish(reader);
    is_named.then(|| Named { path, line: reader.line(place) })
}

impl Named {
    /// Reads the file: what it says, and a mark by which another content is told.
    ///
    /// # Errors
    /// Every problem, by the file's lines; that it can't be read by the configuration's.
    pub(super) fn load(&self, config: &str) -> Result<(Arc<NetworkSource>, String), Vec<Problem>> {
        let mine = |error: std::io::Error| {
            let message = format!("\"{}\": {error}", self.path);
            vec![Problem { file: config.to_owned(), line: self.line, key: "network.file".to_owned(), message }]
        };
        let path = std::path::absolute(&self.path).map_err(mine)?;
        let text = regular_file::read_text(&path, NETWORK_BYTES).map_err(mine)?;
        let read = if self.is_json() { NetworkFile::read_json(&text) } else { NetworkFile::read_toml(&text) };
        let file = read.map_err(|problems| {
            let theirs = problems.into_iter().map(|found| Problem {
                file: self.path.clone(),
                line: found.line.unwrap_or_default(),
                message: found.message,
                key: found.key,
            });
            theirs.collect::<Vec<_>>()
        })?;
        let mut mark = DefaultHasher::new();
        text.hash(&mut mark);
        let racks = file.rack_of();
        Ok((Arc::new(NetworkSource { path, file, racks }), format!("{:016x}", mark.finish())))
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }

    fn is_json(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|ending| ending == "json")
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const FILE: &str = "format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n";

    #[test]
    fn a_network_file_is_part_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let (config, network) = (folder.path().join("hintd.toml"), folder.path().join("network.toml"));
        std::fs::write(&config, format!("[network]\nfile = {network:?}\n")).unwrap();
        let load = || Config::load(&config).map_err(|error| error.to_string());
        let missing = load().err().unwrap();
        assert!(missing.contains("hintd.toml:2: network.file: ") && missing.contains("No such file"), "{missing}");
        std::fs::write(&network, FILE).unwrap();
        let first = load().unwrap();
        assert!(first.options.settings.network.is_some());
        std::fs::write(&network, FILE.replace("10G", "20G")).unwrap();
        let second = load().unwrap();
        assert_eq!(second.changes(&first), (vec!["network.file".to_owned()], vec![]), "another content, no restart");
        assert_eq!(load().unwrap().changes(&second).0, Vec::<String>::new());
        std::fs::write(&network, FILE.replace("10Gbit", "10GB")).unwrap();
        let wrong = load().err().unwrap();
        assert!(wrong.contains("network.toml:3: racks.\"*\".uplink: \"10GB\""), "{wrong}");
    }

    #[test]
    fn a_file_that_is_not_there_is_said_with_all_else_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let (config, network) = (folder.path().join("hintd.toml"), folder.path().join("network.toml"));
        let text = format!("[placer]\nqueue = 0\n[network]\nfile = {network:?}\n[plan]\nkept = 0\n");
        std::fs::write(&config, &text).unwrap();
        let problems = || Config::load(&config).err().unwrap().to_string();
        let said = problems();
        let keys: Vec<&str> = said.lines().filter_map(|line| line.split(": ").nth(1)).collect();
        assert_eq!(keys, ["placer.queue", "network.file", "plan.kept"], "by their lines: {said}");
        // And what is wrong in the file itself comes last.
        std::fs::write(&network, FILE.replace("10Gbit", "10GB")).unwrap();
        let said = problems();
        assert!(said.contains("plan.kept") && said.lines().last().unwrap().contains("network.toml:3: racks"), "{said}");
        // A file that can't be the one that is meant is not looked for.
        std::fs::write(&config, text.replace("network.toml", "network.yaml")).unwrap();
        assert_eq!(problems().matches("network.file").count(), 1, "{}", problems());
        std::fs::write(&config, "this is no TOML").unwrap();
        assert!(problems().contains("hintd.toml:1"), "{}", problems());
    }

    #[test]
    fn a_controller_and_a_file_are_one_too_many() {
        let problems =
            |text: &str| Config::from_text(text, "f").err().map(|found| found.to_string()).unwrap_or_default();
        let found = problems("[network]\nfile = \"n.toml\"\n[sdn.ryu]\nurl = \"http://c:8080\"\n");
        assert!(found.starts_with("f:2: network.file: \"n.toml\" and sdn.ryu.url both say"), "{found}");
        let found = problems("[network]\nfile = \"n.yaml\"\n");
        assert!(found.starts_with("f:2: network.file: \"n.yaml\" ends neither"), "{found}");
        assert_eq!(problems("[network]\nfile = \"n.toml\"\n"), "");
    }
}
