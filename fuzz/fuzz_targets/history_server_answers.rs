//! See `hintd_fuzz::history_server_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::history_server_answers(bytes));
