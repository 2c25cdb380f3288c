//! The target `fact` as a libFuzzer program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stead_fuzz::fact(data));
