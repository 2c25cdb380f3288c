//! The contract for journals: append-only logs of lines.
//!
//! Effects: none.

use super::{FencingToken, Space};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;

/// Append-only logs of lines, numbered from 1.
pub trait Journals: fmt::Debug + Send + Sync {
    /// Appends `lines` (without line ends) atomically after line `after`; 0 starts the journal.
    /// Fails with [`StoreError::Fenced`] if `fence` is outdated and with [`StoreError::Conflict`]
    /// if `after` is not the last line. Durable on return. After a lost response the append is
    /// retried, and counts as applied if the journal ends in these lines.
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns lines from line `from` on, in order: about `max_bytes` of them, and at least one if
    /// there is one.
    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>>;

    /// Returns the end of the journal, or `None` if it does not exist.
    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>>;

    /// Returns at most `limit` journals whose name comes after `after`, ordered by name.
    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>>;

    /// Removes a journal. Fails with [`StoreError::Fenced`] if `fence` is outdated.
    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The end of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalTail {
    /// The number of the last line.
    pub seq: u64,
    /// The total length of all lines in bytes, including line ends.
    pub bytes: u64,
    /// The last line.
    pub last: Bytes,
    /// The time of the last append in milliseconds since 1970, by the store's clock.
    pub updated_ms: i64,
}
