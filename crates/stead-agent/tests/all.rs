//! The first capability's acceptance list, through the whole driver: real files, a real journal, and a model
//! server that refuses what the providers refuse.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/faults.rs"]
mod faults;
#[path = "all/kills.rs"]
mod kills;
#[path = "all/support.rs"]
mod support;
#[path = "all/work.rs"]
mod work;
