//! The journal of a run: what happens is recorded here, and listeners are told.
//!
//! Effects: the clock, the environment, workspace files (reads), the local disk (reads), the
//! journal (writes).

use super::{Listener, RunSignals};
use crate::session::SessionWriter;
use crate::{Agent, AgentError, Session, TurnSetup};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Entry, Event, EventKind, JournalLine, NoticeLevel, RunId, SessionState};
use tokio_util::sync::CancellationToken;

/// The most warnings that wait until hooks are told of them; more are left out.
const MAX_WARNINGS: usize = 32;

/// The session of a run with its journal open, and the listener of the run.
pub(crate) struct RunJournal<'a> {
    writer: SessionWriter<'a>,
    run: RunId,
    listener: Listener,
    event_count: u64,
    /// Warnings that hooks were not told of yet.
    warnings: Vec<String>,
}

impl<'a> RunJournal<'a> {
    pub(crate) fn new(writer: SessionWriter<'a>, run: RunId, listener: Listener) -> Self {
        Self {
            writer,
            run,
            listener,
            event_count: 0,
            warnings: Vec::new(),
        }
    }

    /// The run.
    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// The session.
    pub(crate) fn session(&self) -> &Session {
        self.writer.session()
    }

    /// The session, to change what is not in its journal.
    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.writer.session_mut()
    }

    /// The state of the session.
    pub(crate) fn state(&self) -> &SessionState {
        self.writer.state()
    }

    /// The agent that acts.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        self.writer.session().agent()
    }

    /// The listener of the run.
    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Records entries and folds them into the state. Returns them as they were written, without
    /// secrets.
    pub(crate) async fn record(
        &mut self,
        entries: Vec<Entry>,
    ) -> Result<Vec<JournalLine>, AgentError> {
        self.writer.record(entries).await
    }

    /// Switches to the agent that the journal names. Returns the setup of its turn if another agent
    /// acted before.
    pub(crate) async fn switch_to_recorded_agent(
        &mut self,
    ) -> Result<Option<TurnSetup>, AgentError> {
        match self.writer.switch_to_recorded_agent().await? {
            true => self.writer.turn_setup().await.map(Some),
            false => Ok(None),
        }
    }

    /// Sends an event to the listener, without secrets.
    pub(crate) fn emit(&mut self, kind: EventKind) {
        let kind = kind.redacted(self.session().redactor());
        self.event_count += 1;
        let event = Event {
            seq: self.event_count,
            entry: self.state().seq,
            run: self.run.clone(),
            child: None,
            source: Vec::new(),
            kind,
        };
        (self.listener)(&event);
    }

    /// Sends a warning to the listener. Hooks are told of it later.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(text.clone());
        }
        self.emit(EventKind::Notice {
            level: NoticeLevel::Warning,
            text,
        });
    }

    /// Sends an event for each change of settings in `lines`.
    pub(crate) fn emit_setting_changes(&mut self, lines: &[JournalLine]) {
        for line in lines {
            let change = match &line.entry {
                Entry::Result(result) => result.change.as_ref(),
                Entry::Set(set) => Some(&set.change),
                Entry::Session(_)
                | Entry::User(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Steer(_)
                | Entry::Hook(_)
                | Entry::Pin(_)
                | Entry::Compaction(_)
                | Entry::Sent(_)
                | Entry::Rewind(_)
                | Entry::End(_) => None,
            };
            if let Some(event) = change.and_then(EventKind::from_change) {
                self.emit(event);
            }
        }
    }

    /// Takes the warnings that hooks were not told of yet.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns the signals of work on this session that `cancel` ends.
    pub(crate) fn signals(&self, cancel: CancellationToken) -> RunSignals {
        let limit = Duration::from_secs(self.agent().policy().run_timeout_seconds);
        RunSignals::new(cancel, limit, self.writer.lease_lost())
    }

    /// Updates what is derived from the journal and releases the session.
    pub(crate) async fn close(self) {
        self.writer.close().await;
    }
}
