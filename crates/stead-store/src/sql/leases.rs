//! Leases in a table. A row stays when its lease is given back, so that its token only grows.

use super::driver::{Begin, Fault, Statement, Tx, end};
use super::{SqlStore, ms};
use crate::contract::{Acquired, Claim, Fence, Lease, Leases, Space};
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The time at which a lease ends that was given back.
const GIVEN_BACK: i64 = 0;

impl Leases for SqlStore {
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<Acquired, StoreError>> {
        async move {
            self.check_name(name)?;
            let ask = Ask {
                name,
                holder,
                ttl_ms: ms(ttl),
                claim,
            };
            self.retrying(|_| {
                async move {
                    let mut tx = self.driver.begin(Begin::Write).await?;
                    let outcome = match self.acquire_in(&mut *tx, space, &ask).await {
                        // Somebody else was first. The next look will see it.
                        Err(Fault::Duplicate(cause)) => Err(Fault::Again(cause)),
                        outcome => outcome,
                    };
                    end(tx, outcome).await
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
        fence: &'a Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.retrying_boxed(move |_| {
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
                    .write(statement.int(token).int(GIVEN_BACK))
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
        fence: &'a Fence,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.retrying_boxed(move |_| {
            async move {
                let Ok(token) = i64::try_from(fence.token) else { return Ok(()) };
                let sql = "UPDATE stead_leases SET expires_ms = ? WHERE space = ? AND name = ? AND token = ?";
                let statement = Statement::new(sql).int(GIVEN_BACK).bytes(space.as_str()).bytes(&fence.name);
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
        ask: &Ask<'_>,
    ) -> Result<Acquired, Fault> {
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
            Ok::<_, Fault>(Held {
                token: row.int(0)?,
                expires_ms: row.int(1)?,
                now_ms: row.int(2)?,
                holder: row.text(3)?,
            })
        });
        let (token, statement) = match ask.decide(held.transpose()?.as_ref()) {
            Verdict::Refused(lease) => return Ok(Acquired::Held(lease)),
            Verdict::First => (
                1,
                format!(
                    "INSERT INTO stead_leases (token, holder, expires_ms, space, name) VALUES (?, ?, {now} + ?, ?, ?)"
                ),
            ),
            Verdict::Granted(token) => (
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
            .map_err(|_| Fault::Odd(format!("the token of {} is {token}", ask.name)))?;
        Ok(Acquired::Ours(Fence {
            name: ask.name.to_owned(),
            token,
        }))
    }
}

/// What somebody wants.
#[derive(Clone, Copy)]
struct Ask<'a> {
    name: &'a str,
    holder: &'a str,
    ttl_ms: i64,
    claim: Claim,
}

/// What the table says.
struct Held {
    token: i64,
    expires_ms: i64,
    now_ms: i64,
    holder: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// There never was such a lease.
    First,
    /// It is theirs, under this token.
    Granted(i64),
    Refused(Lease),
}

impl Ask<'_> {
    fn decide(&self, held: Option<&Held>) -> Verdict {
        let Some(held) = held else {
            return Verdict::First;
        };
        let token = u64::try_from(held.token).unwrap_or_default();
        if held.holder == self.holder && held.expires_ms != GIVEN_BACK {
            return Verdict::Granted(held.token);
        }
        if held.expires_ms <= held.now_ms || self.claim == Claim::Over(token) {
            return Verdict::Granted(held.token.saturating_add(1));
        }
        let left = u64::try_from(held.expires_ms.saturating_sub(held.now_ms)).unwrap_or_default();
        Verdict::Refused(Lease {
            holder: held.holder.clone(),
            token,
            left: Duration::from_millis(left),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_goes_to_its_holder_or_to_the_next_when_it_is_free() {
        let held = |holder: &str, expires_ms| Held {
            token: 7,
            expires_ms,
            now_ms: 100,
            holder: holder.to_owned(),
        };
        let refused = Verdict::Refused(Lease {
            holder: "b".into(),
            token: 7,
            left: Duration::from_millis(50),
        });
        for (claim, found, expected) in [
            (Claim::Free, None, Verdict::First),
            (Claim::Free, Some(held("a", 150)), Verdict::Granted(7)),
            (Claim::Free, Some(held("a", 50)), Verdict::Granted(7)),
            (
                Claim::Free,
                Some(held("a", GIVEN_BACK)),
                Verdict::Granted(8),
            ),
            (Claim::Free, Some(held("b", 150)), refused),
            (Claim::Free, Some(held("b", 100)), Verdict::Granted(8)),
            (
                Claim::Free,
                Some(held("b", GIVEN_BACK)),
                Verdict::Granted(8),
            ),
            (Claim::Over(7), Some(held("b", 150)), Verdict::Granted(8)),
            (Claim::Over(7), Some(held("a", 150)), Verdict::Granted(7)),
            (
                Claim::Over(6),
                Some(held("b", 101)),
                Verdict::Refused(Lease {
                    holder: "b".into(),
                    token: 7,
                    left: Duration::from_millis(1),
                }),
            ),
        ] {
            let ask = Ask {
                name: "l",
                holder: "a",
                ttl_ms: 10,
                claim,
            };
            assert_eq!(ask.decide(found.as_ref()), expected, "{claim:?}");
        }
    }
}
