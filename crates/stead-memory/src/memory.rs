//! `Memory`: the handle to the long-term memory of an agent.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes),
//! the journal (reads), the model.

use crate::consolidate::ConsolidationReport;
use crate::context::MemoryContext;
use crate::due::FlushRule;
use crate::error::MemoryError;
use crate::flush::{FlushReport, add_to_group};
use crate::owner_memory::{EVERY_SESSION, OwnerMemory};
use crate::waiting::{Activity, NewEntries, WaitingNotes};
use std::sync::Arc;
use stead_core::{Owner, SessionId, TenantId};
use stead_workspace::FeatureSwitch;

/// The long-term memories of all owners of an agent. Clones share the context.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) cx: Arc<dyn MemoryContext>,
}

/// A part of a session that facts are looked for in later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPart {
    /// Its last entry.
    pub upto: u64,
    /// About how many tokens it has.
    pub tokens: u64,
}

/// A session that could not be flushed.
#[derive(Debug)]
pub struct FailedFlush {
    /// The session.
    pub session: SessionId,
    /// The reason.
    pub error: MemoryError,
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
            && self.cx.has_model()
    }

    /// Notes that a run of a session ended: its new part is looked through later.
    pub async fn run_ended(
        &self,
        owner: &Owner,
        session: &SessionId,
        new: NewPart,
    ) -> Result<(), MemoryError> {
        self.note(owner, session, new, Activity::Ongoing).await
    }

    /// Notes that a part of a session is about to be summarised: it is looked through soon.
    pub async fn before_summary(
        &self,
        owner: &Owner,
        session: &SessionId,
        covered: NewPart,
    ) -> Result<(), MemoryError> {
        self.note(owner, session, covered, Activity::Settled).await
    }

    /// Notes that a session ended: it need not be idle before it is looked through.
    pub async fn session_ended(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<(), MemoryError> {
        if !self.extracts_facts() {
            return Ok(());
        }
        self.notes(&owner.tenant).settle(owner, session).await
    }

    async fn note(
        &self,
        owner: &Owner,
        session: &SessionId,
        new: NewPart,
        activity: Activity,
    ) -> Result<(), MemoryError> {
        if !self.extracts_facts() {
            return Ok(());
        }
        let NewPart { upto, tokens } = new;
        let new = NewEntries {
            upto,
            tokens,
            at: self.cx.now(),
            activity,
        };
        self.notes(&owner.tenant).note(owner, session, new).await
    }

    /// Extracts the facts of a session up to entry `upto`.
    pub async fn flush(
        &self,
        owner: &Owner,
        session: &SessionId,
        upto: u64,
    ) -> Result<FlushReport, MemoryError> {
        let (report, failed) = self.flush_all(owner, &[(session.clone(), upto)]).await?;
        match failed.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(report),
        }
    }

    /// Extracts the facts of several sessions of `owner`, each up to an entry, whether it is time or
    /// not. Also returns the sessions whose journals cannot be read.
    pub async fn flush_all(
        &self,
        owner: &Owner,
        sessions: &[(SessionId, u64)],
    ) -> Result<(FlushReport, Vec<FailedFlush>), MemoryError> {
        let mut groups = Vec::new();
        let mut failed = Vec::new();
        for (session, upto) in sessions {
            let added = add_to_group(&mut groups, &self.cx, owner, (session, *upto)).await;
            if let Err(error) = added {
                let session = session.clone();
                failed.push(FailedFlush { session, error });
            }
        }
        let waiting = self.notes(&owner.tenant).sessions().await?;
        let mut report = FlushReport::default();
        for group in groups {
            report += group.flush().await?;
            for session in &group.sessions {
                let is_it =
                    |user: &str, id: &str| user == owner.user.as_str() && id == session.id.as_str();
                let noted = waiting
                    .iter()
                    .find(|noted| is_it(&noted.note.user, &noted.note.session))
                    .filter(|noted| noted.note.upto <= session.upto());
                if let Some(noted) = noted {
                    self.notes(&owner.tenant).forget(noted).await?;
                }
            }
        }
        Ok((report, failed))
    }

    /// Merges all new facts of `owner` into curated memory, and archives the files of old days.
    pub async fn consolidate(&self, owner: &Owner) -> Result<ConsolidationReport, MemoryError> {
        let memory = OwnerMemory::of_scope(&self.cx, owner, EVERY_SESSION)?;
        memory.consolidate().await
    }

    pub(crate) fn notes(&self, tenant: &TenantId) -> WaitingNotes {
        WaitingNotes::of_tenant(&*self.cx, tenant)
    }

    pub(crate) fn rule(&self) -> FlushRule {
        let definition = self.cx.definition();
        FlushRule::new(definition.memory_flush_after(), &definition.config.memory)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.cx.now().as_millisecond()
    }
}
