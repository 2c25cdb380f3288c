//! The errors of places: why one cannot be used.
//!
//! Effects: none.

use stead_core::Hint;
use stead_store::StoreError;
use stead_vfs::VfsError;

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The files are in a shared store and the sessions are not.
    #[error(
        "the files are in {files}, which other machines share, but sessions would be kept in {sessions}, which \
         only this machine sees: set sessions.url to a shared store, or leave it out to use that of filesystem"
    )]
    LocalSessions {
        /// The store of the files.
        files: String,
        /// The store of the sessions.
        sessions: String,
    },
    /// The settings cannot be applied.
    #[error("{0}")]
    Settings(String),
    /// The folder cannot be opened.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The store cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PlaceError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::LocalSessions { .. } | Self::Settings(_) | Self::Files(_) => None,
        }
    }
}
