//! What waits: a note for each session with entries that no facts were extracted from yet, and for
//! each memory with facts that were not merged yet.
//!
//! The notes of all users of a tenant are together, so that one worker serves them all. A note only
//! says that a session waits. How far it was looked through is told by its mark, so a note that is
//! lost or left over does no harm.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::context::MemoryContext;
use crate::error::MemoryError;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stead_core::{Owner, SessionId, TenantId, UserId};
use stead_place::OwnerState;
use stead_store::{Document, DocumentChange, Documents, Expected, ListedDocument, StoreError};

/// How often a note that others change at the same time is read again.
const MAX_TRIES: usize = 20;
/// The number of notes that are listed at once.
const PAGE: usize = 500;
/// The prefix of the keys of sessions.
const SESSIONS: &str = "session/";
/// The prefix of the keys of merges.
const MERGES: &str = "merge/";

/// What happened in a session that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Activity {
    /// It may go on.
    Ongoing,
    /// It ended, or is about to be summarised: waiting for it to be idle gains nothing.
    Settled,
}

/// A session with entries that were not looked through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingSession {
    pub(crate) user: String,
    pub(crate) session: String,
    /// The last entry to look through.
    pub(crate) upto: u64,
    /// About how many tokens are new.
    pub(crate) tokens: u64,
    /// When the first of them came, in milliseconds since 1970.
    pub(crate) since_ms: i64,
    /// When something happened last.
    pub(crate) at_ms: i64,
    pub(crate) activity: Activity,
    /// The failed attempts since then.
    #[serde(default)]
    pub(crate) failures: u32,
    /// When the next attempt may be made.
    #[serde(default)]
    pub(crate) retry_ms: i64,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl WaitingSession {
    /// Returns the names as they are checked everywhere else.
    pub(crate) fn names(&self) -> Option<(UserId, SessionId)> {
        let user = UserId::new(self.user.clone()).ok()?;
        Some((user, SessionId::new(&self.session).ok()?))
    }

    fn key(&self) -> String {
        // No id of a session contains a slash.
        format!("{SESSIONS}{}/{}", self.session, self.user)
    }
}

/// New entries of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEntries {
    pub(crate) upto: u64,
    pub(crate) tokens: u64,
    pub(crate) at: Timestamp,
    pub(crate) activity: Activity,
}

/// New facts that wait to be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingMerge {
    pub(crate) user: String,
    /// The memory: that of all sessions, or of one.
    pub(crate) scope: String,
    /// When they are merged.
    pub(crate) due_ms: i64,
    /// The failed attempts.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl WaitingMerge {
    fn key(&self) -> String {
        format!("{MERGES}{}/{}", self.scope, self.user)
    }
}

/// A note as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted<T> {
    pub(crate) note: T,
    listed: ListedDocument,
}

/// The notes of a tenant.
#[derive(Debug, Clone)]
pub(crate) struct WaitingNotes(OwnerState);

impl WaitingNotes {
    pub(crate) fn of_tenant(cx: &dyn MemoryContext, tenant: &TenantId) -> Self {
        let mut state = cx.tenant_state(tenant);
        // A file store lists a whole space.
        state.space = state.space.within("memory-waiting");
        Self(state)
    }

    /// Returns the sessions that wait.
    pub(crate) async fn sessions(&self) -> Result<Vec<Noted<WaitingSession>>, MemoryError> {
        self.list(SESSIONS).await
    }

    /// Returns the merges that wait.
    pub(crate) async fn merges(&self) -> Result<Vec<Noted<WaitingMerge>>, MemoryError> {
        self.list(MERGES).await
    }

    /// Notes new entries of a session.
    pub(crate) async fn note(
        &self,
        owner: &Owner,
        session: &SessionId,
        new: NewEntries,
    ) -> Result<(), MemoryError> {
        let at_ms = new.at.as_millisecond();
        let fresh = WaitingSession {
            user: owner.user.to_string(),
            session: session.to_string(),
            upto: new.upto,
            tokens: new.tokens,
            since_ms: at_ms,
            at_ms,
            activity: new.activity,
            failures: 0,
            retry_ms: 0,
            error: None,
        };
        let key = fresh.key();
        self.change(&key, |known: Option<WaitingSession>| {
            let Some(known) = known else {
                return Some(fresh.clone());
            };
            Some(WaitingSession {
                upto: known.upto.max(new.upto),
                tokens: match new.activity {
                    Activity::Ongoing => known.tokens.saturating_add(new.tokens),
                    // All that is about to be summarised, some of which was noted before.
                    Activity::Settled => known.tokens.max(new.tokens),
                },
                since_ms: known.since_ms,
                activity: match known.activity {
                    Activity::Ongoing => new.activity,
                    Activity::Settled => Activity::Settled,
                },
                ..fresh.clone()
            })
        })
        .await
    }

