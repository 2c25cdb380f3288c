//! The contract of a search: finding files by name, and lines by pattern.
//!
//! Guarantees of every file system:
//! - Results are paths from the root of the [`Vfs`](crate::Vfs), sorted byte by byte. Only regular
//!   files are found; links are not followed.
//! - A pattern without `/` matches a name at any depth; one with `/` matches the path from the
//!   search root. `*` and `?` stay within a name, `**` spans directories; `{a,b}`, `[a-z]` and
//!   `[!x]` work.
//! - Names that begin with a dot are skipped, unless a segment of the pattern begins with one.
//!   `.git` is never entered.
//! - `.gitignore` and `.ignore` files between the root and the file apply, in a git repository or
//!   not. Files above the root and a user's global settings do not apply.
//! - A limit keeps the first results in order, and `truncated` tells exactly whether there are
//!   more.
//! - Files with a NUL byte are binary and have no matches.
//!
//! Effects: the clock.

use crate::{VPath, VfsError};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The search functions of a file system.
pub trait Search: Send + Sync {
    /// Returns the files whose path matches a pattern.
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>>;

    /// Returns the lines that match a pattern.
    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>>;
}

/// The limits of a search: results, time and visible files.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The maximum number of results: paths, or matching lines for [`GrepMode::Content`].
    pub limit: usize,
    /// The time at which the search stops with the results so far.
    pub deadline: Instant,
    /// Cancels the search without results.
    pub cancel: CancellationToken,
    /// The files that are visible to this search. This filter applies before the limit.
    pub visible: Visible,
}

impl Bounds {
    /// The default time limit.
    pub const DEFAULT_TIME: Duration = Duration::from_secs(15);

    /// Returns bounds of at most `limit` results in [`Bounds::DEFAULT_TIME`], with every file
    /// visible.
    pub fn new(limit: usize, cancel: CancellationToken) -> Self {
        Self {
            limit,
            deadline: Instant::now() + Self::DEFAULT_TIME,
            cancel,
            visible: Visible::All,
        }
    }
}

/// The files that a search may report.
#[derive(Clone)]
pub enum Visible {
    /// Every file.
    All,
    /// Those whose path from the root is accepted by the function.
    If(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Visible {
    /// Returns whether the file at `path` may be reported.
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

/// A search for files by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobQuery {
    /// The pattern.
    pub pattern: String,
    /// The directory to search.
    pub root: VPath,
}

/// The files that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GlobResult {
    /// The paths, sorted.
    pub paths: Vec<VPath>,
    /// Whether there are more results than the limit.
    pub truncated: bool,
    /// Whether the deadline passed before the end, so that results may be missing.
    pub timed_out: bool,
    /// Parts of the tree that could not be searched.
    pub failed: Vec<UnsearchedPart>,
    /// The number of files left out because listing their directory needs a person's approval.
    pub needs_approval: usize,
}

/// A part of the tree that could not be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsearchedPart {
    /// The directory.
    pub path: VPath,
    /// Why it could not be searched.
    pub reason: String,
}

impl fmt::Display for UnsearchedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

/// A search for lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepQuery {
    /// The pattern, matched within one line unless the syntax allows more.
    pub pattern: String,
    /// The syntax of the pattern.
    pub syntax: Syntax,
    /// Whether case matters.
    pub case: Case,
    /// The directory or the one file to search.
    pub root: VPath,
    /// A glob that the path of a file must match.
    pub glob: Option<String>,
    /// The type of a file, named as in `rg --type-list`: `rust`, `py`, `js` …
    pub file_type: Option<String>,
    /// The kind of results.
    pub mode: GrepMode,
}

impl GrepQuery {
    /// Creates a search for a regular expression in all files below `root`, whose results are the
    /// matching lines alone.
    pub fn new(pattern: impl Into<String>, root: VPath) -> Self {
        Self {
            pattern: pattern.into(),
            syntax: Syntax::Regex,
            case: Case::Sensitive,
            root,
            glob: None,
            file_type: None,
            mode: GrepMode::Content {
                before: 0,
                after: 0,
            },
        }
    }
}

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// A regular expression of Rust's `regex` crate.
    Regex,
    /// A regular expression whose matches may span lines, and where `.` also matches line ends.
    Multiline,
    /// Plain text.
    Literal,
}

/// Whether case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    Sensitive,
    /// Upper and lower case are equal.
    Insensitive,
}

/// The kind of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrepMode {
    /// Matching lines, each with lines around it.
    Content {
        /// The number of lines before.
        before: usize,
        /// The number of lines after.
        after: usize,
    },
    /// Files that have a match.
    Files,
    /// The number of matching lines per file.
    Count,
}

/// The matches that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrepResult {
    /// The files, sorted by path.
    pub files: Vec<FileMatches>,
    /// Whether there are more results than the limit.
    pub truncated: bool,
    /// Whether the deadline passed before the end, so that results may be missing.
    pub timed_out: bool,
    /// Parts of the tree that could not be searched.
    pub failed: Vec<UnsearchedPart>,
    /// The number of files that could not be read, or not to their end because of a line that is
    /// too long.
    pub unreadable: usize,
    /// The number of files left out because reading them needs a person's approval.
    pub needs_approval: usize,
}

/// The matches of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatches {
    /// The file.
    pub path: VPath,
    /// Matching lines and their context, in order; empty unless content was requested.
    pub lines: Vec<GrepLine>,
    /// The number of matching lines; 1 if only files were requested.
    pub count: u64,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepLine {
    /// The line number, from 1.
    pub number: u64,
    /// The text without its line end, truncated if very long.
    pub text: String,
    /// Why the line is reported.
    pub kind: LineKind,
}

/// Why a line is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It matches.
    Match,
    /// It is near a matching line.
    Context,
}

/// The reason why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum FileSearchError {
    /// The search root cannot be used.
    #[error(transparent)]
    Vfs(#[from] VfsError),
    /// The regular expression is invalid.
    #[error("the pattern is not a valid regular expression: {0}")]
    Pattern(String),
    /// The glob is invalid.
    #[error("{pattern:?} is not a valid glob: {reason}")]
    Glob {
        /// The glob.
        pattern: String,
        /// The reason.
        reason: String,
    },
    /// The file type does not exist.
    #[error("{0:?} is not a known file type")]
    FileType(String),
    /// The search was cancelled.
    #[error("the search was cancelled")]
    Cancelled,
}
