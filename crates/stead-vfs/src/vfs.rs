//! The contract of a file system.
//!
//! Effects: workspace files (writes).

use crate::lines::{self, LineRange, LineWindow};
use crate::{PathError, Search, VPath, walk};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};
use std::fmt;

/// Larger contents are hashed on a blocking thread.
const MAX_INLINE_HASH_BYTES: usize = 256 * 1024;

/// The maximum size of a stream in memory, for file systems that cannot write in pieces.
const MAX_BUFFERED_BYTES: u64 = 64 * 1024 * 1024;

/// A file system. Every write is atomic: a reader sees the old content or the new one.
pub trait Vfs: fmt::Debug + Send + Sync {
    /// Returns the metadata of `path`. Links inside the root are followed; a link that leaves it is
    /// refused.
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>>;

    /// Returns the entries of a directory, sorted by name.
    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>>;

    /// Reads a part of a file and returns it with the version it belongs to. A range past the end
    /// is truncated.
    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>>;

    /// Reads a window of lines of a text file, using memory in proportion to the window, not to the
    /// file.
    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(lines::read_lines_by_range(self, path, range))
    }

    /// Creates or replaces a file as `expect` allows, creating parent directories. Durable on
    /// return.
    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>>;

    /// Creates or replaces a file with the content of `source`, using memory in proportion to its
    /// pieces. As atomic as [`Vfs::write`]: nothing is visible before the source has ended, and
    /// nothing at all if this future is dropped.
    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            self.write(path, collect_stream(path, source).await?, Expect::Any)
                .await
        })
    }

    /// Removes a file, or a directory with its content. A link is removed, not followed.
    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Moves a file or directory to a path that must be absent, creating parent directories.
    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Creates a directory and its parents. It may exist already.
    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Sets the permission bits of a file. Does nothing on file systems that have none.
    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Sets the permission bits of a directory, for undo. Does nothing on file systems whose
    /// directories have none.
    fn set_directory_mode<'a>(
        &'a self,
        _path: &'a VPath,
        _mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the entries below a directory at any depth, in path order: the first `limit` after
    /// `after`. Links are listed, not followed.
    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(walk::walk_by_listing(self, path, after, limit))
    }

    /// Returns the path with links inside the root resolved. Names that do not exist are kept, so a
    /// path without links is returned as it is. Rules apply to the result.
    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>>;

    /// Returns the search functions of this file system.
    fn search(&self) -> &dyn Search;
}

/// Collects `source` into memory, up to a limit.
async fn collect_stream(path: &VPath, mut source: BoxStream<'_, Bytes>) -> Result<Bytes, VfsError> {
    let mut all = BytesMut::new();
    while let Some(piece) = source.next().await {
        let size = all.len() as u64 + piece.len() as u64;
        if size > MAX_BUFFERED_BYTES {
            return Err(VfsError::TooLarge {
                path: path.clone(),
                size,
                limit: MAX_BUFFERED_BYTES,
            });
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// A range of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRange {
    /// The offset of the first byte.
    pub offset: u64,
    /// The maximum number of bytes.
    pub len: u64,
}

impl ReadRange {
    /// The whole file.
    pub const ALL: Self = Self {
        offset: 0,
        len: u64::MAX,
    };
}

/// The condition for a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// None.
    Any,
    /// Nothing is there.
    Absent,
    /// A file of exactly this version is there.
    Version(Version),
}

/// The version of a file's content in one file system. Equal versions mean equal content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub Box<str>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The metadata of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: FileKind,
    /// The size of a file in bytes; 0 for a directory.
    pub size: u64,
    /// The time of the last change in milliseconds since 1970.
    pub modified_ms: i64,
    /// The version, for files.
    pub version: Version,
    /// The permission bits, if the file system keeps them.
    pub mode: Option<u32>,
    /// The content's hash, if known without reading the content.
    pub hash: Option<ContentHash>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name. A name that no [`VPath`] can hold is made readable and counts as
    /// [`FileKind::Other`].
    pub name: String,
    /// The kind. Links count as what they point to, or as [`FileKind::Other`] if they leave the
    /// root or are dangling.
    pub kind: FileKind,
    /// The size of a file in bytes.
    pub size: u64,
    /// The time of the last change in milliseconds since 1970.
    pub modified_ms: i64,
    /// Whether it is a link.
    pub link: bool,
    /// The permission bits, if the file system keeps them.
    pub mode: Option<u32>,
    /// The content's hash, if known without reading the content.
    pub hash: Option<ContentHash>,
}

/// The entries below a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The entries, each with its path from the root of the [`Vfs`], in path order.
    pub entries: Vec<(VPath, DirEntry)>,
    /// Whether there are more entries than the limit.
    pub truncated: bool,
}

/// SHA-256 of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Returns the hash of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Like [`Self::of`], on a blocking thread if the content is large.
    pub(crate) async fn of_large(path: &VPath, content: &Bytes) -> Result<Self, VfsError> {
        if content.len() <= MAX_INLINE_HASH_BYTES {
            return Ok(Self::of(content));
        }
        let content = content.clone();
        let hashed = tokio::task::spawn_blocking(move || Self::of(&content)).await;
        hashed.map_err(|e| VfsError::Io {
            path: path.clone(),
            source: std::io::Error::other(e),
        })
    }

    /// Parses a hash as written by [`Display`](fmt::Display).
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, hex) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a FIFO, device, socket, or a link that leaves the root. Never opened.
    Other,
}

/// A failed file operation, with the path it concerns.
#[derive(Debug, thiserror::Error)]
pub enum VfsError {
    /// The text is not a valid path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing is there.
    #[error("{0} does not exist")]
    NotFound(VPath),
    /// Something is there already.
    #[error("{0} exists already")]
    Exists(VPath),
    /// The file does not have the expected version.
    #[error("{0} was changed by someone else in the meantime")]
    Changed(VPath),
    /// A directory where a file is needed.
    #[error("{0} is a directory")]
    IsDirectory(VPath),
    /// A file where a directory is needed.
    #[error("{0} is not a directory")]
    NotDirectory(VPath),
    /// A FIFO, device, socket or other special file.
    #[error("{0} is not a regular file")]
    Special(VPath),
    /// A link leads out of the root.
    #[error("{0} leads out of the workspace")]
    Escapes(VPath),
    /// The operating system or a rule denies the access.
    #[error("permission denied for {0}")]
    Denied(VPath),
    /// The file system, or this part of it, is read-only.
    #[error("{0} is read-only here")]
    ReadOnly(VPath),
    /// The file system does not answer. Acknowledged changes are kept.
    #[error("{path}: {cause}")]
    Unavailable {
        /// The path.
        path: VPath,
        /// The reason, and what to do about it.
        cause: String,
    },
    /// Another process took over the session that this change belongs to; nothing was changed.
    #[error("{0} was not changed: another process took over this session")]
    Fenced(VPath),
    /// Too large for this operation.
    #[error("{path} is too large: {size} bytes, at most {limit} here")]
    TooLarge {
        /// The file.
        path: VPath,
        /// The size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// No space, or over quota.
    #[error("no space left to write {0}")]
    NoSpace(VPath),
    /// Any other error of the operating system.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: VPath,
        /// The cause.
        source: std::io::Error,
    },
}
