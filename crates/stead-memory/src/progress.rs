//! Documents with the progress of memory jobs. Every change checks the version of the document, so
//! that of two workers only one continues from any point.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::error::MemoryError;
use crate::fact::FactSource;
use jiff::civil::Date;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use stead_core::{ChainSum, SessionId};
use stead_place::OwnerState;
use stead_store::{DocVersion, Document, DocumentChange, Documents, Expected, StoreError};

/// The mark of a session: how far facts were extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlushMark {
    /// The last entry that facts were extracted from.
    pub(crate) seq: u64,
    /// The checksum of the journal's first line. A new session with the same name has another one.
    pub(crate) born: ChainSum,
}

/// The facts of a part of a session. It is recorded before anything is written, so that after a
/// crash the same facts are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extraction {
    /// The mark that it begins after.
    pub(crate) from: u64,
    /// The last entry that it includes.
    pub(crate) upto: u64,
    pub(crate) born: ChainSum,
    /// The day that the facts belong to.
    pub(crate) date: Date,
    /// Facts from trusted content.
    pub(crate) trusted: Vec<ExtractedFact>,
    /// Facts from untrusted content, for the quarantine.
    pub(crate) outside: Vec<ExtractedFact>,
}

/// A fact of an extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExtractedFact {
    pub(crate) text: String,
    pub(crate) source: FactSource,
}

/// The progress of consolidation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeProgress {
    /// The number of merges.
    pub(crate) generation: u64,
    /// The time of the last merge, in milliseconds since 1970.
    pub(crate) at_ms: i64,
}

/// The ids of the facts of one day that were merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergedDay(pub(crate) BTreeSet<String>);

/// A document and its version.
#[derive(Debug, Clone)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: DocVersion,
}

/// Returns the version that a change expects.
pub(crate) fn expected_version<T>(stored: &Option<Versioned<T>>) -> Expected {
    stored
        .as_ref()
        .map_or(Expected::Absent, |stored| Expected::Version(stored.version))
}

/// The documents of one memory of an owner: marks, extractions, plans, records.
#[derive(Debug, Clone)]
pub(crate) struct JobDocuments {
    pub(crate) state: OwnerState,
    /// The memory that they are about: that of all sessions, or of one.
    pub(crate) scope: String,
}

impl JobDocuments {
    pub(crate) fn mark_key(session: &SessionId) -> String {
        format!("mark/{session}")
    }

    pub(crate) fn extraction_key(session: &SessionId) -> String {
        format!("extraction/{session}")
    }

    pub(crate) fn merged_key(&self) -> String {
        format!("merged/{}", self.scope)
    }

    pub(crate) fn plan_key(&self) -> String {
        format!("plan/{}", self.scope)
    }

    pub(crate) fn day_key(&self, date: Date) -> String {
        format!("day/{}/{date}", self.scope)
    }

    /// The prefix of the keys of merge records.
    pub(crate) fn record_prefix(&self) -> String {
        format!("consolidation/{}/", self.scope)
    }

    pub(crate) fn record_key(&self, generation: u64) -> String {
        format!("{}{generation:016}", self.record_prefix())
    }

    /// Reads the document at `key`.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<T>>, MemoryError> {
        let Some(document) = Documents::get(&*self.state.store, &self.state.space, key).await?
        else {
            return Ok(None);
        };
        let value =
            serde_json::from_slice(&document.body).map_err(|error| MemoryError::Unreadable {
                key: key.to_owned(),
                cause: error.to_string(),
            })?;
        Ok(Some(Versioned {
            value,
            version: document.version,
        }))
    }

    /// Commits all changes or none. Returns false on a conflict.
    pub(crate) async fn commit(&self, changes: Vec<DocumentChange>) -> Result<bool, MemoryError> {
        match self
            .state
            .store
            .commit(&self.state.space, changes, None)
            .await
        {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a change that stores `value` at `key`.
pub(crate) fn put_change<T: Serialize>(
    key: String,
    value: &T,
    expect: Expected,
) -> Result<DocumentChange, MemoryError> {
    let body = serde_json::to_vec(value).map_err(|error| MemoryError::Unreadable {
        key: key.clone(),
        cause: error.to_string(),
    })?;
    Ok(DocumentChange::Put {
        key,
        document: Document::new(Vec::new(), body),
        expect,
    })
}
