//! What is to be done later: looking through a session, merging what was found.

use super::error::MemoryError;
use super::owner_memory::OwnerMemory;
use super::progress::{MergeProgress, Versioned};
use crate::Agent;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use stead_core::{Owner, SessionId};
use stead_place::OwnerState;
use stead_workspace::FeatureSwitch;

/// The queue of an owner.
pub(super) const QUEUE: &str = "memory";
/// How often a job is tried before it is given up.
const MAX_ATTEMPTS: u32 = 8;

/// Something to be done later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum MemoryJob {
    /// Look through a session up to an entry.
    Flush {
        /// The session.
        session: SessionId,
        /// The entry.
        upto: u64,
    },
    /// Merge new facts into curated memory.
    Consolidate {
        /// Whose memory: that of all sessions, or of one.
        scope: String,
        /// How often that was done before; a job that was overtaken is done.
        generation: u64,
    },
}

impl MemoryJob {
    /// What it is, for people.
    pub fn description(&self) -> String {
        match self {
            Self::Flush { session, upto } => {
                format!("look through session {session} up to entry {upto}")
            }
            Self::Consolidate { .. } => "merge new facts into curated memory".to_owned(),
        }
    }

    pub(super) fn parse(payload: &Bytes) -> Result<Self, MemoryError> {
        serde_json::from_slice(payload).map_err(|error| MemoryError::Unreadable {
            key: "a job".to_owned(),
            cause: error.to_string(),
        })
    }
}

impl Agent {
    /// Whether facts are extracted at all: the layout has a memory, nothing switches it off,
    /// sessions are kept, and there is a model to ask.
    pub fn extracts_facts(&self) -> bool {
        let definition = &self.workspace().definition;
        let kept = !definition
            .config
            .disable
            .contains(FeatureSwitch::SessionPersistence);
        definition.memory_flush_enabled() && kept && self.memory_model().is_some()
    }

    /// Sees to it that a session is looked through up to entry `seq`, by whichever process works
    /// next. Of two jobs for the same entry the second finds the mark there and does nothing.
    pub async fn enqueue_flush(
        &self,
        owner: &Owner,
        session: &SessionId,
        seq: u64,
    ) -> Result<(), MemoryError> {
        if !self.extracts_facts() {
            return Ok(());
        }
        let job = MemoryJob::Flush {
            session: session.clone(),
            upto: seq,
        };
        let state = self.memory_state(owner);
        // A key of session and entry would keep out a new session under an old name.
        enqueue(&state, &job, None, Duration::ZERO).await
    }

    /// Sees to it that new facts are merged, when it is time.
    pub(super) async fn enqueue_consolidation(
        &self,
        home: &OwnerMemory,
    ) -> Result<(), MemoryError> {
        let merged: Option<Versioned<MergeProgress>> = home.get(&home.merged_key()).await?;
        let merged = merged.map(|kept| kept.value).unwrap_or_default();
        let job = MemoryJob::Consolidate {
            scope: home.scope.clone(),
            generation: merged.generation,
        };
        let due_ms =
            merged.at_ms + i64::from(self.workspace().config().memory.consolidate_minutes) * 60_000;
        let delay = due_ms
            .saturating_sub(Timestamp::now().as_millisecond())
            .max(0);
        let dedup = format!("consolidate/{}/{}", home.scope, merged.generation);
        enqueue(
            &home.state,
            &job,
            Some(dedup),
            Duration::from_millis(delay.unsigned_abs()),
        )
        .await
    }
}

async fn enqueue(
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
