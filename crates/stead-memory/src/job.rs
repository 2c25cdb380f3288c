//! The jobs of the memory queue.

use crate::error::MemoryError;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, Versioned};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use stead_core::SessionId;
use stead_place::OwnerState;

/// The name of the queue.
pub(crate) const QUEUE: &str = "memory";
/// The number of attempts before a job becomes a dead letter.
const MAX_ATTEMPTS: u32 = 8;

/// A job of the memory queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum MemoryJob {
    /// Extract facts from a session.
    Flush {
        /// The session.
        session: SessionId,
        /// The last entry to extract from.
        upto: u64,
    },
    /// Merge new facts into curated memory.
    Consolidate {
        /// The memory: that of all sessions, or of one.
        scope: String,
        /// The number of earlier merges. If there were more since, the job has nothing to do.
        generation: u64,
    },
}

impl MemoryJob {
    /// Describes the job to people.
    pub fn description(&self) -> String {
        match self {
            Self::Flush { session, upto } => {
                format!("look through session {session} up to entry {upto}")
            }
            Self::Consolidate { .. } => "merge new facts into curated memory".to_owned(),
        }
    }

    pub(crate) fn parse(payload: &Bytes) -> Result<Self, MemoryError> {
        serde_json::from_slice(payload).map_err(|error| MemoryError::Unreadable {
            key: "a job".to_owned(),
            cause: error.to_string(),
        })
    }
}

impl OwnerMemory {
    /// Enqueues a consolidation, delayed until the configured interval has passed.
    pub(crate) async fn enqueue_consolidation(&self) -> Result<(), MemoryError> {
        let merged: Option<Versioned<MergeProgress>> =
            self.documents.get(&self.documents.merged_key()).await?;
        let merged = merged.map(|stored| stored.value).unwrap_or_default();
        let job = MemoryJob::Consolidate {
            scope: self.documents.scope.clone(),
            generation: merged.generation,
        };
        let due_ms = merged.at_ms
            + i64::from(self.cx.definition().config.memory.consolidate_minutes) * 60_000;
        let delay = due_ms.saturating_sub(self.cx.now().as_millisecond()).max(0);
        let dedup = format!("consolidate/{}/{}", self.documents.scope, merged.generation);
        enqueue(
            &self.documents.state,
            &job,
            Some(dedup),
            Duration::from_millis(delay.unsigned_abs()),
        )
        .await
    }
}

pub(crate) async fn enqueue(
    state: &OwnerState,
    job: &MemoryJob,
    dedup: Option<String>,
    delay: Duration,
) -> Result<(), MemoryError> {
    let payload = serde_json::to_vec(job).map_err(|error| MemoryError::Unreadable {
        key: "a job".to_owned(),
        cause: error.to_string(),
    })?;
    let job = stead_store::Job {
        payload: payload.into(),
        dedup,
        delay,
        max_attempts: MAX_ATTEMPTS,
    };
    state.store.enqueue(&state.space, QUEUE, job).await?;
    Ok(())
}
