//! See `hintd_fuzz::swim_trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::swim_trace(bytes));
