//! See `hintd_fuzz::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::configuration(bytes));
