//! See `hintd_fuzz::shape_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::shape_file(bytes));
