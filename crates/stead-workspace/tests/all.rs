//! Workspaces of other kinds, opened as they are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/openharness/mod.rs"]
mod openharness;
