//! The documents of the file store: one file for each.
//!
//! Effects: the clock, randomness, the local disk (writes).

use super::leases::check_fence;
use super::locked_folder::{LockedFolder, SpaceSubfolder};
use super::{FileStore, names};
use crate::contract::check_changes;
use crate::{
    DocVersion, Document, DocumentChange, Documents, Expected, FencingToken, ListedDocument,
    MAX_META_BYTES, Space, StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// The length of the first line of any document: a key may be six times as long in JSON.
const HEAD_BYTES: u64 = 8 * 1024;

/// The first line of a document's file.
#[derive(Debug, Serialize, Deserialize)]
struct DocumentHeader {
    key: String,
    version: String,
    meta_bytes: usize,
    body_bytes: usize,
}

impl Documents for FileStore {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        let key = key.to_owned();
        Box::pin(self.read(space, move |folder| read(folder, &key)))
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        let prefix = prefix.to_owned();
        let after = after.map(str::to_owned);
        Box::pin(self.read(space, move |folder| {
            let mut found = Vec::new();
            for name in folder.names(SpaceSubfolder::Documents)? {
                let key = match names::key_from_file_name(&name) {
                    Some(key) => key,
                    None => match read_header(folder, &name, HEAD_BYTES)? {
                        Some((head, _)) => head.key,
                        None => continue,
                    },
                };
                if key.starts_with(&prefix) && after.as_ref().is_none_or(|after| key > *after) {
                    found.push((key, name));
                }
            }
            found.sort_unstable();
            found.truncate(limit);
            found
                .into_iter()
                .map(|(key, name)| listed(folder, key, &name))
                .collect()
        }))
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let fence = fence.cloned();
        Box::pin(async move {
            check_changes(&self.place, &changes)?;
            self.write(space, move |folder| {
                fence.map_or(Ok(()), |fence| check_fence(folder, &fence))?;
                changes
                    .iter()
                    .try_for_each(|change| check(folder, change))?;
                apply_changes(folder, changes)
            })
            .await
        })
    }
}

fn check(folder: &LockedFolder, change: &DocumentChange) -> Result<(), StoreError> {
    let expect = |key: &str, expected: Expected| {
        let found = version(folder, key)?;
        if expected.matches(found) {
            Ok(())
        } else {
            Err(StoreError::Conflict(key.to_owned()))
        }
    };
    match change {
        DocumentChange::Put {
            key,
            expect: expected,
            ..
        }
        | DocumentChange::Delete {
            key,
            expect: expected,
        }
        | DocumentChange::Check {
            key,
            expect: expected,
        } => expect(key, *expected),
        DocumentChange::Move { from, to, version } => {
            expect(from, Expected::Version(*version)).and_then(|()| expect(to, Expected::Absent))
        }
    }
}

/// Applies changes whose expectations have been checked.
fn apply_changes(folder: &LockedFolder, changes: Vec<DocumentChange>) -> Result<(), StoreError> {
    let mut moves = Vec::new();
    let mut removals = Vec::new();
    for change in changes {
        match change {
            DocumentChange::Put { key, document, .. } => {
                moves.push((stage(folder, &key, &document)?, names::key_file_name(&key)));
            }
            DocumentChange::Delete { key, .. } => removals.push(names::key_file_name(&key)),
            DocumentChange::Move { from, to, .. } => {
                let Some(document) = read(folder, &from)? else {
                    continue;
                };
                moves.push((stage(folder, &to, &document)?, names::key_file_name(&to)));
                removals.push(names::key_file_name(&from));
            }
            DocumentChange::Check { .. } => {}
        }
    }
    folder.commit(moves, removals)
}

fn stage(folder: &LockedFolder, key: &str, document: &Document) -> Result<String, StoreError> {
    let head = DocumentHeader {
        key: key.to_owned(),
        version: document.version.to_string(),
        meta_bytes: document.meta.len(),
        body_bytes: document.body.len(),
    };
    let head = serde_json::to_vec(&head).map_err(|cause| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Documents, &names::key_file_name(key)),
            cause.to_string(),
        )
    })?;
    folder.stage(&[&head, b"\n", &document.meta, &document.body])
}

fn read(folder: &LockedFolder, key: &str) -> Result<Option<Document>, StoreError> {
    let name = names::key_file_name(key);
    let Some((head, rest)) = read_header(folder, &name, u64::MAX)? else {
        return Ok(None);
    };
    let corrupt = |cause: &str| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Documents, &name),
            cause.to_owned(),
        )
    };
    if head.key != key {
        return Err(corrupt("it is the document of another key"));
    }
    if head.meta_bytes.checked_add(head.body_bytes) != Some(rest.len()) {
        return Err(corrupt("it is not as long as it says"));
    }
    let rest = Bytes::from(rest);
    let version = parse_version(&head).ok_or_else(|| corrupt("its version is not one"))?;
    Ok(Some(Document {
        version,
        meta: rest.slice(..head.meta_bytes),
        body: rest.slice(head.meta_bytes..),
    }))
}

fn listed(folder: &LockedFolder, key: String, name: &str) -> Result<ListedDocument, StoreError> {
    let corrupt = |cause: &str| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Documents, name),
            cause.to_owned(),
        )
    };
    let found = read_header(folder, name, HEAD_BYTES + MAX_META_BYTES as u64)?;
    let (head, mut rest) = found.ok_or_else(|| corrupt("it vanished"))?;
    if rest.len() < head.meta_bytes {
        return Err(corrupt("it is not as long as it says"));
    }
    rest.truncate(head.meta_bytes);
    let version = parse_version(&head).ok_or_else(|| corrupt("its version is not one"))?;
    Ok(ListedDocument {
        key,
        version,
        meta: rest.into(),
    })
}

fn version(folder: &LockedFolder, key: &str) -> Result<Option<DocVersion>, StoreError> {
    let name = names::key_file_name(key);
    let Some((head, _)) = read_header(folder, &name, HEAD_BYTES)? else {
        return Ok(None);
    };
    let corrupt = || {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Documents, &name),
            "its version is not one".to_owned(),
        )
    };
    parse_version(&head).ok_or_else(corrupt).map(Some)
}

/// Returns the first line of a file and the bytes that were read after it.
fn read_header(
    folder: &LockedFolder,
    name: &str,
    most: u64,
) -> Result<Option<(DocumentHeader, Vec<u8>)>, StoreError> {
    let Some(mut start) = folder.read_start(SpaceSubfolder::Documents, name, most)? else {
        return Ok(None);
    };
    let corrupt =
        |cause: String| folder.corrupt(&folder.file(SpaceSubfolder::Documents, name), cause);
    let end =
        memchr::memchr(b'\n', &start).ok_or_else(|| corrupt("it has no first line".to_owned()))?;
    let head = serde_json::from_slice(&start[..end]).map_err(|cause| corrupt(cause.to_string()))?;
    start.drain(..=end);
    Ok(Some((head, start)))
}

fn parse_version(head: &DocumentHeader) -> Option<DocVersion> {
    u128::from_str_radix(&head.version, 16).ok().map(DocVersion)
}
