//! Compiles `proto/` without `protoc`: protox parses, tonic-prost-build generates.

#![allow(clippy::disallowed_methods)] // a build script: Cargo's environment and its output folder are its work

use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::path::PathBuf;

const FILES: [&str; 6] = [
    "../../proto/hadoop/yarn/yarn_protos.proto",
    "../../proto/hintd/v1/common.proto",
    "../../proto/hintd/v1/placement.proto",
    "../../proto/hintd/v1/feed.proto",
    "../../proto/hintd/v1/routes.proto",
    "../../proto/hintd/v1/admin.proto",
];

/// Messages that are published as JSON with a key for each field. `src/view/` has those whose JSON has another shape.
#[rustfmt::skip]
const PUBLISHED: &[&str] = &[
    // common.proto
    "Exclusion", "SourceAge", "PlanNote", "Blocked", "NearMiss", "Lack", "Refused", "HintRoute", "ChainPath",
    "BoxStop", "Withheld", "TermsOfWhole", "RoundNote", "CostLinks", "CostLink",
    // placement.proto
    "DecisionOutcome", "HintOutcome", "CameTo", "TermOutcome", "Followed", "AskedGroup", "LeaseState", "ReplicasResponse", "BlockAdvice", "ReplicaAdvice",
    "RackHosts", "HomedGroup", "BaselinePlaces", "BaselinePlace", "PredictedPerformance", "PredictedGroup", "PredictedPlace", "ProposedMove", "MoveAdvice",
    // routes.proto
    "HostPair", "Route", "RouteUpdate", "WantedCircuits", "Circuit", "RackDemand", "InstallRule", "RemoveRule",
    "SetCircuit",
    // admin.proto
    "StatusResponse", "Notice", "ResourceManagerSetup", "RmProcessorView", "DownLinkView", "LoadBefore", "GroupAdherence", "QueueView", "ListHoldoutResponse", "ComparedView", "RefusedClient", "FlowCounts", "WatcherView", "WatcherRefusal", "ServerView", "TermAdherence",
    "NodesResponse", "NodeView", "LinksResponse", "LinkView", "LinkUser", "LinkFullness", "LastOutage",
    "CarriedRoutes", "CarriedApplication", "WhatIfNetworkResponse", "RouteForecast", "LinkForecast",
    "ApplicationForecast", "ListPoliciesResponse", "PolicyView", "PolicyLearnt", "HeldOutJobs", "PolicyClasses", "NodeClasses", "ToldClass", "ReloadResponse", "CalibrateResponse", "Difference",
    "Rated", "ChainsResponse", "BoxView", "ChainView", "UnmetView", "CircuitsResponse", "CircuitsReport",
    "OpticalPortView", "ListAttemptsResponse", "AttemptView", "ListPlansResponse", "PlanView", "PlanFollowed", "RollBackPlanResponse", "KeyForecast",
    "OpenPageResponse", "NetworkResponse", "NetworkTier", "NetworkRack", "NetworkUplink", "DiffNetworkResponse", "NetworkDifference", "RacksResponse", "HostRacks",
    "LatencyResponse", "RackLatency", "HostLatency", "SlowPeerReport",
    "ListDecisionsResponse", "RefusedCount", "DecisionView", "ListLeasesResponse", "LeaseView", "ListApplicationsResponse", "ApplicationView",
    "LogLevelResponse",
];

