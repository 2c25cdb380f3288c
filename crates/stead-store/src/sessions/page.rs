//! Pages of a listing of sessions.
//!
//! Effects: none.

use crate::SessionSummary;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use stead_core::SessionId;

/// A request for one page of a listing, which is newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The most sessions on the page.
    pub limit: usize,
    /// The end of the page before; `None` for the first page.
    pub after: Option<PageCursor>,
}

impl PageRequest {
    /// Returns a request for the first page.
    pub fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }

    /// Returns a request for everything on one page.
    pub fn everything() -> Self {
        Self::first(usize::MAX)
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPage {
    /// The sessions, newest first.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<PageCursor>,
}

/// The end of a page. It stays valid while sessions are added and changed: a session that changes
/// moves to the front, where the first page shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageCursor {
    updated_ms: i64,
    id: SessionId,
}

/// A text that is no cursor of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no cursor of a listing; use the one that the page before gave")]
pub struct CursorError(String);

impl PageCursor {
    /// Returns the end of a page whose last session is `last`.
    pub fn after(last: &SessionSummary) -> Self {
        Self {
            updated_ms: last.updated_ms,
            id: last.id.clone(),
        }
    }

    /// Returns whether a session comes after this end, that is, it is older.
    pub(super) fn precedes(&self, updated_ms: i64, id: &str) -> bool {
        newest_first((self.updated_ms, self.id.as_str()), (updated_ms, id)) == Ordering::Less
    }
}

/// Compares two sessions, each by its last change and its id, so that the newer one comes first.
pub(super) fn newest_first(a: (i64, &str), b: (i64, &str)) -> Ordering {
    b.cmp(&a)
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An id contains no dot.
        write!(f, "{}.{}", self.updated_ms, self.id)
    }
}

impl FromStr for PageCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let parse = || {
            let (updated_ms, id) = text.split_once('.')?;
            Some(Self {
                updated_ms: updated_ms.parse().ok()?,
                id: SessionId::new(id).ok()?,
            })
        };
        parse().ok_or_else(|| CursorError(text.to_owned()))
    }
}

impl TryFrom<String> for PageCursor {
    type Error = CursorError;

    fn try_from(text: String) -> Result<Self, CursorError> {
        text.parse()
    }
}

impl From<PageCursor> for String {
    fn from(cursor: PageCursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_from_its_text() {
        for (updated_ms, id) in [(0, "s"), (i64::MAX, "ä\"-_"), (-5, "0")] {
            let cursor = PageCursor {
                updated_ms,
                id: SessionId::new(id).unwrap(),
            };
            assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
            let json = serde_json::to_string(&cursor).unwrap();
            assert_eq!(serde_json::from_str::<PageCursor>(&json).unwrap(), cursor);
        }
        for wrong in ["", "1", "1.", ".s", "x.s", "1.a.b", "1.a/b"] {
            assert!(wrong.parse::<PageCursor>().is_err(), "{wrong}");
        }
    }
}
