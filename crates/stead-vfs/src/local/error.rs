//! Part of the local backend: conversion of operating system errors to [`VfsError`].
//!
//! Effects: none.

use crate::{PathError, VPath, VfsError};
use rustix::io::Errno;
use std::io::{self, ErrorKind};

/// Converts `error` at `path`.
pub(super) fn at(path: &VPath, error: impl Into<io::Error>) -> VfsError {
    let source = error.into();
    match source.kind() {
        ErrorKind::NotFound => VfsError::NotFound(path.clone()),
        ErrorKind::AlreadyExists => VfsError::Exists(path.clone()),
        ErrorKind::IsADirectory => VfsError::IsDirectory(path.clone()),
        ErrorKind::NotADirectory => VfsError::NotDirectory(path.clone()),
        // The error of RESOLVE_BENEATH.
        ErrorKind::CrossesDevices => VfsError::Escapes(path.clone()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            VfsError::Denied(path.clone())
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => VfsError::NoSpace(path.clone()),
        ErrorKind::InvalidFilename => VfsError::Path(PathError::TooLong),
        _ => match Errno::from_io_error(&source) {
            Some(Errno::NXIO | Errno::NODEV) => VfsError::Special(path.clone()),
            Some(_) | None => VfsError::Io {
                path: path.clone(),
                source,
            },
        },
    }
}

/// Returns the error of a blocking task that did not finish.
pub(super) fn task_failed(path: &VPath, error: tokio::task::JoinError) -> VfsError {
    VfsError::Io {
        path: path.clone(),
        source: io::Error::other(error),
    }
}

/// Returns the error for a directory that another process keeps locked.
pub(super) fn locked(path: &VPath) -> VfsError {
    let cause =
        "another process keeps its directory locked; nothing was changed, try again".to_owned();
    VfsError::Unavailable {
        path: path.clone(),
        cause,
    }
}
