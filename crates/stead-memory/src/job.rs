//! When facts are merged, and the jobs that earlier versions left in the queue of a tenant.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::context::MemoryContext;
use crate::error::MemoryError;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, Versioned};
use crate::waiting::WaitingNotes;
use stead_core::TenantId;
use stead_place::OwnerState;
use stead_store::{TenantJobKind, TenantJobs};

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
    /// Notes that there are facts to merge, once the configured interval has passed.
    pub(crate) async fn enqueue_consolidation(&self) -> Result<(), MemoryError> {
        let merged: Option<Versioned<MergeProgress>> =
            self.documents.get(&self.documents.merged_key()).await?;
        let merged_ms = merged.map_or(0, |stored| stored.value.at_ms);
        let minutes = self.cx.definition().config.memory.consolidate_minutes;
        let due_ms = merged_ms + i64::from(minutes) * 60_000;
        WaitingNotes::of_tenant(&*self.cx, &self.owner.tenant)
            .note_merge(&self.owner, &self.documents.scope, due_ms)
            .await
    }
}

/// Returns the jobs of a tenant.
pub(crate) fn tenant_jobs(cx: &dyn MemoryContext, tenant: &TenantId) -> TenantJobs {
    let OwnerState { store, space } = cx.tenant_state(tenant);
    TenantJobs::new(store, space)
}
