//! The target `skill` as a libFuzzer program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stead_fuzz::skill(data));
