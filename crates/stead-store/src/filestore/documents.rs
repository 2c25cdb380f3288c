//! Documents as files.

use super::folder::{Folder, Part};
use super::leases::check_fence;
use super::{FileStore, names};
use crate::contract::check_changes;
use crate::{
    Change, DocVersion, Document, Documents, Expected, Fence, Listed, MAX_META_BYTES, Space,
    StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Enough for the first line of any document: a key may be six times as long in JSON.
const HEAD_BYTES: u64 = 8 * 1024;

/// The first line of a document's file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
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
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        let prefix = prefix.to_owned();
        let after = after.map(str::to_owned);
        Box::pin(self.read(space, move |folder| {
            let mut found = Vec::new();
            for name in folder.names(Part::Documents)? {
                let key = match names::to_key(&name) {
                    Some(key) => key,
                    None => match head(folder, &name, HEAD_BYTES)? {
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
        changes: Vec<Change>,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let fence = fence.cloned();
        Box::pin(async move {
            check_changes(&self.place, &changes)?;
            self.write(space, move |folder| {
                fence.map_or(Ok(()), |fence| check_fence(folder, &fence))?;
                changes
                    .iter()
                    .try_for_each(|change| check(folder, change))?;
                make(folder, changes)
            })
            .await
        })
    }
}

fn check(folder: &Folder, change: &Change) -> Result<(), StoreError> {
    let expect = |key: &str, expected: Expected| {
        let found = version(folder, key)?;
        if expected.holds(found) {
            Ok(())
        } else {
            Err(StoreError::Conflict(key.to_owned()))
        }
    };
    match change {
        Change::Put {
            key,
            expect: expected,
            ..
        }
        | Change::Delete {
            key,
            expect: expected,
        }
        | Change::Check {
            key,
            expect: expected,
        } => expect(key, *expected),
        Change::Move { from, to, version } => {
            expect(from, Expected::Version(*version)).and_then(|()| expect(to, Expected::Absent))
        }
    }
}

/// Makes changes that are known to be right.
fn make(folder: &Folder, changes: Vec<Change>) -> Result<(), StoreError> {
    let mut moves = Vec::new();
    let mut removals = Vec::new();
    for change in changes {
        match change {
            Change::Put { key, document, .. } => {
                moves.push((stage(folder, &key, &document)?, names::of_key(&key)));
            }
            Change::Delete { key, .. } => removals.push(names::of_key(&key)),
            Change::Move { from, to, .. } => {
                let Some(document) = read(folder, &from)? else {
                    continue;
                };
                moves.push((stage(folder, &to, &document)?, names::of_key(&to)));
                removals.push(names::of_key(&from));
            }
            Change::Check { .. } => {}
        }
    }
    folder.commit(moves, removals)
}

fn stage(folder: &Folder, key: &str, document: &Document) -> Result<String, StoreError> {
    let head = Head {
        key: key.to_owned(),
        version: document.version.to_string(),
        meta_bytes: document.meta.len(),
        body_bytes: document.body.len(),
    };
    let head = serde_json::to_vec(&head).map_err(|cause| {
        folder.corrupt(
            &folder.file(Part::Documents, &names::of_key(key)),
            cause.to_string(),
        )
    })?;
    folder.stage(&[&head, b"\n", &document.meta, &document.body])
}

fn read(folder: &Folder, key: &str) -> Result<Option<Document>, StoreError> {
    let name = names::of_key(key);
    let Some((head, rest)) = head(folder, &name, u64::MAX)? else {
        return Ok(None);
    };
    let corrupt =
        |cause: &str| folder.corrupt(&folder.file(Part::Documents, &name), cause.to_owned());
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

fn listed(folder: &Folder, key: String, name: &str) -> Result<Listed, StoreError> {
    let corrupt =
        |cause: &str| folder.corrupt(&folder.file(Part::Documents, name), cause.to_owned());
    let found = head(folder, name, HEAD_BYTES + MAX_META_BYTES as u64)?;
    let (head, mut rest) = found.ok_or_else(|| corrupt("it vanished"))?;
    if rest.len() < head.meta_bytes {
        return Err(corrupt("it is not as long as it says"));
    }
    rest.truncate(head.meta_bytes);
    let version = parse_version(&head).ok_or_else(|| corrupt("its version is not one"))?;
    Ok(Listed {
        key,
        version,
        meta: rest.into(),
    })
}

fn version(folder: &Folder, key: &str) -> Result<Option<DocVersion>, StoreError> {
    let name = names::of_key(key);
    let Some((head, _)) = head(folder, &name, HEAD_BYTES)? else {
        return Ok(None);
    };
    let corrupt = || {
        folder.corrupt(
            &folder.file(Part::Documents, &name),
            "its version is not one".to_owned(),
        )
    };
    parse_version(&head).ok_or_else(corrupt).map(Some)
}

/// The first line of a file, and what was read after it.
fn head(folder: &Folder, name: &str, most: u64) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
    let Some(mut start) = folder.read_start(Part::Documents, name, most)? else {
        return Ok(None);
    };
    let corrupt = |cause: String| folder.corrupt(&folder.file(Part::Documents, name), cause);
    let end =
        memchr::memchr(b'\n', &start).ok_or_else(|| corrupt("it has no first line".to_owned()))?;
    let head = serde_json::from_slice(&start[..end]).map_err(|cause| corrupt(cause.to_string()))?;
    start.drain(..=end);
    Ok(Some((head, start)))
}

fn parse_version(head: &Head) -> Option<DocVersion> {
    u128::from_str_radix(&head.version, 16).ok().map(DocVersion)
}
