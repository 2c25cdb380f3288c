//! Errors of a search index.
//!
//! Effects: none.

/// A failed operation. The index is derived, so nothing is ever lost with it.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The query is empty.
    #[error("the query is empty: give one word or more")]
    EmptyQuery,
    /// The index was damaged and is empty now: its sources must be synced again.
    #[error("the search index was damaged and has been made anew; search again")]
    Rebuilt,
    /// Another process wrote for too long.
    #[error("the search index is being written by another process; search again in a moment")]
    Busy,
    /// The file cannot be used.
    #[error("the search index {place}: {cause}")]
    Unavailable {
        /// The file, or `memory`.
        place: String,
        /// The error of the system.
        cause: String,
    },
}

/// The meaning of an SQLite error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqliteFault {
    Damaged,
    Busy,
    Other,
}

/// Classifies by SQLite's extended result codes, whose lowest byte is the primary code.
pub(crate) fn classify_error(error: &sqlx::Error) -> SqliteFault {
    const ERROR: i32 = 1;
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const CORRUPT: i32 = 11;
    const NOTADB: i32 = 26;
    let sqlx::Error::Database(error) = error else {
        return SqliteFault::Other;
    };
    let code = error
        .code()
        .and_then(|code| code.parse::<i32>().ok())
        .unwrap_or_default();
    match code & 0xff {
        CORRUPT | NOTADB => SqliteFault::Damaged,
        // A table of ours is missing or different: the file is not what it claims to be.
        ERROR
            if ["no such table", "no such column", "vtable constructor"]
                .iter()
                .any(|w| error.message().contains(w)) =>
        {
            SqliteFault::Damaged
        }
        BUSY | LOCKED => SqliteFault::Busy,
        _ => SqliteFault::Other,
    }
}
