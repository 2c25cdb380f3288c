//! The leases of the Redis store: hashes that never expire, because the token must outlive the
//! holder.
//!
//! Effects: the clock, the network.

use super::{RedisStore, millis, number, text};
use crate::{AcquireOutcome, Claim, FencingToken, Lease, Leases, Space, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::time::Duration;

impl Leases for RedisStore {
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>> {
        Box::pin(async move {
            let over = match claim {
                Claim::Free => Bytes::new(),
                Claim::Takeover(token) => number(token),
            };
            let args = [text(name), text(holder), millis(ttl), over];
            let mut reply = self.call(&self.scripts.acquire, space, &args).await?;
            let outcome = reply.text()?;
            let token = reply.number()?;
            if outcome == "ours" {
                return Ok(AcquireOutcome::Granted(FencingToken {
                    name: name.to_owned(),
                    token,
                }));
            }
            let holder = reply.text()?;
            Ok(AcquireOutcome::Held(Lease {
                holder,
                token,
                remaining: Duration::from_millis(reply.number()?),
            }))
        })
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let args = [text(&fence.name), number(fence.token), millis(ttl)];
            self.call(&self.scripts.renew, space, &args)
                .await?
                .boolean()
        })
    }

    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.call(
                &self.scripts.release,
                space,
                &[text(&fence.name), number(fence.token)],
            )
            .await?;
            Ok(())
        })
    }
}
