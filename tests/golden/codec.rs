//! Converts JSON to protobuf bytes and back, driven by a [`Schema`]. No generated code is involved, so the wire format
//! itself is tested.

use crate::proto::{Field, Kind, Label, Message, Schema};
use serde_json::{Map, Value, json};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// Encodes a message. Enum values are given by name, bytes as text.
pub(crate) fn encode(schema: &Schema, name: &str, value: &Value) -> Vec<u8> {
    let message = message(schema, name);
    let mut out = Vec::new();
    for (key, value) in value.as_object().unwrap_or_else(|| panic!("{name} from {value}")) {
        let field = message.fields.iter().find(|field| field.name == *key);
        let field = field.unwrap_or_else(|| panic!("{name} has no field {key}"));
        match (&field.kind, value) {
            (Kind::Map(key_kind, value_kind), Value::Object(map)) => {
                for (key, value) in map {
                    let mut entry = Vec::new();
                    put(schema, &Kind::Named(key_kind.clone()), 1, &json!(key), &mut entry);
                    put(schema, value_kind, 2, value, &mut entry);
                    delimited(field.number, &entry, &mut out);
                }
            }
            (kind, Value::Array(rows)) if field.label == Label::Repeated => {
                rows.iter().for_each(|row| put(schema, kind, field.number, row, &mut out));
            }
            (kind, value) => put(schema, kind, field.number, value, &mut out),
        }
    }
    out
}

fn message<'s>(schema: &'s Schema, name: &str) -> &'s Message {
    schema.messages.get(name).unwrap_or_else(|| panic!("no message {name}"))
}

fn put(schema: &Schema, kind: &Kind, number: u32, value: &Value, out: &mut Vec<u8>) {
    let tag = |wire: u64, out: &mut Vec<u8>| varint(u64::from(number) << 3 | wire, out);
    match kind {
        Kind::Message(name) => delimited(number, &encode(schema, name, value), out),
        Kind::Enum(name) => {
            let word = value.as_str().unwrap_or_else(|| panic!("{name} from {value}"));
            let found = schema.enums[name].iter().find(|(known, _)| known == word);
            tag(VARINT, out);
            varint(found.unwrap_or_else(|| panic!("{name} has no {word}")).1 as u64, out);
        }
        Kind::Named(scalar) => match scalar.as_str() {
            "string" | "bytes" => delimited(number, value.as_str().expect("a text").as_bytes(), out),
            "double" => {
                tag(FIXED64, out);
                out.extend(value.as_f64().expect("a number").to_le_bytes());
            }
            "bool" => {
                tag(VARINT, out);
                varint(u64::from(value.as_bool().expect("a flag")), out);
            }
            _ => {
                tag(VARINT, out);
                let number = value.as_u64().or_else(|| value.as_i64().map(|number| number as u64));
                varint(number.unwrap_or_else(|| panic!("{scalar} from {value}")), out);
            }
        },
        Kind::Map(..) => panic!("a map stands in a message only"),
    }
}

fn delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | LENGTH, out);
    varint(bytes.len() as u64, out);
    out.extend(bytes);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Decodes a message to JSON with the fields that are set. Panics on a field that `proto/` does not declare.
pub(crate) fn decode(schema: &Schema, name: &str, bytes: &[u8]) -> Value {
    let message = message(schema, name);
    let mut found = Map::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest);
        let field = message.fields.iter().find(|field| u64::from(field.number) == tag >> 3);
        let field = field.unwrap_or_else(|| panic!("{name} has an unknown field {}", tag >> 3));
        match tag & 7 {
            VARINT => add(&mut found, field, scalar(schema, &field.kind, take_varint(&mut rest))),
            FIXED64 => {
                let (value, after) = rest.split_at(8);
                rest = after;
                add(&mut found, field, json!(f64::from_le_bytes(value.try_into().unwrap())));
            }
            LENGTH => {
                let length = usize::try_from(take_varint(&mut rest)).unwrap();
                let (value, after) = rest.split_at(length);
                rest = after;
                length_delimited(schema, &mut found, field, value);
            }
            FIXED32 => rest = &rest[4..],
            other => panic!("{name}.{} has wire type {other}", field.name),
        }
    }
    Value::Object(found)
}

fn take_varint(rest: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, after) = rest.split_first().expect("a number goes on");
        *rest = after;
        value |= u64::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn scalar(schema: &Schema, kind: &Kind, value: u64) -> Value {
    match kind {
        Kind::Enum(name) => {
            let found = schema.enums[name].iter().find(|(_, number)| *number as u64 == value);
            json!(found.unwrap_or_else(|| panic!("{name} has no {value}")).0)
        }
        Kind::Named(scalar) => match scalar.as_str() {
            "bool" => json!(value != 0),
            "int32" | "int64" => json!(value as i64),
            _ => json!(value),
        },
        other => panic!("{other:?} is no number"),
    }
}

fn add(found: &mut Map<String, Value>, field: &Field, value: Value) {
    match field.label {
        Label::Repeated => match found.entry(field.name.clone()).or_insert_with(|| json!([])) {
            Value::Array(rows) => rows.push(value),
            other => panic!("{other} is no list"),
        },
        _ => drop(found.insert(field.name.clone(), value)),
    }
}

fn length_delimited(schema: &Schema, found: &mut Map<String, Value>, field: &Field, bytes: &[u8]) {
    match &field.kind {
        Kind::Message(name) => add(found, field, decode(schema, name, bytes)),
        Kind::Map(_, value_kind) => {
            let (key, value) = entry(schema, value_kind, bytes);
            let map = found.entry(field.name.clone()).or_insert_with(|| json!({}));
            map.as_object_mut().unwrap().insert(key, value);
        }
        Kind::Named(scalar) if ["string", "bytes"].contains(&scalar.as_str()) => {
            add(found, field, json!(String::from_utf8_lossy(bytes)));
        }
        kind => {
            // A packed list of integers; this project has no packed list of doubles.
            let mut rest = bytes;
            while !rest.is_empty() {
                let value = take_varint(&mut rest);
                add(found, field, scalar(schema, kind, value));
            }
        }
    }
}

fn entry(schema: &Schema, value_kind: &Kind, bytes: &[u8]) -> (String, Value) {
    let field = |number: u32, kind: Kind| Field {
        name: number.to_string(),
        number,
        label: Label::Plain,
        kind,
        oneof: None,
        default: None,
    };
    let value_field = field(2, value_kind.clone());
    let (mut found, mut rest) = (Map::new(), bytes);
    while !rest.is_empty() {
        let tag = take_varint(&mut rest);
        let field = if tag >> 3 == 1 { field(1, Kind::Named("string".into())) } else { value_field.clone() };
        match tag & 7 {
            VARINT => add(&mut found, &field, scalar(schema, &field.kind, take_varint(&mut rest))),
            FIXED64 => {
                let (value, after) = rest.split_at(8);
                rest = after;
                add(&mut found, &field, json!(f64::from_le_bytes(value.try_into().unwrap())));
            }
            _ => {
                let length = usize::try_from(take_varint(&mut rest)).unwrap();
                let (value, after) = rest.split_at(length);
                rest = after;
                length_delimited(schema, &mut found, &field, value);
            }
        }
    }
    let key = found.remove("1").map_or(String::new(), |key| key.as_str().unwrap().to_owned());
    (key, found.remove("2").unwrap_or(json!(0)))
}
