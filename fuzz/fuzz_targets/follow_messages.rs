//! See `hintd_fuzz::follow_messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::follow_messages(bytes));
