//! Where files live: one trait, several places.
//!
//! Paths are [`VPath`]s: parsed once, normalised, relative to the root. Nothing above the local
//! backend sees an operating-system path.

mod path;
mod vfs;

pub use path::{PathError, VPath};
pub use vfs::{DirEntry, Expect, FileKind, ReadRange, Stat, Version, Vfs, VfsError};
