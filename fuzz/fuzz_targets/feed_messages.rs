//! See `hintd_fuzz::feed_messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hintd_fuzz::feed_messages(bytes));
