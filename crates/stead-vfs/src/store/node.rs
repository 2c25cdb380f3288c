//! The layout of a tree in documents of the store: keys and node metadata.
//!
//! Effects: the clock, randomness.

use crate::{ContentHash, DirEntry, FileKind, PathError, Stat, VPath, Version, VfsError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use stead_store::{DocVersion, Document};

/// The maximum length of a path in bytes. With the depth before it, it fits every store's key.
pub(super) const MAX_PATH_BYTES: usize = 1024;
/// The mode bits of a new file, as on most machines.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
/// The length of a key before its path.
const HEAD_BYTES: usize = "n000:".len();

/// The metadata of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeMeta {
    pub(super) kind: NodeKind,
    pub(super) size: u64,
    pub(super) modified_ms: i64,
    pub(super) mode: u32,
    /// The SHA-256 hash in hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// The chunks of the content, unless it is the document's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chunks: Option<Chunks>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NodeKind {
    File,
    Directory,
}

/// A content split into several documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunks {
    pub(super) blob: String,
    /// The length of each chunk except the last.
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Chunks {
    pub(super) fn key(&self, number: u64) -> String {
        format!("c:{}:{number:08}", self.blob)
    }

    /// Returns the key of the marker, which exists while no node refers to these chunks.
    pub(super) fn marker(&self) -> String {
        format!("{MARKERS}{}", self.blob)
    }
}

/// The prefix of marker keys.
pub(super) const MARKERS: &str = "g:";

/// A node as shown in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileNode {
    pub(super) version: DocVersion,
    pub(super) meta: NodeMeta,
}

impl FileNode {
    pub(super) fn is_directory(&self) -> bool {
        match self.meta.kind {
            NodeKind::Directory => true,
            NodeKind::File => false,
        }
    }

    pub(super) fn stat(&self) -> Stat {
        Stat {
            kind: self.kind(),
            size: self.meta.size,
            modified_ms: self.meta.modified_ms,
            version: version(self.version),
            mode: Some(self.meta.mode),
            hash: self.hash(),
        }
    }

    pub(super) fn entry(&self, name: &str) -> DirEntry {
        DirEntry {
            name: name.to_owned(),
            kind: self.kind(),
            size: self.meta.size,
            modified_ms: self.meta.modified_ms,
            link: false,
            mode: Some(self.meta.mode),
            hash: self.hash(),
        }
    }

    fn kind(&self) -> FileKind {
        match self.meta.kind {
            NodeKind::Directory => FileKind::Directory,
            NodeKind::File => FileKind::File,
        }
    }

    fn hash(&self) -> Option<ContentHash> {
        self.meta.sha256.as_deref().and_then(ContentHash::parse)
    }
}

impl NodeMeta {
    pub(super) fn directory() -> Self {
        let modified_ms = now_ms();
        Self {
            kind: NodeKind::Directory,
            size: 0,
            modified_ms,
            mode: DIRECTORY_MODE,
            sha256: None,
            chunks: None,
        }
    }

    /// Returns the metadata of a new file, with the mode bits of the one it replaces.
    pub(super) fn file(
        size: usize,
        hash: ContentHash,
        chunks: Option<Chunks>,
        replaced: Option<&FileNode>,
    ) -> Self {
        Self {
            kind: NodeKind::File,
            size: size as u64,
            modified_ms: now_ms(),
            mode: replaced.map_or(FILE_MODE, |node| node.meta.mode),
            sha256: Some(hash.to_string()),
            chunks,
        }
    }

    pub(super) fn document(&self, path: &VPath, body: Bytes) -> Result<Document, VfsError> {
        let meta = serde_json::to_vec(self).map_err(|e| VfsError::Io {
            path: path.clone(),
            source: e.into(),
        })?;
        Ok(Document::new(meta, body))
    }

    pub(super) fn parse(path: &VPath, bytes: &[u8]) -> Result<Self, VfsError> {
        serde_json::from_slice(bytes).map_err(|e| VfsError::Io {
            path: path.clone(),
            source: e.into(),
        })
    }
}

/// Returns the metadata of the root, which has no document.
pub(super) fn root() -> Stat {
    let meta = NodeMeta {
        modified_ms: 0,
        ..NodeMeta::directory()
    };
    FileNode {
        version: DocVersion(0),
        meta,
    }
    .stat()
}

/// Returns the key of a path's node. Nodes of one depth are adjacent, so that the entries of a
/// directory, and each level of a subtree, are one range.
pub(super) fn key(path: &VPath) -> String {
    level_key(depth(path), path.as_str())
}

/// Returns the key of `path` among the nodes of a depth.
pub(super) fn level_key(depth: usize, path: &str) -> String {
    format!("n{depth:03}:{path}")
}

/// Returns the key prefix of everything below a directory at `depth` levels from the root.
pub(super) fn level_below(path: &VPath, depth: usize) -> String {
    if path.is_root() {
        level_key(depth, "")
    } else {
        level_key(depth, &format!("{path}/"))
    }
}

/// Returns the key of a directory's stamp, which every new entry replaces. It sorts before the
/// entries, as an entry with an empty name would.
pub(super) fn stamp_key(directory: &VPath) -> String {
    level_below(directory, depth(directory) + 1)
}

pub(super) fn depth(path: &VPath) -> usize {
    path.parts().count()
}

/// The meaning of a key of a level.
pub(super) enum LevelKey {
    Node(VPath),
    /// The stamp of this directory.
    Stamp(VPath),
}

pub(super) fn parse_key(key: &str) -> Result<LevelKey, VfsError> {
    let text = key.get(HEAD_BYTES..).unwrap_or_default();
    Ok(match text.strip_suffix('/') {
        Some(directory) => LevelKey::Stamp(VPath::parse(directory)?),
        None => LevelKey::Node(VPath::parse(text)?),
    })
}

/// Converts the version of a document.
pub(super) fn version(version: DocVersion) -> Version {
    Version(version.to_string().into())
}

/// Converts to a document version, or `None` if no document can have it.
pub(super) fn doc_version(version: &Version) -> Option<DocVersion> {
    u128::from_str_radix(&version.0, 16).ok().map(DocVersion)
}

/// Checks that a path is short enough for a store.
pub(super) fn check_length(path: &VPath) -> Result<(), VfsError> {
    if path.as_str().len() > MAX_PATH_BYTES {
        Err(PathError::TooLong.into())
    } else {
        Ok(())
    }
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
