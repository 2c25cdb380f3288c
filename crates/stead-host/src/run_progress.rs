//! The progress of a run: what it has recorded that the actor of its session must know.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::feed::Feed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{
    ClientError, Entry, Event, EventKind, InputId, JournalLine, Receipt, RunId, SessionId,
};
use tokio::sync::{Notify, oneshot};

/// What a run has recorded that its actor must know.
#[derive(Debug)]
pub(crate) struct RunProgress {
    /// The session of the run.
    session: SessionId,
    /// The subscribers of the session, who are told everything.
    feed: Arc<Feed>,
    state: Mutex<ProgressState>,
    pub(crate) changed: Notify,
}

/// Where the acknowledgement of a command goes.
pub(crate) type ReceiptSender = oneshot::Sender<Result<Receipt, ClientError>>;

#[derive(Debug, Default)]
struct ProgressState {
    receipt: Option<ReceiptSender>,
    /// The entry of the input, and the row that it is made of.
    input: Option<(u64, Option<InputId>)>,
    /// The run, once this process holds the session and the run is open.
    run: Option<RunId>,
    /// Whether listeners were told that the run has ended.
    has_ended: bool,
    recorded: RecordedParts,
}

/// What a run has recorded since the actor looked last.
#[derive(Debug, Default)]
pub(crate) struct RecordedParts {
    /// The rows of the inbox, with their entries.
    pub(crate) rows: Vec<(InputId, u64)>,
    /// The calls that were decided, with their entries.
    pub(crate) decisions: Vec<DecidedCall>,
}

/// A call of the run or of a subagent that was decided.
#[derive(Debug)]
pub(crate) struct DecidedCall {
    pub(crate) session: SessionId,
    pub(crate) id: String,
    pub(crate) seq: u64,
}

impl RunProgress {
    pub(crate) fn new(
        session: SessionId,
        feed: Arc<Feed>,
        receipt: Option<ReceiptSender>,
    ) -> Arc<Self> {
        let state = ProgressState {
            receipt,
            ..ProgressState::default()
        };
        Arc::new(Self {
            session,
            feed,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    pub(crate) fn take_receipt(&self) -> Option<ReceiptSender> {
        self.lock().receipt.take()
    }

    /// The run, once this process holds the session and the run is open.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.lock().run.clone()
    }

    /// The run, if it has begun and nobody was told that it has ended.
    pub(crate) fn unreported_run(&self) -> Option<RunId> {
        let state = self.lock();
        state.run.clone().filter(|_| !state.has_ended)
    }

    /// Whether this process holds the session, and the run is open.
    pub(crate) fn has_begun(&self) -> bool {
        self.lock().run.is_some()
    }

    pub(crate) fn take_recorded(&self) -> RecordedParts {
        std::mem::take(&mut self.lock().recorded)
    }

    /// Tells subscribers of entries that the run recorded, and notes what the actor must know.
    pub(crate) fn on_entries(&self, epoch: u64, lines: &[JournalLine]) {
        self.feed.on_entries(epoch, lines);
        let mut state = self.lock();
        let before = state.recorded.rows.len();
        for line in lines {
            let inputs = match &line.entry {
                Entry::User(input) => {
                    let row = input.inbox_rows.first().cloned();
                    state.input.get_or_insert((line.seq, row));
                    &input.inbox_rows
                }
                Entry::Steer(steer) => &steer.inbox_rows,
                Entry::Decision(decision) => {
                    let decided = DecidedCall {
                        session: self.session.clone(),
                        id: decision.id.clone(),
                        seq: line.seq,
                    };
                    state.recorded.decisions.push(decided);
                    self.changed.notify_one();
                    continue;
                }
                Entry::Session(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Result(_)
                | Entry::Ask(_)
                | Entry::Notice(_)
                | Entry::Set(_)
                | Entry::Pin(_)
                | Entry::Compaction(_)
                | Entry::Hook(_)
                | Entry::Sent(_)
                | Entry::Rewind(_)
                | Entry::End(_) => continue,
            };
            let rows = inputs.iter().map(|id| (id.clone(), line.seq));
            state.recorded.rows.extend(rows);
        }
        if state.recorded.rows.len() > before {
            self.changed.notify_one();
        }
    }

    /// Notes what the actor must know of an event of the run, and tells subscribers.
    pub(crate) fn on_event(&self, event: &Event) {
        let is_own = event.child.is_none() && event.source.is_empty();
        match &event.kind {
            EventKind::RunStarted { .. } if is_own => {
                let mut state = self.lock();
                state.run = Some(event.run.clone());
                state.send_receipt();
                self.changed.notify_one();
            }
            EventKind::RunEnded { .. } if is_own => self.lock().has_ended = true,
            // Decisions of subagents are in their own journals.
            EventKind::Decision { id, .. } => {
                if let Some(child) = &event.child {
                    let decided = DecidedCall {
                        session: child.session.clone(),
                        id: id.clone(),
                        seq: child.entry,
                    };
                    self.lock().recorded.decisions.push(decided);
                    self.changed.notify_one();
                }
            }
            _ => {}
        }
        self.feed.on_event(event);
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressState {
    /// Acknowledges the command that began the run. What the run was given is in the journal now.
    fn send_receipt(&mut self) {
        let Some(receipt) = self.receipt.take() else {
            return;
        };
        let (seq, row) = match self.input.take() {
            Some((seq, row)) => (Some(seq), row),
            // A run that is continued may write no entry first.
            None => (None, None),
        };
        // The client may not wait any more.
        let _ = receipt.send(Ok(Receipt {
            seq,
            run: self.run.clone(),
            ..Receipt::waiting(row.unwrap_or_else(InputId::fresh))
        }));
    }
}
