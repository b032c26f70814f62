//! See `hintd_fuzz::request_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::request_message(bytes));
