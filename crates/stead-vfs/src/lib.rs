//! File systems: one trait, several backends, and layers over them.
//!
//! Paths are [`VPath`]s: parsed once, normalised and relative to the root. Only the local backend
//! uses paths of the operating system.
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
//! The contract:
//! - [`Vfs`]: the operations of a file system.
//! - [`Search`]: finding files by name and lines by pattern; [`find`] implements it for any
//!   [`Vfs`].
//! - [`LineWindow`]: a range of lines of a file of any size.
//!
//! Backends:
//! - [`LocalVfs`]: a directory of the local disk that no path or link leaves.
//! - [`StoreVfs`]: a tree in a store or in memory.
//!
//! Layers:
//! - [`Overlay`]: a writable file system over a read-only one.
//! - [`Routes`]: several file systems in one tree, by path prefix.
//! - [`Scoped`]: a folder of a file system as a file system.
//! - [`DefaultDirVfs`]: a folder for paths that have no other location.
//! - [`Frozen`]: refuses changes, for good or while a switch is on.
//! - [`Guarded`]: enforces [`Rules`] about reading and writing.
//! - [`Recorded`]: records the previous content before each change, for undo.
//!
//! [`CopyPlan`] makes one tree equal to another.
//!
//! Effects: none.

mod copy;
mod default_dir;
pub mod find;
mod forward;
mod frozen;
mod glob;
mod grep;
mod guarded;
mod ignores;
mod lines;
mod local;
mod mirror;
mod overlay;
mod path;
mod rebase;
mod recorded;
mod routes;
mod rules;
mod scoped;
mod search;
mod store;
mod traced;
mod unlisted;
mod vfs;
mod walk;

pub use default_dir::DefaultDirVfs;
pub use frozen::{Freeze, Frozen};
pub use guarded::{Guarded, judge_accesses, judge_call};
pub use lines::{FileLine, LineRange, LineWindow};
pub use local::LocalVfs;
pub use mirror::{CopyAction, CopyFilter, CopyPlan, CopyStep, Included};
pub use overlay::Overlay;
pub use path::{PathError, VPath};
pub use recorded::{ChangeRecord, FileChange, FileState, Recorded, moved_identity};
pub use routes::Routes;
pub use rules::{CheckedRule, PathPatterns, Protected, Rule, RuleError, Rules, is_secret};
pub use scoped::Scoped;
pub use search::{
    Bounds, Case, FileMatches, FileSearchError, GlobQuery, GlobResult, GrepLine, GrepMode,
    GrepQuery, GrepResult, LineKind, Search, Syntax, UnsearchedPart, Visible,
};
pub use store::StoreVfs;
pub use traced::{ReadTrace, Traced};
pub use unlisted::Unlisted;
pub use vfs::{
    ContentHash, DirEntry, Expect, FileKind, ReadRange, Stat, Version, Vfs, VfsError, Walk,
};
