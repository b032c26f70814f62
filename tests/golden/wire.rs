//! Services, methods, messages, fields, and enums: as declared in `proto/` and as reported by the daemon's reflection.

use crate::grpc::{Call, Place, RawCall, SCHEMA};
use crate::programs::Daemon;
use crate::proto::{Field, Kind, Label, Message, Method, Schema};
use prost::Message as _;
use prost_types::FileDescriptorProto;
use std::collections::BTreeSet;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

const HEALTH: &str = "/grpc.health.v1.Health/Check";
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
    let mut call = RawCall::open(place, HEALTH, &[]).unwrap();
    call.send(&HealthCheckRequest { service: service.to_owned() }.encode_to_vec());
    call.close();
    let read = |bytes: Vec<u8>| HealthCheckResponse::decode(&*bytes).unwrap().status().as_str_name().to_owned();
    match call.next() {
        Ok(answer) => answer.map_or(String::new(), read),
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

fn ask(place: &Place, question: MessageRequest) -> MessageResponse {
    let mut call = RawCall::open(place, INFO, &[]).unwrap();
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    call.send(&request.encode_to_vec());
    let answer = call.next().unwrap().expect("an answer");
    ServerReflectionResponse::decode(&*answer).unwrap().message_response.expect("an answer that is not empty")
}

fn services(place: &Place) -> Vec<String> {
    match ask(place, MessageRequest::ListServices(String::new())) {
        MessageResponse::ListServicesResponse(list) => list.service.into_iter().map(|service| service.name).collect(),
        other => panic!("{other:?} lists no services"),
    }
}

/// This project's declarations as the daemon reports them.
fn served(place: &Place, services: &[String]) -> Schema {
    let mut schema = Schema::default();
    let mut asked: Vec<String> = services.iter().filter(|name| name.starts_with("hintd.")).cloned().collect();
    // Asking for every type finds the files that contain no service.
    asked.extend(SCHEMA.messages.keys().chain(SCHEMA.enums.keys()).cloned());
    for symbol in asked {
        if schema.messages.contains_key(&symbol) || schema.enums.contains_key(&symbol) {
            continue;
        }
        // What is declared and not served is missed later.
        let MessageResponse::FileDescriptorResponse(files) = ask(place, MessageRequest::FileContainingSymbol(symbol))
        else {
            continue;
        };
        for file in files.file_descriptor_proto {
            schema.add(&FileDescriptorProto::decode(&*file).unwrap());
        }
    }
    schema
}
