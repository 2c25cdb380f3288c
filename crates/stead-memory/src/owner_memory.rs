//! The memory of one owner: files that people read, and documents with the progress of jobs.
//!
//! Effects: none.

use crate::context::MemoryContext;
use crate::error::MemoryError;
use crate::fact_files::FactFiles;
use crate::progress::JobDocuments;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_place::{IsolationScope, OwnerState};

/// The scope of a memory that all sessions share.
pub(crate) const EVERY_SESSION: &str = "all";

/// A memory of one owner: its files, its documents, and the context it works in.
#[derive(Debug, Clone)]
pub(crate) struct OwnerMemory {
    pub(crate) cx: Arc<dyn MemoryContext>,
    pub(crate) files: FactFiles,
    pub(crate) documents: JobDocuments,
    pub(crate) owner: Owner,
    /// The session that facts are extracted from.
    pub(crate) session: SessionId,
}

impl OwnerMemory {
    /// The memory of `owner` to which `session` adds facts.
    pub(crate) fn of_session(
        cx: &Arc<dyn MemoryContext>,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<Self, MemoryError> {
        let definition = cx.definition();
        let scope = match definition.config.filesystem.scope {
            IsolationScope::Session => session.to_string(),
            IsolationScope::User | IsolationScope::Agent | IsolationScope::Global => {
                EVERY_SESSION.to_owned()
            }
        };
        Ok(Self {
            cx: cx.clone(),
            files: FactFiles::new(definition, cx.files(owner, session))?,
            documents: JobDocuments {
                state: memory_state(&**cx, owner),
                scope,
            },
            owner: owner.clone(),
            session: session.clone(),
        })
    }

    /// The memory of `owner` with the name of a scope.
    pub(crate) fn of_scope(
        cx: &Arc<dyn MemoryContext>,
        owner: &Owner,
        scope: &str,
    ) -> Result<Self, MemoryError> {
        let session = SessionId::new(scope)
            .ok()
            .filter(|_| scope != EVERY_SESSION);
        Self::of_session(cx, owner, &session.unwrap_or_else(SessionId::sessionless))
    }
}

/// The documents of all memories of `owner`.
pub(crate) fn memory_state(cx: &dyn MemoryContext, owner: &Owner) -> OwnerState {
    let mut state = cx.state(owner);
    state.space = state.space.within("memory");
    state
}
