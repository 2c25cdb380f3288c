//! What a run has recorded that its actor must know.

use crate::feed::Feed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{ClientError, Entry, InputId, JournalLine, Receipt};
use tokio::sync::{Notify, oneshot};

/// What a run has recorded that its actor must know.
#[derive(Debug, Default)]
pub(crate) struct RunProgress {
    state: Mutex<ProgressState>,
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct ProgressState {
    receipt: Option<oneshot::Sender<Result<Receipt, ClientError>>>,
    /// Whether this process holds the session, and the run is open.
    has_begun: bool,
    recorded: RecordedParts,
}

/// What a run has recorded since the actor looked last.
#[derive(Debug, Default)]
pub(crate) struct RecordedParts {
    /// The rows of the inbox, with their entries.
    pub(crate) rows: Vec<(InputId, u64)>,
    /// The calls that were decided, with their entries.
    pub(crate) decisions: Vec<(String, u64)>,
}

impl RunProgress {
    pub(crate) fn set_receipt(
        &self,
        receipt: Option<oneshot::Sender<Result<Receipt, ClientError>>>,
    ) {
        self.lock().receipt = receipt;
    }

    pub(crate) fn take_receipt(&self) -> Option<oneshot::Sender<Result<Receipt, ClientError>>> {
        self.lock().receipt.take()
    }

    /// Whether this process holds the session, and the run is open.
    pub(crate) fn has_begun(&self) -> bool {
        self.lock().has_begun
    }

    pub(crate) fn take_recorded(&self) -> RecordedParts {
        std::mem::take(&mut self.lock().recorded)
    }

    /// Returns the listener for the entries of the run.
    pub(crate) fn entry_listener(self: &Arc<Self>, feed: &Arc<Feed>) -> stead_agent::EntryListener {
        let progress = self.clone();
        let feed = feed.entry_listener();
        Arc::new(move |epoch, lines: &[JournalLine]| {
            feed(epoch, lines);
            progress.on_entries(lines);
        })
    }

    fn on_entries(&self, lines: &[JournalLine]) {
        let mut state = self.lock();
        if !state.has_begun {
            state.has_begun = true;
            state.send_receipt(lines);
            self.changed.notify_one();
        }
        let RecordedParts { rows, decisions } = &mut state.recorded;
        let before = rows.len() + decisions.len();
        for line in lines {
            let inputs: &[InputId] = match &line.entry {
                Entry::User(input) => &input.inputs,
                Entry::Steer(steer) => &steer.inputs,
                Entry::Decision(decision) => {
                    decisions.push((decision.id.clone(), line.seq));
                    &[]
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
                | Entry::End(_) => &[],
            };
            rows.extend(inputs.iter().map(|id| (id.clone(), line.seq)));
        }
        if rows.len() + decisions.len() > before {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressState {
    /// Acknowledges the command that began the run; `lines` are the first entries of the run. One
    /// that is continued may have none.
    fn send_receipt(&mut self, lines: &[JournalLine]) {
        let Some(receipt) = self.receipt.take() else {
            return;
        };
        let opened = lines.iter().find_map(|line| match &line.entry {
            Entry::User(input) => Some((line.seq, input.inputs.first().cloned())),
            Entry::Session(_)
            | Entry::Steer(_)
            | Entry::Decision(_)
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
            | Entry::End(_) => None,
        });
        let (seq, input_id) = opened.map_or((None, None), |(seq, id)| (Some(seq), id));
        // The client may not wait any more.
        let _ = receipt.send(Ok(Receipt {
            input_id: input_id.unwrap_or_else(InputId::fresh),
            seq,
        }));
    }
}
