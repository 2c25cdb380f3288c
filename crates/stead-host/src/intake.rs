//! The durable inbox of a session: putting commands in, taking them out, and settling them.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::error;
use crate::link::{LinkMessage, SessionLink};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stead_agent::SessionSeals;
use stead_core::{ClientError, Command, InputId, InputStatus};
use stead_store::{InboxError, InputOutcome, Inserted};

/// The number of rows taken at once.
const ROWS: usize = 1000;

/// The rows of the inbox that this process has taken and not settled.
#[derive(Debug)]
pub(crate) struct Intake {
    link: Arc<SessionLink>,
    taken: BTreeSet<InputId>,
    /// Outcomes that the store did not take yet.
    unsettled: BTreeMap<InputId, InputOutcome>,
}

/// A command of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TakenRow {
    pub(crate) id: InputId,
    pub(crate) command: Command,
}

impl Intake {
    pub(crate) fn new(link: Arc<SessionLink>) -> Self {
        Self {
            link,
            taken: BTreeSet::new(),
            unsettled: BTreeMap::new(),
        }
    }

    /// Whether the store did not take some outcomes yet.
    pub(crate) fn has_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Takes the rows that wait and were not taken before. A row that cannot be read is refused.
    pub(crate) async fn take(&mut self) -> Result<Vec<TakenRow>, InboxError> {
        self.settle_again().await;
        let mut rows = Vec::new();
        let waiting = self.link.inbox.waiting(ROWS).await?;
        for row in waiting {
            if self.taken.contains(&row.id) || self.unsettled.contains_key(&row.id) {
                continue;
            }
            match read_row(&self.link.seals, &row.body) {
                Ok(command) => {
                    self.taken.insert(row.id.clone());
                    rows.push(TakenRow {
                        id: row.id,
                        command,
                    });
                }
                Err(reason) => {
                    tracing::warn!(session = %self.link.session, row = %row.id, %reason, "a row of the inbox is refused");
                    self.settle(&[row.id], InputOutcome::Refused { reason })
                        .await;
                }
            }
        }
        Ok(rows)
    }

    /// Settles rows. What the store does not take now is tried again when rows are taken. If this
    /// process ends before, nothing is lost: the journal says which rows are recorded.
    pub(crate) async fn settle(&mut self, ids: &[InputId], outcome: InputOutcome) {
        let outcomes = ids.iter().map(|id| (id.clone(), outcome.clone()));
        self.settle_each(outcomes).await;
    }

    /// Settles rows that have different outcomes, together.
    pub(crate) async fn settle_each(
        &mut self,
        outcomes: impl IntoIterator<Item = (InputId, InputOutcome)>,
    ) {
        for (id, outcome) in outcomes {
            self.taken.remove(&id);
            self.unsettled.insert(id, outcome);
        }
        self.settle_again().await;
    }

    /// Settles what the store did not take before.
    async fn settle_again(&mut self) {
        if self.unsettled.is_empty() {
            return;
        }
        let settled: Vec<(InputId, InputOutcome)> = self.unsettled.clone().into_iter().collect();
        match self.link.inbox.settle(&settled, None).await {
            Ok(()) => self.unsettled.clear(),
            Err(error) => {
                tracing::warn!(session = %self.link.session, %error, "inbox rows are not settled yet");
            }
        }
    }

    /// Returns rows to those that wait, so that they are taken again, here or by another process.
    pub(crate) fn give_back(&mut self, ids: &[InputId]) {
        for id in ids {
            self.taken.remove(id);
        }
    }
}

/// Puts a command into the inbox of a session and tells its holder.
pub(crate) async fn insert(
    link: &SessionLink,
    command: &Command,
    key: Option<&str>,
) -> Result<(InputId, InputStatus), ClientError> {
    let body =
        write_row(&link.seals, command).map_err(|error| ClientError::failed(error.to_string()))?;
    let inserted = link.inbox.insert(key, Bytes::from(body)).await;
    let inserted = inserted.map_err(|error| error::from_inbox(&link.session, error))?;
    Ok(match inserted {
        Inserted::New(id) => {
            link.publish(&LinkMessage::Inbox);
            (id, InputStatus::Waiting)
        }
        Inserted::Existing { id, status } => (id, status),
    })
}

/// A command as it lies in an inbox.
#[derive(Serialize, Deserialize)]
struct Row<C> {
    #[serde(flatten)]
    command: C,
    /// Proves that the person gave the command on this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

fn write_row(seals: &SessionSeals, command: &Command) -> serde_json::Result<Vec<u8>> {
    let seal = seals.seal_of_row(&serde_json::to_string(command)?);
    serde_json::to_vec(&Row { command, seal })
}

/// Returns the command of a row, or why it is refused. The inbox of a folder from elsewhere may hold
/// commands and answers that this person never gave.
fn read_row(seals: &SessionSeals, body: &[u8]) -> Result<Command, String> {
    let unreadable = |error: serde_json::Error| format!("the command cannot be read: {error}");
    let Row { command, seal } = serde_json::from_slice::<Row<Command>>(body).map_err(unreadable)?;
    let text = serde_json::to_string(&command).map_err(unreadable)?;
    match seals.row_counts(&text, seal.as_deref()) {
        true => Ok(command),
        false => Err("the command was not given on this account; give it again".to_owned()),
    }
}
