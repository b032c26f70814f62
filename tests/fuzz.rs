//! Every reader of bytes from outside, fed with what fuzzing begins with and thousands of broken copies of it: what the
//! fuzz targets do on nightly, on stable and for seconds. `HINTD_FUZZ_TRIES=100000 cargo test --test fuzz` does more.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

#[allow(unreachable_pub)] // it is a crate of its own for the fuzzer
#[path = "../fuzz/src/lib.rs"]
mod targets;

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What breaks readers more often than chance does.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\n",
    b"\0",
    b"\xff",
    b"-1",
    b"0",
    b"1e308",
    b"nan",
    b"18446744073709551615",
    b"=",
    b"\t",
    b"null",
    b"\"\"",
    b"9999999999999999999999",
    b"0.1",
    b"true",
    b"\xc3\xa9",
    b"#",
    b",",
    b"\x80\x80\x80\x80\x80",
];

fn mutate(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=bytes.len());
        let to = (at + random.random_range(0..24)).min(bytes.len());
        match random.random_range(0..8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = random.random(),
            2 => drop(bytes.drain(at..to)),
            3 => drop(bytes.splice(at..to, PIECES.choose(random).unwrap().iter().copied())),
            4 => drop(bytes.splice(at..at, PIECES.choose(random).unwrap().iter().copied())),
            5 => {
                let again = bytes[at..to].to_vec();
                drop(bytes.splice(at..at, again));
            }
            6 => bytes.truncate(at),
            _ => {
                let from = random.random_range(0..=other.len());
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
        }
    }
}

/// Inputs that a fuzzer found, each of which reaches code that no other does: fuzz/kept/TARGET.
fn kept(root: &Path, name: &str) -> Vec<Vec<u8>> {
    let Ok(folder) = std::fs::read_dir(root.join("fuzz/kept").join(name)) else { return Vec::new() };
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn survives(name: &str, target: targets::Target, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name} did not survive {:?}\n(in hexadecimal: {hex})", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn no_reader_of_bytes_from_outside_panics_or_forgets_what_it_read() {
    let tries = std::env::var("HINTD_FUZZ_TRIES").map_or(300, |text| text.parse().unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, target) in targets::TARGETS {
        let mut seeds = targets::seeds::of(name, root);
        seeds.extend(kept(root, name));
        let mut random = ChaCha8Rng::seed_from_u64(0x68_69_6e_74);
        seeds.iter().for_each(|seed| survives(name, target, seed));
        for _ in 0..tries {
            let mut bytes = seeds.choose(&mut random).unwrap().clone();
            let other = seeds.choose(&mut random).unwrap();
            mutate(&mut random, &mut bytes, other);
            survives(name, target, &bytes);
        }
    }
}

#[test]
fn every_target_is_built_by_the_fuzzer_as_well() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let built: Vec<&str> =
        manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
    assert_eq!(built, targets::TARGETS.map(|(name, _)| name));
}
