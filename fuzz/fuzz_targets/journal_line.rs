//! The target `journal_line` as a libFuzzer program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stead_fuzz::journal_line(data));
