//! Services, methods, messages, fields, and enums: as declared in `proto/` and as reported by the daemon's reflection.

use crate::grpc::{Call, Place, SCHEMA};
use crate::programs::Daemon;
use crate::proto::{Field, Kind, Label, Message, Method, SCALARS, Schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// gRPC reflection and the needed part of `google/protobuf/descriptor.proto`.
const REFLECTION: &str = r#"
syntax = "proto3";
package grpc.reflection.v1;
service ServerReflection {
  rpc ServerReflectionInfo(stream Request) returns (stream Response);
}
message Request { string file_containing_symbol = 4; string list_services = 7; }
message Response {
  string valid_host = 1;
  Request original_request = 2;
  Files file_descriptor_response = 4;
  Services list_services_response = 6;
}
message Files { repeated File file_descriptor_proto = 1; }
message Services { repeated Service service = 1; }
message Service { string name = 1; }
message File {
  string name = 1;
  string package = 2;
  repeated string dependency = 3;
  repeated Declared message_type = 4;
  repeated DeclaredEnum enum_type = 5;
  repeated DeclaredService service = 6;
  bytes options = 8;
  bytes source = 9;
  string syntax = 12;
}
message Declared {
  string name = 1;
  repeated DeclaredField field = 2;
  repeated Declared nested_type = 3;
  repeated DeclaredEnum enum_type = 4;
  bytes options = 7;
  repeated Oneof oneof_decl = 8;
  bytes reserved = 9;
}
message Oneof { string name = 1; }
message DeclaredField {
  string name = 1;
  string extendee = 2;
  int32 number = 3;
  int32 label = 4;
  int32 type = 5;
  string type_name = 6;
  string default_value = 7;
  bytes options = 8;
  int32 oneof_index = 9;
  string json_name = 10;
  bool proto3_optional = 17;
}
message DeclaredEnum { string name = 1; repeated DeclaredValue value = 2; }
message DeclaredValue { string name = 1; int32 number = 2; }
message DeclaredService { string name = 1; repeated DeclaredMethod method = 2; }
message DeclaredMethod {
  string name = 1;
  string input_type = 2;
  string output_type = 3;
  bytes options = 4;
  bool client_streaming = 5;
  bool server_streaming = 6;
}
"#;

/// `grpc/health/v1/health.proto`
const HEALTH: &str = r#"
syntax = "proto3";
package grpc.health.v1;
service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse { ServingStatus status = 1; }
enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
"#;

static HEALTHY: LazyLock<Schema> = LazyLock::new(|| Schema::of_text("health", HEALTH));
static REFLECTED: LazyLock<Schema> = LazyLock::new(|| Schema::of_text("reflection", REFLECTION));
const INFO: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// The lines of the list. Also checks that the daemon's descriptors equal the files.
pub(crate) fn lines() -> Vec<String> {
    let mut lines = declarations(&SCHEMA);
    for (file, facts) in &SCHEMA.files {
        lines.extend(facts.iter().map(|fact| format!("file {file}: {fact}")));
    }
    let daemon = Daemon::start("");
    for (listener, place) in [("grpc", daemon.grpc()), ("admin socket", daemon.admin())] {
        let services = services(&place);
        lines.extend(services.iter().map(|service| format!("reflected on {listener}: {service}")));
        lines.extend(SCHEMA.services.iter().map(|(service, methods)| {
            format!(
                "answered on {listener}: {service}: {}",
                if answered(&place, service, methods) { "yes" } else { "no" }
            )
        }));
        let names = SCHEMA.services.keys().map(String::as_str).chain([""]);
        lines.extend(names.map(|name| format!("health on {listener} of \"{name}\": {}", health(&place, name))));
        let declared: BTreeSet<String> = declarations(&SCHEMA).into_iter().collect();
        let served: BTreeSet<String> = declarations(&served(&place, &services)).into_iter().collect();
        let strange: Vec<&String> = served.difference(&declared).collect();
        assert!(strange.is_empty(), "the {listener} serves what proto/ does not declare: {strange:#?}");
        // Services that are only declared need not be reflected.
        let missing: Vec<&String> = declared
            .difference(&served)
            .filter(|line| listener == "admin socket" && !line.starts_with("service"))
            .collect();
        assert!(missing.is_empty(), "proto/ declares what the {listener} does not serve: {missing:#?}");
    }
    lines
}

/// Whether a service is implemented here: a call without a message fails in another way than UNIMPLEMENTED.
fn answered(place: &Place, service: &str, methods: &[Method]) -> bool {
    let mut call = Call::open(place, &format!("/{service}/{}", methods[0].name)).unwrap();
    call.close();
    call.end().code != "UNIMPLEMENTED"
}

fn health(place: &Place, service: &str) -> String {
    let mut call = Call::open_with(place, "/grpc.health.v1.Health/Check", &HEALTHY, &[]).unwrap();
    call.send(&json!({ "service": service }));
    call.close();
    match call.next() {
        Ok(answer) => answer.map_or(String::new(), |answer| text(&answer["status"])),
        Err(status) => status.code,
    }
}

fn declarations(schema: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, Message { fields }) in &schema.messages {
        lines.push(format!("message {name}"));
        lines.extend(fields.iter().map(|field| format!("message {name}: {}", shown(field))));
    }
    for (name, values) in &schema.enums {
        lines.extend(values.iter().map(|(word, number)| format!("enum {name}: {number} {word}")));
    }
    for (name, methods) in &schema.services {
        let part = |(message, stream): &(String, bool)| format!("{}{message}", if *stream { "stream " } else { "" });
        lines.extend(methods.iter().map(|Method { name: method, input, output }| {
            format!("service {name}: {method}({}) returns ({})", part(input), part(output))
        }));
    }
    lines
}

