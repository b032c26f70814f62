//! Hadoop's configuration files: properties, the later file and line before the earlier, with `${other}` filled in. Spark's
//! defaults beside them, where they are there.

use crate::failure::Failure;
use crate::files;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::path::Path;

/// In the order in which they are read.
pub(super) const FILES: [&str; 5] =
    ["core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml", "capacity-scheduler.xml"];

/// Clusters without Spark have none.
const SPARK: &str = "spark-defaults.conf";

/// The largest file that is read.
const MOST_BYTES: usize = 16 << 20;

/// How deep Hadoop looks for `${other}`.
const MOST_DEPTH: usize = 20;

/// A value, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Property {
    pub(super) value: String,
    pub(super) file: &'static str,
    is_final: bool,
}

/// What the files say.
#[derive(Debug, Default)]
pub(super) struct Properties {
    by_name: BTreeMap<String, Property>,
    pub(super) missing: Vec<&'static str>,
    /// What is wrong with the files, each with the file's path.
    pub(super) problems: Vec<String>,
}

impl Properties {
    /// Of a folder. A file that is no such configuration is a problem, and the others are read all the same.
    ///
    /// # Errors
    /// [`Failure::Input`]: no folder, or one without any of the files.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        match folder.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::in_file(folder, "there is no such folder"));
            }
            Ok(found) if !found.is_dir() => {
                let why = "it is no folder: name the one that has yarn-site.xml, as /etc/hadoop/conf";
                return Err(Failure::in_file(folder, why));
            }
            _ => {} // what can't be read is said of its file
        }
        let mut properties = Self::default();
        for name in FILES {
            let path = folder.join(name);
            if !path.try_exists().unwrap_or(true) {
                properties.missing.push(name);
                continue;
            }
            match files::read_text(&path) {
                Ok(text) => {
                    let found = properties.take(name, &text);
                    let of_file = |problem: String| format!("{}: {problem}", path.display());
                    properties.problems.extend(found.into_iter().map(of_file));
                }
                Err(failure) => properties.problems.push(failure.to_string()), // it names the file
            }
        }
        if properties.missing.len() == FILES.len() {
            return Err(Failure::in_file(folder, format!("none of {} is in it", FILES.join(", "))));
        }
        let spark = folder.join(SPARK);
        if spark.try_exists().unwrap_or(true) {
            properties.take_spark(&files::read_text(&spark)?);
        }
        Ok(properties)
    }

    /// All that is wrong with the file.
    fn take(&mut self, file: &'static str, text: &str) -> Vec<String> {
        if text.len() > MOST_BYTES {
            return vec![format!("it has more than {MOST_BYTES} bytes")];
        }
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(error) => return vec![format!("line {}: {error}", line_of(&error, text))],
        };
        let root = document.root_element();
        if root.tag_name().name() != "configuration" {
            let line = document.text_pos_at(root.range().start).row;
            return vec![format!("line {line}: <{}> where <configuration> is expected", root.tag_name().name())];
        }
        let mut problems = Vec::new();
        for child in root.children().filter(Node::is_element) {
            let problem = match child.tag_name().name() {
                "property" => self.property(file, child).err(),
                "include" => Some("<include> is not followed: put its properties here".to_owned()),
                _ => None, // Hadoop passes it over
            };
            if let Some(problem) = problem {
                let line = document.text_pos_at(child.range().start).row;
                problems.push(format!("line {line}: {problem}"));
            }
        }
        problems
    }

    /// Lines of a name and a value with a space, `=` or `:` between; others say nothing, as to Spark.
    fn take_spark(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("spark.")) {
            let end = line.find(|c: char| c.is_whitespace() || "=:".contains(c)).unwrap_or(line.len());
            let (name, value) = line.split_at(end);
            let value = value.trim_start_matches(|c: char| c.is_whitespace() || "=:".contains(c)).to_owned();
            self.by_name.insert(name.to_owned(), Property { value, file: SPARK, is_final: false });
        }
    }

    fn property(&mut self, file: &'static str, node: Node<'_, '_>) -> Result<(), String> {
        let text = |name: &str| {
            let child = node.children().find(|child| child.tag_name().name() == name);
            let child = child.map(|child| child.text().unwrap_or_default().trim().to_owned());
            child.or_else(|| node.attribute(name).map(|value| value.trim().to_owned())) // Hadoop takes either
        };
        let name = text("name").filter(|name| !name.is_empty()).ok_or("a property without a name")?;
        let Some(value) = text("value") else { return Ok(()) }; // as Hadoop: it says nothing
        let is_final = text("final").is_some_and(|said| said == "true");
        if self.by_name.get(&name).is_none_or(|known| !known.is_final) {
            self.by_name.insert(name, Property { value, file, is_final });
        }
        Ok(())
    }

    /// Properties whose names begin so, by name.
    pub(super) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Property)> {
        let from = self.by_name.range(prefix.to_owned()..);
        from.take_while(move |(name, _)| name.starts_with(prefix)).map(|(name, property)| (name.as_str(), property))
    }

    /// A value with all that it names filled in; empty ones count as not there. `Err`: it names what nobody says here.
    pub(super) fn get(&self, name: &str) -> Result<Option<Property>, String> {
        let Some(property) = self.by_name.get(name) else { return Ok(None) };
        let value = self.filled(&property.value).map_err(|unknown| {
            format!("{name} ({}) is left out: nothing here says what ${{{unknown}}} is", property.file)
        })?;
        Ok(Some(Property { value, ..property.clone() }).filter(|property| !property.value.is_empty()))
    }

    fn filled(&self, value: &str) -> Result<String, String> {
        let mut value = value.to_owned();
        for _ in 0..MOST_DEPTH {
            let Some(begin) = value.find("${") else { return Ok(value) };
            let Some(length) = value[begin..].find('}') else { return Ok(value) };
            let name = value[begin + 2..begin + length].to_owned();
            let Some(known) = self.by_name.get(&name) else { return Err(name) };
            value.replace_range(begin..=begin + length, &known.value);
            if value.len() > MOST_BYTES {
                return Err(name);
            }
        }
        Err(value.chars().take(80).collect())
    }
}

/// Where a file stops to be XML: at its end, where what was opened is never closed.
fn line_of(error: &roxmltree::Error, text: &str) -> u32 {
    match error {
        roxmltree::Error::UnclosedRootNode | roxmltree::Error::UnexpectedEndOfStream => {
            u32::try_from(text.lines().count().max(1)).unwrap_or(u32::MAX)
        }
        error => error.pos().row,
    }
}
