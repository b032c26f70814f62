//! See `hintd_fuzz::cluster_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::cluster_file(bytes));
