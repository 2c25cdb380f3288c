//! `Memory`: the handle to the long-term memory of an agent.
//!
//! Effects: workspace files (writes), the store (writes), the journal (reads), the model.

use crate::consolidate::ConsolidationReport;
use crate::context::MemoryContext;
use crate::error::MemoryError;
use crate::flush::FlushReport;
use crate::job::enqueue;
use crate::owner_memory::{EVERY_SESSION, OwnerMemory};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, SessionId};
use stead_store::TenantJobKind;
use stead_workspace::FeatureSwitch;

/// The long-term memories of all owners of an agent. Clones share the context.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) cx: Arc<dyn MemoryContext>,
}

impl Memory {
    /// Creates a handle over a context.
    pub fn new(cx: Arc<dyn MemoryContext>) -> Self {
        Self { cx }
    }

    /// Whether facts are extracted from sessions: the layout has a memory, it is not switched off,
    /// sessions are kept, and there is a model to ask.
    pub fn extracts_facts(&self) -> bool {
        let definition = self.cx.definition();
        let disabled = &definition.config.disable;
        definition.memory_flush_enabled()
            && !disabled.contains(FeatureSwitch::SessionPersistence)
            && self.cx.model().is_some()
    }

    /// Enqueues the extraction of facts from a session up to entry `seq`. Of two jobs for the same
    /// entry, the second one finds nothing to do.
    pub async fn enqueue_flush(
        &self,
        owner: &Owner,
        session: &SessionId,
        seq: u64,
    ) -> Result<(), MemoryError> {
        if !self.extracts_facts() {
            return Ok(());
        }
        let job = TenantJobKind::ExtractFacts {
            session: session.clone(),
            upto: seq,
        };
        // No key: one made of session and entry would block a new session with an old name.
        enqueue(&*self.cx, owner, job, Duration::ZERO, None).await
    }

    /// Extracts the facts of a session up to entry `upto`.
    pub async fn flush(
        &self,
        owner: &Owner,
        session: &SessionId,
        upto: u64,
    ) -> Result<FlushReport, MemoryError> {
        let memory = OwnerMemory::of_session(&self.cx, owner, session)?;
        memory.flush(upto).await
    }

    /// Merges all new facts of `owner` into curated memory, and archives the files of old days.
    pub async fn consolidate(&self, owner: &Owner) -> Result<ConsolidationReport, MemoryError> {
        let memory = OwnerMemory::of_scope(&self.cx, owner, EVERY_SESSION)?;
        memory.consolidate().await
    }
}
