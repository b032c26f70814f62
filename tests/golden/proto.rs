//! Parses `.proto` files: messages, enums, and services by full name. Supports what this project's files use and panics
//! on anything else.

use std::collections::BTreeMap;
use std::path::Path;

/// The declarations of a set of files.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Package, syntax, and options by path.
    pub(crate) files: BTreeMap<String, Vec<String>>,
    pub(crate) messages: BTreeMap<String, Message>,
    pub(crate) enums: BTreeMap<String, Vec<(String, i32)>>,
    pub(crate) services: BTreeMap<String, Vec<Method>>,
}

#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) label: Label,
    pub(crate) kind: Kind,
    pub(crate) oneof: Option<String>,
    pub(crate) default: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Plain,
    Optional,
    Required,
    Repeated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A scalar; before names are resolved, any type.
    Named(String),
    Message(String),
    Enum(String),
    Map(String, Box<Kind>),
}

#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: String,
    /// Full message name, and whether it is a stream.
    pub(crate) input: (String, bool),
    pub(crate) output: (String, bool),
}

pub(crate) const SCALARS: [&str; 9] =
    ["bool", "bytes", "double", "int32", "int64", "string", "uint32", "uint64", "sint64"];

impl Schema {
    /// Reads all `.proto` files below a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut schema = Self::default();
        let mut open = vec![folder.to_path_buf()];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "proto") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                schema.add(&name, &std::fs::read_to_string(&path).unwrap());
            }
        }
        schema.resolve();
        assert!(!schema.messages.is_empty(), "no message is declared below {}", folder.display());
        schema
    }

    /// Parses one file.
    pub(crate) fn of_text(name: &str, text: &str) -> Self {
        let mut schema = Self::default();
        schema.add(name, text);
        schema.resolve();
        schema
    }

    fn add(&mut self, name: &str, text: &str) {
        let mut reader = Reader { words: words(text), at: 0, file: name.to_owned() };
        let mut facts = Vec::new();
        let mut package = String::new();
        while reader.at < reader.words.len() {
            match reader.next().as_str() {
                "syntax" => facts.push(format!("syntax {}", reader.until(";").replace('=', "").trim())),
                "package" => {
                    package = reader.until(";");
                    facts.push(format!("package {package}"));
                }
                "option" => facts.push(format!("option {}", reader.until(";"))),
                "import" => drop(reader.until(";")),
                "message" => self.message(&mut reader, &package),
                "enum" => self.enumeration(&mut reader, &package),
                "service" => self.service(&mut reader, &package),
                ";" => {}
                other => reader.lost(other),
            }
        }
        self.files.insert(name.to_owned(), facts);
    }

    fn message(&mut self, reader: &mut Reader, scope: &str) {
        let full = joined(scope, &reader.next());
        reader.expect("{");
        let mut message = Message::default();
        let mut oneof: Option<String> = None;
        loop {
            let word = reader.next();
            match word.as_str() {
                "}" if oneof.is_some() => oneof = None,
                "}" => break,
                ";" => {}
                "message" => self.message(reader, &full),
                "enum" => self.enumeration(reader, &full),
                "reserved" | "option" | "extensions" => drop(reader.until(";")),
                "oneof" => {
                    oneof = Some(reader.next());
                    reader.expect("{");
                }
                _ => message.fields.push(reader.field(word, oneof.clone())),
            }
        }
        self.messages.insert(full, message);
    }

    fn enumeration(&mut self, reader: &mut Reader, scope: &str) {
        let full = joined(scope, &reader.next());
        reader.expect("{");
        let mut values = Vec::new();
        loop {
            let name = reader.next();
            match name.as_str() {
                "}" => break,
                ";" => {}
                "reserved" | "option" => drop(reader.until(";")),
                _ => {
                    reader.expect("=");
                    values.push((name, reader.next().parse().unwrap()));
                    reader.until(";");
                }
            }
        }
        self.enums.insert(full, values);
    }

    fn service(&mut self, reader: &mut Reader, scope: &str) {
        let full = joined(scope, &reader.next());
        reader.expect("{");
        let mut methods = Vec::new();
        loop {
            match reader.next().as_str() {
                "}" => break,
                ";" => {}
                "rpc" => {
                    let name = reader.next();
                    let input = reader.message_of_method();
                    reader.expect("returns");
                    let output = reader.message_of_method();
                    methods.push(Method { name, input, output });
                }
                other => reader.lost(other),
            }
        }
        self.services.insert(full, methods);
    }

    /// Resolves type names to full names.
    fn resolve(&mut self) {
        let messages: Vec<String> = self.messages.keys().cloned().collect();
        let enums: Vec<String> = self.enums.keys().cloned().collect();
        let known = |name: &str, scope: &str| -> Kind {
            if SCALARS.contains(&name) {
                return Kind::Named(name.to_owned());
            }
            let mut scope = scope.to_owned();
            loop {
                let full = joined(&scope, name.trim_start_matches('.'));
                if messages.contains(&full) {
                    return Kind::Message(full);
                }
                if enums.contains(&full) {
                    return Kind::Enum(full);
                }
                assert!(!scope.is_empty(), "type {name} is not declared");
                scope = scope.rsplit_once('.').map_or(String::new(), |(outer, _)| outer.to_owned());
            }
        };
        for (scope, message) in &mut self.messages {
            for field in &mut message.fields {
                field.kind = match &field.kind {
                    Kind::Named(name) => known(name, scope),
                    Kind::Map(key, value) => match &**value {
                        Kind::Named(name) => Kind::Map(key.clone(), Box::new(known(name, scope))),
                        _ => field.kind.clone(),
                    },
                    resolved => resolved.clone(),
                };
            }
        }
        for (scope, methods) in &mut self.services {
            for part in methods.iter_mut().flat_map(|method| [&mut method.input, &mut method.output]) {
                match known(&part.0, scope) {
                    Kind::Message(full) => part.0 = full,
                    other => panic!("{other:?} is no message"),
                }
            }
        }
    }

    /// Finds a method by its path, such as `/hintd.v1.Feed/Events`.
    pub(crate) fn method(&self, path: &str) -> &Method {
        let (service, name) = path.trim_start_matches('/').split_once('/').unwrap();
        let methods = self.services.get(service).unwrap_or_else(|| panic!("no service {service}"));
        methods.iter().find(|method| method.name == name).unwrap_or_else(|| panic!("no method {path}"))
    }
}

