//! Append-only logs of lines.

use super::{FencingToken, Space};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;

/// Append-only logs of lines, numbered from 1.
pub trait Journals: fmt::Debug + Send + Sync {
    /// Appends `lines` (without line ends) as one piece after line `after`; 0 begins the journal.
    /// Refused with [`StoreError::Fenced`] if `fence` no longer holds, with
    /// [`StoreError::Conflict`] if `after` is not the last line. Durable on return. Tried again
    /// after a lost answer, it counts as made if the journal ends in these lines.
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lines from line `from` on, in order: as many as come to about `max_bytes`, and at least one
    /// if there is one.
    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>>;

    /// Where the journal ends; none if there is none.
    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>>;

    /// At most `limit` journals whose name comes after `after`, in order of name.
    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>>;

    /// Removes a journal while `fence` holds.
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
    /// Its last line's number.
    pub seq: u64,
    /// Bytes of all lines, each counted with a line end.
    pub bytes: u64,
    /// The last line.
    pub last: Bytes,
    /// Milliseconds since 1970 of the last append, by the store's clock.
    pub updated_ms: i64,
}
