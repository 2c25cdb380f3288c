//! The contracts of a store, on every backend.

mod memory;
