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
}

impl Properties {
    /// Of a folder.
    ///
    /// # Errors
    /// [`Failure::Input`]: a folder without any of the files, or a file that is no such configuration.
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
            let text = files::read_text(&path)?;
            properties.take(name, &text).map_err(|problem| Failure::in_file(&path, problem))?;
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

    fn take(&mut self, file: &'static str, text: &str) -> Result<(), String> {
        if text.len() > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes"));
        }
        let document = Document::parse(text).map_err(|error| error.to_string())?;
        let root = document.root_element();
        if root.tag_name().name() != "configuration" {
            return Err(format!("<{}> where <configuration> is expected", root.tag_name().name()));
        }
        for child in root.children().filter(Node::is_element) {
            let line = document.text_pos_at(child.range().start).row;
            match child.tag_name().name() {
                "property" => self.property(file, child).map_err(|problem| format!("line {line}: {problem}"))?,
                "include" => return Err(format!("line {line}: <include> is not followed: put its properties here")),
                _ => {} // Hadoop passes it over
            }
        }
        Ok(())
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
