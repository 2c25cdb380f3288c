//! Changes to the past of a session: rewind, fork, pin, and undo of file changes. Nothing in the
//! journal is erased.
//!
//! Effects: the clock, workspace files (writes), the store (writes), the journal (writes).

use super::{IfMissing, Session, SessionWriter};
use crate::offload::copy_entries;
use crate::{AgentError, UndoPlan};
use stead_core::{
    Entry, Fork, NewSession, Pin, Pinned, Rewind, RunId, RunOutcome, SessionChange, SessionId,
    SetEntry, TurnMessage,
};
use stead_store::LockWait;

/// A point of the conversation that can be returned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// The turn, counted from 1.
    pub turn: usize,
    /// The text of the input that began the turn.
    pub text: String,
    /// The last entry before the turn.
    pub before: u64,
}

impl Session {
    /// The points that can be returned to, oldest first.
    pub fn rewind_points(&self) -> Vec<RewindPoint> {
        let inputs = self
            .state()
            .turns
            .iter()
            .filter(|turn| turn.starts_run.is_some());
        let point = |(i, turn): (usize, &TurnMessage)| RewindPoint {
            turn: i + 1,
            text: turn.message.text(),
            before: turn.seq - 1,
        };
        inputs.enumerate().map(point).collect()
    }

    /// The point before turn `turn`, counted from 1.
    pub fn rewind_point(&self, turn: usize) -> Result<RewindPoint, AgentError> {
        let points = self.rewind_points();
        let turns = points.len();
        let wanted = turn.checked_sub(1).and_then(|i| points.into_iter().nth(i));
        wanted.ok_or_else(|| AgentError::NoSuchTurn {
            session: self.id.clone(),
            turn,
            turns,
        })
    }

    /// Returns to the point before turn `turn`, counted from 1. The journal keeps what came after.
    pub async fn rewind(&mut self, turn: usize, wait: LockWait) -> Result<RewindPoint, AgentError> {
        let mut writer = SessionWriter::open(self, wait, IfMissing::Fail).await?;
        let rewound = rewind_to(&mut writer, turn).await;
        writer.close().await;
        rewound
    }

    /// Copies this session, up to the point before turn `turn` or all of it, into the new session
    /// `to`.
    pub async fn fork(&mut self, to: SessionId, turn: Option<usize>) -> Result<Self, AgentError> {
        self.load().await?;
        let upto = match turn {
            Some(turn) => self.rewind_point(turn)?.before,
            None => self.state().seq,
        };
        let lines = self.journals.read(&self.id).await?;
        let origin = Fork {
            session: self.id.clone(),
            seq: upto,
        };
        let mut fork = self.agent().session_of(self.owner.clone(), to);
        let new = NewSession::forked(origin, self.state().recorded_model());
        let opened = self.journals.create(fork.id(), new).await?;
        let entries = lines
            .into_iter()
            .skip(1)
            .filter(|line| line.seq <= upto)
            .map(|line| line.entry)
            .collect();
        let entries = copy_entries(self, &fork, entries).await?;
        let mut writer = SessionWriter::of_opened(&mut fork, opened);
        let mut copied = writer.record_copies(entries).await;
        if copied.is_ok() {
            copied = close_open_run(&mut writer, "forked while this run was open").await;
        }
        if copied.is_ok() {
            copied = self.seal_mode_of(&mut writer).await;
        }
        writer.close().await;
        copied.map(|()| fork)
    }

    /// Seals the permission mode of a fork anew if the person chose it in this session: a seal
    /// counts in one session.
    async fn seal_mode_of(&self, fork: &mut SessionWriter<'_>) -> Result<(), AgentError> {
        let state = fork.state();
        let Some(mode) = state.mode else {
            return Ok(());
        };
        if !self.seals().mode_counts(mode, state.mode_seal.as_deref()) {
            return Ok(());
        }
        let set = SetEntry {
            change: SessionChange::mode(mode),
            by: "fork".to_owned(),
        };
        fork.record_settings(vec![set]).await.map(drop)
    }

    /// Takes back what a run of this session did to files.
    pub async fn undo(&self, run: &RunId) -> Result<UndoPlan, AgentError> {
        let history = self.agent().undo(&self.owner, &self.id);
        let plan = history.undo_runs(std::slice::from_ref(run)).await?;
        match plan.obstacles.first() {
            None => Ok(plan),
            Some(obstacle) => Err(AgentError::UndoBlocked(obstacle.to_string())),
        }
    }

    /// Pins the input of turn `turn`, counted from 1, or unpins it.
    pub async fn pin(
        &mut self,
        turn: usize,
        pinned: Pinned,
        wait: LockWait,
    ) -> Result<(), AgentError> {
        let mut writer = SessionWriter::open(self, wait, IfMissing::Fail).await?;
        let recorded = match writer.session().rewind_point(turn) {
            Ok(point) => {
                let pin = Pin {
                    seq: point.before + 1,
                    pinned: pinned == Pinned::Yes,
                };
                writer.record(vec![Entry::Pin(pin)]).await.map(drop)
            }
            Err(error) => Err(error),
        };
        writer.close().await;
        recorded
    }
}

/// Records the rewind, after the end of the open run. A turn that does not exist changes nothing.
async fn rewind_to(writer: &mut SessionWriter<'_>, turn: usize) -> Result<RewindPoint, AgentError> {
    let point = writer.session().rewind_point(turn)?;
    close_open_run(writer, "the session was rewound").await?;
    let rewind = Entry::Rewind(Rewind { to: point.before });
    writer.record(vec![rewind]).await?;
    Ok(point)
}

/// Closes the open run of a session as cancelled, if there is one.
async fn close_open_run(writer: &mut SessionWriter<'_>, reason: &str) -> Result<(), AgentError> {
    if writer.state().run.is_none() {
        return Ok(());
    }
    let entries = writer.state().close(RunOutcome::Cancelled, reason);
    writer.record(entries).await.map(drop)
}
