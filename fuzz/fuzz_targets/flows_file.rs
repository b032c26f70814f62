//! See `hintd_fuzz::flows_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::flows_file(bytes));
