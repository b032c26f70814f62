//! See `hintd_fuzz::network_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::network_file(bytes));
