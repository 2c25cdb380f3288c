//! Where reading of journals ended, so that it can go on there.
//!
//! Effects: none.

use super::Position;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use stead_core::SessionId;

/// The number of sessions that are remembered.
const MAX_SESSIONS: usize = 1024;

/// The last position read of each session.
#[derive(Debug, Default)]
pub(super) struct ReadPositions {
    ends: Mutex<HashMap<SessionId, Position>>,
}

impl ReadPositions {
    pub(super) fn get(&self, id: &SessionId) -> Option<Position> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.get(id).copied()
    }

    pub(super) fn set(&self, id: &SessionId, end: Position) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= MAX_SESSIONS && !ends.contains_key(id) {
            ends.clear();
        }
        ends.insert(id.clone(), end);
    }
}
