//! The contract of a place where files live.

use crate::lines::{self, LineRange, LineWindow};
use crate::{PathError, Search, VPath, walk};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};
use std::fmt;

/// Hashing more than this would keep others from the thread.
const MAX_INLINE_HASH_BYTES: usize = 256 * 1024;

/// What a place holds in memory that has no better way to take a content piece by piece.
const MAX_BUFFERED_BYTES: u64 = 64 * 1024 * 1024;

/// A place where files live. Every write is atomic: a reader sees the old content or the new.
pub trait Vfs: fmt::Debug + Send + Sync {
    /// What is at `path`. Links inside the root are followed; one that leaves it is refused.
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>>;

    /// The entries of a directory, sorted by name.
    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>>;

    /// A part of a file and the version it belongs to. Reading past the end gives what there is.
    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>>;

    /// A window of lines of a text file, in memory of the size of the window, not of the file.
    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(lines::read_lines_by_range(self, path, range))
    }

    /// Replaces or creates a file as `expect` allows, making parent directories. Durable on return.
    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>>;

    /// Replaces or creates a file with all that `source` gives, in memory of the size of its
    /// pieces. As atomic as [`Vfs::write`]: nothing of it is seen before the source has ended, and
    /// nothing ever if this is dropped.
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

    /// Removes a file, or a directory with all that is in it. A link is removed, never followed.
    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Moves a file or directory to a path where nothing is yet, making parent directories.
    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Makes a directory and its parents; one that is there already is fine.
    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>>;

    /// Sets the permission bits of a file, where the place keeps them; elsewhere nothing happens.
    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>>;

    /// What lies below a directory, at any depth, in the order of paths: the first `limit` entries
    /// that come after `after`. Links are listed and not followed.
    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(walk::walk_by_listing(self, path, after, limit))
    }

    /// The path that `path` stands for once links inside the root are followed. Names that do not
    /// exist are kept, so where there are no links it is `path` itself. Rules match on this.
    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>>;

    /// Finding files and lines here.
    fn search(&self) -> &dyn Search;
}

/// All that `source` gives, if that is not too much to be held.
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

/// Which bytes of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRange {
    /// The first byte.
    pub offset: u64,
    /// At most this many.
    pub len: u64,
}

impl ReadRange {
    /// The whole file.
    pub const ALL: Self = Self {
        offset: 0,
        len: u64::MAX,
    };
}

/// What must hold for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// Nothing is there.
    Absent,
    /// A file of exactly this version is there.
    Version(Version),
}

/// Identifies a content of a file at a place; equal versions mean equal content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub Box<str>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: FileKind,
    /// Bytes of a file; 0 for a directory.
    pub size: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
    /// The version, for files.
    pub version: Version,
    /// Permission bits, where the place keeps them.
    pub mode: Option<u32>,
    /// The content's hash, where the place knows it without reading.
    pub hash: Option<ContentHash>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name. One that no [`VPath`] can hold is made readable and counts as [`FileKind::Other`].
    pub name: String,
    /// What it is; links count as what they point to, or as [`FileKind::Other`] if they leave the
    /// root or point nowhere.
    pub kind: FileKind,
    /// Bytes of a file.
    pub size: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
    /// Whether it is a link.
    pub link: bool,
    /// Permission bits, where the place keeps them.
    pub mode: Option<u32>,
    /// The content's hash, where the place knows it without reading.
    pub hash: Option<ContentHash>,
}

/// What is below a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Each with its path from the root of the [`Vfs`], in the order of paths.
    pub entries: Vec<(VPath, DirEntry)>,
    /// Whether there are more than the limit.
    pub truncated: bool,
}

/// SHA-256 of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// The hash of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// The same, where blocking is fine if it takes long.
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

    /// The hash that `text` spells, as [`Display`](fmt::Display) does.
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

/// What kind of thing is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a FIFO, device, socket, or a link that leaves the root. Never opened.
    Other,
}

/// What went wrong, always with the path it concerns.
#[derive(Debug, thiserror::Error)]
pub enum VfsError {
    /// The text is not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing is there.
    #[error("{0} does not exist")]
    NotFound(VPath),
    /// Something is there already.
    #[error("{0} exists already")]
    Exists(VPath),
    /// The file is not of the expected version.
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
    /// The operating system or a rule refuses.
    #[error("permission denied for {0}")]
    Denied(VPath),
    /// The place, or this part of it, is only to be read.
    #[error("{0} is read-only here")]
    ReadOnly(VPath),
    /// The place does not answer. What was acknowledged is kept.
    #[error("{path}: {cause}")]
    Unavailable {
        /// The path.
        path: VPath,
        /// Why, and what to do.
        cause: String,
    },
    /// Someone else took over the session that this change belongs to; nothing was changed.
    #[error("{0} was not changed: another process took over this session")]
    Fenced(VPath),
    /// Too large for this operation.
    #[error("{path} is too large: {size} bytes, at most {limit} here")]
    TooLarge {
        /// The file.
        path: VPath,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// No space, or over quota.
    #[error("no space left to write {0}")]
    NoSpace(VPath),
    /// Anything else from below.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: VPath,
        /// The cause.
        source: std::io::Error,
    },
}
