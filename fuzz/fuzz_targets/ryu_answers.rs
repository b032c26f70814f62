//! See `hintd_fuzz::ryu_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::ryu_answers(bytes));
