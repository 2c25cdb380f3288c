//! What is kept about the progress of jobs. Every document is changed under its version, so that of
//! two workers only one goes on from any point.

use crate::error::MemoryError;
use crate::fact::FactSource;
use jiff::civil::Date;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use stead_core::{ChainSum, SessionId};
use stead_store::{DocVersion, Document, DocumentChange, Documents, Expected, StoreError};
use stead_workspace::OwnerState;

/// How far a session was looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlushMark {
    /// The last entry that was looked at.
    pub(crate) seq: u64,
    /// The sum of the journal's first line: another session under the same name begins anew.
    pub(crate) born: ChainSum,
}

/// What a model found in a part of a session, on record before anything is written: whoever goes on
/// after a crash goes on with the same facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extraction {
    /// The mark it begins after.
    pub(crate) from: u64,
    /// The last entry it is about.
    pub(crate) upto: u64,
    pub(crate) born: ChainSum,
    /// The day it belongs to.
    pub(crate) date: Date,
    /// What may be trusted.
    pub(crate) trusted: Vec<ExtractedFact>,
    /// What a person must see first.
    pub(crate) outside: Vec<ExtractedFact>,
}

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExtractedFact {
    pub(crate) text: String,
    pub(crate) source: FactSource,
}

/// When facts were last merged into curated memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeProgress {
    /// How often.
    pub(crate) generation: u64,
    /// Milliseconds since 1970.
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

/// What must still be there for a change.
pub(crate) fn expected_version<T>(kept: &Option<Versioned<T>>) -> Expected {
    kept.as_ref()
        .map_or(Expected::Absent, |kept| Expected::Version(kept.version))
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

    /// Where all consolidations of this memory are kept.
    pub(crate) fn record_prefix(&self) -> String {
        format!("consolidation/{}/", self.scope)
    }

    pub(crate) fn record_key(&self, generation: u64) -> String {
        format!("{}{generation:016}", self.record_prefix())
    }

    /// The document at `key`.
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

    /// Makes all changes or none. False if something else is there than was expected.
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

/// A change that keeps `value` at `key`.
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
