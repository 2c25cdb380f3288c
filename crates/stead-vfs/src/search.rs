//! Finding files by name, and lines by pattern.
//!
//! What every place promises:
//! - Results are paths from the root of the [`Vfs`](crate::Vfs), sorted byte by byte. Only regular
//!   files are found; links are not followed.
//! - A pattern without `/` matches a name at any depth; one with `/` matches the path from the
//!   search root. `*` and `?` stay within a name, `**` spans directories; `{a,b}`, `[a-z]` and
//!   `[!x]` work.
//! - Names that begin with a dot are skipped, unless a segment of the pattern begins with one.
//!   `.git` is never entered.
//! - `.gitignore` and `.ignore` files between the root and the file are respected, in a git
//!   repository or not. Files above the root and a user's global settings have no say.
//! - A limit keeps the first results in order, and `truncated` says exactly whether there are more.
//! - Files that hold a NUL byte are binary and have no matches.

use crate::{VPath, VfsError};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Finding things in a place.
pub trait Search: Send + Sync {
    /// Files whose path matches a pattern.
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>>;

    /// Lines that match a pattern.
    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>>;
}

/// How much a search may find, how long it may take, and what it may see.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// At most this many results: paths, or matching lines where lines are asked for.
    pub limit: usize,
    /// When to stop with what there is.
    pub deadline: Instant,
    /// When to stop with nothing.
    pub cancel: CancellationToken,
    /// Which files exist for this search, asked before the limit is applied.
    pub visible: Visible,
}

impl Bounds {
    /// How long a search takes at most unless told otherwise.
    pub const DEFAULT_TIME: Duration = Duration::from_secs(15);

    /// At most `limit` results in [`Bounds::DEFAULT_TIME`]; every file is visible.
    pub fn new(limit: usize, cancel: CancellationToken) -> Self {
        Self {
            limit,
            deadline: Instant::now() + Self::DEFAULT_TIME,
            cancel,
            visible: Visible::All,
        }
    }
}

/// Which files a search may report.
#[derive(Clone)]
pub enum Visible {
    /// Every file.
    All,
    /// Those whose path, from the root, the function accepts.
    If(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Visible {
    /// Whether the file at `path` may be reported.
    pub fn allows(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::If(accepts) => accepts(path),
        }
    }
}

impl fmt::Debug for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::If(_) => "If(..)",
        })
    }
}

/// Which files to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobQuery {
    /// The pattern.
    pub pattern: String,
    /// The directory to look in.
    pub root: VPath,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GlobResult {
    /// Sorted.
    pub paths: Vec<VPath>,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Whether the deadline came before the end, so that some may be missing.
    pub timed_out: bool,
    /// Parts of the tree that could not be searched, each as `path: reason`.
    pub failed: Vec<String>,
    /// How many files were left out because a person must be asked before their directory is
    /// listed.
    pub needs_approval: usize,
}

/// Which lines to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepQuery {
    /// The pattern, within one line unless the syntax says otherwise.
    pub pattern: String,
    /// What the pattern is.
    pub syntax: Syntax,
    /// Whether letters must agree in case.
    pub case: Case,
    /// The directory to look in, or one file.
    pub root: VPath,
    /// Only files whose path matches this.
    pub glob: Option<String>,
    /// Only files of this type, named as `rg --type-list` does: `rust`, `py`, `js` …
    pub file_type: Option<String>,
    /// What to report.
    pub mode: GrepMode,
}

/// What a pattern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// A regular expression as Rust's `regex` crate reads it.
    Regex,
    /// The same, but a match may span lines, and `.` takes line ends too.
    Multiline,
    /// The text itself.
    Literal,
}

/// Whether letters must agree in case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// They must.
    Sensitive,
    /// They need not.
    Insensitive,
}

/// What to report of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrepMode {
    /// Matching lines, each with lines around it.
    Content {
        /// Lines before.
        before: usize,
        /// Lines after.
        after: usize,
    },
    /// Files that have a match.
    Files,
    /// The number of matching lines per file.
    Count,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrepResult {
    /// Sorted by path.
    pub files: Vec<FileMatches>,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Whether the deadline came before the end, so that some may be missing.
    pub timed_out: bool,
    /// Parts of the tree that could not be searched, each as `path: reason`.
    pub failed: Vec<String>,
    /// How many files could not be read.
    pub unreadable: usize,
    /// How many files were left out because a person must be asked before they are read.
    pub needs_approval: usize,
}

/// The matches of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatches {
    /// The file.
    pub path: VPath,
    /// Matching lines and their context, in order; empty unless content was asked for.
    pub lines: Vec<GrepLine>,
    /// Number of matching lines; 1 where only files were asked for.
    pub count: u64,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepLine {
    /// Counted from 1.
    pub number: u64,
    /// Without its line end; clipped if very long.
    pub text: String,
    /// Why it is here.
    pub kind: LineKind,
}

/// Why a line is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It matches.
    Match,
    /// It stands near one that matches.
    Context,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FileSearchError {
    /// The search root is not usable.
    #[error(transparent)]
    Vfs(#[from] VfsError),
    /// The regular expression is wrong.
    #[error("the pattern is not a valid regular expression: {0}")]
    Pattern(String),
    /// The glob is wrong.
    #[error("{pattern:?} is not a valid glob: {reason}")]
    Glob {
        /// As given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No such file type.
    #[error("{0:?} is not a known file type")]
    FileType(String),
    /// The search was cancelled.
    #[error("the search was cancelled")]
    Cancelled,
}
