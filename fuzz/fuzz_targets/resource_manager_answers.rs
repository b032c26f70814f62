//! See `hintd_fuzz::resource_manager_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::resource_manager_answers(bytes));
