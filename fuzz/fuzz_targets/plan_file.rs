//! See `hintd_fuzz::plan_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::plan_file(bytes));
