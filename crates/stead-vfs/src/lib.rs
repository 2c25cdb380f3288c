//! Where files live: one trait, several places.
//!
//! Paths are [`VPath`]s: parsed once, normalised, relative to the root. Nothing above the local
//! backend sees an operating-system path.
//!
//! ```
//! use std::sync::Arc;
//! use stead_vfs::{Expect, LocalVfs, ReadRange, VPath, Vfs};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let files = LocalVfs::open(directory.path(), Arc::new(stead_store::OsDisk))?;
//! let path = VPath::parse("notes/today.md")?;
//! let version = files.write(&path, "buy milk".into(), Expect::Absent).await?;
//! assert_eq!(files.read(&path, ReadRange::ALL).await?, ("buy milk".into(), version));
//! # Ok::<(), stead_vfs::VfsError>(()) }).unwrap();
//! ```
//!
//! - [`Vfs`]: what a place does. - [`Search`]: finding files by name and lines by pattern. -
//!   [`Lines`]: windows of huge files.
//! - [`LocalVfs`]: a directory of the local disk, which nothing leaves. - [`StoreVfs`]: a tree in a
//!   store, or in memory.
//! - [`Overlay`]: one place over another. - [`Routes`]: several places as one tree. - [`Scoped`]: a
//!   part of a place as a place. - [`Homed`]: a folder for what has no other place. - [`ReadOnly`]:
//!   what may not be changed.
//! - [`Frozen`]: what may not be changed for a while.
//! - [`Rules`] and [`Guarded`]: what may be read and written. - [`Recorded`]: every change is
//!   remembered first.
//! - [`find`]: searching a place that has no better way. - [`CopyPlan`]: making one tree like
//!   another.

mod copy;
pub mod find;
mod frozen;
mod glob;
mod grep;
mod guarded;
mod home;
mod ignores;
mod lines;
mod local;
mod mirror;
mod overlay;
mod path;
mod read_only;
mod rebase;
mod recorded;
mod routes;
mod rules;
mod scoped;
mod search;
mod store;
mod vfs;
mod walk;

pub use frozen::{Freeze, Frozen};
pub use guarded::{Guarded, judge};
pub use home::HomeVfs;
pub use lines::{FileLine, LineRange, LineWindow};
pub use local::LocalVfs;
pub use mirror::{CopyAction, CopyFilter, CopyPlan, CopyStep, Included};
pub use overlay::Overlay;
pub use path::{PathError, VPath};
pub use read_only::ReadOnly;
pub use recorded::{ChangeRecord, FileChange, FileState, Recorded};
pub use routes::Routes;
pub use rules::{CheckedRule, Protected, Rule, RuleError, Rules, is_secret};
pub use scoped::Scoped;
pub use search::{
    Bounds, Case, FileMatches, FileSearchError, GlobQuery, GlobResult, GrepLine, GrepMode,
    GrepQuery, GrepResult, LineKind, Search, Syntax, Visible,
};
pub use store::StoreVfs;
pub use vfs::{
    ContentHash, DirEntry, Expect, FileKind, ReadRange, Stat, Version, Vfs, VfsError, Walk,
};
