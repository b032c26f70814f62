//! Messages, enums, and services by full name, from descriptors: those of `proto/`, and those that a daemon reports by
//! reflection. Supports what this project's files use and panics on anything else.

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label as Written, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, FileOptions};
use std::collections::BTreeMap;

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
    /// A scalar.
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

impl Schema {
    /// Of an encoded set of files.
    pub(crate) fn of_set(bytes: &[u8]) -> Self {
        let mut schema = Self::default();
        let set = FileDescriptorSet::decode(bytes).expect("the client's own descriptors");
        set.file.iter().for_each(|file| schema.add(file));
        assert!(!schema.messages.is_empty(), "no message is declared");
        schema
    }

    /// Adds a file's declarations.
    pub(crate) fn add(&mut self, file: &FileDescriptorProto) {
        let syntax = file.syntax.as_deref().unwrap_or("proto2");
        let mut facts = vec![format!("syntax \"{syntax}\""), format!("package {}", file.package())];
        if let Some(options) = &file.options {
            facts.extend(options.java_package.iter().map(|value| format!("option java_package = \"{value}\"")));
            facts.extend(
                options.java_multiple_files.iter().map(|value| format!("option java_multiple_files = {value}")),
            );
            let known = FileOptions {
                java_package: options.java_package.clone(),
                java_multiple_files: options.java_multiple_files,
                ..FileOptions::default()
            };
            assert_eq!(*options, known, "{}: an option that this test does not know", file.name());
        }
        self.files.insert(file.name().to_owned(), facts);
        for message in &file.message_type {
            self.message(message, file.package(), syntax);
        }
        for declared in &file.enum_type {
            let values = declared.value.iter().map(|value| (value.name().to_owned(), value.number())).collect();
            self.enums.insert(joined(file.package(), declared.name()), values);
        }
        for service in &file.service {
            let methods = service.method.iter().map(|method| Method {
                name: method.name().to_owned(),
                input: (full(method.input_type()), method.client_streaming()),
                output: (full(method.output_type()), method.server_streaming()),
            });
            self.services.insert(joined(file.package(), service.name()), methods.collect());
        }
    }

    fn message(&mut self, message: &DescriptorProto, scope: &str, syntax: &str) {
        let name = joined(scope, message.name());
        assert!(message.enum_type.is_empty(), "{name}: an enum within a message is not understood");
        let is_entry = |nested: &&DescriptorProto| nested.options.as_ref().is_some_and(|options| options.map_entry());
        let (entries, nested): (Vec<_>, Vec<_>) = message.nested_type.iter().partition(is_entry);
        let field = |field: &FieldDescriptorProto| {
            let optional = field.proto3_optional();
            // A map is a list of messages of a nested type `NameEntry`.
            let is_of = |entry: &&&DescriptorProto| full(field.type_name()) == joined(&name, entry.name());
            let entry = entries.iter().find(is_of);
            let oneof = field.oneof_index.filter(|_| !optional);
            Field {
                name: field.name().to_owned(),
                number: field.number().cast_unsigned(),
                label: match field.label() {
                    _ if entry.is_some() => Label::Plain,
                    Written::Repeated => Label::Repeated,
                    Written::Required => Label::Required,
                    Written::Optional if optional || syntax == "proto2" => Label::Optional,
                    Written::Optional => Label::Plain,
                },
                kind: match entry {
                    Some(entry) => Kind::Map(scalar(&entry.field[0]), Box::new(kind(&entry.field[1]))),
                    None => kind(field),
                },
                oneof: oneof.map(|at| message.oneof_decl[at as usize].name().to_owned()),
                default: field.default_value.clone(),
            }
        };
        let fields = message.field.iter().map(field).collect();
        for nested in nested {
            self.message(nested, &name, syntax);
        }
        self.messages.insert(name, Message { fields });
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

/// A type's full name, which descriptors begin with a dot.
fn full(name: &str) -> String {
    name.trim_start_matches('.').to_owned()
}

fn kind(field: &FieldDescriptorProto) -> Kind {
    match field.r#type() {
        Type::Message => Kind::Message(full(field.type_name())),
        Type::Enum => Kind::Enum(full(field.type_name())),
        _ => Kind::Named(scalar(field)),
    }
}

fn scalar(field: &FieldDescriptorProto) -> String {
    let name = match field.r#type() {
        Type::Double => "double",
        Type::Int64 => "int64",
        Type::Uint64 => "uint64",
        Type::Int32 => "int32",
        Type::Bool => "bool",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Uint32 => "uint32",
        other => panic!("{}: {} is not understood", field.name(), other.as_str_name()),
    };
    name.to_owned()
}
