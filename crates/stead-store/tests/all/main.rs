//! The contracts of a store, on every backend.

mod sessions;
mod sql;
