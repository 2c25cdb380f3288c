//! Shared durable state: the journals of sessions, and who may write them.
//!
//! [`Disk`] is the one door to changing the local disk, so that tests can fail or kill at any operation.

mod disk;

pub use disk::{Disk, OsDisk, open_dir};
