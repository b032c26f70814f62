//! See `hintd_fuzz::script_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::script_file(bytes));
