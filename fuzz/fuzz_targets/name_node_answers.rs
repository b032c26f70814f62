//! See `hintd_fuzz::name_node_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::name_node_answers(bytes));
