//! Tests of the host; one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commands;
mod support;
mod two_processes;
