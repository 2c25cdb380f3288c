//! The leases of the SQL store, in a table. A row stays when its lease is released, so that its
//! token only grows.
//!
//! Effects: the clock, randomness, the local disk (writes), the network.

use super::driver::{DbFault, Statement, TransactionKind, Tx, finish};
use super::{SqlStore, ms};
use crate::contract::{AcquireOutcome, Claim, FencingToken, Lease, Leases, Space};
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The deadline of a released lease.
const RELEASED_AT: i64 = 0;

impl Leases for SqlStore {
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>> {
        async move {
            self.check_name(name)?;
            let ask = LeaseRequest {
                name,
                holder,
                ttl_ms: ms(ttl),
                claim,
            };
            self.retry(|_| {
                async move {
                    let mut tx = self.driver.begin(TransactionKind::Write).await?;
                    let outcome = match self.acquire_in(&mut *tx, space, &ask).await {
                        // Another process inserted the row first. The next attempt will see it.
                        Err(DbFault::Duplicate(cause)) => Err(DbFault::Contended(cause)),
                        outcome => outcome,
                    };
                    finish(tx, outcome).await
                }
                .boxed()
            })
            .await
        }
        .boxed()
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.retry_boxed(move |_| {
            async move {
                let Ok(token) = i64::try_from(fence.token) else {
                    return Ok(false);
                };
                let sql = format!(
                    "UPDATE stead_leases SET expires_ms = {} + ? \
                     WHERE space = ? AND name = ? AND token = ? AND expires_ms <> ?",
                    self.dialect.now()
                );
                let statement = Statement::new(sql)
                    .int(ms(ttl))
                    .bytes(space.as_str())
                    .bytes(&fence.name);
                Ok(self
                    .driver
                    .write(statement.int(token).int(RELEASED_AT))
                    .await?
                    .changed
                    > 0)
            }
            .boxed()
        })
    }

    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.retry_boxed(move |_| {
            async move {
                let Ok(token) = i64::try_from(fence.token) else { return Ok(()) };
                let sql = "UPDATE stead_leases SET expires_ms = ? WHERE space = ? AND name = ? AND token = ?";
                let statement = Statement::new(sql).int(RELEASED_AT).bytes(space.as_str()).bytes(&fence.name);
                self.driver.write(statement.int(token)).await.map(|_| ())
            }
            .boxed()
        })
    }
}

impl SqlStore {
    async fn acquire_in(
        &self,
        tx: &mut dyn Tx,
        space: &Space,
        ask: &LeaseRequest<'_>,
    ) -> Result<AcquireOutcome, DbFault> {
        let now = self.dialect.now();
        let lock = self.dialect.for_update();
        let sql = format!(
            "SELECT token, expires_ms, {now}, holder FROM stead_leases WHERE space = ? AND name = ?{lock}"
        );
        let row = tx
            .run(Statement::new(sql).bytes(space.as_str()).bytes(ask.name))
            .await?
            .first();
        let held = row.map(|mut row| {
            Ok::<_, DbFault>(LeaseRow {
                token: row.int(0)?,
                expires_ms: row.int(1)?,
                now_ms: row.int(2)?,
                holder: row.text(3)?,
            })
        });
        let (token, statement) = match ask.decide(held.transpose()?.as_ref()) {
            LeaseDecision::Refused(lease) => return Ok(AcquireOutcome::Held(lease)),
            LeaseDecision::First => (
                1,
                format!(
                    "INSERT INTO stead_leases (token, holder, expires_ms, space, name) VALUES (?, ?, {now} + ?, ?, ?)"
                ),
            ),
            LeaseDecision::Granted(token) => (
                token,
                format!(
                    "UPDATE stead_leases SET token = ?, holder = ?, expires_ms = {now} + ? WHERE space = ? AND name = ?"
                ),
            ),
        };
        let statement = Statement::new(statement)
            .int(token)
            .bytes(ask.holder)
            .int(ask.ttl_ms);
        tx.run(statement.bytes(space.as_str()).bytes(ask.name))
            .await?;
        let token = u64::try_from(token)
            .map_err(|_| DbFault::Corrupt(format!("the token of {} is {token}", ask.name)))?;
        Ok(AcquireOutcome::Granted(FencingToken {
            name: ask.name.to_owned(),
            token,
        }))
    }
}

/// A request for a lease.
#[derive(Clone, Copy)]
struct LeaseRequest<'a> {
    name: &'a str,
    holder: &'a str,
    ttl_ms: i64,
    claim: Claim,
}

/// The row of a lease.
struct LeaseRow {
    token: i64,
    expires_ms: i64,
    now_ms: i64,
    holder: String,
}

#[derive(Debug, PartialEq, Eq)]
enum LeaseDecision {
    /// The lease was never granted.
    First,
    /// The lease is granted under this token.
    Granted(i64),
    Refused(Lease),
}

impl LeaseRequest<'_> {
    fn decide(&self, held: Option<&LeaseRow>) -> LeaseDecision {
        let Some(held) = held else {
            return LeaseDecision::First;
        };
        let token = u64::try_from(held.token).unwrap_or_default();
        if held.holder == self.holder && held.expires_ms != RELEASED_AT {
            return LeaseDecision::Granted(held.token);
        }
        if held.expires_ms <= held.now_ms || self.claim == Claim::Takeover(token) {
            return LeaseDecision::Granted(held.token.saturating_add(1));
        }
        let left = u64::try_from(held.expires_ms.saturating_sub(held.now_ms)).unwrap_or_default();
        LeaseDecision::Refused(Lease {
            holder: held.holder.clone(),
            token,
            remaining: Duration::from_millis(left),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_goes_to_its_holder_or_to_the_next_when_it_is_free() {
        let held = |holder: &str, expires_ms| LeaseRow {
            token: 7,
            expires_ms,
            now_ms: 100,
            holder: holder.to_owned(),
        };
        let refused = LeaseDecision::Refused(Lease {
            holder: "b".into(),
            token: 7,
            remaining: Duration::from_millis(50),
        });
        for (claim, found, expected) in [
            (Claim::Free, None, LeaseDecision::First),
            (Claim::Free, Some(held("a", 150)), LeaseDecision::Granted(7)),
            (Claim::Free, Some(held("a", 50)), LeaseDecision::Granted(7)),
            (
                Claim::Free,
                Some(held("a", RELEASED_AT)),
                LeaseDecision::Granted(8),
            ),
            (Claim::Free, Some(held("b", 150)), refused),
            (Claim::Free, Some(held("b", 100)), LeaseDecision::Granted(8)),
            (
                Claim::Free,
                Some(held("b", RELEASED_AT)),
                LeaseDecision::Granted(8),
            ),
            (
                Claim::Takeover(7),
                Some(held("b", 150)),
                LeaseDecision::Granted(8),
            ),
            (
                Claim::Takeover(7),
                Some(held("a", 150)),
                LeaseDecision::Granted(7),
            ),
            (
                Claim::Takeover(6),
                Some(held("b", 101)),
                LeaseDecision::Refused(Lease {
                    holder: "b".into(),
                    token: 7,
                    remaining: Duration::from_millis(1),
                }),
            ),
        ] {
            let ask = LeaseRequest {
                name: "l",
                holder: "a",
                ttl_ms: 10,
                claim,
            };
            assert_eq!(ask.decide(found.as_ref()), expected, "{claim:?}");
        }
    }
}
