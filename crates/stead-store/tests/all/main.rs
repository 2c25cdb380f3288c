//! The contracts of a store, on every backend.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod filestore;
mod memory;
mod redis;
mod sessions;
mod sql;
