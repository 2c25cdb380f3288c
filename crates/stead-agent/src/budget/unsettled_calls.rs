//! Calls that broke off, so that no journal says what they cost. A limit counts them all the same.

use super::shared_document;
use serde::{Deserialize, Serialize};
use stead_core::{SessionId, SpendAmount};
use stead_place::OwnerState;
use stead_store::StoreError;

/// Most of them that are told apart; older ones are added up.
const MAX_SEPARATE: usize = 1000;

/// The calls of one session that broke off.
#[derive(Debug)]
pub(super) struct UnsettledCalls {
    state: OwnerState,
    key: String,
    /// Where the journal stood when the run was opened.
    seq: u64,
}

/// One of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UnsettledCall {
    /// Where the journal stood.
    pub(super) seq: u64,
    /// The most it can have cost.
    pub(super) amount: SpendAmount,
}

impl UnsettledCalls {
    pub(super) fn new(state: OwnerState, session: &SessionId, seq: u64) -> Self {
        Self {
            state,
            key: format!("budget/session/{session}"),
            seq,
        }
    }

    pub(super) async fn all(&self) -> Result<Vec<UnsettledCall>, StoreError> {
        shared_document::read(&self.state, &self.key).await
    }

    pub(super) async fn add(&self, amount: SpendAmount) -> Result<(), StoreError> {
        let add = |all: &mut Vec<UnsettledCall>| -> Result<(), StoreError> {
            all.push(UnsettledCall {
                seq: self.seq,
                amount,
            });
            if all.len() > MAX_SEPARATE {
                let oldest = all.remove(0);
                if let Some(next) = all.first_mut() {
                    next.amount += oldest.amount;
                }
            }
            Ok(())
        };
        shared_document::update(&self.state, &self.key, add).await
    }
}
