//! The contract for documents: versioned values under keys, changed by compare-and-set.
//!
//! Effects: the clock, randomness.

use super::{FencingToken, Space};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;

/// The maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 1100;
/// The maximum length of a document's metadata, in bytes.
pub const MAX_META_BYTES: usize = 16 * 1024;
/// The maximum length of a document's body, in bytes. Larger contents are split into several
/// documents.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Versioned documents by key. Every backend compares keys byte by byte.
pub trait Documents: fmt::Debug + Send + Sync {
    /// Returns the document at `key`.
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>>;

    /// Returns at most `limit` documents whose key begins with `prefix` and comes after `after`, in
    /// key order. Fewer than `limit` results mean that there are no more.
    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>>;

    /// Applies all changes or none. Nothing is changed if an expectation does not hold
    /// ([`StoreError::Conflict`]) or `fence` is outdated ([`StoreError::Fenced`]). Every
    /// expectation refers to the state before the whole commit, and no key may occur in two
    /// changes. Durable on return.
    ///
    /// If the response is lost with the connection, the commit is retried. It counts as applied if
    /// everything is as the commit would have left it.
    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The content stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The version of the content.
    pub version: DocVersion,
    /// The part that listings show, at most [`MAX_META_BYTES`].
    pub meta: Bytes,
    /// The rest, at most [`MAX_BODY_BYTES`].
    pub body: Bytes,
}

impl Document {
    /// Creates a document with a new version.
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
    /// The key.
    pub key: String,
    /// The version.
    pub version: DocVersion,
    /// The document's metadata.
    pub meta: Bytes,
}

/// The version of a document's content. The writer creates it and never reuses it, so a document
/// that was removed and created again, or a commit that was retried, cannot be mistaken for
/// another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocVersion(pub u128);

impl DocVersion {
    /// Returns a version that was never used before.
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
        /// The key.
        key: String,
        /// The new document.
        document: Document,
        /// The expected state before the commit.
        expect: Expected,
    },
    /// Removes a document. With [`Expected::Any`] it may be absent.
    Delete {
        /// The key.
        key: String,
        /// The expected state before the commit.
        expect: Expected,
    },
    /// Moves a document to a key that must be absent. Its version stays.
    Move {
        /// The current key.
        from: String,
        /// The new key.
        to: String,
        /// The version it must have.
        version: DocVersion,
    },
    /// Changes nothing, but makes the commit depend on the state of a key.
    Check {
        /// The key.
        key: String,
        /// The expected state.
        expect: Expected,
    },
}

/// The expected state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any state.
    Any,
    /// There is no document.
    Absent,
    /// There is a document of exactly this version.
    Version(DocVersion),
}

impl Expected {
    /// Returns whether `found` is the expected state.
    pub fn matches(self, found: Option<DocVersion>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Version(version) => found == Some(version),
        }
    }
}
