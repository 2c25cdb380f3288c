//! Writing files, making directories, setting bits.

use super::chunks::{INLINE_BYTES, Left, Uploaded};
use super::error;
use super::node::{self, Meta, Node};
use super::tries::Tries;
use super::{Committed, StoreVfs};
use crate::{ContentHash, Expect, VPath, Version, VfsError};
use bytes::Bytes;
use stead_store::{Change, Expected};

impl StoreVfs {
    pub(super) async fn write_file(
        &self,
        path: &VPath,
        data: Bytes,
        expect: Expect,
    ) -> Result<Version, VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut uploaded = None;
        let written = self
            .write_until_settled(path, &data, &expect, &mut uploaded)
            .await;
        if let (Err(_), Some(uploaded)) = (&written, &uploaded) {
            // The failure that led here is the one to report; what stays is swept later.
            let _ = self.abandon(path, uploaded).await;
        }
        written
    }

    async fn write_until_settled(
        &self,
        path: &VPath,
        data: &Bytes,
        expect: &Expect,
        uploaded: &mut Option<Uploaded>,
    ) -> Result<Version, VfsError> {
        let is_large = data.len() > INLINE_BYTES;
        let mut hash = None;
        let mut tries = Tries::default();
        while tries.again().await {
            let look = if tries.is_first() && !is_large {
                Look::IfNeeded
            } else {
                Look::First
            };
            let before = self.before_write(path, expect, look).await?;
            let hash = match hash {
                Some(hash) => hash,
                None => *hash.insert(ContentHash::of_large(path, data).await?),
            };
            if is_large {
                let kept = match uploaded.as_ref() {
                    Some(uploaded) => self.is_kept(path, uploaded).await?,
                    None => false,
                };
                if !kept {
                    *uploaded = self.upload(path, data).await?;
                }
                if uploaded.is_none() {
                    continue;
                }
            }
            let body = if is_large { Bytes::new() } else { data.clone() };
            let content = Content {
                size: data.len(),
                hash,
                body,
                uploaded: uploaded.as_ref(),
            };
            if let Some(version) = self.put_file(path, before, content).await? {
                return Ok(version);
            }
        }
        Err(error::contended(path))
    }

    /// Makes a content that is in the store the one of `path`.
    pub(super) async fn take_uploaded(
        &self,
        path: &VPath,
        size: usize,
        hash: ContentHash,
        uploaded: &Uploaded,
    ) -> Result<Version, VfsError> {
        let mut tries = Tries::default();
        while tries.again().await {
            let before = self.before_write(path, &Expect::Any, Look::First).await?;
            let content = Content {
                size,
                hash,
                body: Bytes::new(),
                uploaded: Some(uploaded),
            };
            if let Some(version) = self.put_file(path, before, content).await? {
                return Ok(version);
            }
            if !self.is_kept(path, uploaded).await? {
                break;
            }
        }
        Err(error::contended(path))
    }

    /// Puts the node of a file in place of what was found before; none if that is no longer so.
    async fn put_file(
        &self,
        path: &VPath,
        (replaced, mut changes): (Option<Node>, Vec<Change>),
        content: Content<'_>,
    ) -> Result<Option<Version>, VfsError> {
        let Content {
            size,
            hash,
            body,
            uploaded,
        } = content;
        let chunks = uploaded.map(|uploaded| uploaded.chunks.clone());
        let document = Meta::file(size, hash, chunks, replaced.as_ref()).document(path, body)?;
        let version = document.version;
        let expect = replaced
            .as_ref()
            .map_or(Expected::Absent, |node| Expected::Version(node.version));
        changes.push(Change::Put {
            key: node::key(path),
            document,
            expect,
        });
        changes.extend(uploaded.map(Uploaded::taken));
        let left = match replaced.as_ref().and_then(|node| node.meta.chunks.as_ref()) {
            Some(old) => self.give_up(path, old, &mut changes)?,
            None => Left::Nothing,
        };
        if self.commit(path, changes).await? == Committed::Conflict {
            return Ok(None);
        }
        if let Left::Chunks(old) = left {
            // The file is written; what stays of the old content has its marker.
            let _ = self.erase(path, &old).await;
        }
        Ok(Some(node::version(version)))
    }

    /// What is to be replaced, and what the commit must hold besides, if `expect` allows the write.
    async fn before_write(
        &self,
        path: &VPath,
        expect: &Expect,
        look: Look,
    ) -> Result<(Option<Node>, Vec<Change>), VfsError> {
        let found = match (expect, look) {
            // The commit itself finds out.
            (Expect::Absent, Look::IfNeeded) => None,
            (Expect::Absent | Expect::Any | Expect::Version(_), _) => self.look(path).await?,
        };
        match (expect, found) {
            (Expect::Absent, Some(_)) => Err(VfsError::Exists(path.clone())),
            (Expect::Version(version), Some(node))
                if node::doc_version(version) != Some(node.version) =>
            {
                Err(VfsError::Changed(path.clone()))
            }
            (Expect::Any | Expect::Version(_), Some(node)) if node.is_directory() => {
                Err(VfsError::IsDirectory(path.clone()))
            }
            (Expect::Any | Expect::Version(_), Some(node)) => Ok((Some(node), Vec::new())),
            (Expect::Version(_), None) => Err(match self.missing(path).await? {
                VfsError::NotFound(path) => VfsError::Changed(path),
                other => other,
            }),
            (Expect::Any | Expect::Absent, None) => {
                let mut changes = Vec::new();
                self.anchor(path, &mut changes).await?;
                Ok((None, changes))
            }
        }
    }

    pub(super) async fn make_directory(&self, path: &VPath) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Ok(());
        }
        let mut tries = Tries::default();
        while tries.again().await {
            match self.look(path).await? {
                Some(node) if node.is_directory() => return Ok(()),
                Some(_) => return Err(VfsError::NotDirectory(path.clone())),
                None => {}
            }
            let mut changes = vec![self.made(path)?];
            self.anchor(path, &mut changes).await?;
            if self.commit(path, changes).await? == Committed::Made {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }

    pub(super) async fn change_mode(&self, path: &VPath, mode: u32) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut tries = Tries::default();
        while tries.again().await {
            match self.look(path).await? {
                None => return Err(self.missing(path).await?),
                Some(node) if node.is_directory() => {
                    return Err(VfsError::IsDirectory(path.clone()));
                }
                Some(node) if node.meta.mode == mode & 0o777 => return Ok(()),
                Some(_) => {}
            }
            let Some((node, document)) = self.load(path).await? else {
                continue;
            };
            if node.is_directory() {
                continue;
            }
            let meta = Meta {
                mode: mode & 0o777,
                ..node.meta
            };
            let document = meta.document(path, document.body)?;
            let expect = Expected::Version(node.version);
            let put = Change::Put {
                key: node::key(path),
                document,
                expect,
            };
            if self.commit(path, vec![put]).await? == Committed::Made {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }
}

/// What a file is to hold: the body of its node, or what was uploaded.
struct Content<'a> {
    size: usize,
    hash: ContentHash,
    body: Bytes,
    uploaded: Option<&'a Uploaded>,
}

/// Whether to look at what is there before the first try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    First,
    IfNeeded,
}
