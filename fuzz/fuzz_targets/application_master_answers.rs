//! See `hintd_fuzz::application_master_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::application_master_answers(bytes));
