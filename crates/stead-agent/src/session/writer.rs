//! A session that is open for writing: the only way its journal and its state change.
//!
//! Effects: the clock, the environment, workspace files (reads), the local disk (reads), the
//! journal (writes).

use super::fold::PermissionChange;
use super::settings::effective_changes;
use crate::{AgentError, EntryListener, Session, TurnSetup};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    Entry, JournalLine, NewSession, SessionChange, SessionOrigin, SessionState, SetEntry,
};
use stead_store::{JournalWriter, LockWait, OpenedSession, StoreError, TornTail};
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

/// Who a recorded choice of a model is by: whoever opened the session.
const MODEL_CHOSEN_BY: &str = "caller";

/// How often a session is created that another process begins to create at the same time.
const CREATE_ATTEMPTS: u32 = 10;

/// What to do about a session that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Fail,
}

/// A session with its journal open. No other process can write the journal meanwhile.
pub(crate) struct SessionWriter<'a> {
    session: &'a mut Session,
    writer: Box<dyn JournalWriter>,
    torn: Option<TornTail>,
    /// The fencing token; without one, the time at which the journal was opened. It is greater than
    /// that of every writer before.
    epoch: u64,
    /// Who is told of entries that were recorded.
    listener: Option<EntryListener>,
}

impl<'a> SessionWriter<'a> {
    /// Opens the journal of `session` and brings the session's state up to date.
    pub(crate) async fn open(
        session: &'a mut Session,
        wait: LockWait,
        missing: IfMissing,
    ) -> Result<Self, AgentError> {
        let journals = session.journals.clone();
        let known = session.fold.position();
        let mut opened = journals.open(&session.id, known, wait).await;
        let mut attempts = 0;
        while matches!(opened, Err(StoreError::NotFound(_)))
            && missing == IfMissing::Create
            && attempts < CREATE_ATTEMPTS
        {
            if attempts > 0 {
                // Two processes that begin one session at once must not go on in step.
                let spread = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() % 7;
                let pause = Duration::from_millis(u64::from(attempts * 3 + spread));
                tokio::time::sleep(pause).await;
            }
            attempts += 1;
            session.agent().check_model()?;
            let spawned = session.spawned.clone();
            let new = NewSession {
                origin: spawned.map(|spawned| SessionOrigin::Spawned(Box::new(spawned))),
                model: session.new_session_model(),
            };
            opened = match journals.create(&session.id, new).await {
                // Another process creates it. If that fails there, it is created here after all.
                Err(StoreError::Exists(_) | StoreError::Locked { .. }) => {
                    journals.open(&session.id, None, wait).await
                }
                other => other,
            };
            if opened.is_ok() {
                session.spawned = None;
            }
        }
        Ok(Self::of_opened(session, opened?))
    }

    /// Returns the writer of a journal that was just opened or created.
    pub(super) fn of_opened(session: &'a mut Session, opened: OpenedSession) -> Self {
        if let Some(state) = opened.state {
            session.replace_state(state);
        }
        session.fold.set_position(opened.writer.position());
        let opened_at = || jiff::Timestamp::now().as_millisecond().unsigned_abs();
        let epoch = opened
            .writer
            .fence()
            .map_or_else(opened_at, |fence| fence.token);
        Self {
            session,
            writer: opened.writer,
            torn: opened.torn,
            epoch,
            listener: None,
        }
    }

    /// Sets who is told of entries that are recorded from now on.
    pub(crate) fn set_entry_listener(&mut self, listener: Option<EntryListener>) {
        self.listener = listener;
    }

    /// Whether the journal has nothing but its first entry.
    pub(crate) fn is_new(&self) -> bool {
        self.writer.position().seq <= 1
    }

    /// Returns a warning if the last line of the journal was not completely written.
    pub(crate) fn torn_warning(&self) -> Option<String> {
        let TornTail { line, bytes, .. } = self.torn.as_ref()?;
        Some(format!(
            "line {line} of the journal was not written whole; {bytes} bytes were cut off"
        ))
    }

    /// Returns the session.
    pub(crate) fn session(&self) -> &Session {
        self.session
    }

    /// Returns the state of the session.
    pub(crate) fn state(&self) -> &SessionState {
        self.session.state()
    }

    /// Returns the session, to change what is not in its journal.
    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.session
    }

    /// Records entries, folds them into the state and tells the listener. Returns them as they were
    /// written, without secrets.
    pub(crate) async fn record(
        &mut self,
        entries: Vec<Entry>,
    ) -> Result<Vec<JournalLine>, AgentError> {
        let state = self.session.fold.state();
        let seals = self.session.seals();
        let sealed = entries.into_iter().map(|entry| seals.sealed(entry, state));
        let lines = self.writer.append(sealed.collect()).await?;
        let change = self.session.fold.apply(&lines)?;
        self.session.fold.set_position(self.writer.position());
        // The permissions of a subagent also change with those of its parent.
        if change == PermissionChange::Possible || self.session.is_delegated() {
            self.session.update_freeze();
            self.session.update_subagent_permissions();
        }
        if let Some(listener) = &self.listener {
            listener(self.epoch, &lines);
        }
        Ok(lines)
    }

    /// Records the entries of another session in this one, which is new. What they allow counts only
    /// as far as they are sealed already.
    pub(super) async fn record_copies(&mut self, entries: Vec<Entry>) -> Result<(), AgentError> {
        let lines = self.writer.append(entries).await?;
        self.session.fold.apply(&lines)?;
        self.session.fold.set_position(self.writer.position());
        self.session.update_freeze();
        Ok(())
    }

    /// Records those settings that change anything.
    pub(crate) async fn record_settings(
        &mut self,
        settings: Vec<SetEntry>,
    ) -> Result<Vec<JournalLine>, AgentError> {
        let changes = effective_changes(self.session, settings);
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.record(changes.into_iter().map(Entry::Set).collect())
            .await
    }

    /// Makes the model that this session runs with part of its journal, if it is not yet: another
    /// one was chosen now, or the journal is from before models were recorded. Returns the model
    /// before, if another was chosen.
    pub(crate) async fn record_model(&mut self) -> Result<Option<String>, AgentError> {
        let Some(change) = self.session.model_change() else {
            return Ok(None);
        };
        let before = self.session.state().recorded_model();
        let replaced = before.filter(|before| before.name != change.name);
        let set = SetEntry {
            change: SessionChange::Model { to: change },
            by: MODEL_CHOSEN_BY.to_owned(),
        };
        self.record(vec![Entry::Set(set)]).await?;
        Ok(replaced.map(|model| model.name))
    }

    /// Switches to the model and the agent that the journal names. Returns whether either was
    /// another one before.
    pub(crate) async fn switch_to_recorded_agent(&mut self) -> Result<bool, AgentError> {
        self.session
            .switch_to_recorded_agent(self.writer.fence())
            .await
    }

    /// Composes the setup of a turn of the agent that acts.
    pub(crate) async fn turn_setup(&self) -> Result<TurnSetup, AgentError> {
        TurnSetup::compose(self.session, self.writer.fence()).await
    }

    /// Returns the files of the session.
    pub(crate) fn files(&self) -> Arc<dyn Vfs> {
        self.session.files(self.writer.fence())
    }

    /// Returns a token that is cancelled when another process takes the session over.
    pub(crate) fn lease_lost(&self) -> CancellationToken {
        self.writer.lease_lost()
    }

    /// Updates what is derived from the journal and releases the session.
    pub(crate) async fn close(self) {
        self.session
            .journals
            .update_derived(self.session.state(), self.writer.position())
            .await;
        self.writer.close().await;
    }
}
