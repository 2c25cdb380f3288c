//! The place for tests of skills; one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "all/load_skill_tool.rs"]
mod load_skill_tool;
#[path = "all/skill_archives.rs"]
mod skill_archives;
#[path = "all/skill_catalogue.rs"]
mod skill_catalogue;
#[path = "all/skill_git_sources.rs"]
mod skill_git_sources;
#[path = "all/skill_loading.rs"]
mod skill_loading;
#[path = "all/skill_sources.rs"]
mod skill_sources;
#[path = "all/skill_validation.rs"]
mod skill_validation;
#[path = "all/support.rs"]
mod support;
