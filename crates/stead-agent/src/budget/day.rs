//! What a day may cost, shared by all sessions, processes and machines of an owner.

use super::{BudgetError, ledger};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stead_core::{Account, Allowance, Cap, Estimate, Grant, Span};
use stead_store::{DocVersion, Signature, StoreError};
use stead_workspace::State;

/// How long a call on its way is waited for. A process of this machine that is gone gives its own
/// back at once.
const HOLD_MS: i64 = 30 * 60 * 1000;

/// The limit of a day.
#[derive(Debug)]
pub(super) struct Day {
    state: State,
    cap: Cap,
    timezone: Option<String>,
}

/// A place in the book of one day.
#[derive(Debug)]
pub(super) struct Held {
    key: String,
    id: String,
}

/// What is known about one day.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    spent: Allowance,
    #[serde(default, skip_serializing_if = "Allowance::is_zero")]
    raised: Allowance,
    /// Calls on their way.
    #[serde(default)]
    held: BTreeMap<String, Hold>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Hold {
    amount: Allowance,
    until_ms: i64,
    by: Signature,
}

impl Book {
    /// Forgets calls that nobody waits for any more.
    fn sweep(&mut self, now_ms: i64) {
        self.held
            .retain(|_, hold| hold.until_ms > now_ms && !hold.by.is_gone());
    }

    fn account(&self, cap: Cap) -> Account {
        let mut gone = self.spent;
        self.held.values().for_each(|hold| gone += hold.amount);
        Account {
            span: Span::Day,
            cap,
            raised: self.raised,
            gone,
        }
    }
}

impl Day {
    pub(super) fn new(state: State, cap: Cap, timezone: Option<String>) -> Self {
        Self {
            state,
            cap,
            timezone,
        }
    }

    pub(super) async fn reserve(&self, estimate: Estimate) -> Result<(Grant, Held), BudgetError> {
        let now = jiff::Timestamp::now();
        let key = self.key(now);
        let id = DocVersion::fresh().to_string();
        let now_ms = now.as_millisecond();
        let by = Signature::fresh();
        let grant = ledger::change(
            &self.state,
            &key,
            |book: &mut Book| -> Result<Grant, BudgetError> {
                book.sweep(now_ms);
                let grant = estimate.fit(&[book.account(self.cap)])?;
                let hold = Hold {
                    amount: grant.reserved,
                    until_ms: now_ms + HOLD_MS,
                    by: by.clone(),
                };
                book.held.insert(id.clone(), hold);
                Ok(grant)
            },
        );
        Ok((grant.await?, Held { key, id }))
    }

    pub(super) async fn settle(&self, held: Held, taken: Allowance) -> Result<(), StoreError> {
        let Held { key, id } = held;
        let close = |book: &mut Book| -> Result<(), StoreError> {
            book.held.remove(&id);
            book.spent += taken;
            Ok(())
        };
        ledger::change(&self.state, &key, close).await
    }

    pub(super) async fn raise(&self, more: Allowance) -> Result<(), StoreError> {
        let add = |book: &mut Book| -> Result<(), StoreError> {
            book.raised += more;
            Ok(())
        };
        ledger::change(&self.state, &self.key(jiff::Timestamp::now()), add).await
    }

    fn key(&self, now: jiff::Timestamp) -> String {
        format!(
            "budget/day/{}",
            crate::usage::date_in(now, self.timezone.as_deref())
        )
    }
}
