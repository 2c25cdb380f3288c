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
    /// The rows of the inbox that are in the journal, with their entries.
    recorded: Vec<(InputId, u64)>,
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

    pub(crate) fn take_recorded(&self) -> Vec<(InputId, u64)> {
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
        let before = state.recorded.len();
        for line in lines {
            let inputs: &[InputId] = match &line.entry {
                Entry::User(input) => {
                    if let Some(receipt) = state.receipt.take() {
                        let input_id = input.inputs.first().cloned();
                        // The client may not wait any more.
                        let _ = receipt.send(Ok(Receipt {
                            input_id: input_id.unwrap_or_else(InputId::fresh),
                            seq: Some(line.seq),
                        }));
                    }
                    &input.inputs
                }
                Entry::Steer(steer) => &steer.inputs,
                Entry::Session(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Result(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Set(_)
                | Entry::Pin(_)
                | Entry::Compaction(_)
                | Entry::Hook(_)
                | Entry::Rewind(_)
                | Entry::End(_) => &[],
            };
            let rows = inputs.iter().map(|id| (id.clone(), line.seq));
            state.recorded.extend(rows);
        }
        if state.recorded.len() > before {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
