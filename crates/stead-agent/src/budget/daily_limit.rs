//! The daily budget limit, shared by all sessions, processes and machines of an owner.
//!
//! Effects: the clock, randomness, the environment, the local disk (reads), the store (writes).

use super::BudgetError;
use crate::{AgentParts, shared_document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stead_core::{
    BudgetAccount, BudgetScope, CallEstimate, CallReservation, Owner, SpendAmount, SpendLimit,
};
use stead_place::OwnerState;
use stead_store::{DocVersion, ProcessIdentity, StoreError};

/// How long a reservation is kept if it is not settled. Reservations of a process of this machine
/// that has ended are dropped at once.
const RESERVATION_TTL_MS: i64 = 30 * 60 * 1000;

/// The daily limit of an owner.
#[derive(Debug)]
pub(super) struct DailyLimit {
    state: OwnerState,
    cap: SpendLimit,
    timezone: Option<String>,
}

/// A reservation in the document of one day.
#[derive(Debug)]
pub(super) struct DailyReservation {
    key: String,
    id: String,
}

/// The document of one day.
#[derive(Debug, Default, Serialize, Deserialize)]
struct DailyBudgetDocument {
    spent: SpendAmount,
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    raised: SpendAmount,
    /// Reservations of calls that have not ended, by id.
    #[serde(default)]
    held: BTreeMap<String, HeldAmount>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldAmount {
    amount: SpendAmount,
    until_ms: i64,
    by: ProcessIdentity,
}

impl DailyBudgetDocument {
    /// Drops reservations that expired or whose process has ended.
    fn drop_expired(&mut self, now_ms: i64) {
        self.held
            .retain(|_, hold| hold.until_ms > now_ms && !hold.by.is_gone());
    }

    fn account(&self, cap: SpendLimit) -> BudgetAccount {
        let mut used = self.spent;
        self.held.values().for_each(|hold| used += hold.amount);
        BudgetAccount {
            scope: BudgetScope::Day,
            limit: cap,
            raised: self.raised,
            used,
        }
    }
}

impl DailyLimit {
    /// The daily limit of `owner`, if the settings have one.
    pub(super) fn of_owner(parts: &AgentParts, owner: &Owner) -> Option<Self> {
        let config = parts.workspace.config();
        let limit = config.budget.limit(BudgetScope::Day);
        limit.is_limited().then(|| Self {
            state: parts.place.state(owner),
            cap: limit,
            timezone: config.timezone.clone(),
        })
    }

    pub(super) async fn reserve(
        &self,
        estimate: CallEstimate,
    ) -> Result<(CallReservation, DailyReservation), BudgetError> {
        let now = jiff::Timestamp::now();
        let key = self.key(now);
        let id = DocVersion::fresh().to_string();
        let now_ms = now.as_millisecond();
        let by = ProcessIdentity::fresh();
        let grant = shared_document::update(
            &self.state,
            &key,
            |book: &mut DailyBudgetDocument| -> Result<CallReservation, BudgetError> {
                book.drop_expired(now_ms);
                let grant = estimate.reserve(&[book.account(self.cap)])?;
                let hold = HeldAmount {
                    amount: grant.reserved,
                    until_ms: now_ms + RESERVATION_TTL_MS,
                    by: by.clone(),
                };
                book.held.insert(id.clone(), hold);
                Ok(grant)
            },
        );
        Ok((grant.await?, DailyReservation { key, id }))
    }

    pub(super) async fn settle(
        &self,
        held: DailyReservation,
        taken: SpendAmount,
    ) -> Result<(), StoreError> {
        let DailyReservation { key, id } = held;
        let close = |book: &mut DailyBudgetDocument| -> Result<(), StoreError> {
            book.held.remove(&id);
            book.spent += taken;
            Ok(())
        };
        shared_document::update(&self.state, &key, close).await
    }

    pub(super) async fn raise(&self, more: SpendAmount) -> Result<(), StoreError> {
        let add = |book: &mut DailyBudgetDocument| -> Result<(), StoreError> {
            book.raised += more;
            Ok(())
        };
        shared_document::update(&self.state, &self.key(jiff::Timestamp::now()), add).await
    }

    fn key(&self, now: jiff::Timestamp) -> String {
        format!(
            "budget/day/{}",
            crate::usage::date_in(now, self.timezone.as_deref())
        )
    }
}
