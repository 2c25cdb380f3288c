//! The contracts of a store, on every backend.

mod memory;
mod redis;
mod sessions;
mod sql;
