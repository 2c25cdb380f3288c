//! Versioned documents.

use super::{FencingToken, Space};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1100;
/// Most bytes of what a listing shows of a document.
pub const MAX_META_BYTES: usize = 16 * 1024;
/// Most bytes of a document's body. What is larger is cut into several documents.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Versioned documents, by key. Keys compare byte by byte, in all that a backend does with them.
pub trait Documents: fmt::Debug + Send + Sync {
    /// The document at `key`.
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>>;

    /// At most `limit` documents whose key begins with `prefix` and comes after `after`, in the
    /// order of their keys. Fewer than `limit` means that there are no more.
    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>>;

    /// Makes all changes or none, and none if any of them finds something else than it expects
    /// ([`StoreError::Conflict`]) or if `fence` no longer holds ([`StoreError::Fenced`]). Every
    /// expectation is about the state before the whole commit; no key may occur in two changes.
    /// Durable on return.
    ///
    /// Where the answer to a commit is lost with the connection, it is tried again, and it counts
    /// as made if everything is as it would have left it.
    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// What is kept under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Which content this is.
    pub version: DocVersion,
    /// What listings show of it, at most [`MAX_META_BYTES`].
    pub meta: Bytes,
    /// The rest, at most [`MAX_BODY_BYTES`].
    pub body: Bytes,
}

impl Document {
    /// New content, with a version of its own.
    pub fn new(meta: impl Into<Bytes>, body: impl Into<Bytes>) -> Self {
        Self {
            version: DocVersion::fresh(),
            meta: meta.into(),
            body: body.into(),
        }
    }
}

/// A document in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its key.
    pub key: String,
    /// Its version.
    pub version: DocVersion,
    /// What it says of itself.
    pub meta: Bytes,
}

/// One content of one document. Made by whoever writes it and never used again, so that neither a
/// removed and remade document nor a commit tried twice can be taken for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocVersion(pub u128);

impl DocVersion {
    /// One that nothing has yet.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7().as_u128())
    }
}

impl fmt::Display for DocVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for DocVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocVersion({self})")
    }
}

/// One part of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentChange {
    /// Writes a document.
    Put {
        /// Where.
        key: String,
        /// What.
        document: Document,
        /// What must be there before.
        expect: Expected,
    },
    /// Removes a document; with [`Expected::Any`] it is fine if there is none.
    Delete {
        /// Which.
        key: String,
        /// What must be there before.
        expect: Expected,
    },
    /// Puts a document under another key, where nothing may be. Its version stays.
    Move {
        /// From where.
        from: String,
        /// To where.
        to: String,
        /// The version it must have.
        version: DocVersion,
    },
    /// Changes nothing.
    Check {
        /// What is looked at.
        key: String,
        /// What must be there.
        expect: Expected,
    },
}

/// What must be at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything or nothing.
    Any,
    /// Nothing.
    Absent,
    /// A document of exactly this version.
    Version(DocVersion),
}

impl Expected {
    /// Whether `found` is as expected.
    pub fn matches(self, found: Option<DocVersion>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Version(version) => found == Some(version),
        }
    }
}
