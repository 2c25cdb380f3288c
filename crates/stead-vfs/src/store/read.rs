//! Reading from the store: `stat`, `list`, `read` and `walk`.
//!
//! Effects: the clock, randomness, the store (reads).

use super::StoreVfs;
use super::error;
use super::node::{self, Chunks, FileNode, LevelKey, NodeMeta};
use super::retry::RetryBackoff;
use crate::{DirEntry, ReadRange, Stat, VPath, Version, VfsError, Walk};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use stead_store::{Document, ListedDocument};

/// The number of documents listed at once.
const PAGE: usize = 1000;
/// The number of chunks fetched at once.
const CHUNKS_AT_ONCE: usize = 4;

impl StoreVfs {
    pub(super) async fn stat_node(&self, path: &VPath) -> Result<Stat, VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Ok(node::root());
        }
        match self.find_node(path).await? {
            Some(node) => Ok(node.stat()),
            None => Err(self.not_found_error(path).await?),
        }
    }

    /// Returns the node at a path other than the root, without its content.
    pub(super) async fn find_node(&self, path: &VPath) -> Result<Option<FileNode>, VfsError> {
        let key = node::key(path);
        // A listing does not transfer the content.
        let listed = self
            .documents
            .list(&self.space, &key, None, 1)
            .await
            .map_err(|e| error::at(path, e))?;
        match listed.into_iter().next() {
            Some(listed) if listed.key == key => Ok(Some(parse(path, &listed)?)),
            Some(_) | None => Ok(None),
        }
    }

    /// Returns the node at a path other than the root, with its document.
    pub(super) async fn load_node(
        &self,
        path: &VPath,
    ) -> Result<Option<(FileNode, Document)>, VfsError> {
        let found = self
            .documents
            .get(&self.space, &node::key(path))
            .await
            .map_err(|e| error::at(path, e))?;
        let Some(document) = found else {
            return Ok(None);
        };
        let meta = NodeMeta::parse(path, &document.meta)?;
        Ok(Some((
            FileNode {
                version: document.version,
                meta,
            },
            document,
        )))
    }

    pub(super) async fn list_directory(&self, path: &VPath) -> Result<Vec<DirEntry>, VfsError> {
        node::check_length(path)?;
        let level = node::level_below(path, node::depth(path) + 1);
        let (found, stamps) = self.list_level(path, &level, None, usize::MAX).await?;
        if found.is_empty() && stamps.is_empty() {
            self.require_directory(path).await?;
        }
        Ok(found
            .iter()
            .map(|(path, node)| node.entry(path.name()))
            .collect())
    }

    /// Fails unless `path` is a directory.
    async fn require_directory(&self, path: &VPath) -> Result<(), VfsError> {
        if path.is_root() {
            return Ok(());
        }
        match self.find_node(path).await? {
            Some(node) if node.is_directory() => Ok(()),
            Some(_) => Err(VfsError::NotDirectory(path.clone())),
            None => Err(self.not_found_error(path).await?),
        }
    }

    /// Returns the first `most` nodes of a range of one level, in order, and the stamps in it.
    pub(super) async fn list_level(
        &self,
        path: &VPath,
        prefix: &str,
        mut after: Option<String>,
        most: usize,
    ) -> Result<
        (
            Vec<(VPath, FileNode)>,
            Vec<(VPath, stead_store::DocVersion)>,
        ),
        VfsError,
    > {
        let mut nodes = Vec::new();
        let mut stamps = Vec::new();
        loop {
            let page = self
                .documents
                .list(&self.space, prefix, after.as_deref(), PAGE)
                .await;
            let page = page.map_err(|e| error::at(path, e))?;
            let is_last = page.len() < PAGE;
            for listed in &page {
                match node::parse_key(&listed.key)? {
                    LevelKey::Stamp(directory) => stamps.push((directory, listed.version)),
                    LevelKey::Node(at) => {
                        let node = parse(&at, listed)?;
                        nodes.push((at, node));
                    }
                }
            }
            if is_last || nodes.len() >= most {
                nodes.truncate(most);
                return Ok((nodes, stamps));
            }
            after = page.into_iter().next_back().map(|last| last.key);
        }
    }

    /// Walks level by level. Within a level, keys are in path order.
    pub(super) async fn walk_levels(
        &self,
        path: &VPath,
        after: Option<&VPath>,
        limit: usize,
    ) -> Result<Walk, VfsError> {
        node::check_length(path)?;
        let most = limit.saturating_add(1);
        let mut found = Vec::new();
        // An entry after `after` that is more than one level deeper is in a directory that also
        // comes after `after`. So from there on the first empty level is the last.
        let settled = after.map_or(0, |after| node::depth(after) + 1);
        for depth in node::depth(path) + 1.. {
            let from = after.map(|after| node::level_key(depth, after.as_str()));
            let (nodes, _) = self
                .list_level(path, &node::level_below(path, depth), from, most)
                .await?;
            if nodes.is_empty() && depth >= settled {
                break;
            }
            found.extend(nodes.into_iter().map(|(path, node)| {
                let entry = node.entry(path.name());
                (path, entry)
            }));
        }
        if found.is_empty() {
            self.require_directory(path).await?;
        }
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let truncated = found.len() > limit;
        found.truncate(limit);
        Ok(Walk {
            entries: found,
            truncated,
        })
    }

    pub(super) async fn read_range(
        &self,
        path: &VPath,
        range: ReadRange,
    ) -> Result<(Bytes, Version), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            let Some((node, document)) = self.load_node(path).await? else {
                return Err(self.not_found_error(path).await?);
            };
            if node.is_directory() {
                return Err(VfsError::IsDirectory(path.clone()));
            }
            let version = node::version(node.version);
            let start = range.offset.min(node.meta.size);
            let end = range.offset.saturating_add(range.len).min(node.meta.size);
            let Some(chunks) = &node.meta.chunks else {
                let start = start as usize;
                let end = end as usize;
                if document.body.len() as u64 != node.meta.size {
                    return Err(error::corrupt(
                        path,
                        "the content is not as long as the file",
                    ));
                }
                return Ok((document.body.slice(start..end), version));
            };
            if let Some(bytes) = self
                .read_chunks(path, chunks, node.meta.size, start..end)
                .await?
            {
                return Ok((bytes, version));
            }
        }
        Err(error::contended(path))
    }

    /// Reads a part of a content in chunks. Returns `None` if it was replaced meanwhile.
    async fn read_chunks(
        &self,
        path: &VPath,
        chunks: &Chunks,
        size: u64,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>, VfsError> {
        if range.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        if chunks.bytes == 0 || size.div_ceil(chunks.bytes) != chunks.count {
            return Err(error::corrupt(
                path,
                "the number of chunks does not fit the size",
            ));
        }
        let first = range.start / chunks.bytes;
        let last = (range.end - 1) / chunks.bytes;
        let fetch = async |number: u64| -> Result<Option<Bytes>, VfsError> {
            let key = chunks.key(number);
            let found = self
                .documents
                .get(&self.space, &key)
                .await
                .map_err(|e| error::at(path, e))?;
            let whole = chunks.bytes.min(size - number * chunks.bytes);
            match found {
                Some(chunk) if chunk.body.len() as u64 != whole => Err(error::corrupt(
                    path,
                    "a chunk is not as long as it should be",
                )),
                found => Ok(found.map(|chunk| chunk.body)),
            }
        };
        let mut parts = stream::iter(first..=last)
            .map(fetch)
            .buffered(CHUNKS_AT_ONCE);
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut data = Vec::new();
        data.try_reserve_exact(len)
            .map_err(|_| VfsError::TooLarge {
                path: path.clone(),
                size: range.end - range.start,
                limit: isize::MAX as u64,
            })?;
        let mut number = first;
        while let Some(part) = parts.try_next().await? {
            let Some(part) = part else { return Ok(None) };
            let start = number * chunks.bytes;
            let from = range.start.saturating_sub(start) as usize;
            let to = (range.end - start).min(part.len() as u64) as usize;
            data.extend_from_slice(&part[from..to]);
            number += 1;
        }
        Ok(Some(data.into()))
    }
}

fn parse(path: &VPath, listed: &ListedDocument) -> Result<FileNode, VfsError> {
    Ok(FileNode {
        version: listed.version,
        meta: NodeMeta::parse(path, &listed.meta)?,
    })
}
