//! How a tree is laid out in documents: keys, and what a node says of itself.

use crate::{ContentHash, DirEntry, FileKind, PathError, Stat, VPath, Version, VfsError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use stead_store::{DocVersion, Document};

/// Longest path, in bytes: with the depth before it, it fits every store's key.
pub(super) const MAX_PATH_BYTES: usize = 1024;
/// Bits of a new file and of every directory, as most machines give them.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
/// Letters and digits of a key before its path.
const HEAD_BYTES: usize = "n000:".len();

/// What a document says of the file or directory it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeMeta {
    pub(super) kind: NodeKind,
    pub(super) size: u64,
    pub(super) modified_ms: i64,
    pub(super) mode: u32,
    /// SHA-256 in hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// Where the content is, unless it is the document's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chunks: Option<Chunks>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NodeKind {
    File,
    Directory,
}

/// A content cut into documents of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunks {
    pub(super) blob: String,
    /// Bytes of each, the last one excepted.
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Chunks {
    pub(super) fn key(&self, number: u64) -> String {
        format!("c:{}:{number:08}", self.blob)
    }

    /// The document that says that nobody refers to these chunks yet, or any more.
    pub(super) fn marker(&self) -> String {
        format!("{MARKERS}{}", self.blob)
    }
}

/// What the keys of markers begin with.
pub(super) const MARKERS: &str = "g:";

/// A node as a listing shows it.
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

    /// A file that was just written; the bits of the one it replaces stay.
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

/// The root, which has no document.
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

/// Where the node of a path is. Nodes of one depth lie together, so that the entries of a directory
/// are one range, and so is each level of a subtree.
pub(super) fn key(path: &VPath) -> String {
    level_key(depth(path), path.as_str())
}

/// The text `path` among the nodes of a depth.
pub(super) fn level_key(depth: usize, path: &str) -> String {
    format!("n{depth:03}:{path}")
}

/// What the keys of everything below a directory begin with, `depth` levels down from the root.
pub(super) fn level_below(path: &VPath, depth: usize) -> String {
    if path.is_root() {
        level_key(depth, "")
    } else {
        level_key(depth, &format!("{path}/"))
    }
}

/// The document of a directory that every new entry in it replaces. It sorts before the entries, as
/// one with an empty name would.
pub(super) fn stamp_key(directory: &VPath) -> String {
    level_below(directory, depth(directory) + 1)
}

pub(super) fn depth(path: &VPath) -> usize {
    path.parts().count()
}

/// What a key of a level stands for.
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

/// The version of a document, in the words of the contract.
pub(super) fn version(version: DocVersion) -> Version {
    Version(version.to_string().into())
}

/// The document version that a caller means; none if no document ever had it.
pub(super) fn doc_version(version: &Version) -> Option<DocVersion> {
    u128::from_str_radix(&version.0, 16).ok().map(DocVersion)
}

/// Refuses what no store can hold.
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
