//! Limits of documents and journal lines, which every backend enforces with the same errors before
//! anything is sent.
//!
//! Effects: none.

use super::{Document, DocumentChange, MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_META_BYTES};
use crate::StoreError;
use bytes::Bytes;
use std::collections::HashSet;

/// Checks that no part of a commit is too large and that no key occurs twice.
pub(crate) fn check_changes(place: &str, changes: &[DocumentChange]) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    let mut once = |key| {
        if seen.insert(key) {
            Ok(())
        } else {
            Err(format!("{key} is changed twice in one commit"))
        }
    };
    changes
        .iter()
        .try_for_each(|change| match change {
            DocumentChange::Put { key, document, .. } => check_key(key)
                .and(check_document(key, document))
                .and(once(key)),
            DocumentChange::Delete { key, .. } | DocumentChange::Check { key, .. } => {
                check_key(key).and(once(key))
            }
            DocumentChange::Move { from, to, .. } => check_key(from)
                .and(check_key(to))
                .and(once(from))
                .and(once(to)),
        })
        .map_err(|cause| StoreError::Store {
            place: place.to_owned(),
            cause,
        })
}

/// Checks that no line holds a line end, which would make it several lines when read back.
pub(crate) fn check_lines(place: &str, lines: &[Bytes]) -> Result<(), StoreError> {
    if !lines
        .iter()
        .any(|line| memchr::memchr(b'\n', line).is_some())
    {
        return Ok(());
    }
    Err(StoreError::Store {
        place: place.to_owned(),
        cause: "a journal's line has a line end in it".to_owned(),
    })
}

fn check_key(key: &str) -> Result<(), String> {
    at_most(key.len(), MAX_KEY_BYTES, "key", key)
}

fn check_document(key: &str, document: &Document) -> Result<(), String> {
    at_most(document.meta.len(), MAX_META_BYTES, "meta", key)
        .and_then(|()| at_most(document.body.len(), MAX_BODY_BYTES, "body", key))
}

fn at_most(bytes: usize, max: usize, part: &str, key: &str) -> Result<(), String> {
    if bytes <= max {
        Ok(())
    } else {
        Err(format!(
            "{key}: its {part} has {bytes} bytes, at most {max} are kept"
        ))
    }
}
