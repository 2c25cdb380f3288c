//! The work of memory that is due: sessions to look through, and facts to merge. One process at a
//! time works for a user; a lease says which.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes),
//! the journal (reads), the model.

use crate::Memory;
use crate::due::MAX_FAILURES;
use crate::error::MemoryError;
use crate::flush::{FlushGroup, add_to_group};
use crate::owner_memory::OwnerMemory;
use crate::progress::{FlushMark, JobDocuments, Versioned};
use crate::transcript::{piece_tokens, pieces};
use crate::waiting::{Activity, NewEntries, Noted, WaitingMerge, WaitingNotes, WaitingSession};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use stead_core::{Owner, SessionId, TenantId, UserId};
use stead_store::{PageRequest, SessionSummary};

/// The most sessions that are looked through together.
const MAX_TOGETHER: usize = 32;
/// The longest delay before a failed attempt is repeated.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);
/// How many of the newest sessions are checked for runs that nobody noted.
const CHECKED_SESSIONS: usize = 200;
/// How long ago a run may have ended whose note a crash prevented.
const UNNOTED_MS: i64 = 2 * 24 * 60 * 60 * 1000;

/// Work for one user that is due.
#[derive(Debug)]
pub(crate) enum DueWork {
    Flush(Vec<Noted<WaitingSession>>),
    Merge(Noted<WaitingMerge>),
}

/// How due work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkResult {
    Done,
    Failed,
}

impl Memory {
    /// Whether there is work to do for any user of `tenant` now.
    pub async fn is_work_due(&self, tenant: &TenantId) -> Result<bool, MemoryError> {
        Ok(self.extracts_facts() && !self.due_work(tenant).await?.is_empty())
    }

    /// Returns what is due, of each user at most one flush and one merge.
    pub(crate) async fn due_work(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<(UserId, DueWork)>, MemoryError> {
        let notes = self.notes(tenant);
        let now_ms = self.now_ms();
        let rule = self.rule();
        let mut by_user: BTreeMap<UserId, Vec<Noted<WaitingSession>>> = BTreeMap::new();
        for noted in notes.sessions().await? {
            if let Some((user, _)) = noted.note.names() {
                by_user.entry(user).or_default().push(noted);
            }
        }
        let mut due = Vec::new();
        for (user, noted) in by_user {
            let due_ms = rule.due_ms(noted.iter().map(|noted| &noted.note));
            if due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
                let is_ready = |noted: &Noted<WaitingSession>| rule.is_ready(&noted.note, now_ms);
                let ready = noted.into_iter().filter(is_ready).take(MAX_TOGETHER);
                due.push((user, DueWork::Flush(ready.collect())));
            }
        }
        for noted in notes.merges().await? {
            let WaitingMerge {
                user,
                due_ms,
                failures,
                ..
            } = &noted.note;
            if let Ok(user) = UserId::new(user.clone())
                && *due_ms <= now_ms
                && *failures < MAX_FAILURES
            {
                due.push((user, DueWork::Merge(noted)));
            }
        }
        Ok(due)
    }

    /// Does one piece of due work. A failure is noted, and tried again after a delay that begins
    /// with `retry_delay` and doubles.
    pub(crate) async fn do_due_work(
        &self,
        owner: &Owner,
        due: &DueWork,
        retry_delay: Duration,
    ) -> Result<WorkResult, MemoryError> {
        match due {
            DueWork::Flush(noted) => self.flush_noted(owner, noted, retry_delay).await,
            DueWork::Merge(noted) => self.merge_noted(owner, noted, retry_delay).await,
        }
    }

    async fn flush_noted(
        &self,
        owner: &Owner,
        noted: &[Noted<WaitingSession>],
        retry_delay: Duration,
    ) -> Result<WorkResult, MemoryError> {
        let notes = self.notes(&owner.tenant);
        let mut result = WorkResult::Done;
        let mut groups: Vec<FlushGroup> = Vec::new();
        for waiting in noted {
            let Some((_, session)) = waiting.note.names() else {
                continue;
            };
            let upto = waiting.note.upto;
            match add_to_group(&mut groups, &self.cx, owner, (&session, upto)).await {
                Ok(true) => {}
                Ok(false) => notes.drop_session(waiting).await?,
                Err(error) => {
                    result = WorkResult::Failed;
                    self.note_failure(&notes, waiting, retry_delay, &error)
                        .await?;
                }
            }
        }
        for group in groups {
            let flushed = group.flush().await;
            let of_group = |waiting: &&Noted<WaitingSession>| {
                let id = &waiting.note.session;
                group.sessions.iter().any(|one| one.id.as_str() == id)
            };
            for waiting in noted.iter().filter(of_group) {
                match &flushed {
                    Ok(_) => notes.forget(waiting).await?,
                    Err(error) => {
                        result = WorkResult::Failed;
                        self.note_failure(&notes, waiting, retry_delay, error)
                            .await?;
                    }
                }
            }
        }
        Ok(result)
    }

