//! See `hintd_fuzz::chains_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::chains_file(bytes));
