//! Errors of stores and journals.
//!
//! Effects: none.

use crate::Holder;
use std::path::PathBuf;
use stead_core::{FoldError, Hint, LineError, SessionId};

/// A failed store operation. Nothing that was acknowledged before is lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The session exists already.
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// Another process writes the session.
    #[error("session {session} is in use by {holder}")]
    Locked {
        /// The session.
        session: SessionId,
        /// The process that holds it.
        holder: Holder,
    },
    /// A line in the middle of the journal is damaged.
    #[error("{}:{line}: {cause}. The journal is left as it is", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        cause: LineError,
    },
    /// A line is intact but does not fit the lines before it.
    #[error("{}:{}: {cause}", .path.display(), .cause.seq)]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: FoldError,
    },
    /// The disk is full or over quota.
    #[error("no space left to write {}; free some and go on, nothing is lost", .0.display())]
    NoSpace(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written: {cause}", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// An earlier write failed, so the end of the file is unknown.
    #[error("the journal {} had a write error and takes no more entries; open the session again", .0.display())]
    Broken(PathBuf),
    /// The state is not the expected one; nothing was changed.
    #[error("{0} was changed by someone else in the meantime")]
    Conflict(String),
    /// Another holder took the lease over; nothing was changed.
    #[error("{lease} was taken over by someone else; this process may not change it any more")]
    Fenced {
        /// The lease that was lost.
        lease: String,
    },
    /// The store cannot be reached or did not answer in time, after all retries.
    #[error(
        "the store {place} does not answer: {cause}. Nothing acknowledged is lost; go on when it is back"
    )]
    Unavailable {
        /// The store, without credentials.
        place: String,
        /// The last failure.
        cause: String,
    },
    /// The store refused the operation.
    #[error("the store {place}: {cause}")]
    Store {
        /// The store, without credentials.
        place: String,
        /// The error of the store.
        cause: String,
    },
    /// The store's URL is invalid, or its tables have a newer version.
    #[error("{0}")]
    Setup(String),
    /// The stored data is not what was written.
    #[error("{place}: {cause}. It is left as it is")]
    Corrupt {
        /// The location of the data.
        place: String,
        /// The reason.
        cause: String,
    },
    /// Any other error of the operating system.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl StoreError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotFound(_) => Some(Hint::ListSessions),
            Self::Locked { .. } => Some(Hint::WaitForSession),
            Self::Exists(_)
            | Self::Damaged { .. }
            | Self::Inconsistent { .. }
            | Self::NoSpace(_)
            | Self::ReadOnly { .. }
            | Self::Broken(_)
            | Self::Conflict(_)
            | Self::Fenced { .. }
            | Self::Unavailable { .. }
            | Self::Store { .. }
            | Self::Setup(_)
            | Self::Corrupt { .. }
            | Self::Io { .. } => None,
        }
    }

    /// The error for a store that was left out when this program was built.
    #[cfg(any(
        test,
        not(all(feature = "mysql", feature = "postgres", feature = "redis"))
    ))]
    pub(crate) fn not_built_in(store: &str, feature: &str) -> Self {
        Self::Setup(format!(
            "this stead was built without {store}; `cargo install --path crates/stead --features {feature}` builds \
             it in, --all-features every store"
        ))
    }

    /// Sorts a system error by what a person can do about it.
    pub(crate) fn io(path: impl Into<PathBuf>, cause: std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let path = path.into();
        match cause.kind() {
            K::StorageFull | K::QuotaExceeded => Self::NoSpace(path),
            K::ReadOnlyFilesystem | K::PermissionDenied => Self::ReadOnly { path, cause },
            _ => Self::Io { path, cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_left_out_is_told_with_the_command_that_builds_it_in() {
        assert_eq!(
            StoreError::not_built_in("Redis", "redis").to_string(),
            "this stead was built without Redis; `cargo install --path crates/stead --features redis` builds it in, \
             --all-features every store"
        );
    }
}
