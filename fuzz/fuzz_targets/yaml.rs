//! The target `yaml` as a libFuzzer program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stead_fuzz::yaml(data));
