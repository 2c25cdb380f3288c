//! Part of the budgets: model calls that broke off. No journal says what they cost, but the limits
//! count them.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::shared_document;
use serde::{Deserialize, Serialize};
use stead_core::{SessionId, SpendAmount};
use stead_place::OwnerState;
use stead_store::StoreError;

/// The number of calls that are kept apart; older ones are added up.
const MAX_SEPARATE: usize = 1000;

/// The calls of one session that broke off.
#[derive(Debug)]
pub(super) struct UnsettledCalls {
    state: OwnerState,
    key: String,
    /// The last entry of the journal when the budget was opened.
    seq: u64,
}

/// A call that broke off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UnsettledCall {
    /// The last entry of the journal at that time.
    pub(super) seq: u64,
    /// The most that it can have cost.
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
