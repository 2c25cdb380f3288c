//! What is kept about the progress of jobs. Every document is changed under its version, so that of
//! two workers only one goes on from any point.

use super::error::MemoryError;
use super::fact::FactSource;
use super::owner_memory::OwnerMemory;
use jiff::civil::Date;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use stead_core::{ChainSum, SessionId};
use stead_store::{DocVersion, Document, DocumentChange, Documents, Expected, StoreError};

/// How far a session was looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushMark {
    /// The last entry that was looked at.
    pub(super) seq: u64,
    /// The sum of the journal's first line: another session under the same name begins anew.
    pub(super) born: ChainSum,
}

/// What a model found in a part of a session, on record before anything is written: whoever goes on
/// after a crash goes on with the same facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extraction {
    /// The mark it begins after.
    pub(super) from: u64,
    /// The last entry it is about.
    pub(super) upto: u64,
    pub(super) born: ChainSum,
    /// The day it belongs to.
    pub(super) date: Date,
    /// What may be trusted.
    pub(super) trusted: Vec<ExtractedFact>,
    /// What a person must see first.
    pub(super) outside: Vec<ExtractedFact>,
}

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExtractedFact {
    pub(super) text: String,
    pub(super) source: FactSource,
}

/// When facts were last merged into curated memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MergeProgress {
    /// How often.
    pub(super) generation: u64,
    /// Milliseconds since 1970.
    pub(super) at_ms: i64,
}

/// The ids of the facts of one day that were merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MergedDay(pub(super) BTreeSet<String>);

/// A document and its version.
#[derive(Debug, Clone)]
pub(super) struct Versioned<T> {
    pub(super) value: T,
    pub(super) version: DocVersion,
}

/// What must still be there for a change.
pub(super) fn expected_version<T>(kept: &Option<Versioned<T>>) -> Expected {
    kept.as_ref()
        .map_or(Expected::Absent, |kept| Expected::Version(kept.version))
}

impl OwnerMemory {
    pub(super) fn mark_key(session: &SessionId) -> String {
        format!("mark/{session}")
    }

    pub(super) fn extraction_key(session: &SessionId) -> String {
        format!("extraction/{session}")
    }

    pub(super) fn merged_key(&self) -> String {
        format!("merged/{}", self.scope)
    }

    pub(super) fn plan_key(&self) -> String {
        format!("plan/{}", self.scope)
    }

    pub(super) fn day_key(&self, date: Date) -> String {
        format!("day/{}/{date}", self.scope)
    }

    /// Where all consolidations of this memory are kept.
    pub(super) fn record_prefix(&self) -> String {
        format!("consolidation/{}/", self.scope)
    }

    pub(super) fn record_key(&self, generation: u64) -> String {
        format!("{}{generation:016}", self.record_prefix())
    }

    /// The document at `key`.
    pub(super) async fn get<T: DeserializeOwned>(
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

    /// Makes all changes or none. False if something else is there than was expected.
    pub(super) async fn commit(&self, changes: Vec<DocumentChange>) -> Result<bool, MemoryError> {
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

/// A change that keeps `value` at `key`.
pub(super) fn put_change<T: Serialize>(
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