    /// Notes that nothing more happens in a session for now. Does nothing if it does not wait.
    pub(crate) async fn settle(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<(), MemoryError> {
        let key = format!("{SESSIONS}{session}/{}", owner.user);
        self.change(&key, |known: Option<WaitingSession>| {
            known.map(|known| WaitingSession {
                activity: Activity::Settled,
                ..known
            })
        })
        .await
    }

    /// Notes a failed attempt.
    pub(crate) async fn note_failure(
        &self,
        noted: &Noted<WaitingSession>,
        retry_ms: i64,
        error: &str,
    ) -> Result<(), MemoryError> {
        let failed = &noted.note;
        self.change(&failed.key(), |known: Option<WaitingSession>| {
            // With new entries the attempts count from the start.
            let known = known.filter(|known| known.upto == failed.upto)?;
            Some(WaitingSession {
                failures: failed.failures + 1,
                retry_ms,
                error: Some(error.to_owned()),
                ..known
            })
        })
        .await
    }

    /// Removes the note of a session that was looked through. If there are new entries meanwhile,
    /// they go on waiting.
    pub(crate) async fn forget(&self, done: &Noted<WaitingSession>) -> Result<(), MemoryError> {
        let key = done.note.key();
        if self.remove(&done.listed).await? {
            return Ok(());
        }
        self.change(&key, |known: Option<WaitingSession>| {
            let known = known.filter(|known| known.upto > done.note.upto)?;
            Some(WaitingSession {
                tokens: known.tokens.saturating_sub(done.note.tokens),
                since_ms: known.at_ms,
                ..known
            })
        })
        .await
    }

    /// Removes the note of a session, whatever it says: there is no such session.
    pub(crate) async fn drop_session(
        &self,
        noted: &Noted<WaitingSession>,
    ) -> Result<(), MemoryError> {
        self.remove(&noted.listed).await.map(drop)
    }

    /// Notes when new facts are to be merged. Always changes the note, so that a merge that is
    /// going on does not remove it.
    pub(crate) async fn note_merge(
        &self,
        owner: &Owner,
        scope: &str,
        due_ms: i64,
    ) -> Result<(), MemoryError> {
        let note = WaitingMerge {
            user: owner.user.to_string(),
            scope: scope.to_owned(),
            due_ms,
            failures: 0,
            error: None,
        };
        self.change(&note.key(), |_: Option<WaitingMerge>| Some(note.clone()))
            .await
    }

    /// Notes that a merge failed.
    pub(crate) async fn note_failed_merge(
        &self,
        noted: &Noted<WaitingMerge>,
        retry_ms: i64,
        error: &str,
    ) -> Result<(), MemoryError> {
        let failed = &noted.note;
        self.change(&failed.key(), |known: Option<WaitingMerge>| {
            let known = known.filter(|known| known.due_ms == failed.due_ms)?;
            Some(WaitingMerge {
                due_ms: retry_ms,
                failures: failed.failures + 1,
                error: Some(error.to_owned()),
                ..known
            })
        })
        .await
    }

    /// Removes the note of a merge, unless there are new facts meanwhile.
    pub(crate) async fn forget_merge(
        &self,
        noted: &Noted<WaitingMerge>,
    ) -> Result<(), MemoryError> {
        self.remove(&noted.listed).await.map(drop)
    }

    async fn list<T: DeserializeOwned>(&self, prefix: &str) -> Result<Vec<Noted<T>>, MemoryError> {
        let OwnerState { store, space } = &self.0;
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = Documents::list(&**store, space, prefix, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|listed| listed.key.clone());
            for listed in page {
                found.push(Noted {
                    note: parse(&listed.key, &listed.meta)?,
                    listed,
                });
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Replaces the note at `key` by what `change` makes of it; `None` leaves it as it is.
    async fn change<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        change: impl Fn(Option<T>) -> Option<T>,
    ) -> Result<(), MemoryError> {
        let OwnerState { store, space } = &self.0;
        for _ in 0..MAX_TRIES {
            let stored = Documents::get(&**store, space, key).await?;
            let expect = match &stored {
                Some(document) => Expected::Version(document.version),
                None => Expected::Absent,
            };
            let known = match &stored {
                Some(document) => Some(parse(key, &document.meta)?),
                None => None,
            };
            let Some(changed) = change(known) else {
                return Ok(());
            };
            let meta = serde_json::to_vec(&changed).map_err(|error| unreadable(key, &error))?;
            let put = DocumentChange::Put {
                key: key.to_owned(),
                document: Document::new(meta, Vec::new()),
                expect,
            };
            match store.commit(space, vec![put], None).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict(key.to_owned()).into())
    }

    /// Removes a note unless it was changed. Returns whether it is gone.
    async fn remove(&self, listed: &ListedDocument) -> Result<bool, MemoryError> {
        let OwnerState { store, space } = &self.0;
        let delete = DocumentChange::Delete {
            key: listed.key.clone(),
            expect: Expected::Version(listed.version),
        };
        match store.commit(space, vec![delete], None).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn parse<T: DeserializeOwned>(key: &str, meta: &[u8]) -> Result<T, MemoryError> {
    serde_json::from_slice(meta).map_err(|error| unreadable(key, &error))
}

fn unreadable(key: &str, error: &serde_json::Error) -> MemoryError {
    MemoryError::Unreadable {
        key: key.to_owned(),
        cause: error.to_string(),
    }
}
