//! The place for tests of the store contracts on every backend; one module per backend.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod bus;
mod filestore;
mod inbox;
mod memory;
mod redis;
mod session_pages;
mod sessions;
mod sql;
