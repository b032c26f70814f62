//! See `hintd_fuzz::journal_rows`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::journal_rows(bytes));