/// Fields whose key is not the field's name or whose value is not the field's, and what serde is told of them.
const EXCEPTIONS: &[(&str, &str)] = &[
    // A name that is empty where there is none.
    ("PlanNote.job", NULL_IF_EMPTY),
    ("PredictedPerformance.root_group", NULL_IF_EMPTY),
    ("ReplicasResponse.plan", NULL_IF_EMPTY),
    ("ReplicasResponse.reader", NULL_IF_EMPTY),
    ("ReplicasResponse.job", NULL_IF_EMPTY),
    ("RollBackPlanResponse.from", NULL_IF_EMPTY),
    ("RollBackPlanResponse.to", NULL_IF_EMPTY),
    // What HDFS is to choose has neither: `jq '.host // empty'` and loops over hosts find nothing there.
    ("ReplicaAdvice.rack", "skip_serializing_if = \"String::is_empty\""),
    ("ReplicaAdvice.host", "skip_serializing_if = \"String::is_empty\""),
    ("CostLink.from", NULL_IF_EMPTY),
    ("CostLink.to", NULL_IF_EMPTY),
    ("ApplicationView.refused", NULL_IF_EMPTY),
    // Messages that are always there.
    ("StatusResponse.flows", OR_DEFAULT),
    ("Circuit.demand", OR_DEFAULT),
    ("Route.pair", OR_DEFAULT),
    ("NodeView.total", SIZE),
    ("NodeView.used", SIZE),
    ("NodeView.leased", SIZE),
    ("LeaseView.size", SIZE),
    // Parts that only some have.
    ("HintRoute.chain", "skip_serializing_if = \"Option::is_none\", serialize_with = \"crate::view::in_order\""),
    ("PolicyView.training", "skip_serializing_if = \"Option::is_none\""),
    ("Route.stops", "skip_serializing_if = \"Vec::is_empty\""),
    ("RouteUpdate.circuits", "skip_serializing_if = \"Option::is_none\""),
    // Ids of 64 bits: jq and JavaScript round larger numbers than 2^53.
    ("LeaseState.lease_id", ID),
    ("LeaseView.lease_id", ID),
    // Tokens.
    ("LinkView.load_source", "serialize_with = \"crate::view::load_source_token\""),
    ("RouteUpdate.phase", "serialize_with = \"crate::view::phase_token\""),
    // Terms are an object by name.
    ("DecisionOutcome.terms", BY_TERM),
    ("TermOutcome.term", "skip"),
    ("TermOutcome.default_placement", "rename = \"default\""),
    ("TermAdherence.term", "skip"),
    ("TermAdherence.default_placement", "rename = \"default\""),
    // Keys with their unit, or older than the field.
    ("ChainPath.cost", "rename = \"cost_bit_links_per_s\""),
    ("Followed.realised_gain", "skip_serializing_if = \"Option::is_none\""),
    ("LinkForecast.a_to_b_before", "rename = \"a_to_b_before_bits_per_s\""),
    ("LinkForecast.b_to_a_before", "rename = \"b_to_a_before_bits_per_s\""),
    ("LinkForecast.a_to_b_after", "rename = \"a_to_b_after_bits_per_s\""),
    ("LinkForecast.b_to_a_after", "rename = \"b_to_a_after_bits_per_s\""),
    ("KeyForecast.standing", "rename = \"counts_as\""),
];
const NULL_IF_EMPTY: &str = "serialize_with = \"crate::view::null_if_empty\"";
const ID: &str = "serialize_with = \"crate::view::id\"";
const OR_DEFAULT: &str = "serialize_with = \"crate::view::or_default\"";
const SIZE: &str = "serialize_with = \"crate::view::size\"";
const BY_TERM: &str = "serialize_with = \"crate::view::by_term\"";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    let descriptors = protox::compile(FILES, ["../../proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // `compile_fds` ignores `file_descriptor_set_path`, and reflection needs the set.
    std::fs::write(out.join("hintd_descriptor.bin"), descriptors.encode_to_vec())?;
    let mut builder = tonic_prost_build::configure().btree_map(".");
    for message in PUBLISHED {
        builder = builder.message_attribute(format!(".hintd.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    for (field, told) in EXCEPTIONS {
        builder = builder.field_attribute(format!(".hintd.v1.{field}"), format!("#[serde({told})]"));
    }
    // A list of one thing, without an object around it.
    builder = builder.message_attribute(".hintd.v1.BlockAdvice", "#[serde(transparent)]");
    let secret = secret_messages(&descriptors);
    builder = builder.skip_debug(secret.iter().map(|(package, message)| format!(".{package}.{}", message.name())));
    // To skip a message is to skip what is in it.
    for (package, message) in &secret {
        for part in message.oneof_decl.iter().filter(|part| !part.name().starts_with('_')) {
            builder =
                builder.enum_attribute(format!(".{package}.{}.{}", message.name(), part.name()), "#[derive(Debug)]");
        }
    }
    let debug: String = secret.iter().map(|(_, message)| debug_of(message)).collect();
    std::fs::write(out.join("hintd_debug.rs"), debug)?;
    // Whoever shows any message for people finds its strings by its name (hintctl).
    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names();
    builder.compile_fds_with_config(descriptors, config)?;
    Ok(())
}

/// Fields that no log is to have.
const SECRET_FIELDS: [&str; 2] = ["token", "nonce"];

/// Messages with such fields, and their packages.
fn secret_messages(descriptors: &FileDescriptorSet) -> Vec<(&str, &DescriptorProto)> {
    fn messages(file: &FileDescriptorProto) -> impl Iterator<Item = (&str, &DescriptorProto)> {
        file.message_type.iter().map(|message| (file.package(), message))
    }
    let secret = |(_, message): &(&str, &DescriptorProto)| {
        message.field.iter().any(|field| SECRET_FIELDS.contains(&field.name()))
    };
    descriptors.file.iter().flat_map(messages).filter(secret).collect()
}

/// `Debug` as it is derived, but for secrets.
fn debug_of(message: &DescriptorProto) -> String {
    let name = message.name();
    let mut oneofs = Vec::new();
    let mut fields = String::new();
    for field in &message.field {
        let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
        let shown = match oneof {
            Some(at) if oneofs.contains(&at) => continue,
            Some(at) => {
                oneofs.push(at);
                message.oneof_decl[usize::try_from(at).expect("an index")].name()
            }
            None => field.name(),
        };
        let value = if SECRET_FIELDS.contains(&shown) {
            format!("crate::secret::Hidden(self.{shown}.is_empty())")
        } else {
            format!("self.{shown}")
        };
        fields.push_str(&format!(".field(\"{shown}\", &{value})"));
    }
    format!(
        "impl ::core::fmt::Debug for {name} {{\n\
         fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{\n\
         f.debug_struct(\"{name}\"){fields}.finish()\n}}\n}}\n"
    )
}