fn shown(field: &Field) -> String {
    let label = match field.label {
        Label::Plain => "",
        Label::Optional => "optional ",
        Label::Required => "required ",
        Label::Repeated => "repeated ",
    };
    let oneof = field.oneof.as_ref().map_or(String::new(), |name| format!(" of {name}"));
    let default = field.default.as_ref().map_or(String::new(), |value| format!(" default {value}"));
    format!("{} {} {label}{}{oneof}{default}", field.number, field.name, kind(&field.kind))
}

fn kind(of: &Kind) -> String {
    match of {
        Kind::Named(name) | Kind::Message(name) | Kind::Enum(name) => name.clone(),
        Kind::Map(key, value) => format!("map<{key}, {}>", kind(value)),
    }
}

fn ask(place: &Place, question: &Value) -> Value {
    let mut call = Call::open_with(place, INFO, &REFLECTED, &[]).unwrap();
    call.send(question);
    call.next().unwrap().expect("an answer")
}

fn rows<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim_start_matches('.').to_owned()
}

fn services(place: &Place) -> Vec<String> {
    let answer = ask(place, &json!({ "list_services": "" }));
    rows(&answer["list_services_response"], "service").map(|service| text(&service["name"])).collect()
}

/// This project's declarations as the daemon reports them.
fn served(place: &Place, services: &[String]) -> Schema {
    let mut schema = Schema::default();
    let mut asked: Vec<String> = services.iter().filter(|name| name.starts_with("hintd.")).cloned().collect();
    // Asking for every type finds the files that contain no service.
    asked.extend(SCHEMA.messages.keys().chain(SCHEMA.enums.keys()).cloned());
    let mut seen = BTreeSet::new();
    for symbol in asked {
        let known = [schema.messages.contains_key(&symbol), schema.enums.contains_key(&symbol)];
        if known.contains(&true) {
            continue;
        }
        let answer = ask(place, &json!({ "file_containing_symbol": symbol }));
        for file in rows(&answer["file_descriptor_response"], "file_descriptor_proto") {
            if seen.insert(text(&file["name"])) {
                take(&mut schema, file);
            }
        }
    }
    schema
}

fn take(schema: &mut Schema, file: &Value) {
    let package = text(&file["package"]);
    for declared in rows(file, "message_type") {
        message(schema, &package, declared);
    }
    for declared in rows(file, "enum_type") {
        let values = rows(declared, "value");
        let values = values.map(|value| (text(&value["name"]), value["number"].as_i64().unwrap_or(0) as i32));
        schema.enums.insert(format!("{package}.{}", text(&declared["name"])), values.collect());
    }
    for declared in rows(file, "service") {
        let method = |method: &Value| Method {
            name: text(&method["name"]),
            input: (text(&method["input_type"]), method["client_streaming"] == json!(true)),
            output: (text(&method["output_type"]), method["server_streaming"] == json!(true)),
        };
        schema
            .services
            .insert(format!("{package}.{}", text(&declared["name"])), rows(declared, "method").map(method).collect());
    }
}

fn message(schema: &mut Schema, scope: &str, declared: &Value) {
    let full = format!("{scope}.{}", text(&declared["name"]));
    // A map field is a list of messages of a nested type `NameEntry`.
    let entries: Vec<&Value> = rows(declared, "nested_type").collect();
    let field = |field: &Value| {
        let entry =
            entries.iter().find(|entry| text(&field["type_name"]) == format!("{full}.{}", text(&entry["name"])));
        let optional = field["proto3_optional"] == json!(true);
        let label = match field["label"].as_i64() {
            _ if entry.is_some() => Label::Plain,
            Some(3) => Label::Repeated,
            Some(2) => Label::Required,
            _ if optional || file_is_old(&full) => Label::Optional,
            _ => Label::Plain,
        };
        let kind = match entry {
            Some(entry) => Kind::Map(scalar(&entry["field"][0]), Box::new(kind_of(&entry["field"][1]))),
            None => kind_of(field),
        };
        let oneof = field.get("oneof_index").filter(|_| !optional).and_then(Value::as_u64);
        let oneof = oneof.map(|at| text(&declared["oneof_decl"][at as usize]["name"]));
        let default = field.get("default_value").map(text);
        Field {
            name: text(&field["name"]),
            number: field["number"].as_u64().unwrap() as u32,
            label,
            kind,
            oneof,
            default,
        }
    };
    let fields = rows(declared, "field").map(field).collect();
    schema.messages.insert(full, Message { fields });
}

/// YARN's messages use proto2, where every field has a label.
fn file_is_old(message: &str) -> bool {
    message.starts_with("hadoop.")
}

fn scalar(field: &Value) -> String {
    const NAMES: [(i64, &str); 8] = [
        (1, "double"),
        (3, "int64"),
        (4, "uint64"),
        (5, "int32"),
        (8, "bool"),
        (9, "string"),
        (12, "bytes"),
        (13, "uint32"),
    ];
    let number = field["type"].as_i64().unwrap_or(0);
    let name = NAMES.iter().find(|(known, _)| *known == number).unwrap_or_else(|| panic!("type {number}")).1;
    assert!(SCALARS.contains(&name));
    name.to_owned()
}

fn kind_of(field: &Value) -> Kind {
    match field["type"].as_i64() {
        Some(11) => Kind::Message(text(&field["type_name"])),
        Some(14) => Kind::Enum(text(&field["type_name"])),
        _ => Kind::Named(scalar(field)),
    }
}
