//! Compiles `proto/` without `protoc`: protox parses, tonic-prost-build generates.

use prost::Message as _;
use std::path::PathBuf;

const FILES: [&str; 6] = [
    "../../proto/hadoop/yarn/yarn_protos.proto",
    "../../proto/hintd/v1/common.proto",
    "../../proto/hintd/v1/placement.proto",
    "../../proto/hintd/v1/feed.proto",
    "../../proto/hintd/v1/routes.proto",
    "../../proto/hintd/v1/admin.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    let descriptors = protox::compile(FILES, ["../../proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // `compile_fds` ignores `file_descriptor_set_path`, and reflection needs the set.
    std::fs::write(out.join("hintd_descriptor.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
