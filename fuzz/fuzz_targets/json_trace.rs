//! See `hintd_fuzz::json_trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::json_trace(bytes));
