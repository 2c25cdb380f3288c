//! The place for tests of workspace layouts and settings; one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "all/foreign/mod.rs"]
mod foreign;
#[path = "all/hooks.rs"]
mod hooks;
#[path = "all/openharness/mod.rs"]
mod openharness;
#[path = "all/support.rs"]
mod support;