fn joined(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// Splits into names, numbers, strings, and punctuation, without comments.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or("");
        let mut word = String::new();
        for letter in line.chars() {
            let part = letter.is_alphanumeric() || "_.\"/-".contains(letter);
            if part {
                word.push(letter);
                continue;
            }
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !letter.is_whitespace() {
                words.push(letter.to_string());
            }
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

struct Reader {
    words: Vec<String>,
    at: usize,
    file: String,
}

impl Reader {
    fn next(&mut self) -> String {
        let word = self.words.get(self.at).unwrap_or_else(|| panic!("{} ends too soon", self.file)).clone();
        self.at += 1;
        word
    }

    fn expect(&mut self, wanted: &str) {
        let found = self.next();
        assert_eq!(found, wanted, "{} at word {}", self.file, self.at);
    }

    /// Takes all words up to and including this one; returns those before it.
    fn until(&mut self, end: &str) -> String {
        let mut found = Vec::new();
        loop {
            match self.next() {
                word if word == end => return found.join(" "),
                word => found.push(word),
            }
        }
    }

    fn lost(&self, word: &str) -> ! {
        panic!("{}: \"{word}\" at word {} is not understood", self.file, self.at)
    }

    fn field(&mut self, first: String, oneof: Option<String>) -> Field {
        let label = match first.as_str() {
            "optional" => Label::Optional,
            "required" => Label::Required,
            "repeated" => Label::Repeated,
            _ => Label::Plain,
        };
        let kind = if label == Label::Plain { first } else { self.next() };
        let kind = if kind == "map" {
            self.expect("<");
            let key = self.next();
            self.expect(",");
            let value = Kind::Named(self.next());
            self.expect(">");
            Kind::Map(key, Box::new(value))
        } else {
            Kind::Named(kind)
        };
        let name = self.next();
        self.expect("=");
        let number = self.next().parse().unwrap();
        let rest = self.until(";");
        let default = rest.split_once("default = ").map(|(_, value)| value.trim_end_matches([']', ' ']).to_owned());
        Field { name, number, label, kind, oneof, default }
    }

    /// `(Name)` or `(stream Name)`
    fn message_of_method(&mut self) -> (String, bool) {
        self.expect("(");
        let first = self.next();
        let stream = first == "stream";
        let name = if stream { self.next() } else { first };
        self.expect(")");
        (name, stream)
    }
}
