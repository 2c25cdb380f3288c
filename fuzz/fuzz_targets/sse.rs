//! The target `sse` as a libFuzzer program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stead_fuzz::sse(data));
