//! The jobs of long-term memory among the jobs of a tenant.
//!
//! Effects: the clock, the store (writes).

use crate::context::MemoryContext;
use crate::error::MemoryError;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, Versioned};
use std::time::Duration;
use stead_core::{Owner, TenantId};
use stead_place::OwnerState;
use stead_store::{TenantJob, TenantJobKind, TenantJobs};

/// Describes a job to people.
pub(crate) fn job_description(job: &TenantJobKind) -> String {
    match job {
        TenantJobKind::ExtractFacts { session, upto } => {
            format!("look through session {session} up to entry {upto}")
        }
        TenantJobKind::MergeFacts { .. } => "merge new facts into curated memory".to_owned(),
        TenantJobKind::Wake { session } => format!("wake session {session}"),
        TenantJobKind::Schedule { schedule, .. } => format!("run the schedule {schedule}"),
    }
}

impl OwnerMemory {
    /// Enqueues a consolidation, delayed until the configured interval has passed.
    pub(crate) async fn enqueue_consolidation(&self) -> Result<(), MemoryError> {
        let merged: Option<Versioned<MergeProgress>> =
            self.documents.get(&self.documents.merged_key()).await?;
        let merged = merged.map(|stored| stored.value).unwrap_or_default();
        let scope = &self.documents.scope;
        let due_ms = merged.at_ms
            + i64::from(self.cx.definition().config.memory.consolidate_minutes) * 60_000;
        let delay = due_ms.saturating_sub(self.cx.now().as_millisecond()).max(0);
        let user = &self.owner.user;
        let dedup = format!("merge/{user}/{scope}/{}", merged.generation);
        let job = TenantJobKind::MergeFacts {
            scope: scope.clone(),
            generation: merged.generation,
        };
        let delay = Duration::from_millis(delay.unsigned_abs());
        enqueue(&*self.cx, &self.owner, job, delay, Some(dedup)).await
    }
}

/// Adds a job of `owner` to the jobs of the tenant.
pub(crate) async fn enqueue(
    cx: &dyn MemoryContext,
    owner: &Owner,
    kind: TenantJobKind,
    delay: Duration,
    dedup: Option<String>,
) -> Result<(), MemoryError> {
    let user = owner.user.clone();
    let job = TenantJob { user, kind };
    tenant_jobs(cx, &owner.tenant)
        .enqueue(&job, delay, dedup)
        .await?;
    Ok(())
}

/// Returns the jobs of a tenant.
pub(crate) fn tenant_jobs(cx: &dyn MemoryContext, tenant: &TenantId) -> TenantJobs {
    let OwnerState { store, space } = cx.tenant_state(tenant);
    TenantJobs::new(store, space)
}