    async fn note_failure(
        &self,
        notes: &WaitingNotes,
        waiting: &Noted<WaitingSession>,
        retry_delay: Duration,
        error: &MemoryError,
    ) -> Result<(), MemoryError> {
        let retry_ms = self.retry_ms(waiting.note.failures, retry_delay);
        notes
            .note_failure(waiting, retry_ms, &error.to_string())
            .await
    }

    async fn merge_noted(
        &self,
        owner: &Owner,
        noted: &Noted<WaitingMerge>,
        retry_delay: Duration,
    ) -> Result<WorkResult, MemoryError> {
        let notes = self.notes(&owner.tenant);
        let memory = OwnerMemory::of_scope(&self.cx, owner, &noted.note.scope)?;
        match memory.consolidate().await {
            Ok(_) => {
                notes.forget_merge(noted).await?;
                Ok(WorkResult::Done)
            }
            Err(error) => {
                let retry_ms = self.retry_ms(noted.note.failures, retry_delay);
                notes
                    .note_failed_merge(noted, retry_ms, &error.to_string())
                    .await?;
                Ok(WorkResult::Failed)
            }
        }
    }

    /// Returns when the next attempt may be made after so many failures before this one.
    fn retry_ms(&self, failures: u32, retry_delay: Duration) -> i64 {
        let wait = retry_delay
            .saturating_mul(1 << failures.min(16))
            .min(MAX_RETRY_DELAY);
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        self.now_ms().saturating_add(wait_ms)
    }

    /// Notes sessions with runs whose end nobody noted, because their process was killed.
    pub(crate) async fn note_killed_runs(&self, tenant: &TenantId) -> Result<(), MemoryError> {
        if !self.extracts_facts() {
            return Ok(());
        }
        let notes = self.notes(tenant);
        let noted = notes.sessions().await?;
        let mut users: Vec<UserId> = vec![UserId::default()];
        users.extend(noted.iter().filter_map(|noted| Some(noted.note.names()?.0)));
        users.sort();
        users.dedup();
        for user in users {
            let owner = Owner {
                tenant: tenant.clone(),
                user,
            };
            let is_noted = |id: &SessionId| {
                let user = owner.user.as_str();
                let mut noted = noted.iter().map(|noted| &noted.note);
                noted.any(|note| note.user == user && note.session == id.as_str())
            };
            let page = PageRequest::first(CHECKED_SESSIONS);
            let listed = self.cx.sessions(&owner).list(page).await?.sessions;
            for summary in listed.iter().filter(|summary| !is_noted(&summary.id)) {
                if self.may_be_unnoted(summary) {
                    self.note_unnoted(&notes, &owner, summary).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether a session may have a run whose end was not noted: nothing happens in it any more, and
    /// its last run is open or ended not long ago.
    fn may_be_unnoted(&self, summary: &SessionSummary) -> bool {
        let idle_minutes = self.cx.definition().config.memory.idle_minutes;
        let age_ms = self.now_ms() - summary.updated_ms;
        summary.damage.is_none()
            && age_ms >= i64::from(idle_minutes) * 60_000
            && (summary.outcome.is_none() || age_ms <= UNNOTED_MS)
    }

    async fn note_unnoted(
        &self,
        notes: &WaitingNotes,
        owner: &Owner,
        summary: &SessionSummary,
    ) -> Result<(), MemoryError> {
        let memory = OwnerMemory::of_session(&self.cx, owner, &summary.id)?;
        let key = JobDocuments::mark_key(&summary.id);
        let mark: Option<Versioned<FlushMark>> = memory.documents.get(&key).await?;
        let from = mark.map_or(0, |stored| stored.value.seq);
        if from >= summary.entries {
            return Ok(());
        }
        // A journal that cannot be read is told by `stead sessions list`.
        let Ok(lines) = self.cx.sessions(owner).read(&summary.id).await else {
            return Ok(());
        };
        let tokens = piece_tokens(&pieces(&lines, from, summary.entries));
        if tokens == 0 {
            return Ok(());
        }
        let new = NewEntries {
            upto: summary.entries,
            tokens,
            at: Timestamp::from_millisecond(summary.updated_ms).unwrap_or_default(),
            activity: Activity::Ongoing,
        };
        notes.note(owner, &summary.id, new).await
    }
}
