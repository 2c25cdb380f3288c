//! Reading a part of a journal in a store.
//!
//! Effects: the journal (reads).

use super::super::journal::read_line;
use super::super::journal_file::check_session_id;
use super::{StoreSessions, journal_location};
use crate::{Position, StoreError};
use bytes::Bytes;
use stead_core::{ChainSum, JournalLine, LineError, SessionId};

impl StoreSessions {
    /// Returns verified lines from number `from` on, about `limit_bytes` of them.
    pub(super) async fn read_range(
        &self,
        id: &SessionId,
        from: u64,
        limit_bytes: usize,
    ) -> Result<Vec<JournalLine>, StoreError> {
        if from == 1 {
            return self.read_after(id, Position::START, limit_bytes).await;
        }
        let known = self.read_ends.get(id);
        if let Some(known) = known.filter(|known| known.seq + 1 == from) {
            match self.read_after(id, known, limit_bytes).await {
                // The session may have been removed and created again since it was read.
                Err(StoreError::Damaged { .. }) => {}
                read => return read,
            }
        }
        match self.position_of(id, from - 1).await? {
            Some(before) => self.read_after(id, before, limit_bytes).await,
            None => Ok(Vec::new()),
        }
    }

    async fn read_after(
        &self,
        id: &SessionId,
        before: Position,
        limit_bytes: usize,
    ) -> Result<Vec<JournalLine>, StoreError> {
        let place = journal_location(&*self.store, id);
        let mut at = before;
        let page = self
            .store
            .lines(&self.space, id.as_str(), at.seq + 1, limit_bytes)
            .await?;
        if page.is_empty() && self.store.tail(&self.space, id.as_str()).await?.is_none() {
            return Err(StoreError::NotFound(id.clone()));
        }
        let mut lines = Vec::with_capacity(page.len());
        for text in page {
            let number = at.seq + 1;
            let line = read_line(&text, number, at.sum).map_err(|cause| StoreError::Damaged {
                path: place.clone(),
                line: number,
                cause,
            })?;
            check_session_id(&place, id, &line)?;
            at = Position {
                seq: number,
                sum: line.sum,
                bytes: at.bytes + text.len() as u64 + 1,
            };
            lines.push(line);
        }
        self.read_ends.set(id, at);
        Ok(lines)
    }

    /// Returns the position after line `seq`, without the bytes before it, or `None` if the journal
    /// is shorter.
    async fn position_of(&self, id: &SessionId, seq: u64) -> Result<Option<Position>, StoreError> {
        let found = self
            .store
            .lines(&self.space, id.as_str(), seq, 1)
            .await?
            .into_iter()
            .next();
        let Some(text) = found else {
            return match self.store.tail(&self.space, id.as_str()).await? {
                Some(_) => Ok(None),
                None => Err(StoreError::NotFound(id.clone())),
            };
        };
        let sum = line_sum(&text).ok_or_else(|| StoreError::Damaged {
            path: journal_location(&*self.store, id),
            line: seq,
            cause: LineError::Checksum,
        })?;
        Ok(Some(Position { seq, sum, bytes: 0 }))
    }
}

/// Returns the checksum at the end of a line: 16 digits before `"}`.
fn line_sum(text: &Bytes) -> Option<ChainSum> {
    let end = text.len().checked_sub(2)?;
    let hex = std::str::from_utf8(text.get(end.checked_sub(16)?..end)?).ok()?;
    serde_json::from_value(hex.into()).ok()
}
