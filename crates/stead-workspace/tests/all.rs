//! Folders of every kind as agents, and skills from end to end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "all/archives.rs"]
mod archives;
#[path = "all/catalogue.rs"]
mod catalogue;
#[path = "all/foreign/mod.rs"]
mod foreign;
#[path = "all/hooks.rs"]
mod hooks;
#[path = "all/loading.rs"]
mod loading;
#[path = "all/openharness/mod.rs"]
mod openharness;
#[path = "all/repositories.rs"]
mod repositories;
#[path = "all/sources.rs"]
mod sources;
#[path = "all/standard.rs"]
mod standard;
#[path = "all/support.rs"]
mod support;
#[path = "all/tool.rs"]
mod tool;
