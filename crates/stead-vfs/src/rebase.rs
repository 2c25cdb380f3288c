//! Conversion of errors of a file system: with their path as seen from another root.
//!
//! Effects: none.

use crate::{FileSearchError, VPath, VfsError};

/// Returns `error` with its path mapped by `moved`.
pub(crate) fn error(error: VfsError, moved: impl Fn(&VPath) -> VPath) -> VfsError {
    match error {
        VfsError::Path(error) => VfsError::Path(error),
        VfsError::NotFound(path) => VfsError::NotFound(moved(&path)),
        VfsError::Exists(path) => VfsError::Exists(moved(&path)),
        VfsError::Changed(path) => VfsError::Changed(moved(&path)),
        VfsError::IsDirectory(path) => VfsError::IsDirectory(moved(&path)),
        VfsError::NotDirectory(path) => VfsError::NotDirectory(moved(&path)),
        VfsError::Special(path) => VfsError::Special(moved(&path)),
        VfsError::Escapes(path) => VfsError::Escapes(moved(&path)),
        VfsError::Denied(path) => VfsError::Denied(moved(&path)),
        VfsError::ReadOnly(path) => VfsError::ReadOnly(moved(&path)),
        VfsError::Unavailable { path, cause } => VfsError::Unavailable {
            path: moved(&path),
            cause,
        },
        VfsError::Fenced(path) => VfsError::Fenced(moved(&path)),
        VfsError::TooLarge { path, size, limit } => VfsError::TooLarge {
            path: moved(&path),
            size,
            limit,
        },
        VfsError::NoSpace(path) => VfsError::NoSpace(moved(&path)),
        VfsError::Io { path, source } => VfsError::Io {
            path: moved(&path),
            source,
        },
    }
}

/// Returns a search error with its path mapped by `moved`.
pub(crate) fn search_error(
    search_error: FileSearchError,
    moved: impl Fn(&VPath) -> VPath,
) -> FileSearchError {
    match search_error {
        FileSearchError::Vfs(cause) => FileSearchError::Vfs(error(cause, moved)),
        other @ (FileSearchError::Pattern(_)
        | FileSearchError::Glob { .. }
        | FileSearchError::FileType(_)
        | FileSearchError::Cancelled) => other,
    }
}

/// Returns the error for moving a directory into itself.
pub(crate) fn into_itself(path: &VPath) -> VfsError {
    let source = std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "cannot be moved into itself",
    );
    VfsError::Io {
        path: path.clone(),
        source,
    }
}
