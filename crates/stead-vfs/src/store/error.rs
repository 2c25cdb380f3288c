//! Part of the store backend: conversion of store errors to [`VfsError`].
//!
//! Effects: none.

use crate::{VPath, VfsError};
use std::io;
use stead_store::StoreError;

/// Converts `error` at `path`.
pub(super) fn at(path: &VPath, error: StoreError) -> VfsError {
    let path = path.clone();
    match error {
        StoreError::Fenced { .. } => VfsError::Fenced(path),
        StoreError::Conflict(_) => VfsError::Changed(path),
        StoreError::Unavailable { .. } => VfsError::Unavailable {
            path,
            cause: error.to_string(),
        },
        StoreError::NoSpace(_) => VfsError::NoSpace(path),
        StoreError::ReadOnly { .. } => VfsError::ReadOnly(path),
        StoreError::Corrupt { .. } => corrupt(&path, &error.to_string()),
        other => VfsError::Io {
            path,
            source: io::Error::other(other),
        },
    }
}

/// Returns the error for inconsistent documents of `path`.
pub(super) fn corrupt(path: &VPath, what: &str) -> VfsError {
    VfsError::Io {
        path: path.clone(),
        source: io::Error::new(io::ErrorKind::InvalidData, what.to_owned()),
    }
}

/// Returns the error after too many conflicts with other writers.
pub(super) fn contended(path: &VPath) -> VfsError {
    let cause = "others change it all the time; nothing was changed, try again".to_owned();
    VfsError::Unavailable {
        path: path.clone(),
        cause,
    }
}
